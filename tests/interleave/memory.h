/* SPDX-License-Identifier: Apache-2.0
 * The memory of an exploration: places, vector clocks, races, and what makes two states the same. */
#ifndef BELL_INTERLEAVE_MEMORY_H
#define BELL_INTERLEAVE_MEMORY_H

#include "tests/interleave/explore.h"

#define EXPLORE_WORDS_MAX 320u
#define EXPLORE_PLACES_MAX 80u
#define EXPLORE_CLOCK_MAX 1000u

/* Component l: the last access of lane l that is known. */
struct explore_clock {
    uint16_t of[EXPLORE_LANES_MAX];
};

/* Accesses that a later one may conflict with.  Clock 0: none, or known to everybody. */
struct explore_access {
    uint16_t store, read[EXPLORE_LANES_MAX];
    uint8_t storer; /* 1 + lane; 0: never stored to */
};

/* All that a step can change. */
struct explore_state {
    uint64_t memory[EXPLORE_WORDS_MAX] __attribute__((aligned(64)));
    struct explore_clock clock[EXPLORE_LANES_MAX], fenced[EXPLORE_LANES_MAX];
    struct explore_clock released[EXPLORE_PLACES_MAX];
    struct explore_access access[EXPLORE_PLACES_MAX];
    uint64_t seen[EXPLORE_LANES_MAX];   /* hash of what the lane's steps returned */
    uint32_t logged[EXPLORE_LANES_MAX]; /* words of its log */
    uint8_t waits, ended, asleep;       /* bit a lane */
};

struct explore_memory {
    struct explore_state now;
    uint32_t words, places, lanes;
    uint8_t place_of[EXPLORE_WORDS_MAX];
    struct {
        char name[24];
        enum explore_kind kind;
    } place[EXPLORE_PLACES_MAX];
};

struct explore_key {
    uint64_t low, high;
};

uint64_t explore_mix(uint64_t hash, uint64_t word);

/* See explore_place. */
void *memory_add(struct explore_memory *m, const char *name, size_t bytes, uint32_t count, enum explore_kind kind);

bool memory_holds(const struct explore_memory *m, const void *at);

/* The place of an address, which must be in the memory. */
uint32_t memory_place(const struct explore_memory *m, const void *at);

/* A lane loads, stores or swaps in a place; NULL, or what is wrong with it. */
const char *memory_load(struct explore_memory *m, uint32_t lane, uint32_t place, bool acquire);
const char *memory_store(struct explore_memory *m, uint32_t lane, uint32_t place, bool release);
const char *memory_swap(struct explore_memory *m, uint32_t lane, uint32_t place);
const char *memory_read(struct explore_memory *m, uint32_t lane, uint32_t place);
const char *memory_write(struct explore_memory *m, uint32_t lane, uint32_t place);
void memory_fence(struct explore_memory *m, uint32_t lane);

/* Forget accesses that every lane knows of, then name the state. */
struct explore_key memory_fingerprint(struct explore_memory *m);

#endif
