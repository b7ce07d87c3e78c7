/* SPDX-License-Identifier: Apache-2.0
 * The port for GPU threads: PTX, so that scope and kind of each access are what the name says (PTX ISA, memory
 * consistency model; sm_70 and later).  Device code only.
 *
 * Words and queues in GPU memory are shared by lanes of one GPU: gpu scope.  What a CPU or a NIC reads or writes is at
 * system scope, wherever it lies.  A doorbell is a st.mmio when nothing else is asked of it.  Words of a queue that one
 * lane owns are the lane's own, and so may live in its registers. */
#ifndef BELL_HW_CUDA_PORT_IMPL_H
#define BELL_HW_CUDA_PORT_IMPL_H

#include "hw/cuda/launch.h"

struct bell_lane {
    struct bell_lane_id id;
    const struct bell_cuda_common *common;
    struct bell_cuda_log log;    /* traced runs: this lane's events */
    uint64_t base_ps, base_clock; /* the same moment in picoseconds and SM cycles */
    uint64_t ps_per_kcycle;      /* of 1024 cycles */
    uint64_t bound_ns;           /* of a wait */
    uint32_t group_mask;         /* lanes of its warp that act together; 0: the whole CTA */
    bool is_private;             /* the queue's words are this lane's */
    bool is_traced;
};

__device__ __forceinline__ uint64_t bell_cuda_clock(void)
{
    uint64_t t;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(t)::"memory");
    return t;
}

__device__ __forceinline__ uint64_t bell_cuda_timer_ns(void)
{
    uint64_t t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
    return t;
}

BELL_STEP uint64_t bell_port_now(struct bell_lane *lane)
{
    return lane->base_ps + (((bell_cuda_clock() - lane->base_clock) * lane->ps_per_kcycle) >> 10);
}

BELL_STEP void bell_port_work(struct bell_lane *lane, enum bell_work work)
{
    (void)lane;
    (void)work;
}

BELL_STEP uint64_t bell_port_load(struct bell_lane *lane, enum bell_memory memory, const uint64_t *word)
{
    uint64_t v;
    if (lane->is_private)
        return *word;
    if (memory == BELL_MEMORY_GPU)
        asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(word) : "memory");
    else
        asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(word) : "memory");
    return v;
}

BELL_STEP uint64_t bell_port_load_acquire(struct bell_lane *lane, enum bell_memory memory, const uint64_t *word)
{
    uint64_t v;
    (void)lane;
    if (memory == BELL_MEMORY_GPU)
        asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(word) : "memory");
    else
        asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(word) : "memory");
    return v;
}

BELL_STEP void bell_port_store(struct bell_lane *lane, enum bell_memory memory, uint64_t *word, uint64_t value)
{
    if (lane->is_private)
        *word = value;
    else if (memory == BELL_MEMORY_GPU)
        asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
    else
        asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

BELL_STEP void bell_port_store_release(struct bell_lane *lane, enum bell_memory memory, uint64_t *word, uint64_t value)
{
    (void)lane;
    if (memory == BELL_MEMORY_GPU)
        asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
    else
        asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

BELL_STEP bool bell_port_cas(struct bell_lane *lane, enum bell_memory memory, uint64_t *word, uint64_t expected,
                             uint64_t desired)
{
    uint64_t old;
    (void)lane;
    if (memory == BELL_MEMORY_GPU)
        asm volatile("atom.acq_rel.gpu.global.cas.b64 %0, [%1], %2, %3;"
                     : "=l"(old) : "l"(word), "l"(expected), "l"(desired) : "memory");
    else
        asm volatile("atom.acq_rel.sys.global.cas.b64 %0, [%1], %2, %3;"
                     : "=l"(old) : "l"(word), "l"(expected), "l"(desired) : "memory");
    return old == expected;
}

BELL_STEP uint64_t bell_port_fetch_add(struct bell_lane *lane, enum bell_memory memory, uint64_t *word, uint64_t by)
{
    uint64_t old;
    (void)lane;
    if (memory == BELL_MEMORY_GPU)
        asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], %2;" : "=l"(old) : "l"(word), "l"(by) : "memory");
    else
        asm volatile("atom.relaxed.sys.global.add.u64 %0, [%1], %2;" : "=l"(old) : "l"(word), "l"(by) : "memory");
    return old;
}

/* size is a multiple of 16, as segments are. */
BELL_STEP void bell_port_store_wqe(struct bell_lane *lane, enum bell_memory memory, uint8_t *to, const uint8_t *from,
                                   size_t size)
{
    (void)lane;
    (void)memory;
#pragma unroll
    for (size_t at = 0; at < BELL_WQE_BLOCK_BYTES; at += BELL_WQE_SEGMENT_BYTES) {
        uint64_t v[2];
        if (at >= size)
            break;
        memcpy(v, from + at, sizeof v);
        asm volatile("st.global.v2.b64 [%0], {%1, %2};" ::"l"(to + at), "l"(v[0]), "l"(v[1]) : "memory");
    }
}

/* What the queue logic asks of a fence is release; acquire would empty the L1 cache too. */
BELL_STEP void bell_port_fence(struct bell_lane *lane, enum bell_scope scope)
{
    (void)lane;
    switch (scope) {
    case BELL_SCOPE_NONE:
    case BELL_SCOPES:
        break;
    case BELL_SCOPE_GPU:
        asm volatile("fence.release.gpu;" ::: "memory");
        break;
    case BELL_SCOPE_GPU_SC:
        asm volatile("fence.sc.gpu;" ::: "memory");
        break;
    case BELL_SCOPE_SYS:
        asm volatile("fence.release.sys;" ::: "memory");
        break;
    case BELL_SCOPE_SYS_SC:
        asm volatile("fence.sc.sys;" ::: "memory");
        break;
    }
}

BELL_STEP void bell_port_store_dbrec(struct bell_lane *lane, enum bell_memory memory, uint32_t *dbrec, uint32_t value,
                                     enum bell_scope scope)
{
    (void)lane;
    (void)memory;
    if (scope == BELL_SCOPE_NONE)
        asm volatile("st.relaxed.sys.global.b32 [%0], %1;" ::"l"(dbrec), "r"(value) : "memory");
    else if (scope == BELL_SCOPE_GPU)
        asm volatile("st.release.gpu.global.b32 [%0], %1;" ::"l"(dbrec), "r"(value) : "memory");
    else
        asm volatile("st.release.sys.global.b32 [%0], %1;" ::"l"(dbrec), "r"(value) : "memory");
}

/* A BlueFlame copy is a matter of the register; the software NIC has none, and fetches. */
BELL_STEP void bell_port_store_doorbell(struct bell_lane *lane, uint64_t *doorbell, uint64_t value,
                                        enum bell_scope scope, bool blueflame)
{
    (void)lane;
    (void)blueflame;
    if (scope == BELL_SCOPE_NONE)
        asm volatile("st.mmio.relaxed.sys.global.b64 [%0], %1;" ::"l"(doorbell), "l"(value) : "memory");
    else if (scope == BELL_SCOPE_GPU)
        asm volatile("st.release.gpu.global.b64 [%0], %1;" ::"l"(doorbell), "l"(value) : "memory");
    else
        asm volatile("st.release.sys.global.b64 [%0], %1;" ::"l"(doorbell), "l"(value) : "memory");
}

BELL_STEP uint32_t bell_port_load_cqe_tail(struct bell_lane *lane, enum bell_memory memory, const struct bell_cqe *cqe)
{
    uint32_t v;
    (void)lane;
    (void)memory;
    asm volatile("ld.acquire.sys.global.b32 %0, [%1];"
                 : "=r"(v) : "l"((const uint8_t *)cqe + BELL_CQE_TAIL_OFFSET) : "memory");
    return v;
}

/* b128, because only that store is one access; a v2.b64 may be torn. */
BELL_STEP void bell_port_store_entry(struct bell_lane *lane, struct bell_entry *entry, const struct bell_entry *value,
                                     enum bell_scope scope, const void *key)
{
    (void)lane;
    (void)key;
    if (scope == BELL_SCOPE_NONE)
        asm volatile("{ .reg .b128 v; mov.b128 v, {%1, %2}; st.relaxed.sys.global.b128 [%0], v; }" ::"l"(entry),
                     "l"(value->lo), "l"(value->hi) : "memory");
    else
        asm volatile("{ .reg .b128 v; mov.b128 v, {%1, %2}; st.release.sys.global.b128 [%0], v; }" ::"l"(entry),
                     "l"(value->lo), "l"(value->hi) : "memory");
}

BELL_STEP bool bell_port_load_entry(struct bell_lane *lane, const struct bell_entry *entry, uint32_t parity,
                                    struct bell_entry *out)
{
    (void)lane;
    asm volatile("{ .reg .b128 v; ld.acquire.sys.global.b128 v, [%2]; mov.b128 {%0, %1}, v; }"
                 : "=l"(out->lo), "=l"(out->hi) : "l"(entry) : "memory");
    return out->hi >> 63 == parity;
}

BELL_STEP uint64_t bell_port_load_doorbell(struct bell_lane *lane, const uint64_t *doorbell)
{
    uint64_t v;
    (void)lane;
    asm volatile("ld.acquire.sys.global.b64 %0, [%1];" : "=l"(v) : "l"(doorbell) : "memory");
    return v;
}

BELL_STEP uint32_t bell_port_load_dbrec(struct bell_lane *lane, const uint32_t *dbrec)
{
    uint32_t v;
    (void)lane;
    asm volatile("ld.acquire.sys.global.b32 %0, [%1];" : "=r"(v) : "l"(dbrec) : "memory");
    return v;
}

BELL_STEP void bell_port_store_cqe(struct bell_lane *lane, struct bell_cqe *cqe, const struct bell_cqe *value,
                                   const void *key)
{
    (void)lane;
    (void)key;
    for (uint32_t at = 0; at < BELL_CQE_TAIL_OFFSET; at += 4) {
        uint32_t v;
        memcpy(&v, (const uint8_t *)value + at, sizeof v);
        asm volatile("st.relaxed.sys.global.b32 [%0], %1;" ::"l"((uint8_t *)cqe + at), "r"(v) : "memory");
    }
    asm volatile("st.release.sys.global.b32 [%0], %1;" ::"l"((uint8_t *)cqe + BELL_CQE_TAIL_OFFSET),
                 "r"(bell_cqe_tail(value)) : "memory");
}

/* Words of 8 bytes where both ends are aligned, as WQEs and the program's payloads are; to may be a lane's own. */
BELL_STEP void bell_port_read_bytes(struct bell_lane *lane, uint8_t *to, const uint8_t *from, size_t size)
{
    (void)lane;
    for (size_t at = 0; at < size; at += 8) {
        uint64_t v;
        asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(from + at) : "memory");
        memcpy(to + at, &v, sizeof v);
    }
}

BELL_STEP void bell_port_write_bytes(struct bell_lane *lane, uint8_t *to, const uint8_t *from, size_t size)
{
    (void)lane;
    for (size_t at = 0; at < size; at += 8) {
        uint64_t v;
        memcpy(&v, from + at, sizeof v);
        if (at + 8 < size)
            asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(to + at), "l"(v) : "memory");
        else
            asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(to + at), "l"(v) : "memory");
    }
}

BELL_STEP void bell_cuda_record(struct bell_lane *lane, const struct bell_note *note)
{
    struct bell_cuda_log *log = &lane->log;
    uint64_t now_ps = bell_port_now(lane);
    uint64_t start_ps = note->kind == BELL_EVENT_OP ? lane->id.op_start_ps : lane->id.step_start_ps;
    lane->id.step_start_ps = now_ps;
    if (log->count++ >= log->capacity)
        return;
    struct bell_event *e = log->event + log->count - 1;
    e->seq = e->cause = 0;
    e->start_ps = start_ps;
    e->duration_ps = now_ps - start_ps;
    e->index = note->index;
    e->count = note->count;
    e->bytes = note->bytes;
    e->rank = lane->id.rank;
    e->lane = lane->id.lane;
    e->queue = note->queue;
    e->kind = (uint8_t)note->kind;
    e->scope = (uint8_t)note->scope;
    e->actor = (uint8_t)lane->id.actor;
}

BELL_STEP void bell_cuda_note(struct bell_lane *lane, const struct bell_note *note)
{
    if (lane->is_traced)
        bell_cuda_record(lane, note);
}
#define bell_port_note bell_cuda_note

BELL_STEP bool bell_cuda_is_stopped(const struct bell_lane *lane)
{
    uint32_t v;
    asm volatile("ld.relaxed.sys.global.b32 %0, [%1];" : "=r"(v) : "l"(&lane->common->stop) : "memory");
    return v != 0;
}

/* Looks at the timer, and at what others say across the bus, only now and then. */
BELL_STEP enum bell_status bell_port_wait(struct bell_lane *lane, const void *key,
                                          bool (*done)(struct bell_lane *, void *), void *context, const char *what)
{
    uint64_t end_ns = 0;
    (void)key;
    for (uint32_t turn = 1; !done(lane, context); turn++) {
        if (turn % 256)
            continue;
        lane->id.waited_for = what;
        uint64_t now_ns = bell_cuda_timer_ns();
        if (end_ns == 0)
            end_ns = now_ns + lane->bound_ns;
        else if (now_ns > end_ns)
            return BELL_TIMEOUT;
        if (bell_cuda_is_stopped(lane))
            return BELL_STOPPED;
    }
    lane->id.waited_for = NULL;
    return BELL_OK;
}

BELL_STEP bool bell_port_is_leader(struct bell_lane *lane)
{
    return lane->id.group_rank == 0;
}

/* Threads that have left count as arrived, so a group whose lane failed does not hang. */
BELL_STEP enum bell_status bell_port_group_sync(struct bell_lane *lane)
{
    if (lane->group_mask)
        __syncwarp(lane->group_mask);
    else
        __syncthreads();
    return BELL_OK;
}

BELL_STEP enum bell_status bell_port_broadcast(struct bell_lane *lane, uint64_t *value)
{
    if (lane->group_mask) {
        *value = __shfl_sync(lane->group_mask, *value, __ffs((int)lane->group_mask) - 1);
        return BELL_OK;
    }
    __shared__ uint64_t leaders;
    if (lane->id.group_rank == 0)
        leaders = *value;
    __syncthreads();
    *value = leaders;
    __syncthreads();
    return BELL_OK;
}

#endif
