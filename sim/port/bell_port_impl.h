/* SPDX-License-Identifier: Apache-2.0
 * The port for SimGrid actors: each primitive adds what the platform says to the lane's clock.  Memory is the process's
 * own; the engine keeps accesses in order of virtual time. */
#ifndef BELL_SIM_PORT_IMPL_H
#define BELL_SIM_PORT_IMPL_H

#include "sim/engine.h"

#include <string.h>

struct bell_lane {
    struct bell_lane_id id;
    struct bell_sim *sim;
    uint64_t now_ps;
    uint64_t cause;       /* of the next note: what ended the last wait */
    uint64_t last_seq;    /* of the lane's last event */
    uint64_t early_seq;   /* drawn by a publishing store for the note that follows it; 0: none */
    uint64_t deadline_ps; /* of the wait under way */
    const void *key;      /* waited for; NULL: not blocked */
    struct bell_lane *next_waiter;
    struct bell_sim_group *group; /* NULL: alone */
    uint32_t group_turn;
    void *actor;           /* SimGrid's */
    uint32_t wqe_segments; /* of 16 B, stored of the WQE under way; its BUILD note ends it */
    uint8_t polled;        /* enum bell_memory of the last load of a wait */
    bool is_polling, has_polled;
    bool is_due;       /* its turn has come */
    bool is_timed_out;
    bool is_private;   /* nobody else uses its queue's words */
    bool is_draining;  /* WQE stores since the last fence or doorbell */
    bool is_unacked;   /* stores to a queue in host memory since the last system fence or doorbell */
};

BELL_STEP uint64_t bell_port_now(struct bell_lane *lane)
{
    return lane->now_ps;
}

BELL_STEP void bell_sim_spend(struct bell_lane *lane, uint64_t ps)
{
    lane->now_ps += ps;
}

/* Before touching words that other lanes use. */
BELL_STEP void bell_sim_meet(struct bell_lane *lane)
{
    if (!lane->is_private)
        bell_sim_catch_up(lane, lane->now_ps);
}

BELL_STEP uint64_t bell_sim_early(struct bell_lane *lane)
{
    lane->early_seq = lane->sim->sink ? ++lane->sim->seq : 0;
    return lane->early_seq;
}

/* Emits one event (sim/record.c). */
void bell_sim_note(struct bell_lane *lane, const struct bell_note *note);
#define bell_port_note bell_sim_note

/* A worker loses time now and then (sim/record.c). */
void bell_sim_stall(struct bell_lane *lane);

BELL_STEP void bell_port_work(struct bell_lane *lane, enum bell_work work)
{
    const struct bell_costs *c = &lane->sim->cost;
    if (work != BELL_WORK_POST) {
        bell_sim_spend(lane, work == BELL_WORK_ENQUEUE ? c->enqueue_ps : c->complete_ps[lane->id.actor]);
        return;
    }
    if (lane->id.actor == BELL_ACTOR_CPU)
        bell_sim_stall(lane);
    bell_sim_spend(lane, c->post_ps[lane->id.actor]);
}

BELL_STEP uint64_t bell_port_load(struct bell_lane *lane, enum bell_memory memory, const uint64_t *word)
{
    (void)memory;
    bell_sim_meet(lane);
    return *word;
}

BELL_STEP void bell_sim_polled(struct bell_lane *lane, enum bell_memory memory)
{
    lane->polled = (uint8_t)memory;
    lane->has_polled = true;
}

/* Inside a wait the last load is paid once, when the wait ends. */
BELL_STEP void bell_sim_pay_load(struct bell_lane *lane, enum bell_memory memory)
{
    if (lane->is_polling)
        bell_sim_polled(lane, memory);
    else
        bell_sim_spend(lane, lane->sim->cost.load_ps[lane->id.actor][memory]);
}

BELL_STEP uint64_t bell_port_load_acquire(struct bell_lane *lane, enum bell_memory memory, const uint64_t *word)
{
    bell_sim_pay_load(lane, memory);
    bell_sim_catch_up(lane, lane->now_ps);
    return *word;
}

BELL_STEP void bell_port_store(struct bell_lane *lane, enum bell_memory memory, uint64_t *word, uint64_t value)
{
    (void)memory;
    bell_sim_meet(lane);
    *word = value;
}

/* Posted stores arrive (sim/record.c). */
void bell_sim_store_word(struct bell_sim *sim, struct bell_timer *timer);

BELL_STEP void bell_port_store_release(struct bell_lane *lane, enum bell_memory memory, uint64_t *word, uint64_t value)
{
    struct bell_timer *t = bell_sim_timer(lane->sim);
    if (!t)
        return;
    t->fire = bell_sim_store_word;
    t->target = word;
    t->value[0] = value;
    t->cause = lane->last_seq;
    t->start_ps = lane->now_ps;
    t->lane = lane;
    bell_sim_schedule(lane->sim, t, lane->now_ps + lane->sim->cost.posted_ps[lane->id.actor][memory]);
    if (lane->id.actor == BELL_ACTOR_GPU) /* the lane reads its own words back */
        bell_sim_catch_up(lane, lane->now_ps + 1);
}

BELL_STEP void bell_sim_pay_atomic(struct bell_lane *lane)
{
    if (lane->id.actor == BELL_ACTOR_GPU)
        bell_sim_spend(lane, lane->sim->cost.atomic_ps);
    bell_sim_catch_up(lane, lane->now_ps);
}

BELL_STEP bool bell_port_cas(struct bell_lane *lane, enum bell_memory memory, uint64_t *word, uint64_t expected,
                             uint64_t desired)
{
    (void)memory;
    bell_sim_pay_atomic(lane);
    if (*word != expected)
        return false;
    *word = desired;
    bell_sim_wake(lane->sim, word, lane->now_ps, lane->last_seq);
    return true;
}

BELL_STEP uint64_t bell_port_fetch_add(struct bell_lane *lane, enum bell_memory memory, uint64_t *word, uint64_t by)
{
    (void)memory;
    bell_sim_pay_atomic(lane);
    uint64_t old = *word;
    *word += by;
    return old;
}

BELL_STEP void bell_port_store_wqe(struct bell_lane *lane, enum bell_memory memory, uint8_t *to, const uint8_t *from,
                                   size_t size)
{
    uint32_t segments = (uint32_t)((size + BELL_WQE_SEGMENT_BYTES - 1) / BELL_WQE_SEGMENT_BYTES);
    if (lane->id.actor == BELL_ACTOR_GPU)
        bell_sim_spend(lane, bell_cost_wqe_ps(&lane->sim->cost, lane->wqe_segments, segments));
    lane->wqe_segments += segments;
    lane->is_draining = true;
    lane->is_unacked |= memory == BELL_MEMORY_HOST;
    memcpy(to, from, size);
}

BELL_STEP void bell_sim_pay_scope(struct bell_lane *lane, enum bell_scope scope)
{
    if (scope == BELL_SCOPE_NONE || lane->id.actor != BELL_ACTOR_GPU)
        return;
    const struct bell_costs *c = &lane->sim->cost;
    bool is_system = scope == BELL_SCOPE_SYS || scope == BELL_SCOPE_SYS_SC;
    bell_sim_spend(lane, c->fence_ps[scope] + (lane->is_draining ? c->drain_ps : 0)
                             + (is_system && lane->is_unacked ? c->host_drain_ps : 0));
    lane->is_draining = false;
    lane->is_unacked = lane->is_unacked && !is_system;
}

BELL_STEP void bell_sim_pay_store(struct bell_lane *lane)
{
    if (lane->id.actor == BELL_ACTOR_GPU)
        bell_sim_spend(lane, lane->sim->cost.store_ps);
}

BELL_STEP void bell_port_fence(struct bell_lane *lane, enum bell_scope scope)
{
    bell_sim_pay_scope(lane, scope);
}

BELL_STEP void bell_port_store_dbrec(struct bell_lane *lane, enum bell_memory memory, uint32_t *dbrec, uint32_t value,
                                     enum bell_scope scope)
{
    bell_sim_pay_scope(lane, scope);
    bell_sim_pay_store(lane);
    lane->is_unacked |= memory == BELL_MEMORY_HOST;
    (void)bell_sim_early(lane);
    *dbrec = value;
}

/* A doorbell arrives (sim/nic.c). */
void bell_sim_ring(struct bell_sim *sim, struct bell_timer *timer);

BELL_STEP void bell_port_store_doorbell(struct bell_lane *lane, uint64_t *doorbell, uint64_t value,
                                        enum bell_scope scope, bool blueflame)
{
    bell_sim_pay_scope(lane, scope);
    for (uint32_t i = 0; i < (blueflame ? BELL_WQE_BLOCK_BYTES / BELL_WQE_SEGMENT_BYTES : 1); i++)
        bell_sim_pay_store(lane);
    lane->is_draining = lane->is_unacked = false;
    struct bell_timer *t = bell_sim_timer(lane->sim);
    if (!t)
        return;
    t->fire = bell_sim_ring;
    t->target = doorbell;
    t->value[0] = value;
    t->value[1] = blueflame;
    t->cause = bell_sim_early(lane);
    t->start_ps = lane->now_ps;
    t->lane = lane;
    bell_sim_schedule(lane->sim, t, lane->now_ps + lane->sim->cost.doorbell_ps[lane->id.actor]);
}

/* Free outside a wait: it is the value that the wait has read.  A worker looks without waiting first. */
BELL_STEP uint32_t bell_port_load_cqe_tail(struct bell_lane *lane, enum bell_memory memory, const struct bell_cqe *cqe)
{
    if (lane->is_polling)
        bell_sim_polled(lane, memory);
    else if (!lane->is_private || lane->id.actor != BELL_ACTOR_GPU)
        bell_sim_catch_up(lane, lane->now_ps);
    return bell_cqe_tail(cqe);
}

void bell_sim_store_entry(struct bell_sim *sim, struct bell_timer *timer);

BELL_STEP void bell_port_store_entry(struct bell_lane *lane, struct bell_entry *entry, const struct bell_entry *value,
                                     enum bell_scope scope, const void *key)
{
    bell_sim_pay_scope(lane, scope);
    bell_sim_pay_store(lane);
    struct bell_timer *t = bell_sim_timer(lane->sim);
    if (!t)
        return;
    t->fire = bell_sim_store_entry;
    t->target = entry;
    t->value[0] = value->lo;
    t->value[1] = value->hi;
    t->key = key;
    t->cause = bell_sim_early(lane);
    t->start_ps = lane->now_ps;
    t->lane = lane;
    bell_sim_schedule(lane->sim, t, lane->now_ps + lane->sim->cost.posted_ps[lane->id.actor][BELL_MEMORY_HOST]);
}

BELL_STEP bool bell_port_load_entry(struct bell_lane *lane, const struct bell_entry *entry, uint32_t parity,
                                    struct bell_entry *out)
{
    bell_sim_catch_up(lane, lane->now_ps);
    *out = *entry;
    return entry->hi >> 63 == parity;
}

BELL_STEP uint64_t bell_port_load_doorbell(struct bell_lane *lane, const uint64_t *doorbell)
{
    (void)lane;
    return *doorbell;
}

BELL_STEP uint32_t bell_port_load_dbrec(struct bell_lane *lane, const uint32_t *dbrec)
{
    (void)lane;
    return *dbrec;
}

BELL_STEP void bell_port_store_cqe(struct bell_lane *lane, struct bell_cqe *cqe, const struct bell_cqe *value,
                                   const void *key)
{
    memcpy(cqe, value, sizeof *cqe);
    bell_sim_wake(lane->sim, key, lane->now_ps, bell_sim_early(lane));
}

BELL_STEP void bell_port_read_bytes(struct bell_lane *lane, uint8_t *to, const uint8_t *from, size_t size)
{
    (void)lane;
    memcpy(to, from, size);
}

BELL_STEP void bell_port_write_bytes(struct bell_lane *lane, uint8_t *to, const uint8_t *from, size_t size)
{
    memcpy(to, from, size);
    bell_sim_wake(lane->sim, size < 8 ? to : to + size - 8, lane->now_ps, bell_sim_early(lane));
}

BELL_STEP bool bell_sim_poll(struct bell_lane *lane, bool (*done)(struct bell_lane *, void *), void *context)
{
    lane->is_polling = true;
    bool is_true = done(lane, context);
    lane->is_polling = false;
    return is_true;
}

/* What is waited for may have come true while the lane posted; then its last look shows all that has come by now, not
 * only what came first. */
BELL_STEP enum bell_status bell_port_wait(struct bell_lane *lane, const void *key,
                                          bool (*done)(struct bell_lane *, void *), void *context, const char *what)
{
    enum bell_status s = BELL_OK;
    lane->deadline_ps = lane->now_ps + lane->sim->bound_ps;
    lane->has_polled = false;
    for (;;) {
        if (bell_sim_poll(lane, done, context)) {
            bell_sim_catch_up(lane, lane->now_ps);
            (void)bell_sim_poll(lane, done, context);
            break;
        }
        s = bell_sim_block(lane, key);
        if (s != BELL_OK) {
            lane->id.waited_for = what;
            return s;
        }
        lane->id.step_start_ps = lane->now_ps;
    }
    if (lane->has_polled)
        bell_sim_spend(lane, lane->sim->cost.load_ps[lane->id.actor][lane->polled]);
    return BELL_OK;
}

BELL_STEP bool bell_port_is_leader(struct bell_lane *lane)
{
    return lane->id.group_rank == 0;
}

/* Groups of several lanes: sim/group.c. */
enum bell_status bell_port_group_sync(struct bell_lane *lane);
enum bell_status bell_port_broadcast(struct bell_lane *lane, uint64_t *value);

#endif
