// SPDX-License-Identifier: Apache-2.0
// The software NIC as a kernel: one thread a queue, the same stages as on the CPU (core/nic.h).  It serves queues in
// GPU memory, which a CPU thread cannot read.  Also the two kernels that relate a GPU's clocks to the host's.
#include "hw/cuda/lane.cuh"

#include "core/nic.h"

__device__ __forceinline__ uint32_t load_done(const uint32_t *done)
{
    uint32_t v;
    asm volatile("ld.relaxed.gpu.global.b32 %0, [%1];" : "=r"(v) : "l"(done) : "memory");
    return v;
}

/* Everything that is there now.  BELL_EMPTY: nothing. */
__device__ __forceinline__ enum bell_status serve(struct bell_lane *lane, struct bell_nicq *q)
{
    struct bell_nic_work work;
    enum bell_status s = bell_nic_take(lane, q);
    if (s == BELL_EMPTY && q->recover_ps) s = bell_nic_recover(lane, q, bell_port_now(lane));
    if (s != BELL_OK) return s;
    lane->id.step_start_ps = bell_port_now(lane);
    while (bell_nic_fetch(lane, q, &work) == BELL_OK) {
        bell_nic_execute(lane, q, &work);
        bell_nic_complete(lane, q, &work);
    }
    return BELL_OK;
}

template <bool TRACED> __global__ void nic(const __grid_constant__ struct bell_cuda_nic a)
{
    uint32_t number = blockIdx.x * blockDim.x + threadIdx.x;
    if (number >= a.queues) return;
    struct bell_lane lane;
    memset(&lane, 0, sizeof lane);
    lane.common = a.common;
    lane.id.rank = (uint16_t)a.rank;
    lane.id.lane = (uint16_t)(a.first_lane + number);
    lane.id.actor = BELL_ACTOR_NIC;
    lane.id.group_size = 1;
    lane.is_traced = TRACED;
    if (TRACED) {
        lane.log.event = a.event + (size_t)number * a.capacity;
        lane.log.capacity = a.capacity;
    }
    bell_cuda_set_clock(&lane, a.ps_per_kcycle);
    struct bell_nicq *q = a.nicq + number;
    enum bell_status s = BELL_OK;
    for (uint32_t turn = 1; !bell_is_failure(s); turn++) {
        bool is_last = load_done(a.done) == a.lanes;
        s = serve(&lane, q);
        if (is_last || (turn % 1024 == 0 && bell_cuda_is_stopped(&lane))) break;
    }
    a.end[number].events = lane.log.count;
    a.end[number].status = (uint32_t)s;
    __threadfence_system();
    if (bell_is_failure(s)) *(volatile uint32_t *)&a.common->failed = 1;
}

const void *bell_cuda_nic_kernel(bool is_traced)
{
    return is_traced ? (const void *)nic<true> : (const void *)nic<false>;
}

__global__ void spin(const __grid_constant__ struct bell_cuda_clock a)
{
    uint64_t began_ns = bell_cuda_timer_ns(), began = bell_cuda_clock(), now_ns;
    do {
        now_ns = bell_cuda_timer_ns();
    } while (now_ns - began_ns < a.ns);
    a.out[0] = bell_cuda_clock() - began;
    a.out[1] = now_ns - began_ns;
}

const void *bell_cuda_clock_kernel(void)
{
    return (const void *)spin;
}

__global__ void echo(const __grid_constant__ struct bell_cuda_echo a)
{
    uint64_t end_ns = bell_cuda_timer_ns() + a.bound_ns;
    for (uint64_t i = 1; i <= a.count; i++) {
        while (*a.ask != i)
            if (bell_cuda_timer_ns() > end_ns) return;
        *a.answer = bell_cuda_timer_ns();
        __threadfence_system();
        *a.answered = i;
    }
}

const void *bell_cuda_echo_kernel(void)
{
    return (const void *)echo;
}
