/* SPDX-License-Identifier: Apache-2.0
 * Executor "soft": a thread for each lane and worker, and one or more for the NIC of each rank. */
#include "hw/soft/team.h"

#define ALL_ROLES (1u << BELL_SOFT_LANE | 1u << BELL_SOFT_WORKER | 1u << BELL_SOFT_NIC)

static enum bell_status run_soft(const struct bell_run *run, struct bell_result *result, struct bell_error *err)
{
    struct bell_soft_team team;
    if (run->machine && run->machine->nic == BELL_NIC_ON_GPU)
        return bell_fail(err, BELL_UNSUPPORTED, "machine.nic: executor soft has no GPU, expected auto or cpu");
    enum bell_status s = bell_soft_team_open(&team, run, result, ALL_ROLES, err);
    if (s != BELL_OK) return s;
    s = bell_soft_team_start(&team, err);
    bell_soft_team_join(&team, result);
    if (s == BELL_OK) s = bell_soft_crew_finish(&team.crew, result, err);
    bell_soft_team_close(&team);
    return s;
}

static enum bell_status probe_soft(struct bell_error *err)
{
    (void)err;
    return BELL_OK;
}

const struct bell_executor bell_soft_executor = {
    "soft", "CPU threads and a software NIC, in real time", "monotonic", probe_soft, run_soft,
};
