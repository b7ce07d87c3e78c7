// SPDX-License-Identifier: Apache-2.0
// The kernels that run lanes.  Timed ones are compiled for each ordering, sharing and proxy protocol, so that an
// ordering is exactly its memory operations; a traced one reads the stack as it goes.
#include "hw/cuda/lane.cuh"

template <int SUBMIT, int ORDERING, int SHARING, int PROTOCOL>
__global__ void timed(const __grid_constant__ struct bell_cuda_lanes a)
{
    struct bell_stack stack = a.stack;
    stack.submit = SUBMIT;
    stack.ordering = ORDERING;
    stack.sharing = SHARING;
    stack.protocol = PROTOCOL;
    bell_cuda_live(&a, &stack, false);
}

__global__ void traced(const __grid_constant__ struct bell_cuda_lanes a)
{
    struct bell_stack stack = a.stack;
    bell_cuda_live(&a, &stack, true);
}

#define GPU(ordering, sharing) (const void *)timed<BELL_SUBMIT_GPU, ordering, sharing, BELL_PROTOCOL_BASELINE>
#define ALL_SHARINGS(ordering)                                                                                         \
    { GPU(ordering, BELL_SHARING_OWNER), GPU(ordering, BELL_SHARING_ORDERED),                                          \
      GPU(ordering, BELL_SHARING_COOPERATIVE), GPU(ordering, BELL_SHARING_LOCKED) }
#define PROXY(protocol) (const void *)timed<BELL_SUBMIT_PROXY, BELL_ORDERING_NONE, BELL_SHARING_OWNER, protocol>

const void *bell_cuda_lanes_kernel(const struct bell_stack *stack, bool is_traced)
{
    static const void *const by_gpu[BELL_ORDERINGS][4] = {
        ALL_SHARINGS(BELL_ORDERING_NONE),       ALL_SHARINGS(BELL_ORDERING_GPU_FENCE),
        ALL_SHARINGS(BELL_ORDERING_GPU_FENCE_DBREC), ALL_SHARINGS(BELL_ORDERING_GPU_RELEASE),
        ALL_SHARINGS(BELL_ORDERING_THREADFENCE), ALL_SHARINGS(BELL_ORDERING_SYS_RELEASE),
        ALL_SHARINGS(BELL_ORDERING_SYS_FENCE),
    };
    static const void *const by_proxy[2] = { PROXY(BELL_PROTOCOL_BASELINE), PROXY(BELL_PROTOCOL_TUNED) };
    if (is_traced) return (const void *)traced;
    return stack->submit == BELL_SUBMIT_PROXY ? by_proxy[stack->protocol] : by_gpu[stack->ordering][stack->sharing];
}
