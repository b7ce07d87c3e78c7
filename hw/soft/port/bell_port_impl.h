/* SPDX-License-Identifier: Apache-2.0
 * The port for CPU threads: C11 memory model through compiler builtins, so that C and C++ read it alike.
 *
 * A fence becomes release semantics of the lane's next stores to the NIC, which is what it promises and, unlike
 * a thread fence, what a thread sanitizer sees.  While tracing, a publishing store first draws its event's sequence
 * number, so that the numbers are a valid order of what happened.  A store that publishes nothing and a look at a CQE
 * forget a number that no note has used: it was drawn for an earlier store, such as a lock's. */
#ifndef BELL_HW_SOFT_PORT_IMPL_H
#define BELL_HW_SOFT_PORT_IMPL_H

#include <sched.h>
#include <string.h>
#include <time.h>

/* What the threads of one run share. */
struct bell_soft {
    uint64_t seq __attribute__((aligned(64))); /* last number drawn */
    uint64_t bound_ps;                         /* of a wait */
    void (*idle)(void *context);               /* what a lone thread does while it waits; NULL: others do it */
    void *idle_context;
    uint32_t stop; /* 1: some lane failed, everybody leaves */
    bool is_traced;
};

/* A group of lanes that act together. */
struct bell_soft_group {
    uint64_t value __attribute__((aligned(64)));
    uint32_t arrived, turn;
};

struct bell_lane {
    struct bell_lane_id id;
    struct bell_soft *soft;
    struct bell_soft_group *group; /* NULL: alone */
    struct bell_event *event;      /* traced so far; owned by the lane until it ends */
    size_t events, capacity;
    uint64_t early_seq;            /* drawn before the store that the next note tells of; 0: none */
    bool is_fenced;                /* the next stores to the NIC are releases */
    bool is_out_of_memory;         /* an event was lost */
};

/* Append to the lane's events (hw/soft/record.c). */
#ifdef __cplusplus
extern "C"
#endif
    void
    bell_soft_record(struct bell_lane *lane, const struct bell_note *note);

BELL_STEP uint64_t bell_port_now(struct bell_lane *lane)
{
    struct timespec t;
    (void)lane;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return ((uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec) * 1000u;
}

BELL_STEP void bell_port_work(struct bell_lane *lane, enum bell_work work)
{
    (void)lane;
    (void)work;
}

BELL_STEP void bell_soft_publishing(struct bell_lane *lane)
{
    if (lane->soft->is_traced)
        lane->early_seq = __atomic_add_fetch(&lane->soft->seq, 1, __ATOMIC_RELAXED);
}

BELL_STEP uint64_t bell_port_load(struct bell_lane *lane, enum bell_memory memory, const uint64_t *word)
{
    (void)lane;
    (void)memory;
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

BELL_STEP uint64_t bell_port_load_acquire(struct bell_lane *lane, enum bell_memory memory, const uint64_t *word)
{
    (void)lane;
    (void)memory;
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

BELL_STEP void bell_port_store(struct bell_lane *lane, enum bell_memory memory, uint64_t *word, uint64_t value)
{
    (void)memory;
    lane->early_seq = 0;
    __atomic_store_n(word, value, __ATOMIC_RELAXED);
}

BELL_STEP void bell_port_store_release(struct bell_lane *lane, enum bell_memory memory, uint64_t *word, uint64_t value)
{
    (void)memory;
    bell_soft_publishing(lane);
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

BELL_STEP bool bell_port_cas(struct bell_lane *lane, enum bell_memory memory, uint64_t *word, uint64_t expected,
                             uint64_t desired)
{
    (void)memory;
    bell_soft_publishing(lane);
    return __atomic_compare_exchange_n(word, &expected, desired, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

BELL_STEP uint64_t bell_port_fetch_add(struct bell_lane *lane, enum bell_memory memory, uint64_t *word, uint64_t by)
{
    (void)memory;
    bell_soft_publishing(lane);
    return __atomic_fetch_add(word, by, __ATOMIC_RELAXED);
}

BELL_STEP void bell_port_store_wqe(struct bell_lane *lane, enum bell_memory memory, uint8_t *to, const uint8_t *from,
                                   size_t size)
{
    (void)lane;
    (void)memory;
    memcpy(to, from, size);
}

BELL_STEP void bell_port_fence(struct bell_lane *lane, enum bell_scope scope)
{
    if (scope != BELL_SCOPE_NONE)
        lane->is_fenced = true;
}

BELL_STEP void bell_port_store_dbrec(struct bell_lane *lane, enum bell_memory memory, uint32_t *dbrec, uint32_t value,
                                     enum bell_scope scope)
{
    (void)memory;
    bell_soft_publishing(lane);
    /* Two calls, because an order chosen at run time becomes the strongest one. */
    if (scope != BELL_SCOPE_NONE || lane->is_fenced)
        __atomic_store_n(dbrec, value, __ATOMIC_RELEASE);
    else
        __atomic_store_n(dbrec, value, __ATOMIC_RELAXED);
}

BELL_STEP void bell_port_store_doorbell(struct bell_lane *lane, uint64_t *doorbell, uint64_t value,
                                        enum bell_scope scope, bool blueflame)
{
    (void)blueflame;
    bell_soft_publishing(lane);
    /* Two calls, because an order chosen at run time becomes the strongest one. */
    if (scope != BELL_SCOPE_NONE || lane->is_fenced)
        __atomic_store_n(doorbell, value, __ATOMIC_RELEASE);
    else
        __atomic_store_n(doorbell, value, __ATOMIC_RELAXED);
    lane->is_fenced = false;
}

BELL_STEP uint32_t bell_port_load_cqe_tail(struct bell_lane *lane, enum bell_memory memory, const struct bell_cqe *cqe)
{
    (void)memory;
    lane->early_seq = 0;
    return __atomic_load_n((const uint32_t *)(const void *)&cqe->wqe_counter_be, __ATOMIC_ACQUIRE);
}

/* Two 8 B stores, the one with the validity bit last: the CPU has no 16 B store that a thread sanitizer knows. */
BELL_STEP void bell_port_store_entry(struct bell_lane *lane, struct bell_entry *entry, const struct bell_entry *value,
                                     enum bell_scope scope, const void *key)
{
    (void)scope;
    (void)key;
    bell_soft_publishing(lane);
    __atomic_store_n(&entry->lo, value->lo, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->hi, value->hi, __ATOMIC_RELEASE);
}

BELL_STEP bool bell_port_load_entry(struct bell_lane *lane, const struct bell_entry *entry, uint32_t parity,
                                    struct bell_entry *out)
{
    (void)lane;
    out->hi = __atomic_load_n(&entry->hi, __ATOMIC_ACQUIRE);
    if (out->hi >> 63 != parity)
        return false;
    out->lo = __atomic_load_n(&entry->lo, __ATOMIC_RELAXED);
    return true;
}

BELL_STEP uint64_t bell_port_load_doorbell(struct bell_lane *lane, const uint64_t *doorbell)
{
    (void)lane;
    return __atomic_load_n(doorbell, __ATOMIC_ACQUIRE);
}

BELL_STEP uint32_t bell_port_load_dbrec(struct bell_lane *lane, const uint32_t *dbrec)
{
    (void)lane;
    return __atomic_load_n(dbrec, __ATOMIC_ACQUIRE);
}

BELL_STEP void bell_port_store_cqe(struct bell_lane *lane, struct bell_cqe *cqe, const struct bell_cqe *value,
                                   const void *key)
{
    (void)key;
    bell_soft_publishing(lane);
    memcpy(cqe, value, BELL_CQE_TAIL_OFFSET);
    __atomic_store_n((uint32_t *)(void *)&cqe->wqe_counter_be, bell_cqe_tail(value), __ATOMIC_RELEASE);
}

BELL_STEP void bell_port_read_bytes(struct bell_lane *lane, uint8_t *to, const uint8_t *from, size_t size)
{
    (void)lane;
    memcpy(to, from, size);
}

BELL_STEP void bell_port_write_bytes(struct bell_lane *lane, uint8_t *to, const uint8_t *from, size_t size)
{
    bell_soft_publishing(lane);
    if (size < 8 || (uintptr_t)(to + size) % 8 != 0) {
        memcpy(to, from, size);
        return;
    }
    uint64_t last;
    memcpy(&last, from + size - 8, sizeof last);
    memcpy(to, from, size - 8);
    __atomic_store_n((uint64_t *)(void *)(to + size - 8), last, __ATOMIC_RELEASE);
}

BELL_STEP void bell_soft_note(struct bell_lane *lane, const struct bell_note *note)
{
    if (lane->soft->is_traced)
        bell_soft_record(lane, note);
}
#define bell_port_note bell_soft_note

/* Spins briefly, then yields; looks at the clock only now and then. */
BELL_STEP enum bell_status bell_port_wait(struct bell_lane *lane, const void *key,
                                          bool (*done)(struct bell_lane *, void *), void *context, const char *what)
{
    uint64_t end_ps = 0;
    (void)key;
    for (uint32_t turn = 0; !done(lane, context); turn++) {
        if (lane->soft->idle)
            lane->soft->idle(lane->soft->idle_context);
        if (turn % 64 != 63)
            continue;
        lane->id.waited_for = what;
        if (__atomic_load_n(&lane->soft->stop, __ATOMIC_RELAXED))
            return BELL_STOPPED;
        uint64_t now_ps = bell_port_now(lane);
        if (end_ps == 0)
            end_ps = now_ps + lane->soft->bound_ps;
        else if (now_ps > end_ps)
            return BELL_TIMEOUT;
        (void)sched_yield();
    }
    lane->id.waited_for = NULL;
    return BELL_OK;
}

BELL_STEP bool bell_port_is_leader(struct bell_lane *lane)
{
    return lane->id.group_rank == 0;
}

BELL_STEP bool bell_soft_turned(struct bell_lane *lane, void *context)
{
    return __atomic_load_n(&lane->group->turn, __ATOMIC_ACQUIRE) != *(uint32_t *)context;
}

/* Leaves early, with BELL_TIMEOUT or BELL_STOPPED, when the others do not come. */
BELL_STEP enum bell_status bell_port_group_sync(struct bell_lane *lane)
{
    if (!lane->group)
        return BELL_OK;
    uint32_t turn = __atomic_load_n(&lane->group->turn, __ATOMIC_ACQUIRE);
    if (__atomic_add_fetch(&lane->group->arrived, 1, __ATOMIC_ACQ_REL) == lane->id.group_size) {
        __atomic_store_n(&lane->group->arrived, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&lane->group->turn, turn + 1, __ATOMIC_RELEASE);
        return BELL_OK;
    }
    return bell_port_wait(lane, &lane->group->turn, bell_soft_turned, &turn,
                          "the lanes of its group");
}

/* The leader's *value to everybody. */
BELL_STEP enum bell_status bell_port_broadcast(struct bell_lane *lane, uint64_t *value)
{
    if (!lane->group)
        return BELL_OK;
    if (lane->id.group_rank == 0)
        lane->group->value = *value;
    enum bell_status s = bell_port_group_sync(lane);
    if (s != BELL_OK)
        return s;
    *value = lane->group->value;
    return bell_port_group_sync(lane);
}

#endif
