/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/cuda/poster.h"

#include "hw/cuda/memory.h"
#include "hw/cuda/pair.h"

#include <stdio.h>
#include <stdlib.h>

struct bell_cuda_poster {
    struct bell_gpu_pair pair;
    struct bell_mlx5_memory gpu[BELL_RANKS], pinned[BELL_RANKS];
    struct bell_mlx5_lanes lanes;
    bool has_nic;
};

static enum bell_status check(void *context, const struct bell_run *run, struct bell_error *err)
{
    (void)context;
    return bell_gpu_check_share(bell_program_group(run->program, run->stack), err);
}

static enum bell_status place(void *context, struct bell_world *world, const struct bell_run *run, uint64_t bound_ps,
                              struct bell_error *err)
{
    struct bell_cuda_poster *p = context;
    struct bell_gpu_job job = {
        .world = world, .run = run, .bound_ps = bound_ps, .has_nic = p->has_nic, .is_bound = true,
    };
    return bell_gpu_pair_place(&p->pair, &job, err);
}

static enum bell_status run_lanes(void *context, uint32_t *stop, struct bell_lane_id *who, enum bell_status *status,
                                  struct bell_error *err)
{
    struct bell_cuda_poster *p = context;
    return bell_gpu_pair_run(&p->pair, stop, who, status, err);
}

static enum bell_status fetch(void *context, struct bell_result *result, struct bell_error *err)
{
    struct bell_cuda_poster *p = context;
    const struct bell_gpu *g = &p->pair.rank[0].gpu;
    (void)snprintf(result->processor, sizeof result->processor, "%.40s at %.0f MHz", g->properties.name, g->clock_mhz);
    return bell_gpu_pair_fetch(&p->pair, result, err);
}

static void leave(void *context)
{
    struct bell_cuda_poster *p = context;
    bell_gpu_pair_leave(&p->pair);
}

enum bell_status bell_cuda_poster_open(const struct bell_machine *machine, struct bell_cuda_poster **poster,
                                       struct bell_error *err)
{
    enum bell_status s = bell_gpu_probe("mlx5", err);
    if (s != BELL_OK) return s;
    struct bell_cuda_poster *p = calloc(1, sizeof *p);
    if (!p) return bell_fail(err, BELL_NO_MEMORY, "out of memory");
    s = bell_gpu_pair_open(&p->pair, machine, err);
    if (s != BELL_OK) {
        bell_cuda_poster_close(p);
        return s;
    }
    for (uint32_t i = 0; i < BELL_RANKS; i++) {
        bell_gpu_memory(&p->pair.rank[i].gpu, &p->gpu[i]);
        bell_gpu_pinned_memory(&p->pair.rank[i].gpu, &p->pinned[i]);
    }
    p->lanes = (struct bell_mlx5_lanes){ p, check, place, run_lanes, fetch, leave };
    *poster = p;
    return BELL_OK;
}

void bell_cuda_poster_ground(struct bell_cuda_poster *p, struct bell_mlx5_ground *ground)
{
    for (uint32_t i = 0; i < BELL_RANKS; i++)
        ground->site[i] = (struct bell_mlx5_site){ &p->pinned[i], &p->gpu[i], &p->gpu[i] };
    ground->lanes = &p->lanes;
}

void bell_cuda_poster_serve(struct bell_cuda_poster *p)
{
    p->has_nic = true;
}

void bell_cuda_poster_close(struct bell_cuda_poster *p)
{
    bell_gpu_pair_close(&p->pair);
    free(p);
}
