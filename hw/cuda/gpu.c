/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/cuda/gpu.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* In nanoseconds: an idle SM clock needs tens of milliseconds of work to rise; then it is counted for a while. */
#define WARM_FOR 50000000u
#define COUNT_FOR 20000000u
#define ECHOES 200u
#define ECHO_BOUND_NS 2000000000u

enum bell_status bell_gpu_check(cudaError_t e, const char *call, struct bell_error *err)
{
    return e == cudaSuccess ? BELL_OK
                            : bell_fail(err, BELL_UNSUPPORTED, "%.80s: %s (%s)", call, cudaGetErrorString(e),
                                        cudaGetErrorName(e));
}

static uint64_t host_ps(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return ((uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec) * 1000u;
}

static enum bell_status spin(struct bell_gpu *gpu, uint64_t *out, uint64_t ns, struct bell_error *err)
{
    struct bell_cuda_clock a = { out, ns };
    void *arguments[] = { &a };
    struct dim3 one = { 1, 1, 1 };
    enum bell_status s = BELL_GPU(cudaLaunchKernel(bell_cuda_clock_kernel(), one, one, arguments, 0, gpu->stream[0]),
                                  err);
    return s == BELL_OK ? BELL_GPU(cudaStreamSynchronize(gpu->stream[0]), err) : s;
}

static enum bell_status measure_clock(struct bell_gpu *gpu, uint64_t *out, struct bell_error *err)
{
    enum bell_status s = spin(gpu, out, WARM_FOR, err);
    if (s == BELL_OK) s = spin(gpu, out, COUNT_FOR, err);
    if (s != BELL_OK) return s;
    gpu->clock_mhz = (double)out[0] * 1e3 / (double)out[1];
    gpu->ps_per_kcycle = (uint64_t)(1024e6 / gpu->clock_mhz + 0.5);
    return BELL_OK;
}

/* The quickest of many questions: its answer was read off the timer about half-way between question and answer. */
static enum bell_status measure_offset(struct bell_gpu *gpu, uint64_t *out, struct bell_error *err)
{
    volatile uint64_t *ask = out + 8, *answer = out + 16, *answered = out + 24;
    *ask = *answered = 0;
    struct bell_cuda_echo a = { ask, answer, answered, ECHOES, ECHO_BOUND_NS };
    void *arguments[] = { &a };
    struct dim3 one = { 1, 1, 1 };
    uint64_t best_ps = UINT64_MAX;
    const void *kernel = bell_cuda_echo_kernel();
    enum bell_status s = BELL_GPU(cudaLaunchKernel(kernel, one, one, arguments, 0, gpu->stream[0]), err);
    for (uint64_t i = 1; s == BELL_OK && i <= ECHOES; i++) {
        uint64_t asked_ps = host_ps(), now_ps = asked_ps;
        *ask = i;
        while (__atomic_load_n(answered, __ATOMIC_ACQUIRE) != i && now_ps - asked_ps < ECHO_BOUND_NS * 1000ull)
            now_ps = host_ps();
        now_ps = host_ps();
        if (*answered != i) break;
        if (now_ps - asked_ps < best_ps) {
            best_ps = now_ps - asked_ps;
            gpu->offset_ps = (int64_t)(asked_ps + best_ps / 2) - (int64_t)(*answer * 1000);
        }
    }
    if (s == BELL_OK) s = BELL_GPU(cudaStreamSynchronize(gpu->stream[0]), err);
    return s == BELL_OK && best_ps == UINT64_MAX
               ? bell_fail(err, BELL_TIMEOUT, "GPU %d did not answer the host within its bound", gpu->number)
               : s;
}

enum bell_status bell_gpu_open(struct bell_gpu *gpu, int number, struct bell_error *err)
{
    void *out = NULL;
    int count = 0;
    memset(gpu, 0, sizeof *gpu);
    gpu->number = number;
    enum bell_status s = BELL_GPU(cudaGetDeviceCount(&count), err);
    if (s == BELL_OK && number >= count)
        s = bell_fail(err, BELL_UNSUPPORTED, "machine.gpu: there is no CUDA device %d, only %d of them", number, count);
    if (s == BELL_OK) s = BELL_GPU(cudaSetDevice(number), err);
    if (s == BELL_OK) s = BELL_GPU(cudaGetDeviceProperties(&gpu->properties, number), err);
    if (s == BELL_OK && gpu->properties.major < 9)
        s = bell_fail(err, BELL_UNSUPPORTED, "GPU %d is sm_%d%d; the kernels were built for sm_90 and later", number,
                      gpu->properties.major, gpu->properties.minor);
    for (int i = 0; s == BELL_OK && i < 2; i++)
        s = BELL_GPU(cudaStreamCreateWithFlags(&gpu->stream[i], cudaStreamNonBlocking), err);
    if (s == BELL_OK) s = BELL_GPU(cudaHostAlloc(&out, 256, cudaHostAllocMapped | cudaHostAllocPortable), err);
    if (s == BELL_OK) s = measure_clock(gpu, out, err);
    if (s == BELL_OK) s = measure_offset(gpu, out, err);
    if (out) (void)cudaFreeHost(out);
    if (s != BELL_OK) bell_gpu_close(gpu);
    return s;
}

void bell_gpu_close(struct bell_gpu *gpu)
{
    for (int i = 0; i < 2; i++)
        if (gpu->stream[i]) (void)cudaStreamDestroy(gpu->stream[i]);
    memset(gpu, 0, sizeof *gpu);
}

enum bell_status bell_gpu_pair(const struct bell_gpu *a, const struct bell_gpu *b, struct bell_error *err)
{
    const struct bell_gpu *pair[2] = { a, b };
    enum bell_status s = BELL_OK;
    if (a->number == b->number) return BELL_OK;
    for (int i = 0; s == BELL_OK && i < 2; i++) {
        int can = 0;
        s = BELL_GPU(cudaDeviceCanAccessPeer(&can, pair[i]->number, pair[1 - i]->number), err);
        if (s == BELL_OK && !can)
            s = bell_fail(err, BELL_UNSUPPORTED, "machine.peer_gpu: GPU %d cannot reach the memory of GPU %d",
                          pair[i]->number, pair[1 - i]->number);
        if (s == BELL_OK) s = BELL_GPU(cudaSetDevice(pair[i]->number), err);
        if (s != BELL_OK) return s;
        cudaError_t e = cudaDeviceEnablePeerAccess(pair[1 - i]->number, 0);
        if (e == cudaErrorPeerAccessAlreadyEnabled) {
            (void)cudaGetLastError();
            e = cudaSuccess;
        }
        s = bell_gpu_check(e, "cudaDeviceEnablePeerAccess", err);
    }
    return s;
}

enum bell_status bell_gpu_alloc(const struct bell_gpu *gpu, void **at, size_t size, struct bell_error *err)
{
    enum bell_status s = BELL_GPU(cudaSetDevice(gpu->number), err);
    if (s == BELL_OK) s = BELL_GPU(cudaMalloc(at, size ? size : 1), err);
    return s == BELL_OK ? BELL_GPU(cudaMemset(*at, 0, size), err) : s;
}

enum bell_status bell_gpu_launch(const struct bell_gpu *gpu, int stream, const struct bell_gpu_grid *g, void *argument,
                                 struct bell_error *err)
{
    int each = 0;
    struct dim3 grid = { g->blocks, 1, 1 }, block = { g->threads, 1, 1 };
    void *arguments[] = { argument };
    enum bell_status s = BELL_GPU(cudaSetDevice(gpu->number), err);
    if (s == BELL_OK && g->shared_bytes)
        s = BELL_GPU(cudaFuncSetAttribute(g->kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                          (int)g->shared_bytes), err);
    if (s == BELL_OK)
        s = BELL_GPU(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, g->kernel, (int)g->threads,
                                                                   g->shared_bytes), err);
    uint32_t sms = (uint32_t)gpu->properties.multiProcessorCount;
    uint32_t fit = g->held_sms < sms ? (uint32_t)each * (sms - g->held_sms) : 0;
    if (s == BELL_OK && g->blocks + g->others > fit)
        s = bell_fail(err, BELL_UNSUPPORTED,
                      "%s: %u CTAs of %u threads must be on GPU %d at once, and %u are the most it holds%s", g->what,
                      g->blocks + g->others, g->threads, gpu->number, fit,
                      g->held_sms ? " beside the software NIC" : "");
    return s == BELL_OK ? BELL_GPU(cudaLaunchKernel(g->kernel, grid, block, arguments, g->shared_bytes,
                                                    gpu->stream[stream]), err)
                        : s;
}

enum bell_status bell_gpu_poll(const struct bell_gpu *gpu, struct bell_error *err)
{
    enum bell_status all = BELL_OK;
    for (int i = 0; i < 2; i++) {
        cudaError_t e = cudaStreamQuery(gpu->stream[i]);
        if (e == cudaErrorNotReady)
            all = BELL_AGAIN;
        else if (e != cudaSuccess)
            return bell_gpu_check(e, "a kernel", err);
    }
    return all;
}
