/* SPDX-License-Identifier: Apache-2.0
 * How fast does the simulator simulate?  The same puts, to the same virtual time, by a plain SimGrid program that has
 * an actor a lane and sleeps once for each step; and what SimGrid's engine can do at most: one sleep a put. */
#include "core/exec.h"
#include "models/cost.h"
#include "traces/document.h"

#include <inttypes.h>
#include <simgrid/actor.h>
#include <simgrid/engine.h>
#include <simgrid/host.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define REPEATS 5
#define STEPS 12

struct plain {
    double sleep_s[STEPS];
    uint32_t steps, puts;
};

static double seconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void live(int argc, char **argv)
{
    const struct plain *p = sg_actor_get_data(sg_actor_self());
    (void)argc;
    (void)argv;
    for (uint32_t i = 0; i < p->puts; i++)
        for (uint32_t s = 0; s < p->steps; s++)
            sg_actor_sleep_for(p->sleep_s[s]);
}

/* Wall time; *span_us becomes the virtual time. */
static double run_plain(struct plain *p, uint32_t lanes, double *span_us)
{
    double begin = simgrid_get_clock(), wall = seconds();
    for (uint32_t i = 0; i < lanes; i++) {
        sg_actor_t a = sg_actor_init("lane", sg_host_by_name("gpu0"));
        sg_actor_set_data(a, p);
        sg_actor_start(a, live, 0, NULL);
    }
    simgrid_run();
    *span_us = (simgrid_get_clock() - begin) * 1e6;
    return seconds() - wall;
}

/* mini-gda's steps on the critical path of a put. */
static void steps_of(const struct bell_costs *c, struct plain *p)
{
    const uint64_t ps[STEPS] = { c->post_ps[BELL_ACTOR_GPU] + 3 * c->store_ps,
                                 c->fence_ps[BELL_SCOPE_GPU] + c->drain_ps,
                                 c->fence_ps[BELL_SCOPE_GPU],
                                 c->store_ps,
                                 c->store_ps,
                                 c->doorbell_ps[BELL_ACTOR_GPU],
                                 c->schedule_ps,
                                 c->nic_read_ps[BELL_MEMORY_GPU],
                                 c->transmit_ps + bell_cost_bytes_ps(c, 8),
                                 c->ack_ps,
                                 c->cqe_ps[BELL_MEMORY_GPU],
                                 c->load_ps[BELL_ACTOR_GPU][BELL_MEMORY_GPU] };
    p->steps = STEPS;
    for (int i = 0; i < STEPS; i++)
        p->sleep_s[i] = (double)ps[i] * 1e-12;
}

static double run_ours(const struct bell_run *run, double *span_us)
{
    struct bell_result result = { .events = 0 };
    struct bell_error err = { BELL_OK, "" };
    double wall = seconds();
    if (bell_sim_executor.run(run, &result, &err) != BELL_OK) {
        (void)fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    *span_us = (double)result.span_ps * 1e-6;
    return seconds() - wall;
}

static double best(double a, double b)
{
    return a == 0 || b < a ? b : a;
}

static int compare(const struct bell_platform *platform, uint32_t lanes, uint32_t puts)
{
    struct bell_program program = { .name = "one-op", .bytes = 8, .puts = 1, .lanes = lanes, .queues = lanes,
                                    .iterations = puts };
    struct bell_stack stack;
    bell_field_defaults(bell_stack_fields, &stack);
    bell_stack_resolve(&stack);
    struct bell_run run = { .program = &program, .stack = &stack, .platform = platform };
    struct bell_costs costs;
    bell_costs_of(platform, &costs);
    struct plain plain = { .puts = puts }, bare = { .puts = puts, .steps = 1 };
    steps_of(&costs, &plain);
    for (int i = 0; i < STEPS; i++)
        bare.sleep_s[0] += plain.sleep_s[i];
    double ours = 0, each = 0, one = 0, span[3] = { 0 };
    for (int i = 0; i < REPEATS; i++) {
        ours = best(ours, run_ours(&run, &span[0]));
        each = best(each, run_plain(&plain, lanes, &span[1]));
        one = best(one, run_plain(&bare, lanes, &span[2]));
    }
    double all = (double)puts * lanes;
    (void)printf("%2u lanes: bellwether %7.0f puts/s | a sleep a step %7.0f puts/s: ratio %.1f | "
                 "bare engine, a sleep a put %7.0f puts/s: ratio %.2f | virtual %.3f, %.3f us\n",
                 lanes, all / ours, all / each, each / ours, all / one, one / ours, span[0], span[1]);
    double off = span[0] / span[1] - 1;
    return off > 1e-6 || off < -1e-6;
}

int main(void)
{
    struct bell_platform platform;
    struct bell_error err = { BELL_OK, "" };
    if (bell_document_read(BELL_TEST_SOURCE_DIR "/models/platforms/P-IB.json", "bell.platform/1", bell_platform_fields,
                           &platform, &err)
        != BELL_OK) {
        (void)fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    int failed = 0;
    for (uint32_t lanes = 1; lanes <= 64; lanes *= 8)
        failed += compare(&platform, lanes, 200000 / lanes);
    if (failed)
        (void)printf("the virtual times differ\n");
    return failed != 0;
}
