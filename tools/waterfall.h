/* SPDX-License-Identifier: Apache-2.0
 * The steps of one operation of a set-up, and their drawing. */
#ifndef BELL_TOOLS_WATERFALL_H
#define BELL_TOOLS_WATERFALL_H

#include "tools/cli.h"
#include "traces/steps.h"

#define BELL_WATERFALL_TEXT 64

/* What a step is, in words. */
struct bell_step_text {
    char what[BELL_WATERFALL_TEXT], who[32];
    const char *clock; /* what its duration follows: "SM", "CPU", "NIC", "PCIe", "wire" */
    const char *part;  /* of the machine, for sums: "GPU: ordering" */
};

struct bell_waterfall {
    const struct bell_setup *setup;
    struct bell_steps steps;
    struct bell_step_text *text; /* steps.count */
};

/* Simulate, and take the operation with the median time.  Clocks are found by running again with other clocks.  On
 * BELL_OK the caller calls bell_waterfall_free. */
enum bell_status bell_waterfall_of(const struct bell_setup *setup, struct bell_waterfall *out,
                                   struct bell_error *err) BELL_MUST_USE;
void bell_waterfall_free(struct bell_waterfall *w);

/* Draw one or two, one above the other, with gnuplot.  BELL_UNSUPPORTED: no gnuplot here. */
enum bell_status bell_waterfall_plot(const struct bell_waterfall *const *w, size_t count, const char *path,
                                     struct bell_error *err) BELL_MUST_USE;

#endif
