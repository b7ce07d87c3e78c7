/* SPDX-License-Identifier: Apache-2.0
 * One order for the events of two clocks.  What the CPU side did is in the order of its numbers.  The GPU's times are
 * moved by an offset that was measured to about a microsecond, and then corrected so that no NIC delivers before the
 * doorbell it saw, and nobody polls a CQE before it is written.  Then time decides. */
#include "hw/cuda/rank.h"

#include <stdlib.h>

/* How far from where the measured offset puts it the other side of an exchange is looked for. */
#define SEARCH ((uint64_t)100 * 1000000) /* picoseconds */

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
static const struct stamped *find(const struct stamped *cpu, size_t count, size_t from, const struct bell_event *like,
                                  enum bell_event_kind kind, uint64_t index)
{
    for (size_t i = from; i < count && cpu[i].time_ps - cpu[from].time_ps < SEARCH; i++)
        if (cpu[i].event->kind == kind && is_same_queue(cpu[i].event, like) && cpu[i].event->index >= index)
            return &cpu[i];
    return NULL;
}

static void bound_by(struct limits *l, const struct stamped *gpu, const struct stamped *cpu, bool gpu_is_first)
{
    int64_t gap_ps = (int64_t)(cpu->time_ps - gpu->time_ps);
    if (gpu_is_first && gap_ps < l->most_ps) l->most_ps = gap_ps;
    if (!gpu_is_first && gap_ps > l->least_ps) l->least_ps = gap_ps;
}

/* The producer index that was rung last before a doorbell; 0: it is the first of its queue. */
static uint64_t rung_before(const struct stamped *gpu, size_t at)
{
    for (size_t i = at; i-- > 0;)
        if (gpu[i].event->kind == BELL_EVENT_DOORBELL && is_same_queue(gpu[i].event, gpu[at].event))
            return gpu[i].event->index;
    return 0;
}

static struct limits find_limits(const struct stamped *gpu, size_t gpus, const struct stamped *cpu, size_t cpus,
                                 int64_t offset_ps)
{
    struct limits l = { INT64_MIN, INT64_MAX };
    for (size_t i = 0; i < gpus && cpus; i++) {
        const struct bell_event *e = gpu[i].event;
        const struct stamped *other = NULL;
        size_t hint = first_after(cpu, cpus, gpu[i].time_ps + (uint64_t)offset_ps - SEARCH / 2);
        if (e->kind == BELL_EVENT_DOORBELL && e->index > rung_before(gpu, i))
            other = find(cpu, cpus, hint, e, BELL_EVENT_DELIVER, rung_before(gpu, i));
        if (e->kind == BELL_EVENT_ENQUEUE) other = find(cpu, cpus, hint, e, BELL_EVENT_DEQUEUE, e->index);
        if (e->kind == BELL_EVENT_MAILBOX) other = find(cpu, cpus, hint, e, BELL_EVENT_DOORBELL, e->index);
        if (other) bound_by(&l, &gpu[i], other, true);
        other = NULL;
        if (e->kind == BELL_EVENT_POLL && e->index) other = find(cpu, cpus, hint, e, BELL_EVENT_CQE, e->index - 1);
        if (other && other->event->index < e->index) bound_by(&l, &gpu[i], other, false);
    }
    return l;
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
    struct limits l = find_limits(all + cpus, gpus, all, cpus, offset_ps);
    if (cpus == 0) offset_ps = 0; /* the NIC is on the GPU too: one clock */
    if (l.most_ps != INT64_MAX && offset_ps > l.most_ps) offset_ps = l.most_ps;
    if (l.least_ps != INT64_MIN && offset_ps < l.least_ps) offset_ps = l.least_ps;
    for (size_t i = cpus; i < total; i++) {
        all[i].time_ps += (uint64_t)offset_ps;
        all[i].event->start_ps += (uint64_t)offset_ps;
    }
    qsort(all, cpus + gpus, sizeof *all, by_time);
    for (size_t i = 0; i < cpus + gpus; i++)
        all[i].event->seq = i + 1;
    free(all);
    return BELL_OK;
}
