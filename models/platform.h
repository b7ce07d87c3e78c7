/* SPDX-License-Identifier: Apache-2.0
 * A platform: what each primitive of the queue logic costs on one kind of machine.
 *
 * A cost is {cycles, ps}: T(f) = cycles / f + ps at the clock f of the processor that pays it.  A posted write takes
 * half the read round trip of its path; a read takes all of it. */
#ifndef BELL_MODELS_PLATFORM_H
#define BELL_MODELS_PLATFORM_H

#include "core/field.h"

BELL_EXTERN_C_BEGIN

enum bell_cpu_state { BELL_CPU_COLD, BELL_CPU_WARM };

struct bell_cost {
    double cycles;
    double ps;
};

struct bell_platform {
    char name[24];
    double gpu_clock_mhz;
    struct bell_cost gpu_post;           /* a put's address arithmetic and call, besides the rest below */
    struct bell_cost gpu_enqueue;        /* the same for a proxy descriptor */
    struct bell_cost gpu_store;          /* issue one store of up to 16 B */
    struct bell_cost gpu_segment;        /* each 16 B of a WQE past the third, on top of its store */
    struct bell_cost gpu_drain;          /* a fence with WQE stores still on their way, on top of it */
    struct bell_cost gpu_host_drain;     /* a system fence with stores to host memory on their way, on top of it */
    struct bell_cost gpu_fence_gpu;      /* fence.release.gpu, or a release store at that scope */
    struct bell_cost gpu_fence_gpu_sc;   /* fence.sc.gpu */
    struct bell_cost gpu_fence_sys;      /* fence.release.sys, or a release store at that scope */
    struct bell_cost gpu_fence_sys_sc;   /* fence.sc.sys */
    struct bell_cost gpu_atomic;         /* atomic on GPU memory */
    struct bell_cost gpu_load;           /* load of GPU memory from L2 */
    struct bell_cost gpu_host_load;      /* load of host memory */
    double cpu_cold_mhz, cpu_warm_mhz;
    int32_t cpu_state;                   /* enum bell_cpu_state */
    struct bell_cost cpu_post;           /* a worker: descriptor seen to doorbell stored */
    struct bell_cost cpu_complete;       /* a worker: CQE seen to counter stored */
    double cpu_stall_cold_ps, cpu_stall_warm_ps; /* time a worker loses now and then */
    double cpu_stall_percent;            /* of descriptors that meet a stall */
    double pcie_gpu_read_ps;             /* NIC reads GPU memory, round trip */
    double pcie_host_read_ps;            /* NIC reads host memory, round trip */
    double nic_schedule_ps;              /* doorbell seen to WQE fetch issued */
    double nic_dc_ps;                    /* what DC adds in the NIC */
    double nic_cqe_order_ps;             /* what a CQE, unlike payload, waits for before it is seen in GPU memory */
    double nic_queue_wqe_ps;             /* WQEs of one queue follow each other no faster */
    double nic_port_wqe_ps;              /* nor do those of all queues of a port */
    double wire_transmit_ps;             /* WQE in hand to packet at the remote NIC */
    double wire_ack_ps;                  /* packet at the remote NIC to acknowledgement handled */
    double wire_gbps;                    /* line rate */
};

extern const struct bell_field bell_platform_fields[];

/* Picoseconds at a clock; clock_mhz > 0. */
BELL_PURE uint64_t bell_cost_ps(struct bell_cost cost, double clock_mhz)
{
    return (uint64_t)(cost.cycles * 1e6 / clock_mhz + cost.ps + 0.5);
}

BELL_PURE double bell_platform_cpu_mhz(const struct bell_platform *p)
{
    return p->cpu_state == BELL_CPU_WARM ? p->cpu_warm_mhz : p->cpu_cold_mhz;
}

BELL_EXTERN_C_END

#endif
