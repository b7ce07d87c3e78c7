/* SPDX-License-Identifier: Apache-2.0
 * What the device programs share: one queue in pinned host memory that a GPU thread fills and the NIC thread serves,
 * the run of one case, its checks, and how its times are printed. */
#ifndef BELL_TESTS_DEVICE_RIG_H
#define BELL_TESTS_DEVICE_RIG_H

#include "tests/device/nic_thread.h"

#include <cuda_runtime.h>

#define RIG_STRIDE 64u /* bytes from one put's payload to the next, in source and target */
#define RIG_DEPTH 256u /* of the queue, in 64 B blocks */
#define RIG_QPN 0xabcdeu
#define RIG_LKEY 0x1001u
#define RIG_RKEY 0x2002u

enum rig_status { RIG_OK, RIG_TIMEOUT, RIG_CQE_ERROR, RIG_POST_FAILED };

/* Written by the posting thread. */
struct rig_outcome {
    uint64_t completed; /* puts whose completion it saw */
    int32_t status;     /* enum rig_status */
    int32_t detail;     /* what the library returned */
};

/* What a posting kernel is told.  Put i takes bytes i * RIG_STRIDE of source to the same place of target. */
struct rig_post {
    uint8_t *source, *target;
    uint32_t lkey, rkey; /* host order */
    uint32_t bytes;      /* of a put */
    uint32_t puts;
    uint32_t window;     /* puts posted before their completions are awaited */
    uint64_t bound_ns;   /* of a wait for a completion */
    uint64_t *issue;     /* [puts] SM cycles from before the put to after it */
    uint64_t *total;     /* [puts] the same to its completion; 0 unless window is 1 */
    rig_outcome *outcome;
};

/* One row of the table. */
struct rig_case {
    const char *name;
    bool is_inline;
    uint32_t bytes, puts, window;
    enum bell_nic_start start;
    bool has_mailbox; /* a CPU rings: the kernel writes a producer index there */
    /* Prepare what the library keeps about the queue, start the kernel, and say after it whether that is consistent
     * with `puts` puts; NULL: nothing to say. */
    void (*launch)(const struct rig_case *c, const struct bell_device_queue *queue, const struct rig_post *post);
    const char *(*check)(const struct rig_case *c);
};

struct rig_times {
    double issue_p50_ns, issue_p99_ns, total_p50_ns; /* total: 0 unless window is 1 */
};

/* NULL when a GPU is there that these programs were compiled for; else why not, in words. */
const char *rig_probe(void);

/* Memory for `puts` puts, the clock's rate.  Exits with a message when CUDA fails, as all of these do. */
void rig_open(uint32_t puts);
void rig_close(void);

/* Print a line of what is used, and the head of the table. */
void rig_print_head(void);

/* Run a case, check it, print its row.  False, after a line that says what was wrong: a check failed. */
bool rig_run(const struct rig_case *c, struct rig_times *times);

/* Stop the program with a message unless `e` is success. */
void rig_cuda(cudaError_t e, const char *what);

#ifdef __CUDACC__
static __device__ __forceinline__ uint64_t rig_cycles()
{
    uint64_t t;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(t)::"memory");
    return t;
}

static __device__ __forceinline__ uint64_t rig_nanoseconds()
{
    uint64_t t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
    return t;
}

/* Does a wait go on?  Looks at the clock once in 64 turns. */
static __device__ __forceinline__ bool rig_may_wait(uint32_t *turn, uint64_t *end_ns, uint64_t bound_ns)
{
    if (++*turn % 64 != 0) return true;
    uint64_t now_ns = rig_nanoseconds();
    if (*end_ns == 0) *end_ns = now_ns + bound_ns;
    return now_ns < *end_ns;
}
#endif

#endif
