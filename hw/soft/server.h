/* SPDX-License-Identifier: Apache-2.0
 * The software NIC as a server: one thread that serves the queues it was given, with the stages of core/nic.h, and
 * counts what it did.  It does not know who posts: CPU threads, the one thread of executor null, or a GPU whose queues
 * lie in memory that the CPU can reach.
 *
 * Without a pace a WQE goes through all stages at once.  With one, each stage waits for its time (hw/soft/pipe.h). */
#ifndef BELL_HW_SOFT_SERVER_H
#define BELL_HW_SOFT_SERVER_H

#include "hw/soft/pipe.h"

#define BELL_NIC_ANY_CORE UINT32_MAX

/* One queue as its server sees it. */
struct bell_nic_seat {
    struct bell_nicq *nicq; /* the caller's; only this server touches it while it runs */
    uint16_t lane;          /* number of this NIC queue in events */
    struct bell_pipe *pipe; /* NULL: all stages at once.  By bell_nic_server_open */
};

/* What a server did.  Times in picoseconds of the monotonic clock. */
struct bell_nic_stats {
    uint64_t wqes;    /* carried out or failed */
    uint64_t busy_ps; /* in turns that found work; includes time in which the system ran another thread on its core */
    uint64_t span_ps; /* from the start of bell_nic_server_run to its end */
    uint64_t cpu_ps;  /* of that, what the thread had a core for */
};

/* All pointers are the caller's and outlive the server's run.  Between start and end only *stop is shared. */
struct bell_nic_server {
    struct bell_lane *lane;     /* stands for the NIC: its rank, recorder and clock.  Takes each seat's number */
    struct bell_nic_seat *seat; /* seats of them */
    const uint32_t *stop;       /* the server leaves when it is not 0 */
    uint32_t seats;
    uint32_t core;              /* the thread is bound to it; BELL_NIC_ANY_CORE: to none */
    bool is_bound;              /* it was */
    bool is_timed;              /* some seat has a pipe */
    const char *paced_by;       /* name of the platform that sets the pace; NULL: none */
    uint64_t pace_ps;           /* sum of its stages */
    struct bell_nic_stats stats;
    struct bell_lateness late;
    uint64_t found_ps;          /* end of the last turn when that found work, else 0 */
} __attribute__((aligned(64)));

/* Everything at its start, bound to no core. */
void bell_nic_server_init(struct bell_nic_server *server, struct bell_lane *lane, struct bell_nic_seat *seat,
                          uint32_t seats, const uint32_t *stop);

/* Get the seats ready: a pipe where there is a pace (may be NULL) or a fault that needs time.  Whatever it returns,
 * bell_nic_server_close frees it.  BELL_NO_MEMORY. */
enum bell_status bell_nic_server_open(struct bell_nic_server *server, const struct bell_pace *pace) BELL_MUST_USE;
void bell_nic_server_close(struct bell_nic_server *server);

/* All that there is to do now, on every seat.  BELL_EMPTY: nothing.  BELL_INVALID: the queue whose number the lane has
 * was rung for more than its depth.  BELL_NO_MEMORY: its reads cannot be held.  One thread at a time. */
enum bell_status bell_nic_server_turn(struct bell_nic_server *server);

/* Turns until *stop (BELL_OK) or a failure, on the thread that calls it, which is bound to server->core.  Spins, yields
 * when nothing was there for a while. */
enum bell_status bell_nic_server_run(struct bell_nic_server *server);

/* With the threads gone: one sentence on what these servers could serve, and whether they were the limit of the run. */
void bell_nic_server_report(const struct bell_nic_server *server, uint32_t count, char *out, size_t size);

#endif
