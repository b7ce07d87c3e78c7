/* SPDX-License-Identifier: Apache-2.0
 * What every port's struct bell_lane begins with: who this execution context is. */
#ifndef BELL_CORE_LANE_H
#define BELL_CORE_LANE_H

#include "core/event.h"

struct bell_lane_id {
    uint16_t rank;
    uint16_t lane;       /* in the rank: lanes, then workers, then NIC queues */
    uint16_t group_rank; /* 0 is the leader; one lane alone is a group of one */
    uint16_t group_size;
    enum bell_actor actor;
    uint64_t step_start_ps; /* end of the previous note: where the step that the next note closes began */
    uint64_t op_start_ps;   /* where the operation that a BELL_EVENT_OP note closes began */
    const char *waited_for; /* what the wait that failed waited for; NULL: none failed */
};

#endif
