/* SPDX-License-Identifier: Apache-2.0
 * One kernel an ordering, each posting one 8 B inline put by the only lane of its queue; test_ptx.sh reads what nvcc
 * makes of the code between the two marks.  The queue is never full (flow: none), so that no poll is in between. */
#include "core/client.h"

static __device__ __forceinline__ void post(enum bell_ordering ordering, struct bell_sq sq,
                                            struct bell_wqe_request request, uint64_t *out)
{
    struct bell_lane lane = {};
    struct bell_stack stack = {};
    struct bell_completion done = {};
    struct bell_sq_words words = *sq.words;
    uint64_t value = out[0], end = 0;
    lane.is_private = true; /* one owner: the indices are in registers */
    stack.ordering = ordering;
    stack.sharing = BELL_SHARING_OWNER;
    stack.flow = BELL_FLOW_NONE;
    sq.words = &words;
    sq.mailbox = NULL;
    sq.is_dc = false;
    sq.memory = sq.words_memory = BELL_MEMORY_GPU;
    request.opcode = BELL_WQE_WRITE;
    request.opmod = 0;
    request.bytes = sizeof value;
    request.inline_data = &value;
    asm volatile("// bell begin" ::: "memory");
    enum bell_status s = bell_sq_put(&lane, &sq, &stack, &request, 1, &end, &done);
    asm volatile("// bell end" ::: "memory");
    out[1] = words.reserved;
    out[2] = end;
    out[3] = s;
}

#define POST(name, ordering)                                                                                           \
    extern "C" __global__ void post_##name(struct bell_sq sq, struct bell_wqe_request request, uint64_t *out)         \
    {                                                                                                                  \
        post(ordering, sq, request, out);                                                                              \
    }

POST(none, BELL_ORDERING_NONE)
POST(gpu_fence, BELL_ORDERING_GPU_FENCE)
POST(gpu_fence_dbrec, BELL_ORDERING_GPU_FENCE_DBREC)
POST(gpu_release, BELL_ORDERING_GPU_RELEASE)
POST(threadfence, BELL_ORDERING_THREADFENCE)
POST(sys_release, BELL_ORDERING_SYS_RELEASE)
POST(sys_fence, BELL_ORDERING_SYS_FENCE)

/* A probe's background asks whether it may stop: a word that another lane writes, also where the queue is its own. */
extern "C" __global__ void post_is_done(struct bell_client client, uint64_t *out)
{
    struct bell_lane lane = {};
    lane.is_private = true;
    client.is_background = true;
    asm volatile("// bell begin" ::: "memory");
    out[0] = bell_client_is_done(&lane, &client, 0);
    asm volatile("// bell end" ::: "memory");
}

static_assert(BELL_ORDERINGS == 7, "an ordering is missing above and in test_ptx.sh");
