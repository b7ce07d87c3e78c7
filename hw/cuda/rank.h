/* SPDX-License-Identifier: Apache-2.0
 * One rank of a run on its GPU: where its part of the world lies, its kernels, and what they left behind. */
#ifndef BELL_HW_CUDA_RANK_H
#define BELL_HW_CUDA_RANK_H

#include "hw/cuda/gpu.h"
#include "hw/soft/team.h"

struct bell_gpu_rank {
    struct bell_gpu gpu;
    void *place[BELL_PLACES];        /* on the GPU; NULL: it stays in host memory */
    struct bell_cuda_lanes lanes;    /* arguments of the kernels */
    struct bell_cuda_nic nic;
    struct bell_cuda_end *end;       /* pinned: of lanes, then of NIC queues */
    struct nic_copy *nic_copy;       /* host copy of the NIC's descriptors */
    bool has_nic;                    /* the NIC is a kernel */
};

/* Move what belongs on the GPU there.  What was taken is given back by bell_gpu_rank_free, also after a failure. */
enum bell_status bell_gpu_rank_place(struct bell_gpu_rank *r, struct bell_soft_team *team, uint32_t rank,
                                     struct bell_error *err) BELL_MUST_USE;

/* Make the kernels' arguments, when both ranks are in place.  `capacity` events a lane are kept; 0: a timed run. */
enum bell_status bell_gpu_rank_fill(struct bell_gpu_rank *r, struct bell_soft_team *team, uint32_t rank,
                                    struct bell_cuda_common *common, uint32_t capacity,
                                    struct bell_error *err) BELL_MUST_USE;

/* Start the kernels of this rank; the NIC first, so that it is there when a lane rings. */
enum bell_status bell_gpu_rank_launch(struct bell_gpu_rank *r, uint32_t rank, const struct bell_soft_team *team,
                                      uint32_t others, struct bell_error *err) BELL_MUST_USE;

/* The kernels are over: bring the world back to host memory, the samples to *result and the events to the crew. */
enum bell_status bell_gpu_rank_fetch(struct bell_gpu_rank *r, struct bell_soft_team *team, uint32_t rank,
                                     struct bell_result *result, struct bell_error *err) BELL_MUST_USE;

/* Tell the team of the first lane or NIC queue that failed, if there is one. */
void bell_gpu_rank_fail(const struct bell_gpu_rank *r, struct bell_soft_team *team, uint32_t rank);

void bell_gpu_rank_free(struct bell_gpu_rank *r);

/* CTAs of the lanes' kernel and threads of each. */
uint32_t bell_gpu_rank_blocks(const struct bell_gpu_rank *r, const struct bell_run *run, uint32_t *threads);

/* hw/cuda/order.c: GPU events come in the GPU's clock and without numbers.  Move them to the host's clock, within what
 * cause and effect allow, and number all events of the crew in the order of time. */
enum bell_status bell_gpu_order(struct bell_soft_crew *crew, int64_t offset_ps, struct bell_error *err) BELL_MUST_USE;

#endif
