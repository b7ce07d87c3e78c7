/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/soft/crew.h"

#include <inttypes.h>
#include <stdlib.h>

#define LINE_BYTES 64u
#define WAIT_BOUND_PS 2000000000000u /* when the run names none */

static void init_lane(struct bell_soft_member *m, const struct bell_result *result)
{
    struct bell_soft_crew *crew = m->crew;
    struct bell_world *w = &crew->world;
    uint32_t rank = m->lane.id.rank, size = bell_program_group(w->program, w->stack);
    m->lane.id.lane = (uint16_t)m->number;
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

/* Seats of a rank lie server by server; the lower servers have one more where they do not come out even. */
static void init_server(struct bell_soft_member *m)
{
    struct bell_soft_crew *crew = m->crew;
    const struct bell_world *w = &crew->world;
    uint32_t seats = 0;
    struct bell_nic_seat *seat = crew->seat + crew->seats;
    for (uint32_t q = m->number; q < w->queues; q += crew->nic_threads, seats++) {
        seat[seats].nicq = w->rank[m->lane.id.rank].nicq + q;
        seat[seats].nicq->patience = crew->nic_patience;
        seat[seats].lane = (uint16_t)(w->lanes + w->workers + q);
    }
    crew->seats += seats;
    m->server = crew->server + crew->servers++;
    bell_nic_server_init(m->server, &m->lane, seat, seats, &crew->nic_stop);
}

static void init_member(struct bell_soft_crew *crew, uint32_t rank, uint32_t at, const struct bell_result *result)
{
    const struct bell_world *w = &crew->world;
    struct bell_soft_member *m = &crew->member[crew->members++];
    memset(m, 0, sizeof *m);
    m->crew = crew;
    m->core = BELL_NIC_ANY_CORE;
    m->lane.soft = &crew->soft;
    m->lane.id.rank = (uint16_t)rank;
    m->lane.id.lane = (uint16_t)at;
    m->lane.id.group_size = 1;
    m->lane.id.actor = at >= w->lanes + w->workers ? BELL_ACTOR_NIC : BELL_ACTOR_CPU;
    m->role = at < w->lanes ? BELL_SOFT_LANE : at < w->lanes + w->workers ? BELL_SOFT_WORKER : BELL_SOFT_NIC;
    m->number = m->role == BELL_SOFT_LANE ? at : at - w->lanes - (m->role == BELL_SOFT_NIC ? w->workers : 0);
    if (m->role == BELL_SOFT_LANE) init_lane(m, result);
    if (m->role == BELL_SOFT_NIC) init_server(m);
}

/* Zeroed and aligned to a cache line; freed with free(). */
static void *lines(size_t bytes)
{
    size_t whole = (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    void *at = aligned_alloc(LINE_BYTES, whole);
    if (at) memset(at, 0, whole);
    return at;
}

static void free_own(struct bell_soft_crew *crew)
{
    for (uint32_t i = 0; i < crew->servers; i++)
        bell_nic_server_close(&crew->server[i]);
    free(crew->member);
    free(crew->server);
    free(crew->seat);
    free(crew->group);
}

/* More threads than queues would have nothing to do. */
static uint32_t nic_threads_of(const struct bell_run *run, const struct bell_machine *machine)
{
    return machine->nic_threads < run->program->queues ? machine->nic_threads : run->program->queues;
}

enum bell_status bell_soft_crew_open(struct bell_soft_crew *crew, const struct bell_run *run,
                                     const struct bell_result *result, struct bell_error *err)
{
    const struct bell_program *p = run->program;
    size_t size = bell_world_size(p, run->stack);
    struct bell_machine machine;
    bell_machine_read(run->machine, &machine);
    uint32_t threads = nic_threads_of(run, &machine);
    uint32_t each = p->lanes + bell_stack_workers(run->stack, p->queues) + threads;
    bool is_grouped = run->stack->sharing == BELL_SHARING_COOPERATIVE && p->lanes > p->queues;
    memset(crew, 0, sizeof *crew);
    crew->run = run;
    crew->nic_threads = threads;
    crew->nic_patience = machine.nic_patience;
    crew->soft.bound_ps = run->bound_ps ? run->bound_ps : WAIT_BOUND_PS;
    crew->soft.is_traced = run->sink != NULL;
    void *arena = lines(size);
    crew->member = lines((size_t)BELL_RANKS * each * sizeof *crew->member);
    crew->server = lines((size_t)BELL_RANKS * threads * sizeof *crew->server);
    crew->seat = lines((size_t)BELL_RANKS * p->queues * sizeof *crew->seat);
    crew->group = is_grouped ? lines((size_t)BELL_RANKS * p->lanes * sizeof *crew->group) : NULL;
    if (!arena || !crew->member || !crew->server || !crew->seat || (is_grouped && !crew->group) ||
        bell_world_build(&crew->world, p, run->stack, arena, size) != BELL_OK) {
        free(arena);
        free_own(crew);
        return bell_fail(err, BELL_NO_MEMORY, "out of memory: queues and buffers need %zu bytes", size);
    }
    for (uint32_t rank = 0; rank < BELL_RANKS; rank++)
        for (uint32_t at = 0; bell_world_is_active(&crew->world, rank) && at < each; at++)
            init_member(crew, rank, at, result);
    for (uint32_t i = 0; i < crew->servers; i++)
        if (bell_nic_server_open(&crew->server[i], run->pace) != BELL_OK) {
            bell_soft_crew_close(crew);
            return bell_fail(err, BELL_NO_MEMORY, "out of memory: WQEs under way in %u queues", p->queues);
        }
    return BELL_OK;
}

void bell_soft_crew_begin(struct bell_soft_crew *crew)
{
    crew->began_ps = bell_port_now(&crew->member->lane);
    for (size_t i = 0; i < crew->members; i++)
        crew->member[i].lane.id.step_start_ps = crew->began_ps;
}

void bell_soft_member_fail(struct bell_soft_member *member, enum bell_status status)
{
    struct bell_soft_crew *crew = member->crew;
    if (__atomic_exchange_n(&crew->soft.stop, 1, __ATOMIC_RELAXED)) return;
    crew->status = status;
    crew->who = member->lane.id;
}

static void explain(const struct bell_soft_crew *crew, struct bell_error *err)
{
    const struct bell_world *w = &crew->world;
    const struct bell_lane_id *who = &crew->who;
    if (who->actor != BELL_ACTOR_NIC) {
        bell_world_explain(w, who, crew->status, err);
        return;
    }
    uint32_t number = who->lane - w->lanes - w->workers;
    const struct bell_nicq *q = w->rank[who->rank].nicq + number;
    if (crew->status != BELL_INVALID) {
        (void)bell_fail(err, crew->status, "rank %u NIC: queue %u: %s", who->rank, number,
                        bell_status_text(crew->status));
        return;
    }
    (void)bell_fail(err, crew->status,
                    "rank %u NIC: queue %u was rung for more than its depth of %u blocks: producer %" PRIu64
                    ", fetched %" PRIu64 ", doorbell %u, doorbell record %u",
                    who->rank, number, q->sq->depth, q->producer, q->fetched, bell_doorbell_index(*q->sq->doorbell),
                    bell_dbrec_index(*q->sq->dbrec));
}

enum bell_status bell_soft_crew_finish(struct bell_soft_crew *crew, struct bell_result *result, struct bell_error *err)
{
    struct bell_error untold;
    uint64_t sent = 0;
    result->span_ps = bell_port_now(&crew->member->lane) - crew->began_ps;
    if (crew->soft.stop) explain(crew, err);
    enum bell_status s = crew->soft.stop ? crew->status : bell_world_verify(&crew->world, err);
    bell_world_rate(&crew->world, &result->puts, &result->puts_ps);
    if (s == BELL_OK) bell_world_tell_fault(&crew->world, result->notes, sizeof result->notes);
    if (crew->run->sink) {
        /* The trace of a failed run shows how far it came; what failed first is what is told. */
        enum bell_status merged = bell_soft_merge(crew, crew->run->sink, &sent, s == BELL_OK ? err : &untold);
        s = s == BELL_OK ? merged : s;
    }
    result->events = sent;
    return s;
}

void bell_soft_crew_close(struct bell_soft_crew *crew)
{
    for (size_t i = 0; i < crew->members; i++)
        free(crew->member[i].lane.event);
    free(crew->world.arena);
    free_own(crew);
}
