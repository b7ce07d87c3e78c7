/* SPDX-License-Identifier: Apache-2.0
 * What one send queue looks like to whoever posts to it, wherever the queue came from: a ConnectX through DevX
 * (hw/mlx5/queue.h), or a software NIC.  A poster on CPU or GPU needs nothing else.
 *
 * Addresses are those of whoever stores to them: a CPU's pointers, or a GPU's where a GPU posts. */
#ifndef BELL_HW_MLX5_BINDING_H
#define BELL_HW_MLX5_BINDING_H

#include "core/sq.h"

/* Who stores to the NIC's register. */
enum bell_ringer {
    BELL_RINGER_POSTER,
    BELL_RINGER_HOST /* a CPU thread, told by the queue's mailbox (core/forward.h); record and register are its own */
};

struct bell_binding {
    uint64_t wqe;      /* depth * 64 B, 64 B aligned */
    uint64_t cqe;      /* at least cq_depth * 64 B, 64 B aligned, filled as an unused CQ */
    uint64_t dbrec;    /* send word of the doorbell record, 4 B */
    uint64_t doorbell; /* the register */
    uint32_t blueflame_bytes; /* of the register that takes whole WQEs at `doorbell`; 0: 8 B stores only */
    uint32_t qpn;      /* 24 bits */
    uint32_t depth;    /* basic blocks: a power of two, at most BELL_CQE_DEPTH_MAX */
    uint32_t cq_depth; /* a power of two of at least depth, or 1: collapsed */
    enum bell_memory memory;       /* of WQEs and CQEs */
    enum bell_memory dbrec_memory; /* of the doorbell record: host memory when the host rings */
    enum bell_ringer ringer;
    bool is_dc;
    struct bell_av av; /* DC: the peer's target */
    struct bell_region source; /* own memory that puts leave from; its key is the lkey */
    struct bell_region target; /* the peer's memory that they go to; its key is the rkey */
};

/* Make *sq post to what the binding names.  Its index words, spans, mailbox, key and number stay as and where they are:
 * they belong to those who post, and no NIC sees them.  BELL_INVALID, and nothing changed: an address is missing or
 * unaligned, a number is out of range, or there is a mailbox exactly when the poster rings. */
BELL_PURE enum bell_status bell_binding_apply(const struct bell_binding *b, struct bell_sq *sq)
{
    uint32_t shift = 0;
    bool is_whole = b->depth && (b->depth & (b->depth - 1)) == 0 && b->cq_depth
                    && (b->cq_depth & (b->cq_depth - 1)) == 0;
    if (!is_whole || b->depth > BELL_CQE_DEPTH_MAX || (b->cq_depth > 1 && b->cq_depth < b->depth)
        || b->qpn > BELL_QPN_MAX || !b->wqe || b->wqe % BELL_WQE_BLOCK_BYTES || !b->cqe || b->cqe % BELL_CQE_BYTES
        || !b->dbrec || b->dbrec % 4 || !b->doorbell || b->doorbell % 8
        || (sq->mailbox != NULL) != (b->ringer == BELL_RINGER_HOST))
        return BELL_INVALID;
    while (1u << shift < b->cq_depth)
        shift++;
    sq->wqe = (uint8_t *)(uintptr_t)b->wqe;
    sq->cqe = (struct bell_cqe *)(uintptr_t)b->cqe;
    sq->dbrec = (uint32_t *)(uintptr_t)b->dbrec;
    sq->doorbell = (uint64_t *)(uintptr_t)b->doorbell;
    sq->depth = b->depth;
    sq->cq_depth = b->cq_depth;
    sq->cq_shift = shift;
    sq->qpn = b->qpn;
    sq->memory = b->memory;
    sq->is_dc = b->is_dc;
    sq->av = b->av;
    return BELL_OK;
}

#endif
