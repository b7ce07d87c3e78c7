/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/check.h"

#include "traces/window.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUEUES_MAX 65536
#define LANES_MAX (1u << 20) /* pairs of lane and queue that poll */
#define WINDOW_MAX 65536u    /* when the depth is unknown, and of a proxy ring */

enum space { SPACE_SQ = 1, SPACE_RING, SPACE_LANE };

struct queue {
    enum space space;
    uint16_t rank, number;
    struct bell_window window; /* base: polled so far, or progress of a ring */
    uint64_t reserved, rung, dbrec;
    uint64_t built_bytes, delivered_bytes;
    uint64_t cqe_next, cqe_end; /* past the last CQE's index; past its WQE */
    uint64_t enqueued, dequeued;
    uint16_t lane; /* the one that enqueued first */
    bool has_lane, many_lanes;
};

struct bell_check {
    uint64_t seq, depth, first_index, fail_seq;
    bool fenced;      /* the ordering is one that orders */
    bool nic_visible; /* DELIVER and CQE of every WQE are in the trace */
    bool dbrec_visible; /* and every doorbell record */
    struct bell_map map;
    struct queue *queue;
    size_t queues, room, lanes;
    char rule[32];
};

static enum bell_status broken(struct bell_check *c, struct bell_error *err, uint64_t seq, const char *rule,
                               const char *format, ...) BELL_FORMAT(5, 6);

static enum bell_status broken(struct bell_check *c, struct bell_error *err, uint64_t seq, const char *rule,
                               const char *format, ...)
{
    char text[300];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    (void)snprintf(c->rule, sizeof c->rule, "%s", rule);
    c->fail_seq = seq;
    return bell_fail(err, strcmp(rule, "cqe-error") == 0 ? BELL_CQE_ERROR : BELL_CORRUPT, "event %" PRIu64 ": %s: %s",
                     seq, rule, text);
}

/* Rank and number of a queue at the front of a message. */
#define AT "rank %u queue %u: "
#define WHO(q) (unsigned)(q)->rank, (unsigned)(q)->number

static uint64_t key_of(enum space space, const struct bell_event *e, uint16_t lane)
{
    return (uint64_t)space << 48 | (uint64_t)e->rank << 32 | (uint64_t)e->queue << 16 | lane;
}

static enum bell_status find_queue(struct bell_check *c, enum space space, const struct bell_event *e,
                                   struct queue **out, struct bell_error *err)
{
    uint64_t *at = bell_map_at(&c->map, key_of(space, e, 0));
    if (at && *at) {
        *out = &c->queue[*at - 1];
        return BELL_OK;
    }
    if (at && c->queues == QUEUES_MAX)
        return bell_fail(err, BELL_UNSUPPORTED, "event %" PRIu64 ": more than %d queues", e->seq, QUEUES_MAX);
    if (at && c->queues == c->room) {
        size_t room = c->room ? c->room * 2 : 16;
        struct queue *more = realloc(c->queue, room * sizeof *more);
        if (!more) at = NULL;
        c->queue = more ? more : c->queue;
        c->room = more ? room : c->room;
    }
    if (!at) return bell_fail(err, BELL_NO_MEMORY, "event %" PRIu64 ": out of memory", e->seq);
    struct queue *q = &c->queue[c->queues++];
    memset(q, 0, sizeof *q);
    q->space = space;
    q->rank = e->rank;
    q->number = e->queue;
    if (space == SPACE_SQ)
        q->window.base = q->reserved = q->rung = q->dbrec = q->cqe_next = q->cqe_end = c->first_index;
    *at = c->queues;
    *out = q;
    return BELL_OK;
}

static enum bell_status check_reserve(struct bell_check *c, struct queue *q, const struct bell_event *e,
                                      struct bell_error *err)
{
    if (e->index != q->reserved)
        return broken(c, err, e->seq, "reserve-contiguous", AT "reserved from %" PRIu64 ", expected %" PRIu64, WHO(q),
                      e->index, q->reserved);
    if (e->index > UINT64_MAX - e->count)
        return broken(c, err, e->seq, "reserve-contiguous", AT "index + count passes 2^64", WHO(q));
    q->reserved += e->count;
    return BELL_OK;
}

static enum bell_status check_build(struct bell_check *c, struct queue *q, const struct bell_event *e,
                                    struct bell_error *err)
{
    if (e->count == 0 || e->count > q->reserved || e->index > q->reserved - e->count)
        return broken(c, err, e->seq, "build-reserved", AT "built %" PRIu64 "+%u, reserved up to %" PRIu64, WHO(q),
                      e->index, e->count, q->reserved);
    if (e->index < q->window.base)
        return broken(c, err, e->seq, "build-once", AT "slot %" PRIu64 " was built and completed before", WHO(q),
                      e->index);
    if (e->index - q->window.base + e->count > c->depth)
        return broken(c, err, e->seq, "slot-reuse", AT "built %" PRIu64 "+%u, polled up to %" PRIu64 ", depth %" PRIu64,
                      WHO(q), e->index, e->count, q->window.base, c->depth);
    for (uint32_t i = 0; i < e->count; i++) {
        struct bell_slot *slot = bell_window_grow(&q->window, e->index + i);
        if (!slot) return bell_fail(err, BELL_NO_MEMORY, "event %" PRIu64 ": out of memory", e->seq);
        if (slot->filled)
            return broken(c, err, e->seq, "build-once", AT "slot %" PRIu64 " was built by event %" PRIu64, WHO(q),
                          e->index + i, slot->seq);
        slot->filled = true;
        slot->seq = e->seq;
        slot->bytes = i ? 0 : e->bytes;
        slot->span = i ? 0 : e->count;
    }
    q->built_bytes += e->bytes;
    return BELL_OK;
}

/* Past the slots of a window; nothing was built from there on. */
static uint64_t window_end(const struct bell_window *w)
{
    return w->room < UINT64_MAX - w->base ? w->base + w->room : UINT64_MAX;
}

/* What was built before `end` and not rung for yet is ordered now. */
static void mark_fenced(struct queue *q, uint64_t end)
{
    /* A reservation may be far longer than the window. */
    uint64_t stop = window_end(&q->window);
    for (uint64_t i = q->rung; i < end && i < stop; i++) {
        struct bell_slot *slot = bell_window_at(&q->window, i);
        if (slot && slot->filled) slot->fenced = true;
    }
}

static enum bell_status check_dbrec(struct bell_check *c, struct queue *q, const struct bell_event *e,
                                    struct bell_error *err)
{
    if (e->index < q->dbrec)
        return broken(c, err, e->seq, "doorbell-monotonic", AT "doorbell record %" PRIu64 " after %" PRIu64, WHO(q),
                      e->index, q->dbrec);
    for (uint64_t i = q->dbrec > q->rung ? q->dbrec : q->rung; i < e->index; i++) {
        const struct bell_slot *slot = bell_window_at(&q->window, i);
        if (!slot || !slot->filled)
            return broken(c, err, e->seq, "dbrec-covers-built",
                          AT "doorbell record %" PRIu64 ", slot %" PRIu64 " not built", WHO(q), e->index, i);
        if (c->fenced && !slot->fenced && e->scope == BELL_SCOPE_NONE)
            return broken(c, err, e->seq, "fence-before-dbrec",
                          AT "nothing orders slot %" PRIu64 " (event %" PRIu64 ") before doorbell record %" PRIu64,
                          WHO(q), i, slot->seq, e->index);
    }
    q->dbrec = e->index;
    return BELL_OK;
}

static enum bell_status check_doorbell(struct bell_check *c, struct queue *q, const struct bell_event *e,
                                       struct bell_error *err)
{
    if (e->index < q->rung)
        return broken(c, err, e->seq, "doorbell-monotonic", AT "doorbell %" PRIu64 " after %" PRIu64, WHO(q), e->index,
                      q->rung);
    if (e->index > q->reserved)
        return broken(c, err, e->seq, "doorbell-covers-built", AT "doorbell %" PRIu64 ", reserved up to %" PRIu64,
                      WHO(q), e->index, q->reserved);
    if (c->dbrec_visible && e->index > q->dbrec)
        return broken(c, err, e->seq, "dbrec-before-doorbell", AT "doorbell %" PRIu64 ", doorbell record %" PRIu64,
                      WHO(q), e->index, q->dbrec);
    if (e->scope != BELL_SCOPE_NONE) mark_fenced(q, e->index);
    for (uint64_t i = q->rung; i < e->index; i++) {
        const struct bell_slot *slot = bell_window_at(&q->window, i);
        if (!slot || !slot->filled)
            return broken(c, err, e->seq, "doorbell-covers-built",
                          AT "doorbell %" PRIu64 ", slot %" PRIu64 " not built", WHO(q), e->index, i);
        if (c->fenced && !slot->fenced)
            return broken(c, err, e->seq, "fence-before-doorbell",
                          AT "nothing orders slot %" PRIu64 " (event %" PRIu64 ") before doorbell %" PRIu64, WHO(q), i,
                          slot->seq, e->index);
    }
    q->rung = e->index;
    return BELL_OK;
}

static enum bell_status check_deliver(struct bell_check *c, struct queue *q, const struct bell_event *e,
                                      struct bell_error *err)
{
    if (e->index >= q->rung)
        return broken(c, err, e->seq, "deliver-after-doorbell", AT "delivered %" PRIu64 ", rung up to %" PRIu64, WHO(q),
                      e->index, q->rung);
    struct bell_slot *slot = bell_window_at(&q->window, e->index);
    if (!slot || slot->delivered)
        return broken(c, err, e->seq, "deliver-once", AT "%" PRIu64 " was delivered or completed before", WHO(q),
                      e->index);
    if (slot->span == 0 || slot->bytes != e->bytes)
        return broken(c, err, e->seq, "bytes-conserved", AT "%u bytes delivered for %" PRIu64 ", built %u", WHO(q),
                      e->bytes, e->index, slot->bytes);
    slot->delivered = true;
    q->delivered_bytes += e->bytes;
    return BELL_OK;
}

static enum bell_status check_cqe(struct bell_check *c, struct queue *q, const struct bell_event *e,
                                  struct bell_error *err)
{
    if (e->count != 0)
        return broken(c, err, e->seq, "cqe-error", AT "WQE %" PRIu64 " completed with syndrome %u", WHO(q), e->index,
                      e->count);
    if (e->index < q->cqe_next)
        return broken(c, err, e->seq, "cqe-order", AT "CQE for %" PRIu64 ", expected %" PRIu64 " or later", WHO(q),
                      e->index, q->cqe_next);
    const struct bell_slot *last = bell_window_at(&q->window, e->index);
    if (e->index >= q->rung || !last || last->span == 0)
        return broken(c, err, e->seq, "cqe-after-deliver",
                      AT "CQE for %" PRIu64 ", no WQE that was rung for starts there", WHO(q), e->index);
    uint64_t from = q->cqe_end > q->window.base ? q->cqe_end : q->window.base, end = e->index + last->span;
    for (uint64_t i = from; i < end && c->nic_visible; i++) {
        const struct bell_slot *slot = bell_window_at(&q->window, i);
        if (slot && slot->bytes && !slot->delivered)
            return broken(c, err, e->seq, "cqe-after-deliver", AT "CQE for %" PRIu64 ", %" PRIu64 " is not delivered",
                          WHO(q), e->index, i);
    }
    q->cqe_next = e->index + 1;
    q->cqe_end = end;
    return BELL_OK;
}

static enum bell_status check_poll(struct bell_check *c, struct queue *q, const struct bell_event *e,
                                   struct bell_error *err)
{
    uint64_t limit = c->nic_visible ? q->cqe_end : q->rung;
    if (e->index > limit)
        return broken(c, err, e->seq, "poll-after-cqe", AT "polled %" PRIu64 ", completed up to %" PRIu64, WHO(q),
                      e->index, limit);
    size_t before = c->map.used;
    uint64_t *seen = bell_map_at(&c->map, key_of(SPACE_LANE, e, e->lane));
    if (!seen) return bell_fail(err, BELL_NO_MEMORY, "event %" PRIu64 ": out of memory", e->seq);
    if (c->map.used > before) {
        *seen = c->first_index;
        if (++c->lanes > LANES_MAX)
            return bell_fail(err, BELL_UNSUPPORTED, "event %" PRIu64 ": too many lanes poll", e->seq);
    }
    if (e->index < *seen)
        return broken(c, err, e->seq, "poll-monotonic", AT "lane %u polled %" PRIu64 " after %" PRIu64, WHO(q), e->lane,
                      e->index, *seen);
    *seen = e->index;
    if (e->index > q->window.base) bell_window_advance(&q->window, e->index);
    return BELL_OK;
}

static enum bell_status check_enqueue(struct bell_check *c, struct queue *q, const struct bell_event *e,
                                      struct bell_error *err)
{
    /* Lanes that share a ring claim entries in order but may note them out of it. */
    if (!q->has_lane) q->lane = e->lane;
    q->has_lane = true;
    q->many_lanes = q->many_lanes || q->lane != e->lane;
    if (!q->many_lanes && e->index != q->enqueued)
        return broken(c, err, e->seq, "enqueue-contiguous", AT "entry %" PRIu64 ", expected %" PRIu64, WHO(q), e->index,
                      q->enqueued);
    if (e->index < q->window.base || e->index - q->window.base >= WINDOW_MAX)
        return broken(c, err, e->seq, "enqueue-contiguous", AT "entry %" PRIu64 ", done up to %" PRIu64, WHO(q),
                      e->index, q->window.base);
    struct bell_slot *slot = bell_window_grow(&q->window, e->index);
    if (!slot) return bell_fail(err, BELL_NO_MEMORY, "event %" PRIu64 ": out of memory", e->seq);
    if (slot->filled)
        return broken(c, err, e->seq, "enqueue-contiguous", AT "entry %" PRIu64 " was written by event %" PRIu64,
                      WHO(q), e->index, slot->seq);
    slot->filled = true;
    slot->seq = e->seq;
    if (e->index >= q->enqueued) q->enqueued = e->index + 1;
    return BELL_OK;
}

static enum bell_status check_dequeue(struct bell_check *c, struct queue *q, const struct bell_event *e,
                                      struct bell_error *err)
{
    const struct bell_slot *slot = bell_window_at(&q->window, e->index);
    if (e->index >= q->dequeued && (!slot || !slot->filled))
        return broken(c, err, e->seq, "dequeue-after-enqueue", AT "entry %" PRIu64 " was not written yet", WHO(q),
                      e->index);
    if (e->index != q->dequeued)
        return broken(c, err, e->seq, "dequeue-order", AT "entry %" PRIu64 ", expected %" PRIu64, WHO(q), e->index,
                      q->dequeued);
    q->dequeued++;
    return BELL_OK;
}

static enum bell_status check_progress(struct bell_check *c, struct queue *q, const struct bell_event *e,
                                       struct bell_error *err)
{
    if (e->index > q->dequeued)
        return broken(c, err, e->seq, "progress-after-dequeue", AT "progress %" PRIu64 ", taken up to %" PRIu64, WHO(q),
                      e->index, q->dequeued);
    if (e->index < q->window.base)
        return broken(c, err, e->seq, "progress-monotonic", AT "progress %" PRIu64 " after %" PRIu64, WHO(q), e->index,
                      q->window.base);
    bell_window_advance(&q->window, e->index);
    return BELL_OK;
}

typedef enum bell_status check_step(struct bell_check *, struct queue *, const struct bell_event *,
                                    struct bell_error *);

static check_step *step_of(uint32_t kind, enum space *space)
{
    *space = SPACE_SQ;
    switch ((enum bell_event_kind)kind) {
    case BELL_EVENT_RESERVE:
        return check_reserve;
    case BELL_EVENT_BUILD:
        return check_build;
    case BELL_EVENT_DBREC:
        return check_dbrec;
    case BELL_EVENT_DOORBELL:
        return check_doorbell;
    case BELL_EVENT_DELIVER:
        return check_deliver;
    case BELL_EVENT_CQE:
        return check_cqe;
    case BELL_EVENT_POLL:
        return check_poll;
    case BELL_EVENT_ENQUEUE:
        *space = SPACE_RING;
        return check_enqueue;
    case BELL_EVENT_DEQUEUE:
        *space = SPACE_RING;
        return check_dequeue;
    case BELL_EVENT_PROGRESS:
        *space = SPACE_RING;
        return check_progress;
    default:
        return NULL;
    }
}

enum bell_status bell_check_event(struct bell_check *c, const struct bell_event *e, struct bell_error *err)
{
    if (e->seq != c->seq + 1) return broken(c, err, e->seq, "seq-order", "expected seq %" PRIu64, c->seq + 1);
    c->seq = e->seq;
    if (e->duration_ps > UINT64_MAX - e->start_ps)
        return broken(c, err, e->seq, "time-range", "start + duration passes 2^64 ps");
    if (e->cause >= e->seq)
        return broken(c, err, e->seq, "cause-earlier", "caused by event %" PRIu64 ", which is not before it", e->cause);
    struct queue *q = NULL;
    enum space space;
    check_step *step = step_of(e->kind, &space);
    if (!step && e->kind != BELL_EVENT_FENCE) return BELL_OK;
    enum bell_status s = find_queue(c, space, e, &q, err);
    if (s != BELL_OK) return s;
    if (step) return step(c, q, e, err);
    if (e->scope != BELL_SCOPE_NONE) mark_fenced(q, e->index);
    return BELL_OK;
}

static enum bell_status end_sq(struct bell_check *c, const struct queue *q, struct bell_error *err)
{
    uint64_t stop = window_end(&q->window);
    for (uint64_t i = q->rung; i < q->reserved && i < stop; i++) {
        const struct bell_slot *slot = bell_window_at(&q->window, i);
        if (slot && slot->filled)
            return broken(c, err, slot->seq, "unrung", AT "no doorbell for slot %" PRIu64, WHO(q), i);
    }
    if (q->rung < q->reserved)
        return broken(c, err, c->seq, "incomplete", AT "slot %" PRIu64 " was reserved and never built", WHO(q),
                      q->rung);
    for (uint64_t i = q->window.base; i < q->rung && c->nic_visible; i++) {
        const struct bell_slot *slot = bell_window_at(&q->window, i);
        if (slot && slot->bytes && !slot->delivered)
            return broken(c, err, slot->seq, "incomplete", AT "%" PRIu64 " was rung for and never delivered", WHO(q),
                          i);
    }
    if (c->nic_visible && q->built_bytes != q->delivered_bytes)
        return broken(c, err, c->seq, "bytes-conserved", AT "%" PRIu64 " bytes built, %" PRIu64 " delivered", WHO(q),
                      q->built_bytes, q->delivered_bytes);
    return BELL_OK;
}

static enum bell_status end_ring(struct bell_check *c, const struct queue *q, struct bell_error *err)
{
    for (uint64_t i = q->window.base; i < q->enqueued; i++) {
        const struct bell_slot *slot = bell_window_at(&q->window, i);
        if (!slot || !slot->filled)
            return broken(c, err, c->seq, "enqueue-contiguous", "rank %u ring %u: entry %" PRIu64 " was never written",
                          WHO(q), i);
        return broken(c, err, slot->seq, "incomplete", "rank %u ring %u: entry %" PRIu64 " was never done", WHO(q), i);
    }
    return BELL_OK;
}

enum bell_status bell_check_end(struct bell_check *c, bool whole, struct bell_error *err)
{
    enum bell_status s = BELL_OK;
    for (size_t i = 0; i < c->queues && whole && s == BELL_OK; i++)
        s = c->queue[i].space == SPACE_SQ ? end_sq(c, &c->queue[i], err) : end_ring(c, &c->queue[i], err);
    return s;
}

enum bell_status bell_check_begin(const struct bell_trace_header *header, struct bell_check **out,
                                  struct bell_error *err)
{
    struct bell_check *c = calloc(1, sizeof *c);
    if (!c) return bell_fail(err, BELL_NO_MEMORY, "checker: out of memory");
    c->depth = header->depth && header->depth < WINDOW_MAX ? header->depth : WINDOW_MAX;
    c->first_index = header->first_index;
    c->fenced = header->ordering[0] && strcmp(header->ordering, "none") != 0;
    c->nic_visible = strcmp(header->executor, "verbs") != 0 && strcmp(header->executor, "mlx5") != 0;
    c->dbrec_visible = strcmp(header->executor, "verbs") != 0;
    *out = c;
    return BELL_OK;
}

const char *bell_check_rule(const struct bell_check *c)
{
    return c->rule;
}

uint64_t bell_check_seq(const struct bell_check *c)
{
    return c->fail_seq;
}

void bell_check_free(struct bell_check *c)
{
    if (!c) return;
    for (size_t i = 0; i < c->queues; i++)
        free(c->queue[i].window.slot);
    free(c->queue);
    free(c->map.pair);
    free(c);
}

enum bell_status bell_check_file(const char *path, struct bell_error *err)
{
    struct bell_trace_reader *r = NULL;
    struct bell_trace_header header;
    struct bell_check *c = NULL;
    struct bell_event e;
    struct bell_error inner = { BELL_OK, "" };
    enum bell_status s = bell_trace_open(path, &r, &header, err);
    if (s != BELL_OK) return s;
    s = bell_check_begin(&header, &c, err);
    if (s != BELL_OK) {
        bell_trace_free(r);
        return s;
    }
    while (s == BELL_OK && (s = bell_trace_next(r, &e, err)) == BELL_OK)
        if ((s = bell_check_event(c, &e, &inner)) != BELL_OK)
            (void)bell_fail(err, s, "%s:%" PRIu64 ": %s", path, bell_trace_line(r), inner.text);
    if (s == BELL_EMPTY && (s = bell_check_end(c, bell_trace_is_whole(r), &inner)) != BELL_OK)
        (void)bell_fail(err, s, "%s: %s", path, inner.text);
    bell_check_free(c);
    bell_trace_free(r);
    return s;
}
