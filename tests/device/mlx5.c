/* SPDX-License-Identifier: Apache-2.0
 * Executor mlx5 with lanes on a GPU, over the device in software of tests/mlx5: that one makes the queues and, where
 * they are in host memory, serves them on a CPU thread; queues in GPU memory are served by the software NIC on the GPU.
 * Its registers are plain memory, so they are mapped as that.  Exit 77: there is no GPU. */
#include "hw/cuda/poster.h"
#include "hw/mlx5/run.h"
#include "tests/conform/exec_case.h"
#include "tests/mlx5/fake.h"

#include <cuda_runtime_api.h>
#include <errno.h>

#define ITERATIONS_MAX 4096
#define HOST "queue_memory=host ordering=system-fence submit=gpu "
#define GPU "queue_memory=gpu submit=gpu "
#define PROXY "submit=proxy queue_memory=host completion_memory=host "

struct row {
    const char *settings, *path;
    enum bell_status status;
    const char *words;   /* of the error */
    bool is_silent;      /* nobody serves the queues */
    bool is_io_memory;   /* map registers as for a real device, which plain memory is not */
};

static const struct row rows[] = {
    { HOST, "gpu-doorbell", BELL_OK, NULL, false, false },
    { HOST "cq=collapsed payload=pointer bytes=4096", "gpu-doorbell", BELL_OK, NULL, false, false },
    { HOST "transport=dc bytes=64 puts=3 depth=16", "gpu-doorbell", BELL_OK, NULL, false, false },
    { HOST "pattern=round-trip lanes=4 queues=4", "gpu-doorbell", BELL_OK, NULL, false, false },
    { HOST "pattern=stream wqes_per_doorbell=4 depth=64", "gpu-doorbell", BELL_OK, NULL, false, false },
    { HOST "sharing=ordered lanes=8 queues=2", "gpu-doorbell", BELL_OK, NULL, false, false },
    { HOST "sharing=locked lanes=8 queues=2", "gpu-doorbell", BELL_OK, NULL, false, false },
    { HOST "sharing=cooperative lanes=32 queues=1", "gpu-doorbell", BELL_OK, NULL, false, false },
    { HOST "doorbell=host puts=3", "host-doorbell", BELL_OK, NULL, false, false },
    { HOST "pattern=round-trip", "host-doorbell", BELL_OK, NULL, false, true },
    { PROXY "puts=3", "proxy", BELL_OK, NULL, false, false },
    { PROXY "pattern=round-trip protocol=tuned payload=pointer bytes=256", "proxy", BELL_OK, NULL, false, false },
    { GPU, "gpu-doorbell", BELL_OK, NULL, false, false },
    { GPU "cq=collapsed payload=pointer bytes=4096", "gpu-doorbell", BELL_OK, NULL, false, false },
    { GPU "transport=dc pattern=round-trip lanes=4 queues=4", "gpu-doorbell", BELL_OK, NULL, false, false },
    { GPU "pattern=stream wqes_per_doorbell=16 depth=64 sharing=ordered lanes=4", "gpu-doorbell", BELL_OK, NULL, false,
      false },
    { HOST "fault=bad-key", NULL, BELL_CQE_ERROR, "syndrome 0x13 (remote access error) for the WQE at index 0", false,
      false },
    { PROXY "fault=bad-key", NULL, BELL_CQE_ERROR, "syndrome 0x13 (remote access error) for the WQE at index 0", false,
      false },
    { HOST, NULL, BELL_TIMEOUT, "rank 0 lane 0 waited to its bound for a CQE", true, false },
    { HOST "blueflame=true", NULL, BELL_UNSUPPORTED, "a GPU lane rings with 8 B stores", false, false },
};

static struct fake fake;
static struct bell_result result;
static uint64_t issue_ps[ITERATIONS_MAX * 4], total_ps[ITERATIONS_MAX * 4];

static int map_plain(void *context, uint64_t *reg, size_t bytes, uint64_t *address)
{
    (void)context;
    *address = (uint64_t)(uintptr_t)reg;
    return cudaHostRegister(reg, bytes, cudaHostRegisterMapped | cudaHostRegisterPortable) == cudaSuccess ? 0 : EPERM;
}

static void unmap_plain(void *context, uint64_t *reg)
{
    (void)context;
    (void)cudaHostUnregister(reg);
}

static enum bell_status run(const struct row *row, struct bell_cuda_poster *poster, const struct exec_case *c,
                            struct bell_error *err)
{
    struct bell_mlx5_ground ground = { .calls = &fake.table, .host = &bell_mlx5_host_memory };
    struct bell_mlx5_memory host[2], gpu[2];
    bool is_on_gpu = c->stack.queue_memory == BELL_MEMORY_GPU;
    bell_cuda_poster_ground(poster, &ground);
    for (int i = 0; i < 2; i++) {
        struct bell_mlx5_site *site = &ground.site[i];
        host[i] = *site->host;
        gpu[i] = *site->gpu;
        if (!row->is_io_memory) {
            host[i].map_register = gpu[i].map_register = map_plain;
            host[i].unmap_register = gpu[i].unmap_register = unmap_plain;
        }
        *site = (struct bell_mlx5_site){ &host[i], &gpu[i], is_on_gpu ? &gpu[i] : NULL };
    }
    if (is_on_gpu)
        bell_cuda_poster_serve(poster);
    fake_start(&fake);
    fake.is_deaf = is_on_gpu || row->is_silent;
    struct bell_run r = { .program = &c->program, .stack = &c->stack,
                          .bound_ps = row->is_silent ? 100000000000u : 10000000000000u };
    memset(&result, 0, sizeof result);
    result.issue_ps = issue_ps;
    result.total_ps = total_ps;
    return bell_mlx5_run(&ground, &r, &result, err);
}

/* What is wrong with how the run ended; NULL: nothing. */
static const char *fault_of(const struct row *row, const struct exec_case *c, enum bell_status s,
                            const struct bell_error *err)
{
    size_t samples = (size_t)bell_program_counted(&c->program) * c->program.iterations;
    if (fake.broken[0])
        return fake.broken;
    if (fake_left(&fake))
        return "the device has things left";
    if (s != row->status || (row->words && !strstr(err->text, row->words)))
        return s == BELL_OK ? "it ran" : err->text;
    if (row->path && strcmp(row->path, result.path) != 0)
        return result.path;
    for (size_t i = 0; s == BELL_OK && i < samples; i++)
        if (issue_ps[i] > total_ps[i] || total_ps[i] == 0)
            return "a sample is not one";
    return NULL;
}

static bool passes(const struct row *row)
{
    struct bell_error err = { BELL_OK, "" };
    struct bell_cuda_poster *poster = NULL;
    struct exec_case c;
    exec_case_read(&c, row->settings);
    enum bell_status s = bell_cuda_poster_open(NULL, &poster, &err);
    if (s == BELL_OK) {
        s = run(row, poster, &c, &err);
        bell_cuda_poster_close(poster);
    }
    const char *fault = fault_of(row, &c, s, &err);
    printf("%-6s %-75s %s\n", fault ? "FAILED" : "ok", row->settings,
           fault ? fault : s == BELL_OK ? result.notes : err.text);
    return !fault;
}

int main(void)
{
    struct bell_error err = { BELL_OK, "" };
    struct bell_cuda_poster *poster = NULL;
    int failed = 0;
    enum bell_status s = bell_cuda_poster_open(NULL, &poster, &err);
    if (s != BELL_OK) {
        (void)fprintf(stderr, "%s\n", err.text);
        return s == BELL_UNSUPPORTED ? 77 : 1;
    }
    bell_cuda_poster_close(poster);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        failed += !passes(&rows[i]);
    printf("%zu cases, %d failed\n", sizeof rows / sizeof *rows, failed);
    return failed > 0;
}
