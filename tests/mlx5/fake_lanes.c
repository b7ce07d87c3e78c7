/* SPDX-License-Identifier: Apache-2.0
 * Lanes that are not hw/mlx5's threads, as a GPU's are not: threads of their own over another port. */
#include "core/client.h"
#include "core/world.h"
#include "tests/mlx5/fake.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake_lane {
    struct bell_lane lane;
    struct fake_lanes *all;
    struct bell_client *client;
    pthread_t thread;
    enum bell_status status;
    bool is_over;
};

static enum bell_status check(void *context, const struct bell_run *run, struct bell_error *err)
{
    struct fake_lanes *l = context;
    if (run->stack->sharing == BELL_SHARING_COOPERATIVE)
        return bell_fail(err, BELL_UNSUPPORTED, "fake lanes do not cooperate");
    l->checked++;
    return BELL_OK;
}

static enum bell_status place(void *context, struct bell_world *world, const struct bell_run *run, uint64_t bound_ps,
                              struct bell_error *err)
{
    struct fake_lanes *l = context;
    size_t lanes = (size_t)BELL_RANKS * world->lanes;
    size_t samples = (size_t)bell_program_counted(run->program) * run->program->iterations;
    l->placed++;
    if (l->refuse_place)
        return bell_fail(err, BELL_NO_MEMORY, "fake lanes have no room");
    memset(&l->soft, 0, sizeof l->soft);
    l->soft.bound_ps = bound_ps;
    l->world = world;
    l->samples = samples;
    l->issue_ps = calloc(samples, sizeof *l->issue_ps);
    l->total_ps = calloc(samples, sizeof *l->total_ps);
    l->lane = aligned_alloc(64, (lanes * sizeof *l->lane + 63) / 64 * 64);
    if (!l->issue_ps || !l->total_ps || !l->lane)
        abort();
    memset(l->lane, 0, lanes * sizeof *l->lane);
    for (uint32_t i = 0; i < bell_program_counted(run->program); i++) {
        world->rank[0].client[i].issue_ps = l->issue_ps + (size_t)i * run->program->iterations;
        world->rank[0].client[i].total_ps = l->total_ps + (size_t)i * run->program->iterations;
    }
    return BELL_OK;
}

static void *work(void *argument)
{
    struct fake_lane *m = argument;
    m->status = bell_client_run(&m->lane, m->client);
    __atomic_store_n(&m->is_over, true, __ATOMIC_RELEASE);
    return NULL;
}

/* The first failure that is not somebody else's stops all. */
static void look(struct fake_lanes *l, size_t lanes, uint32_t *stop, struct bell_lane_id *who,
                 enum bell_status *status)
{
    for (size_t i = 0; i < lanes; i++) {
        const struct fake_lane *m = &l->lane[i];
        if (!__atomic_load_n(&m->is_over, __ATOMIC_ACQUIRE) || !bell_is_failure(m->status)
            || m->status == BELL_STOPPED || __atomic_exchange_n(stop, 1, __ATOMIC_RELAXED))
            continue;
        *who = m->lane.id;
        *status = m->status;
    }
    if (__atomic_load_n(stop, __ATOMIC_RELAXED))
        __atomic_store_n(&l->soft.stop, 1, __ATOMIC_RELAXED);
}

static enum bell_status run(void *context, uint32_t *stop, struct bell_lane_id *who, enum bell_status *status,
                            struct bell_error *err)
{
    struct fake_lanes *l = context;
    size_t lanes = 0, over = 0;
    for (uint32_t rank = 0; rank < BELL_RANKS && bell_world_is_active(l->world, rank); rank++)
        for (uint32_t i = 0; i < l->world->lanes; i++) {
            struct fake_lane *m = &l->lane[lanes++];
            m->all = l;
            m->client = l->world->rank[rank].client + i;
            m->lane.soft = &l->soft;
            m->lane.id = (struct bell_lane_id){ .rank = (uint16_t)rank, .lane = (uint16_t)i, .group_size = 1,
                                                .actor = BELL_ACTOR_GPU };
            if (pthread_create(&m->thread, NULL, work, m) != 0)
                abort();
        }
    while (over < lanes) {
        look(l, lanes, stop, who, status);
        for (over = 0; over < lanes && __atomic_load_n(&l->lane[over].is_over, __ATOMIC_ACQUIRE);)
            over++;
        (void)sched_yield();
    }
    look(l, lanes, stop, who, status);
    for (size_t i = 0; i < lanes; i++)
        (void)pthread_join(l->lane[i].thread, NULL);
    l->ran++;
    return l->refuse_run ? bell_fail(err, BELL_IO, "fake lanes fell over") : BELL_OK;
}

static enum bell_status fetch(void *context, struct bell_result *result, struct bell_error *err)
{
    struct fake_lanes *l = context;
    (void)err;
    (void)snprintf(result->processor, sizeof result->processor, "fake lanes");
    memcpy(result->issue_ps, l->issue_ps, l->samples * sizeof *l->issue_ps);
    memcpy(result->total_ps, l->total_ps, l->samples * sizeof *l->total_ps);
    return BELL_OK;
}

static void leave(void *context)
{
    struct fake_lanes *l = context;
    free(l->issue_ps);
    free(l->total_ps);
    free(l->lane);
    l->issue_ps = l->total_ps = NULL;
    l->lane = NULL;
    l->left++;
}

void fake_lanes_start(struct fake_lanes *l)
{
    memset(l, 0, sizeof *l);
    l->table = (struct bell_mlx5_lanes){ l, check, place, run, fetch, leave };
}
