/* SPDX-License-Identifier: Apache-2.0
 * From the events of each lane to one trace.  The lanes' numbers are a valid order but for two things, which are put
 * right here.  While sorting, `cause` says who comes first of two equal numbers. */
#include "hw/soft/crew.h"

#include <stdlib.h>

/* What a slot was last used for: the event `seq` about index `next` - 1.  end: past the WQE that was delivered from it
 * last, when it was its first slot. */
struct mark {
    uint64_t next, seq, end;
};

struct queue {
    uint64_t rung; /* last producer index */
    struct mark *slot;  /* depth of them */
    struct mark *entry; /* ring_depth of them; proxy only */
};

static int compare(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_index(const void *a, const void *b)
{
    const struct bell_event *x = *(struct bell_event *const *)a, *y = *(struct bell_event *const *)b;
    int order = compare(x->rank, y->rank);
    order = order ? order : compare(x->queue, y->queue);
    return order ? order : compare(x->index, y->index);
}

static int by_seq(const void *a, const void *b)
{
    const struct bell_event *x = *(struct bell_event *const *)a, *y = *(struct bell_event *const *)b;
    int order = compare(x->seq, y->seq);
    return order ? order : compare(x->cause, y->cause);
}

/* Lanes that reserve in one queue draw their numbers before the swap that decides who is first.  The later one takes
 * its predecessor's number, and stands behind it: whatever it did next was numbered after it saw the swap. */
static void raise_reserves(struct bell_event **event, size_t count)
{
    qsort(event, count, sizeof *event, by_index);
    for (size_t i = 1; i < count; i++) {
        const struct bell_event *before = event[i - 1];
        if (before->rank == event[i]->rank && before->queue == event[i]->queue && event[i]->seq <= before->seq) {
            event[i]->seq = before->seq;
            event[i]->cause = before->cause + 1;
        }
    }
}

/* A NIC that starts from the record may deliver before the doorbell is stored.  Nobody waits for that doorbell, so it,
 * and a fence between the two, may stand directly behind the record. */
static void join_doorbells(struct bell_lane *lane)
{
    uint64_t seq = 0, place = 0;
    for (size_t i = 0; i < lane->events; i++) {
        struct bell_event *e = &lane->event[i];
        if (e->kind == BELL_EVENT_DBREC) {
            seq = e->seq;
            place = 0;
        } else if (seq && (e->kind == BELL_EVENT_FENCE || e->kind == BELL_EVENT_DOORBELL)) {
            e->seq = seq;
            e->cause = ++place;
            if (e->kind == BELL_EVENT_DOORBELL) seq = 0;
        }
    }
}

static void put_mark(struct mark *mark, uint32_t depth, uint64_t index, uint64_t seq)
{
    mark[index & (depth - 1)].next = index + 1;
    mark[index & (depth - 1)].seq = seq;
}

static uint64_t seq_of(const struct mark *mark, uint32_t depth, uint64_t index)
{
    const struct mark *m = &mark[index & (depth - 1)];
    return m->next == index + 1 ? m->seq : 0;
}

/* What started the work of an event of another actor: for a delivery the NIC's start, for a poll the CQE, for a worker
 * the entry.  0: unknown, or the event before it on its own lane. */
static uint64_t cause_of(struct queue *q, const struct bell_stack *stack, const struct bell_event *e)
{
    bool by_record = stack->nic_start == BELL_NIC_START_DBREC;
    switch (e->kind) {
    case BELL_EVENT_DBREC:
    case BELL_EVENT_DOORBELL:
        for (; by_record == (e->kind == BELL_EVENT_DBREC) && q->rung < e->index; q->rung++)
            put_mark(q->slot, stack->depth, q->rung, e->seq);
        return 0;
    case BELL_EVENT_DELIVER:
        q->slot[e->index & (stack->depth - 1)].end = e->index + e->count;
        return seq_of(q->slot, stack->depth, e->index);
    case BELL_EVENT_CQE:
        if (e->count == 0) put_mark(q->slot, stack->depth, q->slot[e->index & (stack->depth - 1)].end - 1, e->seq);
        return 0;
    case BELL_EVENT_POLL:
        return seq_of(q->slot, stack->depth, e->index - 1);
    case BELL_EVENT_ENQUEUE:
        put_mark(q->entry, stack->ring_depth, e->index, e->seq);
        return 0;
    case BELL_EVENT_DEQUEUE:
        return seq_of(q->entry, stack->ring_depth, e->index);
    default:
        return 0;
    }
}

static struct queue *make_queues(const struct bell_world *w)
{
    uint32_t rings = w->workers ? w->stack->ring_depth : 0;
    size_t count = (size_t)BELL_RANKS * w->queues, marks = (size_t)w->stack->depth + rings;
    struct queue *q = malloc(count * sizeof *q);
    struct mark *mark = calloc(count * marks, sizeof *mark);
    if (!q || !mark) {
        free(q);
        free(mark);
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        q[i].rung = w->program->first_index;
        q[i].slot = mark + i * marks;
        q[i].entry = q[i].slot + w->stack->depth;
    }
    return q;
}

static enum bell_status send(const struct bell_world *w, struct bell_event **event, size_t count,
                             const struct bell_sink *sink, uint64_t *sent, struct bell_error *err)
{
    struct queue *queues = make_queues(w);
    if (!queues) return bell_fail(err, BELL_NO_MEMORY, "out of memory: causes of %zu events", count);
    enum bell_status s = BELL_OK;
    for (size_t i = 0; i < count && s == BELL_OK; i++) {
        struct bell_event *e = event[i];
        e->seq = i + 1;
        e->cause = cause_of(&queues[(size_t)e->rank * w->queues + e->queue], w->stack, e);
        s = sink->write(sink->context, e, err);
        *sent += s == BELL_OK;
    }
    free(queues->slot);
    free(queues);
    return s;
}

/* The events of `kind`, or all of them for BELL_EVENT_KINDS; returns how many. */
static size_t collect(const struct bell_soft_crew *crew, enum bell_event_kind kind, struct bell_event **out)
{
    size_t count = 0;
    for (size_t m = 0; m < crew->members; m++) {
        const struct bell_lane *lane = &crew->member[m].lane;
        for (size_t i = 0; i < lane->events; i++)
            if (kind == BELL_EVENT_KINDS || lane->event[i].kind == kind) out[count++] = &lane->event[i];
    }
    return count;
}

enum bell_status bell_soft_merge(struct bell_soft_crew *crew, const struct bell_sink *sink, uint64_t *sent,
                                 struct bell_error *err)
{
    size_t count = 0;
    bool is_whole = true;
    for (size_t m = 0; m < crew->members; m++) {
        struct bell_lane *lane = &crew->member[m].lane;
        count += lane->events;
        is_whole = is_whole && !lane->is_out_of_memory;
        if (crew->world.stack->nic_start == BELL_NIC_START_DBREC) join_doorbells(lane);
    }
    struct bell_event **event = malloc((count + 1) * sizeof *event);
    if (!event || !is_whole) {
        free(event);
        return bell_fail(err, BELL_NO_MEMORY, "out of memory after %zu events", count);
    }
    raise_reserves(event, collect(crew, BELL_EVENT_RESERVE, event));
    (void)collect(crew, BELL_EVENT_KINDS, event);
    qsort(event, count, sizeof *event, by_seq);
    enum bell_status s = send(&crew->world, event, count, sink, sent, err);
    free(event);
    return s;
}
