/* SPDX-License-Identifier: Apache-2.0
 * The threads of a verbs run, one a lane and one a worker of the ranks that are here, and what the main thread does
 * meanwhile: with the other rank in another process, it listens to how that one fares. */
#ifndef BELL_HW_VERBS_TEAM_H
#define BELL_HW_VERBS_TEAM_H

#include "hw/soft/crew.h"
#include "hw/verbs/link.h"

#include <pthread.h>

struct bell_verbs_team {
    struct bell_soft_crew crew; /* first: its members know it */
    struct bell_verbs_link link;
    const struct bell_machine *machine;
    struct bell_result *result;
    uint64_t bound_ms;
    pthread_mutex_t lock;
    pthread_cond_t opened;
    bool is_open; /* everybody may begin; under lock */
    pthread_t *thread;
    struct bell_soft_member **member; /* of each thread */
    int *cpu;                         /* of each thread; NULL: not pinned */
    uint32_t threads;
    uint32_t busy;                   /* threads that are not done */
    uint64_t ended_ps;               /* when the last one was done */
    uint64_t samples;                /* of rank 0 that have come from there */
    struct bell_error end, peer_end; /* how the run ended here, and at the peer */
};

/* Run all threads to their end.  crew, link, machine, result, bound_ms, lock and opened are set, the rest is zero. What
 * a lane or worker, or the peer, failed with is in team->end; the status returned says whether there was a run at all,
 * and a conversation to the end of it. */
enum bell_status bell_verbs_team_run(struct bell_verbs_team *team, struct bell_error *err) BELL_MUST_USE;

/* Let every thread leave at its next wait. */
void bell_verbs_team_stop(struct bell_verbs_team *team);

uint64_t bell_verbs_team_now(struct bell_verbs_team *team);

/* With no thread busy: fill team->end. */
void bell_verbs_team_tell_end(struct bell_verbs_team *team);

/* ---- with another process (hw/verbs/converse.c), the main thread only ---- */

/* Until both sides have told how their run ended.  A peer that fails stops this side; one that is silent for the bound
 * is given up. */
enum bell_status bell_verbs_converse(struct bell_verbs_team *team, struct bell_error *err) BELL_MUST_USE;

/* Tell the peer what the check of the data came to, and hear its verdict: that is the status returned. */
enum bell_status bell_verbs_swap_verdicts(struct bell_verbs_team *team, const struct bell_error *own,
                                          struct bell_error *err) BELL_MUST_USE;

#endif
