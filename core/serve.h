/* SPDX-License-Identifier: Apache-2.0
 * What a CPU worker does: it serves its share of the proxy rings, or rings doorbells for its share of the queues, in
 * turn. */
#ifndef BELL_CORE_SERVE_H
#define BELL_CORE_SERVE_H

#include "core/forward.h"
#include "core/proxy.h"

/* count of either; the other is NULL.  All have one key, which the port wakes. */
struct bell_share {
    struct bell_worker *worker;
    struct bell_forwarder *forwarder;
    uint32_t count;
};

BELL_STEP bool bell_share_is_done(const struct bell_share *s)
{
    bool is_done = true;
    for (uint32_t i = 0; is_done && i < s->count; i++)
        is_done = s->worker ? s->worker[i].completed >= s->worker[i].expected
                            : bell_forwarder_is_done(s->forwarder + i);
    return is_done;
}

/* One turn of each.  BELL_EMPTY: nothing to do on any. */
BELL_STEP enum bell_status bell_share_turn(struct bell_lane *lane, struct bell_share *s)
{
    enum bell_status all = BELL_EMPTY;
    for (uint32_t i = 0; i < s->count; i++) {
        enum bell_status one = s->worker ? bell_worker_turn(lane, s->worker + i)
                                         : bell_forwarder_turn(lane, s->forwarder + i);
        if (bell_is_failure(one))
            return one;
        if (one == BELL_OK)
            all = BELL_OK;
    }
    return all;
}

BELL_STEP bool bell_share_has_news(struct bell_lane *lane, void *context)
{
    struct bell_share *s = (struct bell_share *)context;
    for (uint32_t i = 0; i < s->count; i++)
        if (s->worker ? bell_worker_has_news(lane, s->worker + i) : bell_forwarder_has_news(lane, s->forwarder + i))
            return true;
    return false;
}

/* Until there is nothing more to come: every expected descriptor has completed, every expected WQE was rung for. */
BELL_STEP enum bell_status bell_serve(struct bell_lane *lane, struct bell_share *s)
{
    const void *key = s->worker ? s->worker->ring->key : s->forwarder->sq->mailbox;
    const char *what = s->worker ? "a proxy descriptor or a CQE" : "a doorbell to forward";
    while (!bell_share_is_done(s)) {
        enum bell_status one = bell_share_turn(lane, s);
        if (one == BELL_EMPTY)
            one = bell_port_wait(lane, key, bell_share_has_news, s, what);
        if (bell_is_failure(one))
            return one;
    }
    return BELL_OK;
}

#endif
