/* SPDX-License-Identifier: Apache-2.0
 * The GPU side of a run, both ranks: open, place, run and fetch.  One thread calls. */
#ifndef BELL_HW_CUDA_PAIR_H
#define BELL_HW_CUDA_PAIR_H

#include "hw/cuda/rank.h"

struct bell_gpu_pair {
    struct bell_gpu_job job;
    struct bell_gpu_rank rank[BELL_RANKS];
    bool is_registered; /* the world's arena, with CUDA */
};

/* Is there a GPU?  BELL_UNSUPPORTED, and one sentence after "executor NAME: " that says why not. */
enum bell_status bell_gpu_probe(const char *name, struct bell_error *err) BELL_MUST_USE;

/* A group of `share` lanes that posts together must be one warp's part, or a CTA. */
enum bell_status bell_gpu_check_share(uint32_t share, struct bell_error *err) BELL_MUST_USE;

/* The machine's gpu for rank 0, its peer_gpu for rank 1.  Whatever comes back, the caller calls bell_gpu_pair_close. */
enum bell_status bell_gpu_pair_open(struct bell_gpu_pair *pair, const struct bell_machine *machine,
                                    struct bell_error *err) BELL_MUST_USE;

/* *job but for `common` is the caller's; its world outlives the pair or is taken off by bell_gpu_pair_leave.  Pins the
 * world's memory, moves parts of it to the GPUs and makes the kernels' arguments. */
enum bell_status bell_gpu_pair_place(struct bell_gpu_pair *pair, const struct bell_gpu_job *job,
                                     struct bell_error *err) BELL_MUST_USE;

/* Run all kernels until they have ended; every wait of a lane is bounded, and so is this.  Others may set *stop: the
 * lanes leave.  When a lane or NIC queue fails and *stop was 0, it becomes 1, and *who and *status say which and how;
 * *who is good until bell_gpu_pair_leave.  Anything but BELL_OK: CUDA failed, *stop is 1. */
enum bell_status bell_gpu_pair_run(struct bell_gpu_pair *pair, uint32_t *stop, struct bell_lane_id *who,
                                   enum bell_status *status, struct bell_error *err) BELL_MUST_USE;

/* Bring the world back to host memory, samples to *result. */
enum bell_status bell_gpu_pair_fetch(struct bell_gpu_pair *pair, struct bell_result *result,
                                     struct bell_error *err) BELL_MUST_USE;

/* Let go of the world; also after a failure, and more than once. */
void bell_gpu_pair_leave(struct bell_gpu_pair *pair);

void bell_gpu_pair_close(struct bell_gpu_pair *pair);

#endif
