/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BELL_SIM_GROUP_H
#define BELL_SIM_GROUP_H

#include "core/port.h"

struct bell_sim_group {
    uint64_t value[2]; /* of broadcasts, by turn: nobody is two turns behind */
    uint32_t arrived, turn;
};

#endif
