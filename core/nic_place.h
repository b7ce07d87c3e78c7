/* SPDX-License-Identifier: Apache-2.0
 * What a NIC does with memory once an operation is allowed: payload to the peer, answers of reads and atomics back.
 * A read or atomic may be cut in two: its answer is held by the NIC first and comes back later. */
#ifndef BELL_CORE_NIC_PLACE_H
#define BELL_CORE_NIC_PLACE_H

#include "core/port.h"

/* A decoded WQE on its way, with what became of it. */
struct bell_nic_work {
    struct bell_wqe_view view;
    uint64_t index;
    uint8_t *held;    /* where the answer (view.bytes) of a read or atomic waits; NULL: it goes back at once */
    uint8_t syndrome; /* 0 while all is well */
    uint8_t bytes[BELL_WQE_READ_BYTES_MAX] __attribute__((aligned(16))); /* the WQE, contiguous */
};

/* Does the operation end with something coming back? */
BELL_PURE bool bell_nic_has_answer(const struct bell_wqe_view *v)
{
    return v->bytes && (v->opcode == BELL_WQE_READ || bell_wqe_is_atomic(v->opcode));
}

/* Payload of all data segments to `to`, one after another. */
BELL_STEP void bell_nic_gather(struct bell_lane *lane, const struct bell_nic_work *work, uint8_t *to)
{
    const struct bell_wqe_view *v = &work->view;
    struct bell_wqe_piece p;
    if (v->pieces == 1) { /* nearly always */
        bell_port_write_bytes(lane, to, v->has_inline ? work->bytes + v->inline_offset
                                                      : (const uint8_t *)(uintptr_t)v->laddr, v->bytes);
        return;
    }
    for (uint32_t at = v->data_offset, end = v->ds * BELL_WQE_SEGMENT_BYTES; at < end;) {
        if (!bell_wqe_next_piece(work->bytes, &at, end, &p))
            return;
        if (p.bytes)
            bell_port_write_bytes(lane, to,
                                  p.is_inline ? work->bytes + p.inline_offset : (const uint8_t *)(uintptr_t)p.laddr,
                                  p.bytes);
        to += p.bytes;
    }
}

/* From `from` to the memory of all data segments, one after another. */
BELL_STEP void bell_nic_scatter(struct bell_lane *lane, const struct bell_nic_work *work, const uint8_t *from)
{
    const struct bell_wqe_view *v = &work->view;
    struct bell_wqe_piece p;
    for (uint32_t at = v->data_offset, end = v->ds * BELL_WQE_SEGMENT_BYTES; at < end;) {
        if (!bell_wqe_next_piece(work->bytes, &at, end, &p))
            return;
        if (p.bytes)
            bell_port_write_bytes(lane, (uint8_t *)(uintptr_t)p.laddr, from, p.bytes);
        from += p.bytes;
    }
}

/* Sum in fields: a set bit of `boundary` is the highest bit of a field, and no carry leaves it. */
BELL_PURE uint64_t bell_nic_add_in_fields(uint64_t a, uint64_t b, uint64_t boundary)
{
    return ((a & ~boundary) + (b & ~boundary)) ^ ((a ^ b) & boundary);
}

/* What an atomic leaves where it found `old`.  4 B operands are in the low half of each. */
BELL_PURE uint64_t bell_nic_atomic_next(const struct bell_wqe_view *v, uint64_t old)
{
    switch (v->opcode) {
    case BELL_WQE_ATOMIC_FA:
        return old + v->swap_or_add;
    case BELL_WQE_ATOMIC_CS:
        return old == v->compare ? v->swap_or_add : old;
    case BELL_WQE_MASKED_FA:
        return bell_nic_add_in_fields(old, v->swap_or_add, v->field_boundary);
    case BELL_WQE_MASKED_CS:
        return ((old ^ v->compare) & v->compare_mask) ? old : (old & ~v->swap_mask) | (v->swap_or_add & v->swap_mask);
    default:
        return old;
    }
}

/* An atomic on the 8 B word that holds the operand, values in the byte order of the host.  The answer is the old
 * operand. */
BELL_STEP void bell_nic_place_atomic(struct bell_lane *lane, struct bell_nic_work *work)
{
    const struct bell_wqe_view *v = &work->view;
    uint32_t offset = (uint32_t)(v->raddr & 7), half = 0;
    uint64_t *word = (uint64_t *)(uintptr_t)(v->raddr - offset), found, next, old;
    do {
        found = next = bell_port_load_acquire(lane, BELL_MEMORY_HOST, word);
        if (v->bytes == 8) {
            old = found;
            next = bell_nic_atomic_next(v, old);
        } else {
            memcpy(&half, (const uint8_t *)&found + offset, sizeof half);
            old = half;
            half = (uint32_t)bell_nic_atomic_next(v, old);
            memcpy((uint8_t *)&next + offset, &half, sizeof half);
        }
    } while (!bell_port_cas(lane, BELL_MEMORY_HOST, word, found, next));
    uint32_t low = (uint32_t)old;
    const uint8_t *answer = v->bytes == 8 ? (const uint8_t *)&old : (const uint8_t *)&low;
    if (work->held)
        memcpy(work->held, answer, v->bytes);
    else
        bell_port_write_bytes(lane, (uint8_t *)(uintptr_t)v->laddr, answer, v->bytes);
}

/* `target` is where a write or send goes, or where a read comes from. */
BELL_STEP void bell_nic_place(struct bell_lane *lane, struct bell_nic_work *work, uint8_t *target)
{
    const struct bell_wqe_view *v = &work->view;
    if (v->bytes == 0 || v->opcode == BELL_WQE_NOP || v->opcode == BELL_WQE_DUMP)
        return;
    if (bell_wqe_is_atomic(v->opcode))
        bell_nic_place_atomic(lane, work);
    else if (v->opcode != BELL_WQE_READ)
        bell_nic_gather(lane, work, target);
    else if (work->held)
        bell_port_read_bytes(lane, work->held, target, v->bytes);
    else
        bell_nic_scatter(lane, work, target);
}

/* The held answer of a read or atomic comes back. */
BELL_STEP void bell_nic_return(struct bell_lane *lane, struct bell_nic_work *work)
{
    if (work->held && !work->syndrome && bell_nic_has_answer(&work->view))
        bell_nic_scatter(lane, work, work->held);
}

#endif
