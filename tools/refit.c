/* SPDX-License-Identifier: Apache-2.0
 * Which platform values did the rows fix, and what would they be again? */
#include "calib/fit.h"
#include "tools/prediction.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FITTED "fitted"
#define AS_ON "as on "
#define AS "as "

static const char *source_of(const struct bell_setup *setup, const struct bell_field *field)
{
    return setup->source[BELL_PART_PLATFORM][field - bell_platform_fields];
}

/* The fitted value that a value is or follows. */
struct owner {
    char platform[24]; /* "" when it is not fitted at all */
    const struct bell_field *field;
};

/* The field whose value this one takes: itself, or the one that its source names ("as gpu.fence_sys.ps"). */
static const struct bell_field *same_as(const struct bell_setup *setup, const struct bell_field *field)
{
    char key[48];
    const char *source = source_of(setup, field);
    if (strncmp(source, AS, strlen(AS)) != 0)
        return field;
    (void)snprintf(key, sizeof key, "%.*s", (int)strcspn(source + strlen(AS), ",: "), source + strlen(AS));
    const struct bell_field *named = bell_field_find(bell_platform_fields, key);
    return named ? named : field;
}

static struct owner owner_of(const struct bell_setup *setup, const struct bell_field *field)
{
    struct owner o = { "", same_as(setup, field) };
    const char *source = source_of(setup, o.field);
    if (strncmp(source, FITTED, strlen(FITTED)) == 0)
        (void)snprintf(o.platform, sizeof o.platform, "%s", setup->platform.name);
    else if (strncmp(source, AS_ON, strlen(AS_ON)) == 0 && strstr(source, FITTED))
        (void)snprintf(o.platform, sizeof o.platform, "%.*s", (int)strcspn(source + strlen(AS_ON), ",: "),
                       source + strlen(AS_ON));
    return o;
}

/* Is any run on this platform? */
static bool is_used(const struct bell_predictions *p, const char *platform)
{
    for (size_t i = 0; i < p->runs; i++)
        if (strcmp(p->run[i]->setup.platform.name, platform) == 0)
            return true;
    return false;
}

/* Parameters of platforms that are used come first. */
static void put_used_first(const struct bell_predictions *p, struct bell_refit *r)
{
    size_t all = r->parameters;
    r->parameters = 0;
    for (size_t i = 0; i < all; i++)
        if (is_used(p, r->parameter[i].platform)) {
            struct bell_free_parameter moved = r->parameter[i];
            r->parameter[i] = r->parameter[r->parameters];
            r->parameter[r->parameters++] = moved;
        }
    r->followed = all - r->parameters;
}

static bool has_parameter(const struct bell_refit *r, const char *platform, const char *key)
{
    for (size_t i = 0; i < r->parameters; i++)
        if (strcmp(r->parameter[i].platform, platform) == 0 && strcmp(r->parameter[i].key, key) == 0)
            return true;
    return false;
}

enum bell_status bell_refit_parameters(const struct bell_predictions *p, struct bell_refit *refit,
                                       struct bell_error *err)
{
    memset(refit, 0, sizeof *refit);
    size_t most = p->runs * BELL_ROWS_MAX;
    refit->parameter = calloc(most, sizeof *refit->parameter);
    if (!refit->parameter)
        return bell_fail(err, BELL_NO_MEMORY, "no memory for the parameters");
    for (size_t i = 0; i < p->runs; i++) {
        const struct bell_setup *setup = &p->run[i]->setup;
        for (const struct bell_field *f = bell_platform_fields; f->key; f++) {
            struct owner o = owner_of(setup, f);
            if (!o.platform[0] || has_parameter(refit, o.platform, o.field->key))
                continue;
            struct bell_free_parameter q = { .field = o.field };
            q.value = bell_field_number(o.field, &setup->platform);
            (void)snprintf(q.platform, sizeof q.platform, "%s", o.platform);
            (void)snprintf(q.key, sizeof q.key, "%s", o.field->key);
            (void)snprintf(q.source, sizeof q.source, "%s", source_of(setup, o.field));
            (void)snprintf(q.label, sizeof q.label, "%s %s", q.platform, q.key);
            refit->parameter[refit->parameters++] = q;
        }
    }
    put_used_first(p, refit);
    return BELL_OK;
}

/* The parameter that a field of a run is or follows; r->parameters when there is none. */
static size_t parameter_of(const struct bell_refit *r, const struct bell_setup *setup, const struct bell_field *field)
{
    struct owner o = owner_of(setup, field);
    size_t k = 0;
    while (k < r->parameters && (r->parameter[k].field != o.field || strcmp(r->parameter[k].platform, o.platform) != 0))
        k++;
    return k;
}

/* Write values into every run whose platform has or follows the parameter. */
static enum bell_status apply(struct bell_predictions *p, const struct bell_refit *r, const double *value,
                              struct bell_error *err)
{
    for (size_t i = 0; i < p->runs; i++) {
        struct bell_setup *setup = &p->run[i]->setup;
        for (const struct bell_field *f = bell_platform_fields; f->key; f++) {
            size_t k = parameter_of(r, setup, f);
            if (k == r->parameters)
                continue;
            if (bell_field_set_number(f, &setup->platform, value[k], NULL) != BELL_OK)
                return bell_fail(err, BELL_INVALID, "the selected rows do not fix %s: it went to %g",
                                 r->parameter[k].label, value[k]);
        }
    }
    return BELL_OK;
}

struct job {
    struct bell_predictions *predictions;
    struct bell_refit *refit;
};

static enum bell_status predict(void *context, const double *value, double *predicted, struct bell_error *err)
{
    struct job *j = context;
    enum bell_status s = apply(j->predictions, j->refit, value, err);
    if (s == BELL_OK)
        s = bell_predictions_run(j->predictions, true, err);
    for (size_t i = 0; s == BELL_OK && i < j->predictions->fitted; i++)
        predicted[i] = j->predictions->prediction[i].value;
    return s;
}

/* Each row again, by the parameters that the other rows give. */
static enum bell_status leave_out(struct bell_predictions *p, struct bell_refit *r, const struct bell_fit *fit,
                                  double *value, struct bell_error *err)
{
    enum bell_status s = BELL_OK;
    for (size_t i = 0; s == BELL_OK && i < p->fitted; i++) {
        const double *change = fit->influence + i * r->parameters;
        r->left_out[i] = (double)NAN;
        if (fit->leverage[i] > BELL_FIT_LEVERAGE_ALONE)
            continue;
        for (size_t k = 0; k < r->parameters; k++)
            value[k] = fit->value[k] * (1 + change[k]);
        s = apply(p, r, value, err);
        if (s == BELL_OK)
            s = bell_predictions_run_one(p, i, true, err);
        r->left_out[i] = p->prediction[i].value;
    }
    return s;
}

static enum bell_status allocate(struct bell_refit *r, struct bell_fit *fit, double **spare, struct bell_error *err)
{
    size_t n = fit->parameters, rows = fit->rows;
    r->fitted = calloc(n, sizeof *r->fitted);
    r->interval = calloc(n, sizeof *r->interval);
    r->leverage = calloc(rows, sizeof *r->leverage);
    r->left_out = calloc(rows, sizeof *r->left_out);
    *spare = calloc(2 * n + 2 * rows + rows * n, sizeof **spare);
    const char **name = calloc(n, sizeof(const char *));
    fit->name = name;
    if (!r->fitted || !r->interval || !r->leverage || !r->left_out || !*spare || !name)
        return bell_fail(err, BELL_NO_MEMORY, "no memory for the fit");
    for (size_t k = 0; k < n; k++)
        name[k] = r->parameter[k].label;
    return BELL_OK;
}

enum bell_status bell_refit_solve(struct bell_predictions *p, struct bell_refit *r, bool is_left_out,
                                  struct bell_error *err)
{
    struct job job = { p, r };
    struct bell_fit fit = { .parameters = r->parameters, .rows = p->fitted, .predict = predict, .context = &job };
    size_t n = r->parameters;
    double *spare = NULL;
    if (p->fitted == 0)
        return bell_fail(err, BELL_INVALID, "every selected row was held out: there is none to fit to");
    enum bell_status s = allocate(r, &fit, &spare, err);
    if (s == BELL_OK) {
        double *measured = spare + 2 * n, *given = spare + n;
        fit.predicted = measured + p->fitted;
        fit.influence = fit.predicted + p->fitted;
        fit.value = r->fitted;
        fit.interval = r->interval;
        fit.leverage = r->leverage;
        fit.measured = measured;
        for (size_t i = 0; i < p->fitted; i++)
            measured[i] = p->prediction[i].row->value;
        for (size_t k = 0; k < n; k++)
            given[k] = r->fitted[k] = r->parameter[k].value;
        s = bell_fit_solve(&fit, err);
        if (s == BELL_OK && is_left_out)
            s = leave_out(p, r, &fit, spare, err);
        enum bell_status restored = apply(p, r, given, err);
        s = s == BELL_OK ? restored : s;
        r->evaluations = fit.evaluations;
    }
    free((void *)(uintptr_t)fit.name);
    free(spare);
    return s;
}

void bell_refit_free(struct bell_refit *r)
{
    free(r->parameter);
    free(r->fitted);
    free(r->interval);
    free(r->leverage);
    free(r->left_out);
    memset(r, 0, sizeof *r);
}
