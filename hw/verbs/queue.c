/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/verbs/queue.h"

#include <inttypes.h>
#include <string.h>

static enum bell_status fail(struct bell_verbs_queue *q, enum bell_status status, enum bell_verbs_fault fault, int code,
                             uint32_t count, const struct bell_verbs_done *done)
{
    if (__atomic_exchange_n(&q->is_faulty, 1, __ATOMIC_RELAXED)) return status;
    q->fault = fault;
    q->code = code;
    q->count = count;
    if (done) q->done = *done;
    return status;
}

/* Holds the end of the chain whose last write has this slot, from its posting to its completion. */
static uint64_t *mark_of(const struct bell_verbs_queue *q, uint64_t index)
{
    return &q->sq->span[index & (q->sq->depth - 1)];
}

/* Is this the completion of a chain under way?  Under a lock another lane may take a later completion first, retire
 * both, and the slot be in use again; then the count at the end must do (bell_verbs_settle). */
static bool is_expected(struct bell_lane *lane, struct bell_verbs_queue *q, bool alone, uint64_t index)
{
    uint64_t end = index + 1;
    if (__atomic_compare_exchange_n(mark_of(q, index), &end, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return true;
    return !alone && bell_port_load_acquire(lane, q->sq->words_memory, &q->sq->words->completed) > index;
}

enum bell_status bell_verbs_poll(struct bell_lane *lane, struct bell_verbs_queue *q, bool alone, uint64_t *index)
{
    struct bell_sq *sq = q->sq;
    struct bell_verbs_done done = { 0, 0, 0, "" };
    int n = q->backend->poll(q->queue, &done);
    if (n == 0) return BELL_EMPTY;
    if (n != 1) return fail(q, BELL_IO, BELL_VERBS_POLL, n, 0, &done);
    if (done.status) return fail(q, BELL_CQE_ERROR, BELL_VERBS_CQE, 0, 0, &done);
    if (!is_expected(lane, q, alone, done.index)) return fail(q, BELL_CORRUPT, BELL_VERBS_STRAY, 0, 0, &done);
    (void)__atomic_add_fetch(&q->completions, 1, __ATOMIC_RELAXED);
    lane->early_seq = 0;
    bell_sq_retire(lane, sq, alone, done.index + 1);
    bell_note(lane, BELL_EVENT_POLL, sq->queue, done.index + 1, 0, 0, BELL_SCOPE_NONE);
    *index = done.index;
    return BELL_OK;
}

struct quiet {
    struct bell_verbs_queue *q;
    uint64_t until;
    bool alone;
    enum bell_status status;
};

/* Unlike other predicates it does take a completion when there is one: libibverbs has no look without taking. */
static bool is_quiet(struct bell_lane *lane, void *context)
{
    struct quiet *w = context;
    const struct bell_sq *sq = w->q->sq;
    uint64_t index;
    if (bell_has_reached(bell_port_load_acquire(lane, sq->words_memory, &sq->words->completed), w->until)) return true;
    w->status = bell_verbs_poll(lane, w->q, w->alone, &index);
    return bell_is_failure(w->status) ||
           bell_has_reached(bell_port_load_acquire(lane, sq->words_memory, &sq->words->completed), w->until);
}

enum bell_status bell_verbs_quiet(struct bell_lane *lane, struct bell_verbs_queue *q, bool alone, uint64_t until)
{
    struct quiet w = { q, until, alone, BELL_OK };
    enum bell_status s = bell_port_wait(lane, q->sq->key, is_quiet, &w, "a CQE");
    return s != BELL_OK ? s : bell_is_failure(w.status) ? w.status : BELL_OK;
}

static enum bell_status reserve(struct bell_lane *lane, struct bell_verbs_queue *q, const struct bell_stack *stack,
                                uint32_t count, uint64_t *first)
{
    struct bell_sq *sq = q->sq;
    bool alone = stack->sharing == BELL_SHARING_OWNER;
    for (;;) {
        enum bell_status s = bell_sq_reserve(lane, sq, (enum bell_sharing)stack->sharing, count, first);
        if (s != BELL_FULL) return s;
        if (stack->flow == BELL_FLOW_NONE || count > sq->depth) return BELL_OVERFLOW;
        uint64_t reserved = bell_port_load(lane, sq->words_memory, &sq->words->reserved);
        s = bell_verbs_quiet(lane, q, alone, reserved + count - sq->depth);
        if (s != BELL_OK) return s;
    }
}

enum bell_status bell_verbs_put(struct bell_lane *lane, struct bell_verbs_queue *q, const struct bell_stack *stack,
                                bell_request_of *request_of, void *context, uint32_t count, uint64_t *end)
{
    struct bell_sq *sq = q->sq;
    struct bell_wqe_request scratch;
    uint64_t first = 0;
    uint32_t bad = 0;
    enum bell_status s = reserve(lane, q, stack, count, &first);
    if (s != BELL_OK) return s;
    for (uint32_t i = 0; i < count; i++) {
        const struct bell_wqe_request *r = request_of(context, i, &scratch);
        q->backend->build(q->queue, i, r, first + i, i + 1 == count);
        bell_note(lane, BELL_EVENT_BUILD, sq->queue, first + i, 1, r->bytes, BELL_SCOPE_NONE);
    }
    *end = first + count;
    bell_port_store(lane, sq->words_memory, mark_of(q, *end - 1), *end);
    (void)__atomic_add_fetch(&q->chains, 1, __ATOMIC_RELAXED);
    bell_soft_publishing(lane); /* its number is drawn before anybody can see what the call does */
    int code = q->backend->post(q->queue, count, &bad);
    if (code) {
        struct bell_verbs_done done = { first + bad, 0, 0, "" };
        return fail(q, BELL_IO, BELL_VERBS_POST, code, count, &done);
    }
    bell_note(lane, BELL_EVENT_DOORBELL, sq->queue, *end, 0, 0, BELL_SCOPE_SYS);
    return BELL_OK;
}

enum bell_status bell_verbs_settle(struct bell_verbs_queue *q, uint32_t rank, struct bell_error *err)
{
    struct bell_verbs_done done = { 0, 0, 0, "" };
    unsigned number = q->sq->queue;
    if (q->chains != q->completions)
        return bell_fail(err, BELL_CORRUPT,
                         "rank %u queue %u: %" PRIu64 " chains were posted and %" PRIu64
                         " CQEs came, expected one a chain",
                         rank, number, q->chains, q->completions);
    int n = q->backend->poll(q->queue, &done);
    if (n == 0) return BELL_OK;
    return bell_fail(err, BELL_CORRUPT,
                     "rank %u queue %u: one more CQE after the last chain, for the write at index %" PRIu64
                     " (%s), expected one a chain",
                     rank, number, done.index, done.status ? done.text : "success");
}

bool bell_verbs_explain(const struct bell_verbs_queue *q, uint32_t rank, enum bell_status status,
                        struct bell_error *err)
{
    const struct bell_verbs_done *d = &q->done;
    unsigned number = q->sq->queue;
    if (!q->is_faulty) return false;
    switch (q->fault) {
    case BELL_VERBS_POST:
        (void)bell_fail(err, status,
                        "rank %u queue %u: ibv_post_send refused the write at index %" PRIu64 " of a chain of %u: %s",
                        rank, number, d->index, q->count, strerror(q->code));
        return true;
    case BELL_VERBS_POLL:
        (void)bell_fail(err, status, "rank %u queue %u: ibv_poll_cq failed (%d)", rank, number, q->code);
        return true;
    case BELL_VERBS_CQE:
        (void)bell_fail(err, status,
                        "rank %u queue %u: CQE for the write at index %" PRIu64 ": %s (status %u, vendor code 0x%x)",
                        rank, number, d->index, d->text, d->status, d->vendor);
        return true;
    case BELL_VERBS_STRAY:
        (void)bell_fail(err, status,
                        "rank %u queue %u: CQE for the write at index %" PRIu64
                        ", which is not the last of a chain under way; expected one CQE a chain",
                        rank, number, d->index);
        return true;
    case BELL_VERBS_FINE:
        break;
    }
    return false;
}
