/* SPDX-License-Identifier: Apache-2.0 */
#include "calib/fit.h"

#include <cminpack.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TOLERANCE 1e-8
/* Of a logarithm: far above the picosecond that predictions are rounded to, far below a change of path. */
#define STEP 1e-4
#define NORMAL_95 1.96
#define RANK_TOLERANCE 1e-6

struct solver {
    struct bell_fit *fit;
    struct bell_error *err;
    enum bell_status status;
    double *value; /* exp of the logarithms */
};

static int residuals(void *context, int rows, int parameters, const double *logs, double *out, int flag)
{
    struct solver *s = context;
    struct bell_fit *f = s->fit;
    (void)flag;
    for (int p = 0; p < parameters; p++)
        s->value[p] = exp(logs[p]);
    s->status = f->predict(f->context, s->value, out, s->err);
    f->evaluations++;
    if (s->status != BELL_OK)
        return -1;
    memcpy(f->predicted, out, (size_t)rows * sizeof *out);
    for (int r = 0; r < rows; r++)
        out[r] = out[r] / f->measured[r] - 1;
    return 0;
}

static enum bell_status check(const struct bell_fit *f, struct bell_error *err)
{
    if (f->parameters == 0 || f->rows < f->parameters)
        return bell_fail(err, BELL_INVALID, "%zu rows cannot fix %zu parameters", f->rows, f->parameters);
    for (size_t p = 0; p < f->parameters; p++)
        if (!(f->value[p] > 0))
            return bell_fail(err, BELL_INVALID, "%s is %g, expected more than 0", f->name[p], f->value[p]);
    for (size_t r = 0; r < f->rows; r++)
        if (!(f->measured[r] > 0))
            return bell_fail(err, BELL_INVALID, "row %zu is %g, expected more than 0", r, f->measured[r]);
    return BELL_OK;
}

/* d residual / d log parameter by central differences, column by column. */
static enum bell_status jacobian(struct solver *s, const double *logs, double *out, double *work)
{
    int rows = (int)s->fit->rows, parameters = (int)s->fit->parameters;
    double *moved = work, *high = work + parameters, *low = high + rows;
    for (int p = 0; p < parameters; p++) {
        memcpy(moved, logs, (size_t)parameters * sizeof *moved);
        moved[p] = logs[p] + STEP;
        if (residuals(s, rows, parameters, moved, high, 0))
            return s->status;
        moved[p] = logs[p] - STEP;
        if (residuals(s, rows, parameters, moved, low, 0))
            return s->status;
        for (int r = 0; r < rows; r++)
            out[p * rows + r] = (high[r] - low[r]) / (2 * STEP);
    }
    return BELL_OK;
}

/* Inverse of J'J through cminpack's pivoted QR; out is parameters x parameters. */
static enum bell_status covariance(const struct bell_fit *f, const double *jacobian_, double *qr, double *out,
                                   struct bell_error *err)
{
    int rows = (int)f->rows, n = (int)f->parameters;
    int *pivot = malloc(f->parameters * sizeof *pivot);
    double *work = malloc(4 * f->parameters * sizeof *work);
    enum bell_status s = pivot && work ? BELL_OK : bell_fail(err, BELL_NO_MEMORY, "no memory for the fit");
    if (s == BELL_OK) {
        double *diagonal = work, *norm = work + n;
        memcpy(qr, jacobian_, (size_t)(rows * n) * sizeof *qr);
        __cminpack_func__(qrfac)(rows, n, qr, rows, 1, pivot, n, diagonal, norm, work + 2 * n);
        for (int p = 0; p < n && s == BELL_OK; p++)
            if (fabs(diagonal[p]) <= RANK_TOLERANCE * fabs(diagonal[0]))
                s = bell_fail(err, BELL_INVALID, "the rows cannot tell %s from the others", f->name[pivot[p] - 1]);
        for (int c = 0; c < n; c++)
            for (int r = 0; r <= c; r++)
                out[c * n + r] = r == c ? diagonal[c] : qr[c * rows + r];
        __cminpack_func__(covar)(n, out, n, pivot, 0, work);
    }
    free(work);
    free(pivot);
    return s;
}

static void leave_out(struct bell_fit *f, const double *jac, const double *inverse)
{
    size_t n = f->parameters;
    for (size_t r = 0; r < f->rows; r++) {
        double *change = f->influence + r * n, h = 0;
        for (size_t p = 0; p < n; p++) {
            change[p] = 0;
            for (size_t q = 0; q < n; q++)
                change[p] += inverse[q * n + p] * jac[q * f->rows + r];
            h += change[p] * jac[p * f->rows + r];
        }
        f->leverage[r] = h;
        double residual = f->predicted[r] / f->measured[r] - 1;
        for (size_t p = 0; p < n; p++)
            change[p] = h > BELL_FIT_LEVERAGE_ALONE ? (double)NAN : expm1(change[p] * residual / (1 - h));
    }
}

static enum bell_status statistics(struct solver *s, const double *logs, struct bell_error *err)
{
    struct bell_fit *f = s->fit;
    size_t n = f->parameters;
    double *jac = calloc(f->rows * n, sizeof *jac), *qr = malloc(f->rows * n * sizeof *qr);
    double *inverse = malloc(n * n * sizeof *inverse), *work = malloc((n + 2 * f->rows) * sizeof *work);
    enum bell_status status = jac && qr && inverse && work ? BELL_OK
                                                           : bell_fail(err, BELL_NO_MEMORY, "no memory for the fit");
    if (status == BELL_OK)
        status = jacobian(s, logs, jac, work);
    if (status == BELL_OK)
        status = covariance(f, jac, qr, inverse, err);
    if (status == BELL_OK && residuals(s, (int)f->rows, (int)n, logs, work, 0))
        status = s->status;
    if (status == BELL_OK) {
        double sum = 0;
        for (size_t r = 0; r < f->rows; r++)
            sum += work[r] * work[r];
        double variance = f->rows > n ? sum / (double)(f->rows - n) : 0;
        for (size_t p = 0; p < n; p++)
            f->interval[p] = NORMAL_95 * sqrt(variance * inverse[p * n + p]);
        leave_out(f, jac, inverse);
    }
    free(work);
    free(inverse);
    free(qr);
    free(jac);
    return status;
}

static enum bell_status solve(struct solver *s, double *logs, double *residual, double *work, int *iwork)
{
    struct bell_fit *f = s->fit;
    int rows = (int)f->rows, n = (int)f->parameters, evaluated = 0;
    double *diagonal = work, *jac = work + n, *qtf = jac + rows * n, *wa = qtf + n;
    int info = __cminpack_func__(lmdif)(residuals, s, rows, n, logs, residual, TOLERANCE, TOLERANCE, 0, 200 * (n + 1),
                                        STEP * STEP, diagonal, 1, 100, 0, &evaluated, jac, rows, iwork, qtf, wa,
                                        wa + n, wa + 2 * n, wa + 3 * n);
    if (s->status != BELL_OK)
        return s->status;
    if (info < 1 || info > 4)
        return bell_fail(s->err, BELL_INVALID, "the fit did not settle after %d evaluations", evaluated);
    return BELL_OK;
}

enum bell_status bell_fit_solve(struct bell_fit *f, struct bell_error *err)
{
    enum bell_status s = check(f, err);
    if (s != BELL_OK)
        return s;
    size_t n = f->parameters, rows = f->rows;
    double *logs = malloc(n * sizeof *logs), *value = malloc(n * sizeof *value);
    double *residual = malloc(rows * sizeof *residual), *work = malloc((rows * n + 5 * n + rows) * sizeof *work);
    int *iwork = malloc(n * sizeof *iwork);
    f->evaluations = 0;
    if (!logs || !value || !residual || !work || !iwork) {
        s = bell_fail(err, BELL_NO_MEMORY, "no memory for the fit");
    } else {
        struct solver solver = { f, err, BELL_OK, value };
        for (size_t p = 0; p < n; p++)
            logs[p] = log(f->value[p]);
        s = solve(&solver, logs, residual, work, iwork);
        if (s == BELL_OK)
            s = statistics(&solver, logs, err);
        for (size_t p = 0; s == BELL_OK && p < n; p++)
            f->value[p] = exp(logs[p]);
    }
    free(iwork);
    free(work);
    free(residual);
    free(value);
    free(logs);
    return s;
}
