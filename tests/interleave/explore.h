/* SPDX-License-Identifier: Apache-2.0
 * Runs a few lanes under every schedule and watches them for races, deadlock and broken invariants.
 *
 * Lanes are coroutines that stop before each step: an access to a shared word, or a wait.  What a lane does is a
 * function of what its steps returned, so a state is the shared memory, what each lane has seen, and who has
 * synchronised with whom; each state is visited once, and every lane that can run is tried there.  States are told
 * apart by 128-bit hashes.  The schedules through a state are counted, not walked one by one.
 *
 * Memory: words hold one value at a time.  Plain accesses (WQE blocks, payload, guarded words) are no steps; clocks
 * tell whether two that conflict are ordered, whatever order they ran in.  Only these order: release to acquire, a
 * fence followed by a store to an acquire, and cas.  A relaxed load orders nothing, a fence orders only stores, and a
 * store that neither releases nor follows a fence carries nothing with it.
 *
 * A lane function must keep its state in local variables, and reach shared memory through the port or the functions
 * below only: to go back, lanes are run again from their start over what their steps returned. */
#ifndef BELL_INTERLEAVE_EXPLORE_H
#define BELL_INTERLEAVE_EXPLORE_H

#include "core/status.h"

#define EXPLORE_LANES_MAX 6u

/* A natural number below 2^256, least significant word first. */
struct explore_count {
    uint64_t word[4];
};

struct bell_lane;
struct explore;

/* What is checked of the accesses to a place.  GHOST: the checker's own notes, no lane synchronises through them. */
enum explore_kind {
    EXPLORE_GHOST,
    EXPLORE_DATA,   /* plain: all conflicting accesses must be ordered; no steps, whatever primitive is used */
    EXPLORE_WORD,   /* any lane, any time */
    EXPLORE_SERIAL, /* a word, but stores must be ordered after earlier stores and after explore_touch */
    EXPLORE_FOLLOW, /* a word, but a load must be ordered after some store */
    EXPLORE_FIXED   /* the same, and no step: every store to it stores the same */
};

struct explore_result {
    uint64_t states;                /* different ones */
    uint64_t steps;                 /* taken between them */
    struct explore_count schedules; /* different complete ones, discarded ones apart */
    uint32_t longest;               /* steps of the longest schedule */
};

/* NULL when memory is short. */
struct explore *explore_new(void);
void explore_free(struct explore *x);

/* `count` places of `bytes` (multiple of 8) side by side, zero at first; 64 B aligned when bytes is. */
void *explore_place(struct explore *x, const char *name, size_t bytes, uint32_t count, enum explore_kind kind);

/* Add a lane that runs run(lane, context); the caller fills in lane->id and lane->group. */
struct bell_lane *explore_lane(struct explore *x, const char *name, void (*run)(struct bell_lane *, void *),
                               void *context);

/* A lane that waits runs on only after a change of its key: of a word by store_release or cas, or by a store that names
 * it. */
void explore_wake_by_key(struct explore *x);

/* Try every schedule from here.  check: NULL, or why the step from `before` is wrong (a place's memory before the step
 * is explore_before of its address); at_end judges complete schedules.  False: explore_failure says why, and by which
 * schedule. */
bool explore_run(struct explore *x, const char *(*check)(struct explore *x, void *context),
                 const char *(*at_end)(struct explore *x, void *context), void *context, struct explore_result *result);

const void *explore_before(const struct explore *x, const void *at);
const char *explore_failure(const struct explore *x);

/* Decimal; text holds EXPLORE_COUNT_TEXT characters. */
#define EXPLORE_COUNT_TEXT 80
const char *explore_count_text(struct explore_count count, char *text);

/* ---- for lanes and the port ---- */

void explore_load(struct bell_lane *lane, const char *what, void *to, const void *from, size_t size, bool acquire);
/* wakes: key, or NULL. */
void explore_store(struct bell_lane *lane, const char *what, void *to, const void *from, size_t size, bool release,
                   const void *wakes);
bool explore_cas(struct bell_lane *lane, uint64_t *word, uint64_t expected, uint64_t desired);
uint64_t explore_add(struct bell_lane *lane, uint64_t *word, uint64_t by);
void explore_fence(struct bell_lane *lane);
enum bell_status explore_wait(struct bell_lane *lane, const void *key, bool (*done)(struct bell_lane *, void *),
                              void *context, const char *what);
/* words[0] counts arrivals, words[1] turns; true for the last to come.  *turn: the turn it came in. */
bool explore_arrive(struct bell_lane *lane, uint64_t *words, uint32_t size, uint64_t *turn);

/* Plain accesses.  touch: what the last load returned is used, and the place must not be stored to before that. */
void explore_read(struct bell_lane *lane, void *to, const void *from, size_t size);
void explore_write(struct bell_lane *lane, void *to, const void *from, size_t size);
void explore_touch(struct bell_lane *lane, const void *at);
bool explore_holds(struct bell_lane *lane, const void *at);

/* Set a ghost word. */
void explore_ghost(struct bell_lane *lane, uint64_t *word, uint64_t value);

/* From here on the lane depends on nothing that it has seen but what kept[words] and point say. */
void explore_mark(struct bell_lane *lane, const uint64_t *kept, uint32_t words, uint64_t point);

/* Do not follow this schedule: another one is the same with lanes exchanged. */
void explore_discard(struct bell_lane *lane);

/* End the exploration as failed when `claim` is false. */
void explore_claim(struct bell_lane *lane, bool claim, const char *text);

#endif
