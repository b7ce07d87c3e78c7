/* SPDX-License-Identifier: Apache-2.0
 * One order for the events of two clocks.  What the CPU side did is in the order of its numbers.  The GPU's times are
 * moved by an offset that was measured to about a microsecond, and corrected so that no NIC ends a delivery before the
 * doorbell it saw begins, and nobody ends a poll before its CQE begins.  Then the end of each event decides, but a
 * clock is read after a store that the other side may see before: what had to come first does.  Times stay. */
#include "hw/cuda/order.h"

#include <stdlib.h>
#include <string.h>

/* How far from where the measured offset puts it the other side of an exchange is looked for. */
#define SEARCH ((uint64_t)100 * 1000000) /* picoseconds */
#define LANES ((size_t)2 << 16)          /* of both ranks: a lane's number has 16 bits */
#define PASSES 100                       /* each moves events behind those that were moved before */

struct stamped {
    struct bell_event *event;
    uint64_t time_ps; /* of its end; among CPU events not before that of any earlier one */
    bool is_gpu;
};

static uint64_t end_of(const struct bell_event *e)
{
    return e->start_ps + e->duration_ps;
}

static int by_seq(const void *a, const void *b)
{
    const struct stamped *x = a, *y = b;
    return x->event->seq < y->event->seq ? -1 : x->event->seq > y->event->seq;
}

static int by_time(const void *a, const void *b)
{
    const struct stamped *x = a, *y = b;
    if (x->time_ps != y->time_ps) return x->time_ps < y->time_ps ? -1 : 1;
    return x->event->seq < y->event->seq ? -1 : x->event->seq > y->event->seq; /* drawn in gather() for GPU lanes */
}

static bool is_on_gpu(const struct bell_soft_member *m)
{
    return m->role == BELL_SOFT_LANE || (m->lane.events && m->lane.event->seq == 0);
}

/* GPU lanes' events get numbers in their own order, for ties. */
static size_t gather(struct bell_soft_crew *crew, struct stamped *all, bool is_gpu)
{
    size_t count = 0;
    for (size_t i = 0; i < crew->members; i++) {
        struct bell_soft_member *m = &crew->member[i];
        for (size_t k = 0; is_on_gpu(m) == is_gpu && k < m->lane.events; k++) {
            struct bell_event *e = &m->lane.event[k];
            all[count++] = (struct stamped){ e, end_of(e), is_gpu };
        }
    }
    return count;
}

static void number_gpu(struct bell_soft_crew *crew)
{
    for (size_t i = 0; i < crew->members; i++)
        for (size_t k = 0; is_on_gpu(&crew->member[i]) && k < crew->member[i].lane.events; k++)
            crew->member[i].lane.event[k].cause = k + 1;
    for (size_t i = 0; i < crew->members; i++)
        for (size_t k = 0; k < crew->member[i].lane.events; k++) {
            struct bell_event *e = &crew->member[i].lane.event[k];
            if (e->seq == 0 && e->cause) {
                e->seq = e->cause;
                e->cause = 0;
            }
        }
}

static void raise_times(struct stamped *cpu, size_t count)
{
    qsort(cpu, count, sizeof *cpu, by_seq);
    for (size_t i = 1; i < count; i++)
        if (cpu[i].time_ps < cpu[i - 1].time_ps) cpu[i].time_ps = cpu[i - 1].time_ps;
}

/* What the GPU did must come before what the CPU did because of it (`later`), or after what made it. */
struct limits {
    int64_t least_ps, most_ps; /* of the offset */
};

static bool is_same_queue(const struct bell_event *a, const struct bell_event *b)
{
    return a->rank == b->rank && a->queue == b->queue;
}

/* The first CPU event at or after a time. */
static size_t first_after(const struct stamped *cpu, size_t count, uint64_t time_ps)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (cpu[middle].time_ps < time_ps)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The first event of `kind` on that queue at or past an index, among those from *from on that are not much later. */
static struct stamped *find(struct stamped *cpu, size_t count, size_t from, const struct bell_event *like,
                            enum bell_event_kind kind, uint64_t index)
{
    for (size_t i = from; i < count && cpu[i].time_ps - cpu[from].time_ps < SEARCH; i++)
        if (cpu[i].event->kind == kind && is_same_queue(cpu[i].event, like) && cpu[i].event->index >= index)
            return &cpu[i];
    return NULL;
}

/* Two events of which `first` made `later` possible; one of them is the GPU's. */
struct pair {
    struct stamped *first, *later;
};

static void bound_by(struct limits *l, const struct pair *p)
{
    int64_t gap_ps = (int64_t)(p->later->time_ps - p->first->event->start_ps);
    if (p->first->is_gpu && gap_ps < l->most_ps) l->most_ps = gap_ps;
    if (!p->first->is_gpu && -gap_ps > l->least_ps) l->least_ps = -gap_ps;
}

/* The producer index that was rung last before a doorbell; 0: it is the first of its queue. */
static uint64_t rung_before(const struct stamped *gpu, size_t at)
{
    for (size_t i = at; i-- > 0;)
        if (gpu[i].event->kind == BELL_EVENT_DOORBELL && is_same_queue(gpu[i].event, gpu[at].event))
            return gpu[i].event->index;
    return 0;
}

/* What the CPU side did because of a GPU event, or so that there could be one; false: it does not matter. */
static bool find_pair(struct stamped *gpu, size_t at, struct stamped *cpu, size_t cpus, int64_t offset_ps,
                      struct pair *out)
{
    const struct bell_event *e = gpu[at].event;
    size_t from = first_after(cpu, cpus, gpu[at].time_ps + (uint64_t)offset_ps - SEARCH / 2);
    struct stamped *other = NULL;
    if (e->kind == BELL_EVENT_DOORBELL && e->index > rung_before(gpu, at))
        other = find(cpu, cpus, from, e, BELL_EVENT_DELIVER, rung_before(gpu, at));
    if (e->kind == BELL_EVENT_ENQUEUE) other = find(cpu, cpus, from, e, BELL_EVENT_DEQUEUE, e->index);
    if (e->kind == BELL_EVENT_MAILBOX) other = find(cpu, cpus, from, e, BELL_EVENT_DOORBELL, e->index);
    *out = (struct pair){ &gpu[at], other };
    if (e->kind == BELL_EVENT_POLL && e->index) {
        other = find(cpu, cpus, from, e, BELL_EVENT_CQE, e->index - 1);
        *out = (struct pair){ other, &gpu[at] };
        return other && other->event->index < e->index;
    }
    return other != NULL;
}

/* Put what came later behind what came first, without turning round what one lane, or the CPU side, did.  False:
 * nothing had to be moved. */
static bool settle(const struct pair *pair, size_t pairs, struct stamped *all, size_t cpus, size_t gpus, uint64_t *last)
{
    bool has_moved = false;
    for (size_t i = 0; i < pairs; i++)
        if (pair[i].later->time_ps <= pair[i].first->time_ps) {
            pair[i].later->time_ps = pair[i].first->time_ps + 1;
            has_moved = true;
        }
    for (size_t i = 1; i < cpus; i++)
        if (all[i].time_ps < all[i - 1].time_ps) all[i].time_ps = all[i - 1].time_ps;
    memset(last, 0, LANES * sizeof *last);
    for (size_t i = cpus; i < cpus + gpus; i++) { /* by time, so each lane's in its own order */
        uint64_t *of_lane = last + (size_t)(all[i].event->rank & 1) * (LANES / 2) + all[i].event->lane;
        if (all[i].time_ps < *of_lane) all[i].time_ps = *of_lane;
        *of_lane = all[i].time_ps;
    }
    return has_moved;
}

/* all: the CPU side's events in their order, then the GPU's by time. */
static enum bell_status arrange(struct stamped *all, size_t cpus, size_t gpus, int64_t offset_ps,
                                struct bell_error *err)
{
    struct limits l = { INT64_MIN, INT64_MAX };
    struct pair *pair = malloc((gpus + 1) * sizeof *pair);
    uint64_t *last = malloc(LANES * sizeof *last);
    size_t pairs = 0;
    for (size_t i = 0; pair && last && cpus && i < gpus; i++)
        if (find_pair(all + cpus, i, all, cpus, offset_ps, &pair[pairs])) bound_by(&l, &pair[pairs++]);
    if (cpus == 0) offset_ps = 0; /* the NIC is on the GPU too: one clock */
    if (l.most_ps != INT64_MAX && offset_ps > l.most_ps) offset_ps = l.most_ps;
    if (l.least_ps != INT64_MIN && offset_ps < l.least_ps) offset_ps = l.least_ps;
    for (size_t i = cpus; i < cpus + gpus; i++) {
        all[i].time_ps += (uint64_t)offset_ps;
        all[i].event->start_ps += (uint64_t)offset_ps;
    }
    for (int pass = 0; pair && last && pass < PASSES && settle(pair, pairs, all, cpus, gpus, last);)
        pass++;
    enum bell_status s = pair && last ? BELL_OK : bell_fail(err, BELL_NO_MEMORY, "out of memory: %zu pairs", gpus);
    free(pair);
    free(last);
    return s;
}

enum bell_status bell_gpu_order(struct bell_soft_crew *crew, int64_t offset_ps, struct bell_error *err)
{
    size_t total = 0;
    for (size_t i = 0; i < crew->members; i++)
        total += crew->member[i].lane.events;
    struct stamped *all = malloc((total + 1) * sizeof *all);
    if (!all) return bell_fail(err, BELL_NO_MEMORY, "out of memory: %zu events", total);
    size_t cpus = gather(crew, all, false), gpus = gather(crew, all + cpus, true);
    raise_times(all, cpus);
    number_gpu(crew);
    qsort(all + cpus, gpus, sizeof *all, by_time);
    enum bell_status s = arrange(all, cpus, gpus, offset_ps, err);
    qsort(all, cpus + gpus, sizeof *all, by_time);
    for (size_t i = 0; i < cpus + gpus; i++)
        all[i].event->seq = i + 1;
    free(all);
    return s;
}
