/* SPDX-License-Identifier: Apache-2.0
 * The host's side of executor cuda: the GPUs of a run, memory on them, and their clocks.  Calls are from one thread. */
#ifndef BELL_HW_CUDA_GPU_H
#define BELL_HW_CUDA_GPU_H

#include "hw/cuda/launch.h"

#include <cuda_runtime_api.h>

/* One rank's GPU. */
struct bell_gpu {
    int number;             /* CUDA device */
    cudaStream_t stream[2]; /* lanes; NIC */
    struct cudaDeviceProp properties;
    double clock_mhz;       /* of the SMs under load, measured against globaltimer */
    uint64_t ps_per_kcycle; /* picoseconds of 1024 cycles at that clock */
    int64_t offset_ps;      /* host's monotonic clock less globaltimer, to about half a round trip */
};

/* BELL_OK, or *err says which call failed and why; status BELL_UNSUPPORTED. */
enum bell_status bell_gpu_check(cudaError_t e, const char *call, struct bell_error *err) BELL_MUST_USE;
#define BELL_GPU(call, err) bell_gpu_check((call), #call, (err))

/* Make `number` ready: streams, a warm SM clock and its rate, and the offset of its timer from the host's clock.  On
 * BELL_OK the caller calls bell_gpu_close. */
enum bell_status bell_gpu_open(struct bell_gpu *gpu, int number, struct bell_error *err) BELL_MUST_USE;
void bell_gpu_close(struct bell_gpu *gpu);

/* Let each of the two reach the other's memory.  BELL_UNSUPPORTED names the pair that cannot. */
enum bell_status bell_gpu_pair(const struct bell_gpu *a, const struct bell_gpu *b,
                               struct bell_error *err) BELL_MUST_USE;

/* Zeroed memory on the GPU. */
enum bell_status bell_gpu_alloc(const struct bell_gpu *gpu, void **at, size_t size, struct bell_error *err)
    BELL_MUST_USE;

/* CTAs that must all be on the GPU at once, because they wait for each other. */
struct bell_gpu_grid {
    const char *what;       /* the setting that makes them so many */
    const void *kernel;
    uint32_t blocks, threads;
    uint32_t others;        /* CTAs of the same kernel that will be beside them */
    uint32_t held_sms;      /* SMs that other kernels have for themselves */
    size_t shared_bytes;    /* of a CTA */
};

/* Start them in a stream.  BELL_UNSUPPORTED says how many fit.  `argument` is copied. */
enum bell_status bell_gpu_launch(const struct bell_gpu *gpu, int stream, const struct bell_gpu_grid *grid,
                                 void *argument, struct bell_error *err) BELL_MUST_USE;

/* All kernels of both streams have ended (BELL_OK), are running (BELL_AGAIN) or failed. */
enum bell_status bell_gpu_poll(const struct bell_gpu *gpu, struct bell_error *err) BELL_MUST_USE;

#endif
