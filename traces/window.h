/* SPDX-License-Identifier: Apache-2.0
 * Bookkeeping of the checker: a queue's live slots, and a map from small keys to numbers.  Private to traces/. */
#ifndef BELL_TRACES_WINDOW_H
#define BELL_TRACES_WINDOW_H

#include "core/status.h"

struct bell_slot {
    uint64_t seq; /* of the event that filled it */
    uint32_t bytes;
    uint32_t span; /* slots of the WQE that starts here; 0 in the slots after its first */
    bool filled, fenced, delivered;
};

/* Slots base .. base+room-1; room is a power of two that grows up to what the caller asks for. */
struct bell_window {
    struct bell_slot *slot;
    uint64_t base, room;
};

/* The slot of index >= base, growing the window; NULL when out of memory. */
struct bell_slot *bell_window_grow(struct bell_window *w, uint64_t index);

/* The slot of `index`, or NULL when it lies outside. */
struct bell_slot *bell_window_at(const struct bell_window *w, uint64_t index);

/* Forget everything before `to`. */
void bell_window_advance(struct bell_window *w, uint64_t to);

struct bell_pair {
    uint64_t key, value; /* key 0: free */
};

/* Open addressing; zero-initialised is empty. */
struct bell_map {
    struct bell_pair *pair;
    size_t room, used;
};

/* Where the value of `key` (not 0) lives, 0 at first; NULL when out of memory.  Valid until the next call. */
uint64_t *bell_map_at(struct bell_map *m, uint64_t key);

#endif
