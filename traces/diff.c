/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/diff.h"

#include "traces/window.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct side {
    const char *path;
    struct bell_trace_reader *reader;
    struct bell_trace_header header;
    const char *name;         /* "first" or "second" */
    struct bell_event *event; /* normalised only */
    size_t count, room;
    struct bell_map last_poll; /* lane and queue to 1 + the place in event of its last POLL */
};

struct comparison {
    const struct bell_diff *diff;
    uint64_t count;
};

static void differ(struct comparison *c, const char *format, ...) BELL_FORMAT(2, 3);

static void differ(struct comparison *c, const char *format, ...)
{
    if (c->count++ >= c->diff->report_max || !c->diff->report) return;
    char text[600];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    c->diff->report(c->diff->context, text);
}

static void describe(const struct bell_event *e, char *out, size_t size)
{
    (void)snprintf(out, size, "event %" PRIu64 " %s rank %u lane %u queue %u index %" PRIu64, e->seq,
                   bell_event_name(e->kind), e->rank, e->lane, e->queue, e->index);
}

/* Append " key a|b" to text when they differ. */
static void add(char *text, size_t size, const char *key, uint64_t a, uint64_t b)
{
    size_t used = strlen(text);
    if (a != b && used < size) (void)snprintf(text + used, size - used, " %s %" PRIu64 "|%" PRIu64, key, a, b);
}

static void add_name(char *text, size_t size, const char *key, const char *a, const char *b)
{
    size_t used = strlen(text);
    if (strcmp(a, b) != 0 && used < size) (void)snprintf(text + used, size - used, " %s %s|%s", key, a, b);
}

static void compare_pair(struct comparison *c, const struct bell_event *a, const struct bell_event *b)
{
    char what[160], text[400] = "";
    add_name(text, sizeof text, "name", bell_event_name(a->kind), bell_event_name(b->kind));
    add(text, sizeof text, "count", a->count, b->count);
    add(text, sizeof text, "bytes", a->bytes, b->bytes);
    add_name(text, sizeof text, "scope", bell_scope_name(a->scope), bell_scope_name(b->scope));
    if (!c->diff->is_normalised) {
        add_name(text, sizeof text, "cat", bell_actor_name(a->actor), bell_actor_name(b->actor));
        add(text, sizeof text, "seq", a->seq, b->seq);
        add(text, sizeof text, "rank", a->rank, b->rank);
        add(text, sizeof text, "lane", a->lane, b->lane);
        add(text, sizeof text, "queue", a->queue, b->queue);
        add(text, sizeof text, "index", a->index, b->index);
        add(text, sizeof text, "ps", a->start_ps, b->start_ps);
        add(text, sizeof text, "dur_ps", a->duration_ps, b->duration_ps);
        add(text, sizeof text, "cause", a->cause, b->cause);
    }
    if (!*text) return;
    describe(a, what, sizeof what);
    differ(c, "%s:%s", what, text);
}

static void compare_single(struct comparison *c, const struct bell_event *e, const char *side)
{
    char what[160];
    describe(e, what, sizeof what);
    differ(c, "%s: only in the %s trace", what, side);
}

static void compare_headers(struct comparison *c, const struct bell_trace_header *a, const struct bell_trace_header *b)
{
    for (const struct bell_trace_text *t = bell_trace_texts; t->key; t++) {
        const char *x = (const char *)a + t->offset, *y = (const char *)b + t->offset;
        if (strcmp(x, y) != 0) differ(c, "header: %s '%s'|'%s'", t->key, x, y);
    }
    if (a->seed != b->seed) differ(c, "header: seed %016" PRIx64 "|%016" PRIx64, a->seed, b->seed);
    if (a->depth != b->depth) differ(c, "header: depth %" PRIu32 "|%" PRIu32, a->depth, b->depth);
    if (a->first_index != b->first_index)
        differ(c, "header: first_index %" PRIu64 "|%" PRIu64, a->first_index, b->first_index);
}

static enum bell_status compare_exactly(struct comparison *c, struct side *a, struct side *b, struct bell_error *err)
{
    compare_headers(c, &a->header, &b->header);
    for (;;) {
        struct bell_event x, y;
        enum bell_status s = bell_trace_next(a->reader, &x, err), t;
        if (bell_is_failure(s)) return s;
        t = bell_trace_next(b->reader, &y, err);
        if (bell_is_failure(t)) return t;
        if (s == BELL_EMPTY && t == BELL_EMPTY) break;
        if (s == BELL_OK && t == BELL_OK)
            compare_pair(c, &x, &y);
        else
            compare_single(c, s == BELL_OK ? &x : &y, s == BELL_OK ? a->name : b->name);
        /* A reader at its end stays there. */
    }
    if (bell_trace_dropped(a->reader) != bell_trace_dropped(b->reader))
        differ(c, "end: dropped %" PRIu64 "|%" PRIu64, bell_trace_dropped(a->reader), bell_trace_dropped(b->reader));
    return BELL_OK;
}

static uint32_t space_of(uint32_t kind)
{
    return kind == BELL_EVENT_ENQUEUE || kind == BELL_EVENT_DEQUEUE || kind == BELL_EVENT_PROGRESS;
}

/* Who emits it in a queue: order is kept among events of one class, and free between classes, which run side by side.
 */
static uint32_t class_of(uint32_t kind)
{
    switch ((enum bell_event_kind)kind) {
    case BELL_EVENT_DELIVER:
    case BELL_EVENT_DEQUEUE:
        return 1;
    case BELL_EVENT_CQE:
    case BELL_EVENT_PROGRESS:
        return 2;
    case BELL_EVENT_POLL:
        return 3;
    case BELL_EVENT_FLAG:
        return 4;
    case BELL_EVENT_OP:
        return 5;
    default:
        return 0;
    }
}

static int three_way(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_place(const struct bell_event *a, const struct bell_event *b)
{
    int d = three_way(a->rank, b->rank);
    d = d ? d : three_way(space_of(a->kind), space_of(b->kind));
    d = d ? d : three_way(a->queue, b->queue);
    d = d ? d : three_way(a->index, b->index);
    d = d ? d : three_way(class_of(a->kind), class_of(b->kind));
    return d ? d : three_way(a->lane, b->lane);
}

/* start_ps holds the position in the file by now. */
static int compare_for_sort(const void *a, const void *b)
{
    const struct bell_event *x = a, *y = b;
    int d = compare_place(x, y);
    return d ? d : three_way(x->start_ps, y->start_ps);
}

static enum bell_status append(struct side *side, const struct bell_event *e, struct bell_error *err)
{
    if (side->count == side->room) {
        size_t room = side->room ? side->room * 2 : 1024;
        struct bell_event *more = realloc(side->event, room * sizeof *more);
        if (!more) return bell_fail(err, BELL_NO_MEMORY, "%s: out of memory after %zu events", side->path, side->count);
        side->event = more;
        side->room = room;
    }
    side->event[side->count++] = *e;
    return BELL_OK;
}

/* How often a lane looks is a matter of time: of its POLL events in a queue the last takes the place of the others. */
static enum bell_status append_poll(struct comparison *c, struct side *side, const struct bell_event *e,
                                    struct bell_error *err)
{
    uint64_t key = UINT64_C(1) << 48 | (uint64_t)e->rank << 32 | (uint64_t)e->queue << 16 | e->lane;
    uint64_t *at = bell_map_at(&side->last_poll, key);
    if (!at) return bell_fail(err, BELL_NO_MEMORY, "%s: out of memory after %zu events", side->path, side->count);
    if (!*at) {
        *at = side->count + 1;
        return append(side, e, err);
    }
    struct bell_event *last = &side->event[*at - 1];
    if (e->index < last->index) {
        char what[160];
        describe(e, what, sizeof what);
        differ(c, "%s: goes back from %" PRIu64 " in the %s trace", what, last->index, side->name);
    }
    *last = *e;
    return BELL_OK;
}

static enum bell_status load(struct comparison *c, struct side *side, struct bell_error *err)
{
    struct bell_event e;
    enum bell_status s;
    while ((s = bell_trace_next(side->reader, &e, err)) == BELL_OK) {
        if (bell_event_is_sim_only(e.kind)) continue;
        e.start_ps = side->count;
        s = e.kind == BELL_EVENT_POLL ? append_poll(c, side, &e, err) : append(side, &e, err);
        if (s != BELL_OK) return s;
    }
    if (side->count) qsort(side->event, side->count, sizeof *side->event, compare_for_sort);
    return s == BELL_EMPTY ? BELL_OK : s;
}

static enum bell_status compare_normalised(struct comparison *c, struct side *a, struct side *b, struct bell_error *err)
{
    enum bell_status s = load(c, a, err);
    if (s == BELL_OK) s = load(c, b, err);
    for (size_t i = 0, j = 0; s == BELL_OK && (i < a->count || j < b->count);) {
        int d = i == a->count ? 1 : j == b->count ? -1 : compare_place(&a->event[i], &b->event[j]);
        if (d == 0)
            compare_pair(c, &a->event[i++], &b->event[j++]);
        else if (d < 0)
            compare_single(c, &a->event[i++], a->name);
        else
            compare_single(c, &b->event[j++], b->name);
    }
    return s;
}

enum bell_status bell_diff_files(const char *a, const char *b, const struct bell_diff *diff, uint64_t *count,
                                 struct bell_error *err)
{
    struct side first, second;
    struct comparison c = { diff, 0 };
    memset(&first, 0, sizeof first);
    memset(&second, 0, sizeof second);
    first.path = a;
    first.name = "first";
    second.path = b;
    second.name = "second";
    enum bell_status s = bell_trace_open(a, &first.reader, &first.header, err);
    if (s == BELL_OK) s = bell_trace_open(b, &second.reader, &second.header, err);
    if (s == BELL_OK)
        s = diff->is_normalised ? compare_normalised(&c, &first, &second, err)
                                : compare_exactly(&c, &first, &second, err);
    bell_trace_free(first.reader);
    bell_trace_free(second.reader);
    free(first.event);
    free(second.event);
    free(first.last_poll.pair);
    free(second.last_poll.pair);
    if (s == BELL_OK) *count = c.count;
    return s;
}
