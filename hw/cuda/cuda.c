/* SPDX-License-Identifier: Apache-2.0
 * Executor "cuda": the program's lanes are GPU threads that run the same queue code; the NIC is CPU threads on mapped
 * host memory, or a kernel on an SM of its own for queues in GPU memory; workers are CPU threads. */
#include "hw/cuda/rank.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define EVENTS_PER_PUT 16u /* more than a put notes on any stack */
#define TRACE_BYTES_MAX ((uint64_t)4 << 30)

struct machine {
    struct bell_soft_team team;
    struct bell_gpu_rank rank[BELL_RANKS];
    struct bell_cuda_common *common;
    bool is_registered;
};

static bool has_gpu_nic(const struct bell_run *run)
{
    if (run->machine && run->machine->nic == BELL_NIC_ON_GPU) return true;
    return (!run->machine || run->machine->nic == BELL_NIC_AUTO) && run->stack->submit == BELL_SUBMIT_GPU &&
           run->stack->queue_memory == BELL_MEMORY_GPU && run->stack->doorbell == BELL_WRITER_GPU && !run->pace &&
           run->program->fault != BELL_FAULT_LATE_CQE;
}

/* What this executor cannot do, and what would be possible instead. */
static enum bell_status refuse(const struct bell_run *run, struct bell_error *err)
{
    const struct bell_program *p = run->program;
    const struct bell_stack *s = run->stack;
    bool nic_on_gpu = has_gpu_nic(run);
    uint32_t share = p->lanes / p->queues;
    if (!nic_on_gpu && s->submit == BELL_SUBMIT_GPU && s->queue_memory == BELL_MEMORY_GPU)
        return bell_fail(err, BELL_UNSUPPORTED, "queue_memory: a NIC on CPU threads cannot read queues in GPU memory "
                                                "here (that takes GDRCopy); expected host, or machine.nic=gpu");
    if (nic_on_gpu && bell_stack_has_workers(s))
        return bell_fail(err, BELL_UNSUPPORTED, "machine.nic: CPU workers post to queues that a NIC on the GPU does "
                                                "not serve, expected cpu");
    if (nic_on_gpu && (run->pace || p->fault == BELL_FAULT_LATE_CQE))
        return bell_fail(err, BELL_UNSUPPORTED, "machine.nic: a NIC on the GPU keeps no pace and holds back no CQE, "
                                                "expected cpu and queue_memory=host");
    if (s->sharing == BELL_SHARING_COOPERATIVE && (share > 1024 || (share < 32 ? 32 % share : share % 32) != 0))
        return bell_fail(err, BELL_UNSUPPORTED, "queues: a group of %u lanes is neither a power of two up to a warp "
                                                "nor a CTA of whole warps", share);
    if (run->sink && p->pattern == BELL_PATTERN_PROBE)
        return bell_fail(err, BELL_UNSUPPORTED, "pattern: nobody knows how many events a probe's background leaves, so "
                                                "it is not traced on a GPU");
    return BELL_OK;
}

static enum bell_status capacity_of(const struct bell_run *run, uint32_t *out, struct bell_error *err)
{
    const struct bell_program *p = run->program;
    uint64_t each = bell_program_ops(p) * ((uint64_t)p->puts * EVENTS_PER_PUT + EVENTS_PER_PUT), lanes = p->lanes;
    *out = 0;
    if (!run->sink) return BELL_OK;
    each *= p->lanes / p->queues; /* a NIC queue tells of all its lanes' puts, a lane may poll for all of them */
    if (each * (lanes + p->queues) * sizeof(struct bell_event) > TRACE_BYTES_MAX || each > UINT32_MAX)
        return bell_fail(err, BELL_INVALID, "iterations: the trace of %u lanes would need more than 4 GiB on the GPU",
                         p->lanes);
    *out = (uint32_t)each;
    return BELL_OK;
}

static enum bell_status open_gpus(struct machine *m, const struct bell_run *run, struct bell_error *err)
{
    struct bell_machine machine;
    bell_machine_read(run->machine, &machine);
    enum bell_status s = bell_gpu_open(&m->rank[0].gpu, (int)machine.gpu, err);
    if (s == BELL_OK) s = bell_gpu_open(&m->rank[1].gpu, (int)machine.peer_gpu, err);
    if (s == BELL_OK) s = bell_gpu_pair(&m->rank[0].gpu, &m->rank[1].gpu, err);
    for (int i = 0; i < BELL_RANKS; i++)
        m->rank[i].has_nic = has_gpu_nic(run);
    return s;
}

static enum bell_status set_up(struct machine *m, const struct bell_run *run, struct bell_error *err)
{
    struct bell_world *w = &m->team.crew.world;
    uint32_t capacity = 0;
    enum bell_status s = capacity_of(run, &capacity, err);
    unsigned flags = cudaHostRegisterMapped | cudaHostRegisterPortable;
    if (s == BELL_OK) s = BELL_GPU(cudaHostRegister(w->arena, w->size, flags), err);
    m->is_registered = s == BELL_OK;
    if (s == BELL_OK)
        s = BELL_GPU(cudaHostAlloc((void **)&m->common, sizeof *m->common,
                                   cudaHostAllocMapped | cudaHostAllocPortable), err);
    if (s == BELL_OK) memset(m->common, 0, sizeof *m->common);
    for (uint32_t i = 0; s == BELL_OK && i < BELL_RANKS; i++)
        s = bell_gpu_rank_place(&m->rank[i], &m->team, i, err);
    for (uint32_t i = 0; s == BELL_OK && i < BELL_RANKS; i++)
        s = bell_gpu_rank_fill(&m->rank[i], &m->team, i, m->common, capacity, err);
    return s;
}

static void nap(void)
{
    struct timespec t = { 0, 20000 };
    (void)nanosleep(&t, NULL);
}

/* Until all kernels have ended.  Each lane's waits are bounded, and so is this. */
static enum bell_status wait_for_gpus(struct machine *m, struct bell_error *err)
{
    enum bell_status s = BELL_AGAIN;
    while (s == BELL_AGAIN) {
        s = bell_gpu_poll(&m->rank[0].gpu, err);
        enum bell_status other = bell_is_failure(s) ? s : bell_gpu_poll(&m->rank[1].gpu, err);
        if (s == BELL_OK) s = other;
        if (bell_is_failure(other)) s = other;
        if (__atomic_load_n(&m->common->failed, __ATOMIC_ACQUIRE) ||
            __atomic_load_n(&m->team.crew.soft.stop, __ATOMIC_RELAXED))
            __atomic_store_n(&m->common->stop, 1, __ATOMIC_RELEASE);
        if (s == BELL_AGAIN) nap();
    }
    return s;
}

static enum bell_status run_kernels(struct machine *m, const struct bell_run *run, struct bell_error *err)
{
    uint32_t threads = 0, blocks = bell_gpu_rank_blocks(&m->rank[0], run, &threads);
    bool has_two = bell_world_is_active(&m->team.crew.world, 1);
    m->rank[1].has_nic = m->rank[1].has_nic && has_two;
    bool is_shared = has_two && m->rank[0].gpu.number == m->rank[1].gpu.number;
    enum bell_status s = bell_gpu_rank_launch(&m->rank[1], 1, &m->team, is_shared ? blocks : 0, err);
    if (s == BELL_OK) s = bell_gpu_rank_launch(&m->rank[0], 0, &m->team, is_shared ? blocks : 0, err);
    if (s != BELL_OK) {
        struct bell_error untold;
        __atomic_store_n(&m->common->stop, 1, __ATOMIC_RELEASE);
        (void)wait_for_gpus(m, &untold);
        return s;
    }
    return wait_for_gpus(m, err);
}

/* What really ran goes into the trace, so it is said before the events are sent. */
static void tell(const struct machine *m, const struct bell_run *run, struct bell_result *result)
{
    const struct bell_gpu *g = &m->rank[0].gpu;
    (void)snprintf(result->processor, sizeof result->processor, "%.40s at %.0f MHz", g->properties.name, g->clock_mhz);
    if (has_gpu_nic(run))
        (void)snprintf(result->notes, sizeof result->notes,
                       "software NIC: a kernel on the GPU, one thread a queue; its service rate was not measured "
                       "apart, so do not take a message rate for the lanes' own");
    else if (run->stack->submit == BELL_SUBMIT_PROXY && run->stack->completion_memory == BELL_MEMORY_GPU) {
        size_t used = strlen(result->notes);
        (void)snprintf(result->notes + used, sizeof result->notes - used,
                       "%scompletion counters are in host memory: a CPU cannot write GPU memory here",
                       used ? "; " : "");
    }
}

static enum bell_status finish(struct machine *m, const struct bell_run *run, struct bell_result *result,
                               struct bell_error *err)
{
    enum bell_status s = BELL_OK;
    for (uint32_t i = 0; s == BELL_OK && i < BELL_RANKS; i++)
        s = bell_gpu_rank_fetch(&m->rank[i], &m->team, i, result, err);
    if (s != BELL_OK) return s;
    for (uint32_t i = 0; i < BELL_RANKS; i++)
        bell_gpu_rank_fail(&m->rank[i], &m->team, i);
    tell(m, run, result);
    if (run->sink) s = bell_gpu_order(&m->team.crew, m->rank[0].gpu.offset_ps, err);
    return s == BELL_OK ? bell_soft_crew_finish(&m->team.crew, result, err) : s;
}

static enum bell_status run_cuda(const struct bell_run *run, struct bell_result *result, struct bell_error *err)
{
    struct machine *m = aligned_alloc(64, (sizeof *m + 63) / 64 * 64);
    if (!m) return bell_fail(err, BELL_NO_MEMORY, "out of memory");
    memset(m, 0, sizeof *m);
    unsigned roles = 1u << BELL_SOFT_WORKER | (has_gpu_nic(run) ? 0 : 1u << BELL_SOFT_NIC);
    enum bell_status s = refuse(run, err);
    if (s == BELL_OK) s = open_gpus(m, run, err);
    bool has_team = s == BELL_OK && (s = bell_soft_team_open(&m->team, run, result, roles, err)) == BELL_OK;
    if (s == BELL_OK) s = set_up(m, run, err);
    if (s == BELL_OK) {
        s = bell_soft_team_start(&m->team, err);
        if (s == BELL_OK) s = run_kernels(m, run, err);
        if (s != BELL_OK) __atomic_store_n(&m->team.crew.soft.stop, 1, __ATOMIC_RELAXED);
        bell_soft_team_lanes_done(&m->team);
        bell_soft_team_join(&m->team, result);
        if (s == BELL_OK) s = finish(m, run, result, err);
    }
    for (uint32_t i = 0; i < BELL_RANKS; i++)
        bell_gpu_rank_free(&m->rank[i]);
    if (m->is_registered) (void)cudaHostUnregister(m->team.crew.world.arena);
    if (m->common) (void)cudaFreeHost(m->common);
    if (has_team) bell_soft_team_close(&m->team);
    free(m);
    return s;
}

static enum bell_status probe_cuda(struct bell_error *err)
{
    int count = 0, driver = 0;
    /* A kernel that loads while another spins would wait for it; so all are loaded at the start. */
    (void)setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0) /* which cudaGetDeviceCount calls too old */
        return bell_fail(err, BELL_UNSUPPORTED, "executor cuda: no NVIDIA driver is loaded here");
    cudaError_t e = cudaGetDeviceCount(&count);
    if (e != cudaSuccess)
        return bell_fail(err, BELL_UNSUPPORTED, "executor cuda: no usable GPU: %s", cudaGetErrorString(e));
    return count ? BELL_OK : bell_fail(err, BELL_UNSUPPORTED, "executor cuda: there is no GPU");
}

const struct bell_executor bell_cuda_executor = {
    "cuda", "GPU threads post, a software NIC answers, in real time", "monotonic", probe_cuda, run_cuda,
};
