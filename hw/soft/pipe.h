/* SPDX-License-Identifier: Apache-2.0
 * WQEs of one queue under way in a software NIC that takes its time: each stage is done when its moment has come, in
 * the order of the queue, with many WQEs in different stages at once.
 *
 * Moments are planned from when the doorbell was seen, never from when an earlier stage really ran: a late server
 * catches up.  Fences wait for what really happened. */
#ifndef BELL_HW_SOFT_PIPE_H
#define BELL_HW_SOFT_PIPE_H

#include "core/exec.h"
#include "core/nic.h"

#define BELL_PIPE_RINGS 64u  /* doorbells on their way; while there are so many, a later one is not looked at */
#define BELL_PIPE_READS 16u  /* reads and atomics of a queue that wait for their answer: what RC queues usually allow */
#define BELL_LATE_BUCKETS 512u

struct bell_pipe_item;

/* How late stages ran: counts by size, eight buckets an octave of nanoseconds. */
struct bell_lateness {
    uint64_t count[BELL_LATE_BUCKETS], total;
};

struct bell_pipe {
    struct bell_pace pace;
    struct {
        uint64_t producer, at_ps; /* blocks before it can be read from at_ps on */
    } ring[BELL_PIPE_RINGS];
    uint64_t rung, read;          /* doorbells that came; whose WQEs are all fetched.  Free-running */
    struct bell_pipe_item *item;  /* capacity of them */
    uint32_t capacity;            /* power of two */
    uint64_t fetched, delivered, answered, completed; /* WQEs so far in each stage */
    uint64_t asked, returned;     /* reads and atomics that reached the peer; whose answer is back */
    uint64_t wire_free_ps, answer_ps, acked_ps, cqe_ps; /* latest planned so far */
    uint8_t *held[BELL_PIPE_READS];
    size_t held_bytes[BELL_PIPE_READS];
};

/* pace NULL: no delays.  depth: of the send queue.  BELL_NO_MEMORY: *pipe is NULL. */
enum bell_status bell_pipe_open(struct bell_pipe **pipe, const struct bell_pace *pace, uint32_t depth);
void bell_pipe_close(struct bell_pipe *pipe);

/* Everything that is due at now_ps.  *wqes counts those that completed.  BELL_EMPTY: nothing was due.  Failures are
 * those of bell_nic_take, and BELL_NO_MEMORY for an answer that cannot be held. */
enum bell_status bell_pipe_turn(struct bell_pipe *pipe, struct bell_lane *lane, struct bell_nicq *q, uint64_t now_ps,
                                uint64_t *wqes, struct bell_lateness *late);

void bell_lateness_add(struct bell_lateness *late, uint64_t ps);

/* The lateness that half of all stages did not exceed, rounded down by at most an eighth. */
uint64_t bell_lateness_median_ps(const struct bell_lateness *late);

#endif
