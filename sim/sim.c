/* SPDX-License-Identifier: Apache-2.0
 * The executor: a world, an actor for each lane and worker, the NICs, and SimGrid's clock. */
#include "sim/group.h"
#include "sim/nic.h"

#include "core/exec.h"
#include "core/world.h"

#include <simgrid/actor.h>
#include <simgrid/engine.h>
#include <simgrid/host.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define DEFAULT_BOUND_PS ((uint64_t)1000000000000u) /* one second */

/* Everything of one run. */
struct machine {
    struct bell_sim sim;
    struct bell_world world;
    void *arena;
    struct bell_lane *lane; /* of all ranks: lanes, then workers */
    struct bell_sim_group *group;
    struct bell_sim_port port[BELL_RANKS];
    uint32_t lanes;
};

/* ---- SimGrid is started once in a process and keeps its one host a role and rank ---- */
static const char platform_xml[] =
    "<?xml version='1.0'?><!DOCTYPE platform SYSTEM 'https://simgrid.org/simgrid.dtd'>"
    "<platform version='4.1'><zone id='machine' routing='None'>"
    "<host id='gpu0' speed='1f'/><host id='gpu1' speed='1f'/><host id='cpu0' speed='1f'/><host id='cpu1' speed='1f'/>"
    "</zone></platform>";

static enum bell_status write_platform(char *path, struct bell_error *err)
{
    int file = mkstemps(path, 4);
    if (file < 0)
        return bell_fail(err, BELL_IO, "%s: cannot be created for SimGrid's platform", path);
    size_t size = sizeof platform_xml - 1;
    bool is_written = write(file, platform_xml, size) == (ssize_t)size;
    (void)close(file);
    return is_written ? BELL_OK : bell_fail(err, BELL_IO, "%s: cannot be written", path);
}

static enum bell_status start_simgrid(struct bell_error *err)
{
    static bool is_started = false;
    if (is_started)
        return BELL_OK;
    char path[] = "/tmp/bellwether-XXXXXX.xml";
    enum bell_status s = write_platform(path, err);
    if (s != BELL_OK)
        return s;
    /* The default precision rounds below a nanosecond. */
    char *argv[] = { "bellwether", "--cfg=surf/precision:1e-12", "--cfg=contexts/factory:raw",
                     "--log=root.thres:error", NULL };
    int argc = 4;
    simgrid_init(&argc, argv);
    simgrid_load_platform(path);
    (void)unlink(path);
    is_started = true;
    return BELL_OK;
}

/* ---- actors ---- */
static void live(int argc, char **argv)
{
    struct bell_lane *lane = sg_actor_get_data(sg_actor_self());
    struct machine *m = (struct machine *)(void *)lane->sim; /* sim is its first member */
    (void)argc;
    (void)argv;
    bell_sim_enter(lane);
    const struct bell_world *w = &m->world;
    struct bell_rank *r = &m->world.rank[lane->id.rank];
    struct bell_share share = { NULL, NULL, 0 };
    enum bell_status s;
    if (lane->id.lane < w->lanes) {
        s = bell_client_run(lane, r->client + lane->id.lane);
    } else {
        share = bell_world_share(w, lane->id.rank, lane->id.lane - w->lanes);
        s = bell_serve(lane, &share);
    }
    if (bell_is_failure(s) && !m->sim.is_stopped) {
        bell_world_explain(w, &lane->id, s, m->sim.err);
        bell_sim_stop(&m->sim, s, lane->now_ps);
    }
    bell_sim_leave(lane);
}

static void make_lane(struct machine *m, struct bell_lane *lane, uint32_t rank, uint32_t number)
{
    const struct bell_world *w = &m->world;
    /* A program that runs has a queue.  NOLINTNEXTLINE(clang-analyzer-core.DivideZero) */
    uint32_t share = w->program->pattern == BELL_PATTERN_PROBE ? w->lanes : w->lanes / w->queues;
    bool is_worker = number >= w->lanes;
    lane->sim = &m->sim;
    lane->id.rank = (uint16_t)rank;
    lane->id.lane = (uint16_t)number;
    lane->id.actor = is_worker ? BELL_ACTOR_CPU : BELL_ACTOR_GPU;
    lane->id.group_size = 1;
    lane->is_private = share == 1;
    if (!is_worker && share > 1 && w->stack->sharing == BELL_SHARING_COOPERATIVE) {
        uint32_t size = bell_program_group(w->program, w->stack);
        lane->group = m->group + rank * w->lanes / size + number / size;
        lane->id.group_rank = (uint16_t)(number % size);
        lane->id.group_size = (uint16_t)size;
    }
    bell_sim_admit(&m->sim, lane);
}

static void start_actor(struct bell_lane *lane)
{
    char name[40], host[8];
    bool is_worker = lane->id.actor == BELL_ACTOR_CPU;
    (void)snprintf(host, sizeof host, "%s%u", is_worker ? "cpu" : "gpu", (unsigned)lane->id.rank % BELL_RANKS);
    (void)snprintf(name, sizeof name, "%s-%u", host, (unsigned)lane->id.lane);
    sg_actor_t actor = sg_actor_init(name, sg_host_by_name(host));
    sg_actor_set_data(actor, lane);
    sg_actor_start(actor, live, 0, NULL);
}

static void make_queue(struct machine *m, uint32_t rank, uint32_t queue)
{
    struct bell_world *w = &m->world;
    const struct bell_costs *c = &m->sim.cost;
    struct bell_sim_queue *q = m->sim.queue + rank * w->queues + queue;
    q->nicq = w->rank[rank].nicq + queue;
    q->port = m->port + rank;
    q->lane.sim = &m->sim;
    q->lane.id.rank = (uint16_t)rank;
    q->lane.id.lane = (uint16_t)(w->lanes + w->workers + queue);
    q->lane.id.actor = BELL_ACTOR_NIC;
    q->queue_read_ps = c->nic_read_ps[w->stack->queue_memory];
    q->queue_write_ps = c->cqe_ps[w->stack->queue_memory];
    q->payload_read_ps = c->nic_read_ps[BELL_MEMORY_GPU];
    q->payload_write_ps = c->nic_write_ps[BELL_MEMORY_GPU];
}

static enum bell_status allocate(struct machine *m, const struct bell_run *run)
{
    uint32_t workers = bell_stack_workers(run->stack, run->program->queues);
    size_t size = bell_world_size(run->program, run->stack);
    m->arena = aligned_alloc(64, size);
    m->lane = calloc(BELL_RANKS * (run->program->lanes + workers), sizeof *m->lane);
    m->group = calloc(BELL_RANKS * run->program->lanes, sizeof *m->group);
    m->sim.queue = calloc(BELL_RANKS * run->program->queues, sizeof *m->sim.queue);
    if (!m->arena || !m->lane || !m->group || !m->sim.queue)
        return BELL_NO_MEMORY;
    return bell_world_build(&m->world, run->program, run->stack, m->arena, size);
}

static void set_up(struct machine *m, const struct bell_run *run, struct bell_result *result)
{
    struct bell_world *w = &m->world;
    m->sim.queue_base = w->rank[0].sq[0].qpn;
    m->sim.random = run->program->seed;
    m->sim.bound_ps = run->bound_ps ? run->bound_ps : DEFAULT_BOUND_PS;
    for (uint32_t rank = 0; rank < BELL_RANKS; rank++) {
        for (uint32_t q = 0; q < w->queues; q++)
            make_queue(m, rank, q);
        for (uint32_t n = 0; bell_world_is_active(w, rank) && n < w->lanes + w->workers; n++)
            make_lane(m, m->lane + m->lanes++, rank, n);
    }
    for (uint32_t n = 0; result->issue_ps && n < bell_program_counted(run->program); n++) {
        w->rank[0].client[n].issue_ps = result->issue_ps + (size_t)n * run->program->iterations;
        w->rank[0].client[n].total_ps = result->total_ps + (size_t)n * run->program->iterations;
    }
}

static enum bell_status probe(struct bell_error *err)
{
    (void)err;
    return BELL_OK;
}

static enum bell_status simulate(const struct bell_run *run, struct bell_result *result, struct bell_error *err)
{
    struct machine m = { .sim = { .sink = run->sink, .err = err } };
    if (!run->platform)
        return bell_fail(err, BELL_INVALID, "the simulator needs a platform");
    if (run->stack->doorbell == BELL_WRITER_HOST)
        return bell_fail(err, BELL_UNSUPPORTED, "doorbell: a doorbell that the host forwards is not modelled yet");
    enum bell_status s = start_simgrid(err);
    if (s == BELL_OK && (s = allocate(&m, run)) != BELL_OK)
        s = bell_fail(err, s, "no memory for %u lanes and queues of depth %u", run->program->lanes, run->stack->depth);
    if (s == BELL_OK) {
        bell_costs_of(run->platform, &m.sim.cost);
        set_up(&m, run, result);
        double begin = simgrid_get_clock();
        for (uint32_t i = 0; i < m.lanes; i++)
            start_actor(m.lane + i);
        simgrid_run();
        result->span_ps = (uint64_t)((simgrid_get_clock() - begin) * 1e12 + 0.5);
        result->events = m.sim.seq;
        s = m.sim.status;
    }
    if (s == BELL_OK)
        s = bell_world_verify(&m.world, err);
    if (s == BELL_OK)
        bell_world_rate(&m.world, &result->puts, &result->puts_ps);
    if (s == BELL_OK)
        bell_world_tell_fault(&m.world, result->notes, sizeof result->notes);
    bell_sim_free(&m.sim);
    bell_sim_free_work(&m.sim);
    free(m.sim.queue);
    free(m.group);
    free(m.lane);
    free(m.arena);
    return s;
}

const struct bell_executor bell_sim_executor = {
    "sim", "SimGrid actors post to a modelled NIC in virtual time; needs a platform", "virtual", probe, simulate,
};
