/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/mlx5/run.h"
#include "hw/mlx5/scene.h"
#include "hw/soft/cores.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define LINE_BYTES 64u
#define WAIT_BOUND_PS 2000000000000u /* when the run names none */

struct crew;

struct member {
    struct bell_lane lane;
    struct crew *crew;
    uint32_t number; /* of the lane or worker in its rank */
    bool is_worker;
    bool is_bound; /* to its core */
    uint32_t core;
    pthread_t thread;
} __attribute__((aligned(64)));

struct crew {
    struct bell_mlx5_team team;
    struct bell_mlx5_scene scene;
    const struct bell_mlx5_lanes *lanes; /* not NULL: lanes are no threads */
    struct member *member; /* of each active rank: lanes that are threads, then workers */
    size_t members;
    struct bell_mlx5_group *group; /* of the lanes that cooperate, or NULL */
    pthread_rwlock_t gate;   /* closed until all threads are there */
    enum bell_status status; /* first failure; valid when team.stop is 1 and all threads are gone */
    struct bell_lane_id who; /* whose it was */
};

/* Zeroed and aligned to a cache line; freed with free(). */
static void *lines(size_t bytes)
{
    size_t whole = (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    void *at = aligned_alloc(LINE_BYTES, whole ? whole : LINE_BYTES);
    if (at)
        memset(at, 0, whole);
    return at;
}

static void init_lane(struct crew *crew, struct member *m, const struct bell_result *result)
{
    struct bell_world *w = &crew->scene.world;
    uint32_t rank = m->lane.id.rank, size = bell_program_group(w->program, w->stack);
    if (crew->group) {
        m->lane.group = &crew->group[rank * w->lanes / size + m->number / size];
        m->lane.id.group_rank = (uint16_t)(m->number % size);
        m->lane.id.group_size = (uint16_t)size;
    }
    if (rank == 0 && m->number < bell_program_counted(w->program) && result->issue_ps && result->total_ps) {
        size_t first = (size_t)m->number * w->program->iterations;
        w->rank[0].client[m->number].issue_ps = result->issue_ps + first;
        w->rank[0].client[m->number].total_ps = result->total_ps + first;
    }
}

/* A lone WQE is one block, and it must not meet a register that takes 8 B only. */
static bool may_blueflame(const struct bell_mlx5_scene *scene)
{
    for (uint32_t i = 0; i < BELL_RANKS * scene->queues; i++)
        if (scene->queue[i].binding.blueflame_bytes < BELL_MLX5_BLOCK_BYTES)
            return false;
    return true;
}

static void init_member(struct crew *crew, uint32_t rank, uint32_t at, const struct bell_result *result)
{
    const struct bell_world *w = &crew->scene.world;
    struct member *m = &crew->member[crew->members++];
    m->crew = crew;
    m->is_worker = at >= w->lanes;
    m->number = m->is_worker ? at - w->lanes : at;
    m->lane.team = &crew->team;
    m->lane.id.rank = (uint16_t)rank;
    m->lane.id.lane = (uint16_t)at;
    m->lane.id.group_size = 1;
    m->lane.id.actor = BELL_ACTOR_CPU;
    m->lane.may_blueflame = may_blueflame(&crew->scene);
    if (!m->is_worker)
        init_lane(crew, m, result);
}

static enum bell_status muster(struct crew *crew, const struct bell_result *result,
                               struct bell_error *err)
{
    const struct bell_world *w = &crew->scene.world;
    size_t each = (size_t)w->lanes + w->workers;
    bool is_grouped = !crew->lanes && crew->scene.stack.sharing == BELL_SHARING_COOPERATIVE && w->lanes > w->queues;
    crew->member = lines(BELL_RANKS * each * sizeof *crew->member);
    crew->group = is_grouped ? lines((size_t)BELL_RANKS * w->lanes * sizeof *crew->group) : NULL;
    if (!crew->member || (is_grouped && !crew->group))
        return bell_fail(err, BELL_NO_MEMORY, "out of memory: %zu threads", BELL_RANKS * each);
    for (uint32_t rank = 0; rank < BELL_RANKS; rank++)
        for (uint32_t at = crew->lanes ? w->lanes : 0; bell_world_is_active(w, rank) && at < each; at++)
            init_member(crew, rank, at, result);
    return BELL_OK;
}

static void *work(void *argument)
{
    struct member *m = argument;
    struct crew *crew = m->crew;
    const struct bell_world *w = &crew->scene.world;
    struct bell_share share = { NULL, NULL, 0 };
    if (m->is_worker)
        share = bell_world_share(w, m->lane.id.rank, m->number);
    if (m->is_bound)
        (void)bell_core_bind(m->core);
    (void)pthread_rwlock_rdlock(&crew->gate);
    (void)pthread_rwlock_unlock(&crew->gate);
    enum bell_status s = m->is_worker ? bell_serve(&m->lane, &share)
                                      : bell_client_run(&m->lane, w->rank[m->lane.id.rank].client + m->number);
    if (bell_is_failure(s) && !__atomic_exchange_n(&crew->team.stop, 1, __ATOMIC_RELAXED)) {
        crew->status = s;
        crew->who = m->lane.id;
    }
    return NULL;
}

/* A core for each thread, when they are wanted. */
static enum bell_status choose_cores(struct crew *crew, const struct bell_machine *machine, struct bell_error *err)
{
    if (!machine->pin || crew->members == 0)
        return BELL_OK;
    uint32_t *core = malloc(crew->members * sizeof *core);
    if (!core)
        return bell_fail(err, BELL_NO_MEMORY, "out of memory: cores of %zu threads", crew->members);
    enum bell_status s = bell_cores_choose(machine->first_core, (uint32_t)crew->members, core, err);
    for (size_t i = 0; s == BELL_OK && i < crew->members; i++) {
        crew->member[i].core = core[i];
        crew->member[i].is_bound = true;
    }
    free(core);
    return s;
}

/* Threads wait at the gate until all are there; when one cannot be started, those that are leave at their first wait.
 */
static enum bell_status run_threads(struct crew *crew, struct bell_result *result, struct bell_error *err)
{
    size_t started = 0;
    int failure = 0;
    (void)pthread_rwlock_wrlock(&crew->gate);
    for (; started < crew->members && !failure; started += !failure)
        failure = pthread_create(&crew->member[started].thread, NULL, work, &crew->member[started]);
    enum bell_status s = BELL_OK;
    if (failure)
        s = bell_fail(err, BELL_NO_MEMORY, "only %zu of %zu threads could be started: %s", started,
                      crew->members, strerror(failure));
    if (s != BELL_OK)
        __atomic_store_n(&crew->team.stop, 1, __ATOMIC_RELAXED);
    uint64_t began_ps = bell_port_now(NULL);
    for (size_t i = 0; i < started; i++)
        crew->member[i].lane.id.step_start_ps = began_ps;
    (void)pthread_rwlock_unlock(&crew->gate);
    if (crew->lanes && s == BELL_OK)
        s = crew->lanes->run(crew->lanes->context, &crew->team.stop, &crew->who, &crew->status, err);
    for (size_t i = 0; i < started; i++)
        (void)pthread_join(crew->member[i].thread, NULL);
    result->span_ps = bell_port_now(NULL) - began_ps;
    return s;
}

static void describe(const struct crew *crew, struct bell_result *result)
{
    const struct bell_mlx5_device *d = &crew->scene.device;
    const struct bell_mlx5_queue *q = crew->scene.queue;
    static const char *const uars[] = { "dedicated non-cached", "shared non-cached", "BlueFlame" };
    bool is_forwarded = q->binding.ringer == BELL_RINGER_HOST, is_proxy = crew->scene.stack.submit == BELL_SUBMIT_PROXY;
    const struct bell_mlx5_payload *payload = &crew->scene.payload[1]; /* rank 0's target */
    (void)snprintf(result->path, sizeof result->path, "%s",
                   is_proxy                        ? "proxy"
                   : crew->lanes && !is_forwarded ? "gpu-doorbell"
                                                   : "host-doorbell");
    if (!crew->lanes)
        (void)snprintf(result->processor, sizeof result->processor, "CPU threads as lanes");
    (void)snprintf(result->notes, sizeof result->notes,
                   "%s port %u (%s), both ranks on it; queues in %s memory, registered %s, UAR %s%s; payload in %s "
                   "memory.",
                   d->name, d->port.number, d->port.is_ethernet ? "Ethernet" : "InfiniBand",
                   q->binding.memory == BELL_MEMORY_GPU ? "GPU" : "host",
                   q->wq.way == BELL_MLX5_BY_DMABUF ? "as dma-buf" : "by address", uars[q->uar_kind],
                   is_forwarded ? ", rung by CPU workers" : "",
                   payload->memory && payload->memory->kind == BELL_MEMORY_GPU ? "GPU" : "host");
}

/* With all threads gone. */
static enum bell_status judge(struct crew *crew, struct bell_result *result, struct bell_error *err)
{
    enum bell_status s = BELL_OK;
    if (crew->lanes)
        s = crew->lanes->fetch(crew->lanes->context, result, err);
    if (s == BELL_OK && !crew->team.stop)
        s = bell_mlx5_scene_fetch(&crew->scene, err);
    if (s != BELL_OK)
        return s;
    if (crew->team.stop) {
        bell_world_explain(&crew->scene.world, &crew->who, crew->status, err);
        return crew->status;
    }
    bell_world_rate(&crew->scene.world, &result->puts, &result->puts_ps);
    return bell_world_verify(&crew->scene.world, err);
}

static enum bell_status run_crew(struct crew *crew, const struct bell_run *run, struct bell_result *result,
                                 struct bell_error *err)
{
    struct bell_machine machine;
    bell_machine_read(run->machine, &machine);
    enum bell_status s = muster(crew, result, err);
    if (s != BELL_OK)
        return s;
    if (pthread_rwlock_init(&crew->gate, NULL) != 0)
        return bell_fail(err, BELL_NO_MEMORY, "out of memory: a lock");
    describe(crew, result);
    s = choose_cores(crew, &machine, err);
    if (s == BELL_OK)
        s = run_threads(crew, result, err);
    (void)pthread_rwlock_destroy(&crew->gate);
    return s == BELL_OK ? judge(crew, result, err) : s;
}

/* Lanes that are elsewhere get the world before the threads start, and give it back when those are gone. */
static enum bell_status run_lanes(struct crew *crew, const struct bell_run *run, struct bell_result *result,
                                  struct bell_error *err)
{
    struct bell_run mine = *run;
    mine.stack = &crew->scene.stack;
    if (!crew->lanes)
        return run_crew(crew, run, result, err);
    enum bell_status s =
        crew->lanes->place(crew->lanes->context, &crew->scene.world, &mine, crew->team.bound_ps, err);
    if (s == BELL_OK)
        s = run_crew(crew, run, result, err);
    crew->lanes->leave(crew->lanes->context);
    return s;
}

enum bell_status bell_mlx5_run(const struct bell_mlx5_ground *ground, const struct bell_run *run,
                               struct bell_result *result, struct bell_error *err)
{
    struct crew *crew = lines(sizeof *crew);
    if (!crew)
        return bell_fail(err, BELL_NO_MEMORY, "out of memory: a run");
    result->events = 0;
    crew->lanes = ground->lanes;
    crew->team.bound_ps = run->bound_ps ? run->bound_ps : WAIT_BOUND_PS;
    enum bell_status s = bell_mlx5_scene_open(&crew->scene, ground, run, err);
    if (s == BELL_OK) {
        s = run_lanes(crew, run, result, err);
        bell_mlx5_scene_close(&crew->scene);
    }
    free(crew->member);
    free(crew->group);
    free(crew);
    return s;
}
