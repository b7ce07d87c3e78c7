/* SPDX-License-Identifier: Apache-2.0
 * The port for checking: every primitive is a step of a schedule (tests/interleave/explore.h), or a plain access that
 * the race detector watches.  Words, slots and payload must lie in places of the exploration. */
#ifndef BELL_INTERLEAVE_PORT_IMPL_H
#define BELL_INTERLEAVE_PORT_IMPL_H

#include "tests/interleave/explore.h"

/* Points of a lane after which what it has seen no longer matters, beside the note itself and what it keeps: bits of
 * events whose notes are such points, and a bit for the two ends of each wait. */
#define BELL_POINT(kind) (1u << BELL_EVENT_##kind)
#define BELL_POINT_WAIT (1u << BELL_EVENT_KINDS)
#define BELL_POINTS_OF_PUT (BELL_POINT(RESERVE) | BELL_POINT(BUILD) | BELL_POINT(DOORBELL) | BELL_POINT(PUBLISH))
#define BELL_POINTS_OF_QUIET (BELL_POINT(POLL) | BELL_POINT_WAIT)

struct bell_lane {
    struct bell_lane_id id;
    struct explore *explore;
    uint32_t number; /* in the exploration */
    uint64_t *group; /* three words: arrived, turn, value; NULL: alone */
    uint32_t points;
    const uint64_t *kept;
    uint32_t kept_words;
    uint64_t
        *arrivals; /* ghost: lanes that have reserved, of lanes that do the same; NULL: no matter which comes first */
    uint32_t arrival; /* it may be the one after so many */
};

BELL_STEP uint64_t bell_port_now(struct bell_lane *lane)
{
    (void)lane;
    return 0;
}

BELL_STEP void bell_port_work(struct bell_lane *lane, enum bell_work work)
{
    (void)lane;
    (void)work;
}

BELL_STEP void bell_port_note(struct bell_lane *lane, const struct bell_note *note)
{
    if (note->kind == BELL_EVENT_RESERVE && lane->arrivals && *lane->arrivals <= lane->arrival) {
        if (*lane->arrivals < lane->arrival) explore_discard(lane);
        explore_ghost(lane, lane->arrivals, lane->arrival + 1);
    }
    if (lane->points >> note->kind & 1)
        explore_mark(lane, lane->kept, lane->kept_words, (uint64_t)note->kind << 32 | note->index);
}

BELL_STEP uint64_t bell_port_load(struct bell_lane *lane, enum bell_memory memory, const uint64_t *word)
{
    uint64_t value;
    (void)memory;
    explore_load(lane, "load", &value, word, sizeof value, false);
    return value;
}

BELL_STEP uint64_t bell_port_load_acquire(struct bell_lane *lane, enum bell_memory memory, const uint64_t *word)
{
    uint64_t value;
    (void)memory;
    explore_load(lane, "load_acquire", &value, word, sizeof value, true);
    return value;
}

BELL_STEP void bell_port_store(struct bell_lane *lane, enum bell_memory memory, uint64_t *word, uint64_t value)
{
    (void)memory;
    explore_store(lane, "store", word, &value, sizeof value, false, NULL);
}

BELL_STEP void bell_port_store_release(struct bell_lane *lane, enum bell_memory memory, uint64_t *word, uint64_t value)
{
    (void)memory;
    explore_store(lane, "store_release", word, &value, sizeof value, true, word);
}

BELL_STEP bool bell_port_cas(struct bell_lane *lane, enum bell_memory memory, uint64_t *word, uint64_t expected,
                             uint64_t desired)
{
    (void)memory;
    return explore_cas(lane, word, expected, desired);
}

BELL_STEP uint64_t bell_port_fetch_add(struct bell_lane *lane, enum bell_memory memory, uint64_t *word, uint64_t by)
{
    (void)memory;
    return explore_add(lane, word, by);
}

BELL_STEP void bell_port_store_wqe(struct bell_lane *lane, enum bell_memory memory, uint8_t *to, const uint8_t *from,
                                   size_t size)
{
    (void)memory;
    explore_write(lane, to, from, size);
}

BELL_STEP void bell_port_fence(struct bell_lane *lane, enum bell_scope scope)
{
    if (scope != BELL_SCOPE_NONE) explore_fence(lane);
}

BELL_STEP void bell_port_store_dbrec(struct bell_lane *lane, enum bell_memory memory, uint32_t *dbrec, uint32_t value,
                                     enum bell_scope scope)
{
    (void)memory;
    explore_store(lane, "store_dbrec", dbrec, &value, sizeof value, scope != BELL_SCOPE_NONE, NULL);
}

BELL_STEP void bell_port_store_doorbell(struct bell_lane *lane, uint64_t *doorbell, uint64_t value,
                                        enum bell_scope scope, bool blueflame)
{
    (void)blueflame;
    explore_store(lane, "store_doorbell", doorbell, &value, sizeof value, scope != BELL_SCOPE_NONE, doorbell);
}

BELL_STEP uint32_t bell_port_load_cqe_tail(struct bell_lane *lane, enum bell_memory memory, const struct bell_cqe *cqe)
{
    uint32_t tail;
    (void)memory;
    explore_load(lane, "load_cqe_tail", &tail, (const uint8_t *)cqe + BELL_CQE_TAIL_OFFSET, sizeof tail, true);
    return tail;
}

BELL_STEP void bell_port_store_entry(struct bell_lane *lane, struct bell_entry *entry, const struct bell_entry *value,
                                     enum bell_scope scope, const void *key)
{
    explore_store(lane, "store_entry", entry, value, sizeof *value, scope != BELL_SCOPE_NONE, key);
}

BELL_STEP bool bell_port_load_entry(struct bell_lane *lane, const struct bell_entry *entry, uint32_t parity,
                                    struct bell_entry *out)
{
    explore_load(lane, "load_entry", out, entry, sizeof *out, true);
    if (out->hi >> 63 != parity) return false;
    explore_touch(lane, entry);
    return true;
}

BELL_STEP uint64_t bell_port_load_doorbell(struct bell_lane *lane, const uint64_t *doorbell)
{
    uint64_t value;
    explore_load(lane, "load_doorbell", &value, doorbell, sizeof value, true);
    return value;
}

BELL_STEP uint32_t bell_port_load_dbrec(struct bell_lane *lane, const uint32_t *dbrec)
{
    uint32_t value;
    explore_load(lane, "load_dbrec", &value, dbrec, sizeof value, true);
    return value;
}

BELL_STEP void bell_port_store_cqe(struct bell_lane *lane, struct bell_cqe *cqe, const struct bell_cqe *value,
                                   const void *key)
{
    explore_store(lane, "store_cqe", cqe, value, sizeof *value, true, key);
}

BELL_STEP void bell_port_read_bytes(struct bell_lane *lane, uint8_t *to, const uint8_t *from, size_t size)
{
    explore_read(lane, to, from, size);
}

/* The source may be a payload of the exploration or the NIC's own copy of a WQE. */
BELL_STEP void bell_port_write_bytes(struct bell_lane *lane, uint8_t *to, const uint8_t *from, size_t size)
{
    uint8_t copy[BELL_WQE_BYTES_MAX];
    if (explore_holds(lane, from))
        explore_read(lane, copy, from, size);
    else
        memcpy(copy, from, size);
    explore_write(lane, to, copy, size - 8);
    explore_store(lane, "write_bytes", to + size - 8, copy + size - 8, 8, true, to + size - 8);
}

BELL_STEP enum bell_status bell_port_wait(struct bell_lane *lane, const void *key,
                                          bool (*done)(struct bell_lane *, void *), void *context, const char *what)
{
    if (lane->points & BELL_POINT_WAIT) explore_mark(lane, lane->kept, lane->kept_words, UINT64_MAX);
    enum bell_status s = explore_wait(lane, key, done, context, what);
    if (lane->points & BELL_POINT_WAIT) explore_mark(lane, lane->kept, lane->kept_words, UINT64_MAX - 1);
    return s;
}

BELL_STEP bool bell_port_is_leader(struct bell_lane *lane)
{
    return lane->id.group_rank == 0;
}

struct bell_turn_wait {
    uint64_t *turn, old;
};

BELL_STEP bool bell_group_turned(struct bell_lane *lane, void *context)
{
    struct bell_turn_wait *w = (struct bell_turn_wait *)context;
    return bell_port_load_acquire(lane, BELL_MEMORY_GPU, w->turn) != w->old;
}

BELL_STEP enum bell_status bell_port_group_sync(struct bell_lane *lane)
{
    struct bell_turn_wait w;
    if (!lane->group) return BELL_OK;
    w.turn = lane->group + 1;
    if (explore_arrive(lane, lane->group, lane->id.group_size, &w.old)) return BELL_OK;
    return bell_port_wait(lane, w.turn, bell_group_turned, &w, "the lanes of its group");
}

BELL_STEP enum bell_status bell_port_broadcast(struct bell_lane *lane, uint64_t *value)
{
    if (!lane->group) return BELL_OK;
    if (lane->id.group_rank == 0) explore_write(lane, lane->group + 2, value, sizeof *value);
    enum bell_status s = bell_port_group_sync(lane);
    if (s != BELL_OK) return s;
    explore_read(lane, value, lane->group + 2, sizeof *value);
    return bell_port_group_sync(lane);
}

#endif
