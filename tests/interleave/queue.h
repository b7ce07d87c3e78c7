/* SPDX-License-Identifier: Apache-2.0
 * One send queue, the lanes that put through it, and the NIC that serves it, as an exploration. */
#ifndef BELL_INTERLEAVE_QUEUE_H
#define BELL_INTERLEAVE_QUEUE_H

#include "core/nic.h"
#include "core/sq.h"

/* The place of a queue in an exploration, apart from who uses it. */
struct queue {
    struct explore *explore;
    struct bell_sq sq;
    struct bell_region region; /* all that puts may read and write */
    struct bell_stack stack;
    uint64_t start;  /* first index */
    uint64_t blocks; /* that will be posted */
    uint8_t *target; /* one of target_bytes for each put */
    uint32_t targets, target_bytes;
    uint64_t *delivered; /* ghost: times that each put arrived */
    uint64_t *executed;  /* ghost: index after the last WQE that the NIC carried out */
    bool checks_dbrec;   /* the NIC reads the doorbell record after a doorbell, and must find it ordered */
};

/* stack: sharing, ordering, cq, nic_start, depth and flow are used.  has_equal_spans: all WQEs have as many blocks. */
void queue_open(struct queue *q, struct explore *x, const struct bell_stack *stack, uint64_t start, uint32_t puts,
                uint32_t bytes, bool has_equal_spans);

/* What an exploration must find. */
struct queue_counts {
    const char *schedules; /* decimal */
    uint64_t states, steps;
};

/* Explore and free x, and print the counts.  False: the exploration failed, and the schedule that led to it is printed;
 * or the counts are others. */
bool queue_explore(struct explore *x, const char *name, const char *(*check)(struct explore *x, void *context),
                   const char *(*at_end)(struct explore *x, void *context), void *context,
                   const struct queue_counts *counts);

/* A lane that is the NIC; context is the queue. */
void queue_nic(struct bell_lane *lane, void *context);

/* For explore_run; context is the queue. */
const char *queue_check(struct explore *x, void *context);
const char *queue_at_end(struct explore *x, void *context);

#endif
