/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/cuda/rank.h"

#include <stdlib.h>
#include <string.h>

#define NIC_THREADS 32u /* of a CTA of the NIC: one warp, a thread a queue */

/* Descriptors of a rank's NIC, side by side, so that the GPU reads no host memory to serve a queue. */
struct nic_copy {
    struct bell_region local, remote;
    struct bell_sq *sq;     /* device addresses */
    struct bell_nicq *nicq;
    size_t size;
    uint8_t bytes[];        /* queues of bell_nicq, then of bell_sq, then the two regions; as on the GPU */
};

/* What the CPU must reach stays in host memory: there is no way for it into GPU memory here. */
static bool is_on_gpu(const struct bell_gpu_rank *r, enum bell_place place)
{
    const struct bell_run *run = r->job->run;
    const struct bell_stack *s = run->stack;
    bool is_proxy = s->submit == BELL_SUBMIT_PROXY, has_nic = r->job->has_nic && !r->job->is_bound;
    switch (place) {
    case BELL_PLACE_LANES:
        return true;
    case BELL_PLACE_POSTER:
        return !is_proxy;
    case BELL_PLACE_QUEUE:
        return has_nic && s->queue_memory == BELL_MEMORY_GPU;
    case BELL_PLACE_REGISTER:
    case BELL_PLACE_TARGET:
        return has_nic;
    case BELL_PLACE_SOURCE: /* the CPU does not read a payload that travels in WQE or descriptor */
        return has_nic || (!r->job->is_bound && s->payload == BELL_PAYLOAD_INLINE &&
                           (!is_proxy || run->program->bytes == 8));
    case BELL_PLACE_SHARED:
    case BELL_PLACE_HOST:
    case BELL_PLACES:
        break;
    }
    return false;
}

/* Tell lanes and queues in which memory they now are, so that each access has the scope it needs.  A payload that comes
 * from outside of this GPU is read at system scope, wherever it arrives. */
static void set_memory(const struct bell_gpu_rank *r)
{
    struct bell_world *w = r->job->world;
    struct bell_rank *mine = w->rank + r->number;
    struct bell_machine machine;
    bell_machine_read(r->job->run->machine, &machine);
    bool is_local = r->place[BELL_PLACE_TARGET] && machine.gpu == machine.peer_gpu;
    for (uint32_t q = 0; q < w->queues; q++) {
        if (!r->job->is_bound) mine->sq[q].memory = r->place[BELL_PLACE_QUEUE] ? BELL_MEMORY_GPU : BELL_MEMORY_HOST;
        if (mine->ring) mine->ring[q].done_memory = BELL_MEMORY_HOST;
    }
    for (uint32_t lane = 0; lane < w->lanes; lane++)
        mine->client[lane].target_memory = is_local ? BELL_MEMORY_GPU : BELL_MEMORY_HOST;
}

enum bell_status bell_gpu_rank_place(struct bell_gpu_rank *r, struct bell_error *err)
{
    struct bell_world *w = r->job->world;
    enum bell_status s = BELL_OK;
    for (int p = 0; s == BELL_OK && p < BELL_PLACES; p++) {
        struct bell_extent *e = &w->place[r->number][p];
        if (e->size == 0 || !is_on_gpu(r, (enum bell_place)p)) continue;
        s = bell_gpu_alloc(&r->gpu, &r->place[p], e->size, err);
        if (s == BELL_OK) s = BELL_GPU(cudaMemcpy(r->place[p], e->at, e->size, cudaMemcpyHostToDevice), err);
        if (s == BELL_OK) bell_world_move(w, r->number, (enum bell_place)p, r->place[p]);
    }
    if (s == BELL_OK) set_memory(r);
    return s;
}

static enum bell_status fill_nic(struct bell_gpu_rank *r, struct bell_error *err)
{
    const struct bell_world *w = r->job->world;
    uint32_t rank = r->number;
    size_t queues = w->queues, nicqs = queues * sizeof(struct bell_nicq), sqs = queues * sizeof(struct bell_sq);
    size_t size = nicqs + sqs + 2 * sizeof(struct bell_region);
    struct nic_copy *c = aligned_alloc(64, (sizeof *c + size + 63) / 64 * 64);
    void *at = NULL;
    if (!c) return bell_fail(err, BELL_NO_MEMORY, "out of memory: the NIC of rank %u", rank);
    r->nic_copy = c;
    enum bell_status s = bell_gpu_alloc(&r->gpu, &at, size, err);
    if (s != BELL_OK) return s;
    c->nicq = at;
    c->sq = (struct bell_sq *)(void *)((uint8_t *)at + nicqs);
    c->size = size;
    const struct bell_region *regions = (const struct bell_region *)(const void *)((uint8_t *)at + nicqs + sqs);
    for (size_t q = 0; q < queues; q++) {
        struct bell_nicq nicq = w->rank[rank].nicq[q];
        nicq.sq = c->sq + q;
        nicq.local = regions;
        nicq.remote = regions + 1;
        nicq.receive = NULL;
        memcpy(c->bytes + q * sizeof nicq, &nicq, sizeof nicq);
        memcpy(c->bytes + nicqs + q * sizeof(struct bell_sq), w->rank[rank].sq + q, sizeof(struct bell_sq));
    }
    memcpy(c->bytes + nicqs + sqs, &w->rank[rank].source, sizeof(struct bell_region));
    memcpy(c->bytes + nicqs + sqs + sizeof(struct bell_region), &w->rank[1 - rank].target, sizeof(struct bell_region));
    struct bell_cuda_nic *n = &r->nic;
    n->nicq = c->nicq;
    n->queues = w->queues;
    n->rank = rank;
    n->lanes = w->lanes;
    n->first_lane = w->lanes + w->workers;
    n->end = r->end + w->lanes;
    n->ps_per_kcycle = r->gpu.ps_per_kcycle;
    return BELL_GPU(cudaMemcpy(at, c->bytes, size, cudaMemcpyHostToDevice), err);
}

static enum bell_status fill_lanes(struct bell_gpu_rank *r, struct bell_error *err)
{
    const struct bell_run *run = r->job->run;
    const struct bell_world *w = r->job->world;
    struct bell_cuda_lanes *a = &r->lanes;
    size_t samples = (size_t)bell_program_counted(run->program) * run->program->iterations * sizeof(uint64_t);
    a->stack = *run->stack;
    a->program = *run->program;
    a->client = w->rank[r->number].client;
    a->end = r->end;
    a->ps_per_kcycle = r->gpu.ps_per_kcycle;
    a->bound_ns = r->job->bound_ps / 1000;
    a->rank = r->number;
    a->lanes = w->lanes;
    a->share = bell_program_group(run->program, run->stack);
    enum bell_status s = bell_gpu_alloc(&r->gpu, (void **)&a->done, sizeof *a->done, err);
    r->nic.done = a->done;
    if (r->number == 0 && s == BELL_OK) s = bell_gpu_alloc(&r->gpu, (void **)&a->issue_ps, samples, err);
    if (r->number == 0 && s == BELL_OK) s = bell_gpu_alloc(&r->gpu, (void **)&a->total_ps, samples, err);
    return s;
}

enum bell_status bell_gpu_rank_fill(struct bell_gpu_rank *r, struct bell_error *err)
{
    const struct bell_gpu_job *job = r->job;
    uint32_t ends = job->world->lanes + job->world->queues;
    size_t events = (size_t)job->capacity * sizeof(struct bell_event);
    enum bell_status s = BELL_GPU(cudaHostAlloc((void **)&r->end, ends * sizeof *r->end,
                                                cudaHostAllocMapped | cudaHostAllocPortable), err);
    if (s == BELL_OK) memset(r->end, 0, ends * sizeof *r->end);
    if (s == BELL_OK) s = fill_lanes(r, err);
    if (s == BELL_OK && job->has_nic) s = fill_nic(r, err);
    r->lanes.common = r->nic.common = job->common;
    r->lanes.capacity = r->nic.capacity = job->capacity;
    if (s == BELL_OK && events) s = bell_gpu_alloc(&r->gpu, (void **)&r->lanes.event, job->world->lanes * events, err);
    if (s == BELL_OK && events && job->has_nic)
        s = bell_gpu_alloc(&r->gpu, (void **)&r->nic.event, job->world->queues * events, err);
    return s;
}

uint32_t bell_gpu_rank_blocks(const struct bell_gpu_rank *r, uint32_t *threads)
{
    struct bell_machine machine;
    bell_machine_read(r->job->run->machine, &machine);
    uint32_t share = r->lanes.share;
    *threads = machine.lanes_per_cta > share ? machine.lanes_per_cta / share * share : share;
    return (r->lanes.lanes + *threads - 1) / *threads;
}

uint32_t bell_gpu_rank_nic_sms(const struct bell_gpu_rank *r)
{
    bool has_nic = r->job->has_nic && bell_world_is_active(r->job->world, r->number);
    return has_nic ? (r->nic.queues + NIC_THREADS - 1) / NIC_THREADS : 0;
}

enum bell_status bell_gpu_rank_launch_nic(struct bell_gpu_rank *r, uint32_t others, struct bell_error *err)
{
    struct bell_gpu_grid grid = {
        .what = "queues",
        .kernel = bell_cuda_nic_kernel(r->job->run->sink != NULL),
        .blocks = bell_gpu_rank_nic_sms(r),
        .threads = NIC_THREADS,
        .others = others,
        .shared_bytes = r->gpu.properties.sharedMemPerBlockOptin, /* all of an SM's: nothing else fits on it */
    };
    return grid.blocks ? bell_gpu_launch(&r->gpu, 1, &grid, &r->nic, err) : BELL_OK;
}

enum bell_status bell_gpu_rank_launch_lanes(struct bell_gpu_rank *r, uint32_t others, uint32_t held_sms,
                                            struct bell_error *err)
{
    struct bell_gpu_grid grid = {
        .what = "lanes",
        .kernel = bell_cuda_lanes_kernel(r->job->run->stack, r->job->run->sink != NULL),
        .others = others,
        .held_sms = held_sms,
    };
    grid.blocks = bell_gpu_rank_blocks(r, &grid.threads);
    return bell_world_is_active(r->job->world, r->number) ? bell_gpu_launch(&r->gpu, 0, &grid, &r->lanes, err)
                                                          : BELL_OK;
}

/* What the NIC knows of its queues, for whoever explains a failure. */
static enum bell_status fetch_nic(const struct bell_gpu_rank *r, struct bell_error *err)
{
    const struct bell_world *w = r->job->world;
    enum bell_status s = BELL_OK;
    for (uint32_t q = 0; s == BELL_OK && q < w->queues; q++) {
        struct bell_nicq *mine = w->rank[r->number].nicq + q, theirs;
        s = BELL_GPU(cudaMemcpy(&theirs, r->nic.nicq + q, sizeof theirs, cudaMemcpyDeviceToHost), err);
        theirs.sq = mine->sq;
        theirs.local = mine->local;
        theirs.remote = mine->remote;
        theirs.receive = mine->receive;
        if (s == BELL_OK) *mine = theirs;
    }
    return s;
}

enum bell_status bell_gpu_rank_fetch(struct bell_gpu_rank *r, struct bell_result *result, struct bell_error *err)
{
    struct bell_world *w = r->job->world;
    const struct bell_program *p = r->job->run->program;
    size_t at = 0, samples = (size_t)bell_program_counted(p) * p->iterations * sizeof(uint64_t);
    enum bell_status s = BELL_GPU(cudaSetDevice(r->gpu.number), err);
    for (uint32_t i = 0; i < r->number * BELL_PLACES; i++)
        at += w->place[i / BELL_PLACES][i % BELL_PLACES].size;
    for (int i = 0; s == BELL_OK && i < BELL_PLACES; at += w->place[r->number][i++].size) {
        if (!r->place[i]) continue;
        s = BELL_GPU(cudaMemcpy(w->arena + at, r->place[i], w->place[r->number][i].size, cudaMemcpyDeviceToHost), err);
        if (s == BELL_OK) bell_world_move(w, r->number, (enum bell_place)i, w->arena + at);
    }
    if (s == BELL_OK && r->job->has_nic) s = fetch_nic(r, err);
    if (s == BELL_OK && r->number == 0 && result->issue_ps)
        s = BELL_GPU(cudaMemcpy(result->issue_ps, r->lanes.issue_ps, samples, cudaMemcpyDeviceToHost), err);
    if (s == BELL_OK && r->number == 0 && result->total_ps)
        s = BELL_GPU(cudaMemcpy(result->total_ps, r->lanes.total_ps, samples, cudaMemcpyDeviceToHost), err);
    return s;
}

bool bell_gpu_rank_failure(const struct bell_gpu_rank *r, struct bell_lane_id *who, enum bell_status *status)
{
    const struct bell_world *w = r->job->world;
    for (int pass = 0; r->end && pass < 2; pass++)
        for (uint32_t i = 0; i < w->lanes + w->queues; i++) {
            enum bell_status s = (enum bell_status)r->end[i].status;
            bool is_nic = i >= w->lanes;
            if (!bell_is_failure(s) || (s == BELL_STOPPED) != (pass == 1)) continue;
            memset(who, 0, sizeof *who);
            who->rank = (uint16_t)r->number;
            who->lane = (uint16_t)(is_nic ? i + w->workers : i);
            who->actor = is_nic ? BELL_ACTOR_NIC : BELL_ACTOR_GPU;
            who->waited_for = r->end[i].waited_for[0] ? r->end[i].waited_for : NULL;
            *status = s;
            return true;
        }
    return false;
}

void bell_gpu_rank_leave(struct bell_gpu_rank *r)
{
    (void)cudaSetDevice(r->gpu.number);
    for (int p = 0; p < BELL_PLACES; p++)
        (void)cudaFree(r->place[p]);
    (void)cudaFree(r->lanes.done);
    (void)cudaFree(r->lanes.issue_ps);
    (void)cudaFree(r->lanes.total_ps);
    (void)cudaFree(r->lanes.event);
    (void)cudaFree(r->nic.event);
    (void)cudaFree(r->nic.nicq);
    if (r->end) (void)cudaFreeHost(r->end);
    free(r->nic_copy);
    memset(r->place, 0, sizeof r->place);
    memset(&r->lanes, 0, sizeof r->lanes);
    memset(&r->nic, 0, sizeof r->nic);
    r->end = NULL;
    r->nic_copy = NULL;
}
