/* SPDX-License-Identifier: Apache-2.0
 * `bellwether run`: one experiment, on one stack, by one executor. */
#include "tools/cli.h"
#include "traces/draft.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PERCENTILES 4
#define CELL 32

static const struct bell_option options[] = {
    { "--on", "EXECUTOR", "what runs it, see list executors (default sim with a platform, else soft)", BELL_OPTION_TEXT,
      offsetof(struct bell_options, executor) },
    BELL_OPTION_OF_PLATFORM,
    { "--pace", "P", "in real time: the software NIC takes for each stage what the model says of platform P",
      BELL_OPTION_TEXT, offsetof(struct bell_options, pace) },
    BELL_OPTION_OF_STACK,
    BELL_OPTION_OF_SET,
    BELL_OPTION_OF_SEED,
    { "-o", "TRACE", "write the trace, which opens in Perfetto", BELL_OPTION_TEXT,
      offsetof(struct bell_options, output) },
    { "--samples", "FILE", "write the times of each operation, in CSV", BELL_OPTION_TEXT,
      offsetof(struct bell_options, samples) },
    { "--max-events", "N", "write at most N events of the trace", BELL_OPTION_WHOLE,
      offsetof(struct bell_options, max_events) },
    BELL_OPTION_OF_FORM,
    BELL_OPTIONS_END,
};

/* What is printed of one kind of time. */
struct metric {
    const char *name;
    char text[PERCENTILES][CELL]; /* p50, p99, min, max, in us */
};

static void summarise(struct metric *m, const char *name, const uint64_t *sorted, size_t count)
{
    const uint64_t ps[PERCENTILES] = { bell_percentile(sorted, count, 50), bell_percentile(sorted, count, 99),
                                       sorted[0], sorted[count - 1] };
    m->name = name;
    for (size_t i = 0; i < PERCENTILES; i++)
        bell_us_text(ps[i], m->text[i], CELL);
}

static void print_text(const struct bell_setup *setup, const struct bell_samples *samples, const struct metric *metric,
                       const char *trace)
{
    static const struct bell_column column[] = {
        { "us", false }, { "p50", true }, { "p99", true }, { "min", true }, { "max", true }
    };
    const char *cell[10];
    char span[CELL], origin[300];
    for (size_t m = 0; m < 2; m++) {
        cell[m * 5] = metric[m].name;
        for (size_t i = 0; i < PERCENTILES; i++)
            cell[m * 5 + 1 + i] = metric[m].text[i];
    }
    (void)printf("%s, stack %s, %s%s%sexecutor %s (%s clock)\n\n", setup->program.name, setup->stack.name,
                 setup->has_platform ? "platform " : "", setup->has_platform ? setup->platform.name : "",
                 setup->has_platform ? ", " : "", setup->executor->name, setup->executor->clock_domain);
    bell_print_table(stdout, BELL_FORM_TEXT, column, 5, cell, 2);
    bell_us_text(samples->result.span_ps, span, sizeof span);
    bell_origin(setup, origin, sizeof origin);
    (void)printf("\n%zu samples; the whole run took %s us\n", samples->count, span);
    if (samples->result.puts_ps)
        (void)printf("%s: %.3f M puts/s (%" PRIu64 " puts)\n",
                     setup->program.pattern == BELL_PATTERN_PROBE ? "beside it" : "rate", bell_samples_rate(samples),
                     samples->result.puts);
    if (samples->result.notes[0]) (void)printf("%s\n", samples->result.notes);
    if (trace)
        (void)printf("trace: %s, %" PRIu64 " events%s\n", trace, samples->result.events,
                     setup->has_platform ? "" : " (a traced run is slower in real time: do not quote its times)");
    else
        (void)printf("a timed run: nothing was traced (-o TRACE does)\n");
    (void)printf("from: %s\n", origin);
}

static void print_pair(const char *key, const char *text)
{
    (void)printf("  ");
    bell_print_json(stdout, key);
    (void)printf(": ");
    bell_print_json(stdout, text);
    (void)printf(",\n");
}

static void print_parameters(const struct bell_setup *setup)
{
    const char *comma = "\n";
    (void)printf("  \"parameters\": {");
    for (uint32_t part = 0; part < BELL_PARTS; part++) {
        const struct bell_part_kind *kind = &bell_parts[part];
        if (!bell_setup_uses(setup, part)) continue;
        for (const struct bell_field *f = kind->table; f->key; f++) {
            char value[64];
            if (f->type == BELL_FIELD_STRING && part != BELL_PART_MACHINE) continue;
            bell_field_text(f, (const char *)setup + kind->offset, value, sizeof value);
            (void)printf("%s    \"%s.%s\": ", comma, kind->name, f->key);
            if (f->type == BELL_FIELD_ENUM || f->type == BELL_FIELD_STRING)
                bell_print_json(stdout, value);
            else
                (void)printf("%s", value);
            comma = ",\n";
        }
    }
    (void)printf("\n  }\n");
}

static void print_json(const struct bell_setup *setup, const struct bell_samples *samples, const struct metric *metric,
                       const char *trace)
{
    char span[CELL], origin[300];
    bell_us_text(samples->result.span_ps, span, sizeof span);
    bell_origin(setup, origin, sizeof origin);
    (void)printf("{\n");
    print_pair("schema", "bell.result/1");
    print_pair("experiment", setup->program.name);
    print_pair("stack", setup->stack.name);
    print_pair("platform", setup->has_platform ? setup->platform.name : "");
    print_pair("executor", setup->executor->name);
    print_pair("clock_domain", setup->executor->clock_domain);
    print_pair("origin", origin);
    print_pair("notes", samples->result.notes);
    print_pair("digest", setup->digest);
    print_pair("revision", BELL_REVISION);
    (void)printf("  \"is_traced\": %s,\n", trace ? "true" : "false");
    print_pair("trace", trace ? trace : "");
    print_pair("path", samples->result.path);
    if (samples->result.puts_ps)
        (void)printf("  \"puts\": %" PRIu64 ",\n  \"rate_mputs\": %.6f,\n", samples->result.puts,
                     bell_samples_rate(samples));
    (void)printf("  \"events\": %" PRIu64 ",\n  \"samples\": %zu,\n  \"span_us\": %s,\n  \"metrics\": [",
                 samples->result.events, samples->count, span);
    for (size_t m = 0; m < 2; m++) {
        const struct metric *x = &metric[m];
        (void)printf("%s\n    {\"name\": \"%s\", \"p50_us\": %s, \"p99_us\": %s, \"min_us\": %s, \"max_us\": %s}",
                     m ? "," : "", x->name, x->text[0], x->text[1], x->text[2], x->text[3]);
    }
    (void)printf("\n  ],\n");
    print_parameters(setup);
    (void)printf("}\n");
}

static void print_csv(const struct bell_setup *setup, const struct bell_samples *samples, const struct metric *metric,
                      bool is_traced)
{
    static const struct bell_column column[] = {
        { "experiment", false },   { "stack", false },  { "platform", false }, { "executor", false },
        { "clock_domain", false }, { "traced", false }, { "metric", false },   { "samples", true },
        { "p50_us", true },        { "p99_us", true },  { "min_us", true },    { "max_us", true },
    };
    const char *cell[24];
    char count[CELL];
    (void)snprintf(count, sizeof count, "%zu", samples->count);
    for (size_t m = 0; m < 2; m++) {
        const char *row[12] = { setup->program.name,
                                setup->stack.name,
                                setup->has_platform ? setup->platform.name : "",
                                setup->executor->name,
                                setup->executor->clock_domain,
                                is_traced ? "yes" : "no",
                                metric[m].name,
                                count,
                                metric[m].text[0],
                                metric[m].text[1],
                                metric[m].text[2],
                                metric[m].text[3] };
        for (size_t i = 0; i < 12; i++)
            cell[m * 12 + i] = row[i];
    }
    bell_print_table(stdout, BELL_FORM_CSV, column, 12, cell, 2);
}

/* One line an operation, lane after lane, in us. */
static bool print_samples(FILE *to, const struct bell_samples *samples)
{
    bool is_good = fprintf(to, "issue_us,total_us\n") > 0;
    for (size_t i = 0; is_good && i < samples->count; i++) {
        char issue[CELL], whole[CELL];
        bell_us_text(samples->issue_ps[i], issue, sizeof issue);
        bell_us_text(samples->total_ps[i], whole, sizeof whole);
        is_good = fprintf(to, "%s,%s\n", issue, whole) > 0;
    }
    return is_good;
}

static enum bell_status write_samples(const struct bell_samples *samples, const char *path, struct bell_error *err)
{
    struct bell_draft draft;
    enum bell_status s = bell_draft_open(&draft, path, err);
    if (s != BELL_OK) return s;
    FILE *to = fdopen(dup(draft.fd), "w");
    bool is_good = to && print_samples(to, samples);
    if ((to && fclose(to) != 0) || !is_good) {
        s = bell_fail(err, BELL_IO, "%s: cannot be written: %s", path, strerror(errno));
        bell_draft_drop(&draft);
        return s;
    }
    return bell_draft_keep(&draft, err);
}

static int run(int argc, char **argv)
{
    static struct bell_setup setup;
    struct bell_options o = { .form = BELL_FORM_TEXT };
    struct bell_samples samples;
    struct bell_error err;
    struct metric metric[2];
    if (bell_parse(&bell_command_run, argc, argv, &o) < 0) return BELL_EXIT_USAGE;
    enum bell_status s = bell_setup_load(&setup, argv[0], &o, &err);
    if (s == BELL_OK && o.max_events && !o.output)
        s = bell_fail(&err, BELL_INVALID, "--max-events: nothing is traced without -o");
    if (s == BELL_OK)
        s = o.output ? bell_samples_trace(&setup, o.output, o.max_events, &samples, &err)
                     : bell_samples_run(&setup, NULL, &samples, &err);
    if (s != BELL_OK) return bell_complain(&err);
    if (o.samples && (s = write_samples(&samples, o.samples, &err)) != BELL_OK) {
        bell_samples_free(&samples);
        return bell_complain(&err);
    }
    bell_samples_sort(&samples);
    summarise(&metric[0], "issue", samples.issue_ps, samples.count);
    summarise(&metric[1], bell_total_name(&setup.program), samples.total_ps, samples.count);
    if (o.form == BELL_FORM_JSON)
        print_json(&setup, &samples, metric, o.output);
    else if (o.form == BELL_FORM_CSV)
        print_csv(&setup, &samples, metric, o.output != NULL);
    else
        print_text(&setup, &samples, metric, o.output);
    bell_samples_free(&samples);
    return BELL_EXIT_OK;
}

const struct bell_command bell_command_run = {
    "run",
    "EXPERIMENT",
    "run an experiment and print its predicted or measured times",
    "EXPERIMENT is a name of bellwether list experiments, or the path of a file (with / or .json).\n"
    "Keys of --set are those of bellwether list parameters: platform.gpu.clock_mhz, stack.ordering,\n"
    "experiment.bytes, or without the first word where that is clear.  Percentiles are nearest-rank.",
    1,
    1,
    options,
    run,
};
