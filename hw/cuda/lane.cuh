/* SPDX-License-Identifier: Apache-2.0
 * A lane's life on the GPU: take its descriptors to registers, run the program, write back what it changed. */
#ifndef BELL_HW_CUDA_LANE_CUH
#define BELL_HW_CUDA_LANE_CUH

#include "core/client.h"

/* The moment at which globaltimer ticks, in both clocks: its resolution may be coarser than an event. */
__device__ __forceinline__ void bell_cuda_set_clock(struct bell_lane *lane, uint64_t ps_per_kcycle)
{
    uint64_t first = bell_cuda_timer_ns(), now;
    do {
        now = bell_cuda_timer_ns();
    } while (now == first);
    lane->base_clock = bell_cuda_clock();
    lane->base_ps = now * 1000;
    lane->ps_per_kcycle = ps_per_kcycle;
}

__device__ __forceinline__ void bell_cuda_set_group(struct bell_lane *lane, uint32_t number, uint32_t share)
{
    uint32_t in_warp = threadIdx.x % 32;
    lane->id.group_rank = (uint16_t)(number % share);
    lane->id.group_size = (uint16_t)share;
    lane->group_mask = share > 32 ? 0 : share == 32 ? 0xffffffffu : ((1u << share) - 1) << (in_warp / share * share);
}

__device__ __forceinline__ void bell_cuda_end(const struct bell_cuda_lanes *a, const struct bell_lane *lane,
                                              const struct bell_client *c, uint32_t number, enum bell_status s)
{
    struct bell_client *theirs = a->client + number;
    struct bell_cuda_end *end = a->end + number;
    theirs->puts = c->puts;
    theirs->began_ps = c->began_ps;
    theirs->ended_ps = c->ended_ps;
    theirs->completion = c->completion;
    end->events = lane->log.count;
    const char *what = lane->id.waited_for;
    uint32_t i = 0;
    for (; what && what[i] && i + 1 < sizeof end->waited_for; i++)
        end->waited_for[i] = what[i];
    end->waited_for[i] = '\0';
    end->status = (uint32_t)s;
    __threadfence_system();
    if (bell_is_failure(s))
        *(volatile uint32_t *)&a->common->failed = 1;
}

/* ordering, sharing and so on of *stack are constants where this is inlined. */
__device__ __forceinline__ void bell_cuda_live(const struct bell_cuda_lanes *a, const struct bell_stack *stack,
                                               bool is_traced)
{
    uint32_t number = blockIdx.x * blockDim.x + threadIdx.x;
    if (number >= a->lanes)
        return;
    struct bell_lane lane;
    memset(&lane, 0, sizeof lane);
    lane.common = a->common;
    lane.id.rank = (uint16_t)a->rank;
    lane.id.lane = (uint16_t)number;
    lane.id.actor = BELL_ACTOR_GPU;
    lane.bound_ns = a->bound_ns;
    lane.is_traced = is_traced;
    lane.is_private = stack->submit == BELL_SUBMIT_GPU && stack->sharing == BELL_SHARING_OWNER;
    if (is_traced) {
        lane.log.event = a->event + (size_t)number * a->capacity;
        lane.log.capacity = a->capacity;
    }
    bell_cuda_set_group(&lane, number, a->share);
    struct bell_client client = a->client[number];
    struct bell_sq sq = *client.sq;
    struct bell_sq_words words = *sq.words;
    struct bell_ring ring;
    if (lane.is_private)
        sq.words = &words;
    if (stack->submit == BELL_SUBMIT_PROXY)
        ring = *client.ring;
    struct bell_program program = a->program;
    client.stack = stack;
    client.program = &program;
    client.sq = &sq;
    client.ring = &ring;
    if (a->issue_ps && number < bell_program_counted(&a->program)) {
        client.issue_ps = a->issue_ps + (size_t)number * a->program.iterations;
        client.total_ps = a->total_ps + (size_t)number * a->program.iterations;
    }
    bell_cuda_set_clock(&lane, a->ps_per_kcycle);
    lane.id.step_start_ps = bell_port_now(&lane);
    enum bell_status s = bell_client_run(&lane, &client);
    if (lane.is_private)
        *a->client[number].sq->words = words;
    bell_cuda_end(a, &lane, &client, number, s);
    atomicAdd(a->done, 1u);
}

#endif
