/* SPDX-License-Identifier: Apache-2.0 */
#include "core/world.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LINE_BYTES 64u
#define KEY_BASE 0x1000u
#define QPN_BASE 0x40u

static uint32_t power_of_two_from(uint32_t v)
{
    uint32_t p = 1;
    while (p < v)
        p *= 2;
    return p;
}

static uint32_t log2_of(uint32_t v)
{
    uint32_t n = 0;
    while ((1u << n) < v)
        n++;
    return n;
}

/* With no arena it only counts. */
static void *take(struct bell_world *w, size_t count, size_t each)
{
    size_t bytes = (count * each + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    uint8_t *at = w->arena ? w->arena + w->used : NULL;
    w->used += bytes;
    return at;
}

static uint32_t box_slots(const struct bell_program *p)
{
    return power_of_two_from(2 * p->puts);
}

static uint32_t box_stride(const struct bell_program *p)
{
    return (p->bytes + 15) / 16 * 16;
}

static size_t box_bytes(const struct bell_program *p)
{
    return (size_t)box_slots(p) * box_stride(p) + LINE_BYTES;
}

static struct bell_box box_of(const struct bell_world *w, const struct bell_region *region, uint32_t lane)
{
    uint8_t *base = (uint8_t *)(uintptr_t)region->address + box_bytes(w->program) * lane;
    struct bell_box box = { base, NULL, box_slots(w->program), box_stride(w->program) };
    box.flag = (uint64_t *)(void *)(base + (size_t)box.slots * box.stride);
    return box;
}

static void fill_cq(struct bell_sq *sq)
{
    for (uint32_t i = 0; i < sq->cq_depth; i++) {
        if (sq->cq_depth == 1)
            bell_cqe_fill_collapsed(sq->cqe);
        else
            bell_cqe_fill_ring(sq->cqe + i);
    }
}

/* A queue that starts at first_index looks as if everything before had completed. */
static void start_sq(struct bell_sq *sq, uint64_t first)
{
    fill_cq(sq);
    sq->words->reserved = sq->words->ready = sq->words->completed = first;
    *sq->dbrec = bell_dbrec_value(first);
    *sq->doorbell = bell_wqe_doorbell(sq->qpn, first);
    if (sq->cq_depth == 1)
        sq->cqe->wqe_counter_be = bell_be16((uint16_t)(first - 1));
}

static void build_sq(struct bell_world *w, struct bell_sq *sq, uint32_t rank, uint32_t queue)
{
    const struct bell_stack *s = w->stack;
    struct bell_sq q;
    memset(&q, 0, sizeof q);
    q.depth = s->depth;
    /* At least two entries, because one entry means a collapsed CQ. */
    q.cq_depth = s->cq == BELL_CQ_COLLAPSED ? 1 : s->depth < 2 ? 2 : s->depth;
    q.cq_shift = log2_of(q.cq_depth);
    q.qpn = QPN_BASE + rank * w->queues + queue;
    q.queue = (uint16_t)queue;
    q.memory = (enum bell_memory)s->queue_memory;
    q.is_dc = s->transport == BELL_TRANSPORT_DC;
    q.av.full = q.is_dc;
    q.av.dc_key = KEY_BASE;
    q.av.dqp_dct = QPN_BASE;
    q.wqe = take(w, q.depth, BELL_WQE_BLOCK_BYTES);
    q.span = take(w, q.depth, sizeof *q.span);
    q.cqe = take(w, q.cq_depth, sizeof *q.cqe);
    q.dbrec = take(w, 1, LINE_BYTES);
    q.doorbell = take(w, 1, LINE_BYTES);
    q.words = take(w, 1, sizeof *q.words);
    if (!w->arena)
        return;
    q.key = &q.words->completed; /* written by whoever polls first; the NIC wakes it with each CQE */
    *sq = q;
    start_sq(sq, w->program->first_index);
}

static void build_nicq(const struct bell_world *w, uint32_t rank, uint32_t queue)
{
    struct bell_nicq *n = w->rank[rank].nicq + queue;
    n->sq = w->rank[rank].sq + queue;
    n->local = &w->rank[rank].source;
    n->remote = &w->rank[1 - rank].target;
    n->start = (enum bell_nic_start)w->stack->nic_start;
    n->producer = n->fetched = w->program->first_index;
    n->is_silent = w->program->fault == BELL_FAULT_SILENT;
    if (rank || queue || w->program->fault < BELL_FAULT_LOST_DOORBELL)
        return;
    n->fault.kind = (enum bell_fault)w->program->fault;
    n->fault.index = w->program->first_index + w->program->fault_index;
    n->fault.delay_ps = w->program->fault_delay_us * UINT64_C(1000000);
    if (n->fault.kind == BELL_FAULT_LOST_DOORBELL)
        n->recover_ps = n->fault.delay_ps;
}

static void build_ring(struct bell_world *w, struct bell_ring *ring, uint32_t queue)
{
    const struct bell_stack *s = w->stack;
    struct bell_ring r;
    memset(&r, 0, sizeof r);
    r.depth = s->ring_depth;
    r.shift = log2_of(r.depth);
    r.done_memory = (enum bell_memory)s->completion_memory;
    r.ring = (uint16_t)queue;
    r.entry = take(w, r.depth, sizeof *r.entry);
    r.head = take(w, 1, LINE_BYTES);
    r.progress = take(w, 1, LINE_BYTES);
    r.done = take(w, 1, LINE_BYTES);
    r.key = r.entry;
    if (w->arena)
        *ring = r;
}

static void build_worker(struct bell_world *w, struct bell_rank *r, uint32_t rank, uint32_t queue)
{
    struct bell_wqe_request *request = take(w, w->stack->batch, sizeof *request);
    uint64_t *value = take(w, w->stack->batch, sizeof *value), *upto = take(w, w->stack->depth, sizeof *upto);
    if (!w->arena)
        return;
    bool flagged = w->stack->signal == BELL_SIGNAL_SEPARATE && w->program->pattern == BELL_PATTERN_ROUND_TRIP;
    struct bell_worker *k = r->worker + queue;
    r->away = w->rank[1 - rank].target;
    r->away.key += w->program->fault == BELL_FAULT_BAD_KEY;
    k->ring = r->ring + queue;
    k->sq = r->sq + queue;
    k->sq->key = k->ring->key; /* the worker waits for either at once */
    k->stack = w->stack;
    k->source = &r->source;
    k->target = &r->away;
    k->request = request;
    k->value = value;
    k->upto = upto;
    k->posted_end = w->program->first_index;
    if (bell_world_is_active(w, rank))
        k->expected = bell_program_ops(w->program) * w->program->puts * (flagged ? 2 : 1);
}

static void build_client(struct bell_world *w, uint32_t rank, uint32_t lane)
{
    struct bell_wqe_request *request = take(w, w->stack->wqes_per_doorbell, sizeof *request);
    if (!w->arena)
        return;
    struct bell_rank *r = w->rank + rank, *peer = w->rank + (1 - rank);
    uint32_t queue = lane / (w->lanes / w->queues);
    struct bell_client *c = r->client + lane;
    c->stack = w->stack;
    c->program = w->program;
    c->sq = r->sq + queue;
    c->ring = w->workers ? r->ring + queue : NULL;
    c->source = &r->source;
    c->target = &peer->target;
    c->outbox = box_of(w, &r->source, lane);
    c->away = box_of(w, &peer->target, lane);
    c->inbox = box_of(w, &r->target, lane);
    c->request = request;
}

static struct bell_region build_region(struct bell_world *w, uint32_t key)
{
    struct bell_region r;
    r.size_bytes = box_bytes(w->program) * w->lanes;
    r.address = (uint64_t)(uintptr_t)take(w, r.size_bytes, 1);
    r.key = KEY_BASE + key;
    return r;
}

static void lay_out(struct bell_world *w)
{
    for (uint32_t i = 0; i < BELL_RANKS; i++) {
        struct bell_rank *r = w->rank + i;
        r->source = build_region(w, 2 * i);
        r->target = build_region(w, 2 * i + 1);
        r->client = take(w, w->lanes, sizeof *r->client);
        r->sq = take(w, w->queues, sizeof *r->sq);
        r->nicq = take(w, w->queues, sizeof *r->nicq);
        r->ring = take(w, w->workers, sizeof *r->ring);
        r->worker = take(w, w->workers, sizeof *r->worker);
    }
    for (uint32_t i = 0; i < BELL_RANKS; i++) {
        struct bell_rank *r = w->rank + i;
        for (uint32_t q = 0; q < w->queues; q++) {
            build_sq(w, w->arena ? r->sq + q : NULL, i, q);
            if (w->arena)
                build_nicq(w, i, q);
            if (w->workers) {
                build_ring(w, w->arena ? r->ring + q : NULL, q);
                build_worker(w, r, i, q);
            }
        }
        for (uint32_t lane = 0; lane < w->lanes; lane++)
            build_client(w, i, lane);
    }
}

static void start(struct bell_world *w, const struct bell_program *program, const struct bell_stack *stack)
{
    memset(w, 0, sizeof *w);
    w->program = program;
    w->stack = stack;
    w->lanes = program->lanes;
    w->queues = program->queues;
    w->workers = stack->submit == BELL_SUBMIT_PROXY ? program->queues : 0;
}

size_t bell_world_size(const struct bell_program *program, const struct bell_stack *stack)
{
    struct bell_world w;
    start(&w, program, stack);
    lay_out(&w);
    return w.used;
}

enum bell_status bell_world_build(struct bell_world *w, const struct bell_program *program,
                                  const struct bell_stack *stack, void *arena, size_t size)
{
    if (size < bell_world_size(program, stack))
        return BELL_NO_MEMORY;
    start(w, program, stack);
    w->arena = arena;
    w->size = size;
    memset(arena, 0, size);
    lay_out(w);
    return BELL_OK;
}

static enum bell_status verify_lane(const struct bell_world *w, uint32_t rank, uint32_t lane, struct bell_error *err)
{
    const struct bell_client *c = w->rank[rank].client + lane;
    uint32_t bytes = w->program->bytes;
    uint64_t puts = bell_program_ops(w->program) * w->program->puts;
    for (uint64_t back = 0; back < c->away.slots && back < puts; back++) {
        uint64_t put = puts - 1 - back, tag;
        const uint8_t *payload = bell_box_payload(&c->away, put, bytes);
        memcpy(&tag, payload + bytes - 8, sizeof tag);
        if (tag != put + 1 || !bell_payload_matches(payload, bytes, tag))
            return bell_fail(err, BELL_CORRUPT, "put %" PRIu64 " of lane %u on rank %u is not what arrived at its peer",
                             put, lane, rank);
    }
    return BELL_OK;
}

enum bell_status bell_world_verify(const struct bell_world *w, struct bell_error *err)
{
    for (uint32_t rank = 0; rank < BELL_RANKS; rank++)
        for (uint32_t lane = 0; bell_world_is_active(w, rank) && lane < w->lanes; lane++) {
            enum bell_status s = verify_lane(w, rank, lane, err);
            if (s != BELL_OK)
                return s;
        }
    return BELL_OK;
}

/* The next CQE of a queue, when it is there and an error. */
static bool has_error(const struct bell_sq *sq, struct bell_cqe *cqe)
{
    const struct bell_cqe *at = sq->cqe + (sq->cq_depth > 1 ? sq->words->cq_index & (sq->cq_depth - 1) : 0);
    memcpy(cqe, at, sizeof *cqe);
    return bell_cqe_tail_opcode(bell_cqe_tail(cqe)) == BELL_CQE_REQ_ERR;
}

/* Somebody waits in vain because a put failed whose completion nobody has polled. */
static bool explain_error(const struct bell_world *w, const struct bell_lane_id *who, struct bell_error *err)
{
    struct bell_cqe cqe;
    for (uint32_t i = 0; i < BELL_RANKS * w->queues; i++) {
        uint32_t rank = i / w->queues, queue = i % w->queues;
        if (!has_error(w->rank[rank].sq + queue, &cqe))
            continue;
        (void)bell_fail(err, BELL_TIMEOUT, "rank %u queue %u: CQE with syndrome 0x%02x (%s); rank %u lane %u waited to "
                                           "its bound for %s", rank, queue, cqe.syndrome,
                        bell_syndrome_text(cqe.syndrome), who->rank, who->lane,
                        who->waited_for ? who->waited_for : "something");
        return true;
    }
    return false;
}

/* What a NIC did, or does not do, that lets somebody wait to the bound: "" or a clause to append. */
static void explain_nic(const struct bell_world *w, const struct bell_lane_id *who, uint32_t queue, char *out,
                        size_t size)
{
    const struct bell_nicq *own = w->rank[who->rank].nicq + queue, *hit = w->rank[0].nicq;
    const struct bell_nic_fault *f = &hit->fault;
    uint32_t record = bell_dbrec_index(*own->sq->dbrec);
    out[0] = '\0';
    if (own->is_silent)
        (void)snprintf(out, size, "; the NIC answers nothing (fault silent)");
    else if (f->has_lost && !bell_has_reached(hit->producer, f->lost))
        (void)snprintf(out, size, "; the NIC has not seen the doorbell for producer index %" PRIu64 " of rank 0 queue "
                                  "0 and stands at %" PRIu64 " (fault lost-doorbell%s)", f->lost, hit->producer,
                       hit->recover_ps ? "" : ", no recovery");
    else if (f->has_delayed)
        (void)snprintf(out, size, "; the NIC holds back a CQE of rank 0 queue 0, at or behind index %" PRIu64 ", for "
                                  "%" PRIu64 " us (fault late-cqe)", f->index, f->delay_ps / 1000000);
    else if (record != (uint16_t)own->producer)
        (void)snprintf(out, size, "; the NIC has taken indices up to %" PRIu64, own->producer);
}

void bell_world_explain(const struct bell_world *w, const struct bell_lane_id *who, enum bell_status status,
                        struct bell_error *err)
{
    if (status == BELL_TIMEOUT && explain_error(w, who, err))
        return;
    bool is_lane = who->lane < w->lanes, is_worker = !is_lane && who->lane < w->lanes + w->workers;
    const struct bell_rank *r = w->rank + who->rank;
    uint32_t queue = is_lane ? who->lane / (w->lanes / w->queues) : who->lane - w->lanes - (is_worker ? 0 : w->workers);
    static const struct bell_completion none;
    const struct bell_completion *c = is_lane ? &r->client[who->lane].completion
                                      : is_worker ? &r->worker[queue].completion : &none;
    const struct bell_sq *sq = r->sq + queue;
    const char *name = is_lane ? "lane" : is_worker ? "worker" : "NIC queue";
    uint32_t number = is_lane ? who->lane : queue;
    const struct bell_sq_words *words = sq->words;
    char nic[200];
    explain_nic(w, who, queue, nic, sizeof nic);
    if (status == BELL_CQE_ERROR)
        (void)bell_fail(err, status, "rank %u %s %u: CQE with syndrome 0x%02x (%s) for the WQE at index %" PRIu64
                                     " of queue %u", who->rank, name, number, c->syndrome,
                        bell_syndrome_text(c->syndrome), c->index, queue);
    else if (status == BELL_TIMEOUT)
        (void)bell_fail(err, status, "rank %u %s %u waited to its bound for %s; queue %u: SQ reserved %" PRIu64
                                     ", doorbell record %u mod 65536, completed %" PRIu64 ", CQ index %" PRIu64 "%s",
                        who->rank, name, number, who->waited_for ? who->waited_for : "something", queue,
                        words->reserved, bell_dbrec_index(*sq->dbrec), words->completed, words->cq_index, nic);
    else if (status == BELL_OVERFLOW && w->workers && !is_worker)
        (void)bell_fail(err, status, "rank %u %s %u: depth %u of proxy ring %u exceeded without polling: progress "
                                     "%" PRIu64 ", done %" PRIu64, who->rank, name, number, w->stack->ring_depth, queue,
                        *r->ring[queue].progress, *r->ring[queue].done);
    else if (status == BELL_OVERFLOW)
        (void)bell_fail(err, status, "rank %u %s %u: depth %u of queue %u exceeded without polling: SQ reserved "
                                     "%" PRIu64 ", completed %" PRIu64, who->rank, name, number, sq->depth, queue,
                        words->reserved, words->completed);
    else
        (void)bell_fail(err, status, "rank %u %s %u: %s", who->rank, name, number, bell_status_text(status));
}
