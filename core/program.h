/* SPDX-License-Identifier: Apache-2.0
 * What is run, as data: an experiment.  Two ranks; each lane of rank 0 has a partner in rank 1. */
#ifndef BELL_CORE_PROGRAM_H
#define BELL_CORE_PROGRAM_H

#include "core/stack.h"

BELL_EXTERN_C_BEGIN

/* ONE_OP: a lane posts and waits for its completion.  ROUND_TRIP: it posts, and waits until its partner, which waited
 * for the payload, has posted back.  STREAM: it posts all its operations, and waits once.  PROBE: lane 0 does round
 * trips, and until it is done all others post. */
enum bell_pattern { BELL_PATTERN_ONE_OP, BELL_PATTERN_ROUND_TRIP, BELL_PATTERN_STREAM, BELL_PATTERN_PROBE };

/* SILENT: the NIC never answers.  BAD_KEY: puts carry a remote key that opens nothing.  The others strike once, in
 * queue 0 of rank 0, at fault_index.  LOST_DOORBELL: the NIC does not see the doorbell that first covers that block; it
 * looks at the doorbell record once that has been ahead for fault_delay_us, or never when that is 0.  LATE_CQE: the CQE
 * of that block's WQE, or else the next CQE, is written fault_delay_us later.  ERROR_CQE: that block's WQE fails. */
enum bell_fault {
    BELL_FAULT_NONE,
    BELL_FAULT_SILENT,
    BELL_FAULT_BAD_KEY,
    BELL_FAULT_LOST_DOORBELL,
    BELL_FAULT_LATE_CQE,
    BELL_FAULT_ERROR_CQE
};

struct bell_program {
    char name[24];
    int32_t pattern; /* enum bell_pattern */
    int32_t fault;   /* enum bell_fault */
    uint32_t bytes;  /* of a put */
    uint32_t puts;   /* of an operation, before it waits */
    uint32_t lanes;  /* of a rank */
    uint32_t queues; /* of a rank; lanes share them evenly, but of several PROBE's lane 0 has the first for itself */
    uint32_t iterations;
    uint32_t warmup; /* operations before them that are not counted */
    uint64_t seed;
    uint64_t fault_index;    /* block of the send queue, from first_index on */
    uint64_t fault_delay_us;
    uint64_t first_index; /* where the index of a new queue starts, to test the wrap at 2^16 */
};

extern const struct bell_field bell_program_fields[];

/* BELL_INVALID with a message when the program cannot run, or not on this stack. */
enum bell_status bell_program_validate(const struct bell_program *program, const struct bell_stack *stack,
                                       struct bell_error *err) BELL_MUST_USE;

/* Does this lane wait for answers, and its partner give them? */
BELL_PURE bool bell_program_is_answered(const struct bell_program *p, uint32_t lane)
{
    return p->pattern == BELL_PATTERN_ROUND_TRIP || (p->pattern == BELL_PATTERN_PROBE && lane == 0);
}

/* Does this lane post until PROBE's lane 0 is done? */
BELL_PURE bool bell_program_is_background(const struct bell_program *p, uint32_t lane)
{
    return p->pattern == BELL_PATTERN_PROBE && lane > 0;
}

/* Lanes whose operations are counted. */
BELL_PURE uint32_t bell_program_counted(const struct bell_program *p)
{
    return p->pattern == BELL_PATTERN_PROBE ? 1 : p->lanes;
}

/* The queue that a lane posts to. */
BELL_PURE uint32_t bell_program_queue(const struct bell_program *p, uint32_t lane)
{
    if (p->pattern != BELL_PATTERN_PROBE || p->queues == 1)
        return lane / (p->lanes / p->queues);
    return lane == 0 ? 0 : 1 + (lane - 1) / ((p->lanes - 1) / (p->queues - 1));
}

/* Lanes that post together: as many as a doorbell is to cover, or all of a queue; 1 unless they cooperate. */
BELL_PURE uint32_t bell_program_group(const struct bell_program *p, const struct bell_stack *s)
{
    if (s->sharing != BELL_SHARING_COOPERATIVE)
        return 1;
    return s->wqes_per_doorbell > 1 ? s->wqes_per_doorbell : p->lanes / p->queues;
}

/* Operations of a lane, warm-up included. */
BELL_PURE uint64_t bell_program_ops(const struct bell_program *p)
{
    return (uint64_t)p->warmup + p->iterations;
}

BELL_EXTERN_C_END

#endif
