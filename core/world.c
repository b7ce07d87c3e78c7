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
static void *take(struct bell_world *w, uint32_t rank, enum bell_place place, size_t count, size_t each)
{
    struct bell_extent *e = &w->place[rank][place];
    uint8_t *at = w->arena ? e->at + e->used : NULL;
    e->used += (count * each + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    return at;
}

/* A slot is used again when its put has completed: of lanes that do not wait, a whole queue and ring may be under way.
 */
static uint32_t box_slots(const struct bell_world *w)
{
    const struct bell_program *p = w->program;
    bool waits = p->pattern == BELL_PATTERN_ONE_OP || p->pattern == BELL_PATTERN_ROUND_TRIP;
    return power_of_two_from(2 * p->puts + (waits ? 0 : w->stack->depth + (w->workers ? w->stack->ring_depth : 0)));
}

static uint32_t box_stride(const struct bell_program *p)
{
    return (p->bytes + 15) / 16 * 16;
}

static size_t box_bytes(const struct bell_world *w)
{
    return (size_t)box_slots(w) * box_stride(w->program) + LINE_BYTES;
}

static struct bell_box box_of(const struct bell_world *w, const struct bell_region *region, uint32_t lane)
{
    uint8_t *base = (uint8_t *)(uintptr_t)region->address + box_bytes(w) * lane;
    struct bell_box box = { base, NULL, box_slots(w), box_stride(w->program) };
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
    if (sq->mailbox)
        *sq->mailbox = first;
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
    q.words_memory = s->submit == BELL_SUBMIT_GPU ? BELL_MEMORY_GPU : BELL_MEMORY_HOST;
    q.is_dc = s->transport == BELL_TRANSPORT_DC;
    q.av.full = q.is_dc;
    q.av.dc_key = KEY_BASE;
    q.av.dqp_dct = QPN_BASE;
    q.wqe = take(w, rank, BELL_PLACE_QUEUE, q.depth, BELL_WQE_BLOCK_BYTES);
    q.span = take(w, rank, BELL_PLACE_POSTER, q.depth, sizeof *q.span);
    q.cqe = take(w, rank, BELL_PLACE_QUEUE, q.cq_depth, sizeof *q.cqe);
    q.dbrec = take(w, rank, BELL_PLACE_QUEUE, 1, LINE_BYTES);
    q.doorbell = take(w, rank, BELL_PLACE_REGISTER, 1, LINE_BYTES);
    q.words = take(w, rank, BELL_PLACE_POSTER, 1, sizeof *q.words);
    q.mailbox = s->doorbell == BELL_WRITER_HOST ? take(w, rank, BELL_PLACE_HOST, 1, LINE_BYTES) : NULL;
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

static void build_ring(struct bell_world *w, struct bell_ring *ring, uint32_t rank, uint32_t queue)
{
    const struct bell_stack *s = w->stack;
    struct bell_ring r;
    memset(&r, 0, sizeof r);
    r.depth = s->ring_depth;
    r.shift = log2_of(r.depth);
    r.done_memory = (enum bell_memory)s->completion_memory;
    r.ring = (uint16_t)queue;
    r.entry = take(w, rank, BELL_PLACE_HOST, r.depth, sizeof *r.entry);
    r.head = take(w, rank, BELL_PLACE_LANES, 1, LINE_BYTES);
    r.progress = take(w, rank, BELL_PLACE_HOST, 1, LINE_BYTES);
    r.done = take(w, rank, BELL_PLACE_HOST, 1, LINE_BYTES);
    r.key = r.entry;
    if (w->arena)
        *ring = r;
}

static bool is_flagged(const struct bell_world *w)
{
    return w->stack->signal == BELL_SIGNAL_SEPARATE && w->program->pattern == BELL_PATTERN_ROUND_TRIP;
}

static void build_worker(struct bell_world *w, struct bell_rank *r, uint32_t rank, uint32_t queue)
{
    struct bell_wqe_request *request = take(w, rank, BELL_PLACE_SHARED, w->stack->batch, sizeof *request);
    uint64_t *value = take(w, rank, BELL_PLACE_SHARED, w->stack->batch, sizeof *value);
    uint64_t *upto = take(w, rank, BELL_PLACE_SHARED, w->stack->depth, sizeof *upto);
    if (!w->arena)
        return;
    struct bell_worker *k = r->worker + queue;
    uint32_t share = w->queues / w->workers;
    r->away = w->rank[1 - rank].target;
    r->away.key += w->program->fault == BELL_FAULT_BAD_KEY;
    k->ring = r->ring + queue;
    k->ring->key = r->ring[queue / share * share].entry; /* a worker waits for all of its rings at once */
    k->sq = r->sq + queue;
    k->sq->key = k->ring->key; /* and for their queues */
    k->stack = w->stack;
    k->source = &r->source;
    k->target = &r->away;
    k->request = request;
    k->value = value;
    k->upto = upto;
    k->posted_end = w->program->first_index;
    if (bell_world_is_active(w, rank))
        k->expected = bell_program_ops(w->program) * w->program->puts * (is_flagged(w) ? 2 : 1);
}

static void build_forwarder(const struct bell_world *w, struct bell_rank *r, uint32_t rank, uint32_t queue)
{
    struct bell_forwarder *f = r->forwarder + queue;
    const struct bell_program *p = w->program;
    bool is_inline = w->stack->payload == BELL_PAYLOAD_INLINE;
    struct bell_wqe_request put = { .opcode = BELL_WQE_WRITE, .bytes = p->bytes, .inline_data = is_inline ? p : NULL,
                                    .is_dc = w->stack->transport == BELL_TRANSPORT_DC, .av = { .full = true } };
    f->sq = r->sq + queue;
    f->rung = f->expected = p->first_index;
    uint64_t blocks = (uint64_t)bell_wqe_blocks(bell_wqe_ds(&put)) * p->puts; /* of an operation */
    put.bytes = 8;
    blocks += is_flagged(w) ? bell_wqe_blocks(bell_wqe_ds(&put)) : 0;
    if (bell_world_is_active(w, rank))
        f->expected += blocks * bell_program_ops(p) * (w->lanes / w->queues);
}

static void build_client(struct bell_world *w, uint32_t rank, uint32_t lane)
{
    struct bell_rank *r = w->rank + rank, *peer = w->rank + (1 - rank);
    uint32_t queue = bell_program_queue(w->program, lane);
    struct bell_client *c = r->client + lane;
    c->stack = w->stack;
    c->program = w->program;
    c->sq = r->sq + queue;
    c->ring = r->ring ? r->ring + queue : NULL;
    c->source = r->source;
    c->target = peer->target;
    c->target.key += w->program->fault == BELL_FAULT_BAD_KEY;
    c->outbox = box_of(w, &r->source, lane);
    c->away = box_of(w, &peer->target, lane);
    c->inbox = box_of(w, &r->target, lane);
    c->is_over = w->is_over;
    c->is_answered = bell_program_is_answered(w->program, lane);
    c->is_background = bell_program_is_background(w->program, lane);
    c->is_flagged = c->is_answered && w->stack->signal == BELL_SIGNAL_SEPARATE;
}

static struct bell_region build_region(struct bell_world *w, uint32_t rank, enum bell_place place)
{
    struct bell_region r;
    r.size_bytes = box_bytes(w) * w->lanes;
    r.address = (uint64_t)(uintptr_t)take(w, rank, place, r.size_bytes, 1);
    r.key = KEY_BASE + 2 * rank + (place == BELL_PLACE_TARGET);
    return r;
}

static void lay_out_rank(struct bell_world *w, struct bell_rank *r, uint32_t rank)
{
    bool is_proxy = w->stack->submit == BELL_SUBMIT_PROXY, is_forwarded = w->stack->doorbell == BELL_WRITER_HOST;
    r->source = build_region(w, rank, BELL_PLACE_SOURCE);
    r->target = build_region(w, rank, BELL_PLACE_TARGET);
    r->client = take(w, rank, BELL_PLACE_SHARED, w->lanes, sizeof *r->client);
    r->sq = take(w, rank, BELL_PLACE_SHARED, w->queues, sizeof *r->sq);
    r->nicq = take(w, rank, BELL_PLACE_SHARED, w->queues, sizeof *r->nicq);
    r->ring = is_proxy ? take(w, rank, BELL_PLACE_SHARED, w->queues, sizeof *r->ring) : NULL;
    r->worker = is_proxy ? take(w, rank, BELL_PLACE_SHARED, w->queues, sizeof *r->worker) : NULL;
    r->forwarder = is_forwarded ? take(w, rank, BELL_PLACE_SHARED, w->queues, sizeof *r->forwarder) : NULL;
}

static void lay_out(struct bell_world *w)
{
    w->is_over = w->program->pattern == BELL_PATTERN_PROBE ? take(w, 0, BELL_PLACE_LANES, 1, LINE_BYTES) : NULL;
    for (uint32_t i = 0; i < BELL_RANKS; i++)
        lay_out_rank(w, w->rank + i, i);
    for (uint32_t i = 0; i < BELL_RANKS; i++) {
        struct bell_rank *r = w->rank + i;
        for (uint32_t q = 0; q < w->queues; q++) {
            build_sq(w, w->arena ? r->sq + q : NULL, i, q);
            if (w->arena)
                build_nicq(w, i, q);
            if (w->stack->submit == BELL_SUBMIT_PROXY) {
                build_ring(w, w->arena ? r->ring + q : NULL, i, q);
                build_worker(w, r, i, q);
            }
            if (w->arena && r->forwarder)
                build_forwarder(w, r, i, q);
        }
        for (uint32_t lane = 0; w->arena && lane < w->lanes; lane++)
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
    w->workers = bell_stack_workers(stack, program->queues);
}

size_t bell_world_size(const struct bell_program *program, const struct bell_stack *stack)
{
    struct bell_world w;
    size_t size = 0;
    start(&w, program, stack);
    lay_out(&w);
    for (int i = 0; i < BELL_RANKS * BELL_PLACES; i++)
        size += w.place[i / BELL_PLACES][i % BELL_PLACES].used;
    return size;
}

enum bell_status bell_world_build(struct bell_world *w, const struct bell_program *program,
                                  const struct bell_stack *stack, void *arena, size_t size)
{
    struct bell_extent place[BELL_RANKS][BELL_PLACES];
    if (size < bell_world_size(program, stack))
        return BELL_NO_MEMORY;
    start(w, program, stack);
    lay_out(w);
    memcpy(place, w->place, sizeof place);
    start(w, program, stack);
    w->arena = arena;
    w->size = size;
    memset(arena, 0, size);
    size_t at = 0;
    for (int i = 0; i < BELL_RANKS * BELL_PLACES; i++) {
        struct bell_extent *e = &w->place[i / BELL_PLACES][i % BELL_PLACES];
        e->at = w->arena + at;
        at += e->size = place[i / BELL_PLACES][i % BELL_PLACES].used;
    }
    lay_out(w);
    return BELL_OK;
}

/* ---- to other memory ---- */

struct shift {
    uintptr_t from, size, to;
};

static uintptr_t shifted(const struct shift *s, uintptr_t at)
{
    return at >= s->from && at - s->from < s->size ? at - s->from + s->to : at;
}

#define SHIFT(s, pointer) ((pointer) = (void *)shifted(s, (uintptr_t)(pointer)))

static void shift_region(const struct shift *s, struct bell_region *r)
{
    r->address = shifted(s, (uintptr_t)r->address);
}

static void shift_box(const struct shift *s, struct bell_box *b)
{
    SHIFT(s, b->slot);
    SHIFT(s, b->flag);
}

static void shift_client(const struct shift *s, struct bell_client *c)
{
    shift_region(s, &c->source);
    shift_region(s, &c->target);
    shift_box(s, &c->outbox);
    shift_box(s, &c->away);
    shift_box(s, &c->inbox);
    SHIFT(s, c->is_over);
}

static void shift_queue(const struct shift *s, struct bell_rank *r, uint32_t queue)
{
    struct bell_sq *q = r->sq + queue;
    SHIFT(s, q->wqe);
    SHIFT(s, q->span);
    SHIFT(s, q->cqe);
    SHIFT(s, q->dbrec);
    SHIFT(s, q->doorbell);
    SHIFT(s, q->mailbox);
    SHIFT(s, q->words);
    q->key = (const void *)shifted(s, (uintptr_t)q->key);
    if (!r->ring)
        return;
    struct bell_ring *ring = r->ring + queue;
    SHIFT(s, ring->entry);
    SHIFT(s, ring->head);
    SHIFT(s, ring->progress);
    SHIFT(s, ring->done);
    ring->key = (const void *)shifted(s, (uintptr_t)ring->key);
}

void bell_world_move(struct bell_world *w, uint32_t rank, enum bell_place place, uint8_t *to)
{
    struct bell_extent *e = &w->place[rank][place];
    struct shift s = { (uintptr_t)e->at, e->size, (uintptr_t)to };
    for (uint32_t i = 0; i < BELL_RANKS; i++) { /* one rank's memory is another's target */
        struct bell_rank *r = w->rank + i;
        shift_region(&s, &r->source);
        shift_region(&s, &r->target);
        shift_region(&s, &r->away);
        for (uint32_t lane = 0; lane < w->lanes; lane++)
            shift_client(&s, r->client + lane);
        for (uint32_t q = 0; q < w->queues; q++)
            shift_queue(&s, r, q);
    }
    SHIFT(&s, w->is_over);
    e->at = to;
}

/* ---- who does what, and how it went ---- */

struct bell_share bell_world_share(const struct bell_world *w, uint32_t rank, uint32_t worker)
{
    const struct bell_rank *r = w->rank + rank;
    uint32_t count = w->queues / w->workers;
    struct bell_share s = { r->worker ? r->worker + worker * count : NULL,
                            r->forwarder ? r->forwarder + worker * count : NULL, count };
    return s;
}

void bell_world_rate(const struct bell_world *w, uint64_t *puts, uint64_t *duration_ps)
{
    uint64_t began_ps = UINT64_MAX, ended_ps = 0;
    *puts = *duration_ps = 0;
    for (uint32_t lane = 0; lane < w->lanes; lane++) {
        const struct bell_client *c = w->rank[0].client + lane;
        if (w->program->pattern != BELL_PATTERN_STREAM && !c->is_background)
            continue;
        *puts += c->is_background ? c->puts : (uint64_t)w->program->iterations * w->program->puts;
        began_ps = c->began_ps < began_ps ? c->began_ps : began_ps;
        ended_ps = c->ended_ps > ended_ps ? c->ended_ps : ended_ps;
    }
    if (ended_ps > began_ps)
        *duration_ps = ended_ps - began_ps;
}

static enum bell_status verify_lane(const struct bell_world *w, uint32_t rank, uint32_t lane, struct bell_error *err)
{
    const struct bell_client *c = w->rank[rank].client + lane;
    uint32_t bytes = w->program->bytes;
    uint64_t puts = c->puts;
    bool is_idle = rank == 1 && !c->is_answered;
    if (!c->is_background && puts != (is_idle ? 0 : bell_program_ops(w->program) * w->program->puts))
        return bell_fail(err, BELL_CORRUPT, "lane %u on rank %u posted %" PRIu64 " puts", lane, rank, puts);
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

void bell_world_tell_fault(const struct bell_world *w, char *notes, size_t size)
{
    const struct bell_nic_fault *f = &w->rank[0].nicq->fault;
    size_t used = strlen(notes);
    char name[24];
    if (f->kind == BELL_FAULT_NONE || used >= size)
        return;
    bell_field_text(bell_field_find(bell_program_fields, "fault"), w->program, name, sizeof name);
    (void)snprintf(notes + used, size - used, "%sfault %s %s index %" PRIu64 " of rank 0 queue 0", used ? "; " : "",
                   name, f->has_lost || f->has_delayed ? "struck at" : "NEVER STRUCK: the run did not come to",
                   f->index);
}

/* The first error of a queue: what the NIC remembers, else the next CQE when it is there and an error. */
static bool find_error(const struct bell_nicq *nicq, struct bell_completion *out)
{
    const struct bell_sq *sq = nicq->sq;
    struct bell_cqe cqe;
    memcpy(&cqe, sq->cqe + (sq->cq_depth > 1 ? sq->words->cq_index & (sq->cq_depth - 1) : 0), sizeof cqe);
    uint32_t tail = bell_cqe_tail(&cqe);
    *out = nicq->first_error;
    if (nicq->in_error)
        return true;
    out->index = bell_cqe_tail_counter(tail);
    out->syndrome = cqe.syndrome;
    (void)bell_cqe_extend(bell_cqe_tail_counter(tail), sq->words->completed, sq->depth, &out->index);
    return bell_cqe_tail_opcode(tail) == BELL_CQE_REQ_ERR;
}

/* Somebody waits in vain because a put failed whose completion nobody has polled. */
static bool explain_error(const struct bell_world *w, const struct bell_lane_id *who, struct bell_error *err)
{
    struct bell_completion c;
    for (uint32_t i = 0; i < BELL_RANKS * w->queues; i++) {
        uint32_t rank = i / w->queues, queue = i % w->queues;
        if (!find_error(w->rank[rank].nicq + queue, &c))
            continue;
        (void)bell_fail(err, BELL_TIMEOUT, "rank %u: CQE with syndrome 0x%02x (%s) for the WQE at index %" PRIu64
                                           " of queue %u; rank %u lane %u waited to its bound for %s",
                        rank, c.syndrome, bell_syndrome_text(c.syndrome), c.index, queue, who->rank, who->lane,
                        who->waited_for ? who->waited_for : "something");
        return true;
    }
    return false;
}

/* Of a worker's queues, the one with a failed completion, or the first. */
static uint32_t failed_queue(const struct bell_world *w, const struct bell_lane_id *who)
{
    const struct bell_worker *worker = w->rank[who->rank].worker;
    uint32_t count = w->queues / w->workers, first = (who->lane - w->lanes) * count;
    for (uint32_t q = first; worker && q < first + count; q++)
        if (worker[q].completion.syndrome)
            return q;
    return first;
}

/* What a NIC did, or does not do, that lets somebody wait to the bound: "" or a clause to append. */
static void explain_nic(const struct bell_world *w, const struct bell_lane_id *who, uint32_t queue, char *out,
                        size_t size)
{
    const struct bell_nicq *own = w->rank[who->rank].nicq + queue, *hit = w->rank[0].nicq;
    const struct bell_nic_fault *f = &hit->fault;
    uint32_t record = bell_dbrec_index(*own->sq->dbrec);
    out[0] = '\0';
    if (w->has_device)
        return;
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

/* What failed first, when it is a flush that was polled: the entry of a collapsed CQ may be overwritten by then.
 * Returns what is known, and a clause to append. */
static const struct bell_completion *find_cause(const struct bell_nicq *q, bool has_device,
                                                const struct bell_completion *polled, const char **clause)
{
    *clause = "";
    if (polled->syndrome != BELL_SYNDROME_FLUSHED)
        return polled;
    if (q->in_error) {
        *clause = " (what was polled is a flush behind it)";
        return &q->first_error;
    }
    if (has_device && q->sq->cq_depth == 1)
        *clause = "; the first error's CQE was overwritten (cq=collapsed; cq=ring keeps it)";
    return polled;
}

void bell_world_explain(const struct bell_world *w, const struct bell_lane_id *who, enum bell_status status,
                        struct bell_error *err)
{
    if (status == BELL_TIMEOUT && explain_error(w, who, err))
        return;
    bool is_lane = who->lane < w->lanes, is_worker = !is_lane && who->lane < w->lanes + w->workers;
    const struct bell_rank *r = w->rank + who->rank;
    uint32_t queue = is_lane ? bell_program_queue(w->program, who->lane)
                     : is_worker ? failed_queue(w, who)
                                 : who->lane - w->lanes - w->workers;
    static const struct bell_completion none;
    const struct bell_completion *c = is_lane ? &r->client[who->lane].completion
                                      : is_worker && r->worker ? &r->worker[queue].completion : &none;
    const struct bell_sq *sq = r->sq + queue;
    const char *name = is_lane ? "lane" : is_worker ? "worker" : "NIC queue";
    uint32_t number = is_worker ? who->lane - w->lanes : is_lane ? who->lane : queue;
    const struct bell_sq_words *words = sq->words;
    char nic[200];
    const char *flush;
    explain_nic(w, who, queue, nic, sizeof nic);
    c = find_cause(r->nicq + queue, w->has_device, c, &flush);
    if (status == BELL_CQE_ERROR)
        (void)bell_fail(err, status, "rank %u %s %u: CQE with syndrome 0x%02x (%s) for the WQE at index %" PRIu64
                                     " of queue %u%s", who->rank, name, number, c->syndrome,
                        bell_syndrome_text(c->syndrome), c->index, queue, flush);
    else if (status == BELL_TIMEOUT)
        (void)bell_fail(err, status, "rank %u %s %u waited to its bound for %s; queue %u: SQ reserved %" PRIu64
                                     ", doorbell record %u mod 65536, completed %" PRIu64 ", CQ index %" PRIu64 "%s",
                        who->rank, name, number, who->waited_for ? who->waited_for : "something", queue,
                        words->reserved, bell_dbrec_index(*sq->dbrec), words->completed, words->cq_index, nic);
    else if (status == BELL_OVERFLOW && r->ring && !is_worker)
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
