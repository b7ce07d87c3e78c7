/* SPDX-License-Identifier: Apache-2.0
 * The NIC in virtual time: the stages of core/nic.h, each at the time that the platform says. */
#ifndef BELL_SIM_NIC_H
#define BELL_SIM_NIC_H

#include "core/nic.h"

/* A rank's way to the wire, which all its queues share. */
struct bell_sim_port {
    uint64_t free_ps;
};

/* One queue as its NIC sees it. */
struct bell_sim_queue {
    struct bell_nicq *nicq;
    struct bell_lane lane;  /* stands for the NIC: actor, rank and number of its events */
    uint64_t ready_ps;      /* the last WQE fetched has its payload */
    struct bell_sim_port *port;
    uint64_t next_ps;       /* when it may hand its next WQE to the port */
    uint64_t last_done_ps;  /* and complete in order */
    uint64_t payload_read_ps, queue_read_ps, queue_write_ps, payload_write_ps;
};

/* Frees what bell_sim_ring has taken for WQEs under way. */
void bell_sim_free_work(struct bell_sim *sim);

/* One event that no lane notes: a stage of the machine.  Returns its seq, 0 when nothing is traced. */
uint64_t bell_sim_emit(struct bell_sim *sim, const struct bell_lane_id *who, enum bell_actor actor,
                       const struct bell_note *note, uint64_t start_ps, uint64_t end_ps, uint64_t cause);

#endif
