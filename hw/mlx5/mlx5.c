/* SPDX-License-Identifier: Apache-2.0
 * Executor "mlx5"; without libmlx5 hw/absent has it. */
#ifdef BELL_HAVE_MLX5
#include "hw/mlx5/device.h"
#include "hw/mlx5/run.h"
#ifdef BELL_HAVE_CUDA
#include "hw/cuda/poster.h"
#endif

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

static enum bell_status run_on_cpu(const struct bell_run *run, struct bell_result *result, struct bell_error *err)
{
    static const struct bell_mlx5_site site = { &bell_mlx5_host_memory, NULL, NULL };
    const struct bell_mlx5_ground ground = { &bell_mlx5_library, &bell_mlx5_host_memory, { site, site }, NULL };
    return bell_mlx5_run(&ground, run, result, err);
}

#ifdef BELL_HAVE_CUDA
static enum bell_status run_on_gpu(const struct bell_run *run, enum bell_poster place, struct bell_result *result,
                                   struct bell_error *err)
{
    struct bell_mlx5_ground ground = { .calls = &bell_mlx5_library, .host = &bell_mlx5_host_memory };
    struct bell_cuda_poster *poster = NULL;
    enum bell_status s = bell_cuda_poster_open(run->machine, &poster, err);
    if (s == BELL_UNSUPPORTED && place == BELL_POSTER_AUTO)
        return run_on_cpu(run, result, err);
    if (s != BELL_OK)
        return s;
    bell_cuda_poster_ground(poster, &ground);
    s = bell_mlx5_run(&ground, run, result, err);
    bell_cuda_poster_close(poster);
    return s;
}
#else
static enum bell_status run_on_gpu(const struct bell_run *run, enum bell_poster place, struct bell_result *result,
                                   struct bell_error *err)
{
    if (place == BELL_POSTER_AUTO)
        return run_on_cpu(run, result, err);
    return bell_fail(err, BELL_UNSUPPORTED, "machine.poster=gpu: this bellwether was built without the CUDA Toolkit");
}
#endif

static enum bell_status run_mlx5(const struct bell_run *run, struct bell_result *result, struct bell_error *err)
{
    struct bell_machine machine;
    bell_machine_read(run->machine, &machine);
    return machine.poster == BELL_POSTER_ON_CPU
               ? run_on_cpu(run, result, err)
               : run_on_gpu(run, (enum bell_poster)machine.poster, result, err);
}

const struct bell_executor bell_mlx5_executor = {
    "mlx5",     "our own queues on a ConnectX: WQEs, doorbell record and UAR written directly", "monotonic",
    probe_mlx5, run_mlx5,
};
#else
typedef int bell_mlx5_is_absent; /* a translation unit is not empty */
#endif
