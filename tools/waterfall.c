/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/waterfall.h"

#include <stdlib.h>
#include <string.h>

#define ITERATIONS 9u /* enough for a median that no rare stall moves */

/* Events of a run, in memory. */
struct recording {
    struct bell_event *event;
    size_t count, capacity;
};

static enum bell_status record(void *context, const struct bell_event *event, struct bell_error *err)
{
    struct recording *r = context;
    if (r->count == r->capacity) {
        size_t capacity = r->capacity ? 2 * r->capacity : 1024;
        struct bell_event *grown = realloc(r->event, capacity * sizeof *grown);
        if (!grown)
            return bell_fail(err, BELL_NO_MEMORY, "no memory for %zu events", capacity);
        r->event = grown;
        r->capacity = capacity;
    }
    r->event[r->count++] = *event;
    return BELL_OK;
}

/* The first operation of rank 0 that takes the median time. */
static size_t median_op(const struct recording *r, uint64_t median_ps)
{
    size_t i = 0;
    while (i < r->count
           && (r->event[i].kind != BELL_EVENT_OP || r->event[i].rank != 0 || r->event[i].duration_ps != median_ps))
        i++;
    return i;
}

static enum bell_status steps_of_run(const struct bell_setup *setup, struct bell_steps *out, struct bell_error *err)
{
    struct recording r = { 0 };
    struct bell_sink sink = { &r, record };
    struct bell_samples samples;
    enum bell_status s = bell_samples_run(setup, &sink, &samples, err);
    if (s == BELL_OK) {
        bell_samples_sort(&samples);
        size_t op = median_op(&r, bell_percentile(samples.total_ps, samples.count, 50));
        s = bell_steps_of(r.event, r.count, op, out, err);
        bell_samples_free(&samples);
    }
    free(r.event);
    return s;
}

/* ---- words ---- */
static const char *scope_text(const struct bell_event *e)
{
    static const char *const fence[BELL_SCOPES] = { "none", "fence.release.gpu", "fence.sc.gpu", "fence.release.sys",
                                                    "fence.sc.sys" };
    return fence[e->scope < BELL_SCOPES ? e->scope : 0];
}

static const char *name_of(const struct bell_event *e)
{
    bool released = e->scope != BELL_SCOPE_NONE;
    switch (e->kind) {
    case BELL_EVENT_RESERVE: return "reserve WQE slot";
    case BELL_EVENT_BUILD: return "build WQE";
    case BELL_EVENT_PUBLISH: return "publish to the next lane";
    case BELL_EVENT_FENCE: return e->actor == BELL_ACTOR_GPU ? scope_text(e) : "store fence";
    case BELL_EVENT_DBREC: return released ? "doorbell record, release store" : "doorbell record";
    case BELL_EVENT_DOORBELL: return released ? "doorbell store, release" : "doorbell store";
    case BELL_EVENT_ENQUEUE: return released ? "enqueue descriptor, release.sys" : "enqueue descriptor";
    case BELL_EVENT_DEQUEUE: return "take descriptor";
    case BELL_EVENT_PROGRESS: return "publish progress";
    case BELL_EVENT_DOORBELL_FLIGHT: return "doorbell to NIC";
    case BELL_EVENT_NIC_SCHEDULE: return "NIC schedules the queue";
    case BELL_EVENT_NIC_FETCH: return "NIC reads WQE";
    case BELL_EVENT_PAYLOAD_READ: return "NIC reads payload";
    case BELL_EVENT_WIRE: return "NIC, wire, remote NIC";
    case BELL_EVENT_DELIVER: return "payload into remote memory";
    case BELL_EVENT_ACK: return "acknowledgement";
    case BELL_EVENT_CQE: return "CQE into memory";
    case BELL_EVENT_POLL: return e->actor == BELL_ACTOR_GPU ? "poll sees CQE" : "handle CQE";
    case BELL_EVENT_FLAG: return "poll sees flag or counter";
    case BELL_EVENT_FLIGHT: return "posted store on its way";
    case BELL_EVENT_STALL: return "worker stalls";
    default: return bell_event_name(e->kind);
    }
}

static const char *part_of(const struct bell_event *e)
{
    if (e->kind == BELL_EVENT_STALL || e->actor == BELL_ACTOR_CPU)
        return "CPU worker";
    if (e->actor == BELL_ACTOR_NIC)
        return "NIC";
    if (e->actor == BELL_ACTOR_PCIE)
        return "PCIe";
    if (e->actor == BELL_ACTOR_WIRE)
        return "wire";
    if (e->kind == BELL_EVENT_POLL || e->kind == BELL_EVENT_FLAG)
        return "GPU: poll";
    return e->kind == BELL_EVENT_FENCE || e->scope != BELL_SCOPE_NONE ? "GPU: ordering" : "GPU: build and ring";
}

static void who_of(const struct bell_setup *setup, const struct bell_event *e, char *out, size_t size)
{
    unsigned lanes = setup->program.lanes, lane = e->lane;
    if (e->actor == BELL_ACTOR_GPU)
        (void)snprintf(out, size, "rank %u GPU lane %u", e->rank, lane);
    else if (e->actor == BELL_ACTOR_CPU)
        (void)snprintf(out, size, "rank %u worker %u", e->rank, lane - lanes);
    else
        (void)snprintf(out, size, "rank %u %s", e->rank, e->actor == BELL_ACTOR_NIC    ? "NIC"
                                                         : e->actor == BELL_ACTOR_PCIE ? "PCIe"
                                                                                       : "network");
}

/* A step is found again in a run with other clocks by its place: the program is the same. */
static const char *clock_of(const struct bell_event *e, const struct bell_event *fast_gpu,
                            const struct bell_event *fast_cpu)
{
    static const char *const fixed[BELL_ACTORS] = { "PCIe", "none", "NIC", "PCIe", "wire" };
    if (fast_gpu->duration_ps != e->duration_ps)
        return "SM";
    if (fast_cpu->duration_ps != e->duration_ps)
        return "CPU";
    if (e->duration_ps == 0)
        return "";
    return fixed[e->actor < BELL_ACTORS ? e->actor : BELL_ACTOR_PCIE];
}

/* The step of `w` that is the same as `e`: same kind, place and number among its like. */
static const struct bell_event *same_step(const struct bell_steps *a, size_t at, const struct bell_steps *b)
{
    const struct bell_event *e = &a->step[at].event;
    size_t number = 0;
    for (size_t i = 0; i < at; i++) {
        const struct bell_event *o = &a->step[i].event;
        number += o->kind == e->kind && o->rank == e->rank && o->lane == e->lane;
    }
    for (size_t i = 0; i < b->count; i++) {
        const struct bell_event *o = &b->step[i].event;
        if (o->kind == e->kind && o->rank == e->rank && o->lane == e->lane && number-- == 0)
            return o;
    }
    return e;
}

static enum bell_status with_clock(const struct bell_setup *setup, bool is_gpu, struct bell_steps *out,
                                   struct bell_error *err)
{
    struct bell_setup *fast = malloc(sizeof *fast);
    if (!fast)
        return bell_fail(err, BELL_NO_MEMORY, "no memory for a run");
    *fast = *setup;
    if (is_gpu) {
        fast->platform.gpu_clock_mhz *= 2;
    } else {
        fast->platform.cpu_cold_mhz *= 2;
        fast->platform.cpu_warm_mhz *= 2;
    }
    enum bell_status s = steps_of_run(fast, out, err);
    free(fast);
    return s;
}

static enum bell_status describe(struct bell_waterfall *w, struct bell_error *err)
{
    struct bell_steps gpu = { 0 }, cpu = { 0 };
    w->text = calloc(w->steps.count, sizeof *w->text);
    enum bell_status s = w->text ? with_clock(w->setup, true, &gpu, err)
                                 : bell_fail(err, BELL_NO_MEMORY, "no memory for the steps");
    if (s == BELL_OK)
        s = with_clock(w->setup, false, &cpu, err);
    for (size_t i = 0; s == BELL_OK && i < w->steps.count; i++) {
        const struct bell_event *e = &w->steps.step[i].event;
        (void)snprintf(w->text[i].what, sizeof w->text[i].what, "%s", name_of(e));
        who_of(w->setup, e, w->text[i].who, sizeof w->text[i].who);
        w->text[i].clock = clock_of(e, same_step(&w->steps, i, &gpu), same_step(&w->steps, i, &cpu));
        w->text[i].part = part_of(e);
    }
    bell_steps_free(&gpu);
    bell_steps_free(&cpu);
    return s;
}

enum bell_status bell_waterfall_of(const struct bell_setup *setup, struct bell_waterfall *out, struct bell_error *err)
{
    memset(out, 0, sizeof *out);
    out->setup = setup;
    struct bell_setup *few = malloc(sizeof *few);
    if (!few)
        return bell_fail(err, BELL_NO_MEMORY, "no memory for a run");
    *few = *setup;
    few->program.iterations = ITERATIONS;
    out->setup = few;
    enum bell_status s = steps_of_run(few, &out->steps, err);
    if (s == BELL_OK)
        s = describe(out, err);
    out->setup = setup;
    free(few);
    if (s != BELL_OK)
        bell_waterfall_free(out);
    return s;
}

void bell_waterfall_free(struct bell_waterfall *w)
{
    bell_steps_free(&w->steps);
    free(w->text);
    memset(w, 0, sizeof *w);
}
