/* SPDX-License-Identifier: Apache-2.0
 * Trace writer.  Integers only, fields in a fixed order: equal events give equal bytes. */
#include "traces/draft.h"
#include "traces/trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_BYTES ((size_t)1 << 18)
#define RECORD_BYTES ((size_t)4096) /* no record is longer */
#define NAME_BYTES 200
#define PS_A_US UINT64_C(1000000)

const struct bell_trace_text bell_trace_texts[] = {
#define TEXT(member)                                                                                                   \
    {                                                                                                                  \
#member, offsetof(struct bell_trace_header, member), sizeof((struct bell_trace_header *)0)->member             \
    }
    TEXT(schema),       TEXT(executor), TEXT(platform),  TEXT(stack),  TEXT(experiment), TEXT(ordering),
    TEXT(clock_domain), TEXT(path),     TEXT(processor), TEXT(digest), TEXT(revision),
    TEXT(machine),
#undef TEXT
    { NULL, 0, 0 },
};

struct bell_trace_writer {
    struct bell_draft draft;
    enum bell_status status; /* of the first failure; then nothing more is written */
    uint64_t limit, written, dropped;
    size_t used;
    char *buffer;
};

static void put_text(struct bell_trace_writer *w, const char *text)
{
    size_t n = strlen(text);
    memcpy(w->buffer + w->used, text, n);
    w->used += n;
}

static void put_number(struct bell_trace_writer *w, uint64_t value)
{
    char digits[20];
    size_t n = 0;
    do {
        digits[n++] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    while (n)
        w->buffer[w->used++] = digits[--n];
}

/* Exact microseconds of picoseconds: always six decimals. */
static void put_us(struct bell_trace_writer *w, uint64_t ps)
{
    put_number(w, ps / PS_A_US);
    uint64_t rest = ps % PS_A_US;
    w->buffer[w->used] = '.';
    for (size_t i = 6; i > 0; i--, rest /= 10)
        w->buffer[w->used + i] = (char)('0' + rest % 10);
    w->used += 7;
}

static void put_field(struct bell_trace_writer *w, const char *key, uint64_t value)
{
    put_text(w, key);
    put_number(w, value);
}

static void put_string(struct bell_trace_writer *w, const char *text, size_t most)
{
    static const char hex[] = "0123456789abcdef";
    w->buffer[w->used++] = '"';
    /* A cut never splits a UTF-8 sequence. */
    size_t n = strnlen(text, most);
    if (n == most)
        while (n && ((unsigned char)text[n] & 0xc0) == 0x80)
            n--;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x20 || c == 0x7f) {
            put_text(w, "\\u00");
            w->buffer[w->used++] = hex[c >> 4];
            w->buffer[w->used++] = hex[c & 15];
            continue;
        }
        if (c == '"' || c == '\\') w->buffer[w->used++] = '\\';
        w->buffer[w->used++] = (char)c;
    }
    w->buffer[w->used++] = '"';
}

static enum bell_status flush(struct bell_trace_writer *w, struct bell_error *err)
{
    for (size_t done = 0; done < w->used;) {
        ssize_t n = write(w->draft.fd, w->buffer + done, w->used - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0)
            return w->status =
                       bell_fail(err, BELL_IO, "%s: cannot write: %s", w->draft.path, strerror(n < 0 ? errno : ENOSPC));
        done += (size_t)n;
    }
    w->used = 0;
    return BELL_OK;
}

/* Room for one record.  A failed writer stays failed. */
static enum bell_status make_room(struct bell_trace_writer *w, struct bell_error *err)
{
    if (w->status != BELL_OK) return bell_fail(err, w->status, "%s: an earlier write failed", w->draft.path);
    return BUFFER_BYTES - w->used < RECORD_BYTES ? flush(w, err) : BELL_OK;
}

static void put_header(struct bell_trace_writer *w, const struct bell_trace_header *header)
{
    put_text(w, "[\n{\"name\":\"bellwether\",\"ph\":\"M\",\"pid\":0,\"tid\":0,\"args\":{");
    for (const struct bell_trace_text *t = bell_trace_texts; t->key; t++) {
        const char *text = (const char *)header + t->offset;
        put_text(w, t == bell_trace_texts ? "\"" : ",\"");
        put_text(w, t->key);
        put_text(w, "\":");
        if (t == bell_trace_texts && !*text) text = BELL_TRACE_SCHEMA;
        put_string(w, text, t->size - 1);
    }
    char seed[40];
    (void)snprintf(seed, sizeof seed, ",\"seed\":\"%016llx\"", (unsigned long long)header->seed);
    put_text(w, seed);
    put_field(w, ",\"depth\":", header->depth);
    put_field(w, ",\"first_index\":", header->first_index);
    put_text(w, "}},\n");
}

enum bell_status bell_trace_create(const char *path, const struct bell_trace_header *header,
                                   struct bell_trace_writer **out, struct bell_error *err)
{
    struct bell_trace_writer *w = calloc(1, sizeof *w);
    if (w) w->buffer = malloc(BUFFER_BYTES);
    enum bell_status s = w && w->buffer ? bell_draft_open(&w->draft, path, err)
                                        : bell_fail(err, BELL_NO_MEMORY, "%s: out of memory", path);
    if (s != BELL_OK) {
        free(w ? w->buffer : NULL);
        free(w);
        return s;
    }
    if (header) put_header(w, header);
    *out = w;
    return BELL_OK;
}

void bell_trace_begin(struct bell_trace_writer *w, const struct bell_trace_header *header)
{
    put_header(w, header);
}

void bell_trace_limit(struct bell_trace_writer *w, uint64_t events)
{
    w->limit = events;
}

enum bell_status bell_trace_write(struct bell_trace_writer *w, const struct bell_event *e, struct bell_error *err)
{
    const char *name = bell_event_name(e->kind), *scope = bell_scope_name(e->scope), *actor = bell_actor_name(e->actor);
    if (!name || !scope || !actor)
        return bell_fail(err, BELL_INVALID, "event %llu: kind %u, scope %u or actor %u is unknown",
                         (unsigned long long)e->seq, e->kind, e->scope, e->actor);
    if (w->limit && w->written >= w->limit) {
        w->dropped++;
        return BELL_OK;
    }
    enum bell_status s = make_room(w, err);
    if (s != BELL_OK) return s;
    put_text(w, "{\"name\":\"");
    put_text(w, name);
    put_text(w, "\",\"cat\":\"");
    put_text(w, actor);
    put_text(w, "\",\"ph\":\"X\",\"ts\":");
    put_us(w, e->start_ps);
    put_text(w, ",\"dur\":");
    put_us(w, e->duration_ps);
    put_field(w, ",\"pid\":", e->rank);
    put_field(w, ",\"tid\":", e->lane);
    put_field(w, ",\"args\":{\"seq\":", e->seq);
    put_field(w, ",\"ps\":", e->start_ps);
    put_field(w, ",\"dur_ps\":", e->duration_ps);
    put_field(w, ",\"queue\":", e->queue);
    put_field(w, ",\"index\":", e->index);
    put_field(w, ",\"count\":", e->count);
    put_field(w, ",\"bytes\":", e->bytes);
    put_text(w, ",\"scope\":\"");
    put_text(w, scope);
    put_field(w, "\",\"cause\":", e->cause);
    put_text(w, "}},\n");
    w->written++;
    return BELL_OK;
}

static enum bell_status sink_write(void *context, const struct bell_event *event, struct bell_error *err)
{
    return bell_trace_write(context, event, err);
}

struct bell_sink bell_trace_sink(struct bell_trace_writer *w)
{
    struct bell_sink sink = { w, sink_write };
    return sink;
}

static enum bell_status put_name(struct bell_trace_writer *w, const char *what, uint16_t rank, uint16_t lane,
                                 const char *text, struct bell_error *err)
{
    enum bell_status s = make_room(w, err);
    if (s != BELL_OK) return s;
    put_text(w, "{\"name\":\"");
    put_text(w, what);
    put_field(w, "\",\"ph\":\"M\",\"pid\":", rank);
    put_field(w, ",\"tid\":", lane);
    put_text(w, ",\"args\":{\"name\":");
    put_string(w, text, NAME_BYTES);
    put_text(w, "}},\n");
    return BELL_OK;
}

enum bell_status bell_trace_name_rank(struct bell_trace_writer *w, uint16_t rank, const char *text,
                                      struct bell_error *err)
{
    return put_name(w, "process_name", rank, 0, text, err);
}

enum bell_status bell_trace_name_lane(struct bell_trace_writer *w, uint16_t rank, uint16_t lane, const char *text,
                                      struct bell_error *err)
{
    return put_name(w, "thread_name", rank, lane, text, err);
}

enum bell_status bell_trace_close(struct bell_trace_writer *w, struct bell_error *err)
{
    enum bell_status s = make_room(w, err);
    if (s == BELL_OK) {
        put_field(w, "{\"name\":\"bellwether_end\",\"ph\":\"M\",\"pid\":0,\"tid\":0,\"args\":{\"events\":", w->written);
        put_field(w, ",\"dropped\":", w->dropped);
        put_text(w, "}}\n]\n");
        s = flush(w, err);
    }
    if (s == BELL_OK) s = bell_draft_keep(&w->draft, err);
    bell_trace_abort(w);
    return s;
}

void bell_trace_abort(struct bell_trace_writer *w)
{
    if (!w) return;
    bell_draft_drop(&w->draft);
    free(w->buffer);
    free(w);
}
