/* SPDX-License-Identifier: Apache-2.0
 * A world whose queues are a device's: world, device, registered memory, queues, targets; set up and taken down. */
#ifndef BELL_HW_MLX5_SCENE_H
#define BELL_HW_MLX5_SCENE_H

#include "core/exec.h"
#include "core/world.h"
#include "hw/mlx5/queue.h"
#include "hw/mlx5/run.h"

BELL_EXTERN_C_BEGIN

/* Source or target of a rank, when it does not lie in the arena. */
struct bell_mlx5_payload {
    const struct bell_mlx5_memory *memory; /* NULL: it does */
    struct bell_mlx5_block block;
    uint8_t *home; /* its place in the arena */
};

struct bell_mlx5_scene {
    struct bell_stack stack; /* the run's, but that the host rings where the register was refused */
    struct bell_world world;
    struct bell_mlx5_device device;
    void *arena;
    struct bell_mlx5_payload payload[2 * BELL_RANKS]; /* as mr */
    void *mr[2 * BELL_RANKS];              /* source and target of each rank */
    void *dct[BELL_RANKS];                 /* DC */
    uint32_t dct_number[BELL_RANKS];
    struct bell_mlx5_queue *queue;         /* rank by rank, `queues` each */
    uint32_t queues;                       /* of a rank */
};

/* On BELL_OK every queue of the world posts to the device, the regions carry the device's keys, and the caller calls
 * bell_mlx5_scene_close. */
enum bell_status bell_mlx5_scene_open(struct bell_mlx5_scene *scene, const struct bell_mlx5_ground *ground,
                                      const struct bell_run *run, struct bell_error *err) BELL_MUST_USE;

/* After a run whose puts are all complete: payload back to the arena.  BELL_IO. */
enum bell_status bell_mlx5_scene_fetch(struct bell_mlx5_scene *scene, struct bell_error *err) BELL_MUST_USE;

void bell_mlx5_scene_close(struct bell_mlx5_scene *scene);

static inline struct bell_mlx5_queue *bell_mlx5_scene_queue(const struct bell_mlx5_scene *scene, uint32_t rank,
                                                            uint32_t queue)
{
    return scene->queue + (size_t)rank * scene->queues + queue;
}

BELL_EXTERN_C_END

#endif
