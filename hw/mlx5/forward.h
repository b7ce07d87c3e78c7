/* SPDX-License-Identifier: Apache-2.0
 * The host's part where a poster may not store to the register: it stores the doorbell's 8 bytes to a word in host
 * memory instead, and a CPU thread passes them on. */
#ifndef BELL_HW_MLX5_FORWARD_H
#define BELL_HW_MLX5_FORWARD_H

#include "hw/mlx5/queue.h"

struct bell_mlx5_forwarded {
    const uint64_t *word; /* the poster's; its release store pairs with the acquire here */
    uint32_t *dbrec;      /* send word of the doorbell record */
    uint64_t *doorbell;   /* the register */
    uint16_t seen;        /* low bits of the producer index rung last */
};

/* False: the queue's poster rings itself. */
static inline bool bell_mlx5_forwarded_of(const struct bell_mlx5_queue *q, struct bell_mlx5_forwarded *f)
{
    if (!q->word_memory)
        return false;
    f->word = (const uint64_t *)(const void *)q->word.host;
    f->dbrec = (uint32_t *)(void *)(q->record.block.host + (q->binding.dbrec - q->record.block.address));
    f->doorbell = q->uar.reg;
    f->seen = 0;
    return true;
}

/* Pass on what is new; false: nothing.  A record that the poster already moved, or moved further, is left alone. */
static inline bool bell_mlx5_forward(struct bell_mlx5_forwarded *f)
{
    uint64_t value = __atomic_load_n(f->word, __ATOMIC_ACQUIRE);
    uint16_t index = (uint16_t)bell_doorbell_index(value);
    if (index == f->seen)
        return false;
    uint16_t recorded = (uint16_t)bell_dbrec_index(__atomic_load_n(f->dbrec, __ATOMIC_RELAXED));
    if ((int16_t)(uint16_t)(index - recorded) > 0)
        __atomic_store_n(f->dbrec, bell_dbrec_value(index), __ATOMIC_RELEASE);
    bell_mlx5_ring(f->doorbell, value);
    f->seen = index;
    return true;
}

#endif
