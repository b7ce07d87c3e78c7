/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/cuda/pair.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum bell_status bell_gpu_probe(const char *name, struct bell_error *err)
{
    int count = 0, driver = 0;
    /* A kernel that loads while another spins would wait for it; so all are loaded at the start. */
    (void)setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0) /* which cudaGetDeviceCount calls too old */
        return bell_fail(err, BELL_UNSUPPORTED, "executor %s: no NVIDIA driver is loaded here", name);
    cudaError_t e = cudaGetDeviceCount(&count);
    if (e != cudaSuccess)
        return bell_fail(err, BELL_UNSUPPORTED, "executor %s: no usable GPU: %s", name, cudaGetErrorString(e));
    return count ? BELL_OK : bell_fail(err, BELL_UNSUPPORTED, "executor %s: there is no GPU", name);
}

enum bell_status bell_gpu_check_share(uint32_t share, struct bell_error *err)
{
    if (share > 1024 || (share < 32 ? 32 % share : share % 32) != 0)
        return bell_fail(err, BELL_UNSUPPORTED, "queues: a group of %u lanes is neither a power of two up to a warp "
                                                "nor a CTA of whole warps", share);
    return BELL_OK;
}

enum bell_status bell_gpu_pair_open(struct bell_gpu_pair *pair, const struct bell_machine *machine,
                                    struct bell_error *err)
{
    struct bell_machine m;
    memset(pair, 0, sizeof *pair);
    bell_machine_read(machine, &m);
    for (uint32_t i = 0; i < BELL_RANKS; i++) {
        pair->rank[i].job = &pair->job;
        pair->rank[i].number = i;
    }
    enum bell_status s = bell_gpu_open(&pair->rank[0].gpu, (int)m.gpu, err);
    if (s == BELL_OK) s = bell_gpu_open(&pair->rank[1].gpu, (int)m.peer_gpu, err);
    return s == BELL_OK ? bell_gpu_pair(&pair->rank[0].gpu, &pair->rank[1].gpu, err) : s;
}

enum bell_status bell_gpu_pair_place(struct bell_gpu_pair *pair, const struct bell_gpu_job *job,
                                     struct bell_error *err)
{
    const struct bell_world *w = job->world;
    struct bell_cuda_common *common = NULL;
    pair->job = *job;
    enum bell_status s =
        BELL_GPU(cudaHostRegister(w->arena, w->size, cudaHostRegisterMapped | cudaHostRegisterPortable), err);
    pair->is_registered = s == BELL_OK;
    if (s == BELL_OK)
        s = BELL_GPU(cudaHostAlloc((void **)&common, sizeof *common, cudaHostAllocMapped | cudaHostAllocPortable), err);
    pair->job.common = common;
    if (s == BELL_OK) memset(common, 0, sizeof *common);
    for (uint32_t i = 0; s == BELL_OK && i < BELL_RANKS; i++)
        s = bell_gpu_rank_place(&pair->rank[i], err);
    for (uint32_t i = 0; s == BELL_OK && i < BELL_RANKS; i++)
        s = bell_gpu_rank_fill(&pair->rank[i], err);
    return s;
}

static void nap(void)
{
    struct timespec t = { 0, 20000 };
    (void)nanosleep(&t, NULL);
}

static void take_failure(struct bell_gpu_pair *pair, uint32_t *stop, struct bell_lane_id *who,
                         enum bell_status *status)
{
    struct bell_lane_id first;
    enum bell_status how = BELL_OK;
    if (!bell_gpu_rank_failure(&pair->rank[0], &first, &how) && !bell_gpu_rank_failure(&pair->rank[1], &first, &how))
        return;
    if (__atomic_exchange_n(stop, 1, __ATOMIC_RELAXED)) return;
    *who = first;
    *status = how;
}

static enum bell_status wait_for_kernels(struct bell_gpu_pair *pair, uint32_t *stop, struct bell_lane_id *who,
                                         enum bell_status *status, struct bell_error *err)
{
    enum bell_status s = BELL_AGAIN;
    while (s == BELL_AGAIN) {
        s = bell_gpu_poll(&pair->rank[0].gpu, err);
        enum bell_status other = bell_is_failure(s) ? s : bell_gpu_poll(&pair->rank[1].gpu, err);
        if (s == BELL_OK || bell_is_failure(other)) s = other;
        if (__atomic_load_n(&pair->job.common->failed, __ATOMIC_ACQUIRE)) take_failure(pair, stop, who, status);
        if (__atomic_load_n(stop, __ATOMIC_RELAXED)) __atomic_store_n(&pair->job.common->stop, 1, __ATOMIC_RELEASE);
        if (s == BELL_AGAIN) nap();
    }
    return s;
}

static enum bell_status launch(struct bell_gpu_pair *pair, struct bell_error *err)
{
    struct bell_gpu_rank *r = pair->rank;
    bool is_shared = bell_world_is_active(pair->job.world, 1) && r[0].gpu.number == r[1].gpu.number;
    uint32_t threads = 0, blocks = is_shared ? bell_gpu_rank_blocks(&r[0], &threads) : 0;
    enum bell_status s = BELL_OK;
    for (int i = 0; s == BELL_OK && i < BELL_RANKS; i++)
        s = bell_gpu_rank_launch_nic(&r[i], is_shared ? bell_gpu_rank_nic_sms(&r[1 - i]) : 0, err);
    for (int i = BELL_RANKS - 1; s == BELL_OK && i >= 0; i--)
        s = bell_gpu_rank_launch_lanes(&r[i], blocks, bell_gpu_rank_nic_sms(&r[i]) +
                                       (is_shared ? bell_gpu_rank_nic_sms(&r[1 - i]) : 0), err);
    return s;
}

enum bell_status bell_gpu_pair_run(struct bell_gpu_pair *pair, uint32_t *stop, struct bell_lane_id *who,
                                   enum bell_status *status, struct bell_error *err)
{
    enum bell_status s = launch(pair, err);
    if (s == BELL_OK) s = wait_for_kernels(pair, stop, who, status, err);
    if (s != BELL_OK) {
        struct bell_error untold;
        __atomic_store_n(stop, 1, __ATOMIC_RELAXED);
        (void)wait_for_kernels(pair, stop, who, status, &untold);
    }
    return s;
}

enum bell_status bell_gpu_pair_fetch(struct bell_gpu_pair *pair, struct bell_result *result, struct bell_error *err)
{
    enum bell_status s = bell_gpu_rank_fetch(&pair->rank[0], result, err);
    return s == BELL_OK ? bell_gpu_rank_fetch(&pair->rank[1], result, err) : s;
}

void bell_gpu_pair_leave(struct bell_gpu_pair *pair)
{
    for (uint32_t i = 0; i < BELL_RANKS; i++)
        bell_gpu_rank_leave(&pair->rank[i]);
    if (pair->is_registered) (void)cudaHostUnregister(pair->job.world->arena);
    if (pair->job.common) (void)cudaFreeHost(pair->job.common);
    pair->is_registered = false;
    memset(&pair->job, 0, sizeof pair->job);
}

void bell_gpu_pair_close(struct bell_gpu_pair *pair)
{
    bell_gpu_pair_leave(pair);
    for (uint32_t i = 0; i < BELL_RANKS; i++)
        bell_gpu_close(&pair->rank[i].gpu);
}
