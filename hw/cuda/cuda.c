/* SPDX-License-Identifier: Apache-2.0
 * Executor "cuda": the program's lanes are GPU threads that run the same queue code; the NIC is CPU threads on mapped
 * host memory, or a kernel on an SM of its own for queues in GPU memory; workers are CPU threads. */
#include "hw/cuda/order.h"
#include "hw/cuda/pair.h"
#include "hw/soft/team.h"

#include <stdio.h>
#include <stdlib.h>

#define EVENTS_PER_PUT 16u /* more than a put notes on any stack */
#define TRACE_BYTES_MAX ((uint64_t)4 << 30)

struct machine {
    struct bell_soft_team team;
    struct bell_gpu_pair pair;
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
    if (!nic_on_gpu && s->submit == BELL_SUBMIT_GPU && s->queue_memory == BELL_MEMORY_GPU)
        return bell_fail(err, BELL_UNSUPPORTED, "queue_memory: a NIC on CPU threads cannot read queues in GPU memory "
                                                "here (that takes GDRCopy); expected host, or machine.nic=gpu");
    if (nic_on_gpu && bell_stack_has_workers(s))
        return bell_fail(err, BELL_UNSUPPORTED, "machine.nic: CPU workers post to queues that a NIC on the GPU does "
                                                "not serve, expected cpu");
    if (nic_on_gpu && (run->pace || p->fault == BELL_FAULT_LATE_CQE))
        return bell_fail(err, BELL_UNSUPPORTED, "machine.nic: a NIC on the GPU keeps no pace and holds back no CQE, "
                                                "expected cpu and queue_memory=host");
    if (run->sink && p->pattern == BELL_PATTERN_PROBE)
        return bell_fail(err, BELL_UNSUPPORTED, "pattern: nobody knows how many events a probe's background leaves, so "
                                                "it is not traced on a GPU");
    return bell_gpu_check_share(bell_program_group(p, s), err);
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

static enum bell_status set_up(struct machine *m, const struct bell_run *run, struct bell_error *err)
{
    struct bell_gpu_job job = {
        .world = &m->team.crew.world,
        .run = run,
        .bound_ps = m->team.crew.soft.bound_ps,
        .has_nic = has_gpu_nic(run),
    };
    enum bell_status s = capacity_of(run, &job.capacity, err);
    return s == BELL_OK ? bell_gpu_pair_place(&m->pair, &job, err) : s;
}

/* The first `count` events of a lane, behind those that the crew member has. */
static enum bell_status take_events(struct bell_soft_member *m, const struct bell_event *from, uint32_t count,
                                    uint32_t capacity, struct bell_error *err)
{
    if (count > capacity)
        return bell_fail(err, BELL_NO_MEMORY, "rank %u lane %u: %u events, and %u are kept on the GPU; fewer "
                                              "iterations leave fewer",
                        m->lane.id.rank, m->lane.id.lane, count, capacity);
    if (count == 0) return BELL_OK;
    struct bell_event *all = realloc(m->lane.event, (m->lane.events + count) * sizeof *all);
    if (!all) return bell_fail(err, BELL_NO_MEMORY, "out of memory: %u events", count);
    m->lane.event = all;
    enum bell_status s = BELL_GPU(cudaMemcpy(all + m->lane.events, from, count * sizeof *all, cudaMemcpyDeviceToHost),
                                  err);
    if (s == BELL_OK) m->lane.events += count;
    return s;
}

/* Events to the crew: a lane's to its member, all of a rank's NIC queues to that of its first NIC thread. */
static enum bell_status fetch_events(struct machine *m, struct bell_error *err)
{
    struct bell_soft_crew *crew = &m->team.crew;
    enum bell_status s = BELL_OK;
    for (size_t i = 0; s == BELL_OK && i < crew->members; i++) {
        struct bell_soft_member *member = &crew->member[i];
        const struct bell_gpu_rank *r = &m->pair.rank[member->lane.id.rank];
        uint32_t each = m->pair.job.capacity, n = member->number;
        if (member->role == BELL_SOFT_LANE)
            s = take_events(member, r->lanes.event + (size_t)n * each, r->end[n].events, each, err);
        if (member->role != BELL_SOFT_NIC || !m->pair.job.has_nic || n > 0) continue;
        for (uint32_t q = 0; s == BELL_OK && q < crew->world.queues; q++)
            s = take_events(member, r->nic.event + (size_t)q * each, r->nic.end[q].events, each, err);
    }
    return s;
}

/* What really ran goes into the trace, so it is said before the events are sent. */
static void tell(const struct machine *m, const struct bell_run *run, struct bell_result *result)
{
    const struct bell_gpu *g = &m->pair.rank[0].gpu;
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
    enum bell_status s = bell_gpu_pair_fetch(&m->pair, result, err);
    if (s == BELL_OK && run->sink) s = fetch_events(m, err);
    if (s != BELL_OK) return s;
    tell(m, run, result);
    if (run->sink) s = bell_gpu_order(&m->team.crew, m->pair.rank[0].gpu.offset_ps, err);
    return s == BELL_OK ? bell_soft_crew_finish(&m->team.crew, result, err) : s;
}

static enum bell_status run_cuda(const struct bell_run *run, struct bell_result *result, struct bell_error *err)
{
    struct machine *m = aligned_alloc(64, (sizeof *m + 63) / 64 * 64);
    if (!m) return bell_fail(err, BELL_NO_MEMORY, "out of memory");
    memset(m, 0, sizeof *m);
    struct bell_soft_crew *crew = &m->team.crew;
    unsigned roles = 1u << BELL_SOFT_WORKER | (has_gpu_nic(run) ? 0 : 1u << BELL_SOFT_NIC);
    enum bell_status s = refuse(run, err);
    if (s == BELL_OK) s = bell_gpu_pair_open(&m->pair, run->machine, err);
    bool has_team = s == BELL_OK && (s = bell_soft_team_open(&m->team, run, result, roles, err)) == BELL_OK;
    if (s == BELL_OK) s = set_up(m, run, err);
    if (s == BELL_OK) {
        s = bell_soft_team_start(&m->team, err);
        if (s == BELL_OK) s = bell_gpu_pair_run(&m->pair, &crew->soft.stop, &crew->who, &crew->status, err);
        bell_soft_team_lanes_done(&m->team);
        bell_soft_team_join(&m->team, result);
        if (s == BELL_OK) s = finish(m, run, result, err);
    }
    bell_gpu_pair_close(&m->pair);
    if (has_team) bell_soft_team_close(&m->team);
    free(m);
    return s;
}

static enum bell_status probe_cuda(struct bell_error *err)
{
    return bell_gpu_probe("cuda", err);
}

const struct bell_executor bell_cuda_executor = {
    "cuda", "GPU threads post, a software NIC answers, in real time", "monotonic", probe_cuda, run_cuda,
};
