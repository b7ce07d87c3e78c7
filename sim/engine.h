/* SPDX-License-Identifier: Apache-2.0
 * Virtual time.  Lanes and workers are SimGrid actors; what happens without one (posted writes, NIC stages) is a timer
 * in a calendar.  An actor carries its own clock and runs ahead as long as nothing that others can see depends on it;
 * whoever waits works the calendar off, in order of time, until it is its own turn; only then does it move SimGrid's
 * clock.  Ties are broken by order of creation, so that a run is the same each time. */
#ifndef BELL_SIM_ENGINE_H
#define BELL_SIM_ENGINE_H

#include "core/lane.h"
#include "models/cost.h"

#define BELL_SIM_BUCKETS 1024u
#define BELL_SIM_BLOCK 256u

struct bell_sim;
struct bell_lane;

/* Fires once at at_ps; the engine takes it back afterwards.  cause: seq of the event that started it. */
struct bell_timer {
    void (*fire)(struct bell_sim *sim, struct bell_timer *timer);
    struct bell_lane *lane; /* resume: whose turn it is */
    void *object;
    void *target;
    const void *key;
    uint64_t at_ps, order, start_ps, cause;
    uint64_t value[2];
    struct bell_timer *next_free;
};

struct bell_sim {
    struct bell_timer **heap;
    size_t heap_count, heap_capacity;
    struct bell_timer *free_timer;
    struct bell_timer **block; /* where timers live */
    size_t blocks;
    struct bell_lane *waiter[BELL_SIM_BUCKETS]; /* blocked lanes, by key */
    uint64_t order, seq;
    uint64_t clock_ps; /* of SimGrid */
    uint64_t bound_ps;
    uint64_t random;
    uint32_t live, entered; /* actors that have not ended; that have begun */
    struct bell_costs cost;
    const struct bell_sink *sink; /* NULL: not traced */
    struct bell_error *err;
    enum bell_status status; /* the first failure */
    bool is_stopped;
    struct bell_sim_queue *queue; /* the NIC side of all queues, by QP number: sim/nic.h */
    uint32_t queue_base;          /* QP number of the first */
    struct bell_sim_work *work, *free_work; /* all, for the end; those to use again */
};

/* A timer to fill in and hand to bell_sim_schedule.  NULL: out of memory, which stops the run. */
struct bell_timer *bell_sim_timer(struct bell_sim *sim);
void bell_sim_schedule(struct bell_sim *sim, struct bell_timer *timer, uint64_t at_ps);

/* Put a lane that has not begun into the calendar, in the order in which lanes shall start. */
void bell_sim_admit(struct bell_sim *sim, struct bell_lane *lane);

/* Everything that happens before until_ps happens now; until_ps is at most one past the lane's clock.  Nothing for a
 * NIC, which is called by the calendar, and nothing inside a wait: what is waited for only ever comes true, and
 * wakes. */
void bell_sim_catch_up(struct bell_lane *lane, uint64_t until_ps);

/* The lane sleeps until somebody wakes its key, its bound is reached or nothing is left to happen. */
enum bell_status bell_sim_block(struct bell_lane *lane, const void *key);

/* Lanes that wait for key get their turn at at_ps; cause: seq of the event that made it so. */
void bell_sim_wake(struct bell_sim *sim, const void *key, uint64_t at_ps, uint64_t cause);

/* First failure wins; everybody who waits is woken. */
void bell_sim_stop(struct bell_sim *sim, enum bell_status status, uint64_t now_ps);

/* An actor's first and last act. */
void bell_sim_enter(struct bell_lane *lane);
void bell_sim_leave(struct bell_lane *lane);

/* What the calendar still holds when all actors are gone. */
void bell_sim_drain(struct bell_sim *sim);
void bell_sim_free(struct bell_sim *sim);

#endif
