/* SPDX-License-Identifier: Apache-2.0
 * What host and device of executor cuda have in common: the arguments of its kernels.  Pointers are good on both sides
 * unless said otherwise: host memory is pinned and mapped. */
#ifndef BELL_HW_CUDA_LAUNCH_H
#define BELL_HW_CUDA_LAUNCH_H

#include "core/event.h"
#include "core/program.h"

BELL_EXTERN_C_BEGIN

struct bell_client;
struct bell_nicq;

/* In pinned host memory.  Each word is written by one side. */
struct bell_cuda_common {
    uint32_t stop;          /* host: somebody failed, all lanes leave */
    uint32_t pad[31];
    uint32_t failed;        /* GPU: a lane failed; its struct bell_cuda_end says how */
};

/* Events of one lane, in GPU memory.  count goes on past capacity, to tell how many were lost. */
struct bell_cuda_log {
    struct bell_event *event;
    uint32_t capacity, count;
};

/* How a lane ended; in pinned host memory, one a lane. */
struct bell_cuda_end {
    uint32_t status; /* enum bell_status */
    uint32_t events; /* noted, of which the log holds as many as fit */
    char waited_for[48];
};

/* One rank's lanes; one thread each, in order. */
struct bell_cuda_lanes {
    struct bell_stack stack;
    struct bell_program program;
    struct bell_client *client;      /* of the rank; what a lane changes is written back when it ends */
    struct bell_cuda_common *common;
    struct bell_cuda_end *end;       /* one a lane */
    uint32_t *done;                  /* in GPU memory: how many lanes have ended */
    struct bell_event *event;        /* in GPU memory, capacity a lane; NULL: a timed run */
    uint64_t *issue_ps, *total_ps;   /* in GPU memory, iterations a counted lane; NULL: not rank 0 */
    uint64_t ps_per_kcycle;
    uint64_t bound_ns;
    uint32_t capacity;
    uint32_t rank, lanes, share;     /* share: lanes of a cooperative group, else 1 */
};

/* The NIC of one rank on the GPU: one thread a queue. */
struct bell_cuda_nic {
    struct bell_nicq *nicq;          /* queues of them; device copies, in GPU memory */
    struct bell_cuda_common *common;
    struct bell_event *event;        /* as above, for each queue */
    struct bell_cuda_end *end;       /* one a queue */
    uint64_t ps_per_kcycle;
    uint32_t capacity, queues, rank;
    uint32_t first_lane;             /* lane number of queue 0's NIC, in events */
    uint32_t lanes;
    uint32_t *done;                  /* in GPU memory: when it reaches lanes, there is nothing more to come */
};

/* The kernels, for cudaLaunchKernel; the one argument is the struct above, by value. */
const void *bell_cuda_lanes_kernel(const struct bell_stack *stack, bool is_traced);
const void *bell_cuda_nic_kernel(bool is_traced);

/* Spin for `ns`; out[0] cycles and out[1] nanoseconds that went by (pinned host memory). Argument: struct below. */
struct bell_cuda_clock {
    uint64_t *out;
    uint64_t ns;
};
const void *bell_cuda_clock_kernel(void);

/* Answers `count` times: waits until *ask is i (1..count), then stores globaltimer in *answer and i in *answered. */
struct bell_cuda_echo {
    volatile uint64_t *ask, *answer, *answered;
    uint64_t count, bound_ns;
};
const void *bell_cuda_echo_kernel(void);

BELL_EXTERN_C_END

#endif
