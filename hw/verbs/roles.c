/* SPDX-License-Identifier: Apache-2.0 */
#define BELL_CLIENT_OWN_QUEUES /* core/client.h posts and waits through the two functions below */
#include "hw/verbs/roles.h"

#include "hw/soft/crew.h"

#define IDLE_TURNS 4096 /* of a wait between two looks at the own queue; far more than an answer takes */

/* ---- a lane that posts itself ---- */

/* Of the lane that this thread is. */
static _Thread_local struct bell_verbs_queue *own_queue;
static _Thread_local struct bell_soft_member *own_member;
static _Thread_local bool is_alone; /* no other lane polls the queue */
static _Thread_local uint32_t idle_turns;

void bell_verbs_idle(void *context)
{
    uint64_t index;
    (void)context;
    if (!own_queue || ++idle_turns % IDLE_TURNS) return;
    enum bell_status s = bell_verbs_poll(&own_member->lane, own_queue, is_alone, &index);
    if (bell_is_failure(s)) bell_soft_member_fail(own_member, s);
}

BELL_STEP enum bell_status bell_client_post(struct bell_lane *lane, struct bell_client *c, uint64_t put, bool is_flag,
                                            uint32_t count)
{
    /* No tag of its own: the requests of a chain are kept until it is posted. */
    struct bell_client_post post = { c, put, NULL, is_flag };
    struct bell_sq *sq = c->sq;
    if (c->stack->sharing == BELL_SHARING_OWNER)
        return bell_verbs_put(lane, own_queue, c->stack, bell_client_request, &post, count, &c->end);
    while (!bell_port_cas(lane, sq->words_memory, &sq->words->lock, 0, 1)) {
        enum bell_status w = bell_port_wait(lane, &sq->words->lock, bell_lock_is_free, sq, "the queue's lock");
        if (w != BELL_OK) return w;
    }
    lane->early_seq = 0; /* drawn for the lock, of which no event tells */
    enum bell_status s = bell_verbs_put(lane, own_queue, c->stack, bell_client_request, &post, count, &c->end);
    bell_port_store_release(lane, sq->words_memory, &sq->words->lock, 0);
    lane->early_seq = 0;
    return s;
}

BELL_STEP enum bell_status bell_client_quiet_posted(struct bell_lane *lane, struct bell_client *c)
{
    return bell_verbs_quiet(lane, own_queue, is_alone, c->end);
}

enum bell_status bell_verbs_client_run(struct bell_soft_member *member, struct bell_client *c,
                                       struct bell_verbs_queue *q)
{
    own_queue = q;
    own_member = member;
    is_alone = c->stack->sharing == BELL_SHARING_OWNER;
    return bell_client_run(&member->lane, c);
}

/* ---- a worker ---- */

/* Take up to a batch from the ring, free their slots, post them as one chain.  BELL_EMPTY: nothing there. */
static enum bell_status post_batch(struct bell_lane *lane, struct bell_worker *w, struct bell_verbs_queue *q)
{
    struct bell_entry e;
    uint32_t n = 0;
    while (n < w->stack->batch && bell_worker_has_entry(lane, w, &e)) {
        struct bell_put put = bell_entry_read(&e);
        bell_worker_request(w, n++, &put);
        bell_note(lane, BELL_EVENT_DEQUEUE, w->ring->ring, w->taken++, 1, put.bytes, BELL_SCOPE_NONE);
    }
    if (n == 0) return BELL_EMPTY;
    bell_port_store_release(lane, BELL_MEMORY_HOST, w->ring->progress, w->taken);
    bell_note(lane, BELL_EVENT_PROGRESS, w->ring->ring, w->taken, n, 0, BELL_SCOPE_NONE);
    enum bell_status s = bell_verbs_put(lane, q, w->stack, bell_request_of_array, w->request, n, &w->posted_end);
    if (s == BELL_OK) w->upto[(w->posted_end - 1) & (q->sq->depth - 1)] = w->taken;
    return s;
}

/* Complete, or else post, so that a chain always finds room. */
static enum bell_status turn(struct bell_lane *lane, struct bell_worker *w, struct bell_verbs_queue *q)
{
    uint64_t index;
    enum bell_status s = bell_verbs_poll(lane, q, true, &index);
    if (s == BELL_EMPTY) return bell_worker_has_room(lane, w) ? post_batch(lane, w, q) : s;
    if (s != BELL_OK) return s;
    w->completed = w->upto[index & (q->sq->depth - 1)];
    bell_port_store_release(lane, w->ring->done_memory, w->ring->done, w->completed);
    lane->early_seq = 0;
    return BELL_OK;
}

struct service {
    struct bell_share share;
    struct bell_verbs_queue *queue;
    enum bell_status status;
};

/* A turn at each ring; true when one of them had something to do.  It posts and polls itself, because libibverbs has no
 * look without taking. */
static bool has_turned(struct bell_lane *lane, void *context)
{
    struct service *v = context;
    v->status = BELL_EMPTY;
    for (uint32_t i = 0; i < v->share.count && !bell_is_failure(v->status); i++) {
        enum bell_status s = turn(lane, v->share.worker + i, v->queue + i);
        if (s != BELL_EMPTY) v->status = s;
    }
    return v->status != BELL_EMPTY;
}

enum bell_status bell_verbs_serve(struct bell_lane *lane, const struct bell_share *share,
                                  struct bell_verbs_queue *queue)
{
    struct service v = { *share, queue, BELL_EMPTY };
    while (!bell_share_is_done(share)) {
        enum bell_status s =
            bell_port_wait(lane, share->worker->ring->key, has_turned, &v, "a proxy descriptor or a CQE");
        if (s == BELL_OK) s = v.status;
        if (bell_is_failure(s)) return s;
    }
    return BELL_OK;
}
