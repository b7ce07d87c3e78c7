/* SPDX-License-Identifier: Apache-2.0
 * A program on an mlx5 device, both ranks in this process: lanes (CPU threads, or the ground's) and workers (CPU
 * threads) post through the bindings of queues made by hw/mlx5/queue.h; queue q of rank 0 and queue q of rank 1 answer
 * each other. */
#ifndef BELL_HW_MLX5_RUN_H
#define BELL_HW_MLX5_RUN_H

#include "hw/mlx5/ground.h"

BELL_EXTERN_C_BEGIN

/* Like bell_executor.run.  BELL_UNSUPPORTED and one sentence: this machine, program or stack is beyond it. */
enum bell_status bell_mlx5_run(const struct bell_mlx5_ground *ground, const struct bell_run *run,
                               struct bell_result *result, struct bell_error *err) BELL_MUST_USE;

BELL_EXTERN_C_END

#endif
