/* SPDX-License-Identifier: Apache-2.0
 * Lanes that act together.  They meet at the time of the last one;
 * the shuffles that do it cost nothing beside the rest. */
#include "sim/group.h"

static bool has_turned(struct bell_lane *lane, void *context)
{
    (void)context;
    return lane->group->turn != lane->group_turn;
}

enum bell_status bell_port_group_sync(struct bell_lane *lane)
{
    struct bell_sim_group *g = lane->group;
    if (!g)
        return BELL_OK;
    bell_sim_catch_up(lane, lane->now_ps);
    lane->group_turn = g->turn;
    if (++g->arrived < lane->id.group_size)
        return bell_port_wait(lane, g, has_turned, NULL, "the lanes of its group");
    g->arrived = 0;
    g->turn++;
    bell_sim_wake(lane->sim, g, lane->now_ps, lane->last_seq);
    return BELL_OK;
}

enum bell_status bell_port_broadcast(struct bell_lane *lane, uint64_t *value)
{
    struct bell_sim_group *g = lane->group;
    if (!g)
        return BELL_OK;
    uint32_t turn = g->turn % 2;
    if (lane->id.group_rank == 0)
        g->value[turn] = *value;
    enum bell_status s = bell_port_group_sync(lane);
    *value = g->value[turn];
    return s;
}
