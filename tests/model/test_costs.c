/* SPDX-License-Identifier: Apache-2.0
 * What the simulator says is what the platform's costs add up to: on a made-up platform where no two costs are equal,
 * so that a step too many, too few or at the wrong place is seen. */
#include "models/cost.h"
#include "tests/model/made_up.h"
#include "tests/conform/exec_case.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define SAMPLES 400
#define PROXY "submit=proxy protocol=tuned queue_memory=host blueflame=true "


static struct bell_costs costs_of(const struct bell_platform *p)
{
    struct bell_costs c;
    bell_costs_of(p, &c);
    return c;
}

struct times {
    uint64_t issue_ps, total_ps; /* medians */
    uint64_t tail_ps;            /* 99th percentile of total */
    uint64_t sample[SAMPLES];    /* total, in the order of the run */
    size_t count;
};

static int by_time(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static struct times run(const char *settings, const struct bell_platform *p)
{
    static uint64_t issue[SAMPLES], total[SAMPLES];
    struct exec_case c;
    struct bell_error err = { BELL_OK, "" };
    struct times t = { .count = 0 };
    exec_case_read(&c, settings);
    t.count = (size_t)c.program.lanes * c.program.iterations;
    assert_in_range(t.count, 1, SAMPLES);
    struct bell_result result = { .issue_ps = issue, .total_ps = total };
    struct bell_run request = { .program = &c.program, .stack = &c.stack, .platform = p };
    if (bell_sim_executor.run(&request, &result, &err) != BELL_OK) fail_msg("'%s': %s", settings, err.text);
    memcpy(t.sample, total, t.count * sizeof *total);
    qsort(issue, t.count, sizeof *issue, by_time);
    qsort(total, t.count, sizeof *total, by_time);
    t.issue_ps = issue[(t.count - 1) / 2];
    t.total_ps = total[(t.count - 1) / 2];
    t.tail_ps = total[(t.count * 99 + 99) / 100 - 1];
    return t;
}

static void expect_issue(const char *settings, const struct bell_platform *p, uint64_t issue_ps)
{
    struct times t = run(settings, p);
    if (t.issue_ps != issue_ps)
        fail_msg("'%s': issue takes %" PRIu64 " ps, expected %" PRIu64, settings, t.issue_ps, issue_ps);
}

static void expect_total(const char *settings, const struct bell_platform *p, uint64_t total_ps)
{
    struct times t = run(settings, p);
    if (t.total_ps != total_ps)
        fail_msg("'%s': the operation takes %" PRIu64 " ps, expected %" PRIu64, settings, t.total_ps, total_ps);
}

/* A put of three segments, its record and its doorbell, without what keeps them in order. */
static uint64_t plain_issue(const struct bell_costs *c)
{
    return c->post_ps[BELL_ACTOR_GPU] + 5 * c->store_ps;
}

/* From the doorbell store to the payload at the remote NIC. */
static uint64_t flight(const struct bell_costs *c, enum bell_memory queue)
{
    return c->doorbell_ps[BELL_ACTOR_GPU] + c->schedule_ps + c->nic_read_ps[queue] + bell_cost_bytes_ps(c, 8) +
           c->transmit_ps;
}

static uint64_t completion(const struct bell_costs *c, enum bell_memory queue)
{
    return c->ack_ps + c->cqe_ps[queue] + c->load_ps[BELL_ACTOR_GPU][queue];
}

/* ---- costs themselves ---- */
static void test_clock(void **state)
{
    struct bell_platform p = made_up();
    struct bell_costs a = costs_of(&p);
    (void)state;
    p.gpu_clock_mhz *= 2;
    p.cpu_state = BELL_CPU_WARM;
    struct bell_costs b = costs_of(&p);
    assert_int_equal(a.post_ps[BELL_ACTOR_GPU], 211 * 500);
    assert_int_equal(b.post_ps[BELL_ACTOR_GPU], 211 * 250);
    assert_int_equal(a.post_ps[BELL_ACTOR_CPU], 2003 * 400 + 1009);
    assert_int_equal(b.post_ps[BELL_ACTOR_CPU], 2003 * 250 + 1009);
    assert_int_equal(a.fence_ps[BELL_SCOPE_SYS], b.fence_ps[BELL_SCOPE_SYS]);
    assert_int_equal(a.fence_ps[BELL_SCOPE_NONE], 0);
    assert_int_equal(a.transmit_ps, b.transmit_ps);
    assert_int_equal(a.nic_write_ps[BELL_MEMORY_GPU] * 2, a.nic_read_ps[BELL_MEMORY_GPU]);
}

static void test_segments(void **state)
{
    struct bell_platform p = made_up();
    struct bell_costs c = costs_of(&p);
    (void)state;
    assert_int_equal(bell_cost_wqe_ps(&c, 0, 3), 3 * c.store_ps);
    assert_int_equal(bell_cost_wqe_ps(&c, 0, 4), 4 * c.store_ps + c.segment_ps);
    assert_int_equal(bell_cost_wqe_ps(&c, 4, 4), 4 * (c.store_ps + c.segment_ps));
    assert_int_equal(bell_cost_wqe_ps(&c, 2, 2), 2 * c.store_ps + c.segment_ps);
    for (uint32_t cut = 0; cut <= 15; cut++)
        assert_int_equal(bell_cost_wqe_ps(&c, 0, cut) + bell_cost_wqe_ps(&c, cut, 15 - cut),
                         bell_cost_wqe_ps(&c, 0, 15));
    assert_int_equal(bell_cost_bytes_ps(&c, 1000), 40000); /* 8000 bits at 200 Gb/s */
}

/* ---- issue ---- */
static void test_orderings(void **state)
{
    struct bell_platform p = made_up();
    struct bell_costs c = costs_of(&p);
    const uint64_t *fence = c.fence_ps, plain = plain_issue(&c);
    uint64_t system_fence = plain + c.drain_ps + fence[BELL_SCOPE_GPU_SC] + 2 * fence[BELL_SCOPE_SYS_SC];
    (void)state;
    expect_issue("submit=gpu ordering=none", &p, plain);
    expect_issue("submit=gpu ordering=gpu-fence", &p, plain + c.drain_ps + 2 * fence[BELL_SCOPE_GPU]);
    expect_issue("submit=gpu ordering=gpu-fence+fenced-dbrec", &p, plain + c.drain_ps + 3 * fence[BELL_SCOPE_GPU]);
    expect_issue("submit=gpu ordering=gpu-release-store", &p, plain + c.drain_ps + 2 * fence[BELL_SCOPE_GPU]);
    expect_issue("submit=gpu ordering=threadfence", &p, plain + c.drain_ps + 3 * fence[BELL_SCOPE_GPU_SC]);
    expect_issue("submit=gpu ordering=system-release-store", &p, plain + c.drain_ps + 2 * fence[BELL_SCOPE_SYS]);
    expect_issue("submit=gpu ordering=system-fence", &p, system_fence);
    /* Queues in host memory: each system fence behind a store waits for it to get there; one at GPU scope does not. */
    expect_issue("submit=gpu queue_memory=host ordering=gpu-fence", &p, plain + c.drain_ps + 2 * fence[BELL_SCOPE_GPU]);
    expect_issue("submit=gpu queue_memory=host ordering=system-release-store", &p,
                 plain + c.drain_ps + 2 * (fence[BELL_SCOPE_SYS] + c.host_drain_ps));
    expect_issue("submit=gpu queue_memory=host ordering=system-fence", &p, system_fence + 2 * c.host_drain_ps);
    /* What orders the stores delays the operation by as much, and by nothing else. */
    expect_total("submit=gpu ordering=none", &p, plain + flight(&c, BELL_MEMORY_GPU) + completion(&c, BELL_MEMORY_GPU));
    expect_total("submit=gpu ordering=system-fence", &p,
                 system_fence + flight(&c, BELL_MEMORY_GPU) + completion(&c, BELL_MEMORY_GPU));
}

static void test_long_wqes(void **state)
{
    struct bell_platform p = made_up();
    struct bell_costs c = costs_of(&p);
    uint64_t another = c.post_ps[BELL_ACTOR_GPU] + 3 * c.store_ps; /* WQE behind the same doorbell */
    (void)state;
    /* 16 B control, 16 B address, 4 B header and the payload: 12 B to the third segment, 16 B to each further. */
    expect_issue("submit=gpu ordering=none bytes=16", &p, plain_issue(&c) + c.store_ps + c.segment_ps);
    expect_issue("submit=gpu ordering=none bytes=24", &p, plain_issue(&c) + c.store_ps + c.segment_ps);
    expect_issue("submit=gpu ordering=none bytes=32", &p, plain_issue(&c) + 2 * (c.store_ps + c.segment_ps));
    expect_issue("submit=gpu ordering=none bytes=200", &p, plain_issue(&c) + 12 * (c.store_ps + c.segment_ps));
    expect_issue("submit=gpu ordering=none payload=pointer bytes=4096", &p, plain_issue(&c));
    /* Two short WQEs behind a doorbell are not a long one. */
    expect_issue("submit=gpu ordering=none puts=2 wqes_per_doorbell=2", &p, plain_issue(&c) + another);
    expect_issue("submit=gpu ordering=gpu-fence puts=2 wqes_per_doorbell=2", &p,
                 plain_issue(&c) + another + c.drain_ps + 2 * c.fence_ps[BELL_SCOPE_GPU]);
    expect_issue("submit=gpu ordering=none puts=2 wqes_per_doorbell=2 bytes=64", &p,
                 plain_issue(&c) + another + 8 * (c.store_ps + c.segment_ps));
    expect_issue("submit=gpu ordering=none puts=2", &p, 2 * plain_issue(&c));
}

static void test_enqueue(void **state)
{
    struct bell_platform p = made_up();
    struct bell_costs c = costs_of(&p);
    uint64_t tuned = c.enqueue_ps + c.store_ps, host = c.load_ps[BELL_ACTOR_GPU][BELL_MEMORY_HOST];
    (void)state;
    expect_issue(PROXY, &p, tuned);
    expect_issue(PROXY "bytes=64", &p, tuned + c.fence_ps[BELL_SCOPE_SYS]); /* the NIC reads the payload */
    expect_issue("submit=proxy protocol=baseline queue_memory=host", &p,
                 tuned + c.atomic_ps + host + c.fence_ps[BELL_SCOPE_SYS]);
}

/* ---- the way to the completion ---- */
static void test_schedule(void **state)
{
    struct bell_platform p = made_up(), slow = made_up();
    uint64_t more = (uint64_t)p.nic_schedule_ps;
    (void)state;
    slow.nic_schedule_ps *= 2;
    struct times a = run("submit=gpu", &p), b = run("submit=gpu", &slow);
    assert_int_equal(b.total_ps - a.total_ps, more);
    assert_int_equal(b.issue_ps, a.issue_ps);
    struct bell_costs c = costs_of(&p);
    /* A doorbell that carries the WQE is not scheduled; a GPU stores all 64 B of it. */
    assert_int_equal(run(PROXY, &slow).total_ps, run(PROXY, &p).total_ps);
    assert_int_equal(run(PROXY "blueflame=false", &slow).total_ps, run(PROXY "blueflame=false", &p).total_ps + more);
    assert_int_equal(run("submit=gpu blueflame=true", &p).total_ps,
                     a.total_ps - more - (uint64_t)p.pcie_gpu_read_ps + 3 * c.store_ps);
}

static void test_payload(void **state)
{
    struct bell_platform p = made_up();
    struct bell_costs c = costs_of(&p);
    struct times a = run("submit=gpu", &p), b = run("submit=gpu payload=pointer", &p);
    (void)state;
    assert_int_equal(b.issue_ps, a.issue_ps);
    assert_int_equal(b.total_ps - a.total_ps, (uint64_t)p.pcie_gpu_read_ps);
    expect_total("submit=gpu payload=pointer bytes=4096", &p,
                 b.total_ps + bell_cost_bytes_ps(&c, 4096) - bell_cost_bytes_ps(&c, 8));
    expect_total("submit=gpu payload=pointer bytes=1048576", &p,
                 b.total_ps + bell_cost_bytes_ps(&c, 1048576) - bell_cost_bytes_ps(&c, 8));
    p.wire_gbps /= 4;
    expect_total("submit=gpu payload=pointer bytes=4096", &p,
                 b.total_ps + 4 * bell_cost_bytes_ps(&c, 4096) - bell_cost_bytes_ps(&c, 8));
}

/* Behind one doorbell the packets leave one after the other. */
static void test_line(void **state)
{
    struct bell_platform p = made_up();
    struct bell_costs c = costs_of(&p);
    const char *four = "submit=gpu ordering=none payload=pointer bytes=65536 puts=4 wqes_per_doorbell=4";
    (void)state;
    expect_total(four, &p,
                 run("submit=gpu ordering=none payload=pointer bytes=65536", &p).total_ps +
                     3 * c.post_ps[BELL_ACTOR_GPU] + 9 * c.store_ps +
                     3 * bell_cost_bytes_ps(&c, 65536));
}

static void test_queue_memory(void **state)
{
    struct bell_platform p = made_up();
    struct bell_costs c = costs_of(&p);
    uint64_t issue = plain_issue(&c) + c.drain_ps + 2 * c.fence_ps[BELL_SCOPE_GPU];
    (void)state;
    expect_total("submit=gpu", &p, issue + flight(&c, BELL_MEMORY_GPU) + completion(&c, BELL_MEMORY_GPU));
    expect_total("submit=gpu queue_memory=host", &p,
                 issue + flight(&c, BELL_MEMORY_HOST) + completion(&c, BELL_MEMORY_HOST));
}

static void test_transport(void **state)
{
    struct bell_platform p = made_up();
    struct bell_costs c = costs_of(&p);
    struct times rc = run("submit=gpu", &p), dc = run("submit=gpu transport=dc", &p);
    uint64_t vector = 3 * (c.store_ps + c.segment_ps); /* a full address vector is three segments */
    (void)state;
    assert_int_equal(dc.issue_ps - rc.issue_ps, vector);
    assert_int_equal(dc.total_ps - rc.total_ps, vector + c.dc_ps);
}

static void test_proxy(void **state)
{
    struct bell_platform p = made_up();
    struct bell_costs c = costs_of(&p);
    uint64_t there = c.enqueue_ps + c.store_ps + c.posted_ps[BELL_ACTOR_GPU][BELL_MEMORY_HOST] +
                     c.post_ps[BELL_ACTOR_CPU] + c.doorbell_ps[BELL_ACTOR_CPU] + bell_cost_bytes_ps(&c, 8) +
                     c.transmit_ps;
    uint64_t done = there + c.ack_ps + c.cqe_ps[BELL_MEMORY_HOST] + c.complete_ps[BELL_ACTOR_CPU];
    (void)state;
    expect_total(PROXY, &p,
                 done + c.posted_ps[BELL_ACTOR_CPU][BELL_MEMORY_GPU] + c.load_ps[BELL_ACTOR_GPU][BELL_MEMORY_GPU]);
    expect_total(PROXY "completion_memory=host", &p, done + c.load_ps[BELL_ACTOR_GPU][BELL_MEMORY_HOST]);
    expect_total(PROXY "pattern=round-trip", &p,
                 2 * (there + c.nic_write_ps[BELL_MEMORY_GPU] + c.load_ps[BELL_ACTOR_GPU][BELL_MEMORY_GPU]));
}

static void test_warm(void **state)
{
    struct bell_platform cold = made_up(), warm = made_up();
    uint64_t cycles = (uint64_t)(cold.cpu_post.cycles + cold.cpu_complete.cycles);
    (void)state;
    warm.cpu_state = BELL_CPU_WARM;
    struct times a = run(PROXY, &cold), b = run(PROXY, &warm);
    assert_int_equal(a.total_ps - b.total_ps, cycles * (400 - 250));
    assert_int_equal(a.issue_ps, b.issue_ps);
    assert_int_equal(run("submit=gpu", &cold).total_ps, run("submit=gpu", &warm).total_ps);
}

/* ---- what is on the way and what is not ---- */
static void test_delivery(void **state)
{
    struct bell_platform p = made_up(), far = made_up();
    const char *one = PROXY "completion_memory=host", *both = PROXY "completion_memory=host pattern=round-trip";
    (void)state;
    far.pcie_gpu_read_ps += 400000; /* here only the delivery goes to GPU memory, in half of it */
    assert_int_equal(run(one, &far).total_ps, run(one, &p).total_ps);
    assert_int_equal(run(both, &far).total_ps, run(both, &p).total_ps + 2 * 200000);
    /* A completion never comes before the delivery. */
    far.pcie_gpu_read_ps = 2 * far.wire_ack_ps + 2 * 70000;
    assert_int_equal(run(one, &far).total_ps, run(one, &p).total_ps + 70000);
}

static void test_completion_order(void **state)
{
    struct bell_platform p = made_up(), slow = made_up();
    (void)state;
    slow.nic_cqe_order_ps = 310000;
    assert_int_equal(run("submit=gpu", &slow).total_ps, run("submit=gpu", &p).total_ps + 310000);
    assert_int_equal(run("submit=gpu pattern=round-trip", &slow).total_ps,
                     run("submit=gpu pattern=round-trip", &p).total_ps);
    assert_int_equal(run("submit=gpu queue_memory=host", &slow).total_ps,
                     run("submit=gpu queue_memory=host", &p).total_ps);
}

static void test_round_trip(void **state)
{
    struct bell_platform p = made_up();
    struct bell_costs c = costs_of(&p);
    (void)state;
    expect_total("submit=gpu ordering=none pattern=round-trip", &p,
                 2 * (plain_issue(&c) + flight(&c, BELL_MEMORY_GPU) + c.nic_write_ps[BELL_MEMORY_GPU] +
                      c.load_ps[BELL_ACTOR_GPU][BELL_MEMORY_GPU]));
}

/* ---- chance ---- */
static void test_seed(void **state)
{
    struct bell_platform p = made_up();
    (void)state;
    p.cpu_stall_cold_ps = 2000003;
    p.cpu_stall_percent = 5;
    struct times a = run(PROXY "iterations=400 seed=1", &p), b = run(PROXY "iterations=400 seed=1", &p);
    struct times c = run(PROXY "iterations=400 seed=2", &p);
    assert_memory_equal(a.sample, b.sample, sizeof a.sample);
    assert_memory_not_equal(a.sample, c.sample, sizeof a.sample);
    assert_int_equal(a.total_ps, c.total_ps);
    assert_int_equal(a.tail_ps, a.total_ps + 2000003);
    /* Without chance the seed is nothing, and every operation takes the same time. */
    p.cpu_stall_percent = 0;
    struct times still = run(PROXY "seed=1", &p), other = run(PROXY "seed=2", &p);
    assert_memory_equal(still.sample, other.sample, sizeof still.sample);
    assert_int_equal(still.total_ps, a.total_ps);
    for (size_t i = 0; i < still.count; i++)
        assert_int_equal(still.sample[i], still.total_ps);
}

static void test_stall(void **state)
{
    struct bell_platform p = made_up();
    struct times a = run(PROXY, &p), on_gpu = run("submit=gpu", &p);
    (void)state;
    p.cpu_stall_cold_ps = 2000003;
    p.cpu_stall_warm_ps = 1000;
    p.cpu_stall_percent = 100;
    assert_int_equal(run(PROXY, &p).total_ps, a.total_ps + 2000003);
    assert_int_equal(run("submit=gpu", &p).total_ps, on_gpu.total_ps);
    p.cpu_state = BELL_CPU_WARM;
    uint64_t stalled = run(PROXY, &p).total_ps;
    p.cpu_stall_percent = 0;
    assert_int_equal(stalled, run(PROXY, &p).total_ps + 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clock),        cmocka_unit_test(test_segments),
        cmocka_unit_test(test_orderings),    cmocka_unit_test(test_long_wqes),
        cmocka_unit_test(test_enqueue),      cmocka_unit_test(test_schedule),
        cmocka_unit_test(test_payload),      cmocka_unit_test(test_line),
        cmocka_unit_test(test_queue_memory), cmocka_unit_test(test_transport),
        cmocka_unit_test(test_proxy),        cmocka_unit_test(test_warm),
        cmocka_unit_test(test_delivery),     cmocka_unit_test(test_completion_order),
        cmocka_unit_test(test_round_trip),   cmocka_unit_test(test_seed),
        cmocka_unit_test(test_stall),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
