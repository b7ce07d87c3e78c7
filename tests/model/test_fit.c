/* SPDX-License-Identifier: Apache-2.0
 * The fit, on analytic models whose answer is known. */
#include "calib/fit.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define ROWS 24
#define PARAMETERS 3

static const char *const names[PARAMETERS] = { "first", "second", "third" };
static const double truth[PARAMETERS] = { 310, 45000, 0.8 };

/* What one fit needs, in one place. */
struct rig {
    struct bell_fit fit;
    struct bell_error err;
    double value[PARAMETERS], interval[PARAMETERS], measured[ROWS], predicted[ROWS], leverage[ROWS];
    double influence[ROWS * PARAMETERS];
    size_t skipped; /* row that the model leaves out; ROWS: none */
    enum bell_status fail;
};

/* Row r sees every parameter, in shares that vary, and the third by a power. */
static double model(const double *v, size_t r)
{
    double x = (double)(r % 6) + 1, y = (double)(r / 6) + 1;
    return v[0] * x + v[1] * 0.01 * y + 3000 * pow(v[2], x) * y;
}

static enum bell_status predict(void *context, const double *value, double *predicted, struct bell_error *err)
{
    struct rig *g = context;
    if (g->fail != BELL_OK) return bell_fail(err, g->fail, "the model says no");
    for (size_t r = 0, out = 0; out < g->fit.rows; r++)
        if (r != g->skipped) predicted[out++] = model(value, r);
    return BELL_OK;
}

static void set_up(struct rig *g, size_t rows, size_t parameters,
                   enum bell_status (*of)(void *, const double *, double *, struct bell_error *))
{
    memset(g, 0, sizeof *g);
    g->skipped = ROWS;
    g->fit = (struct bell_fit){ .parameters = parameters,
                                .rows = rows,
                                .value = g->value,
                                .name = names,
                                .measured = g->measured,
                                .predict = of,
                                .context = g,
                                .predicted = g->predicted,
                                .interval = g->interval,
                                .leverage = g->leverage,
                                .influence = g->influence };
    for (size_t p = 0; p < parameters; p++)
        g->value[p] = truth[p] * (p % 2 ? 1.6 : 0.7);
    for (size_t r = 0; r < rows; r++)
        g->measured[r] = model(truth, r);
}

/* Uniform in [0, 1), the same each time. */
static double uniform(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(*seed >> 11) * 0x1p-53;
}

/* About normal, variance 1. */
static double normal(uint64_t *seed)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += uniform(seed);
    return sum;
}

static void add_noise(struct rig *g, double relative, uint64_t seed)
{
    for (size_t r = 0; r < ROWS; r++)
        g->measured[r] /= 1 + relative * normal(&seed);
}

static void assert_near(double value, double expected, double relative)
{
    if (!(fabs(value - expected) <= relative * fabs(expected)))
        fail_msg("%.12g is not within %g of %.12g", value, relative, expected);
}

static void test_exact(void **state)
{
    struct rig g;
    (void)state;
    set_up(&g, ROWS, PARAMETERS, predict);
    assert_int_equal(bell_fit_solve(&g.fit, &g.err), BELL_OK);
    double sum = 0;
    for (size_t p = 0; p < PARAMETERS; p++) {
        assert_near(g.value[p], truth[p], 1e-6);
        assert_true(g.interval[p] >= 0 && g.interval[p] < 1e-6);
    }
    for (size_t r = 0; r < ROWS; r++) {
        assert_near(g.predicted[r], g.measured[r], 1e-6);
        assert_true(g.leverage[r] > 0 && g.leverage[r] < 1);
        sum += g.leverage[r];
    }
    assert_near(sum, PARAMETERS, 1e-6); /* the trace of the hat matrix */
    assert_true(g.fit.evaluations > 3 * PARAMETERS);
}

/* As many rows as parameters: all of them fixed, nothing left to say how well. */
static void test_square(void **state)
{
    struct rig g;
    (void)state;
    set_up(&g, PARAMETERS, PARAMETERS, predict);
    assert_int_equal(bell_fit_solve(&g.fit, &g.err), BELL_OK);
    for (size_t r = 0; r < PARAMETERS; r++) {
        assert_near(g.predicted[r], g.measured[r], 1e-4);
        assert_near(g.leverage[r], 1, 1e-3);
        for (size_t p = 0; p < PARAMETERS; p++)
            assert_true(isnan(g.influence[r * PARAMETERS + p]));
    }
}

/* 95 % intervals hold the truth about 95 times of 100, and are no wider than that takes. */
static void test_intervals(void **state)
{
    struct rig g;
    int held[PARAMETERS] = { 0 }, runs = 300;
    double width[PARAMETERS] = { 0 }, spread[PARAMETERS] = { 0 };
    (void)state;
    for (int run = 0; run < runs; run++) {
        set_up(&g, ROWS, PARAMETERS, predict);
        add_noise(&g, 0.01, (uint64_t)run + 1);
        assert_int_equal(bell_fit_solve(&g.fit, &g.err), BELL_OK);
        for (size_t p = 0; p < PARAMETERS; p++) {
            double off = log(g.value[p] / truth[p]);
            held[p] += fabs(off) <= g.interval[p];
            width[p] += g.interval[p] / runs;
            spread[p] += off * off / runs;
        }
    }
    for (size_t p = 0; p < PARAMETERS; p++) {
        assert_in_range(held[p], runs * 88 / 100, runs * 99 / 100);
        assert_near(width[p], 1.96 * sqrt(spread[p]), 0.15);
    }
}

static enum bell_status predict_scale(void *context, const double *value, double *predicted, struct bell_error *err)
{
    struct rig *g = context;
    (void)err;
    for (size_t r = 0; r < g->fit.rows; r++)
        predicted[r] = value[0] * (double)(r + 1);
    return BELL_OK;
}

/* One parameter and three rows: the statistics by hand. */
static void test_by_hand(void **state)
{
    struct rig g;
    const double off[3] = { 0.98, 1.01, 1.03 };
    double squares = 0, sum = 0, fit = 0;
    (void)state;
    set_up(&g, 3, 1, predict_scale);
    for (size_t r = 0; r < 3; r++) {
        g.measured[r] = truth[0] * (double)(r + 1) * off[r];
        squares += 1 / (off[r] * off[r]);
        fit += 1 / off[r];
    }
    fit /= squares; /* the least of the sum of (fit / off - 1)^2 */
    assert_int_equal(bell_fit_solve(&g.fit, &g.err), BELL_OK);
    assert_near(g.value[0], truth[0] * fit, 1e-6);
    for (size_t r = 0; r < 3; r++)
        sum += (fit / off[r] - 1) * (fit / off[r] - 1);
    assert_near(g.interval[0], 1.96 * sqrt(sum / (3 - 1) / (squares * fit * fit)), 1e-5);
    for (size_t r = 0; r < 3; r++)
        assert_near(g.leverage[r], 1 / (off[r] * off[r]) / squares, 1e-6);
}

/* The second and third only as a product: which of them is named is the solver's choice, the first is not. */
static enum bell_status predict_product(void *context, const double *value, double *predicted, struct bell_error *err)
{
    struct rig *g = context;
    (void)err;
    for (size_t r = 0; r < g->fit.rows; r++)
        predicted[r] = value[0] * (double)(r + 1) + value[1] * value[2] * 0.01 * (double)(ROWS - r);
    return BELL_OK;
}

static void test_cannot_tell_apart(void **state)
{
    struct rig g;
    (void)state;
    set_up(&g, ROWS, PARAMETERS, predict_product);
    (void)predict_product(&g, truth, g.measured, &g.err);
    assert_int_equal(bell_fit_solve(&g.fit, &g.err), BELL_INVALID);
    assert_non_null(strstr(g.err.text, "cannot tell"));
    assert_true(strstr(g.err.text, "second") || strstr(g.err.text, "third"));
    assert_null(strstr(g.err.text, "first"));
}

static enum bell_status predict_without_third(void *context, const double *value, double *predicted,
                                              struct bell_error *err)
{
    double fixed[PARAMETERS] = { value[0], value[1], truth[2] };
    return predict(context, fixed, predicted, err);
}

/* No row depends on it; named for what it is. */
static void test_idle_parameter(void **state)
{
    struct rig g;
    (void)state;
    set_up(&g, ROWS, PARAMETERS, predict_without_third);
    assert_int_equal(bell_fit_solve(&g.fit, &g.err), BELL_INVALID);
    assert_non_null(strstr(g.err.text, "third"));
}

static enum bell_status predict_constant(void *context, const double *value, double *predicted, struct bell_error *err)
{
    return predict(context, truth, predicted, err) == BELL_OK && value ? BELL_OK : BELL_INVALID;
}

static void test_nothing_depends(void **state)
{
    struct rig g;
    (void)state;
    set_up(&g, ROWS, 1, predict_constant);
    assert_int_equal(bell_fit_solve(&g.fit, &g.err), BELL_INVALID);
    assert_non_null(strstr(g.err.text, "first"));
}

/* The last row alone holds the third parameter. */
static enum bell_status predict_alone(void *context, const double *value, double *predicted, struct bell_error *err)
{
    struct rig *g = context;
    (void)err;
    for (size_t r = 0; r < g->fit.rows; r++)
        predicted[r] = value[0] * (double)(r + 1) + value[1] * 0.01 + (r + 1 == g->fit.rows ? 5000 * value[2] : 0);
    return BELL_OK;
}

static void test_alone(void **state)
{
    struct rig g;
    uint64_t seed = 7;
    size_t last = ROWS - 1;
    (void)state;
    set_up(&g, ROWS, PARAMETERS, predict_alone);
    (void)predict_alone(&g, truth, g.measured, &g.err);
    for (size_t r = 0; r < ROWS; r++)
        g.measured[r] *= 1 + 0.01 * normal(&seed);
    assert_int_equal(bell_fit_solve(&g.fit, &g.err), BELL_OK);
    assert_near(g.leverage[last], 1, 1e-6);
    assert_near(g.predicted[last], g.measured[last], 1e-5);
    for (size_t r = 0; r < ROWS; r++)
        for (size_t p = 0; p < PARAMETERS; p++)
            assert_int_equal(isnan(g.influence[r * PARAMETERS + p]) != 0, r == last);
    for (size_t r = 0; r < last; r++)
        assert_true(g.leverage[r] < BELL_FIT_LEVERAGE_ALONE);
}

/* What the statistics say of a fit without a row is what a fit without it gives. */
static void test_influence(void **state)
{
    struct rig all, without;
    (void)state;
    set_up(&all, ROWS, PARAMETERS, predict);
    add_noise(&all, 0.01, 11);
    assert_int_equal(bell_fit_solve(&all.fit, &all.err), BELL_OK);
    for (size_t left = 0; left < ROWS; left++) {
        set_up(&without, ROWS - 1, PARAMETERS, predict);
        without.skipped = left;
        for (size_t r = 0; r < ROWS - 1; r++)
            without.measured[r] = all.measured[r < left ? r : r + 1];
        assert_int_equal(bell_fit_solve(&without.fit, &without.err), BELL_OK);
        for (size_t p = 0; p < PARAMETERS; p++) {
            double change = without.value[p] / all.value[p] - 1, said = all.influence[left * PARAMETERS + p];
            if (!(fabs(said - change) <= 0.05 * fabs(change) + 0.02 * all.interval[p]))
                fail_msg("row %zu, %s: %g was said, %g came", left, names[p], said, change);
        }
    }
}

static void assert_refused(struct rig *g, enum bell_status status, const char *why)
{
    g->err = (struct bell_error){ BELL_OK, "" };
    assert_int_equal(bell_fit_solve(&g->fit, &g->err), status);
    assert_int_equal(g->err.status, status);
    assert_non_null(strstr(g->err.text, why));
}

static void test_refused(void **state)
{
    struct rig g;
    (void)state;
    set_up(&g, 2, PARAMETERS, predict);
    assert_refused(&g, BELL_INVALID, "2 rows cannot fix 3 parameters");
    set_up(&g, ROWS, 0, predict);
    assert_refused(&g, BELL_INVALID, "24 rows cannot fix 0 parameters");
    set_up(&g, ROWS, PARAMETERS, predict);
    g.value[1] = 0;
    assert_refused(&g, BELL_INVALID, "second");
    g.value[1] = (double)NAN;
    assert_refused(&g, BELL_INVALID, "second");
    g.value[1] = truth[1];
    g.measured[5] = -1;
    assert_refused(&g, BELL_INVALID, "row 5");
    set_up(&g, ROWS, PARAMETERS, predict);
    g.fail = BELL_TIMEOUT;
    assert_refused(&g, BELL_TIMEOUT, "the model says no");
    assert_near(g.value[0], 0.7 * truth[0], 1e-12); /* a failure leaves the start as it was */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact),
        cmocka_unit_test(test_square),
        cmocka_unit_test(test_intervals),
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_cannot_tell_apart),
        cmocka_unit_test(test_idle_parameter),
        cmocka_unit_test(test_nothing_depends),
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_influence),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
