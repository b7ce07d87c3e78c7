/* SPDX-License-Identifier: Apache-2.0
 * One queue with its NIC and the memory both see, for tests that drive lane and NIC steps by hand in one thread.  The
 * remote peer is this process too: puts go from `from` to `to`. */
#ifndef BELL_TESTS_UNIT_RIG_H
#define BELL_TESTS_UNIT_RIG_H

#include "core/nic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define RIG_QPN 0xabcdeu
#define RIG_LKEY 0x1001u
#define RIG_RKEY 0x2002u
#define RIG_WORDS 512u
#define RIG_BOUND_PS 200000000u /* of a wait that must fail */

struct rig {
    struct bell_soft soft;
    struct bell_lane lane[2], nic;
    struct bell_stack stack;
    struct bell_sq_words words;
    struct bell_sq sq;
    struct bell_nicq nicq;
    struct bell_region source, target;
    struct bell_completion done;
    uint64_t doorbell;
    uint32_t dbrec;
    uint64_t from[RIG_WORDS], to[RIG_WORDS];
};

/* Zeroed and 64 B aligned; free() it. */
static inline void *rig_memory(size_t bytes)
{
    size_t whole = (bytes + 63) / 64 * 64;
    void *at = aligned_alloc(64, whole);
    assert_non_null(at);
    memset(at, 0, whole);
    return at;
}

static inline void rig_open(struct rig *r, uint32_t depth, enum bell_cq_kind cq, uint64_t first)
{
    memset(r, 0, sizeof *r);
    r->soft.bound_ps = RIG_BOUND_PS;
    r->soft.is_traced = true;
    r->lane[0].soft = r->lane[1].soft = r->nic.soft = &r->soft;
    r->lane[0].id.group_size = r->lane[1].id.group_size = 1;
    r->lane[1].id.lane = 1;
    bell_field_defaults(bell_stack_fields, &r->stack);
    r->stack.depth = depth;
    r->stack.cq = (int32_t)cq;
    r->sq.depth = depth;
    r->sq.cq_depth = cq == BELL_CQ_COLLAPSED ? 1 : depth < 2 ? 2 : depth;
    while (1u << r->sq.cq_shift < r->sq.cq_depth)
        r->sq.cq_shift++;
    r->sq.qpn = RIG_QPN;
    r->sq.wqe = rig_memory((size_t)depth * BELL_WQE_BLOCK_BYTES);
    r->sq.span = rig_memory(depth * sizeof *r->sq.span);
    r->sq.cqe = rig_memory(r->sq.cq_depth * sizeof *r->sq.cqe);
    for (uint32_t i = 0; i < r->sq.cq_depth; i++) {
        if (cq == BELL_CQ_COLLAPSED)
            bell_cqe_fill_collapsed(r->sq.cqe);
        else
            bell_cqe_fill_ring(r->sq.cqe + i);
    }
    r->sq.dbrec = &r->dbrec;
    r->sq.doorbell = &r->doorbell;
    r->sq.words = &r->words;
    r->sq.key = r->sq.cqe;
    r->words.reserved = r->words.ready = r->words.completed = first;
    r->dbrec = bell_dbrec_value(first);
    r->doorbell = bell_wqe_doorbell(RIG_QPN, first);
    r->source = (struct bell_region){ (uint64_t)(uintptr_t)r->from, sizeof r->from, RIG_LKEY };
    r->target = (struct bell_region){ (uint64_t)(uintptr_t)r->to, sizeof r->to, RIG_RKEY };
    r->nicq.sq = &r->sq;
    r->nicq.local = &r->source;
    r->nicq.remote = &r->target;
    r->nicq.producer = r->nicq.fetched = first;
    for (uint32_t i = 0; i < RIG_WORDS; i++)
        r->from[i] = 0x0101010101010101u * (i % 251 + 1);
}

static inline void rig_close(struct rig *r)
{
    free(r->sq.wqe);
    free(r->sq.span);
    free(r->sq.cqe);
    free(r->lane[0].event);
    free(r->lane[1].event);
    free(r->nic.event);
}

/* A write of `bytes` from the word `at` to the same place of the target. */
static inline struct bell_wqe_request rig_write(const struct rig *r, uint32_t bytes, uint32_t at, bool is_inline)
{
    struct bell_wqe_request q;
    memset(&q, 0, sizeof q);
    q.opcode = BELL_WQE_WRITE;
    q.raddr = (uint64_t)(uintptr_t)(r->to + at);
    q.rkey = RIG_RKEY;
    q.laddr = (uint64_t)(uintptr_t)(r->from + at);
    q.lkey = RIG_LKEY;
    q.inline_data = is_inline ? r->from + at : NULL;
    q.bytes = bytes;
    return q;
}

/* The NIC does all it can; gives the number of WQEs it carried out. */
static inline uint32_t rig_nic(struct rig *r)
{
    struct bell_nic_work work;
    uint32_t n = 0;
    enum bell_status s = bell_nic_take(&r->nic, &r->nicq);
    assert_false(bell_is_failure(s));
    for (; bell_nic_fetch(&r->nic, &r->nicq, &work) == BELL_OK; n++) {
        bell_nic_execute(&r->nic, &r->nicq, &work);
        bell_nic_complete(&r->nic, &r->nicq, &work);
    }
    return n;
}

/* Post from lane 0 and expect success; gives the end. */
static inline uint64_t rig_put(struct rig *r, struct bell_wqe_request *q, uint32_t count)
{
    uint64_t end = 0;
    assert_int_equal(bell_sq_put(&r->lane[0], &r->sq, &r->stack, q, count, &end, &r->done), BELL_OK);
    return end;
}

static inline enum bell_status rig_poll(struct rig *r)
{
    return bell_sq_poll(&r->lane[0], &r->sq, (enum bell_sharing)r->stack.sharing, &r->done);
}

#endif
