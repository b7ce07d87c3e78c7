/* SPDX-License-Identifier: Apache-2.0
 * Who runs a program in real time, on threads of their own (soft) or in turn on one thread (null): the lanes, workers
 * and NICs of the ranks that do anything.  Set-up, the NIC's turn, the first failure, and the end. */
#ifndef BELL_HW_SOFT_CREW_H
#define BELL_HW_SOFT_CREW_H

#include "core/exec.h"
#include "core/world.h"
#include "hw/soft/server.h"

enum bell_soft_role { BELL_SOFT_LANE, BELL_SOFT_WORKER, BELL_SOFT_NIC };

struct bell_soft_crew;

struct bell_soft_member {
    struct bell_lane lane; /* a NIC's takes the number of the queue it serves */
    enum bell_soft_role role;
    uint32_t number; /* of the lane, worker or NIC thread in its rank */
    struct bell_nic_server *server; /* of a NIC thread */
    uint32_t core;                  /* to bind its thread to, or BELL_NIC_ANY_CORE */
    struct bell_soft_crew *crew;
} __attribute__((aligned(64)));

struct bell_soft_crew {
    struct bell_soft soft;
    struct bell_world world;
    const struct bell_run *run;
    struct bell_soft_member *member; /* of each active rank: lanes, workers, NIC threads */
    size_t members;
    struct bell_nic_server *server;  /* nic_threads of each active rank: queue q is served by q % nic_threads */
    struct bell_nic_seat *seat;      /* queues of each active rank, those of a server side by side */
    uint32_t nic_threads, nic_patience, servers, seats;
    uint32_t nic_stop __attribute__((aligned(64))); /* not 0: the servers leave */
    struct bell_soft_group *group; /* of the lanes that cooperate, or NULL */
    enum bell_status status;       /* first failure; valid when soft.stop is 1 and all threads are gone */
    struct bell_lane_id who;       /* whose it was */
    uint64_t began_ps;
};

/* Build the world and its crew, nobody running.  On BELL_OK the caller calls bell_soft_crew_close. */
enum bell_status bell_soft_crew_open(struct bell_soft_crew *crew, const struct bell_run *run,
                                     const struct bell_result *result, struct bell_error *err) BELL_MUST_USE;

/* Start the clock of the run, and of everybody's first step. */
void bell_soft_crew_begin(struct bell_soft_crew *crew);

/* The member's run ended in a failure: stop all others.  Only the first call of all threads counts. */
void bell_soft_member_fail(struct bell_soft_member *member, enum bell_status status);

/* With all threads gone: say why the run failed or verify what arrived, and send the trace to the sink. */
enum bell_status bell_soft_crew_finish(struct bell_soft_crew *crew, struct bell_result *result,
                                       struct bell_error *err) BELL_MUST_USE;

void bell_soft_crew_close(struct bell_soft_crew *crew);

/* hw/soft/merge.c: the events of all lanes in the order of what happened, numbered from 1, to `sink`.  Their records
 * are changed.  *sent counts those that the sink took. */
enum bell_status bell_soft_merge(struct bell_soft_crew *crew, const struct bell_sink *sink, uint64_t *sent,
                                 struct bell_error *err) BELL_MUST_USE;

#endif
