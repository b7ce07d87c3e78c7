/* SPDX-License-Identifier: Apache-2.0
 * The send queue: reserve, build, publish in order, doorbell record, doorbell, poll, retire, quiet.  Written once over
 * the port; see core/port.h for what each primitive promises.
 *
 * Indices count 64 B basic blocks, are free-running 64-bit numbers and only their low 16 bits reach the wire.
 * Always: reserved >= posted >= completed and reserved - completed <= depth; ready is stored after the doorbell, and
 * so follows posted. */
#ifndef BELL_CORE_SQ_H
#define BELL_CORE_SQ_H

#include "core/port.h"
#include "core/wqe_words.h"

/* Memory that a key opens.  Addresses are those of the process. */
struct bell_region {
    uint64_t address;
    uint64_t size_bytes;
    uint32_t key;
};

/* Words of one queue that those who post share; the NIC never sees them. */
struct bell_sq_words {
    uint64_t reserved;
    uint64_t ready;     /* posted in reservation order up to here; ORDERED and COOPERATIVE only */
    uint64_t completed; /* every block before it may be reused */
    uint64_t cq_index;  /* next CQE to consume; ring CQ only */
    uint64_t lock;      /* 0 free, 1 held; LOCKED only */
};

/* The storage is the caller's, so that it can be pinned, device or simulated memory. */
struct bell_sq {
    uint8_t *wqe;            /* depth * 64 B */
    uint64_t *span;          /* depth words: blocks of the WQE that starts at a slot */
    struct bell_cqe *cqe;    /* cq_depth entries, filled as an unused CQ */
    uint32_t *dbrec;         /* send word of the doorbell record */
    uint64_t *doorbell;      /* UAR doorbell register */
    uint64_t *mailbox;       /* in host memory: the producer index for the host to ring with; NULL: the poster rings */
    struct bell_sq_words *words;
    const void *key;         /* what a lane that waits for completions waits on */
    uint32_t depth;          /* power of two, at most 32768 */
    uint32_t cq_depth;       /* power of two >= depth, or 1 for a collapsed CQ */
    uint32_t cq_shift;       /* log2 of cq_depth */
    uint32_t qpn;
    uint16_t queue;          /* number in its rank, for events */
    enum bell_memory memory; /* where the NIC's part lives: WQEs, CQEs, doorbell record */
    enum bell_memory words_memory; /* where the posters' own part lives: words and span */
    bool is_dc;
    struct bell_av av;       /* DC only */
};

/* What a poll found. */
struct bell_completion {
    uint64_t index;    /* first block of the WQE that the CQE names */
    uint8_t syndrome;  /* 0, or why it failed (core/cqe.h) */
    uint8_t vendor;
};

BELL_STEP uint8_t *bell_sq_block(const struct bell_sq *sq, uint64_t index)
{
    return sq->wqe + (size_t)(index & (sq->depth - 1)) * BELL_WQE_BLOCK_BYTES;
}

/* Has a free-running number come to `target`?  Right across its wrap too. */
BELL_PURE bool bell_has_reached(uint64_t value, uint64_t target)
{
    return (int64_t)(value - target) >= 0;
}

/* Claim `blocks` consecutive blocks.  On BELL_OK *first is the free-running index.  BELL_FULL changes nothing: poll,
 * then retry.  OWNER and LOCKED: one lane at a time; otherwise any lane, lock-free. */
BELL_STEP enum bell_status bell_sq_reserve(struct bell_lane *lane, struct bell_sq *sq, enum bell_sharing sharing,
                                           uint32_t blocks, uint64_t *first)
{
    bool alone = sharing == BELL_SHARING_OWNER || sharing == BELL_SHARING_LOCKED;
    for (;;) {
        uint64_t at = bell_port_load(lane, sq->words_memory, &sq->words->reserved);
        /* Acquire: the retiring lane's reads of the old slot happened before ours is written. */
        uint64_t done = sharing == BELL_SHARING_OWNER
                            ? bell_port_load(lane, sq->words_memory, &sq->words->completed)
                            : bell_port_load_acquire(lane, sq->words_memory, &sq->words->completed);
        /* When completed is past `at`, which is older, other lanes have moved reserved on: the CAS fails, no FULL. */
        if (!bell_has_reached(done + sq->depth, at + blocks))
            return BELL_FULL;
        if (alone)
            bell_port_store(lane, sq->words_memory, &sq->words->reserved, at + blocks);
        else if (!bell_port_cas(lane, sq->words_memory, &sq->words->reserved, at, at + blocks))
            continue;
        *first = at;
        bell_note(lane, BELL_EVENT_RESERVE, sq->queue, at, blocks, 0, BELL_SCOPE_NONE);
        return BELL_OK;
    }
}

/* Fill in what a request takes from its queue.  BELL_INVALID: the request has no wire form. */
BELL_STEP enum bell_status bell_sq_address(const struct bell_sq *sq, struct bell_wqe_request *request)
{
    request->qpn = sq->qpn;
    request->is_dc = sq->is_dc;
    if (sq->is_dc)
        request->av = sq->av;
    return bell_wqe_check(request);
}

/* A WQE of any size, block by block.  Returns its blocks. */
BELL_STEP uint32_t bell_sq_write_long(struct bell_lane *lane, struct bell_sq *sq, uint64_t index,
                                      const struct bell_wqe_request *request)
{
    struct bell_wqe wqe;
    struct bell_wqe_request copy = *request; /* so that a GPU keeps the request itself in registers */
    uint32_t ds = bell_wqe_fill(&wqe, &copy), blocks = bell_wqe_blocks(ds);
    for (uint32_t b = 0; b < blocks; b++) {
        uint32_t left = ds * BELL_WQE_SEGMENT_BYTES - b * BELL_WQE_BLOCK_BYTES;
        bell_port_store_wqe(lane, sq->memory, bell_sq_block(sq, index + b), wqe.bytes + b * BELL_WQE_BLOCK_BYTES,
                            left < BELL_WQE_BLOCK_BYTES ? left : BELL_WQE_BLOCK_BYTES);
    }
    return blocks;
}

/* An RC write of whole words inline, segment by segment.  Returns its blocks. */
BELL_STEP uint32_t bell_sq_write_inline(struct bell_lane *lane, struct bell_sq *sq, uint64_t index,
                                        const struct bell_wqe_request *request)
{
    uint32_t ds = bell_wqe_ds(request);
    for (uint32_t s = 0; s < ds; s++) {
        struct bell_wqe_segment segment;
        bell_wqe_fill_segment(&segment, request, s, ds);
        bell_port_store_wqe(lane, sq->memory, bell_sq_block(sq, index + s / 4) + s % 4 * BELL_WQE_SEGMENT_BYTES,
                            (const uint8_t *)segment.word, sizeof segment);
    }
    return bell_wqe_blocks(ds);
}

/* Write the WQE of a request that bell_sq_address accepted into the slots it reserved.  Any lane, its own slots.
 * Returns its blocks. */
BELL_STEP uint32_t bell_sq_write(struct bell_lane *lane, struct bell_sq *sq, uint64_t index,
                                 struct bell_wqe_request *request)
{
    uint32_t blocks = 1;
    request->index = index;
    if (bell_wqe_is_short(request)) {
        struct bell_wqe_short brief;
        bell_wqe_fill_short(&brief, request);
        bell_port_store_wqe(lane, sq->memory, bell_sq_block(sq, index), (const uint8_t *)brief.words,
                            sizeof brief.words);
    } else if (bell_wqe_is_segmented(request)) {
        blocks = bell_sq_write_inline(lane, sq, index, request);
    } else {
        blocks = bell_sq_write_long(lane, sq, index, request);
    }
    bell_port_store(lane, sq->words_memory, &sq->span[index & (sq->depth - 1)], blocks);
    bell_note(lane, BELL_EVENT_BUILD, sq->queue, index, blocks, request->bytes, BELL_SCOPE_NONE);
    return blocks;
}

/* Both at once.  BELL_INVALID: the request cannot be built; the slots must then be given a NOP. */
BELL_STEP enum bell_status bell_sq_build(struct bell_lane *lane, struct bell_sq *sq, uint64_t index,
                                         struct bell_wqe_request *request)
{
    enum bell_status s = bell_sq_address(sq, request);
    if (s == BELL_OK)
        (void)bell_sq_write(lane, sq, index, request);
    return s;
}

struct bell_word_wait {
    const uint64_t *word;
    uint64_t value;
    enum bell_memory memory;
};

BELL_STEP bool bell_word_is_equal(struct bell_lane *lane, void *context)
{
    struct bell_word_wait *w = (struct bell_word_wait *)context;
    return bell_port_load_acquire(lane, w->memory, w->word) == w->value;
}

BELL_STEP bool bell_word_reached(struct bell_lane *lane, void *context)
{
    struct bell_word_wait *w = (struct bell_word_wait *)context;
    return bell_has_reached(bell_port_load_acquire(lane, w->memory, w->word), w->value);
}

BELL_STEP void bell_sq_fence(struct bell_lane *lane, struct bell_sq *sq, uint64_t index, enum bell_scope scope)
{
    if (scope == BELL_SCOPE_NONE)
        return;
    bell_port_fence(lane, scope);
    bell_note(lane, BELL_EVENT_FENCE, sq->queue, index, 0, 0, scope);
}

/* Doorbell record, then doorbell, with the ordering's fences and releases; or only the mailbox, when the host rings.
 * `end` is the producer index. */
BELL_STEP void bell_sq_ring(struct bell_lane *lane, struct bell_sq *sq, const struct bell_ordering_steps *steps,
                            uint64_t end, bool blueflame)
{
    bell_sq_fence(lane, sq, end, steps->nic);
    if (sq->mailbox) {
        bell_port_store_doorbell(lane, sq->mailbox, end, steps->doorbell_release, false);
        bell_note(lane, BELL_EVENT_MAILBOX, sq->queue, end, 0, 0, steps->doorbell_release);
        return;
    }
    bell_port_store_dbrec(lane, sq->memory, sq->dbrec, bell_dbrec_value(end), steps->dbrec_release);
    bell_note(lane, BELL_EVENT_DBREC, sq->queue, end, 0, 0, steps->dbrec_release);
    bell_sq_fence(lane, sq, end, steps->dbrec_fence);
    bell_port_store_doorbell(lane, sq->doorbell, bell_wqe_doorbell(sq->qpn, end), steps->doorbell_release, blueflame);
    bell_note(lane, BELL_EVENT_DOORBELL, sq->queue, end, 0, 0, steps->doorbell_release);
}

/* Make slots first .. end-1 ready and ring for them.  ORDERED and COOPERATIVE wait until everything reserved earlier
 * has been posted, so that doorbells never regress; the wait is bounded by the port (BELL_TIMEOUT). */
BELL_STEP enum bell_status bell_sq_post(struct bell_lane *lane, struct bell_sq *sq, const struct bell_stack *stack,
                                        uint64_t first, uint64_t end)
{
    struct bell_ordering_steps steps = bell_ordering_steps((enum bell_ordering)stack->ordering);
    bool in_order = stack->sharing == BELL_SHARING_ORDERED || stack->sharing == BELL_SHARING_COOPERATIVE;
    bell_sq_fence(lane, sq, end, steps.publish);
    if (in_order) {
        struct bell_word_wait turn = { &sq->words->ready, first, sq->words_memory };
        enum bell_status s = bell_port_wait(lane, &sq->words->ready, bell_word_is_equal, &turn,
                                            "the lanes ahead to post");
        if (s != BELL_OK)
            return s;
    }
    bool lone = end - first == 1 && stack->blueflame;
    bell_sq_ring(lane, sq, &steps, end, lone);
    if (in_order) {
        bell_port_store_release(lane, sq->words_memory, &sq->words->ready, end);
        bell_note(lane, BELL_EVENT_PUBLISH, sq->queue, end, 0, 0, BELL_SCOPE_NONE);
    }
    return BELL_OK;
}

/* Advance `completed` to at least `to`: any lane, lock-free. */
BELL_STEP void bell_sq_retire(struct bell_lane *lane, struct bell_sq *sq, bool alone, uint64_t to)
{
    if (alone) {
        bell_port_store(lane, sq->words_memory, &sq->words->completed, to);
        return;
    }
    for (;;) {
        uint64_t done = bell_port_load_acquire(lane, sq->words_memory, &sq->words->completed);
        if (bell_has_reached(done, to) || bell_port_cas(lane, sq->words_memory, &sq->words->completed, done, to))
            return;
    }
}

/* A CQE that is there: where it was found, the first block of its WQE as far as its counter says (collapsed CQ), and
 * its last 4 bytes. */
struct bell_sq_news {
    uint64_t position, first;
    uint32_t tail;
};

/* Is there a CQE to consume?  Loads only. */
BELL_STEP bool bell_sq_peek(struct bell_lane *lane, struct bell_sq *sq, bool alone, struct bell_sq_news *news)
{
    if (sq->cq_depth == 1) {
        uint64_t done = alone ? bell_port_load(lane, sq->words_memory, &sq->words->completed)
                              : bell_port_load_acquire(lane, sq->words_memory, &sq->words->completed);
        news->position = done;
        news->tail = bell_port_load_cqe_tail(lane, sq->memory, sq->cqe);
        return bell_cqe_tail_opcode(news->tail) != BELL_CQE_INVALID
               && bell_cqe_extend(bell_cqe_tail_counter(news->tail), done, sq->depth, &news->first);
    }
    news->position = alone ? bell_port_load(lane, sq->words_memory, &sq->words->cq_index)
                           : bell_port_load_acquire(lane, sq->words_memory, &sq->words->cq_index);
    news->tail = bell_port_load_cqe_tail(lane, sq->memory, sq->cqe + (news->position & (sq->cq_depth - 1)));
    return bell_cqe_is_valid(news->tail, news->position, sq->cq_shift);
}

/* Consume the CQE that was found and retire its WQE and every earlier one.  Results as of bell_sq_poll. */
BELL_STEP enum bell_status bell_sq_consume(struct bell_lane *lane, struct bell_sq *sq, enum bell_sharing sharing,
                                           const struct bell_sq_news *news, struct bell_completion *out)
{
    bool alone = sharing == BELL_SHARING_OWNER, is_ring = sq->cq_depth > 1, is_known = true;
    uint64_t position = news->position, first = news->first;
    if (is_ring) {
        uint64_t done = alone ? bell_port_load(lane, sq->words_memory, &sq->words->completed)
                              : bell_port_load_acquire(lane, sq->words_memory, &sq->words->completed);
        first = bell_cqe_tail_counter(news->tail);
        is_known = bell_cqe_extend(bell_cqe_tail_counter(news->tail), done, sq->depth, &first);
    }
    uint32_t opcode = bell_cqe_tail_opcode(news->tail);
    if (opcode == BELL_CQE_REQ_ERR || opcode == BELL_CQE_RESP_ERR) {
        const struct bell_cqe *cqe = sq->cqe + (is_ring ? position & (sq->cq_depth - 1) : 0);
        uint8_t end[8]; /* of a collapsed entry perhaps a later CQE's: flushes overwrite it */
        size_t at = offsetof(struct bell_cqe, timestamp_high_be); /* whose low half an error's syndromes are */
        bell_port_read_bytes(lane, end, (const uint8_t *)cqe + at, sizeof end);
        out->index = first;
        out->syndrome = end[7];
        out->vendor = end[6];
        return BELL_CQE_ERROR;
    }
    if (is_ring && alone)
        bell_port_store(lane, sq->words_memory, &sq->words->cq_index, position + 1);
    else if (is_ring && !bell_port_cas(lane, sq->words_memory, &sq->words->cq_index, position, position + 1))
        return BELL_EMPTY;
    if (!is_known)
        return BELL_CORRUPT;
    bell_port_work(lane, BELL_WORK_COMPLETE);
    /* Another lane may have retired past this WQE and its slot be in use again, but then not beyond `completed`. */
    uint64_t to = first + bell_port_load(lane, sq->words_memory, &sq->span[first & (sq->depth - 1)]);
    bell_sq_retire(lane, sq, alone, to);
    out->index = first;
    out->syndrome = out->vendor = 0;
    bell_note(lane, BELL_EVENT_POLL, sq->queue, to, 0, 0, BELL_SCOPE_NONE);
    return BELL_OK;
}

/* Consume one CQE and retire its WQE and every earlier one.  BELL_EMPTY: none there (or another lane took it).
 * BELL_CQE_ERROR: *out says which WQE and why; the CQE stays.  BELL_CORRUPT: a CQE for no WQE under way.  OWNER: one
 * lane at a time; otherwise any lane, lock-free. */
BELL_STEP enum bell_status bell_sq_poll(struct bell_lane *lane, struct bell_sq *sq, enum bell_sharing sharing,
                                        struct bell_completion *out)
{
    struct bell_sq_news news = { 0, 0, 0 };
    if (!bell_sq_peek(lane, sq, sharing == BELL_SHARING_OWNER, &news))
        return BELL_EMPTY;
    return bell_sq_consume(lane, sq, sharing, &news, out);
}

struct bell_sq_wait {
    struct bell_sq *sq;
    uint64_t until;
    struct bell_sq_news news; /* when has_news */
    bool alone, has_news;
};

BELL_STEP bool bell_sq_has_news(struct bell_lane *lane, void *context)
{
    struct bell_sq_wait *w = (struct bell_sq_wait *)context;
    w->has_news = false;
    if (!w->alone
        && bell_has_reached(bell_port_load_acquire(lane, w->sq->words_memory, &w->sq->words->completed), w->until))
        return true;
    w->has_news = bell_sq_peek(lane, w->sq, w->alone, &w->news);
    return w->has_news;
}

/* Wait until every block before `until` has completed, polling on the way (quiet on one queue).  Bounded by the port:
 * BELL_TIMEOUT.  BELL_CQE_ERROR: *out holds index and syndrome. */
BELL_STEP enum bell_status bell_sq_quiet(struct bell_lane *lane, struct bell_sq *sq, enum bell_sharing sharing,
                                         uint64_t until, struct bell_completion *out)
{
    struct bell_sq_wait w = { sq, until, { 0, 0, 0 }, sharing == BELL_SHARING_OWNER, false };
    for (;;) {
        uint64_t done = w.alone ? bell_port_load(lane, sq->words_memory, &sq->words->completed)
                                : bell_port_load_acquire(lane, sq->words_memory, &sq->words->completed);
        if (bell_has_reached(done, until))
            return BELL_OK;
        enum bell_status s = bell_port_wait(lane, sq->key, bell_sq_has_news, &w, "a CQE");
        if (s == BELL_OK && w.has_news)
            s = bell_sq_consume(lane, sq, sharing, &w.news, out);
        if (bell_is_failure(s))
            return s;
    }
}

/* Reserve, polling for room when the queue is full and the stack allows it. */
BELL_STEP enum bell_status bell_sq_reserve_or_poll(struct bell_lane *lane, struct bell_sq *sq,
                                                   const struct bell_stack *stack, uint32_t blocks, uint64_t *first,
                                                   struct bell_completion *out)
{
    enum bell_sharing sharing = (enum bell_sharing)stack->sharing;
    for (;;) {
        enum bell_status s = bell_sq_reserve(lane, sq, sharing, blocks, first);
        if (s != BELL_FULL)
            return s;
        if (stack->flow == BELL_FLOW_NONE || blocks > sq->depth)
            return BELL_OVERFLOW;
        /* Room for `blocks` needs completed to pass what is reserved now less a depth. */
        uint64_t reserved = bell_port_load(lane, sq->words_memory, &sq->words->reserved);
        s = bell_sq_quiet(lane, sq, sharing, reserved + blocks - sq->depth, out);
        if (bell_is_failure(s))
            return s;
    }
}

/* Where the requests of one post come from: number `i` of them, in *scratch or wherever it is kept.  Keys, addresses
 * and opcode are the giver's. */
typedef struct bell_wqe_request *bell_request_of(void *context, uint32_t i, struct bell_wqe_request *scratch);

/* Reserve `blocks`, write `count` accepted requests there, the last one signaled, and ring once. */
BELL_STEP enum bell_status bell_sq_put_accepted(struct bell_lane *lane, struct bell_sq *sq,
                                                const struct bell_stack *stack, bell_request_of *request_of,
                                                void *context, uint32_t count, uint32_t blocks, uint64_t *end,
                                                struct bell_completion *out)
{
    struct bell_wqe_request scratch;
    uint64_t first = 0;
    enum bell_status s = bell_sq_reserve_or_poll(lane, sq, stack, blocks, &first, out);
    if (s != BELL_OK)
        return s;
    uint64_t at = first;
    for (uint32_t i = 0; i < count; i++) {
        struct bell_wqe_request *r = request_of(context, i, &scratch);
        (void)bell_sq_address(sq, r);
        r->fm_ce_se = i + 1 == count ? BELL_WQE_CE_ALWAYS : 0;
        bell_port_work(lane, BELL_WORK_POST);
        at += bell_sq_write(lane, sq, at, r);
    }
    *end = at;
    return bell_sq_post(lane, sq, stack, first, at);
}

/* Post `count` requests behind one doorbell, the last one signaled.  *end becomes the index after the last block:
 * bell_sq_quiet(end) waits for all of them.  BELL_INVALID: one of them cannot be built; nothing was reserved.  With
 * `alike` the caller promises that they differ in addresses and contents only, and just the first is looked at. */
BELL_STEP enum bell_status bell_sq_put_each(struct bell_lane *lane, struct bell_sq *sq, const struct bell_stack *stack,
                                            bell_request_of *request_of, void *context, uint32_t count, bool alike,
                                            uint64_t *end, struct bell_completion *out)
{
    struct bell_wqe_request scratch;
    uint32_t blocks = 0;
    for (uint32_t i = 0; i < (alike ? 1 : count); i++) {
        struct bell_wqe_request *r = request_of(context, i, &scratch);
        if (bell_sq_address(sq, r) != BELL_OK)
            return BELL_INVALID;
        blocks += bell_wqe_blocks(bell_wqe_ds(r));
    }
    return bell_sq_put_accepted(lane, sq, stack, request_of, context, count, alike ? blocks * count : blocks, end, out);
}

BELL_STEP struct bell_wqe_request *bell_request_of_array(void *context, uint32_t i, struct bell_wqe_request *scratch)
{
    (void)scratch;
    return (struct bell_wqe_request *)context + i;
}

/* The same for an array of requests, whose index is filled in. */
BELL_STEP enum bell_status bell_sq_put(struct bell_lane *lane, struct bell_sq *sq, const struct bell_stack *stack,
                                       struct bell_wqe_request *requests, uint32_t count, uint64_t *end,
                                       struct bell_completion *out)
{
    return bell_sq_put_each(lane, sq, stack, bell_request_of_array, requests, count, false, end, out);
}

BELL_STEP bool bell_lock_is_free(struct bell_lane *lane, void *context)
{
    struct bell_sq *sq = (struct bell_sq *)context;
    return bell_port_load_acquire(lane, sq->words_memory, &sq->words->lock) == 0;
}

/* The same under the queue's lock: any lane.  Acquire on taking it, release on leaving it. */
BELL_STEP enum bell_status bell_sq_put_locked(struct bell_lane *lane, struct bell_sq *sq,
                                              const struct bell_stack *stack, bell_request_of *request_of,
                                              void *context, uint32_t count, bool alike, uint64_t *end,
                                              struct bell_completion *out)
{
    while (!bell_port_cas(lane, sq->words_memory, &sq->words->lock, 0, 1)) {
        enum bell_status w = bell_port_wait(lane, &sq->words->lock, bell_lock_is_free, sq, "the queue's lock");
        if (w != BELL_OK)
            return w;
    }
    enum bell_status s = bell_sq_put_each(lane, sq, stack, request_of, context, count, alike, end, out);
    bell_port_store_release(lane, sq->words_memory, &sq->words->lock, 0);
    return s;
}

/* A group posts one request a lane: the leader reserves for all, every lane builds its own WQE, the leader posts once.
 * All lanes of the group call it together; requests must have equal size and a wire form (a lane that leaves with
 * BELL_INVALID lets the others wait to their bound).  Waits for groups ahead. */
BELL_STEP enum bell_status bell_sq_put_group(struct bell_lane *lane, struct bell_sq *sq, const struct bell_stack *stack,
                                             struct bell_wqe_request *request, uint64_t *end,
                                             struct bell_completion *out)
{
    uint32_t size = lane->id.group_size;
    request->fm_ce_se = lane->id.group_rank + 1u == size ? BELL_WQE_CE_ALWAYS : 0;
    if (bell_sq_address(sq, request) != BELL_OK)
        return BELL_INVALID;
    uint32_t blocks = bell_wqe_blocks(bell_wqe_ds(request));
    uint64_t first = 0, status = BELL_OK;
    if (bell_port_is_leader(lane))
        status = bell_sq_reserve_or_poll(lane, sq, stack, blocks * size, &first, out);
    enum bell_status met = bell_port_broadcast(lane, &status);
    if (met == BELL_OK && status == BELL_OK)
        met = bell_port_broadcast(lane, &first);
    if (met != BELL_OK || status != BELL_OK)
        return met != BELL_OK ? met : (enum bell_status)status;
    bell_port_work(lane, BELL_WORK_POST);
    (void)bell_sq_write(lane, sq, first + (uint64_t)blocks * lane->id.group_rank, request);
    met = bell_port_group_sync(lane); /* every lane's WQE stores before the leader's fence and doorbell */
    if (met != BELL_OK)
        return met;
    *end = first + (uint64_t)blocks * size;
    if (bell_port_is_leader(lane))
        status = bell_sq_post(lane, sq, stack, first, *end);
    met = bell_port_broadcast(lane, &status);
    return met != BELL_OK ? met : (enum bell_status)status;
}

#endif
