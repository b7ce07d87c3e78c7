/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/verbs/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct bell_verbs_qp *qp_of(const struct bell_verbs_link *l, uint32_t rank, uint32_t queue)
{
    return l->qp + (size_t)rank * l->world->queues + queue;
}

static enum bell_status register_rank(struct bell_verbs_link *l, uint32_t rank, struct bell_error *err)
{
    struct bell_rank *r = l->world->rank + rank;
    char what[40];
    (void)snprintf(what, sizeof what, "what rank %u sends", rank);
    enum bell_status s = bell_verbs_register(&l->device, (void *)(uintptr_t)r->source.address, r->source.size_bytes, 0,
                                             what, &l->source[rank], err);
    if (s != BELL_OK) return s;
    (void)snprintf(what, sizeof what, "what rank %u receives", rank);
    s = bell_verbs_register(&l->device, (void *)(uintptr_t)r->target.address, r->target.size_bytes,
                            IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, what, &l->target[rank], err);
    if (s != BELL_OK) return s;
    r->source.key = l->source[rank]->lkey;
    r->target.key = l->target[rank]->rkey;
    return BELL_OK;
}

/* Inline is what leaves from a WQE: with a proxy only a value that came in the descriptor. */
static struct bell_verbs_shape shape_of(const struct bell_world *w)
{
    const struct bell_stack *s = w->stack;
    bool is_proxy = s->submit == BELL_SUBMIT_PROXY, is_inline = s->payload == BELL_PAYLOAD_INLINE;
    bool is_flagged = s->signal == BELL_SIGNAL_SEPARATE && bell_program_is_answered(w->program, 0);
    struct bell_verbs_shape shape = { s->depth, is_proxy ? s->batch : s->wqes_per_doorbell, 0 };
    if (is_inline && (!is_proxy || w->program->bytes == 8))
        shape.inline_bytes = w->program->bytes;
    else if (is_inline && is_flagged)
        shape.inline_bytes = 8;
    return shape;
}

static enum bell_status make_rank(struct bell_verbs_link *l, uint32_t rank, struct bell_error *err)
{
    struct bell_verbs_shape shape = shape_of(l->world);
    enum bell_status s = register_rank(l, rank, err);
    for (uint32_t i = 0; s == BELL_OK && i < l->world->queues; i++) {
        struct bell_verbs_qp *qp = qp_of(l, rank, i);
        struct bell_verbs_queue *q = bell_verbs_link_queue(l, rank, i);
        /* Any 24 bits do; another run's late packets should not fit. */
        uint32_t psn = (uint32_t)(bell_wire_now_ms() * 2654435761u >> 3) + (rank << 16) + i;
        s = bell_verbs_qp_make(qp, &l->device, &shape, psn, err);
        q->backend = &bell_verbs_qp_backend;
        q->queue = qp;
        q->sq = l->world->rank[rank].sq + i;
    }
    return s;
}

/* Lanes and workers know both memories by copies of their own. */
static void tell_keys(struct bell_world *w, uint32_t rank)
{
    struct bell_rank *r = w->rank + rank;
    r->away = w->rank[1 - rank].target;
    r->away.key += w->program->fault == BELL_FAULT_BAD_KEY;
    for (uint32_t lane = 0; lane < w->lanes; lane++) {
        r->client[lane].source.key = r->source.key;
        r->client[lane].target.key = r->away.key;
    }
}

static enum bell_status connect_here(struct bell_verbs_link *l, struct bell_error *err)
{
    enum bell_status s = BELL_OK;
    for (uint32_t rank = 0; rank < BELL_RANKS; rank++) {
        tell_keys(l->world, rank);
        for (uint32_t i = 0; s == BELL_OK && i < l->world->queues; i++) {
            const struct bell_verbs_qp *other = qp_of(l, 1 - rank, i);
            /* Both ranks were made.  NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
            uint32_t qpn = other->qp->qp_num;
            s = bell_verbs_qp_connect(qp_of(l, rank, i), &l->device, &l->device.address, qpn, other->psn, err);
        }
    }
    return s;
}

/* ---- with another process ---- */

static void fill_hello(const struct bell_verbs_link *l, struct bell_hello *h)
{
    const struct bell_verbs_address *a = &l->device.address;
    const struct bell_region *target = &l->world->rank[l->rank].target;
    h->rank = l->rank;
    h->queues = l->world->queues;
    h->address = target->address;
    h->size_bytes = target->size_bytes;
    h->rkey = target->key;
    h->lid = a->lid;
    h->mtu = a->mtu;
    h->is_roce = a->is_roce;
    h->has_global = a->has_global;
    memcpy(h->gid, a->gid, sizeof h->gid);
    for (uint32_t i = 0; i < h->queues; i++) {
        h->end[i].qpn = qp_of(l, l->rank, i)->qp->qp_num;
        h->end[i].psn = qp_of(l, l->rank, i)->psn;
    }
}

static enum bell_status use_hello(struct bell_verbs_link *l, const struct bell_hello *peer, struct bell_error *err)
{
    struct bell_region *target = &l->world->rank[1 - l->rank].target;
    struct bell_verbs_address a = { { 0 }, peer->lid, peer->mtu, peer->is_roce, peer->has_global };
    enum bell_status s = BELL_OK;
    memcpy(a.gid, peer->gid, sizeof a.gid);
    target->key = peer->rkey;
    tell_keys(l->world, l->rank);
    for (uint32_t i = 0; s == BELL_OK && i < peer->queues; i++) {
        struct bell_verbs_qp *qp = qp_of(l, l->rank, i);
        qp->remote_offset = peer->address - target->address;
        s = bell_verbs_qp_connect(qp, &l->device, &a, peer->end[i].qpn, peer->end[i].psn, err);
    }
    return s;
}

static enum bell_status swap_hellos(struct bell_verbs_link *l, struct bell_hello *own, struct bell_hello *peer,
                                    struct bell_error *err)
{
    struct bell_error inner = { BELL_OK, "" };
    size_t size = bell_hello_size(own);
    if (size > BELL_MESSAGE_MAX)
        return bell_fail(err, BELL_UNSUPPORTED, "queues: a HELLO of %zu bytes does not fit a message of %u", size,
                         BELL_MESSAGE_MAX);
    bell_hello_put(own, l->body);
    enum bell_status s = bell_wire_send(&l->wire, BELL_MESSAGE_HELLO, l->body, size, err);
    if (s == BELL_OK) s = bell_wire_expect(&l->wire, BELL_MESSAGE_HELLO, l->body, &size, err);
    if (s != BELL_OK) return s;
    s = bell_hello_get(l->body, size, own, peer, &inner);
    return s == BELL_OK ? s : bell_fail(err, s, "peer on %s: %s", l->wire.peer, inner.text);
}

static enum bell_status connect_away(struct bell_verbs_link *l, struct bell_error *err)
{
    struct bell_hello own = { .terms = NULL }, peer = { .terms = NULL };
    struct bell_hello_end *end = calloc((size_t)2 * l->world->queues, sizeof *end);
    char *terms = malloc(BELL_TERMS_MAX);
    size_t size;
    enum bell_status s = BELL_OK;
    if (!end || !terms) {
        s = bell_fail(err, BELL_NO_MEMORY, "out of memory: what to tell the peer");
    } else {
        own.end = end;
        peer.end = end + l->world->queues;
        own.terms = terms;
        own.terms_bytes = bell_terms_put(l->world->program, l->world->stack, terms);
        fill_hello(l, &own);
        s = swap_hellos(l, &own, &peer, err);
    }
    if (s == BELL_OK) s = use_hello(l, &peer, err);
    /* Nobody sends before the other side can receive. */
    if (s == BELL_OK) s = bell_wire_send(&l->wire, BELL_MESSAGE_READY, NULL, 0, err);
    if (s == BELL_OK) s = bell_wire_expect(&l->wire, BELL_MESSAGE_READY, l->body, &size, err);
    free(end);
    free(terms);
    return s;
}

/* ---- all of it ---- */

static enum bell_status allocate(struct bell_verbs_link *l, struct bell_error *err)
{
    size_t count = (size_t)BELL_RANKS * l->world->queues;
    l->qp = calloc(count, sizeof *l->qp);
    l->queue = calloc(count, sizeof *l->queue);
    l->body = malloc(BELL_MESSAGE_MAX);
    if (l->qp && l->queue && l->body) return BELL_OK;
    return bell_fail(err, BELL_NO_MEMORY, "out of memory: %zu queue pairs", count);
}

enum bell_status bell_verbs_link_open(struct bell_verbs_link *l, struct bell_world *world, const struct bell_machine *m,
                                      uint64_t bound_ms, struct bell_error *err)
{
    memset(l, 0, sizeof *l);
    l->wire.fd = -1;
    l->world = world;
    l->rank = m->peer[0] ? m->rank : 0;
    for (uint32_t rank = 0; rank < BELL_RANKS; rank++)
        l->is_here[rank] = !m->peer[0] || rank == m->rank;
    enum bell_status s = bell_verbs_open(&l->device, m, err);
    if (s == BELL_OK) s = allocate(l, err);
    for (uint32_t rank = 0; s == BELL_OK && rank < BELL_RANKS; rank++)
        if (l->is_here[rank]) s = make_rank(l, rank, err);
    if (s == BELL_OK && m->peer[0]) s = bell_wire_open(&l->wire, m->peer, m->rank, bound_ms, err);
    if (s == BELL_OK) s = m->peer[0] ? connect_away(l, err) : connect_here(l, err);
    if (s != BELL_OK) bell_verbs_link_close(l);
    return s;
}

void bell_verbs_link_close(struct bell_verbs_link *l)
{
    for (size_t i = 0; l->qp && i < (size_t)BELL_RANKS * l->world->queues; i++)
        bell_verbs_qp_free(l->qp + i);
    for (uint32_t rank = 0; rank < BELL_RANKS; rank++) {
        if (l->source[rank]) (void)ibv_dereg_mr(l->source[rank]);
        if (l->target[rank]) (void)ibv_dereg_mr(l->target[rank]);
        l->source[rank] = l->target[rank] = NULL;
    }
    bell_verbs_close(&l->device);
    bell_wire_close(&l->wire);
    free(l->qp);
    free(l->queue);
    free(l->body);
    l->qp = NULL;
    l->queue = NULL;
    l->body = NULL;
}
