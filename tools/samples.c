/* SPDX-License-Identifier: Apache-2.0
 * Run what was set up, and keep its times and its trace. */
#include "hw/doctor/doctor.h"

#include "tools/cli.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int compare_times(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static bool is_virtual(const struct bell_setup *setup)
{
    return strcmp(setup->executor->clock_domain, "virtual") == 0;
}

/* Who rings: a proxy, a GPU, or the host (also for CPU threads that stand in for a GPU). */
static const char *path_of(const struct bell_setup *setup)
{
    bool has_gpu = is_virtual(setup) || setup->executor == &bell_cuda_executor;
    return setup->stack.submit == BELL_SUBMIT_PROXY                        ? "proxy"
           : has_gpu && setup->stack.doorbell == BELL_WRITER_GPU ? "gpu-doorbell"
                                                                 : "host-doorbell";
}

enum bell_status bell_samples_run(const struct bell_setup *setup, const struct bell_sink *sink,
                                  struct bell_samples *out, struct bell_error *err)
{
    const struct bell_program *p = &setup->program;
    struct bell_result *r = &out->result;
    struct bell_run run = { .program = p, .stack = &setup->stack, .sink = sink, .machine = &setup->machine };
    struct bell_pace pace;
    memset(out, 0, sizeof *out);
    out->count = (size_t)bell_program_counted(p) * p->iterations;
    r->issue_ps = calloc(out->count, sizeof *r->issue_ps);
    r->total_ps = calloc(out->count, sizeof *r->total_ps);
    (void)snprintf(r->path, sizeof r->path, "%s", path_of(setup));
    if (setup->has_platform) run.platform = &setup->platform;
    if (setup->has_pace) {
        bell_setup_pace(setup, &pace);
        run.pace = &pace;
    }
    err->text[0] = '\0';
    enum bell_status s = r->issue_ps && r->total_ps
                             ? setup->executor->probe(err)
                             : bell_fail(err, BELL_NO_MEMORY, "no memory for %zu samples", out->count);
    if (s == BELL_OK) s = setup->executor->run(&run, r, err);
    if (s != BELL_OK) {
        bell_samples_free(out);
        if (!err->text[0]) (void)bell_fail(err, s, "%s: %s", p->name, bell_status_text(s));
        return err->status = s;
    }
    out->issue_ps = r->issue_ps;
    out->total_ps = r->total_ps;
    return BELL_OK;
}

void bell_samples_sort(struct bell_samples *samples)
{
    qsort(samples->issue_ps, samples->count, sizeof *samples->issue_ps, compare_times);
    qsort(samples->total_ps, samples->count, sizeof *samples->total_ps, compare_times);
}

void bell_samples_free(struct bell_samples *samples)
{
    free(samples->result.issue_ps);
    free(samples->result.total_ps);
    memset(samples, 0, sizeof *samples);
}

const char *bell_total_name(const struct bell_program *program)
{
    switch ((enum bell_pattern)program->pattern) {
    case BELL_PATTERN_ROUND_TRIP:
    case BELL_PATTERN_PROBE:
        return "round trip";
    case BELL_PATTERN_STREAM:
        return "operation";
    case BELL_PATTERN_ONE_OP:
        break;
    }
    return "put+completion";
}

double bell_samples_rate(const struct bell_samples *samples)
{
    const struct bell_result *r = &samples->result;
    return r->puts_ps ? (double)r->puts / (double)r->puts_ps * 1e6 : 0;
}

/* ---- trace ---- */

/* "model name : ..." of the first CPU, or "CPU". */
static void cpu_model(char *out, size_t size)
{
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "r");
    (void)snprintf(out, size, "CPU");
    while (f && fgets(line, sizeof line, f)) {
        char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !value) continue;
        value += 1 + strspn(value + 1, " ");
        value[strcspn(value, "\n")] = '\0';
        (void)snprintf(out, size, "%s", value);
        break;
    }
    if (f) (void)fclose(f);
}

static void fill_processor(const struct bell_setup *setup, const struct bell_result *r, char *out, size_t size)
{
    const struct bell_platform *p = &setup->platform;
    if (setup->has_platform) {
        (void)snprintf(out, size, "modelled: GPU %.0f MHz, CPU %.0f MHz (%s)", p->gpu_clock_mhz,
                       bell_platform_cpu_mhz(p), p->cpu_state == BELL_CPU_WARM ? "warm" : "cold");
        return;
    }
    char model[40];
    cpu_set_t allowed;
    cpu_model(model, sizeof model);
    CPU_ZERO(&allowed);
    (void)sched_getaffinity(0, sizeof allowed, &allowed);
    (void)snprintf(out, size, "%s%s%s, %d of %ld CPUs", r->processor, r->processor[0] ? "; " : "", model,
                   CPU_COUNT(&allowed), sysconf(_SC_NPROCESSORS_ONLN));
}

static void fill_header(const struct bell_setup *setup, const struct bell_result *r, struct bell_trace_header *h)
{
    const struct bell_field *ordering = bell_field_find(bell_stack_fields, "ordering");
    memset(h, 0, sizeof *h);
    (void)snprintf(h->schema, sizeof h->schema, "%s", BELL_TRACE_SCHEMA);
    (void)snprintf(h->executor, sizeof h->executor, "%s", setup->executor->name);
    (void)snprintf(h->platform, sizeof h->platform, "%s", setup->has_platform ? setup->platform.name : "");
    (void)snprintf(h->stack, sizeof h->stack, "%s", setup->stack.name);
    (void)snprintf(h->experiment, sizeof h->experiment, "%s", setup->program.name);
    bell_field_text(ordering, &setup->stack, h->ordering, sizeof h->ordering);
    (void)snprintf(h->clock_domain, sizeof h->clock_domain, "%s", setup->executor->clock_domain);
    (void)snprintf(h->path, sizeof h->path, "%s", r->path);
    fill_processor(setup, r, h->processor, sizeof h->processor);
    (void)snprintf(h->digest, sizeof h->digest, "%s", setup->digest);
    (void)snprintf(h->revision, sizeof h->revision, "%s", BELL_REVISION);
    if (!is_virtual(setup)) bell_doctor_summary("", h->machine, sizeof h->machine);
    h->seed = setup->program.seed;
    h->depth = setup->stack.depth;
    h->first_index = setup->program.first_index;
}

/* Lanes of a rank: lanes, then workers, then NIC queues. */
static enum bell_status name_rank(const struct bell_setup *setup, struct bell_trace_writer *w, uint32_t rank,
                                  struct bell_error *err)
{
    const struct bell_program *p = &setup->program;
    uint32_t workers = bell_stack_workers(&setup->stack, p->queues);
    const char *lane = is_virtual(setup) || setup->executor == &bell_cuda_executor ? "GPU" : "CPU";
    char text[40];
    (void)snprintf(text, sizeof text, "rank %u", rank);
    enum bell_status s = bell_trace_name_rank(w, (uint16_t)rank, text, err);
    for (uint32_t i = 0; s == BELL_OK && i < p->lanes + workers + p->queues; i++) {
        if (i < p->lanes)
            (void)snprintf(text, sizeof text, "%s lane %u", lane, i);
        else if (i < p->lanes + workers)
            (void)snprintf(text, sizeof text, "worker %u", i - p->lanes);
        else
            (void)snprintf(text, sizeof text, "NIC queue %u", i - p->lanes - workers);
        s = bell_trace_name_lane(w, (uint16_t)rank, (uint16_t)i, text, err);
    }
    return s;
}

/* The header is written when the first event comes: by then the executor has said what really ran. */
struct tracing {
    const struct bell_setup *setup;
    const struct bell_result *result;
    struct bell_trace_writer *writer;
    bool has_begun;
};

static enum bell_status begin(struct tracing *t, struct bell_error *err)
{
    struct bell_trace_header header;
    if (t->has_begun) return BELL_OK;
    t->has_begun = true;
    fill_header(t->setup, t->result, &header);
    bell_trace_begin(t->writer, &header);
    /* Of the rank that only receives, nothing is seen. */
    enum bell_status s = name_rank(t->setup, t->writer, 0, err);
    if (s == BELL_OK && bell_program_is_answered(&t->setup->program, 0)) s = name_rank(t->setup, t->writer, 1, err);
    return s;
}

static enum bell_status write_event(void *context, const struct bell_event *event, struct bell_error *err)
{
    struct tracing *t = context;
    enum bell_status s = begin(t, err);
    return s == BELL_OK ? bell_trace_write(t->writer, event, err) : s;
}

enum bell_status bell_samples_trace(const struct bell_setup *setup, const char *path, uint64_t max_events,
                                    struct bell_samples *out, struct bell_error *err)
{
    struct tracing t = { setup, &out->result, NULL, false };
    struct bell_sink sink = { &t, write_event };
    enum bell_status s = bell_trace_create(path, NULL, &t.writer, err);
    if (s != BELL_OK) return s;
    bell_trace_limit(t.writer, max_events);
    s = bell_samples_run(setup, &sink, out, err);
    if (s == BELL_OK && (s = begin(&t, err)) != BELL_OK) bell_samples_free(out);
    if (s != BELL_OK) {
        bell_trace_abort(t.writer);
        return s;
    }
    s = bell_trace_close(t.writer, err);
    if (s != BELL_OK) bell_samples_free(out);
    return s;
}

/* ---- where the numbers come from ---- */

static const struct {
    const char *begins, *shown;
} kinds[] = {
    { "published", "published" },          { "measured", "measured" },            { "fitted", "fitted" },
    { "as on", "as on another platform" }, { "as ", "as another of its values" }, { "assumed", "assumed" },
    { "inferred", "inferred" },            { "not published", "not published" },  { "set", "set by hand" },
    { "", "other" },
};
#define KINDS (sizeof kinds / sizeof kinds[0])

void bell_origin(const struct bell_setup *setup, char *out, size_t size)
{
    const char *poster = strcmp(setup->executor->name, "cuda") == 0 ? "GPU" : "CPU";
    if (setup->has_pace) {
        (void)snprintf(out, size, "measured on this machine's %s against a software NIC paced as the model says of "
                                  "platform %s (docs/model.md): not a NIC's latency", poster, setup->platform.name);
        return;
    }
    if (!setup->has_platform) {
        (void)snprintf(out, size, "measured on this machine's %s against the software NIC: not a NIC's latency",
                       poster);
        return;
    }
    size_t count[KINDS] = { 0 };
    for (size_t i = 0; bell_platform_fields[i].key; i++) {
        const char *source = setup->source[BELL_PART_PLATFORM][i];
        for (size_t k = 0; *source && k < KINDS; k++) {
            if (strncmp(source, kinds[k].begins, strlen(kinds[k].begins)) == 0) {
                count[k]++;
                break;
            }
        }
    }
    int used = snprintf(out, size, "virtual time, platform %s: ", setup->platform.name);
    const char *comma = "";
    for (size_t k = 0; k < KINDS && used > 0 && (size_t)used < size; k++) {
        if (!count[k]) continue;
        used += snprintf(out + used, size - (size_t)used, "%s%zu %s", comma, count[k], kinds[k].shown);
        comma = ", ";
    }
    if (used > 0 && (size_t)used < size)
        (void)snprintf(out + used, size - (size_t)used, "%s (docs/model.md)", *comma ? "" : "no sources given");
}
