/* SPDX-License-Identifier: Apache-2.0
 * The host's part when the GPU cannot reach the doorbell register: a lane leaves its producer index in a mailbox, a CPU
 * thread reads it, writes the doorbell record and rings. */
#ifndef BELL_CORE_FORWARD_H
#define BELL_CORE_FORWARD_H

#include "core/sq.h"

/* One queue that is rung for. */
struct bell_forwarder {
    struct bell_sq *sq;
    uint64_t rung;     /* SQ index */
    uint64_t expected; /* SQ index at which there is nothing more to ring for */
};

BELL_STEP bool bell_forwarder_is_done(const struct bell_forwarder *f)
{
    return bell_has_reached(f->rung, f->expected);
}

BELL_STEP bool bell_forwarder_has_news(struct bell_lane *lane, const struct bell_forwarder *f)
{
    return bell_port_load_doorbell(lane, f->sq->mailbox) != f->rung;
}

/* Ring for what the mailbox says.  BELL_EMPTY: nothing new.  The mailbox was acquired, so the WQEs that it covers are
 * ahead of the record and the doorbell that follow; the record is a release store. */
BELL_STEP enum bell_status bell_forwarder_turn(struct bell_lane *lane, struct bell_forwarder *f)
{
    struct bell_sq *sq = f->sq;
    uint64_t end = bell_port_load_doorbell(lane, sq->mailbox);
    if (end == f->rung)
        return BELL_EMPTY;
    f->rung = end;
    bell_port_store_dbrec(lane, sq->memory, sq->dbrec, bell_dbrec_value(end), BELL_SCOPE_SYS);
    bell_note(lane, BELL_EVENT_DBREC, sq->queue, end, 0, 0, BELL_SCOPE_SYS);
    bell_port_store_doorbell(lane, sq->doorbell, bell_wqe_doorbell(sq->qpn, end), BELL_SCOPE_SYS, false);
    bell_note(lane, BELL_EVENT_DOORBELL, sq->queue, end, 0, 0, BELL_SCOPE_SYS);
    return BELL_OK;
}

#endif
