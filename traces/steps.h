/* SPDX-License-Identifier: Apache-2.0
 * Where the time of one operation goes: its events as a graph (a step follows the step before it on its lane, and the
 * event that it waited for), the critical path through it, and what the operation would gain without a step. */
#ifndef BELL_TRACES_STEPS_H
#define BELL_TRACES_STEPS_H

#include "core/event.h"

BELL_EXTERN_C_BEGIN

struct bell_step {
    struct bell_event event;
    uint64_t gain_ps;  /* how much sooner the operation would end if this step took no time */
    bool is_critical;  /* on the longest chain to the end */
};

struct bell_steps {
    struct bell_step *step; /* by start, then seq */
    size_t count;
    uint64_t start_ps, total_ps; /* of the operation */
    uint64_t critical_ps;        /* sum of the steps on the critical path */
    uint64_t gap_ps;             /* time on it that no step accounts for; critical_ps + gap_ps == total_ps */
};

/* The steps of the operation that event[op] (kind OP) closes; event[count] in order of seq, from 1.  BELL_INVALID: no
 * such operation.  On BELL_OK the caller calls bell_steps_free. */
enum bell_status bell_steps_of(const struct bell_event *event, size_t count, size_t op, struct bell_steps *out,
                               struct bell_error *err) BELL_MUST_USE;
void bell_steps_free(struct bell_steps *steps);

BELL_EXTERN_C_END

#endif
