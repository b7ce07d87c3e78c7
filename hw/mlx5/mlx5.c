/* SPDX-License-Identifier: Apache-2.0
 * Executor "mlx5"; without libmlx5 hw/absent has it. */
#ifdef BELL_HAVE_MLX5
#include "hw/mlx5/device.h"
#include "hw/mlx5/run.h"

static enum bell_status probe_mlx5(struct bell_error *err)
{
    void *device = NULL;
#if !defined(__x86_64__) && !defined(__aarch64__)
    return bell_fail(err, BELL_UNSUPPORTED, "executor mlx5: the barriers before a doorbell are written for x86-64 and "
                                            "aarch64 only");
#endif
    enum bell_status s = bell_mlx5_library.open(bell_mlx5_library.context, "", &device, err);
    if (s == BELL_OK)
        bell_mlx5_library.close(device);
    return s;
}

static enum bell_status run_mlx5(const struct bell_run *run, struct bell_result *result, struct bell_error *err)
{
    static const struct bell_mlx5_ground ground = { &bell_mlx5_library, &bell_mlx5_host_memory, NULL };
    return bell_mlx5_run(&ground, run, result, err);
}

const struct bell_executor bell_mlx5_executor = {
    "mlx5",     "our own queues on a ConnectX: WQEs, doorbell record and UAR written directly", "monotonic",
    probe_mlx5, run_mlx5,
};
#else
typedef int bell_mlx5_is_absent; /* a translation unit is not empty */
#endif
