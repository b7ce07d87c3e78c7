/* SPDX-License-Identifier: Apache-2.0
 * A program on an mlx5 device, both ranks in this process: each lane and worker is a CPU thread that posts through the
 * binding of a queue made by hw/mlx5/queue.h; queue q of rank 0 and queue q of rank 1 answer each other. */
#ifndef BELL_HW_MLX5_RUN_H
#define BELL_HW_MLX5_RUN_H

#include "core/exec.h"
#include "hw/mlx5/calls.h"

BELL_EXTERN_C_BEGIN

/* What a run stands on. */
struct bell_mlx5_ground {
    const struct bell_mlx5_calls *calls;
    const struct bell_mlx5_memory *host; /* for stacks with queue_memory=host, and for forwarded doorbells */
    const struct bell_mlx5_memory *gpu;  /* for queue_memory=gpu, of a kind that CPU threads can store to; or NULL */
};

/* Like bell_executor.run.  BELL_UNSUPPORTED and one sentence: this machine, program or stack is beyond it. */
enum bell_status bell_mlx5_run(const struct bell_mlx5_ground *ground, const struct bell_run *run,
                               struct bell_result *result, struct bell_error *err) BELL_MUST_USE;

BELL_EXTERN_C_END

#endif
