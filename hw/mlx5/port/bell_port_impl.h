/* SPDX-License-Identifier: Apache-2.0
 * The port for CPU threads that post to a real NIC: queues in memory that the NIC reads and writes, a doorbell that is
 * a device register.
 *
 * Between threads it is the C11 memory model, as in the soft port.  Towards the NIC it does what rdma-core does before
 * and after a doorbell (util/udma_barrier.h and providers/mlx5/qp.c):
 *   fence            orders earlier stores to memory before later ones, as the NIC sees them (udma_to_device_barrier)
 *   store_dbrec      4 B release store
 *   store_doorbell   keeps the register store behind everything before it, also where the register is mapped write
 *                    combining (mmio_wc_start), 8 B or one 64 B block of BlueFlame, then empties the write-combining
 *                    buffer (mmio_flush_writes)
 *   load_cqe_tail    acquire, then udma_from_device_barrier
 * Scopes make no difference to a CPU.  Nothing is traced: deliveries and CQEs happen where nobody notes them. */
#ifndef BELL_HW_MLX5_PORT_IMPL_H
#define BELL_HW_MLX5_PORT_IMPL_H

#include <sched.h>
#include <string.h>
#include <time.h>

#define BELL_MLX5_BLOCK_BYTES 64u

/* What the threads of one run share. */
struct bell_mlx5_team {
    uint64_t bound_ps; /* of a wait */
    uint32_t stop __attribute__((aligned(64))); /* 1: some lane failed, everybody leaves */
};

/* Lanes that act together. */
struct bell_mlx5_group {
    uint64_t value __attribute__((aligned(64)));
    uint32_t arrived, turn;
};

struct bell_lane {
    struct bell_lane_id id;
    struct bell_mlx5_team *team;
    struct bell_mlx5_group *group;            /* NULL: alone */
    bool may_blueflame;                       /* the register of the lane's queue takes whole blocks */
    uint64_t block[BELL_MLX5_BLOCK_BYTES / 8]; /* last WQE block written, for BlueFlame */
};

#if defined(__x86_64__)
#define BELL_MLX5_TO_DEVICE() __asm__ volatile("" ::: "memory")
#define BELL_MLX5_FROM_DEVICE() __asm__ volatile("lfence" ::: "memory")
#define BELL_MLX5_WC() __asm__ volatile("sfence" ::: "memory")
#elif defined(__aarch64__)
#define BELL_MLX5_TO_DEVICE() __asm__ volatile("dmb oshst" ::: "memory")
#define BELL_MLX5_FROM_DEVICE() __asm__ volatile("dmb oshld" ::: "memory")
#define BELL_MLX5_WC() __asm__ volatile("dsb st" ::: "memory")
#else /* no doorbell of a device is rung here (hw/mlx5/mlx5.c says so); the queue logic still has to compile */
#define BELL_MLX5_TO_DEVICE() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define BELL_MLX5_FROM_DEVICE() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define BELL_MLX5_WC() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif

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
    (void)lane;
    (void)memory;
    __atomic_store_n(word, value, __ATOMIC_RELAXED);
}

BELL_STEP void bell_port_store_release(struct bell_lane *lane, enum bell_memory memory, uint64_t *word, uint64_t value)
{
    (void)lane;
    (void)memory;
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

BELL_STEP bool bell_port_cas(struct bell_lane *lane, enum bell_memory memory, uint64_t *word, uint64_t expected,
                             uint64_t desired)
{
    (void)lane;
    (void)memory;
    return __atomic_compare_exchange_n(word, &expected, desired, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

BELL_STEP uint64_t bell_port_fetch_add(struct bell_lane *lane, enum bell_memory memory, uint64_t *word, uint64_t by)
{
    (void)lane;
    (void)memory;
    return __atomic_fetch_add(word, by, __ATOMIC_RELAXED);
}

BELL_STEP void bell_port_store_wqe(struct bell_lane *lane, enum bell_memory memory, uint8_t *to, const uint8_t *from,
                                   size_t size)
{
    (void)memory;
    memcpy(to, from, size);
    if (lane->may_blueflame) {
        memcpy(lane->block, from, size);
        memset((uint8_t *)lane->block + size, 0, sizeof lane->block - size);
    }
}

BELL_STEP void bell_port_fence(struct bell_lane *lane, enum bell_scope scope)
{
    (void)lane;
    if (scope != BELL_SCOPE_NONE)
        BELL_MLX5_TO_DEVICE();
}

BELL_STEP void bell_port_store_dbrec(struct bell_lane *lane, enum bell_memory memory, uint32_t *dbrec, uint32_t value,
                                     enum bell_scope scope)
{
    (void)lane;
    (void)memory;
    (void)scope;
    __atomic_store_n(dbrec, value, __ATOMIC_RELEASE);
}

/* Shared with the forwarder: ring a register. */
BELL_STEP void bell_mlx5_ring(uint64_t *doorbell, uint64_t value)
{
    BELL_MLX5_WC();
    __atomic_store_n(doorbell, value, __ATOMIC_RELEASE);
    BELL_MLX5_WC();
}

/* The first half of the BlueFlame register only, emptied after each WQE, so that halves need not take turns. */
BELL_STEP void bell_port_store_doorbell(struct bell_lane *lane, uint64_t *doorbell, uint64_t value,
                                        enum bell_scope scope, bool blueflame)
{
    (void)scope;
    if (!blueflame || !lane->may_blueflame) {
        bell_mlx5_ring(doorbell, value);
        return;
    }
    BELL_MLX5_WC();
    for (size_t i = 1; i < BELL_MLX5_BLOCK_BYTES / 8; i++)
        __atomic_store_n(doorbell + i, lane->block[i], __ATOMIC_RELAXED);
    __atomic_store_n(doorbell, lane->block[0], __ATOMIC_RELEASE); /* last, for a NIC in software */
    BELL_MLX5_WC();
}

BELL_STEP uint32_t bell_port_load_cqe_tail(struct bell_lane *lane, enum bell_memory memory, const struct bell_cqe *cqe)
{
    (void)lane;
    (void)memory;
    uint32_t tail = __atomic_load_n((const uint32_t *)(const void *)&cqe->wqe_counter_be, __ATOMIC_ACQUIRE);
    BELL_MLX5_FROM_DEVICE();
    return tail;
}

/* Two 8 B stores, the one with the validity bit last. */
BELL_STEP void bell_port_store_entry(struct bell_lane *lane, struct bell_entry *entry, const struct bell_entry *value,
                                     enum bell_scope scope, const void *key)
{
    (void)lane;
    (void)scope;
    (void)key;
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

/* What follows is the NIC's side.  The NIC is a device here; core/nic.h asks for the names. */
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
    (void)lane;
    (void)key;
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
    (void)lane;
    memcpy(to, from, size);
}

#define bell_port_note(lane, note) ((void)(lane), (void)(note))

/* Spins briefly, then yields; looks at the clock only now and then. */
BELL_STEP enum bell_status bell_port_wait(struct bell_lane *lane, const void *key,
                                          bool (*done)(struct bell_lane *, void *), void *context, const char *what)
{
    uint64_t end_ps = 0;
    (void)key;
    for (uint32_t turn = 0; !done(lane, context); turn++) {
        if (turn % 64 != 63)
            continue;
        lane->id.waited_for = what;
        if (__atomic_load_n(&lane->team->stop, __ATOMIC_RELAXED))
            return BELL_STOPPED;
        uint64_t now_ps = bell_port_now(lane);
        if (end_ps == 0)
            end_ps = now_ps + lane->team->bound_ps;
        else if (now_ps > end_ps)
            return BELL_TIMEOUT;
        (void)sched_yield();
    }
    BELL_MLX5_FROM_DEVICE(); /* what the NIC wrote before what was seen */
    lane->id.waited_for = NULL;
    return BELL_OK;
}

BELL_STEP bool bell_port_is_leader(struct bell_lane *lane)
{
    return lane->id.group_rank == 0;
}

BELL_STEP bool bell_mlx5_turned(struct bell_lane *lane, void *context)
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
    return bell_port_wait(lane, &lane->group->turn, bell_mlx5_turned, &turn, "the lanes of its group");
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
