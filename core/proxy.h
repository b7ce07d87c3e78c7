/* SPDX-License-Identifier: Apache-2.0
 * The proxy ring: a GPU lane hands a descriptor to a CPU worker, which posts it and counts its completion.
 *
 * Baseline: a device atomic claims the slot, the worker's progress is read across PCIe each time, and the descriptor is
 * released at system scope.  Tuned: one producer a ring keeps the head itself, reads progress only when its cached
 * value says full, and one 16 B store carries descriptor and validity.
 *
 * Indices are free-running 64-bit numbers: head >= progress >= done, head - progress <= depth.  A slot is free again
 * when the worker has copied it (progress); done counts the descriptors whose payload has landed. */
#ifndef BELL_CORE_PROXY_H
#define BELL_CORE_PROXY_H

#include "core/sq.h"

#define BELL_ENTRY_BYTES_MAX 0x3fffffu
#define BELL_ENTRY_OFFSET_MAX 0xffffffffffu

/* Storage is the caller's.  cached and next belong to the producer. */
struct bell_ring {
    struct bell_entry *entry; /* depth entries in host memory, zero at first */
    uint64_t *head;           /* baseline: shared reservation, in GPU memory */
    uint64_t *progress;       /* in host memory; the worker writes it */
    uint64_t *done;           /* in done_memory; the worker writes it */
    uint64_t next;            /* tuned: head */
    uint64_t cached;          /* tuned: progress as last read */
    const void *key;          /* what the worker waits on */
    uint32_t depth, shift;    /* depth is 1 << shift */
    enum bell_memory done_memory;
    uint16_t ring; /* number in its rank, for events */
};

/* A put as the ring carries it: offsets into the producer's source and the peer's target region. */
struct bell_put {
    uint64_t value; /* with is_inline: up to 8 bytes of payload */
    uint64_t from;
    uint64_t to;
    uint32_t bytes;
    bool is_inline;
};

BELL_PURE struct bell_entry bell_entry_make(const struct bell_put *put, uint32_t parity)
{
    struct bell_entry e;
    e.lo = put->is_inline ? put->value : put->from;
    e.hi = (uint64_t)parity << 63 | (uint64_t)put->is_inline << 62
           | (uint64_t)(put->bytes & BELL_ENTRY_BYTES_MAX) << 40 | (put->to & BELL_ENTRY_OFFSET_MAX);
    return e;
}

BELL_PURE struct bell_put bell_entry_read(const struct bell_entry *entry)
{
    struct bell_put put;
    put.is_inline = (entry->hi >> 62 & 1) != 0;
    put.value = put.is_inline ? entry->lo : 0;
    put.from = put.is_inline ? 0 : entry->lo;
    put.bytes = (uint32_t)(entry->hi >> 40 & BELL_ENTRY_BYTES_MAX);
    put.to = entry->hi & BELL_ENTRY_OFFSET_MAX;
    return put;
}

/* Entries of the first lap carry 1, so that a zeroed ring is empty. */
BELL_PURE uint32_t bell_entry_parity(uint64_t index, uint32_t shift)
{
    return (uint32_t)(~(index >> shift) & 1);
}

struct bell_ring_wait {
    struct bell_ring *ring;
    uint64_t index;
};

/* Reads progress where it lives: in host memory. */
BELL_STEP bool bell_ring_has_room(struct bell_lane *lane, void *context)
{
    struct bell_ring_wait *w = (struct bell_ring_wait *)context;
    w->ring->cached = bell_port_load_acquire(lane, BELL_MEMORY_HOST, w->ring->progress);
    return w->index - w->ring->cached < w->ring->depth;
}

/* Claim a slot and wait until it is free.  BELL_OVERFLOW: full, and the stack's flow says not to wait. */
BELL_STEP enum bell_status bell_ring_claim(struct bell_lane *lane, struct bell_ring *ring,
                                           const struct bell_stack *stack, uint64_t *index)
{
    struct bell_ring_wait w = { ring, ring->next };
    bool tuned = stack->protocol == BELL_PROTOCOL_TUNED;
    if (!tuned)
        w.index = bell_port_fetch_add(lane, BELL_MEMORY_GPU, ring->head, 1);
    *index = w.index;
    ring->next = w.index + 1;
    if ((tuned && w.index - ring->cached < ring->depth) || bell_ring_has_room(lane, &w))
        return BELL_OK;
    if (stack->flow == BELL_FLOW_NONE)
        return BELL_OVERFLOW;
    return bell_port_wait(lane, ring->progress, bell_ring_has_room, &w, "room in the proxy ring");
}

/* Hand one put to the worker.  *index is its place in the ring: bell_ring_quiet(*index + 1) waits for its completion.
 * A pointer payload is released at system scope, because the NIC reads it after the worker saw the entry.
 * BELL_INVALID, and nothing claimed: the put does not fit a descriptor. */
BELL_STEP enum bell_status bell_ring_enqueue(struct bell_lane *lane, struct bell_ring *ring,
                                             const struct bell_stack *stack, const struct bell_put *put,
                                             uint64_t *index)
{
    if (put->bytes > BELL_ENTRY_BYTES_MAX || put->to > BELL_ENTRY_OFFSET_MAX
        || (put->is_inline && put->bytes > sizeof put->value))
        return BELL_INVALID;
    bell_port_work(lane, BELL_WORK_ENQUEUE);
    enum bell_status s = bell_ring_claim(lane, ring, stack, index);
    if (s != BELL_OK)
        return s;
    struct bell_entry e = bell_entry_make(put, bell_entry_parity(*index, ring->shift));
    bool plain = stack->protocol == BELL_PROTOCOL_TUNED && put->is_inline;
    enum bell_scope scope = plain ? BELL_SCOPE_NONE : BELL_SCOPE_SYS;
    bell_port_store_entry(lane, ring->entry + (*index & (ring->depth - 1)), &e, scope, ring->key);
    bell_note(lane, BELL_EVENT_ENQUEUE, ring->ring, *index, 1, put->bytes, scope);
    return BELL_OK;
}

/* Wait until every descriptor before `until` has completed. */
BELL_STEP enum bell_status bell_ring_quiet(struct bell_lane *lane, struct bell_ring *ring, uint64_t until)
{
    struct bell_word_wait w = { ring->done, until, ring->done_memory };
    enum bell_status s = bell_port_wait(lane, ring->done, bell_word_reached, &w, "the proxy's completion counter");
    if (s == BELL_OK)
        bell_note(lane, BELL_EVENT_FLAG, ring->ring, until, 0, 0, BELL_SCOPE_NONE);
    return s;
}

/* One CPU worker: a ring, a send queue of its own, and what is under way between them. */
struct bell_worker {
    struct bell_ring *ring;
    struct bell_sq *sq;
    const struct bell_stack *stack;
    const struct bell_region *source, *target; /* what the offsets of descriptors count from */
    struct bell_wqe_request *request;          /* stack->batch of them */
    uint64_t *value;                           /* stack->batch inline values */
    uint64_t *upto; /* sq->depth words: ring index after the chain whose last WQE starts at a slot */
    uint64_t taken, posted_end, completed; /* ring index; SQ index; ring index */
    uint64_t expected; /* descriptors until it ends */
    struct bell_completion completion;
};

/* Room in the send queue for a whole batch: a descriptor's WQE is one block, two behind a full address vector. */
BELL_STEP bool bell_worker_has_room(struct bell_lane *lane, const struct bell_worker *w)
{
    uint64_t done = bell_port_load(lane, w->sq->words_memory, &w->sq->words->completed);
    return w->posted_end - done + (uint64_t)w->stack->batch * (w->sq->is_dc ? 2 : 1) <= w->sq->depth;
}

BELL_STEP bool bell_worker_has_entry(struct bell_lane *lane, struct bell_worker *w, struct bell_entry *e)
{
    struct bell_ring *r = w->ring;
    return w->taken < w->expected
           && bell_port_load_entry(lane, r->entry + (w->taken & (r->depth - 1)), bell_entry_parity(w->taken, r->shift),
                                   e);
}

BELL_STEP void bell_worker_request(struct bell_worker *w, uint32_t i, const struct bell_put *put)
{
    struct bell_wqe_request *q = w->request + i;
    memset(q, 0, sizeof *q);
    w->value[i] = put->value;
    q->opcode = BELL_WQE_WRITE;
    q->raddr = w->target->address + put->to;
    q->rkey = w->target->key;
    q->laddr = w->source->address + put->from;
    q->lkey = w->source->key;
    q->inline_data = put->is_inline ? w->value + i : NULL;
    q->bytes = put->bytes;
}

/* Take up to a batch from the ring, free their slots, post them behind one doorbell.  BELL_EMPTY: nothing there. */
BELL_STEP enum bell_status bell_worker_post(struct bell_lane *lane, struct bell_worker *w)
{
    struct bell_entry e;
    uint32_t n = 0;
    while (n < w->stack->batch && bell_worker_has_entry(lane, w, &e)) {
        struct bell_put put = bell_entry_read(&e);
        bell_worker_request(w, n++, &put);
        bell_note(lane, BELL_EVENT_DEQUEUE, w->ring->ring, w->taken++, 1, put.bytes, BELL_SCOPE_NONE);
    }
    if (n == 0)
        return BELL_EMPTY;
    bell_port_store_release(lane, BELL_MEMORY_HOST, w->ring->progress, w->taken);
    bell_note(lane, BELL_EVENT_PROGRESS, w->ring->ring, w->taken, n, 0, BELL_SCOPE_NONE);
    enum bell_status s = bell_sq_put(lane, w->sq, w->stack, w->request, n, &w->posted_end, &w->completion);
    if (s == BELL_OK)
        w->upto[w->request[n - 1].index & (w->sq->depth - 1)] = w->taken;
    return s;
}

/* Consume one CQE and publish what it completes.  BELL_EMPTY: none there. */
BELL_STEP enum bell_status bell_worker_complete(struct bell_lane *lane, struct bell_worker *w)
{
    enum bell_status s = bell_sq_poll(lane, w->sq, BELL_SHARING_OWNER, &w->completion);
    if (s != BELL_OK)
        return s;
    w->completed = w->upto[w->completion.index & (w->sq->depth - 1)];
    bell_port_store_release(lane, w->ring->done_memory, w->ring->done, w->completed);
    return BELL_OK;
}

BELL_STEP bool bell_worker_has_news(struct bell_lane *lane, void *context)
{
    struct bell_worker *w = (struct bell_worker *)context;
    struct bell_entry e;
    struct bell_sq_news news;
    return (bell_worker_has_room(lane, w) && bell_worker_has_entry(lane, w, &e))
           || bell_sq_peek(lane, w->sq, true, &news);
}

/* Complete, or else post.  Room in the send queue is kept by completing before posting; bell_sq_put never has to poll
 * for it.  BELL_EMPTY: neither a CQE nor, with room for it, a descriptor. */
BELL_STEP enum bell_status bell_worker_turn(struct bell_lane *lane, struct bell_worker *w)
{
    enum bell_status s = bell_worker_complete(lane, w);
    return s == BELL_EMPTY && bell_worker_has_room(lane, w) ? bell_worker_post(lane, w) : s;
}

#endif
