/* SPDX-License-Identifier: Apache-2.0
 * What a run on an mlx5 device stands on: the device's calls, the memory of each rank, and who runs the lanes. */
#ifndef BELL_HW_MLX5_GROUND_H
#define BELL_HW_MLX5_GROUND_H

#include "core/exec.h"
#include "core/lane.h"
#include "hw/mlx5/calls.h"

BELL_EXTERN_C_BEGIN

struct bell_world;

/* Where the lanes of one rank post, and where their payload lies. */
struct bell_mlx5_site {
    const struct bell_mlx5_memory *host;    /* for queue_memory=host */
    const struct bell_mlx5_memory *gpu;     /* for queue_memory=gpu; NULL: there is none */
    const struct bell_mlx5_memory *payload; /* NULL: with the rest of the world, in host memory */
};

/* Lanes that are not threads of this process, such as a GPU's.  One thread calls, in this order. */
struct bell_mlx5_lanes {
    void *context;
    /* BELL_UNSUPPORTED and one sentence: they cannot run it.  Before anything is made. */
    enum bell_status (*check)(void *context, const struct bell_run *run, struct bell_error *err);
    /* Take over the world, whose queues are bound; it outlives `leave`. */
    enum bell_status (*place)(void *context, struct bell_world *world, const struct bell_run *run, uint64_t bound_ps,
                              struct bell_error *err);
    /* Run all lanes of all active ranks until they have ended, which their bound sees to.  *stop: see
     * bell_gpu_pair_run, which is one of these. */
    enum bell_status (*run)(void *context, uint32_t *stop, struct bell_lane_id *who, enum bell_status *status,
                            struct bell_error *err);
    /* The world is in host memory again.  Fills in samples and result->processor. */
    enum bell_status (*fetch)(void *context, struct bell_result *result, struct bell_error *err);
    /* Let go of the world, after a failure too. */
    void (*leave)(void *context);
};

struct bell_mlx5_ground {
    const struct bell_mlx5_calls *calls;
    const struct bell_mlx5_memory *host; /* what CPU workers post from, and records of forwarded doorbells */
    struct bell_mlx5_site site[2];       /* of rank 0 and 1 */
    const struct bell_mlx5_lanes *lanes; /* NULL: lanes are CPU threads */
};

BELL_EXTERN_C_END

#endif
