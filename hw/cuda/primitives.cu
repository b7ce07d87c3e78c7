// SPDX-License-Identifier: Apache-2.0
// What each primitive of the posting path costs one GPU thread: stores, fences by scope and kind with k stores
// pending, atomics, loads from GPU and host memory.  Prints one JSON row a primitive (p50 and p99 of the samples, in
// SM cycles and nanoseconds).  There is no NIC in this program: it prices the GPU's side only.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t e_ = (call);                                                                                       \
        if (e_ != cudaSuccess) {                                                                                       \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(e_));                                \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

enum fence_kind { NONE, ACQ_REL_GPU, SC_GPU, ACQ_REL_SYS, SC_SYS, KINDS };
static const char *const kind_name[KINDS] = { "none", "fence.acq_rel.gpu", "fence.sc.gpu", "fence.acq_rel.sys",
                                              "fence.sc.sys" };

template <int K> __device__ __forceinline__ void fence()
{
    if (K == ACQ_REL_GPU) asm volatile("fence.acq_rel.gpu;" ::: "memory");
    if (K == SC_GPU) asm volatile("fence.sc.gpu;" ::: "memory");
    if (K == ACQ_REL_SYS) asm volatile("fence.acq_rel.sys;" ::: "memory");
    if (K == SC_SYS) asm volatile("fence.sc.sys;" ::: "memory");
}
__device__ __forceinline__ void st16(void *p, uint64_t a, uint64_t b)
{
    asm volatile("st.relaxed.gpu.global.v2.b64 [%0], {%1,%2};" ::"l"(p), "l"(a), "l"(b) : "memory");
}
__device__ __forceinline__ void st4(void *p, uint32_t a)
{
    asm volatile("st.relaxed.sys.global.b32 [%0], %1;" ::"l"(p), "r"(a) : "memory");
}
__device__ __forceinline__ void st8_mmio(void *p, uint64_t a)
{
    asm volatile("st.mmio.relaxed.sys.global.b64 [%0], %1;" ::"l"(p), "l"(a) : "memory");
}
__device__ __forceinline__ long long tick()
{
    long long t;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(t)::"memory");
    return t;
}
// The clock once v is there: no instruction is issued past one that may trap before it is known whether it does.
__device__ __forceinline__ long long tick_after(uint64_t v)
{
    long long t;
    asm volatile("{ .reg .pred p; setp.eq.u32 p, %1, 0x89abcdef; @p trap; mov.u64 %0, %%clock64; }"
                 : "=l"(t) : "r"((uint32_t)v) : "memory");
    return t;
}

struct args {
    char *q;             // queue memory (GPU or host)
    char *db;            // doorbell word, host memory
    uint64_t *word;      // a GPU word
    uint64_t *host_word; // a pinned host word
    long long *out;
    int n;
    uint64_t *echo;      // written by the CPU thread
};

// Stores of k x 16 B, fence K, then optionally dbrec [fence] doorbell.
template <int K, int STORES, int DBREC, int FENCE2, int DB> __global__ void post(args a)
{
    for (int i = 0; i < a.n; i++) {
        char *w = a.q + (i & 1023) * 256;
        __nanosleep(3000);
        long long t0 = tick();
#pragma unroll
        for (int s = 0; s < STORES; s++) st16(w + 16 * s, i, s);
        fence<K>();
        if (DBREC) st4(a.q + 1024 * 256, i);
        if (FENCE2) fence<K>();
        if (DB) st8_mmio(a.db, i);
        a.out[i] = tick() - t0;
    }
}
template <int SYS> __global__ void release_post(args a)
{
    for (int i = 0; i < a.n; i++) {
        char *w = a.q + (i & 1023) * 256;
        __nanosleep(3000);
        long long t0 = tick();
        for (int s = 0; s < 3; s++) st16(w + 16 * s, i, s);
        st4(a.q + 1024 * 256, i);
        if (SYS)
            asm volatile("st.release.sys.global.b64 [%0], %1;" ::"l"(a.db), "l"((uint64_t)i) : "memory");
        else
            asm volatile("st.release.gpu.global.b64 [%0], %1;" ::"l"(a.db), "l"((uint64_t)i) : "memory");
        a.out[i] = tick() - t0;
    }
}
template <int WHAT> __global__ void single(args a)
{
    for (int i = 0; i < a.n; i++) {
        __nanosleep(3000);
        uint64_t v = 0;
        long long t0 = tick();
        if (WHAT == 0) asm volatile("atom.add.relaxed.gpu.global.u64 %0, [%1], 1;" : "=l"(v) : "l"(a.word) : "memory");
        if (WHAT == 1) asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(a.word) : "memory");
        if (WHAT == 2) asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(a.host_word) : "memory");
        if (WHAT == 3) asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(a.host_word) : "memory");
        if (WHAT == 4) asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(a.word) : "memory");
        if (WHAT == 5) // a tuned enqueue: one posted 16 B store to host memory
            asm volatile("st.relaxed.sys.global.v2.b64 [%0], {%1,%2};" ::"l"(a.host_word + 2), "l"((uint64_t)i),
                         "l"((uint64_t)i) : "memory");
        if (WHAT == 6) { // a baseline enqueue: reserve, progress read, release store of 16 B
            asm volatile("atom.add.relaxed.gpu.global.u64 %0, [%1], 1;" : "=l"(v) : "l"(a.word) : "memory");
            uint64_t p;
            asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(p) : "l"(a.host_word) : "memory");
            v += p;
            asm volatile("fence.acq_rel.sys; st.relaxed.sys.global.v2.b64 [%0], {%1,%2};" ::"l"(a.host_word + 2),
                         "l"(v), "l"(v) : "memory");
        }
        if (WHAT == 7) { // the same, relaxed progress read
            asm volatile("atom.add.relaxed.gpu.global.u64 %0, [%1], 1;" : "=l"(v) : "l"(a.word) : "memory");
            uint64_t p;
            asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(p) : "l"(a.host_word) : "memory");
            v += p;
            asm volatile("fence.acq_rel.sys; st.relaxed.sys.global.v2.b64 [%0], {%1,%2};" ::"l"(a.host_word + 2),
                         "l"(v), "l"(v) : "memory");
        }
        long long t1 = WHAT < 5 ? tick_after(v) : tick(); // in 6 and 7 the store waits for v
        a.out[i] = t1 - t0;
    }
}
// GPU stores, a CPU thread answers into host (0) memory; the GPU polls.
__global__ void ping(args a)
{
    for (int i = 1; i <= a.n; i++) {
        __nanosleep(3000);
        long long t0 = tick();
        asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(a.host_word + 8), "l"((uint64_t)i) : "memory");
        uint64_t v;
        long long limit = t0 + (1ll << 31);
        do asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(a.echo) : "memory");
        while (v != (uint64_t)i && tick() < limit);
        a.out[i - 1] = tick() - t0;
    }
}
__global__ void clock_rate(long long *out)
{
    unsigned long long g0, g1;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(g0));
    long long c0 = tick();
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(g1));
    while (g1 - g0 < 200000000ull);
    out[0] = tick() - c0;
    out[1] = (long long)(g1 - g0);
}

static double mhz;
static int n = 4000;
static long long *out;
static void row(const char *name, const char *mem)
{
    CHECK(cudaDeviceSynchronize());
    std::vector<long long> v(out + n / 4, out + n); // the first quarter warms up
    std::sort(v.begin(), v.end());
    double p50 = (double)v[v.size() / 2], p99 = (double)v[v.size() * 99 / 100];
    printf("{\"primitive\": \"%s\", \"memory\": \"%s\", \"p50_cycles\": %.0f, \"p99_cycles\": %.0f, \"p50_ns\": %.1f, "
           "\"sm_clock_mhz\": %.0f, \"samples\": %zu}\n", name, mem, p50, p99, p50 * 1e3 / mhz, mhz, v.size());
}
static void samples_back(const long long *gpu)
{
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(out, gpu, (size_t)n * sizeof *gpu, cudaMemcpyDeviceToHost));
}
// Answers each new value of *in in *echo until told to stop.
static void answer(const std::atomic<bool> &stop, volatile uint64_t *in, volatile uint64_t *echo)
{
    uint64_t last = 0;
    while (!stop.load(std::memory_order_relaxed)) {
        uint64_t v = *in;
        if (v != last)
            *echo = last = v;
    }
}

int main()
{
    cudaDeviceProp p;
    CHECK(cudaGetDeviceProperties(&p, 0));
    CHECK(cudaHostAlloc(&out, (size_t)n * sizeof *out, cudaHostAllocMapped));
    char *gq, *hq, *hw;
    uint64_t *word;
    CHECK(cudaMalloc(&gq, 1 << 20));
    CHECK(cudaMalloc(&word, 256));
    CHECK(cudaMemset(word, 0, 256));
    CHECK(cudaHostAlloc(&hq, 1 << 20, cudaHostAllocMapped));
    CHECK(cudaHostAlloc(&hw, 4096, cudaHostAllocMapped));
    for (int i = 0; i < 4096; i++) hw[i] = 0;
    clock_rate<<<1, 1>>>(out);
    CHECK(cudaDeviceSynchronize());
    clock_rate<<<1, 1>>>(out);
    CHECK(cudaDeviceSynchronize());
    mhz = (double)out[0] * 1e3 / (double)out[1];
    printf("{\"gpu\": \"%s\", \"sm_clock_mhz\": %.1f}\n", p.name, mhz);
    args a = { gq, hw + 2048, word, (uint64_t *)hw, out, n, (uint64_t *)(hw + 1024) };
    long long *gout; // samples kept in GPU memory so that they cross no bus while measuring
    CHECK(cudaMalloc(&gout, (size_t)n * sizeof *gout));
    a.out = gout;
#define ROW(launch, name, mem) \
    do { \
        launch; \
        samples_back(gout); \
        row(name, mem); \
    } while (0)
#define POSTS(K, m) do { \
    ROW((post<K,0,0,0,0><<<1,1>>>(a)), (snprintf(b, sizeof b, "%s after 0 x 16 B", kind_name[K]), b), m); \
    ROW((post<K,0,1,1,0><<<1,1>>>(a)), (snprintf(b, sizeof b, "%s, 4 B, %s", kind_name[K], kind_name[K]), b), m); \
    ROW((post<K,1,0,0,0><<<1,1>>>(a)), (snprintf(b, sizeof b, "%s after 1 x 16 B", kind_name[K]), b), m); \
    ROW((post<K,2,0,0,0><<<1,1>>>(a)), (snprintf(b, sizeof b, "%s after 2 x 16 B", kind_name[K]), b), m); \
    ROW((post<K,3,0,0,0><<<1,1>>>(a)), (snprintf(b, sizeof b, "%s after 3 x 16 B", kind_name[K]), b), m); \
    ROW((post<K,4,0,0,0><<<1,1>>>(a)), (snprintf(b, sizeof b, "%s after 4 x 16 B", kind_name[K]), b), m); \
    ROW((post<K,6,0,0,0><<<1,1>>>(a)), (snprintf(b, sizeof b, "%s after 6 x 16 B", kind_name[K]), b), m); \
    ROW((post<K,8,0,0,0><<<1,1>>>(a)), (snprintf(b, sizeof b, "%s after 8 x 16 B", kind_name[K]), b), m); \
    ROW((post<K,3,1,0,1><<<1,1>>>(a)), (snprintf(b, sizeof b, "3 x 16 B, %s, dbrec, doorbell", kind_name[K]), b), m); \
    ROW((post<K,3,1,1,1><<<1,1>>>(a)), (snprintf(b, sizeof b, "3 x 16 B, %s, dbrec, %s, doorbell", kind_name[K], \
                                                 kind_name[K]), b), m); \
} while (0)
    char b[160];
    for (int where = 0; where < 2; where++) {
        const char *m = where ? "host" : "gpu";
        a.q = where ? hq : gq;
        POSTS(NONE, m);
        POSTS(ACQ_REL_GPU, m);
        POSTS(SC_GPU, m);
        POSTS(ACQ_REL_SYS, m);
        POSTS(SC_SYS, m);
        ROW((release_post<0><<<1,1>>>(a)), "3 x 16 B, dbrec, st.release.gpu doorbell", m);
        ROW((release_post<1><<<1,1>>>(a)), "3 x 16 B, dbrec, st.release.sys doorbell", m);
    }
    a.q = gq;
    ROW((single<0><<<1,1>>>(a)), "atom.add.relaxed.gpu", "gpu");
    ROW((single<1><<<1,1>>>(a)), "ld.relaxed.sys", "gpu");
    ROW((single<4><<<1,1>>>(a)), "ld.acquire.gpu", "gpu");
    ROW((single<2><<<1,1>>>(a)), "ld.relaxed.sys", "host");
    ROW((single<3><<<1,1>>>(a)), "ld.acquire.sys", "host");
    ROW((single<5><<<1,1>>>(a)), "st.relaxed.sys 16 B (tuned enqueue)", "host");
    ROW((single<6><<<1,1>>>(a)), "atomic, ld.acquire.sys, release 16 B (baseline enqueue)", "host");
    ROW((single<7><<<1,1>>>(a)), "atomic, ld.relaxed.sys, release 16 B", "host");
    std::atomic<bool> stop(false);
    volatile uint64_t *in = (volatile uint64_t *)hw + 8;
    volatile uint64_t *echo = (volatile uint64_t *)(hw + 1024);
    std::thread cpu([&] { answer(stop, in, echo); });
    ROW((ping<<<1,1>>>(a)), "store to host, CPU echoes in host memory, GPU polls host memory", "host");
    stop = true;
    cpu.join();
    return 0;
}
