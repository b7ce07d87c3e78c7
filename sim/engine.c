/* SPDX-License-Identifier: Apache-2.0 */
#include "core/port.h"

#include <simgrid/actor.h>
#include <simgrid/engine.h>
#include <stdlib.h>

#define SECONDS_PER_PS 1e-12

/* ---- the calendar: a binary heap by time, then order ---- */
static bool is_before(const struct bell_timer *a, const struct bell_timer *b)
{
    return a->at_ps < b->at_ps || (a->at_ps == b->at_ps && a->order < b->order);
}

static bool add_block(struct bell_sim *sim)
{
    struct bell_timer **block = realloc(sim->block, (sim->blocks + 1) * sizeof(struct bell_timer *));
    if (!block)
        return false;
    sim->block = block;
    struct bell_timer *t = calloc(BELL_SIM_BLOCK, sizeof *t);
    if (!t)
        return false;
    sim->block[sim->blocks++] = t;
    for (uint32_t i = 0; i < BELL_SIM_BLOCK; i++) {
        t[i].next_free = sim->free_timer;
        sim->free_timer = t + i;
    }
    struct bell_timer **heap = realloc(sim->heap, sim->blocks * BELL_SIM_BLOCK * sizeof(struct bell_timer *));
    if (!heap)
        return false;
    sim->heap = heap;
    return true;
}

struct bell_timer *bell_sim_timer(struct bell_sim *sim)
{
    if (!sim->free_timer && !add_block(sim)) {
        (void)bell_fail(sim->err, BELL_NO_MEMORY, "no memory for what is under way in the simulated machine");
        sim->status = BELL_NO_MEMORY;
        sim->is_stopped = true;
        return NULL;
    }
    struct bell_timer *t = sim->free_timer;
    sim->free_timer = t->next_free;
    return t;
}

static void give_back(struct bell_sim *sim, struct bell_timer *t)
{
    t->next_free = sim->free_timer;
    sim->free_timer = t;
}

void bell_sim_schedule(struct bell_sim *sim, struct bell_timer *t, uint64_t at_ps)
{
    t->at_ps = at_ps;
    t->order = sim->order++;
    size_t i = sim->heap_count++;
    while (i && is_before(t, sim->heap[(i - 1) / 2])) {
        sim->heap[i] = sim->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    sim->heap[i] = t;
}

static struct bell_timer *pop(struct bell_sim *sim)
{
    struct bell_timer *top = sim->heap[0], *last = sim->heap[--sim->heap_count];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= sim->heap_count)
            break;
        if (child + 1 < sim->heap_count && is_before(sim->heap[child + 1], sim->heap[child]))
            child++;
        if (!is_before(sim->heap[child], last))
            break;
        sim->heap[i] = sim->heap[child];
        i = child;
    }
    sim->heap[i] = last;
    return top;
}

/* ---- turns ---- */
static void resume_timer(struct bell_sim *sim, struct bell_lane *lane, uint64_t at_ps)
{
    struct bell_timer *t = bell_sim_timer(sim);
    if (!t)
        return;
    t->fire = NULL;
    t->lane = lane;
    bell_sim_schedule(sim, t, at_ps);
}

/* SimGrid's clock follows when an actor gets its turn. */
static void move_clock(struct bell_sim *sim, uint64_t at_ps)
{
    if (at_ps <= sim->clock_ps)
        return;
    sg_actor_sleep_for((double)(at_ps - sim->clock_ps) * SECONDS_PER_PS);
    sim->clock_ps = at_ps;
}

static void pass_turn(struct bell_lane *to)
{
    /* An actor that has just passed its own turn on may not have fallen asleep yet. */
    while (!sg_actor_is_suspended((sg_actor_t)to->actor))
        sg_actor_yield();
    to->is_due = true;
    sg_actor_resume((sg_actor_t)to->actor);
}

static void sleep_until_due(struct bell_lane *lane)
{
    while (!lane->is_due)
        sg_actor_suspend((sg_actor_t)lane->actor);
}

/* Works the calendar off until it is `self`'s turn, or, when self is NULL, until it is anybody's.  self is not due.
 * False: nothing was left to happen. */
static bool drive(struct bell_sim *sim, struct bell_lane *self)
{
    while (sim->heap_count) {
        struct bell_timer *t = pop(sim);
        struct bell_lane *lane = t->lane;
        uint64_t at_ps = t->at_ps;
        if (t->fire) {
            t->fire(sim, t);
            give_back(sim, t);
            continue;
        }
        give_back(sim, t);
        move_clock(sim, at_ps);
        if (lane->now_ps < at_ps)
            lane->now_ps = at_ps;
        if (lane == self)
            return true;
        pass_turn(lane);
        if (self)
            sleep_until_due(self);
        return true;
    }
    if (self)
        self->is_timed_out = true;
    return false;
}

void bell_sim_catch_up(struct bell_lane *lane, uint64_t until_ps)
{
    struct bell_sim *sim = lane->sim;
    if (sim->heap_count == 0 || sim->heap[0]->at_ps >= until_ps || lane->is_polling
        || lane->id.actor == BELL_ACTOR_NIC)
        return;
    lane->is_due = false;
    resume_timer(sim, lane, lane->now_ps);
    (void)drive(sim, lane);
    lane->is_due = true;
}

/* ---- waiting ---- */
static uint32_t bucket_of(const void *key)
{
    return (uint32_t)((uintptr_t)key >> 3) * 2654435761u >> 22;
}

static void forget(struct bell_sim *sim, struct bell_lane *lane)
{
    if (!lane->key)
        return;
    struct bell_lane **at = &sim->waiter[bucket_of(lane->key)];
    while (*at != lane)
        at = &(*at)->next_waiter;
    *at = lane->next_waiter;
    lane->key = NULL;
}

enum bell_status bell_sim_block(struct bell_lane *lane, const void *key)
{
    struct bell_sim *sim = lane->sim;
    if (sim->is_stopped)
        return BELL_STOPPED;
    if (lane->now_ps >= lane->deadline_ps)
        return BELL_TIMEOUT;
    struct bell_lane **at = &sim->waiter[bucket_of(key)];
    while (*at)
        at = &(*at)->next_waiter;
    *at = lane;
    lane->next_waiter = NULL;
    lane->key = key;
    lane->is_due = false;
    (void)drive(sim, lane);
    lane->is_due = true;
    if (lane->is_timed_out) {
        forget(sim, lane);
        return BELL_TIMEOUT;
    }
    if (sim->is_stopped)
        return BELL_STOPPED;
    return lane->now_ps > lane->deadline_ps ? BELL_TIMEOUT : BELL_OK; /* woken too late */
}

static void release(struct bell_sim *sim, struct bell_lane **at, uint64_t at_ps, uint64_t cause)
{
    struct bell_lane *lane = *at;
    *at = lane->next_waiter;
    lane->key = NULL;
    lane->cause = cause;
    resume_timer(sim, lane, at_ps);
}

void bell_sim_wake(struct bell_sim *sim, const void *key, uint64_t at_ps, uint64_t cause)
{
    struct bell_lane **at = &sim->waiter[bucket_of(key)];
    while (*at) {
        if ((*at)->key == key)
            release(sim, at, at_ps, cause);
        else
            at = &(*at)->next_waiter;
    }
}

void bell_sim_stop(struct bell_sim *sim, enum bell_status status, uint64_t now_ps)
{
    if (sim->is_stopped)
        return;
    sim->is_stopped = true;
    sim->status = status;
    for (uint32_t i = 0; i < BELL_SIM_BUCKETS; i++)
        while (sim->waiter[i])
            release(sim, &sim->waiter[i], now_ps, 0);
}

/* ---- life of an actor ---- */
void bell_sim_admit(struct bell_sim *sim, struct bell_lane *lane)
{
    sim->live++;
    resume_timer(sim, lane, 0);
}

void bell_sim_enter(struct bell_lane *lane)
{
    struct bell_sim *sim = lane->sim;
    lane->actor = sg_actor_self();
    if (++sim->entered == sim->live)
        (void)drive(sim, lane);
    else
        sleep_until_due(lane);
    lane->is_due = true;
}

/* Nothing is left to happen, yet somebody waits. */
static struct bell_lane *first_waiter(struct bell_sim *sim)
{
    for (uint32_t i = 0; i < BELL_SIM_BUCKETS; i++)
        if (sim->waiter[i])
            return sim->waiter[i];
    return NULL;
}

void bell_sim_leave(struct bell_lane *lane)
{
    struct bell_sim *sim = lane->sim;
    move_clock(sim, lane->now_ps);
    if (--sim->live == 0) {
        bell_sim_drain(sim);
        return;
    }
    struct bell_lane *stuck = drive(sim, NULL) ? NULL : first_waiter(sim);
    if (!stuck)
        return;
    stuck->is_timed_out = true;
    forget(sim, stuck);
    resume_timer(sim, stuck, lane->now_ps > stuck->now_ps ? lane->now_ps : stuck->now_ps);
    (void)drive(sim, NULL);
}

void bell_sim_drain(struct bell_sim *sim)
{
    while (sim->heap_count) {
        struct bell_timer *t = pop(sim);
        if (t->fire)
            t->fire(sim, t);
        give_back(sim, t);
    }
}

void bell_sim_free(struct bell_sim *sim)
{
    for (size_t i = 0; i < sim->blocks; i++)
        free(sim->block[i]);
    free(sim->block);
    free(sim->heap);
}
