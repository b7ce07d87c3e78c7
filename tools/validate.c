/* SPDX-License-Identifier: Apache-2.0
 * `bellwether validate`: rows, what the simulator says to each, and how many values were fitted to them. */
#include "tools/prediction.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CELL 96

struct validate_options {
    struct bell_options common;
    const char *figures;
    double median_max, worst_max; /* percent; negative: not given */
    bool is_left_out, is_refitted;
};

static const struct bell_option options[] = {
    { "--figure", "LIST", "tables and figures, such as \"Table 3,Table 4\" (default: all that are published)",
      BELL_OPTION_TEXT, offsetof(struct validate_options, figures) },
    { "--stack", "LIST", "stacks (default: all that are modelled)", BELL_OPTION_TEXT,
      offsetof(struct bell_options, stack) },
    { "--platform", "LIST", "platforms (default: all of published rows)", BELL_OPTION_TEXT,
      offsetof(struct bell_options, platform) },
    BELL_OPTION_OF_SET,
    { "--loo", NULL, "leave each row out in turn, refit, and predict it", BELL_OPTION_FLAG,
      offsetof(struct validate_options, is_left_out) },
    { "--refit", NULL, "fit the fitted values again and print them with their intervals", BELL_OPTION_FLAG,
      offsetof(struct validate_options, is_refitted) },
    { "--median", "P", "fail when the median error is above P percent (default 4; of rows held out 10)",
      BELL_OPTION_REAL, offsetof(struct validate_options, median_max) },
    { "--worst", "P", "fail when the worst error is above P percent (default 12; of rows held out 30)",
      BELL_OPTION_REAL, offsetof(struct validate_options, worst_max) },
    BELL_OPTION_OF_FORM,
    BELL_OPTIONS_END,
};

/* Absolute errors in percent, in order of size. */
struct errors {
    double *percent;
    size_t count;
};

static double error_percent(double predicted, double measured)
{
    return 100 * (predicted / measured - 1);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void add_error(struct errors *e, double percent)
{
    if (!isnan(percent))
        e->percent[e->count++] = fabs(percent);
}

static double median(const struct errors *e)
{
    size_t half = e->count / 2;
    return e->count % 2 ? e->percent[half] : (e->percent[half - 1] + e->percent[half]) / 2;
}

static double worst(const struct errors *e)
{
    return e->percent[e->count - 1];
}

static void sort(struct errors *e)
{
    qsort(e->percent, e->count, sizeof *e->percent, compare);
}

/* ---- rows ---- */
enum { USE = 5, MEASURED = 6, LEFT_OUT = 9, COLUMNS = 10 };
static const struct bell_column columns[COLUMNS] = {
    { "source", false },       { "platform", false },      { "stack", false },
    { "config", false },       { "metric", false },        { "use", false },
    { "published", true },     { "predicted", true },      { "error_percent", true },
    { "left_out_error_percent", true },
};

/* JSON knows no leading plus. */
static void print_percent(char *out, enum bell_form form, double percent)
{
    (void)snprintf(out, CELL, form == BELL_FORM_TEXT ? "%+.1f" : "%.1f", percent);
}

/* What tells no rows apart is not shown. */
static size_t pick_columns(const struct bell_predictions *p, bool is_left_out, struct bell_column column[COLUMNS],
                           size_t index[COLUMNS])
{
    size_t shown = 0;
    for (size_t k = 0; k < COLUMNS; k++) {
        if ((k == USE && !p->is_split) || (k == LEFT_OUT && !is_left_out))
            continue;
        column[shown] = columns[k];
        if (k == MEASURED && p->is_measured)
            column[shown].name = "measured";
        index[shown++] = k;
    }
    return shown;
}

static void print_rows(const struct bell_predictions *p, const struct bell_refit *refit, enum bell_form form)
{
    struct bell_column column[COLUMNS];
    size_t index[COLUMNS], shown = pick_columns(p, refit != NULL, column, index);
    char(*text)[5][CELL] = calloc(p->count, sizeof *text);
    const char **cell = calloc(p->count * COLUMNS, sizeof(const char *));
    for (size_t i = 0; text && cell && i < p->count; i++) {
        const struct bell_prediction *q = p->prediction + i;
        bell_prediction_config(q->row, text[i][0], CELL);
        (void)snprintf(text[i][1], CELL, q->row < p->rows.row + p->published ? "%.2f" : "%.3f", q->row->value);
        (void)snprintf(text[i][2], CELL, "%.3f", q->value);
        print_percent(text[i][3], form, error_percent(q->value, q->row->value));
        if (refit && i < p->fitted && !isnan(refit->left_out[i]))
            print_percent(text[i][4], form, error_percent(refit->left_out[i], q->row->value));
        const char *all[COLUMNS] = { q->row->source, q->row->platform, q->row->stack, text[i][0], q->row->metric,
                                     q->is_held_out ? "held out" : "fit", text[i][1], text[i][2], text[i][3],
                                     text[i][4] };
        for (size_t k = 0; k < shown; k++)
            cell[i * shown + k] = all[index[k]];
    }
    if (text && cell)
        bell_print_table(stdout, form, column, shown, cell, p->count);
    free(cell);
    free(text);
}

/* ---- parameters ---- */
static void print_parameters(const struct bell_refit *r, enum bell_form form, bool is_refitted)
{
    static const struct bell_column column[] = { { "platform", false }, { "fitted_parameter", false },
                                                 { "unit", false },     { "value", true },
                                                 { "refit", true },     { "interval_percent", true } };
    char(*text)[3][CELL] = calloc(r->parameters, sizeof *text);
    const char **cell = calloc(r->parameters * 6, sizeof(const char *));
    size_t shown = is_refitted ? 6 : 4;
    for (size_t i = 0; text && cell && i < r->parameters; i++) {
        const struct bell_free_parameter *q = r->parameter + i;
        (void)snprintf(text[i][0], CELL, "%.0f", q->value);
        if (is_refitted) {
            (void)snprintf(text[i][1], CELL, "%.0f", r->fitted[i]);
            (void)snprintf(text[i][2], CELL, "%.1f", 100 * r->interval[i]);
        }
        const char *fixed[6] = { q->platform, q->key, q->field->unit, text[i][0], text[i][1], text[i][2] };
        memcpy(cell + i * shown, fixed, shown * sizeof(const char *));
    }
    if (text && cell)
        bell_print_table(stdout, form, column, shown, cell, r->parameters);
    free(cell);
    free(text);
}

/* ---- the verdict ---- */
struct verdict {
    double *percent; /* memory of all four */
    struct errors all, fit, held_out, left_out;
    size_t alone; /* rows that alone fix something */
};

static enum bell_status judge(const struct bell_predictions *p, const struct bell_refit *refit, bool is_left_out,
                              struct verdict *v, struct bell_error *err)
{
    v->percent = calloc(4 * p->count, sizeof(double));
    if (!v->percent)
        return bell_fail(err, BELL_NO_MEMORY, "no memory for the errors");
    struct errors *const group[] = { &v->all, &v->fit, &v->held_out, &v->left_out };
    for (size_t i = 0; i < 4; i++)
        group[i]->percent = v->percent + i * p->count;
    for (size_t i = 0; i < p->count; i++) {
        const struct bell_prediction *q = p->prediction + i;
        double percent = error_percent(q->value, q->row->value);
        add_error(&v->all, percent);
        add_error(q->is_held_out ? &v->held_out : &v->fit, percent);
        if (is_left_out && i < p->fitted)
            add_error(&v->left_out, error_percent(refit->left_out[i], q->row->value));
    }
    for (size_t i = 0; i < 4; i++)
        sort(group[i]);
    v->alone = is_left_out ? p->fitted - v->left_out.count : 0;
    return BELL_OK;
}

static void print_errors(FILE *to, const struct errors *e, const char *what)
{
    if (e->count)
        (void)fprintf(to, "%zu rows%s: median error %.1f %%, worst %.1f %%\n", e->count, what, median(e), worst(e));
}

static void print_verdict(FILE *to, const struct verdict *v, const struct bell_predictions *p,
                          const struct bell_refit *refit, bool is_left_out)
{
    print_errors(to, &v->fit, p->is_split ? " used to fit" : "");
    print_errors(to, &v->held_out, " held out");
    (void)fprintf(to, "%zu fitted parameters for %zu %srows; every other value is measured, published or assumed "
                      "(bellwether list parameters)\n", refit->parameters, p->fitted, p->fitted ? "" : "of these ");
    if (refit->followed)
        (void)fprintf(to, "%zu more values follow another platform, to whose rows they were fitted\n", refit->followed);
    if (is_left_out && v->left_out.count)
        (void)fprintf(to, "each row left out and predicted from the rest: median error %.1f %%, worst %.1f %% over %zu "
                          "rows; %zu rows alone fix a parameter, so the rest cannot predict them\n",
                      median(&v->left_out), worst(&v->left_out), v->left_out.count, v->alone);
    if (p->unmodelled)
        (void)fprintf(to, "%zu matching rows are not modelled (first: %s)\n", p->unmodelled, p->why);
}

static void print_group(const struct errors *e, const char *name)
{
    if (e->count)
        (void)printf(", \"%s\": {\"median_percent\": %.3f, \"worst_percent\": %.3f, \"count\": %zu}", name, median(e),
                     worst(e), e->count);
}

static void print_json(const struct bell_predictions *p, const struct bell_refit *refit, const struct verdict *v,
                       const struct validate_options *o)
{
    (void)printf("{\"schema\": \"bell.validation/1\", \"rows\": ");
    print_rows(p, o->is_left_out ? refit : NULL, BELL_FORM_JSON);
    (void)printf(", \"parameters\": ");
    print_parameters(refit, BELL_FORM_JSON, o->is_refitted);
    (void)printf(", \"median_percent\": %.3f, \"worst_percent\": %.3f, \"fitted\": %zu, \"count\": %zu",
                 median(&v->all), worst(&v->all), refit->parameters, p->count);
    if (p->is_split) {
        print_group(&v->fit, "fit");
        print_group(&v->held_out, "held_out");
    }
    if (o->is_left_out && v->left_out.count)
        (void)printf(", \"left_out\": {\"median_percent\": %.3f, \"worst_percent\": %.3f, "
                     "\"count\": %zu, \"alone\": %zu}",
                     median(&v->left_out), worst(&v->left_out), v->left_out.count, v->alone);
    (void)printf(", \"unmodelled\": %zu}\n", p->unmodelled);
}

/* The tolerance is that of each group by itself: good rows in one do not make up for bad ones in the other. */
static bool is_within(const struct errors *e, const char *what, const struct validate_options *o, double median_initial,
                      double worst_initial)
{
    double median_max = o->median_max < 0 ? median_initial : o->median_max;
    double worst_max = o->worst_max < 0 ? worst_initial : o->worst_max;
    if (!e->count || (median(e) <= median_max && worst(e) <= worst_max))
        return true;
    (void)fprintf(stderr,
                  "bellwether: %spast the tolerance: median %.1f %% (at most %.1f), worst %.1f %% (at most %.1f)\n",
                  what, median(e), median_max, worst(e), worst_max);
    return false;
}

static int report(const struct bell_predictions *p, const struct bell_refit *refit, const struct validate_options *o,
                  const struct verdict *v)
{
    enum bell_form form = (enum bell_form)o->common.form;
    if (form == BELL_FORM_JSON) {
        print_json(p, refit, v, o);
    } else {
        print_rows(p, o->is_left_out ? refit : NULL, form);
        if (form == BELL_FORM_TEXT) {
            (void)printf("\n");
            print_parameters(refit, form, o->is_refitted);
            (void)printf("\n");
        }
        print_verdict(form == BELL_FORM_TEXT ? stdout : stderr, v, p, refit, o->is_left_out);
    }
    bool is_fit = is_within(&v->fit, p->is_split ? "rows used to fit are " : "", o, 4, 12);
    bool is_predicted = is_within(&v->held_out, "rows held out are ", o, 10, 30);
    return is_fit && is_predicted ? BELL_EXIT_OK : BELL_EXIT_FAILED;
}

static int run(int argc, char **argv)
{
    struct validate_options o = { .median_max = -1, .worst_max = -1 };
    struct bell_error err = { BELL_OK, "" };
    if (bell_parse(&bell_command_validate, argc, argv, &o) < 0)
        return BELL_EXIT_USAGE;
    struct bell_selection selection = { o.figures, o.common.platform, o.common.stack, &o.common };
    struct bell_predictions p;
    struct bell_refit refit = { 0 };
    struct verdict v = { 0 };
    enum bell_status s = bell_predictions_load(&p, &selection, &err);
    if (s != BELL_OK)
        return bell_complain(&err);
    s = bell_refit_parameters(&p, &refit, &err);
    if (s == BELL_OK && (o.is_left_out || o.is_refitted))
        s = bell_refit_solve(&p, &refit, o.is_left_out, &err);
    if (s == BELL_OK)
        s = bell_predictions_run(&p, false, &err);
    if (s == BELL_OK)
        s = judge(&p, &refit, o.is_left_out, &v, &err);
    int code = s == BELL_OK ? report(&p, &refit, &o, &v) : bell_complain(&err);
    free(v.percent);
    bell_refit_free(&refit);
    bell_predictions_free(&p);
    return code;
}

const struct bell_command bell_command_validate = {
    "validate", "", "compare predictions with published and measured rows",
    "Runs every published row that is modelled in the simulator and prints the error of each, the values of the "
    "platforms\nthat were fitted to such rows, and their number. Exit 1 when the errors are past the tolerance.\n"
    "Rows that were not published but measured here are taken only where --figure or --platform names them.\n"
    "A platform may say which rows it was fitted to: those and the rows held out are summed up, and judged, apart.",
    0, 0, options, run,
};
