/* SPDX-License-Identifier: Apache-2.0
 * Published and measured rows, and what the simulator says to each. */
#ifndef BELL_TOOLS_PREDICTION_H
#define BELL_TOOLS_PREDICTION_H

#include "tools/cli.h"
#include "traces/rows.h"

/* One run that one or more rows ask for. */
struct bell_prediction_run {
    struct bell_setup setup;
    char key[400];
    uint64_t issue_p50_ps, total_p50_ps, total_p99_ps;
    double rate_mputs;
    bool needs_p99;
    bool is_for_fit; /* some row that asks for it was used to fit */
};

/* One row that can be predicted. */
struct bell_prediction {
    const struct bell_row *row;
    size_t run;
    double (*pick)(const struct bell_prediction_run *run);
    double value; /* in the unit of the row's metric */
    bool is_held_out; /* the platform says what it was fitted to, and this row is not of it */
};

/* All rows that were asked for. */
struct bell_predictions {
    struct bell_rows rows;
    size_t published; /* of rows, the first */
    struct bell_prediction_run **run; /* each allocated by itself: they are large */
    size_t runs;
    struct bell_prediction *prediction;
    size_t count;
    size_t fitted;     /* the first; the others were held out */
    bool is_split;     /* some rows were held out */
    bool is_measured;  /* some row was measured by this project or its user, and is not published */
    size_t unmodelled; /* rows that match but ask for what is not modelled */
    char why[160];     /* of the first of them */
};

/* Which rows: comma-separated lists, NULL: all.  Measured rows only where figures or platforms names them. */
struct bell_selection {
    const char *figures, *platforms, *stacks;
    const struct bell_options *options; /* --set */
};

/* Every row there is: those of traces/reference, *published of them, then those of traces/measured.  On BELL_OK the
 * caller calls bell_rows_free. */
enum bell_status bell_rows_load(struct bell_rows *rows, size_t *published, struct bell_error *err) BELL_MUST_USE;

/* Read the rows, pick, and set the runs up.  BELL_INVALID names an unknown figure, platform or stack.  On BELL_OK the
 * caller calls bell_predictions_free. */
enum bell_status bell_predictions_load(struct bell_predictions *p, const struct bell_selection *selection,
                                       struct bell_error *err) BELL_MUST_USE;

/* Run everything and fill in value.  quick: only what rows used to fit ask for, with as few iterations as the same
 * answer needs. */
enum bell_status bell_predictions_run(struct bell_predictions *p, bool quick, struct bell_error *err) BELL_MUST_USE;

/* The same for one row. */
enum bell_status bell_predictions_run_one(struct bell_predictions *p, size_t row, bool quick,
                                          struct bell_error *err) BELL_MUST_USE;
void bell_predictions_free(struct bell_predictions *p);

/* A row's configuration as one line: "inline, gpu-fence". */
void bell_prediction_config(const struct bell_row *row, char *out, size_t size);

/* ---- parameters that the rows fixed (tools/refit.c) ---- */

/* A platform value whose source says "fitted", and the values that follow it: of other platforms ("as on NAME"), or of
 * another key of the same platform ("as KEY"). */
struct bell_free_parameter {
    char platform[24], key[48];
    const struct bell_field *field;
    char source[BELL_SOURCE_SIZE];
    double value;
    char label[80];
};

struct bell_refit {
    struct bell_free_parameter *parameter;
    size_t parameters; /* fitted to rows of the platforms that the runs use */
    size_t followed;   /* after them: fitted to rows of other platforms, and kept */
    double *fitted;     /* parameters */
    double *interval;   /* parameters: relative half width, 95 % */
    double *leverage;   /* rows used to fit */
    double *left_out;   /* the same: prediction with the row left out; NAN when only it fixes something */
    uint32_t evaluations;
};

/* The free parameters of the platforms that the runs use. */
enum bell_status bell_refit_parameters(const struct bell_predictions *p, struct bell_refit *refit,
                                       struct bell_error *err) BELL_MUST_USE;

/* Fit them to the rows that are for it; with is_left_out also predict each row without it.  Runs keep their values. */
enum bell_status bell_refit_solve(struct bell_predictions *p, struct bell_refit *refit, bool is_left_out,
                                  struct bell_error *err) BELL_MUST_USE;
void bell_refit_free(struct bell_refit *refit);

#endif
