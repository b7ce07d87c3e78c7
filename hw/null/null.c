/* SPDX-License-Identifier: Apache-2.0
 * Executor "null": everything on one thread.  Lanes run one after another; workers and NIC do their turns while a lane
 * waits.  What it takes is the floor: the queue logic without hand-over between threads. */
#include "hw/soft/crew.h"

static void turn(void *context)
{
    struct bell_soft_crew *crew = context;
    for (size_t i = crew->world.lanes; i < crew->members; i++) {
        struct bell_soft_member *m = &crew->member[i];
        struct bell_share share = { NULL, NULL, 0 };
        if (m->role != BELL_SOFT_NIC) share = bell_world_share(&crew->world, 0, m->number);
        enum bell_status s =
            m->role == BELL_SOFT_NIC ? bell_nic_server_turn(m->server) : bell_share_turn(&m->lane, &share);
        if (bell_is_failure(s)) bell_soft_member_fail(m, s);
    }
}

static enum bell_status run_null(const struct bell_run *run, struct bell_result *result, struct bell_error *err)
{
    const struct bell_program *p = run->program;
    struct bell_soft_crew crew;
    if (p->pattern == BELL_PATTERN_ROUND_TRIP || p->pattern == BELL_PATTERN_PROBE)
        return bell_fail(err, BELL_UNSUPPORTED,
                         "pattern: on null one thread runs a lane after another, and a partner "
                         "could not answer; expected one-op or stream");
    if (run->stack->sharing == BELL_SHARING_COOPERATIVE && p->lanes > p->queues)
        return bell_fail(err, BELL_UNSUPPORTED,
                         "sharing: on null one thread runs a lane after another, and the %u lanes "
                         "of a group could not meet; expected one lane a queue",
                         p->lanes / p->queues);
    enum bell_status s = bell_soft_crew_open(&crew, run, result, err);
    if (s != BELL_OK) return s;
    crew.soft.idle = turn;
    crew.soft.idle_context = &crew;
    bell_soft_crew_begin(&crew);
    for (uint32_t i = 0; i < crew.world.lanes && !crew.soft.stop; i++) {
        s = bell_client_run(&crew.member[i].lane, crew.world.rank[0].client + i);
        if (bell_is_failure(s)) bell_soft_member_fail(&crew.member[i], s);
    }
    s = bell_soft_crew_finish(&crew, result, err);
    bell_soft_crew_close(&crew);
    return s;
}

static enum bell_status probe_null(struct bell_error *err)
{
    (void)err;
    return BELL_OK;
}

const struct bell_executor bell_null_executor = {
    "null", "one thread does the work of lanes, workers and NIC in turn: the floor", "monotonic", probe_null, run_null,
};
