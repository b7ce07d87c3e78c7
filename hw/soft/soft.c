/* SPDX-License-Identifier: Apache-2.0
 * Executor "soft": a thread for each lane and worker, and one or more for the NIC of each rank. */
#include "hw/soft/cores.h"
#include "hw/soft/crew.h"

#include <pthread.h>
#include <stdlib.h>

struct team {
    struct bell_soft_crew crew;
    pthread_rwlock_t gate;                      /* closed until all threads are there */
    pthread_t *thread;                          /* one a member */
    uint32_t busy __attribute__((aligned(64))); /* lanes and workers that are not done */
};

static void *work(void *argument)
{
    struct bell_soft_member *m = argument;
    struct team *t = (struct team *)m->crew;
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
    if (m->role != BELL_SOFT_NIC && __atomic_sub_fetch(&t->busy, 1, __ATOMIC_RELAXED) == 0)
        __atomic_store_n(&t->crew.nic_stop, 1, __ATOMIC_RELAXED);
    return NULL;
}

/* A core for each thread: NIC threads first, because they must keep up with everybody. */
static enum bell_status choose_cores(struct bell_soft_crew *crew, struct bell_error *err)
{
    struct bell_machine machine;
    uint32_t used = 0;
    bell_machine_read(crew->run->machine, &machine);
    if (!machine.pin) return BELL_OK;
    uint32_t *core = malloc(crew->members * sizeof *core);
    if (!core) return bell_fail(err, BELL_NO_MEMORY, "out of memory: cores of %zu threads", crew->members);
    enum bell_status s = bell_cores_choose(machine.first_core, (uint32_t)crew->members, core, err);
    for (uint32_t i = 0; s == BELL_OK && i < 2 * crew->members; i++) {
        struct bell_soft_member *m = &crew->member[i % crew->members];
        if ((m->role == BELL_SOFT_NIC) == (i < crew->members)) m->core = core[used++];
        if (m->server) m->server->core = m->core;
    }
    free(core);
    return s;
}

/* Threads wait at the gate until all are there; when one cannot be started, those that are leave at their first wait.
 */
static enum bell_status run_threads(struct team *t, struct bell_error *err)
{
    struct bell_soft_crew *crew = &t->crew;
    size_t started = 0;
    int failure = 0;
    (void)pthread_rwlock_wrlock(&t->gate);
    for (; started < crew->members && !failure; started += !failure) {
        failure = pthread_create(&t->thread[started], NULL, work, &crew->member[started]);
        if (!failure && crew->member[started].role != BELL_SOFT_NIC) t->busy++;
    }
    if (failure) {
        __atomic_store_n(&crew->soft.stop, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&crew->nic_stop, 1, __ATOMIC_RELAXED);
    }
    bell_soft_crew_begin(crew);
    (void)pthread_rwlock_unlock(&t->gate);
    for (size_t i = 0; i < started; i++)
        (void)pthread_join(t->thread[i], NULL);
    return failure ? bell_fail(err, BELL_NO_MEMORY, "only %zu of %zu threads could be started: %s", started,
                               crew->members, strerror(failure))
                   : BELL_OK;
}

static enum bell_status run_soft(const struct bell_run *run, struct bell_result *result, struct bell_error *err)
{
    struct team t;
    memset(&t, 0, sizeof t);
    enum bell_status s = bell_soft_crew_open(&t.crew, run, result, err);
    if (s != BELL_OK) return s;
    t.thread = calloc(t.crew.members, sizeof *t.thread);
    s = choose_cores(&t.crew, err);
    if (s == BELL_OK && (!t.thread || pthread_rwlock_init(&t.gate, NULL) != 0)) {
        s = bell_fail(err, BELL_NO_MEMORY, "out of memory: %zu threads", t.crew.members);
    } else if (s == BELL_OK) {
        s = run_threads(&t, err);
        (void)pthread_rwlock_destroy(&t.gate);
        bell_nic_server_report(t.crew.server, t.crew.servers, result->notes, sizeof result->notes);
        if (s == BELL_OK) s = bell_soft_crew_finish(&t.crew, result, err);
    }
    free(t.thread);
    bell_soft_crew_close(&t.crew);
    return s;
}

static enum bell_status probe_soft(struct bell_error *err)
{
    (void)err;
    return BELL_OK;
}

const struct bell_executor bell_soft_executor = {
    "soft", "CPU threads and a software NIC, in real time", "monotonic", probe_soft, run_soft,
};
