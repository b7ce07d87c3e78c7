/* SPDX-License-Identifier: Apache-2.0
 * Everything two ranks need to run a program on a stack: queues, rings, memory and who uses them.  Built in one block
 * of the caller's memory; executors give it threads or actors. */
#ifndef BELL_CORE_WORLD_H
#define BELL_CORE_WORLD_H

#include "core/client.h"
#include "core/nic.h"
#include "core/serve.h"

BELL_EXTERN_C_BEGIN

#define BELL_RANKS 2

/* Parts of a rank's memory, by who must reach them.  An executor may move each to memory that suits. */
enum bell_place {
    BELL_PLACE_SHARED,   /* descriptors of everything; read by all before they start */
    BELL_PLACE_LANES,    /* what only lanes touch: the word that reserves in a ring, flags between lanes */
    BELL_PLACE_POSTER,   /* what only those who post touch: index words, spans */
    BELL_PLACE_QUEUE,    /* WQEs, CQEs, doorbell records: posters and NIC */
    BELL_PLACE_REGISTER, /* doorbell registers: posters (or who rings for them) and NIC */
    BELL_PLACE_HOST,     /* proxy rings and counters, mailboxes: lanes and CPU workers */
    BELL_PLACE_SOURCE,   /* payload that leaves: lanes, and the NIC unless it travels in WQE or descriptor */
    BELL_PLACE_TARGET,   /* payload that arrives: NIC and lanes */
    BELL_PLACES
};

struct bell_extent {
    uint8_t *at;
    size_t used, size;
};

struct bell_rank {
    struct bell_region source, target; /* memory that puts leave from, and arrive in */
    struct bell_region away;           /* the peer's target as workers know it; the fault BAD_KEY is in its key */
    struct bell_client *client;        /* lanes */
    struct bell_sq *sq;                /* queues */
    struct bell_nicq *nicq;            /* queues */
    struct bell_ring *ring;            /* queues; proxy only, else NULL */
    struct bell_worker *worker;        /* queues; proxy only, else NULL */
    struct bell_forwarder *forwarder;  /* queues; only when the host rings, else NULL */
};

struct bell_world {
    const struct bell_program *program;
    const struct bell_stack *stack;
    uint32_t lanes, queues, workers; /* of a rank; workers is 0 when no CPU takes part */
    struct bell_rank rank[BELL_RANKS];
    uint64_t *is_over; /* PROBE */
    bool has_device;   /* the NIC is a device: what nicq says is nobody's state.  Set by the executor, after building */
    struct bell_extent place[BELL_RANKS][BELL_PLACES];
    uint8_t *arena; /* the caller's; holds all places, one after another, as built */
    size_t size;
};

/* Bytes that bell_world_build needs. */
size_t bell_world_size(const struct bell_program *program, const struct bell_stack *stack);

/* Lay the world out in arena[size] (64 B aligned), everything at its start.  The arguments must be valid
 * (bell_program_validate) and outlive it.  BELL_NO_MEMORY: size is too small. */
enum bell_status bell_world_build(struct bell_world *world, const struct bell_program *program,
                                  const struct bell_stack *stack, void *arena, size_t size) BELL_MUST_USE;

/* Everything that points into a rank's `place` points to the same offset from `to` instead; contents are the caller's
 * to copy.  SHARED stays where it is. */
void bell_world_move(struct bell_world *world, uint32_t rank, enum bell_place place, uint8_t *to);

/* The share of CPU worker `worker` of a rank. */
struct bell_share bell_world_share(const struct bell_world *world, uint32_t rank, uint32_t worker);

/* Puts of the lanes that post without waiting for each, and the time from the first of them that counts to the last
 * completion: the counted ones of STREAM, all of PROBE's background.  Zero in other patterns. */
void bell_world_rate(const struct bell_world *world, uint64_t *puts, uint64_t *duration_ps);

/* After a run that went well, with all threads gone: did every put land as sent?  BELL_CORRUPT names lane and put. */
enum bell_status bell_world_verify(const struct bell_world *world, struct bell_error *err) BELL_MUST_USE;

/* After a run that went well: append to notes[size] whether the fault that it was to meet struck.  Nothing is added
 * when there was none. */
void bell_world_tell_fault(const struct bell_world *world, char *notes, size_t size);

/* One line about the queue of a lane, worker or NIC queue whose run ended in `status`, for people. */
void bell_world_explain(const struct bell_world *world, const struct bell_lane_id *who, enum bell_status status,
                        struct bell_error *err);

/* Does this rank's side of the program do anything? */
BELL_PURE bool bell_world_is_active(const struct bell_world *world, uint32_t rank)
{
    return rank == 0 || bell_program_is_answered(world->program, 0);
}

BELL_EXTERN_C_END

#endif
