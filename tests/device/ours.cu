/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/device/ours.h"

#include "core/sq.h"

namespace
{

/* What one lane keeps about its queue, in GPU memory, where DOCA keeps its indices too. */
struct ours_state {
    struct bell_sq_words words;
    uint64_t span[RIG_DEPTH];
    struct bell_cuda_common common; /* nobody stops anybody here */
};

ours_state *state; /* GPU memory */

/* As executor cuda runs a lane: descriptor and indices in registers, the indices written back at the end. */
template <bool INLINE> __global__ void post_ours(struct bell_sq sq, ours_state *own, struct rig_post p)
{
    struct bell_lane lane = {};
    struct bell_stack stack = {};
    struct bell_completion done = {};
    struct bell_sq_words words = own->words;
    struct rig_outcome o = { 0, RIG_OK, 0 };
    lane.common = &own->common;
    lane.id.group_size = 1;
    lane.bound_ns = p.bound_ns;
    lane.is_private = true;
    stack.ordering = BELL_ORDERING_GPU_FENCE;
    stack.sharing = BELL_SHARING_OWNER;
    stack.flow = BELL_FLOW_POLL;
    sq.words = &words;
    sq.mailbox = NULL; /* these two are constants here, as in the executor's kernels */
    sq.is_dc = false;
    for (uint64_t put = 0; put < p.puts && o.status == RIG_OK; put++) {
        struct bell_wqe_request r = {};
        uint64_t value = bell_device_word(put, 0), end = 0, start = rig_cycles();
        r.opcode = BELL_WQE_WRITE;
        r.raddr = (uint64_t)(p.target + put * RIG_STRIDE);
        r.laddr = (uint64_t)(p.source + put * RIG_STRIDE);
        r.rkey = p.rkey;
        r.lkey = p.lkey;
        r.inline_data = INLINE ? &value : NULL;
        r.bytes = INLINE ? (uint32_t)sizeof value : p.bytes;
        enum bell_status s = bell_sq_put(&lane, &sq, &stack, &r, 1, &end, &done);
        p.issue[put] = rig_cycles() - start;
        o.status = s == BELL_OK ? RIG_OK : RIG_POST_FAILED;
        if (s == BELL_OK && ((put + 1) % p.window == 0 || put + 1 == p.puts)) {
            s = bell_sq_quiet(&lane, &sq, BELL_SHARING_OWNER, end, &done);
            if (p.window == 1) p.total[put] = rig_cycles() - start;
            o.status = s == BELL_OK ? RIG_OK : s == BELL_CQE_ERROR ? RIG_CQE_ERROR : RIG_TIMEOUT;
            if (s == BELL_OK) o.completed = end;
        }
        o.detail = s;
    }
    own->words = words;
    *p.outcome = o;
}

struct bell_sq sq_of(const struct bell_device_queue *q)
{
    struct bell_sq sq;
    memset(&sq, 0, sizeof sq);
    sq.wqe = q->wqe;
    sq.span = state->span;
    sq.cqe = q->cqe;
    sq.dbrec = q->dbrec;
    sq.doorbell = q->doorbell;
    sq.words = &state->words;
    sq.key = q->cqe;
    sq.depth = sq.cq_depth = q->depth;
    while (1u << sq.cq_shift < q->depth)
        sq.cq_shift++;
    sq.qpn = q->qpn;
    sq.memory = BELL_MEMORY_HOST;
    sq.words_memory = BELL_MEMORY_GPU;
    return sq;
}

template <bool INLINE> void launch(const struct bell_device_queue *queue, const struct rig_post *post)
{
    rig_cuda(cudaMemset(state, 0, sizeof *state), "cudaMemset");
    post_ours<INLINE><<<1, 1>>>(sq_of(queue), state, *post);
}

} // namespace

void ours_open(void)
{
    rig_cuda(cudaMalloc(&state, sizeof *state), "cudaMalloc");
}

void ours_close(void)
{
    rig_cuda(cudaFree(state), "cudaFree");
}

void ours_launch_inline(const struct rig_case *, const struct bell_device_queue *queue, const struct rig_post *post)
{
    launch<true>(queue, post);
}

void ours_launch_pointer(const struct rig_case *, const struct bell_device_queue *queue, const struct rig_post *post)
{
    launch<false>(queue, post);
}

const char *ours_check(const struct rig_case *c)
{
    struct bell_sq_words w;
    rig_cuda(cudaMemcpy(&w, &state->words, sizeof w, cudaMemcpyDefault), "cudaMemcpy");
    if (w.reserved != c->puts || w.completed != c->puts || w.cq_index != c->puts)
        return "reserved, completed and CQ index of the queue are not the puts";
    return NULL;
}
