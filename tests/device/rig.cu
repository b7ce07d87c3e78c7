/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/device/rig.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace
{

const uint32_t warm_up = 256; /* first puts of a case, left out of the percentiles */
const uint64_t wait_bound_ns = 5000000000u;
const uint8_t untouched = 0xee;

struct rig {
    uint32_t puts;
    uint8_t *arena; /* pinned, seen by CPU and GPU at one address */
    struct bell_device_queue queue;
    uint64_t *mailbox;
    rig_outcome *outcome;
    uint64_t *issue, *total; /* GPU memory */
    double cycles_per_ns;
    char gpu[256];
} rig;

/* Spin for bound_ns and say how many cycles that took. */
__global__ void calibrate(uint64_t bound_ns, uint64_t *cycles, uint64_t *ns)
{
    uint64_t c0 = rig_cycles(), t0 = rig_nanoseconds(), t1 = t0;
    while (t1 - t0 < bound_ns)
        t1 = rig_nanoseconds();
    *cycles = rig_cycles() - c0;
    *ns = t1 - t0;
}

double measure_clock()
{
    uint64_t *out, host[2] = { 0, 1 };
    rig_cuda(cudaMalloc(&out, sizeof host), "cudaMalloc");
    for (int i = 0; i < 2; i++) /* the first brings the clock up */
        calibrate<<<1, 1>>>(100000000, out, out + 1);
    rig_cuda(cudaMemcpy(host, out, sizeof host, cudaMemcpyDefault), "the clock kernel");
    rig_cuda(cudaFree(out), "cudaFree");
    return (double)host[0] / (double)host[1];
}

size_t payload_bytes()
{
    return (size_t)rig.puts * RIG_STRIDE;
}

/* Everything of a case from its start, so that nothing of an earlier one can pass for its result. */
void reset(const struct rig_case *c)
{
    struct bell_device_queue *q = &rig.queue;
    q->start = c->start;
    q->mailbox = c->has_mailbox ? rig.mailbox : NULL;
    bell_device_queue_reset(q);
    memset(q->target.address, untouched, payload_bytes() + RIG_STRIDE);
    for (uint64_t put = 0; put < rig.puts; put++)
        for (uint32_t w = 0; w < RIG_STRIDE / 8; w++) {
            uint64_t value = bell_device_word(put, w);
            memcpy(q->source.address + put * RIG_STRIDE + 8 * w, &value, 8);
        }
    memset(rig.outcome, 0, sizeof *rig.outcome);
    rig_cuda(cudaMemset(rig.issue, 0, rig.puts * 8), "cudaMemset");
    rig_cuda(cudaMemset(rig.total, 0, rig.puts * 8), "cudaMemset");
}

bool complain(const struct rig_case *c, const char *what, uint64_t is, uint64_t expected)
{
    fflush(stdout);
    fprintf(stderr, "%s: %s: %llu, expected %llu\n", c->name, what, (unsigned long long)is,
            (unsigned long long)expected);
    return false;
}

/* Each put's bytes are what was sent, and no other byte of the target was written. */
bool payload_is_right(const struct rig_case *c)
{
    for (uint64_t put = 0; put <= rig.puts; put++)
        for (uint32_t b = 0; b < RIG_STRIDE; b++) {
            uint8_t is = rig.queue.target.address[put * RIG_STRIDE + b];
            uint8_t expected = untouched;
            if (put < c->puts && b < c->bytes) {
                uint64_t word = bell_device_word(put, b / 8);
                expected = (uint8_t)(word >> b % 8 * 8);
            }
            if (is == expected) continue;
            fflush(stdout);
            fprintf(stderr, "%s: put %llu, byte %u of its place in the target: 0x%02x, expected 0x%02x\n", c->name,
                    (unsigned long long)put, b, is, expected);
            return false;
        }
    return true;
}

/* The last CQEs are still in the ring: each names its WQE, in order, with the owner bit of its lap. */
bool cq_is_right(const struct rig_case *c)
{
    uint32_t depth = rig.queue.depth;
    for (uint64_t n = c->puts > depth ? c->puts - depth : 0; n < c->puts; n++) {
        uint32_t tail = bell_cqe_tail(rig.queue.cqe + (n & (depth - 1)));
        uint32_t expected = bell_cqe_tail_make((uint16_t)n, BELL_CQE_REQ, (uint32_t)(n / depth) & 1);
        if (tail != expected) return complain(c, "last word of a CQE", bell_be32(tail), bell_be32(expected));
    }
    return true;
}

bool log_is_right(const struct rig_case *c, const struct bell_device_log *log)
{
    if (log->status != BELL_OK) return complain(c, "rung for more than the depth; status of the NIC", log->status, 0);
    if (log->bad_wqes) {
        fflush(stdout);
        fprintf(stderr, "%s: %llu WQEs with a syndrome; the first is 0x%02x (%s) at index %llu\n", c->name,
                (unsigned long long)log->bad_wqes, log->first_syndrome, bell_syndrome_text(log->first_syndrome),
                (unsigned long long)log->first_bad_index);
        return false;
    }
    if (log->wqes != c->puts) return complain(c, "WQEs", log->wqes, c->puts);
    if (log->cqes != c->puts) return complain(c, "CQEs", log->cqes, c->puts);
    if (log->inlined != (c->is_inline ? c->puts : 0))
        return complain(c, "WQEs with inline payload", log->inlined, c->is_inline ? c->puts : 0);
    uint64_t bytes = (uint64_t)c->puts * c->bytes;
    return log->payload_bytes == bytes || complain(c, "bytes placed", log->payload_bytes, bytes);
}

bool outcome_is_right(const struct rig_case *c)
{
    static const char *const text[] = { "all is well", "a completion did not come in time", "a completion was an error",
                                        "a put was refused" };
    const rig_outcome *o = rig.outcome;
    if (o->status != RIG_OK) {
        fflush(stdout);
        fprintf(stderr, "%s: on the GPU %s after %llu puts (%d)\n", c->name, text[o->status],
                (unsigned long long)o->completed, o->detail);
        return false;
    }
    return o->completed == c->puts || complain(c, "completions seen on the GPU", o->completed, c->puts);
}

double percentile_ns(uint64_t *device, uint32_t puts, uint32_t percent)
{
    std::vector<uint64_t> v(puts);
    rig_cuda(cudaMemcpy(v.data(), device, puts * sizeof v[0], cudaMemcpyDefault), "cudaMemcpy");
    std::vector<uint64_t> kept(v.begin() + (puts > 2 * warm_up ? warm_up : 0), v.end());
    std::sort(kept.begin(), kept.end());
    return (double)kept[(kept.size() - 1) * percent / 100] / rig.cycles_per_ns;
}

} // namespace

void rig_cuda(cudaError_t e, const char *what)
{
    if (e == cudaSuccess) return;
    fflush(stdout);
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(e));
    exit(1);
}

const char *rig_probe(void)
{
    static char why[200];
    cudaDeviceProp p;
    int devices = 0;
    cudaError_t e = cudaGetDeviceCount(&devices);
    if (e != cudaSuccess || devices == 0) {
        snprintf(why, sizeof why, "no GPU: %s", e == cudaSuccess ? "the driver lists none" : cudaGetErrorString(e));
        return why;
    }
    rig_cuda(cudaGetDeviceProperties(&p, 0), "cudaGetDeviceProperties");
    if (p.major != 9) {
        snprintf(why, sizeof why, "compiled for compute capability 9.0; %.99s has %d.%d", p.name, p.major, p.minor);
        return why;
    }
    return NULL;
}

/* The next `bytes` of the arena, from a line of its own on; before there is one, only the size counts. */
static uint8_t *take(size_t *used, size_t bytes)
{
    uint8_t *at = (uint8_t *)((uintptr_t)rig.arena + *used);
    *used += (bytes + 127) / 128 * 128;
    return at;
}

static size_t lay_out(void)
{
    struct bell_device_queue *q = &rig.queue;
    size_t used = 0;
    q->depth = RIG_DEPTH;
    q->qpn = RIG_QPN;
    q->wqe = take(&used, RIG_DEPTH * BELL_WQE_BLOCK_BYTES);
    q->cqe = (struct bell_cqe *)take(&used, RIG_DEPTH * BELL_CQE_BYTES);
    uint32_t *record = (uint32_t *)take(&used, 8);
    q->dbrec = record + 1; /* word 0 is the receive queue's */
    q->doorbell = (uint64_t *)take(&used, 8);
    rig.mailbox = (uint64_t *)take(&used, 8);
    rig.outcome = (rig_outcome *)take(&used, sizeof *rig.outcome);
    q->source.address = take(&used, payload_bytes());
    q->target.address = take(&used, payload_bytes() + RIG_STRIDE); /* a place more, to see that nothing lands there */
    q->source.size_bytes = q->target.size_bytes = payload_bytes();
    q->source.key = RIG_LKEY;
    q->target.key = RIG_RKEY;
    return used;
}

void rig_open(uint32_t puts)
{
    cudaDeviceProp p;
    void *seen;
    memset(&rig, 0, sizeof rig);
    rig.puts = puts;
    size_t size = lay_out();
    rig_cuda(cudaHostAlloc((void **)&rig.arena, size, cudaHostAllocPortable | cudaHostAllocMapped), "cudaHostAlloc");
    rig_cuda(cudaHostGetDevicePointer(&seen, rig.arena, 0), "cudaHostGetDevicePointer");
    if (seen != rig.arena) {
        fprintf(stderr, "pinned memory has another address on the GPU than on the CPU\n");
        exit(1);
    }
    (void)lay_out();
    rig_cuda(cudaMalloc(&rig.issue, puts * 8), "cudaMalloc");
    rig_cuda(cudaMalloc(&rig.total, puts * 8), "cudaMalloc");
    rig.cycles_per_ns = measure_clock();
    rig_cuda(cudaGetDeviceProperties(&p, 0), "cudaGetDeviceProperties");
    memcpy(rig.gpu, p.name, sizeof rig.gpu);
}

void rig_close(void)
{
    rig_cuda(cudaFree(rig.issue), "cudaFree");
    rig_cuda(cudaFree(rig.total), "cudaFree");
    rig_cuda(cudaFreeHost(rig.arena), "cudaFreeHost");
}

void rig_print_head(void)
{
    printf("%s, %.0f MHz measured.  One GPU thread posts; SQ, CQ, record, doorbell word and payload in pinned host\n"
           "memory; the NIC is a CPU thread.  ns; issue: one put call; seen: from its start to its completion.\n\n",
           rig.gpu, 1000 * rig.cycles_per_ns);
    printf("%-40s %6s %6s %6s  %9s %9s %9s  %6s %6s\n", "", "bytes", "window", "puts", "issue p50", "issue p99",
           "seen p50", "rings", "early");
}

bool rig_run(const struct rig_case *c, struct rig_times *times)
{
    struct bell_device_log log;
    const struct bell_device_queue *q = &rig.queue;
    if (c->puts > rig.puts || c->bytes > RIG_STRIDE || c->window > q->depth || c->window == 0) {
        fprintf(stderr, "%s: does not fit the rig\n", c->name);
        return false;
    }
    reset(c);
    struct rig_post post = { q->source.address, q->target.address, RIG_LKEY,  RIG_RKEY,  c->bytes,   c->puts,
                             c->window,         wait_bound_ns,     rig.issue, rig.total, rig.outcome };
    struct bell_device_nic *nic = bell_device_nic_start(q);
    if (!nic) {
        fprintf(stderr, "%s: no thread for the NIC\n", c->name);
        return false;
    }
    c->launch(c, q, &post);
    rig_cuda(cudaGetLastError(), c->name);
    rig_cuda(cudaDeviceSynchronize(), c->name);
    bell_device_nic_stop(nic, &log);
    const char *wrong = c->check ? c->check(c) : NULL;
    times->issue_p50_ns = percentile_ns(rig.issue, c->puts, 50);
    times->issue_p99_ns = percentile_ns(rig.issue, c->puts, 99);
    times->total_p50_ns = c->window == 1 ? percentile_ns(rig.total, c->puts, 50) : 0;
    printf("%-40s %6u %6u %6u  %9.0f %9.0f ", c->name, c->bytes, c->window, c->puts, times->issue_p50_ns,
           times->issue_p99_ns);
    if (c->window == 1)
        printf("%9.0f", times->total_p50_ns);
    else
        printf("%9s", "-");
    printf("  %6llu %6llu\n", (unsigned long long)log.rings, (unsigned long long)log.early_rings);
    bool is_right = log_is_right(c, &log);
    is_right = outcome_is_right(c) && is_right;
    if (wrong) {
        fflush(stdout);
        fprintf(stderr, "%s: %s\n", c->name, wrong);
        is_right = false;
    }
    return is_right && cq_is_right(c) && payload_is_right(c);
}
