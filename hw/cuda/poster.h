/* SPDX-License-Identifier: Apache-2.0
 * GPUs as posters of executor mlx5: their memory, registers mapped for them, and lanes that are GPU threads. */
#ifndef BELL_HW_CUDA_POSTER_H
#define BELL_HW_CUDA_POSTER_H

#include "hw/mlx5/ground.h"

BELL_EXTERN_C_BEGIN

struct bell_cuda_poster;

/* The machine's gpu for rank 0, its peer_gpu for rank 1.  On BELL_OK the caller calls bell_cuda_poster_close.
 * BELL_UNSUPPORTED and one sentence: there is no such GPU.  BELL_NO_MEMORY. */
enum bell_status bell_cuda_poster_open(const struct bell_machine *machine, struct bell_cuda_poster **poster,
                                       struct bell_error *err) BELL_MUST_USE;

/* Fill in ground->site and ground->lanes, which last as long as the poster.  Payload lies in GPU memory. */
void bell_cuda_poster_ground(struct bell_cuda_poster *poster, struct bell_mlx5_ground *ground);

/* For tests without a NIC: a software NIC on each GPU serves the queues that the lanes post to. */
void bell_cuda_poster_serve(struct bell_cuda_poster *poster);

void bell_cuda_poster_close(struct bell_cuda_poster *poster);

BELL_EXTERN_C_END

#endif
