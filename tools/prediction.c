/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prediction.h"

#include <stdlib.h>
#include <string.h>

#define QUICK_ITERATIONS 5u     /* the median of them meets no rare stall */
#define QUICK_TAIL_ITERATIONS 400u

static double pick_issue(const struct bell_prediction_run *r)
{
    return (double)r->issue_p50_ps * 1e-6;
}

static double pick_total(const struct bell_prediction_run *r)
{
    return (double)r->total_p50_ps * 1e-6;
}

static double pick_tail(const struct bell_prediction_run *r)
{
    return (double)r->total_p99_ps * 1e-6;
}

static double pick_rate(const struct bell_prediction_run *r)
{
    return r->rate_mputs;
}

static const struct metric {
    const char *name, *experiment;
    double (*pick)(const struct bell_prediction_run *run);
    const char *setting; /* NULL, or what these rows are taken to have had; docs/model.md says why */
} metrics[] = {
    { "issue_us", "one-op", pick_issue, NULL },
    { "put_completion_us", "one-op", pick_total, NULL },
    { "rtt_us", "round-trip", pick_total, NULL },
    { "rtt_p99_us", "round-trip", pick_tail, NULL },
    { "rate_mmsgs", "message-rate", pick_rate, "stack.cq=collapsed" },
};

/* What a key of a row's config sets. */
static const struct {
    const char *key, *parameter;
} configs[] = {
    { "bytes", "experiment.bytes" },     { "payload", "stack.payload" }, { "ordering", "stack.ordering" },
    { "protocol", "stack.protocol" },    { "cpu", "platform.cpu.state" }, { "transport", "stack.transport" },
    { "queue_memory", "stack.queue_memory" }, { "completion_memory", "stack.completion_memory" },
    { "threads", "experiment.lanes" },   { "qps", "experiment.queues" },  { "sharing", "stack.sharing" },
    { "wqes_per_doorbell", "stack.wqes_per_doorbell" },
};

/* What the study's words for a way to share mean here. */
static const char *const sharings[][2] = {
    { "one thread", "owner" },
    { "one thread per QP", "owner" },
    { "slots handed off per thread", "ordered" },
    { "QP shared cooperatively, reserved per warp", "cooperative" },
};

static const char *value_of(const char *key, const char *value)
{
    for (size_t i = 0; strcmp(key, "sharing") == 0 && i < sizeof sharings / sizeof sharings[0]; i++)
        if (strcmp(sharings[i][0], value) == 0)
            return sharings[i][1];
    return value;
}

static double number_in(const struct bell_row *row, const char *key)
{
    for (int i = 0; i < row->config_count; i++)
        if (strcmp(row->config[i][0], key) == 0)
            return strtod(row->config[i][1], NULL);
    return 0;
}

/* SMs do not slow each other down, so their number says nothing; but lanes of one SM do, which is not modelled.  Lanes
 * of one queue are taken to wait for each other more. */
static bool is_crowded(const struct bell_row *row)
{
    double sms = number_in(row, "sms"), lanes = number_in(row, "threads"), queues = number_in(row, "qps");
    return sms > 0 && queues > sms && lanes > sms;
}

/* Is `name` one of the comma-separated `list`? */
static bool is_listed(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        at += strspn(at, " ");
        size_t span = strcspn(at, ",");
        while (span && at[span - 1] == ' ')
            span--;
        if (span == length && strncmp(at, name, length) == 0)
            return true;
    }
    return !list;
}

static const struct metric *metric_of(const struct bell_row *row)
{
    for (size_t i = 0; i < sizeof metrics / sizeof metrics[0]; i++)
        if (strcmp(metrics[i].name, row->metric) == 0)
            return metrics + i;
    return NULL;
}

static const char *parameter_of(const char *key)
{
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++)
        if (strcmp(configs[i].key, key) == 0)
            return configs[i].parameter;
    return NULL;
}

/* A --set of what a row sets itself would be lost without a word. */
static enum bell_status check_sets(const struct bell_options *o, const char *full, struct bell_error *err)
{
    const char *bare = strchr(full, '.') + 1;
    for (uint32_t i = 0; o && i < o->sets; i++) {
        size_t length = strcspn(o->set[i], "=");
        if ((length == strlen(full) && strncmp(o->set[i], full, length) == 0)
            || (length == strlen(bare) && strncmp(o->set[i], bare, length) == 0))
            return bell_fail(err, BELL_INVALID, "--set %s: the rows say this themselves", o->set[i]);
    }
    return BELL_OK;
}

/* More threads than queues, and no word of how they share. */
static bool is_vague(const struct bell_row *row)
{
    bool is_told = false;
    for (int i = 0; i < row->config_count; i++)
        is_told = is_told || strcmp(row->config[i][0], "sharing") == 0;
    return !is_told && number_in(row, "threads") > number_in(row, "qps");
}

/* BELL_UNSUPPORTED: the row asks for what is not modelled. */
static enum bell_status configure(struct bell_setup *setup, const struct bell_row *row, const struct bell_options *o,
                                  struct bell_error *err)
{
    if (is_vague(row))
        return bell_fail(err, BELL_UNSUPPORTED, "%s: how threads share a queue is not said", row->source);
    for (int i = 0; i < row->config_count; i++) {
        char assignment[200];
        const char *key = row->config[i][0], *parameter = parameter_of(key);
        if (strcmp(key, "sms") == 0 && !is_crowded(row))
            continue;
        if (!parameter)
            return bell_fail(err, BELL_UNSUPPORTED, "%s: %s=%s is not modelled", row->source, key, row->config[i][1]);
        if (check_sets(o, parameter, err) != BELL_OK)
            return BELL_INVALID;
        (void)snprintf(assignment, sizeof assignment, "%s=%s", parameter, value_of(key, row->config[i][1]));
        if (bell_setup_set(setup, assignment, NULL) != BELL_OK)
            return bell_fail(err, BELL_UNSUPPORTED, "%s: %s=%s is not modelled", row->source, key, row->config[i][1]);
    }
    return BELL_OK;
}

static enum bell_status set_up(struct bell_prediction_run *run, const struct bell_row *row, const struct metric *metric,
                               const struct bell_selection *selection, struct bell_error *err)
{
    const struct bell_options *o = selection->options;
    struct bell_setup *setup = &run->setup;
    const char *name[] = { metric->experiment, row->stack, row->platform };
    enum bell_status s = BELL_OK;
    setup->executor = &bell_sim_executor;
    for (int part = 0; s == BELL_OK && part <= BELL_PART_PLATFORM; part++)
        s = bell_setup_read(setup, (enum bell_part)part, name[part], err);
    setup->has_platform = true;
    if (s == BELL_OK && metric->setting)
        s = bell_setup_set(setup, metric->setting, err);
    for (uint32_t i = 0; s == BELL_OK && o && i < o->sets; i++)
        s = bell_setup_set(setup, o->set[i], err);
    if (s == BELL_OK)
        s = configure(setup, row, o, err);
    return s == BELL_OK ? bell_setup_finish(setup, err) : s;
}

static void key_of(const struct bell_row *row, const struct metric *metric, char *out, size_t size)
{
    int n = snprintf(out, size, "%s|%s|%s", row->platform, row->stack, metric->experiment);
    for (int i = 0; i < row->config_count && n > 0 && (size_t)n < size; i++)
        n += snprintf(out + n, size - (size_t)n, "|%s=%s", row->config[i][0], row->config[i][1]);
}

static bool is_known(enum bell_part part, const char *name)
{
    char names[64][24];
    size_t count = bell_data_names(part, names, 64);
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static size_t find_run(const struct bell_predictions *p, const char *key)
{
    size_t i = 0;
    /* Each run before p->runs is there.  NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker) */
    while (i < p->runs && strcmp(p->run[i]->key, key) != 0)
        i++;
    return i;
}

/* Rows that were used to fit come first, each group in the order of the files. */
static void insert(struct bell_predictions *p, struct bell_prediction q)
{
    struct bell_prediction_run *run = p->run[q.run];
    const char *sources = run->setup.fitted_to;
    q.is_held_out = *sources && !is_listed(sources, q.row->source);
    size_t at = q.is_held_out ? p->count : p->fitted++;
    memmove(p->prediction + at + 1, p->prediction + at, (p->count - at) * sizeof q);
    p->prediction[at] = q;
    p->count++;
    run->is_for_fit = run->is_for_fit || !q.is_held_out;
    p->is_split = p->is_split || q.is_held_out;
    p->is_measured = p->is_measured || (size_t)(q.row - p->rows.row) >= p->published;
}

static enum bell_status add_row(struct bell_predictions *p, const struct bell_row *row,
                                const struct bell_selection *selection, struct bell_error *err)
{
    const struct metric *metric = metric_of(row);
    struct bell_error why = { BELL_OK, "" };
    char key[400];
    if (!metric || !is_known(BELL_PART_PLATFORM, row->platform)) {
        if (p->unmodelled++ == 0)
            (void)snprintf(p->why, sizeof p->why, "%s: %s on %s", row->source, row->metric, row->platform);
        return BELL_OK;
    }
    key_of(row, metric, key, sizeof key);
    size_t run = find_run(p, key);
    if (run == p->runs) {
        struct bell_prediction_run *fresh = calloc(1, sizeof *fresh);
        if (!fresh)
            return bell_fail(err, BELL_NO_MEMORY, "no memory for the runs");
        enum bell_status s = set_up(fresh, row, metric, selection, &why);
        if (s != BELL_OK)
            free(fresh);
        if (s == BELL_UNSUPPORTED) {
            if (p->unmodelled++ == 0)
                (void)snprintf(p->why, sizeof p->why, "%.150s", why.text);
            return BELL_OK;
        }
        if (s != BELL_OK)
            return bell_fail(err, s, "%s", why.text);
        memcpy(fresh->key, key, sizeof key);
        p->run[p->runs++] = fresh;
    }
    p->run[run]->needs_p99 = p->run[run]->needs_p99 || metric->pick == pick_tail;
    insert(p, (struct bell_prediction){ .row = row, .run = run, .pick = metric->pick });
    return BELL_OK;
}

/* Each name of the list must be in some row, or a typing error would look like success. */
static enum bell_status check_list(const char *list, const struct bell_rows *rows, size_t offset, const char *what,
                                   struct bell_error *err)
{
    for (const char *at = list; at; at = strchr(at, ',')) {
        char name[64];
        at += *at == ',';
        at += strspn(at, " ");
        size_t span = strcspn(at, ","), i = 0;
        while (span && at[span - 1] == ' ')
            span--;
        (void)snprintf(name, sizeof name, "%.*s", (int)(span < 63 ? span : 63), at);
        while (i < rows->count && strcmp((const char *)(rows->row + i) + offset, name) != 0)
            i++;
        if (i == rows->count)
            return bell_fail(err, BELL_INVALID, "%s '%s': no row has it", what, name);
    }
    return BELL_OK;
}

/* A typing error in a platform's file would hold every row out. */
static enum bell_status check_fitted_to(const struct bell_predictions *p, struct bell_error *err)
{
    enum bell_status s = BELL_OK;
    for (size_t i = 0; s == BELL_OK && i < p->runs; i++) {
        const struct bell_setup *setup = &p->run[i]->setup;
        char what[60];
        (void)snprintf(what, sizeof what, "platform %s: fitted_to", setup->platform.name);
        if (*setup->fitted_to)
            s = check_list(setup->fitted_to, &p->rows, offsetof(struct bell_row, source), what, err);
    }
    return s;
}

static enum bell_status select_rows(struct bell_predictions *p, const struct bell_selection *s, struct bell_error *err)
{
    enum bell_status status = check_list(s->figures, &p->rows, offsetof(struct bell_row, source), "figure", err);
    if (status == BELL_OK)
        status = check_list(s->platforms, &p->rows, offsetof(struct bell_row, platform), "platform", err);
    if (status == BELL_OK)
        status = check_list(s->stacks, &p->rows, offsetof(struct bell_row, stack), "stack", err);
    size_t count = s->figures || s->platforms ? p->rows.count : p->published;
    for (size_t i = 0; status == BELL_OK && i < count; i++) {
        const struct bell_row *row = p->rows.row + i;
        if (is_listed(s->figures, row->source) && is_listed(s->platforms, row->platform)
            && is_listed(s->stacks, row->stack) && (s->stacks || is_known(BELL_PART_STACK, row->stack)))
            status = add_row(p, row, s, err);
    }
    if (status == BELL_OK && p->count == 0)
        return bell_fail(err, BELL_INVALID, "no row matches and is modelled (%zu match; first: %s)",
                         p->unmodelled, p->unmodelled ? p->why : "none");
    return status == BELL_OK ? check_fitted_to(p, err) : status;
}

enum bell_status bell_predictions_load(struct bell_predictions *p, const struct bell_selection *selection,
                                       struct bell_error *err)
{
    memset(p, 0, sizeof *p);
    enum bell_status s = bell_rows_load(&p->rows, &p->published, err);
    if (s != BELL_OK)
        return s;
    p->prediction = calloc(p->rows.count, sizeof *p->prediction);
    p->run = calloc(p->rows.count, sizeof(struct bell_prediction_run *));
    s = p->prediction && p->run ? select_rows(p, selection, err)
                                : bell_fail(err, BELL_NO_MEMORY, "no memory for the rows");
    if (s != BELL_OK)
        bell_predictions_free(p);
    return s;
}

static enum bell_status run_one(struct bell_prediction_run *run, bool quick, struct bell_error *err)
{
    struct bell_samples samples;
    uint32_t iterations = run->setup.program.iterations;
    if (quick)
        run->setup.program.iterations = run->needs_p99 ? QUICK_TAIL_ITERATIONS : QUICK_ITERATIONS;
    enum bell_status s = bell_samples_run(&run->setup, NULL, &samples, err);
    run->setup.program.iterations = iterations;
    if (s != BELL_OK)
        return s;
    bell_samples_sort(&samples);
    run->issue_p50_ps = bell_percentile(samples.issue_ps, samples.count, 50);
    run->total_p50_ps = bell_percentile(samples.total_ps, samples.count, 50);
    run->total_p99_ps = bell_percentile(samples.total_ps, samples.count, 99);
    run->rate_mputs = bell_samples_rate(&samples);
    bell_samples_free(&samples);
    return BELL_OK;
}

static void fill_in(struct bell_predictions *p, size_t row)
{
    struct bell_prediction *q = p->prediction + row;
    q->value = q->pick(p->run[q->run]);
}

enum bell_status bell_predictions_run(struct bell_predictions *p, bool quick, struct bell_error *err)
{
    for (size_t i = 0; i < p->runs; i++) {
        enum bell_status s = quick && !p->run[i]->is_for_fit ? BELL_OK : run_one(p->run[i], quick, err);
        if (s != BELL_OK)
            return s;
    }
    for (size_t i = 0; i < p->count; i++)
        fill_in(p, i);
    return BELL_OK;
}

enum bell_status bell_predictions_run_one(struct bell_predictions *p, size_t row, bool quick, struct bell_error *err)
{
    enum bell_status s = run_one(p->run[p->prediction[row].run], quick, err);
    if (s == BELL_OK)
        fill_in(p, row);
    return s;
}

void bell_predictions_free(struct bell_predictions *p)
{
    for (size_t i = 0; i < p->runs; i++)
        free(p->run[i]);
    free(p->run);
    free(p->prediction);
    bell_rows_free(&p->rows);
    memset(p, 0, sizeof *p);
}

void bell_prediction_config(const struct bell_row *row, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < row->config_count && used < size; i++) {
        const char *key = row->config[i][0], *value = row->config[i][1];
        int n = strcmp(key, "bytes") == 0 ? snprintf(out + used, size - used, "%s%s B", used ? ", " : "", value)
                                          : snprintf(out + used, size - used, "%s%s", used ? ", " : "", value);
        if (n > 0)
            used += (size_t)n;
    }
}
