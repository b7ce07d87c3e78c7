/* SPDX-License-Identifier: Apache-2.0
 * How two traces differ. */
#ifndef BELL_TRACES_DIFF_H
#define BELL_TRACES_DIFF_H

#include "traces/trace.h"

BELL_EXTERN_C_BEGIN

struct bell_diff {
    /* Compare what was done, not when: drops events that only a simulator sees, and times, seq, cause, actor and the
     * header; then each queue on its own, ordered by index.  Of the POLL events of a lane in a queue only the last
     * counts, because how often a lane looks depends on time, but one that goes back is a difference.  Lanes must still
     * agree.  Needs memory for both traces.
     * Otherwise everything is compared, event by event, in constant memory. */
    bool is_normalised;
    uint64_t report_max; /* differences to report; the rest is only counted */
    void *context;
    void (*report)(void *context, const char *text); /* one line without newline; may be NULL */
};

/* *count becomes the number of differences; BELL_OK also when there are some. */
enum bell_status bell_diff_files(const char *a, const char *b, const struct bell_diff *diff, uint64_t *count,
                                 struct bell_error *err) BELL_MUST_USE;

BELL_EXTERN_C_END

#endif
