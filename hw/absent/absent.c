/* SPDX-License-Identifier: Apache-2.0
 * Executors that this build left out stay in the table, and say what was missing. */
#include "core/exec.h"

#define ABSENT(symbol, name, summary, missing)                                                                         \
    static enum bell_status probe_##symbol(struct bell_error *err)                                                     \
    {                                                                                                                  \
        return bell_fail(err, BELL_UNSUPPORTED, "executor " name ": %s", missing);                                     \
    }                                                                                                                  \
    static enum bell_status run_##symbol(const struct bell_run *run, struct bell_result *result,                       \
                                         struct bell_error *err)                                                       \
    {                                                                                                                  \
        (void)run;                                                                                                     \
        (void)result;                                                                                                  \
        return probe_##symbol(err);                                                                                    \
    }                                                                                                                  \
    const struct bell_executor symbol = { name, summary, "monotonic", probe_##symbol, run_##symbol }

#ifndef BELL_HAVE_CUDA
ABSENT(bell_cuda_executor, "cuda", "GPU threads post, a software NIC answers, in real time",
       "this bellwether was built without the CUDA Toolkit");
#endif
#ifndef BELL_HAVE_IBVERBS
ABSENT(bell_verbs_executor, "verbs", "CPU threads post through libibverbs to any RDMA device",
       "this bellwether was built without libibverbs");
#endif
#ifndef BELL_HAVE_MLX5
ABSENT(bell_mlx5_executor, "mlx5", "our own queues on a ConnectX: WQEs, doorbell record and UAR written directly",
       "this bellwether was built without libmlx5 (mlx5dv.h)");
#endif
