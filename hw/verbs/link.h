/* SPDX-License-Identifier: Apache-2.0
 * From a world to an RDMA device: its memory registered, a queue pair for each send queue, both ends connected, over
 * the wire when the other rank is another process. */
#ifndef BELL_HW_VERBS_LINK_H
#define BELL_HW_VERBS_LINK_H

#include "core/exec.h"
#include "core/world.h"
#include "hw/verbs/device.h"
#include "hw/verbs/wire.h"

struct bell_verbs_link {
    struct bell_verbs_device device;
    struct bell_world *world;
    struct bell_wire wire; /* fd -1: both ranks are here */
    bool is_here[BELL_RANKS];
    uint32_t rank; /* of this process, when only one is here */
    struct ibv_mr *source[BELL_RANKS], *target[BELL_RANKS];
    struct bell_verbs_qp *qp;       /* rank * queues + queue */
    struct bell_verbs_queue *queue; /* the same */
    uint8_t *body;                  /* BELL_MESSAGE_MAX, for messages */
};

/* Everything up to connected queue pairs, both sides ready.  Writes the keys of the world's regions.  *link is zeroed
 * first; after BELL_OK, and only then, the caller calls bell_verbs_link_close. */
enum bell_status bell_verbs_link_open(struct bell_verbs_link *link, struct bell_world *world,
                                      const struct bell_machine *machine, uint64_t bound_ms,
                                      struct bell_error *err) BELL_MUST_USE;
void bell_verbs_link_close(struct bell_verbs_link *link);

static inline struct bell_verbs_queue *bell_verbs_link_queue(const struct bell_verbs_link *link, uint32_t rank,
                                                             uint32_t queue)
{
    return link->queue + (size_t)rank * link->world->queues + queue;
}

#endif
