/* SPDX-License-Identifier: Apache-2.0
 * The NIC's side of a queue: take the producer index, fetch and decode WQEs, carry them out, produce CQEs.  The
 * software NIC runs the stages back to back, or each at its time; the simulator runs the same stages at the times its
 * model says.
 *
 * What it serves: NOP, WRITE, WRITE_IMM, SEND, SEND_IMM, READ, the atomics plain and masked, DUMP; gathered, scattered
 * or inline payload; WQEs of any size that wrap over the ring's end.  Its limits: WAIT completes with a local QP
 * operation error.  A SEND completes with "receiver not ready" unless the queue has a `receive` region, to whose start
 * the payload then goes; there is no receive queue, so nobody gets a responder CQE or the immediate.  Operations of a
 * queue are carried out in order, so every fence mode holds. */
#ifndef BELL_CORE_NIC_H
#define BELL_CORE_NIC_H

#include "core/nic_place.h"
#include "core/program.h"
#include "core/sq.h"

/* One fault to inject.  lost-doorbell: the first doorbell that covers the block `index` is not seen, a later one is.
 * error-cqe: the WQE that holds the block fails.  late-cqe: the CQE of that WQE, or the next after it, is written
 * delay_ps later; it is the executor that lets the time pass. */
struct bell_nic_fault {
    enum bell_fault kind;
    uint64_t index;
    uint64_t delay_ps;
    uint64_t lost;  /* producer index of the doorbell that was lost */
    bool has_lost;
    bool has_delayed;
};

/* A line of its own: neighbours may be served by different threads. */
struct bell_nicq {
    struct bell_sq *sq; /* geometry and memory of the queue; the NIC never touches sq->words */
    const struct bell_region *local;   /* what lkey opens */
    const struct bell_region *remote;  /* what rkey opens at the peer */
    const struct bell_region *receive; /* where sends go, its key unused; NULL: the peer has posted no receive */
    enum bell_nic_start start;
    uint64_t producer;   /* last producer index taken */
    uint64_t fetched;    /* next block to fetch */
    uint64_t cq_produced;
    uint64_t recover_ps; /* START_DOORBELL: how long the record may be ahead before it is believed; 0: for ever */
    uint64_t behind_ps;  /* since when it has been ahead; 0: it is not */
    uint32_t patience;   /* how often a WQE that is not there yet is read again; 0, as of a NIC: it fails at once */
    uint32_t stale;      /* WQEs that were not there when they were first read, with patience */
    struct bell_nic_fault fault;
    struct bell_completion first_error; /* when in_error; its CQE may be gone: flushes overwrite a collapsed one */
    bool in_error;       /* after the first error every WQE completes as flushed */
    bool is_silent;      /* fault: never answers */
} __attribute__((aligned(64)));

/* Move the producer by what a 16-bit index is ahead. */
BELL_STEP enum bell_status bell_nic_advance(struct bell_nicq *q, uint64_t ahead)
{
    if (q->producer + ahead - q->fetched > q->sq->depth)
        return BELL_INVALID;
    q->producer += ahead;
    q->behind_ps = 0;
    return BELL_OK;
}

/* A 16-bit index as blocks ahead of the producer; 0 when it repeats or is old. */
BELL_PURE uint64_t bell_nic_ahead(const struct bell_nicq *q, uint32_t index)
{
    uint16_t ahead = (uint16_t)(index - (uint32_t)q->producer);
    return ahead > 0x8000 ? 0 : ahead;
}

BELL_STEP bool bell_nic_loses(struct bell_nicq *q, uint64_t producer)
{
    struct bell_nic_fault *f = &q->fault;
    if (f->kind != BELL_FAULT_LOST_DOORBELL)
        return false;
    if (!f->has_lost && !bell_has_reached(q->producer, f->index + 1) && bell_has_reached(producer, f->index + 1)) {
        f->has_lost = true;
        f->lost = producer;
    }
    return f->has_lost && f->lost == producer;
}

/* Take a new producer index from where the queue's start says:
 *   DOORBELL  the doorbell, of either convention (bell_doorbell_producer); the record counts for bell_nic_recover only.
 *   DBREC     the doorbell record alone.  A NIC that polls cannot tell a repeated doorbell from none, so the record
 *             needs no doorbell to start it.
 *   DBRLESS   the doorbell; there is no record.
 *   MAILBOX   the doorbell word holds the 64-bit producer index, little-endian.
 * BELL_EMPTY: nothing new.  BELL_INVALID: the index claims more than a queue depth.  A doorbell that repeats or
 * precedes its record, and one for several WQEs, are tolerated. */
BELL_STEP enum bell_status bell_nic_take(struct bell_lane *lane, struct bell_nicq *q)
{
    uint64_t ahead = 0;
    if (q->is_silent)
        return BELL_EMPTY;
    switch (q->start) {
    case BELL_NIC_START_DOORBELL:
    case BELL_NIC_START_DBRLESS:
        ahead = bell_nic_ahead(q, bell_doorbell_producer(bell_port_load_doorbell(lane, q->sq->doorbell)));
        break;
    case BELL_NIC_START_DBREC:
        ahead = bell_nic_ahead(q, bell_dbrec_index(bell_port_load_dbrec(lane, q->sq->dbrec)));
        break;
    case BELL_NIC_START_MAILBOX:
        ahead = bell_le64(bell_port_load_doorbell(lane, q->sq->doorbell)) - q->producer;
        if ((int64_t)ahead < 0)
            ahead = 0;
        break;
    }
    if (ahead == 0 || bell_nic_loses(q, q->producer + ahead))
        return BELL_EMPTY;
    return bell_nic_advance(q, ahead);
}

/* A doorbell got lost: when the record has been ahead of the producer for recover_ps, take the index from it.  Whoever
 * drives the NIC calls it now and then while bell_nic_take finds nothing.  Results as there. */
BELL_STEP enum bell_status bell_nic_recover(struct bell_lane *lane, struct bell_nicq *q, uint64_t now_ps)
{
    if (q->is_silent || q->recover_ps == 0 || q->start != BELL_NIC_START_DOORBELL)
        return BELL_EMPTY;
    uint64_t ahead = bell_nic_ahead(q, bell_dbrec_index(bell_port_load_dbrec(lane, q->sq->dbrec)));
    if (ahead == 0 || q->behind_ps == 0) {
        q->behind_ps = ahead ? now_ps : 0;
        return BELL_EMPTY;
    }
    return now_ps - q->behind_ps < q->recover_ps ? BELL_EMPTY : bell_nic_advance(q, ahead);
}

/* Read and decode the WQE at work->index.  BELL_INVALID: it is malformed, or carries another index than its slot or
 * another QP number. */
BELL_STEP enum bell_status bell_nic_read(struct bell_lane *lane, const struct bell_nicq *q, struct bell_nic_work *work)
{
    bell_port_read_bytes(lane, work->bytes, bell_sq_block(q->sq, work->index), BELL_WQE_BLOCK_BYTES);
    enum bell_status s = bell_wqe_decode_ctrl(work->bytes, &work->view);
    uint32_t blocks = work->view.blocks;
    if (blocks == 0 || blocks > q->producer - work->index) {
        s = BELL_INVALID;
        blocks = 1;
    }
    for (uint32_t b = 1; s == BELL_OK && b < blocks; b++)
        bell_port_read_bytes(lane, work->bytes + b * BELL_WQE_BLOCK_BYTES, bell_sq_block(q->sq, work->index + b),
                             BELL_WQE_BLOCK_BYTES);
    if (s == BELL_OK)
        s = bell_wqe_decode(work->bytes, q->sq->is_dc, &work->view);
    work->view.blocks = blocks;
    bool is_its = work->view.index16 == (uint16_t)work->index && work->view.qpn == q->sq->qpn;
    return s == BELL_OK && is_its ? BELL_OK : BELL_INVALID;
}

/* Fetch and decode the next WQE.  BELL_EMPTY: all taken indices are fetched.  A WQE that bell_nic_read refuses, and
 * goes on refusing as often as the queue has patience, completes with an error CQE: it has a syndrome, not a status.  A
 * queue loses its patience once: what follows an error is flushed unread. */
BELL_STEP enum bell_status bell_nic_fetch(struct bell_lane *lane, struct bell_nicq *q, struct bell_nic_work *work)
{
    if (q->fetched == q->producer)
        return BELL_EMPTY;
    work->index = q->fetched;
    work->held = NULL;
    enum bell_status s = bell_nic_read(lane, q, work);
    uint32_t patience = q->in_error ? 0 : q->patience;
    q->stale += s != BELL_OK && patience;
    for (uint32_t i = 0; s != BELL_OK && i < patience; i++)
        s = bell_nic_read(lane, q, work);
    work->syndrome = s == BELL_OK ? 0 : BELL_SYNDROME_LOCAL_QP_OP;
    q->fetched += work->view.blocks;
    return BELL_OK;
}

BELL_STEP bool bell_region_holds(const struct bell_region *r, uint32_t key, uint64_t address, uint64_t size)
{
    return r && r->key == key && address >= r->address && size <= r->size_bytes
           && address - r->address <= r->size_bytes - size;
}

/* Does lkey open the local memory of every data segment? */
BELL_STEP bool bell_nic_may_touch_local(const struct bell_nicq *q, const struct bell_nic_work *work)
{
    const struct bell_wqe_view *v = &work->view;
    struct bell_wqe_piece p;
    if (v->pieces <= 1)
        return v->bytes == 0 || v->has_inline || bell_region_holds(q->local, v->lkey, v->laddr, v->bytes);
    for (uint32_t at = v->data_offset, end = v->ds * BELL_WQE_SEGMENT_BYTES; at < end;) {
        if (!bell_wqe_next_piece(work->bytes, &at, end, &p))
            return false;
        if (p.bytes && !p.is_inline && !bell_region_holds(q->local, p.lkey, p.laddr, p.bytes))
            return false;
    }
    return true;
}

BELL_STEP bool bell_nic_is_hit(const struct bell_nicq *q, enum bell_fault kind, const struct bell_nic_work *work)
{
    return q->fault.kind == kind && bell_has_reached(q->fault.index, work->index)
           && !bell_has_reached(q->fault.index, work->index + work->view.blocks);
}

/* What keeps the operation from being carried out: 0, or a syndrome. */
BELL_STEP uint8_t bell_nic_judge(const struct bell_nicq *q, const struct bell_nic_work *work)
{
    const struct bell_wqe_view *v = &work->view;
    if (q->in_error)
        return BELL_SYNDROME_FLUSHED;
    if (work->syndrome)
        return work->syndrome;
    if (bell_nic_is_hit(q, BELL_FAULT_ERROR_CQE, work))
        return BELL_SYNDROME_RETRY_EXCEEDED;
    if (v->opcode == BELL_WQE_NOP)
        return BELL_SYNDROME_NONE;
    if (!bell_nic_may_touch_local(q, work))
        return BELL_SYNDROME_LOCAL_PROTECTION;
    if (v->opcode == BELL_WQE_SEND || v->opcode == BELL_WQE_SEND_IMM) {
        if (!q->receive)
            return BELL_SYNDROME_RNR_EXCEEDED;
        return v->bytes > q->receive->size_bytes ? BELL_SYNDROME_REMOTE_INVALID : BELL_SYNDROME_NONE;
    }
    if (v->opcode == BELL_WQE_DUMP || v->bytes == 0)
        return BELL_SYNDROME_NONE;
    if (!bell_region_holds(q->remote, v->rkey, v->raddr, v->bytes))
        return BELL_SYNDROME_REMOTE_ACCESS;
    return bell_wqe_is_atomic(v->opcode) && v->raddr % v->bytes != 0 ? BELL_SYNDROME_REMOTE_INVALID
                                                                    : BELL_SYNDROME_NONE;
}

/* Carry the operation out: payload lands at the peer; what a read or an atomic gives back goes to local memory, or to
 * work->held for bell_nic_return.  Sets work->syndrome. */
BELL_STEP void bell_nic_execute(struct bell_lane *lane, struct bell_nicq *q, struct bell_nic_work *work)
{
    const struct bell_wqe_view *v = &work->view;
    work->syndrome = bell_nic_judge(q, work);
    if (work->syndrome) {
        if (!q->in_error) {
            q->first_error.index = work->index;
            q->first_error.syndrome = work->syndrome;
        }
        q->in_error = true;
        return;
    }
    bool is_send = v->opcode == BELL_WQE_SEND || v->opcode == BELL_WQE_SEND_IMM;
    bell_nic_place(lane, work, (uint8_t *)(uintptr_t)(is_send ? q->receive->address : v->raddr));
    bell_note(lane, BELL_EVENT_DELIVER, q->sq->queue, work->index, v->blocks, v->bytes, BELL_SCOPE_NONE);
}

/* Completion modes: 0 a CQE for an error only, 1 for the queue's first error only (mlx5's "on first error", taken to
 * leave out flushes: inferred from the name), 2 always, 3 always and an event, which nobody here waits for. */
BELL_STEP bool bell_nic_wants_cqe(const struct bell_nic_work *work)
{
    uint32_t mode = work->view.fm_ce_se & BELL_WQE_CE_MASK;
    if (mode == BELL_WQE_CE_ON_FIRST_ERROR)
        return work->syndrome && work->syndrome != BELL_SYNDROME_FLUSHED;
    return work->syndrome || mode >= BELL_WQE_CE_ALWAYS;
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

/* How much later than it could be the CQE of this WQE, which wants one, is to be written: a fault's doing, once. */
BELL_STEP uint64_t bell_nic_cqe_delay_ps(struct bell_nicq *q, const struct bell_nic_work *work)
{
    struct bell_nic_fault *f = &q->fault;
    if (f->kind != BELL_FAULT_LATE_CQE || f->has_delayed
        || !bell_has_reached(work->index + work->view.blocks, f->index + 1))
        return 0;
    f->has_delayed = true;
    return f->delay_ps;
}

#endif
