/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/soft/team.h"

#include "hw/soft/cores.h"

#include <stdlib.h>

#define LANES (1u << BELL_SOFT_LANE)

static bool is_on_thread(const struct bell_soft_team *t, const struct bell_soft_member *m)
{
    return t->roles >> m->role & 1;
}

static void leave(struct bell_soft_team *t)
{
    if (__atomic_sub_fetch(&t->busy, 1, __ATOMIC_RELAXED) == 0)
        __atomic_store_n(&t->crew.nic_stop, 1, __ATOMIC_RELAXED);
}

static void *work(void *argument)
{
    struct bell_soft_member *m = argument;
    struct bell_soft_team *t = (struct bell_soft_team *)m->crew;
    struct bell_rank *rank = t->crew.world.rank + m->lane.id.rank;
    struct bell_share share = { NULL, NULL, 0 };
    enum bell_status s = BELL_OK;
    if (m->role == BELL_SOFT_WORKER) share = bell_world_share(&t->crew.world, m->lane.id.rank, m->number);
    if (m->core != BELL_NIC_ANY_CORE) (void)bell_core_bind(m->core);
    (void)pthread_rwlock_rdlock(&t->gate);
    (void)pthread_rwlock_unlock(&t->gate);
    switch (m->role) {
    case BELL_SOFT_LANE:
        s = bell_client_run(&m->lane, rank->client + m->number);
        break;
    case BELL_SOFT_WORKER:
        s = bell_serve(&m->lane, &share);
        break;
    case BELL_SOFT_NIC:
        s = bell_nic_server_run(m->server);
        break;
    }
    if (bell_is_failure(s)) bell_soft_member_fail(m, s);
    if (m->role != BELL_SOFT_NIC) leave(t);
    return NULL;
}

/* A core for each thread: NIC threads first, because they must keep up with everybody. */
static enum bell_status choose_cores(struct bell_soft_team *t, struct bell_error *err)
{
    struct bell_soft_crew *crew = &t->crew;
    struct bell_machine machine;
    uint32_t used = 0, count = 0;
    bell_machine_read(crew->run->machine, &machine);
    if (!machine.pin) return BELL_OK;
    for (size_t i = 0; i < crew->members; i++)
        count += is_on_thread(t, &crew->member[i]);
    uint32_t *core = malloc((count + 1) * sizeof *core);
    if (!core) return bell_fail(err, BELL_NO_MEMORY, "out of memory: cores of %u threads", count);
    enum bell_status s = bell_cores_choose(machine.first_core, count, core, err);
    for (uint32_t i = 0; s == BELL_OK && i < 2 * crew->members; i++) {
        struct bell_soft_member *m = &crew->member[i % crew->members];
        if (is_on_thread(t, m) && (m->role == BELL_SOFT_NIC) == (i < crew->members)) m->core = core[used++];
        if (m->server) m->server->core = m->core;
    }
    free(core);
    return s;
}

enum bell_status bell_soft_team_open(struct bell_soft_team *t, const struct bell_run *run,
                                     const struct bell_result *result, unsigned roles, struct bell_error *err)
{
    memset(t, 0, sizeof *t);
    t->roles = roles;
    enum bell_status s = bell_soft_crew_open(&t->crew, run, result, err);
    if (s != BELL_OK) return s;
    t->thread = calloc(t->crew.members, sizeof *t->thread);
    s = choose_cores(t, err);
    if (s == BELL_OK && (!t->thread || pthread_rwlock_init(&t->gate, NULL) != 0))
        s = bell_fail(err, BELL_NO_MEMORY, "out of memory: %zu threads", t->crew.members);
    if (s != BELL_OK) {
        free(t->thread);
        bell_soft_crew_close(&t->crew);
    }
    return s;
}

enum bell_status bell_soft_team_start(struct bell_soft_team *t, struct bell_error *err)
{
    struct bell_soft_crew *crew = &t->crew;
    int failure = 0;
    (void)pthread_rwlock_wrlock(&t->gate);
    t->busy = !(t->roles & LANES);
    for (size_t i = 0; i < crew->members && !failure; i++) {
        if (!is_on_thread(t, &crew->member[i])) continue;
        failure = pthread_create(&t->thread[t->threads], NULL, work, &crew->member[i]);
        t->threads += !failure;
        if (!failure && crew->member[i].role != BELL_SOFT_NIC) t->busy++;
    }
    if (failure) { /* those that are there leave at their first wait */
        __atomic_store_n(&crew->soft.stop, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&crew->nic_stop, 1, __ATOMIC_RELAXED);
    }
    bell_soft_crew_begin(crew);
    (void)pthread_rwlock_unlock(&t->gate);
    return failure ? bell_fail(err, BELL_NO_MEMORY, "only %zu of %zu threads could be started: %s", t->threads,
                               crew->members, strerror(failure))
                   : BELL_OK;
}

void bell_soft_team_lanes_done(struct bell_soft_team *t)
{
    leave(t);
}

void bell_soft_team_join(struct bell_soft_team *t, struct bell_result *result)
{
    for (size_t i = 0; i < t->threads; i++)
        (void)pthread_join(t->thread[i], NULL);
    t->threads = 0;
    if (t->roles >> BELL_SOFT_NIC & 1)
        bell_nic_server_report(t->crew.server, t->crew.servers, result->notes, sizeof result->notes);
}

void bell_soft_team_close(struct bell_soft_team *t)
{
    (void)pthread_rwlock_destroy(&t->gate);
    free(t->thread);
    bell_soft_crew_close(&t->crew);
}
