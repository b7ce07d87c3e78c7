/* SPDX-License-Identifier: Apache-2.0
 * What each step costs: pure functions from a platform to picoseconds. */
#ifndef BELL_MODELS_COST_H
#define BELL_MODELS_COST_H

#include "core/stack.h"
#include "models/platform.h"

BELL_EXTERN_C_BEGIN

/* Every duration of a platform at its clocks, so that a simulator does not compute them again and again. */
struct bell_costs {
    uint64_t fence_ps[BELL_SCOPES]; /* by scope; a release store pays the same on top of its store */
    uint64_t drain_ps, host_drain_ps, store_ps, segment_ps, atomic_ps;
    uint64_t post_ps[BELL_ACTORS], enqueue_ps, complete_ps[BELL_ACTORS];
    uint64_t load_ps[BELL_ACTORS][2];   /* by reader and enum bell_memory */
    uint64_t posted_ps[BELL_ACTORS][2]; /* a store becomes visible there, by writer */
    uint64_t doorbell_ps[BELL_ACTORS];  /* a doorbell reaches the NIC, by writer */
    uint64_t nic_read_ps[2], nic_write_ps[2], cqe_ps[2];
    uint64_t queue_wqe_ps, port_wqe_ps; /* the least time between two WQEs: of a queue, of a port */
    uint64_t schedule_ps, transmit_ps, ack_ps, dc_ps, stall_ps;
    double stall_chance, ps_per_byte;
};

void bell_costs_of(const struct bell_platform *platform, struct bell_costs *out);

/* Issue of one piece of a WQE: `first` is the number of 16 B segments of the WQE that were stored before it. */
BELL_PURE uint64_t bell_cost_wqe_ps(const struct bell_costs *c, uint32_t first, uint32_t segments)
{
    uint32_t last = first + segments, past = last > 3 ? last - (first > 3 ? first : 3) : 0;
    return segments * c->store_ps + past * c->segment_ps;
}

BELL_PURE uint64_t bell_cost_bytes_ps(const struct bell_costs *c, uint32_t bytes)
{
    return (uint64_t)(bytes * c->ps_per_byte + 0.5);
}

BELL_EXTERN_C_END

#endif
