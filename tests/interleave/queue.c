/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/interleave/queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define QUEUE_QPN 0x4711u
#define QUEUE_KEY 0x77u
#define QUEUE_REGION_BYTES 4096u

static void open_words(struct queue *q, const struct bell_stack *stack)
{
    struct explore *x = q->explore;
    bool is_alone = stack->sharing == BELL_SHARING_OWNER, is_locked = stack->sharing == BELL_SHARING_LOCKED;
    bool by_doorbell = stack->nic_start == BELL_NIC_START_DOORBELL;
    enum explore_kind mine = is_alone ? EXPLORE_DATA : EXPLORE_WORD;
    uint64_t *words = explore_place(x, "reserved", 8, 1, is_alone || is_locked ? EXPLORE_DATA : EXPLORE_WORD);
    (void)explore_place(x, "ready", 8, 1, EXPLORE_SERIAL);
    (void)explore_place(x, "completed", 8, 1, mine);
    (void)explore_place(x, "cq_index", 8, 1, mine);
    (void)explore_place(x, "lock", 8, 1, EXPLORE_WORD);
    q->sq.words = (struct bell_sq_words *)(void *)words;
    q->sq.words->reserved = q->sq.words->ready = q->sq.words->completed = q->start;
    /* What the NIC does not look at is stored to between two steps, and still in order. */
    q->sq.doorbell = explore_place(x, "doorbell", 8, 1, by_doorbell ? EXPLORE_SERIAL : EXPLORE_DATA);
    q->sq.dbrec = explore_place(x, "dbrec", 8, 1, by_doorbell ? EXPLORE_DATA : EXPLORE_SERIAL);
    *q->sq.doorbell = bell_wqe_doorbell(QUEUE_QPN, q->start);
    *q->sq.dbrec = bell_dbrec_value(q->start);
}

void queue_open(struct queue *q, struct explore *x, const struct bell_stack *stack, uint64_t start, uint32_t puts,
                uint32_t bytes, bool has_equal_spans)
{
    struct bell_sq *sq = &q->sq;
    memset(q, 0, sizeof *q);
    q->explore = x;
    q->stack = *stack;
    q->start = start;
    q->targets = puts;
    q->target_bytes = bytes;
    sq->depth = stack->depth;
    sq->cq_depth = stack->cq == BELL_CQ_COLLAPSED ? 1 : stack->depth;
    sq->cq_shift = (uint32_t)__builtin_ctz(sq->cq_depth);
    sq->qpn = QUEUE_QPN;
    open_words(q, stack);
    sq->wqe = explore_place(x, "wqe", BELL_WQE_BLOCK_BYTES, sq->depth, EXPLORE_DATA);
    sq->cqe = explore_place(x, "cqe", sizeof *sq->cqe, sq->cq_depth, EXPLORE_WORD);
    sq->span = explore_place(x, "span", 8, sq->depth,
                             stack->sharing == BELL_SHARING_OWNER ? EXPLORE_DATA
                             : has_equal_spans                    ? EXPLORE_FIXED
                                                                  : EXPLORE_FOLLOW);
    sq->key = &sq->words->completed; /* as a world has it */
    for (uint32_t i = 0; i < sq->cq_depth; i++) {
        if (stack->cq == BELL_CQ_COLLAPSED)
            bell_cqe_fill_collapsed(sq->cqe);
        else
            bell_cqe_fill_ring(sq->cqe + i);
    }
    q->target = explore_place(x, "target", bytes, puts, EXPLORE_DATA);
    q->delivered = explore_place(x, "delivered", 8, puts, EXPLORE_GHOST);
    q->executed = explore_place(x, "executed", 8, 1, EXPLORE_GHOST);
    *q->executed = start;
    q->region.address = (uint64_t)(uintptr_t)q->sq.words; /* the first place; the detector knows the others */
    q->region.size_bytes = QUEUE_REGION_BYTES;
    q->region.key = QUEUE_KEY;
}

/* ---- the NIC ---- */

static bool has_doorbell(struct bell_lane *lane, void *context)
{
    const struct bell_nicq *q = context;
    uint32_t low = q->start == BELL_NIC_START_DOORBELL
                       ? bell_doorbell_index(bell_port_load_doorbell(lane, q->sq->doorbell))
                       : bell_dbrec_index(bell_port_load_dbrec(lane, q->sq->dbrec));
    return (uint16_t)low != (uint16_t)q->producer;
}

/* Carry out all that is fetched at once: what the NIC reads early, it must be allowed to read. */
static void serve(struct bell_lane *lane, struct queue *q, struct bell_nicq *nicq)
{
    struct bell_nic_work work;
    while (bell_nic_fetch(lane, nicq, &work) == BELL_OK) {
        explore_claim(lane, work.syndrome == 0, "WQE with wrong index, wrong QP number or malformed");
        bell_nic_execute(lane, nicq, &work);
        explore_claim(lane, work.syndrome == 0, "WQE that cannot be carried out");
        uint64_t put = (work.view.raddr - (uint64_t)(uintptr_t)q->target) / q->target_bytes;
        explore_claim(lane, put < q->targets, "WQE with a wrong address");
        explore_ghost(lane, q->delivered + put, q->delivered[put] + 1);
        explore_ghost(lane, q->executed, nicq->fetched);
        bell_nic_complete(lane, nicq, &work);
    }
}

void queue_nic(struct bell_lane *lane, void *context)
{
    struct queue *q = context;
    struct bell_nicq nicq;
    memset(&nicq, 0, sizeof nicq);
    nicq.sq = &q->sq;
    nicq.local = nicq.remote = &q->region;
    nicq.start = (enum bell_nic_start)q->stack.nic_start;
    nicq.producer = nicq.fetched = q->start;
    while (nicq.fetched < q->start + q->blocks) {
        (void)bell_port_wait(lane, q->sq.doorbell, has_doorbell, &nicq, "a doorbell");
        explore_claim(lane, bell_nic_take(lane, &nicq) == BELL_OK, "the producer index jumps or falls back");
        if (q->checks_dbrec) {
            uint64_t record;
            explore_read(lane, &record, q->sq.dbrec, sizeof record);
            explore_claim(lane, (uint16_t)bell_dbrec_index((uint32_t)record) == (uint16_t)nicq.producer,
                          "the doorbell record is not that of the doorbell");
        }
        serve(lane, q, &nicq);
        explore_mark(lane, &nicq.fetched, 1, nicq.cq_produced);
    }
}

/* ---- what always holds ---- */

static bool falls_back(const struct explore *x, const uint64_t *word)
{
    return *word < *(const uint64_t *)explore_before(x, word);
}

const char *queue_check(struct explore *x, void *context)
{
    const struct queue *q = context;
    const struct bell_sq_words *w = q->sq.words;
    const uint64_t *old_doorbell = explore_before(x, q->sq.doorbell);
    const uint32_t *old_dbrec = explore_before(x, q->sq.dbrec);
    uint16_t rung = (uint16_t)bell_doorbell_index(*q->sq.doorbell);
    uint16_t recorded = (uint16_t)bell_dbrec_index(*q->sq.dbrec);
    if (falls_back(x, &w->reserved) || falls_back(x, &w->ready) || falls_back(x, &w->completed) ||
        falls_back(x, &w->cq_index))
        return "an index falls back";
    if (w->completed > w->reserved || w->reserved - w->completed > q->sq.depth)
        return "more is reserved than the queue holds";
    if (w->completed > *q->executed) return "something is retired that the NIC has not carried out";
    if (w->ready > w->reserved) return "something is ready that nobody reserved";
    if ((uint16_t)(rung - (uint16_t)bell_doorbell_index(*old_doorbell)) > q->sq.depth ||
        (uint16_t)(recorded - (uint16_t)bell_dbrec_index(*old_dbrec)) > q->sq.depth)
        return "doorbell or doorbell record falls back";
    if ((uint16_t)(w->reserved - rung) > q->sq.depth || (uint16_t)(w->reserved - recorded) > q->sq.depth)
        return "rung for something that nobody reserved";
    return NULL;
}

const char *queue_at_end(struct explore *x, void *context)
{
    const struct queue *q = context;
    const struct bell_sq_words *w = q->sq.words;
    uint64_t end = q->start + q->blocks;
    bool in_order = q->stack.sharing == BELL_SHARING_ORDERED || q->stack.sharing == BELL_SHARING_COOPERATIVE;
    (void)x;
    for (uint32_t i = 0; i < q->targets; i++)
        if (q->delivered[i] != 1) return "a put did not arrive exactly once";
    if (w->reserved != end || w->completed != end || *q->executed != end || (in_order && w->ready != end))
        return "indices do not meet at the end";
    if (bell_doorbell_index(*q->sq.doorbell) != (end & 0xffff) || bell_dbrec_index(*q->sq.dbrec) != (end & 0xffff))
        return "the last doorbell does not cover everything";
    return w->lock ? "the lock is still held" : NULL;
}

bool queue_explore(struct explore *x, const char *name, const char *(*check)(struct explore *x, void *context),
                   const char *(*at_end)(struct explore *x, void *context), void *context,
                   const struct queue_counts *counts)
{
    struct explore_result r;
    char text[EXPLORE_COUNT_TEXT];
    bool holds = explore_run(x, check, at_end, context, &r);
    if (!holds) print_error("%s: %s\n", name, explore_failure(x));
    explore_free(x);
    if (!holds) return false;
    const char *schedules = explore_count_text(r.schedules, text);
    printf("%-46s %s schedules of up to %u steps: %llu states, %llu steps\n", name, schedules, r.longest,
           (unsigned long long)r.states, (unsigned long long)r.steps);
    if (r.states == counts->states && r.steps == counts->steps && strcmp(schedules, counts->schedules) == 0)
        return true;
    print_error("%s: expected %s schedules, %llu states, %llu steps\n", name, counts->schedules,
                (unsigned long long)counts->states, (unsigned long long)counts->steps);
    return false;
}
