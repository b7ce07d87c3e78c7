/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/verbs/team.h"

#include "hw/verbs/cores.h"
#include "hw/verbs/roles.h"

#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

static void wait_for_start(struct bell_verbs_team *t)
{
    (void)pthread_mutex_lock(&t->lock);
    while (!t->is_open)
        (void)pthread_cond_wait(&t->opened, &t->lock);
    (void)pthread_mutex_unlock(&t->lock);
}

static void *work(void *argument)
{
    struct bell_soft_member *m = argument;
    struct bell_verbs_team *t = (struct bell_verbs_team *)m->crew;
    struct bell_world *w = &t->crew.world;
    struct bell_rank *rank = w->rank + m->lane.id.rank;
    struct bell_verbs_queue *queue = bell_verbs_link_queue(&t->link, m->lane.id.rank, 0);
    struct bell_share share = { NULL, NULL, 0 };
    enum bell_status s;
    if (m->role == BELL_SOFT_WORKER) share = bell_world_share(w, m->lane.id.rank, m->number);
    wait_for_start(t);
    if (m->role == BELL_SOFT_WORKER)
        s = bell_verbs_serve(&m->lane, &share, queue + (share.worker - rank->worker));
    else if (w->stack->submit == BELL_SUBMIT_PROXY)
        s = bell_client_run(&m->lane, rank->client + m->number);
    else
        s = bell_verbs_client_run(m, rank->client + m->number, queue + bell_program_queue(w->program, m->number));
    if (bell_is_failure(s)) bell_soft_member_fail(m, s);
    if (__atomic_sub_fetch(&t->busy, 1, __ATOMIC_ACQ_REL) == 0)
        __atomic_store_n(&t->ended_ps, bell_port_now(&m->lane), __ATOMIC_RELEASE);
    return NULL;
}

static void open_gate(struct bell_verbs_team *t)
{
    (void)pthread_mutex_lock(&t->lock);
    t->is_open = true;
    (void)pthread_cond_broadcast(&t->opened);
    (void)pthread_mutex_unlock(&t->lock);
}

static int start_thread(struct bell_verbs_team *t, uint32_t i)
{
    pthread_attr_t attr;
    cpu_set_t set;
    int code = pthread_attr_init(&attr);
    if (code) return code;
    if (t->cpu) {
        CPU_ZERO(&set);
        CPU_SET((size_t)t->cpu[i], &set);
        code = pthread_attr_setaffinity_np(&attr, sizeof set, &set);
    }
    if (code == 0) code = pthread_create(&t->thread[i], &attr, work, t->member[i]);
    (void)pthread_attr_destroy(&attr);
    return code;
}

/* Only those of the ranks that are here, and no NIC: that one is real. */
static enum bell_status choose_members(struct bell_verbs_team *t, struct bell_error *err)
{
    struct bell_soft_crew *crew = &t->crew;
    t->thread = calloc(crew->members + 1, sizeof *t->thread);
    t->member = calloc(crew->members + 1, sizeof *t->member);
    if (!t->thread || !t->member) return bell_fail(err, BELL_NO_MEMORY, "out of memory: %zu threads", crew->members);
    for (size_t i = 0; i < crew->members; i++) {
        struct bell_soft_member *m = crew->member + i;
        if (m->role != BELL_SOFT_NIC && t->link.is_here[m->lane.id.rank]) t->member[t->threads++] = m;
    }
    if (!t->machine->pin || t->threads == 0) return BELL_OK;
    t->cpu = calloc(t->threads, sizeof *t->cpu);
    if (!t->cpu) return bell_fail(err, BELL_NO_MEMORY, "out of memory: %u threads", t->threads);
    return bell_verbs_cores_pick(t->machine->first_core, t->link.device.numa_node, t->threads, t->cpu, err);
}

enum bell_status bell_verbs_team_run(struct bell_verbs_team *t, struct bell_error *err)
{
    uint32_t started = 0;
    int code = 0;
    enum bell_status s = choose_members(t, err);
    if (s != BELL_OK) return s;
    /* Threads wait at the gate until all are there; when one cannot be started, those that are leave at their first
     * wait. */
    t->busy = t->threads;
    t->crew.soft.idle = bell_verbs_idle;
    while (started < t->threads && (code = start_thread(t, started)) == 0)
        started++;
    if (code) {
        s = bell_fail(err, BELL_NO_MEMORY, "only %u of %u threads could be started: %s", started, t->threads,
                      strerror(code));
        (void)__atomic_sub_fetch(&t->busy, t->threads - started, __ATOMIC_ACQ_REL);
        bell_verbs_team_stop(t);
    }
    t->crew.began_ps = t->ended_ps = bell_verbs_team_now(t);
    for (size_t i = 0; i < t->crew.members; i++)
        t->crew.member[i].lane.id.step_start_ps = t->crew.began_ps;
    open_gate(t);
    if (s == BELL_OK && t->link.wire.fd >= 0) s = bell_verbs_converse(t, err);
    for (uint32_t i = 0; i < started; i++)
        (void)pthread_join(t->thread[i], NULL);
    if (s == BELL_OK) bell_verbs_team_tell_end(t);
    return s;
}

void bell_verbs_team_stop(struct bell_verbs_team *t)
{
    __atomic_store_n(&t->crew.soft.stop, 1, __ATOMIC_RELAXED);
}

uint64_t bell_verbs_team_now(struct bell_verbs_team *t)
{
    return bell_port_now(&t->crew.member->lane);
}

/* ---- how it ended ---- */

static bool explain_queues(const struct bell_verbs_team *t, enum bell_status status, struct bell_error *err)
{
    for (uint32_t i = 0; i < BELL_RANKS * t->crew.world.queues; i++) {
        uint32_t rank = i / t->crew.world.queues;
        if (t->link.is_here[rank] && bell_verbs_explain(t->link.queue + i, rank, status, err)) return true;
    }
    return false;
}

/* core's bell_world_explain, without the CQEs and doorbell records that only our own queues have. */
static void explain_timeout(const struct bell_verbs_team *t, struct bell_error *err)
{
    const struct bell_world *w = &t->crew.world;
    const struct bell_lane_id *who = &t->crew.who;
    bool is_lane = who->lane < w->lanes;
    uint32_t number = is_lane ? who->lane : who->lane - w->lanes;
    uint32_t queue = is_lane ? bell_program_queue(w->program, number) : number * (w->queues / w->workers);
    const struct bell_verbs_queue *q = bell_verbs_link_queue(&t->link, who->rank, queue);
    const struct bell_sq_words *words = q->sq->words;
    (void)bell_fail(err, BELL_TIMEOUT,
                    "rank %u %s %u waited to its bound for %s; queue %u: posted %" PRIu64 ", completed %" PRIu64
                    ", chains %" PRIu64 ", CQEs %" PRIu64,
                    who->rank, is_lane ? "lane" : "worker", number, who->waited_for ? who->waited_for : "something",
                    queue, words->reserved, words->completed, q->chains, q->completions);
}

void bell_verbs_team_tell_end(struct bell_verbs_team *t)
{
    const struct bell_soft_crew *crew = &t->crew;
    t->end.status = BELL_OK;
    if (bell_is_failure(crew->status)) {
        if (explain_queues(t, crew->status, &t->end)) return;
        if (crew->status == BELL_TIMEOUT)
            explain_timeout(t, &t->end);
        else
            bell_world_explain(&crew->world, &crew->who, crew->status, &t->end);
    } else if (t->peer_end.status != BELL_OK) {
        /* The peer's failure is why this side stopped. */
        (void)bell_fail(&t->end, t->peer_end.status, "rank %u, the peer on %s, failed: %.380s", 1 - t->link.rank,
                        t->link.wire.peer, t->peer_end.text);
    }
}
