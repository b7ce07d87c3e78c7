/* SPDX-License-Identifier: Apache-2.0
 * doorbell -> schedule -> fetch -> [payload read] -> wire -> deliver
 *                                                        \-> acknowledgement -> CQE write
 * With BlueFlame the WQE comes with the doorbell: neither schedule nor fetch. */
#include "sim/nic.h"

#include <stdlib.h>

/* A WQE on its way. */
struct bell_sim_work {
    struct bell_nic_work nic;
    struct bell_sim_queue *queue;
    uint64_t deliver_ps;
    struct bell_sim_work *next, *older; /* of the free ones; of all */
    bool wants_cqe;
};

static struct bell_sim_work *take_work(struct bell_sim *sim)
{
    struct bell_sim_work *w = sim->free_work;
    if (w) {
        sim->free_work = w->next;
    } else if ((w = malloc(sizeof *w)) != NULL) {
        w->older = sim->work;
        sim->work = w;
    } else {
        (void)bell_fail(sim->err, BELL_NO_MEMORY, "no memory for a WQE under way in the simulated NIC");
        bell_sim_stop(sim, BELL_NO_MEMORY, sim->clock_ps);
    }
    return w;
}

static void give_work(struct bell_sim *sim, struct bell_sim_work *w)
{
    w->next = sim->free_work;
    sim->free_work = w;
}

void bell_sim_free_work(struct bell_sim *sim)
{
    while (sim->work) {
        struct bell_sim_work *w = sim->work;
        sim->work = w->older;
        free(w);
    }
}

static void next_stage(struct bell_sim *sim, void (*fire)(struct bell_sim *, struct bell_timer *), void *object,
                       uint64_t start_ps, uint64_t end_ps, uint64_t cause)
{
    struct bell_timer *t = bell_sim_timer(sim);
    if (!t)
        return;
    t->fire = fire;
    t->object = object;
    t->start_ps = start_ps;
    t->cause = cause;
    bell_sim_schedule(sim, t, end_ps);
}

/* The core's stage notes its own event: between these times, because of that. */
static void act(struct bell_sim_queue *q, const struct bell_timer *t)
{
    q->lane.now_ps = t->at_ps;
    q->lane.id.step_start_ps = t->start_ps;
    q->lane.cause = t->cause;
}

static uint64_t stage(struct bell_sim *sim, struct bell_sim_queue *q, enum bell_actor actor, enum bell_event_kind kind,
                      const struct bell_nic_work *work, const struct bell_timer *t)
{
    struct bell_note n = { kind, q->nicq->sq->queue, work ? work->index : q->nicq->producer,
                           work ? work->view.blocks : 0, work ? work->view.bytes : 0, BELL_SCOPE_NONE };
    return bell_sim_emit(sim, &q->lane.id, actor, &n, t->start_ps, t->at_ps, t->cause);
}

static void cqe_written(struct bell_sim *sim, struct bell_timer *t)
{
    struct bell_sim_work *w = t->object;
    act(w->queue, t);
    bell_nic_complete(&w->queue->lane, w->queue->nicq, &w->nic);
    give_work(sim, w);
}

/* The CQE follows the delivery: a requester never learns of a write before it was handed to memory. */
static void acknowledged(struct bell_sim *sim, struct bell_timer *t)
{
    struct bell_sim_work *w = t->object;
    struct bell_sim_queue *q = w->queue;
    uint64_t seq = stage(sim, q, BELL_ACTOR_WIRE, BELL_EVENT_ACK, &w->nic, t);
    uint64_t start_ps = t->at_ps > w->deliver_ps ? t->at_ps : w->deliver_ps, end_ps = start_ps + q->queue_write_ps;
    end_ps += bell_nic_cqe_delay_ps(q->nicq, &w->nic);
    if (end_ps < q->last_done_ps)
        end_ps = q->last_done_ps;
    q->last_done_ps = end_ps;
    next_stage(sim, cqe_written, w, start_ps, end_ps, seq);
}

static void delivered(struct bell_sim *sim, struct bell_timer *t)
{
    struct bell_sim_work *w = t->object;
    act(w->queue, t);
    bell_nic_execute(&w->queue->lane, w->queue->nicq, &w->nic);
    if (!w->wants_cqe)
        give_work(sim, w);
}

static void arrived(struct bell_sim *sim, struct bell_timer *t)
{
    struct bell_sim_work *w = t->object;
    struct bell_sim_queue *q = w->queue;
    uint64_t seq = stage(sim, q, BELL_ACTOR_WIRE, BELL_EVENT_WIRE, &w->nic, t);
    w->deliver_ps = t->at_ps + q->payload_write_ps;
    uint64_t ack_ps = t->at_ps + sim->cost.ack_ps;
    w->wants_cqe = bell_nic_judge(q->nicq, &w->nic) || bell_nic_wants_cqe(&w->nic);
    next_stage(sim, delivered, w, t->at_ps, w->deliver_ps, seq);
    if (w->wants_cqe)
        next_stage(sim, acknowledged, w, t->at_ps, ack_ps, seq);
}

static uint64_t latest(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The port serves its queues in the order in which they come. */
static void send(struct bell_sim *sim, struct bell_sim_work *w, uint64_t now_ps, uint64_t cause)
{
    struct bell_sim_queue *q = w->queue;
    const struct bell_costs *c = &sim->cost;
    uint64_t start_ps = latest(now_ps, q->port->free_ps), bytes_ps = bell_cost_bytes_ps(c, w->nic.view.bytes);
    uint64_t dc_ps = q->nicq->sq->is_dc ? c->dc_ps : 0;
    q->port->free_ps = start_ps + latest(bytes_ps, c->port_wqe_ps);
    next_stage(sim, arrived, w, start_ps, start_ps + bytes_ps + c->transmit_ps + dc_ps, cause);
}

static void queued(struct bell_sim *sim, struct bell_timer *t)
{
    send(sim, t->object, t->at_ps, t->cause);
}

/* A queue hands its WQEs to the port one by one. */
static void transmit(struct bell_sim *sim, struct bell_sim_work *w, uint64_t ready_ps, uint64_t cause)
{
    struct bell_sim_queue *q = w->queue;
    uint64_t start_ps = latest(ready_ps, q->next_ps);
    q->next_ps = start_ps + sim->cost.queue_wqe_ps;
    if (start_ps == ready_ps)
        send(sim, w, ready_ps, cause);
    else
        next_stage(sim, queued, w, ready_ps, start_ps, cause);
}

static void payload_read(struct bell_sim *sim, struct bell_timer *t)
{
    struct bell_sim_work *w = t->object;
    transmit(sim, w, t->at_ps, stage(sim, w->queue, BELL_ACTOR_PCIE, BELL_EVENT_PAYLOAD_READ, &w->nic, t));
}

static void held(struct bell_sim *sim, struct bell_timer *t)
{
    transmit(sim, t->object, t->at_ps, t->cause);
}

/* Packets leave in the order of their WQEs: one with its payload inside waits for the payload reads ahead of it. */
static void make_ready(struct bell_sim *sim, struct bell_sim_work *w, uint64_t now_ps, uint64_t cause)
{
    struct bell_sim_queue *q = w->queue;
    const struct bell_wqe_view *v = &w->nic.view;
    bool is_read = v->bytes && !v->has_inline && !w->nic.syndrome;
    uint64_t ready_ps = is_read ? now_ps + q->payload_read_ps : now_ps;
    if (ready_ps < q->ready_ps)
        ready_ps = q->ready_ps;
    q->ready_ps = ready_ps;
    if (!is_read && ready_ps == now_ps)
        transmit(sim, w, now_ps, cause);
    else
        next_stage(sim, is_read ? payload_read : held, w, now_ps, ready_ps, cause);
}

/* All WQEs that were rung for come with one read. */
static void fetch_all(struct bell_sim *sim, struct bell_sim_queue *q, const struct bell_timer *t, bool is_fetched)
{
    for (;;) {
        struct bell_sim_work *w = take_work(sim);
        if (!w)
            return;
        w->queue = q;
        if (bell_nic_fetch(&q->lane, q->nicq, &w->nic) != BELL_OK) {
            give_work(sim, w);
            return;
        }
        uint64_t cause = is_fetched ? stage(sim, q, BELL_ACTOR_PCIE, BELL_EVENT_NIC_FETCH, &w->nic, t) : t->cause;
        make_ready(sim, w, t->at_ps, cause);
    }
}

static void fetched(struct bell_sim *sim, struct bell_timer *t)
{
    fetch_all(sim, t->object, t, true);
}

static void scheduled(struct bell_sim *sim, struct bell_timer *t)
{
    struct bell_sim_queue *q = t->object;
    uint64_t seq = stage(sim, q, BELL_ACTOR_NIC, BELL_EVENT_NIC_SCHEDULE, NULL, t);
    next_stage(sim, fetched, q, t->at_ps, t->at_ps + q->queue_read_ps, seq);
}

static void recovered(struct bell_sim *sim, struct bell_timer *t);

/* Look at the record again when a doorbell got lost: at_ps is when the time that it may be ahead is over. */
static void watch_record(struct bell_sim *sim, struct bell_sim_queue *q, uint64_t now_ps)
{
    if (bell_nic_recover(&q->lane, q->nicq, now_ps) == BELL_EMPTY && q->nicq->behind_ps == now_ps)
        next_stage(sim, recovered, q, now_ps, now_ps + q->nicq->recover_ps, 0);
}

static void recovered(struct bell_sim *sim, struct bell_timer *t)
{
    struct bell_sim_queue *q = t->object;
    if (bell_nic_recover(&q->lane, q->nicq, t->at_ps) != BELL_OK)
        return;
    next_stage(sim, scheduled, q, t->at_ps, t->at_ps + sim->cost.schedule_ps, 0);
}

void bell_sim_ring(struct bell_sim *sim, struct bell_timer *t)
{
    uint64_t *doorbell = t->target;
    *doorbell = t->value[0];
    struct bell_sim_queue *q = sim->queue + (bell_doorbell_qpn(t->value[0]) - sim->queue_base);
    enum bell_status s = bell_nic_take(&q->lane, q->nicq);
    if (s == BELL_INVALID) {
        (void)bell_fail(sim->err, s, "rank %u queue %u: a doorbell claims more than the queue's depth",
                        q->lane.id.rank, q->nicq->sq->queue);
        bell_sim_stop(sim, s, t->at_ps);
    }
    if (s == BELL_EMPTY && q->nicq->recover_ps)
        watch_record(sim, q, t->at_ps);
    if (s != BELL_OK)
        return;
    t->cause = stage(sim, q, BELL_ACTOR_PCIE, BELL_EVENT_DOORBELL_FLIGHT, NULL, t);
    if (t->value[1])
        fetch_all(sim, q, t, false);
    else
        next_stage(sim, scheduled, q, t->at_ps, t->at_ps + sim->cost.schedule_ps, t->cause);
}
