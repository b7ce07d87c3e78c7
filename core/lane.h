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
};

#endif
