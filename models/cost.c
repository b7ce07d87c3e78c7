/* SPDX-License-Identifier: Apache-2.0 */
#include "models/cost.h"

#include <string.h>

static uint64_t whole(double ps)
{
    return (uint64_t)(ps + 0.5);
}

void bell_costs_of(const struct bell_platform *p, struct bell_costs *c)
{
    double gpu = p->gpu_clock_mhz, cpu = bell_platform_cpu_mhz(p);
    bool warm = p->cpu_state == BELL_CPU_WARM;
    memset(c, 0, sizeof *c);
    c->fence_ps[BELL_SCOPE_GPU] = bell_cost_ps(p->gpu_fence_gpu, gpu);
    c->fence_ps[BELL_SCOPE_GPU_SC] = bell_cost_ps(p->gpu_fence_gpu_sc, gpu);
    c->fence_ps[BELL_SCOPE_SYS] = bell_cost_ps(p->gpu_fence_sys, gpu);
    c->fence_ps[BELL_SCOPE_SYS_SC] = bell_cost_ps(p->gpu_fence_sys_sc, gpu);
    c->drain_ps = bell_cost_ps(p->gpu_drain, gpu);
    c->host_drain_ps = bell_cost_ps(p->gpu_host_drain, gpu);
    c->store_ps = bell_cost_ps(p->gpu_store, gpu);
    c->segment_ps = bell_cost_ps(p->gpu_segment, gpu);
    c->atomic_ps = bell_cost_ps(p->gpu_atomic, gpu);
    c->post_ps[BELL_ACTOR_GPU] = bell_cost_ps(p->gpu_post, gpu);
    c->enqueue_ps = bell_cost_ps(p->gpu_enqueue, gpu);
    c->post_ps[BELL_ACTOR_CPU] = bell_cost_ps(p->cpu_post, cpu);
    c->complete_ps[BELL_ACTOR_CPU] = bell_cost_ps(p->cpu_complete, cpu);
    c->load_ps[BELL_ACTOR_GPU][BELL_MEMORY_GPU] = bell_cost_ps(p->gpu_load, gpu);
    c->load_ps[BELL_ACTOR_GPU][BELL_MEMORY_HOST] = bell_cost_ps(p->gpu_host_load, gpu);
    c->posted_ps[BELL_ACTOR_GPU][BELL_MEMORY_HOST] = c->load_ps[BELL_ACTOR_GPU][BELL_MEMORY_HOST] / 2;
    c->nic_read_ps[BELL_MEMORY_GPU] = whole(p->pcie_gpu_read_ps);
    c->nic_read_ps[BELL_MEMORY_HOST] = whole(p->pcie_host_read_ps);
    for (int m = 0; m < 2; m++)
        c->nic_write_ps[m] = c->cqe_ps[m] = c->nic_read_ps[m] / 2;
    c->cqe_ps[BELL_MEMORY_GPU] += whole(p->nic_cqe_order_ps);
    /* A CPU reaches GPU memory the way the NIC does. */
    c->posted_ps[BELL_ACTOR_CPU][BELL_MEMORY_GPU] = c->nic_write_ps[BELL_MEMORY_GPU];
    c->doorbell_ps[BELL_ACTOR_GPU] = c->nic_write_ps[BELL_MEMORY_GPU];
    c->doorbell_ps[BELL_ACTOR_CPU] = c->nic_write_ps[BELL_MEMORY_HOST];
    c->schedule_ps = whole(p->nic_schedule_ps);
    c->transmit_ps = whole(p->wire_transmit_ps);
    c->ack_ps = whole(p->wire_ack_ps);
    c->dc_ps = whole(p->nic_dc_ps);
    c->queue_wqe_ps = whole(p->nic_queue_wqe_ps);
    c->port_wqe_ps = whole(p->nic_port_wqe_ps);
    c->stall_ps = whole(warm ? p->cpu_stall_warm_ps : p->cpu_stall_cold_ps);
    c->stall_chance = p->cpu_stall_percent / 100;
    c->ps_per_byte = 8e3 / p->wire_gbps;
}
