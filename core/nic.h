/* SPDX-License-Identifier: Apache-2.0
 * The NIC's side of a queue: take the producer index, fetch and decode WQEs, place payload, produce CQEs.  The software
 * NIC runs the stages back to back; the simulator runs the same stages at the times its model says. */
#ifndef BELL_CORE_NIC_H
#define BELL_CORE_NIC_H

#include "core/port.h"
#include "core/sq.h"

/* A line of its own: neighbours may be served by different threads. */
struct bell_nicq {
    struct bell_sq *sq; /* geometry and memory of the queue; the NIC never touches sq->words */
    const struct bell_region *local;  /* what lkey opens */
    const struct bell_region *remote; /* what rkey opens at the peer */
    enum bell_nic_start start;
    uint64_t producer;   /* last producer index taken */
    uint64_t fetched;    /* next block to fetch */
    uint64_t cq_produced;
    bool in_error;       /* after the first error every WQE completes as flushed */
    bool is_silent;      /* fault: never answers */
} __attribute__((aligned(64)));

/* A decoded WQE on its way, with what became of it. */
struct bell_nic_work {
    struct bell_wqe_view view;
    struct bell_wqe wqe; /* its bytes, contiguous; inline payload is read from here */
    uint64_t index;
    uint8_t syndrome;    /* 0 while all is well */
};

/* Take a new producer index from doorbell or doorbell record.  BELL_EMPTY: nothing new.  BELL_INVALID: the index claims
 * more than a queue depth. A doorbell that repeats or precedes its record is tolerated. */
BELL_STEP enum bell_status bell_nic_take(struct bell_lane *lane, struct bell_nicq *q)
{
    uint16_t low;
    if (q->is_silent)
        return BELL_EMPTY;
    if (q->start == BELL_NIC_START_DOORBELL)
        low = (uint16_t)bell_doorbell_index(bell_port_load_doorbell(lane, q->sq->doorbell));
    else
        low = (uint16_t)bell_dbrec_index(bell_port_load_dbrec(lane, q->sq->dbrec));
    uint16_t ahead = (uint16_t)(low - (uint16_t)q->producer);
    if (ahead == 0 || ahead > 0x8000)
        return BELL_EMPTY;
    if (q->producer + ahead - q->fetched > q->sq->depth)
        return BELL_INVALID;
    q->producer += ahead;
    return BELL_OK;
}

/* Fetch and decode the next WQE.  BELL_EMPTY: all taken indices are fetched.  A WQE that is malformed, carries another
 * index than its slot or another QP number gets a syndrome, not a status: it completes with an error CQE. */
BELL_STEP enum bell_status bell_nic_fetch(struct bell_lane *lane, struct bell_nicq *q, struct bell_nic_work *work)
{
    if (q->fetched == q->producer)
        return BELL_EMPTY;
    work->index = q->fetched;
    work->syndrome = 0;
    bell_port_read_bytes(lane, work->wqe.bytes, bell_sq_block(q->sq, work->index), BELL_WQE_BLOCK_BYTES);
    enum bell_status s = bell_wqe_decode_ctrl(work->wqe.bytes, &work->view);
    uint32_t blocks = s == BELL_OK ? work->view.blocks : 1;
    if (s == BELL_OK && blocks > q->producer - work->index)
        s = BELL_INVALID;
    if (s != BELL_OK)
        blocks = 1;
    for (uint32_t b = 1; b < blocks; b++)
        bell_port_read_bytes(lane, work->wqe.bytes + b * BELL_WQE_BLOCK_BYTES, bell_sq_block(q->sq, work->index + b),
                             BELL_WQE_BLOCK_BYTES);
    if (s == BELL_OK)
        s = bell_wqe_decode(work->wqe.bytes, q->sq->is_dc, &work->view);
    if (s != BELL_OK || work->view.index16 != (uint16_t)work->index || work->view.qpn != q->sq->qpn)
        work->syndrome = BELL_SYNDROME_LOCAL_QP_OP;
    work->view.blocks = blocks;
    q->fetched += blocks;
    return BELL_OK;
}

BELL_STEP bool bell_region_holds(const struct bell_region *r, uint32_t key, uint64_t address, uint64_t size)
{
    return r && r->key == key && address >= r->address && size <= r->size_bytes
           && address - r->address <= r->size_bytes - size;
}

BELL_STEP void bell_nic_place_atomic(struct bell_lane *lane, struct bell_nic_work *work, uint64_t *target)
{
    const struct bell_wqe_view *v = &work->view;
    uint64_t old = bell_port_load_acquire(lane, BELL_MEMORY_HOST, target), next;
    do {
        next = v->opcode == BELL_WQE_ATOMIC_FA ? old + v->swap_or_add : old == v->compare ? v->swap_or_add : old;
        if (bell_port_cas(lane, BELL_MEMORY_HOST, target, old, next))
            break;
        old = bell_port_load_acquire(lane, BELL_MEMORY_HOST, target);
    } while (true);
    bell_port_write_bytes(lane, (uint8_t *)(uintptr_t)v->laddr, (const uint8_t *)&old, sizeof old);
}

/* What keeps the operation from being carried out: 0, or a syndrome. */
BELL_STEP uint8_t bell_nic_judge(const struct bell_nicq *q, const struct bell_nic_work *work)
{
    const struct bell_wqe_view *v = &work->view;
    uint32_t op = v->opcode, size = v->bytes;
    bool plain_atomic = op == BELL_WQE_ATOMIC_FA || op == BELL_WQE_ATOMIC_CS;
    if (q->in_error)
        return BELL_SYNDROME_FLUSHED;
    if (work->syndrome || op == BELL_WQE_NOP)
        return work->syndrome;
    if (!plain_atomic && op != BELL_WQE_WRITE && op != BELL_WQE_WRITE_IMM && op != BELL_WQE_READ)
        return BELL_SYNDROME_LOCAL_QP_OP;
    if (size && !v->has_inline && !bell_region_holds(q->local, v->lkey, v->laddr, size))
        return BELL_SYNDROME_LOCAL_PROTECTION;
    if (size && !bell_region_holds(q->remote, v->rkey, v->raddr, size))
        return BELL_SYNDROME_REMOTE_ACCESS;
    return plain_atomic && v->raddr % 8 != 0 ? BELL_SYNDROME_REMOTE_INVALID : BELL_SYNDROME_NONE;
}

/* Carry the operation out: payload lands at the peer (or comes back, for a read or an atomic).  Sets work->syndrome. */
BELL_STEP void bell_nic_execute(struct bell_lane *lane, struct bell_nicq *q, struct bell_nic_work *work)
{
    const struct bell_wqe_view *v = &work->view;
    work->syndrome = bell_nic_judge(q, work);
    if (work->syndrome) {
        q->in_error = true;
        return;
    }
    uint8_t *remote = (uint8_t *)(uintptr_t)v->raddr, *local = (uint8_t *)(uintptr_t)v->laddr;
    if (v->bytes && bell_wqe_is_atomic(v->opcode))
        bell_nic_place_atomic(lane, work, (uint64_t *)(void *)remote);
    else if (v->bytes && v->opcode == BELL_WQE_READ)
        bell_port_write_bytes(lane, local, remote, v->bytes);
    else if (v->bytes)
        bell_port_write_bytes(lane, remote, v->has_inline ? work->wqe.bytes + v->inline_offset : local, v->bytes);
    bell_note(lane, BELL_EVENT_DELIVER, q->sq->queue, work->index, v->blocks, v->bytes, BELL_SCOPE_NONE);
}

BELL_STEP bool bell_nic_wants_cqe(const struct bell_nic_work *work)
{
    return work->syndrome || (work->view.fm_ce_se & BELL_WQE_CE_MASK) >= BELL_WQE_CE_ALWAYS;
}

/* Write the CQE if the WQE asked for one or failed.  Ring CQ: owner bit by lap, overrun is the consumer's promise
 * (oi = 1); collapsed: always entry 0. */
BELL_STEP void bell_nic_complete(struct bell_lane *lane, struct bell_nicq *q, struct bell_nic_work *work)
{
    if (!bell_nic_wants_cqe(work))
        return;
    struct bell_sq *sq = q->sq;
    uint64_t n = q->cq_produced++;
    uint32_t owner = sq->cq_depth > 1 ? (uint32_t)(n >> sq->cq_shift) & 1 : 0;
    struct bell_cqe cqe;
    if (work->syndrome) {
        bell_cqe_build_error(&cqe, work->syndrome, 0, sq->qpn, work->view.opcode, (uint16_t)work->index, owner);
    } else {
        bell_cqe_build_ok(&cqe, work->view.opcode, sq->qpn, (uint16_t)work->index, work->view.bytes, owner);
    }
    bell_port_store_cqe(lane, sq->cqe + (sq->cq_depth > 1 ? n & (sq->cq_depth - 1) : 0), &cqe, sq->key);
    bell_note(lane, BELL_EVENT_CQE, sq->queue, work->index, work->syndrome, 0, BELL_SCOPE_NONE);
}

#endif
