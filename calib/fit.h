/* SPDX-License-Identifier: Apache-2.0
 * Least squares: which parameters make a model say what was measured?  Parameters are positive and fitted by their
 * logarithm; residuals are relative, (predicted - measured) / measured.  The solver is cminpack's lmdif. */
#ifndef BELL_CALIB_FIT_H
#define BELL_CALIB_FIT_H

#include "core/status.h"

BELL_EXTERN_C_BEGIN

struct bell_fit {
    size_t parameters, rows; /* rows >= parameters >= 1 */
    double *value;           /* parameters: start in, fit out; all > 0 */
    const char *const *name; /* parameters, for messages */
    const double *measured;  /* rows, all > 0 */
    /* Fills predicted[rows] for value[parameters]. */
    enum bell_status (*predict)(void *context, const double *value, double *predicted, struct bell_error *err);
    void *context;
    double *predicted;  /* rows: at the fit */
    double *interval;   /* parameters: half width of a 95 % interval, relative; covariance, normal errors */
    double *leverage;   /* rows: 1 means that this row alone fixes some combination of parameters */
    double *influence;  /* rows x parameters: relative change of each when the row is left out; NAN at leverage 1 */
    uint32_t evaluations; /* of predict */
};

/* BELL_INVALID: fewer rows than parameters, a value or measurement that is not positive, or parameters that the rows
 * cannot tell apart (one is named in *err).  The arrays are the caller's. */
enum bell_status bell_fit_solve(struct bell_fit *fit, struct bell_error *err) BELL_MUST_USE;

/* Above this leverage a row is the only one that fixes something. */
#define BELL_FIT_LEVERAGE_ALONE 0.999

BELL_EXTERN_C_END

#endif
