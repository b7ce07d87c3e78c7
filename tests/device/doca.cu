/* SPDX-License-Identifier: Apache-2.0
 * NCCL's device-side DOCA GPUNetIO code, as installed, posts puts that Bellwether's software NIC serves; then
 * Bellwether's own queue code does the same in the same process and memory.  Exit 77: no GPU. */
#include "tests/device/ours.h"
#include "tests/device/rig.h"

#include <cuda.h> /* without it the headers think that CUDA is too old for st.mmio */
/* NCCL defines these two before it includes the headers of 2.30; earlier ones do not use them. */
#ifndef NVCC_PRAGMA_UNROLL
#define NVCC_PRAGMA_UNROLL(n) _Pragma("unroll")
#endif
#ifndef NVCC_PRAGMA_UNROLL_DISABLED
#define NVCC_PRAGMA_UNROLL_DISABLED _Pragma("unroll 1")
#endif
#include <doca_gpunetio_device.h>

#include <cstdio>
#include <cstring>

namespace
{

typedef struct doca_gpu_dev_verbs_qp doca_qp;
typedef struct doca_gpu_dev_verbs_cq doca_cq;
typedef enum doca_gpu_dev_verbs_resource_sharing_mode doca_sharing;
typedef enum doca_gpu_dev_verbs_nic_handler doca_handler;

/* The two layouts that this program knows: of NCCL 2.28.9, and of 2.30.7 with a word more before the lock and 8 bytes
 * more at the end of a CQ. */
#ifdef BELL_DOCA_HAS_5DS
const size_t later = 4, cq_bytes = 64;
#else
const size_t later = 0, cq_bytes = 56;
#endif
static_assert(offsetof(doca_qp, sq_rsvd_index) == 0, "reserved");
static_assert(offsetof(doca_qp, sq_ready_index) == 8, "ready");
static_assert(offsetof(doca_qp, sq_wqe_pi) == 16, "posted");
static_assert(offsetof(doca_qp, sq_num) == 24, "QP number");
static_assert(offsetof(doca_qp, sq_num_shift8) == 28, "QP number << 8");
static_assert(offsetof(doca_qp, sq_num_shift8_be) == 32, "the same, big-endian");
static_assert(offsetof(doca_qp, sq_num_shift8_be_1ds) == 36, "the same with DS 1");
static_assert(offsetof(doca_qp, sq_num_shift8_be_4ds) == 48, "the same with DS 4");
static_assert(offsetof(doca_qp, sq_lock) == 52 + later, "lock");
static_assert(offsetof(doca_qp, sq_wqe_num) == 56 + later, "depth");
static_assert(offsetof(doca_qp, sq_wqe_mask) == 58 + later, "mask");
static_assert(offsetof(doca_qp, sq_wqe_daddr) == 64, "SQ");
static_assert(offsetof(doca_qp, sq_dbrec) == 72, "doorbell record");
static_assert(offsetof(doca_qp, sq_db) == 80, "doorbell");
static_assert(offsetof(doca_qp, cq_sq) == 160 && sizeof(doca_cq) == cq_bytes, "CQ");
static_assert(offsetof(doca_cq, cqe_num) == 12 && offsetof(doca_cq, cqe_ci) == 24, "CQ");
static_assert(offsetof(doca_cq, cqe_mask) == 32 && offsetof(doca_cq, cqe_rsvd) == 40, "CQ");
static_assert(offsetof(doca_qp, nic_handler) == 160 + 2 * cq_bytes, "handler");
static_assert(sizeof(doca_qp) == 168 + 2 * cq_bytes, "size");
static_assert(DOCA_GPUNETIO_VERBS_MKEY_SWAPPED == 1, "keys are big-endian");

doca_qp *device_qp; /* GPU memory */

/* What DOCA's host library would have filled in. */
doca_qp qp_of(const struct bell_device_queue *q, doca_handler handler)
{
    doca_qp qp;
    uint32_t shifted = q->qpn << 8;
    memset(&qp, 0, sizeof qp);
    qp.sq_num = q->qpn;
    qp.sq_num_shift8 = shifted;
    qp.sq_num_shift8_be = bell_be32(shifted);
    qp.sq_num_shift8_be_1ds = bell_be32(shifted | 1);
    qp.sq_num_shift8_be_2ds = bell_be32(shifted | 2);
    qp.sq_num_shift8_be_3ds = bell_be32(shifted | 3);
    qp.sq_num_shift8_be_4ds = bell_be32(shifted | 4);
#ifdef BELL_DOCA_HAS_5DS
    qp.sq_num_shift8_be_5ds = bell_be32(shifted | 5);
#endif
    qp.sq_wqe_num = (uint16_t)q->depth;
    qp.sq_wqe_mask = (uint16_t)(q->depth - 1);
    qp.sq_wqe_daddr = q->wqe;
    qp.sq_dbrec = (decltype(qp.sq_dbrec))q->dbrec;
    qp.sq_db = q->mailbox ? q->mailbox : q->doorbell;
    qp.cq_sq.cqe_daddr = (uint8_t *)q->cqe;
    qp.cq_sq.cq_num = q->qpn;
    qp.cq_sq.cqe_num = q->depth;
    qp.cq_sq.cqe_mask = q->depth - 1;
    qp.cq_sq.cqe_size = BELL_CQE_BYTES;
    qp.cq_sq.mem_type = DOCA_GPUNETIO_VERBS_MEM_TYPE_HOST;
    qp.nic_handler = handler;
    qp.mem_type = DOCA_GPUNETIO_VERBS_MEM_TYPE_HOST;
    return qp;
}

template <doca_sharing SHARING>
__device__ int await(doca_qp *qp, doca_gpu_dev_verbs_ticket_t ticket, uint64_t bound_ns, struct rig_outcome *o)
{
    uint32_t turn = 0;
    uint64_t end_ns = 0;
    int s;
    do {
        s = doca_gpu_dev_verbs_poll_one_cq_at<SHARING>(doca_gpu_dev_verbs_qp_get_cq_sq(qp), ticket);
    } while (s == EBUSY && rig_may_wait(&turn, &end_ns, bound_ns));
    o->detail = s;
    return s == 0 ? RIG_OK : s == EBUSY ? RIG_TIMEOUT : RIG_CQE_ERROR;
}

template <bool INLINE, doca_sharing SHARING, doca_handler HANDLER>
__global__ void post_doca(doca_qp *qp, struct rig_post p)
{
    struct rig_outcome o = { 0, RIG_OK, 0 };
    doca_gpu_dev_verbs_ticket_t ticket = 0;
    for (uint64_t put = 0; put < p.puts && o.status == RIG_OK; put++) {
        struct doca_gpu_dev_verbs_addr to = { (uint64_t)(p.target + put * RIG_STRIDE), bell_be32(p.rkey) };
        struct doca_gpu_dev_verbs_addr from = { (uint64_t)(p.source + put * RIG_STRIDE), bell_be32(p.lkey) };
        uint64_t value = bell_device_word(put, 0), start = rig_cycles();
        if (INLINE)
            doca_gpu_dev_verbs_p<uint64_t, SHARING, HANDLER>(qp, to, value, &ticket);
        else
            doca_gpu_dev_verbs_put<SHARING, HANDLER>(qp, to, from, p.bytes, &ticket);
        p.issue[put] = rig_cycles() - start;
        if ((put + 1) % p.window != 0 && put + 1 != p.puts) continue;
        o.status = await<SHARING>(qp, ticket, p.bound_ns, &o);
        if (p.window == 1) p.total[put] = rig_cycles() - start;
        if (o.status == RIG_OK) o.completed = ticket + 1;
    }
    *p.outcome = o;
}

template <bool INLINE, doca_sharing SHARING, doca_handler HANDLER>
void launch(const struct rig_case *, const struct bell_device_queue *queue, const struct rig_post *post)
{
    doca_qp qp = qp_of(queue, HANDLER);
    rig_cuda(cudaMemcpy(device_qp, &qp, sizeof qp, cudaMemcpyDefault), "cudaMemcpy");
    post_doca<INLINE, SHARING, HANDLER><<<1, 1>>>(device_qp, *post);
}

/* DOCA's own indices after the run. */
const char *check(const struct rig_case *c)
{
    doca_qp qp;
    rig_cuda(cudaMemcpy(&qp, device_qp, sizeof qp, cudaMemcpyDefault), "cudaMemcpy");
    if (qp.sq_rsvd_index != c->puts || qp.sq_ready_index != c->puts)
        return "reserved and ready indices of the QP are not the puts";
    if (qp.cq_sq.cqe_ci != c->puts) return "consumer index of the CQ is not the puts";
    return qp.sq_lock == 0 ? NULL : "the QP's lock is still held";
}

const doca_sharing shared = DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU;
const doca_sharing exclusive = DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE;
const doca_handler sm_db = DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB;
const doca_handler proxy = DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY;

const enum bell_nic_start at_doorbell = BELL_NIC_START_DOORBELL, at_record = BELL_NIC_START_DBREC;
const enum bell_nic_start at_index = BELL_NIC_START_MAILBOX; /* in the word that DOCA's CPU_PROXY writes */
const uint32_t few = 4096, many = 70000; /* many: indices past 2^16 */

const struct rig_case cases[] = {
    { "DOCA p, shared", true, 8, few, 1, at_doorbell, false, launch<true, shared, sm_db>, check },
    { "DOCA p, shared, NIC starts at the record", true, 8, few, 1, at_record, false, launch<true, shared, sm_db>,
      check },
    { "DOCA p, exclusive", true, 8, few, 1, at_doorbell, false, launch<true, exclusive, sm_db>, check },
    { "DOCA put, shared", false, 8, few, 1, at_doorbell, false, launch<false, shared, sm_db>, check },
    { "DOCA put, shared", false, 64, few, 1, at_doorbell, false, launch<false, shared, sm_db>, check },
    { "DOCA p, shared, a stream", true, 8, many, 64, at_doorbell, false, launch<true, shared, sm_db>, check },
    { "DOCA p, shared, a CPU rings", true, 8, few, 1, at_doorbell, true, launch<true, shared, proxy>, check },
    { "DOCA p, shared, NIC reads the index", true, 8, few, 1, at_index, false, launch<true, shared, proxy>, check },
    { "DOCA put, shared, a CPU rings", false, 64, few, 1, at_doorbell, true, launch<false, shared, proxy>, check },
#ifdef BELL_DOCA_NO_DBR
    { "DOCA p, shared, no record", true, 8, few, 1, BELL_NIC_START_DBRLESS, false,
      launch<true, shared, BELL_DOCA_NO_DBR>, check },
#endif
    { "ours, inline, owner, gpu-fence", true, 8, few, 1, at_doorbell, false, ours_launch_inline, ours_check },
    { "ours, inline, NIC starts at the record", true, 8, few, 1, at_record, false, ours_launch_inline, ours_check },
    { "ours, pointer, owner, gpu-fence", false, 8, few, 1, at_doorbell, false, ours_launch_pointer, ours_check },
    { "ours, pointer, owner, gpu-fence", false, 64, few, 1, at_doorbell, false, ours_launch_pointer, ours_check },
    { "ours, inline, a stream", true, 8, many, 64, at_doorbell, false, ours_launch_inline, ours_check },
};
const size_t case_count = sizeof cases / sizeof cases[0];

/* Published: "GPU-Initiated Communication: Dissecting Down to the Bone", Table 3, platform P-IB. */
const double published_ours_us = 0.70, published_doca_us = 1.60;

void print_ratio(const struct rig_times *doca, const struct rig_times *ours)
{
    printf("\nissue of an 8 B inline put, p50: ours %.0f ns, DOCA %.0f ns, ratio %.2f; published: %.2f us, %.2f us, "
           "ratio %.2f\n",
           ours->issue_p50_ns, doca->issue_p50_ns, ours->issue_p50_ns / doca->issue_p50_ns, published_ours_us,
           published_doca_us, published_ours_us / published_doca_us);
    printf("what differs: here the queues are in pinned host memory, so WQE stores, record and fences cross PCIe, the\n"
           "doorbell is a word of host memory instead of a NIC register, and the NIC is a CPU thread; published:\n"
           "queues in GPU memory and a ConnectX NIC.  DOCA's queue is shared by the GPU (NCCL's choice), ours has\n"
           "one owner.  rings: producer indices the NIC took; early: of these, before the doorbell record said so.\n");
}

} // namespace

int main(void)
{
    struct rig_times times[case_count];
    size_t doca = case_count, ours = case_count, failed = 0;
    const char *why = rig_probe();
    if (why) {
        printf("skipped: %s\n", why);
        return 77;
    }
    rig_open(many);
    ours_open();
    rig_cuda(cudaMalloc(&device_qp, sizeof *device_qp), "cudaMalloc");
    rig_print_head();
    for (size_t i = 0; i < case_count; i++) {
        failed += !rig_run(&cases[i], &times[i]);
        if (cases[i].launch == cases[0].launch && doca == case_count) doca = i;
        if (cases[i].launch == ours_launch_inline && ours == case_count) ours = i;
    }
    print_ratio(&times[doca], &times[ours]);
    rig_cuda(cudaFree(device_qp), "cudaFree");
    ours_close();
    rig_close();
    printf("%zu cases, %zu failed\n", case_count, failed);
    return failed != 0;
}
