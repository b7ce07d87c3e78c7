/* SPDX-License-Identifier: Apache-2.0
 * `bellwether explain`: where the microseconds of one operation go. */
#include "tools/waterfall.h"

#include <stdlib.h>
#include <string.h>

#define CELL 24
enum { COLUMNS = 7 };

struct explain_options {
    struct bell_options common;
    const char *other, *plot;
};

static const struct bell_option options[] = {
    BELL_OPTION_OF_PLATFORM,
    BELL_OPTION_OF_STACK,
    { "--vs", "S", "a second stack, side by side", BELL_OPTION_TEXT, offsetof(struct explain_options, other) },
    BELL_OPTION_OF_SET,
    BELL_OPTION_OF_SEED,
    { "--plot", "FILE.svg", "draw the timelines with gnuplot", BELL_OPTION_TEXT,
      offsetof(struct explain_options, plot) },
    BELL_OPTION_OF_FORM,
    BELL_OPTIONS_END,
};

static void print_steps(const struct bell_waterfall *w, enum bell_form form)
{
    static const struct bell_column column[COLUMNS] = { { "start_us", true },  { "duration_us", true },
                                                        { "step", false },     { "who", false },
                                                        { "clock", false },    { "critical", false },
                                                        { "gain_us", true } };
    char(*number)[3][CELL] = calloc(w->steps.count, sizeof *number);
    const char **cell = calloc(w->steps.count * COLUMNS, sizeof(const char *));
    for (size_t i = 0; number && cell && i < w->steps.count; i++) {
        const struct bell_step *s = w->steps.step + i;
        bell_us_text(s->event.start_ps - w->steps.start_ps, number[i][0], CELL);
        bell_us_text(s->event.duration_ps, number[i][1], CELL);
        bell_us_text(s->gain_ps, number[i][2], CELL);
        const char *row[COLUMNS] = { number[i][0],     number[i][1],           w->text[i].what, w->text[i].who,
                                     w->text[i].clock, s->is_critical ? "*" : "", number[i][2] };
        memcpy(cell + i * COLUMNS, row, sizeof row);
    }
    if (number && cell)
        bell_print_table(stdout, form, column, COLUMNS, cell, w->steps.count);
    free(cell);
    free(number);
}

static void print_sum(const struct bell_waterfall *w)
{
    char total[CELL], sum[CELL], gap[CELL];
    bell_us_text(w->steps.total_ps, total, sizeof total);
    bell_us_text(w->steps.critical_ps, sum, sizeof sum);
    bell_us_text(w->steps.gap_ps, gap, sizeof gap);
    (void)printf("critical path (*): %s us of steps + %s us of waiting = %s %s us\n", sum, gap,
                 bell_total_name(&w->setup->program), total);
}

static void print_heading(const struct bell_waterfall *w)
{
    (void)printf("%s, stack %s, platform %s\n", w->setup->program.name, w->setup->stack.name, w->setup->platform.name);
}

/* ---- two side by side: time on the critical path by part of the machine ---- */
static const char *const parts[] = { "GPU: build and ring", "GPU: ordering", "GPU: poll", "CPU worker", "PCIe", "NIC",
                                     "wire" };
enum { PARTS = sizeof parts / sizeof parts[0] };

static int64_t part_sum(const struct bell_waterfall *w, const char *part)
{
    uint64_t sum_ps = 0;
    for (size_t i = 0; i < w->steps.count; i++)
        if (w->steps.step[i].is_critical && strcmp(w->text[i].part, part) == 0)
            sum_ps += w->steps.step[i].event.duration_ps;
    return (int64_t)sum_ps;
}

static void print_comparison(const struct bell_waterfall *a, const struct bell_waterfall *b, enum bell_form form)
{
    const struct bell_column column[] = { { "critical_path_us", false }, { a->setup->stack.name, true },
                                          { b->setup->stack.name, true }, { "difference", true } };
    char number[PARTS + 2][3][CELL];
    const char *cell[(PARTS + 2) * 4];
    for (size_t i = 0; i < PARTS + 2; i++) {
        int64_t x = i < PARTS ? part_sum(a, parts[i]) : (int64_t)(i == PARTS ? a->steps.gap_ps : a->steps.total_ps);
        int64_t y = i < PARTS ? part_sum(b, parts[i]) : (int64_t)(i == PARTS ? b->steps.gap_ps : b->steps.total_ps);
        (void)snprintf(number[i][0], CELL, "%.3f", (double)x * 1e-6);
        (void)snprintf(number[i][1], CELL, "%.3f", (double)y * 1e-6);
        (void)snprintf(number[i][2], CELL, form == BELL_FORM_TEXT ? "%+.3f" : "%.3f", (double)(x - y) * 1e-6);
        cell[i * 4] = i < PARTS ? parts[i] : i == PARTS ? "waiting" : "total";
        for (size_t k = 0; k < 3; k++)
            cell[i * 4 + 1 + k] = number[i][k];
    }
    bell_print_table(stdout, form, column, 4, cell, PARTS + 2);
}

static void report(const struct bell_waterfall *const *w, size_t count, enum bell_form form)
{
    if (form == BELL_FORM_JSON) {
        (void)printf("{\"schema\": \"bell.explanation/1\", \"operations\": [");
        for (size_t i = 0; i < count; i++) {
            (void)printf("%s{\"stack\": ", i ? ", " : "");
            bell_print_json(stdout, w[i]->setup->stack.name);
            (void)printf(", \"total_us\": %.6f, \"critical_us\": %.6f, \"waiting_us\": %.6f, \"steps\": ",
                         (double)w[i]->steps.total_ps * 1e-6, (double)w[i]->steps.critical_ps * 1e-6,
                         (double)w[i]->steps.gap_ps * 1e-6);
            print_steps(w[i], form);
            (void)printf("}");
        }
        (void)printf("]}\n");
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (form == BELL_FORM_TEXT)
            print_heading(w[i]);
        print_steps(w[i], form);
        if (form == BELL_FORM_TEXT)
            print_sum(w[i]);
        (void)printf("\n");
    }
    if (count == 2)
        print_comparison(w[0], w[1], form);
    if (form == BELL_FORM_TEXT)
        (void)printf("clock: what the step's duration follows; "
                     "gain: how much sooner the operation would end without it\n");
}

static enum bell_status load(struct bell_setup **out, const char *experiment, const struct bell_options *o,
                             struct bell_error *err)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return bell_fail(err, BELL_NO_MEMORY, "no memory for the set-up");
    enum bell_status s = bell_setup_load(*out, experiment, o, err);
    if (s == BELL_OK && !(*out)->has_platform)
        return bell_fail(err, BELL_INVALID, "--platform is missing: an explanation is simulated");
    return s;
}

static int run(int argc, char **argv)
{
    struct explain_options o = { 0 };
    struct bell_error err = { BELL_OK, "" };
    int given = bell_parse(&bell_command_explain, argc, argv, &o);
    if (given < 0)
        return BELL_EXIT_USAGE;
    const char *experiment = given ? argv[0] : "one-op";
    struct bell_setup *setup[2] = { NULL, NULL };
    struct bell_waterfall fall[2] = { { 0 }, { 0 } };
    const struct bell_waterfall *const shown[2] = { &fall[0], &fall[1] };
    size_t count = o.other ? 2 : 1;
    enum bell_status s = BELL_OK;
    for (size_t i = 0; s == BELL_OK && i < count; i++) {
        if (i == 1)
            o.common.stack = o.other;
        s = load(&setup[i], experiment, &o.common, &err);
        if (s == BELL_OK)
            s = bell_waterfall_of(setup[i], &fall[i], &err);
    }
    if (s == BELL_OK && o.plot)
        s = bell_waterfall_plot(shown, count, o.plot, &err);
    if (s == BELL_OK)
        report(shown, count, (enum bell_form)o.common.form);
    for (size_t i = 0; i < 2; i++) {
        bell_waterfall_free(&fall[i]);
        free(setup[i]);
    }
    return s == BELL_OK ? BELL_EXIT_OK : bell_complain(&err);
}

const struct bell_command bell_command_explain = {
    "explain", "[EXPERIMENT]", "where the microseconds of one operation go",
    "Simulates the experiment (default one-op) and takes its median operation apart: each step's start, duration, the\n"
    "clock it follows, whether it is on the critical path, and what would be gained without it. With --vs the time on\n"
    "the critical path is compared by part of the machine.",
    0, 1, options, run,
};
