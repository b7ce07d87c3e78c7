/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/steps.h"

#include <stdlib.h>
#include <string.h>

#define NOBODY SIZE_MAX

/* A step and the two steps that it follows. */
struct node {
    struct bell_event event;
    size_t before, cause; /* NOBODY: none in the operation */
    uint64_t gap_ps;      /* between the later of them and its start */
};

struct graph {
    struct node *node;
    size_t count, last; /* last: whose end is the operation's */
};

static uint64_t end_of(const struct bell_event *e)
{
    return e->start_ps + e->duration_ps;
}

/* Lanes act one step after the other; what the machine does on its own follows its cause alone. */
static bool is_on_lane(const struct bell_event *e)
{
    return (e->actor == BELL_ACTOR_GPU || e->actor == BELL_ACTOR_CPU) && e->kind != BELL_EVENT_OP;
}

static bool is_same_lane(const struct bell_event *a, const struct bell_event *b)
{
    return is_on_lane(a) && is_on_lane(b) && a->rank == b->rank && a->lane == b->lane;
}

static size_t find(const struct graph *g, uint64_t seq)
{
    for (size_t i = g->count; i-- > 0;)
        if (g->node[i].event.seq == seq)
            return i;
    return NOBODY;
}

static size_t find_before(const struct graph *g, const struct bell_event *e)
{
    for (size_t i = g->count; i-- > 0;)
        if (is_same_lane(&g->node[i].event, e))
            return i;
    return NOBODY;
}

static uint64_t ready(const struct node *n, const uint64_t *end, uint64_t start)
{
    uint64_t at = start;
    if (n->before != NOBODY && end[n->before] > at)
        at = end[n->before];
    if (n->cause != NOBODY && end[n->cause] > at)
        at = end[n->cause];
    return at;
}

/* Steps that the operation's lane takes in its time, and all that follows from them in that time. */
static void collect(struct graph *g, const struct bell_event *event, size_t count, const struct bell_event *op,
                    uint64_t *end)
{
    for (size_t i = 0; i < count; i++) {
        const struct bell_event *e = event + i;
        if (e->kind == BELL_EVENT_OP || e->start_ps < op->start_ps || e->start_ps >= end_of(op)
            || end_of(e) < op->start_ps)
            continue;
        bool is_own = is_on_lane(e) && e->rank == op->rank && e->lane == op->lane && e->seq < op->seq;
        struct node n = { *e, find_before(g, e), e->cause ? find(g, e->cause) : NOBODY, 0 };
        if (!is_own && n.before == NOBODY && n.cause == NOBODY)
            continue;
        uint64_t ready_ps = ready(&n, end, op->start_ps);
        n.gap_ps = e->start_ps > ready_ps ? e->start_ps - ready_ps : 0;
        if (is_own)
            g->last = g->count;
        end[g->count] = end_of(e);
        g->node[g->count++] = n;
    }
}

/* End of the operation when step `without` takes no time. */
static uint64_t replay(const struct graph *g, uint64_t start_ps, size_t without, uint64_t *end)
{
    for (size_t i = 0; i < g->count; i++) {
        const struct node *n = g->node + i;
        end[i] = ready(n, end, start_ps) + n->gap_ps + (i == without ? 0 : n->event.duration_ps);
    }
    return end[g->last];
}

/* Where a step begins before what it follows has ended, as in real time, the overlap counts once. */
static void mark(const struct graph *g, struct bell_steps *out)
{
    uint64_t until_ps = out->start_ps + out->total_ps;
    for (size_t i = g->last; i != NOBODY;) {
        const struct node *n = g->node + i;
        uint64_t end_ps = end_of(&n->event) < until_ps ? end_of(&n->event) : until_ps;
        out->step[i].is_critical = true;
        if (n->event.start_ps < until_ps) {
            out->critical_ps += end_ps - n->event.start_ps;
            until_ps = n->event.start_ps;
        }
        size_t a = n->before, b = n->cause;
        bool take_cause = b != NOBODY && (a == NOBODY || end_of(&g->node[b].event) >= end_of(&g->node[a].event));
        i = take_cause ? b : a;
    }
    out->gap_ps = out->total_ps - out->critical_ps;
}

static int compare(const void *a, const void *b)
{
    const struct bell_event *x = &((const struct bell_step *)a)->event, *y = &((const struct bell_step *)b)->event;
    if (x->start_ps != y->start_ps)
        return x->start_ps < y->start_ps ? -1 : 1;
    return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static void fill_in(const struct graph *g, uint64_t *end, struct bell_steps *out)
{
    uint64_t all_ps = replay(g, out->start_ps, NOBODY, end);
    for (size_t i = 0; i < g->count; i++) {
        out->step[i].event = g->node[i].event;
        out->step[i].gain_ps = all_ps - replay(g, out->start_ps, i, end);
    }
    out->count = g->count;
    mark(g, out);
    qsort(out->step, out->count, sizeof *out->step, compare);
}

enum bell_status bell_steps_of(const struct bell_event *event, size_t count, size_t op, struct bell_steps *out,
                               struct bell_error *err)
{
    memset(out, 0, sizeof *out);
    if (op >= count || event[op].kind != BELL_EVENT_OP)
        return bell_fail(err, BELL_INVALID, "event %zu closes no operation", op + 1);
    struct graph g = { malloc(count * sizeof *g.node), 0, NOBODY };
    uint64_t *end = malloc(count * sizeof *end);
    out->step = calloc(count, sizeof *out->step);
    enum bell_status s = BELL_OK;
    if (!g.node || !end || !out->step) s = bell_fail(err, BELL_NO_MEMORY, "no memory for %zu events", count);
    if (s == BELL_OK) {
        out->start_ps = event[op].start_ps;
        out->total_ps = event[op].duration_ps;
        collect(&g, event, count, event + op, end);
        if (g.last == NOBODY)
            s = bell_fail(err, BELL_INVALID, "event %zu: the operation has no steps", op + 1);
        else
            fill_in(&g, end, out);
    }
    free(end);
    free(g.node);
    if (s != BELL_OK)
        bell_steps_free(out);
    return s;
}

void bell_steps_free(struct bell_steps *steps)
{
    free(steps->step);
    memset(steps, 0, sizeof *steps);
}
