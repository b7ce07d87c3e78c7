/* SPDX-License-Identifier: Apache-2.0
 * Everything two ranks need to run a program on a stack: queues, rings, memory and who uses them.  Built in one block
 * of the caller's memory; executors give it threads or actors. */
#ifndef BELL_CORE_WORLD_H
#define BELL_CORE_WORLD_H

#include "core/client.h"
#include "core/nic.h"

BELL_EXTERN_C_BEGIN

#define BELL_RANKS 2

struct bell_rank {
    struct bell_region source, target; /* memory that puts leave from, and arrive in */
    struct bell_region away;           /* the peer's target as workers know it; the fault BAD_KEY is in its key */
    struct bell_client *client;        /* lanes */
    struct bell_sq *sq;                /* queues */
    struct bell_nicq *nicq;            /* queues */
    struct bell_ring *ring;            /* queues; proxy only */
    struct bell_worker *worker;        /* queues; proxy only */
};

struct bell_world {
    const struct bell_program *program;
    const struct bell_stack *stack;
    uint32_t lanes, queues, workers; /* of a rank; workers is 0 without a proxy */
    struct bell_rank rank[BELL_RANKS];
    uint8_t *arena; /* the caller's */
    size_t used, size;
};

/* Bytes that bell_world_build needs. */
size_t bell_world_size(const struct bell_program *program, const struct bell_stack *stack);

/* Lay the world out in arena[size] (64 B aligned), everything at its start.  The arguments must be valid
 * (bell_program_validate) and outlive it.  BELL_NO_MEMORY: size is too small. */
enum bell_status bell_world_build(struct bell_world *world, const struct bell_program *program,
                                  const struct bell_stack *stack, void *arena, size_t size) BELL_MUST_USE;

/* After a run that went well, with all threads gone: did every put land as sent?  BELL_CORRUPT names lane and put. */
enum bell_status bell_world_verify(const struct bell_world *world, struct bell_error *err) BELL_MUST_USE;

/* One line about the queue of a lane, worker or NIC queue whose run ended in `status`, for people. */
void bell_world_explain(const struct bell_world *world, const struct bell_lane_id *who, enum bell_status status,
                        struct bell_error *err);

/* Does this rank's side of the program do anything? */
BELL_PURE bool bell_world_is_active(const struct bell_world *world, uint32_t rank)
{
    return rank == 0 || world->program->pattern == BELL_PATTERN_ROUND_TRIP;
}

BELL_EXTERN_C_END

#endif
