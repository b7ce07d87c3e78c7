/* SPDX-License-Identifier: Apache-2.0
 * One rank of a run on its GPU: where its part of the world lies, its kernels, and what they left behind. */
#ifndef BELL_HW_CUDA_RANK_H
#define BELL_HW_CUDA_RANK_H

#include "core/exec.h"
#include "core/world.h"
#include "hw/cuda/gpu.h"

/* What both ranks of a run share.  All pointers are the caller's. */
struct bell_gpu_job {
    struct bell_world *world;
    const struct bell_run *run;
    uint64_t bound_ps;               /* of a wait */
    uint32_t capacity;               /* events that are kept of a lane; 0: a timed run */
    bool has_nic;                    /* the NIC is a kernel */
    bool is_bound;                   /* queues and payload lie where a device knows them, and stay there */
    struct bell_cuda_common *common; /* pinned */
};

struct bell_gpu_rank {
    const struct bell_gpu_job *job;
    uint32_t number;
    struct bell_gpu gpu;
    void *place[BELL_PLACES];        /* on the GPU; NULL: it stays where it is */
    struct bell_cuda_lanes lanes;    /* arguments of the kernels */
    struct bell_cuda_nic nic;
    struct bell_cuda_end *end;       /* pinned: of lanes, then of NIC queues */
    struct nic_copy *nic_copy;       /* host copy of the NIC's descriptors */
};

/* Move what belongs on the GPU there.  What was taken is given back by bell_gpu_rank_leave, also after a failure. */
enum bell_status bell_gpu_rank_place(struct bell_gpu_rank *r, struct bell_error *err) BELL_MUST_USE;

/* Make the kernels' arguments, when both ranks are in place. */
enum bell_status bell_gpu_rank_fill(struct bell_gpu_rank *r, struct bell_error *err) BELL_MUST_USE;

/* SMs that the NIC of this rank takes for itself; 0: it has no kernel. */
uint32_t bell_gpu_rank_nic_sms(const struct bell_gpu_rank *r);

/* Start this rank's NIC, if it is a kernel, and its lanes.  All NICs of a GPU go first: lanes that fill it would keep
 * out the NIC that they wait for.  `others` CTAs of the same kind will be on the same GPU, whose NICs hold `held_sms`.
 * BELL_UNSUPPORTED: they do not fit together. */
enum bell_status bell_gpu_rank_launch_nic(struct bell_gpu_rank *r, uint32_t others,
                                          struct bell_error *err) BELL_MUST_USE;
enum bell_status bell_gpu_rank_launch_lanes(struct bell_gpu_rank *r, uint32_t others, uint32_t held_sms,
                                            struct bell_error *err) BELL_MUST_USE;

/* The kernels are over: bring the world back to host memory, and the samples to *result. */
enum bell_status bell_gpu_rank_fetch(struct bell_gpu_rank *r, struct bell_result *result,
                                     struct bell_error *err) BELL_MUST_USE;

/* The first lane or NIC queue that failed and its status; those that only left because another failed come last.
 * false: none did.  who->waited_for is good until bell_gpu_rank_leave. */
bool bell_gpu_rank_failure(const struct bell_gpu_rank *r, struct bell_lane_id *who, enum bell_status *status);

/* Give back everything but the GPU. */
void bell_gpu_rank_leave(struct bell_gpu_rank *r);

/* CTAs of the lanes' kernel and threads of each. */
uint32_t bell_gpu_rank_blocks(const struct bell_gpu_rank *r, uint32_t *threads);

#endif
