/* SPDX-License-Identifier: Apache-2.0
 * The threads of a crew: one for each member whose role runs on the CPU.  Lanes may run elsewhere, on a GPU. */
#ifndef BELL_HW_SOFT_TEAM_H
#define BELL_HW_SOFT_TEAM_H

#include "hw/soft/crew.h"

#include <pthread.h>

struct bell_soft_team {
    struct bell_soft_crew crew;
    pthread_rwlock_t gate; /* closed until all threads are there */
    pthread_t *thread;
    size_t threads;        /* started */
    unsigned roles;        /* bit enum bell_soft_role: which run on threads */
    uint32_t busy __attribute__((aligned(64))); /* lanes and workers that are not done; those elsewhere count as one */
};

/* Open the crew, choose cores for the roles that run on threads.  On BELL_OK the caller calls bell_soft_team_close. */
enum bell_status bell_soft_team_open(struct bell_soft_team *team, const struct bell_run *run,
                                     const struct bell_result *result, unsigned roles,
                                     struct bell_error *err) BELL_MUST_USE;

/* Start the threads and the clock of the run; after a failure too, the caller joins. */
enum bell_status bell_soft_team_start(struct bell_soft_team *team, struct bell_error *err) BELL_MUST_USE;

/* The lanes that run elsewhere are done.  When everybody is, the NIC leaves. */
void bell_soft_team_lanes_done(struct bell_soft_team *team);

/* Wait until all threads have left, and report what the NIC could serve. */
void bell_soft_team_join(struct bell_soft_team *team, struct bell_result *result);

void bell_soft_team_close(struct bell_soft_team *team);

#endif
