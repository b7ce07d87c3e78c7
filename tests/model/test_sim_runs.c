/* SPDX-License-Identifier: Apache-2.0
 * The simulator as an executor: lanes that share queues end and keep the protocol, failures have their status, and
 * virtual time has a bound. */
#include "tests/model/made_up.h"
#include "tests/conform/exec_case.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define PROXY "submit=proxy queue_memory=host "
#define BOUND_PS 100000000u /* 100 us */

static const char *const cases[] = {
    "submit=gpu iterations=50",
    "submit=gpu depth=2 puts=5 wqes_per_doorbell=2",
    "submit=gpu cq=collapsed depth=16 puts=9",
    "submit=gpu payload=pointer bytes=4096 nic_start=dbrec",
    "submit=gpu transport=dc puts=3 depth=8 bytes=64",
    "submit=gpu first_index=65530 depth=8 puts=5",
    "submit=gpu lanes=4 queues=4",
    "submit=gpu sharing=ordered lanes=4 queues=2 depth=8 puts=3",
    "submit=gpu sharing=ordered lanes=7 cq=collapsed first_index=65500 wqes_per_doorbell=2 puts=5 depth=16",
    "submit=gpu sharing=ordered lanes=4 ordering=system-fence nic_start=dbrec depth=4",
    "submit=gpu sharing=locked lanes=4 queues=2 depth=8 puts=3",
    "submit=gpu sharing=locked lanes=5 cq=collapsed transport=dc depth=8",
    "submit=gpu sharing=cooperative lanes=4 puts=3 depth=8",
    "submit=gpu sharing=cooperative lanes=8 queues=2 wqes_per_doorbell=2 puts=5 depth=8",
    "submit=gpu sharing=cooperative lanes=8 queues=2 cq=collapsed payload=pointer first_index=65520",
    PROXY "ring_depth=8 puts=5 depth=4",
    PROXY "protocol=tuned ring_depth=4 puts=9 batch=4 depth=8 lanes=2 queues=2 blueflame=true",
    "submit=gpu pattern=round-trip signal=separate bytes=128 puts=3 depth=8 cq=collapsed",
    "submit=gpu pattern=round-trip sharing=ordered lanes=4 depth=8 first_index=65500",
    "submit=gpu pattern=round-trip sharing=locked lanes=3 transport=dc depth=8",
    "submit=gpu pattern=round-trip sharing=cooperative lanes=4 queues=2 signal=separate",
    /* The flag has its value inside and must not overtake the payload, which is read. */
    PROXY "pattern=round-trip signal=separate bytes=64 puts=2 ring_depth=8",
    PROXY "pattern=round-trip signal=separate bytes=4096 protocol=tuned blueflame=true batch=4 puts=6",
};

static struct exec_seen seen;


static enum bell_status traced(const struct exec_case *c, const struct bell_platform *p, uint64_t bound_ps,
                               struct bell_result *result, struct bell_error *err)
{
    struct bell_trace_header header;
    memset(&header, 0, sizeof header);
    memset(&seen, 0, sizeof seen);
    header.depth = c->stack.depth;
    header.first_index = c->program.first_index;
    bell_field_text(bell_field_find(bell_stack_fields, "ordering"), &c->stack, header.ordering, sizeof header.ordering);
    enum bell_status s = bell_check_begin(&header, &seen.check, err);
    struct bell_sink sink = { &seen, exec_write };
    struct bell_run run = { .program = &c->program, .stack = &c->stack, .platform = p,
                            .sink = &sink, .bound_ps = bound_ps };
    if (s == BELL_OK) s = bell_sim_executor.run(&run, result, err);
    if (s == BELL_OK) s = bell_check_end(seen.check, true, err);
    bell_check_free(seen.check);
    seen.check = NULL;
    return s;
}

static void test_protocol(void **state)
{
    const struct bell_platform p = made_up();
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct exec_case c;
        struct bell_error err = { BELL_OK, "" };
        struct bell_result result = { .events = 0 };
        exec_case_read(&c, cases[i]);
        c.program.iterations = c.program.iterations > 50 ? 20 : c.program.iterations;
        if (traced(&c, &p, 0, &result, &err) != BELL_OK) fail_msg("'%s': %s", cases[i], err.text);
        assert_int_equal(seen.count[BELL_EVENT_OP], bell_program_ops(&c.program) * c.program.lanes);
        assert_int_equal(seen.count[BELL_EVENT_DELIVER], exec_puts(&c));
        assert_int_equal(seen.count[BELL_EVENT_CQE], seen.count[BELL_EVENT_DOORBELL]);
        assert_int_equal(result.events, seen.events);
    }
}

/* Observing changes nothing: the same times with and without a trace. */
static void test_trace_is_free(void **state)
{
    const struct bell_platform p = made_up();
    struct exec_case c;
    struct bell_error err = { BELL_OK, "" };
    uint64_t issue[2][120], total[2][120];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bell_result quiet = { .issue_ps = issue[0], .total_ps = total[0] };
        struct bell_result loud = { .issue_ps = issue[1], .total_ps = total[1] };
        exec_case_read(&c, cases[i]);
        c.program.iterations = 15;
        size_t size = (size_t)c.program.lanes * c.program.iterations * sizeof(uint64_t);
        struct bell_run run = { .program = &c.program, .stack = &c.stack, .platform = &p };
        assert_int_equal(bell_sim_executor.run(&run, &quiet, &err), BELL_OK);
        assert_int_equal(traced(&c, &p, 0, &loud, &err), BELL_OK);
        assert_memory_equal(issue[0], issue[1], size);
        assert_memory_equal(total[0], total[1], size);
        assert_int_equal(quiet.span_ps, loud.span_ps);
        assert_int_equal(quiet.events, 0);
    }
}

/* Lanes that take turns are slower than one alone, and a queue each is as fast as one alone but for the wire, which
 * they share. */
static void test_sharing_costs(void **state)
{
    const struct bell_platform p = made_up();
    static const char *const settings[] = { "submit=gpu", "submit=gpu lanes=4 queues=4",
                                            "submit=gpu lanes=4 sharing=ordered", "submit=gpu lanes=4 sharing=locked" };
    uint64_t span_ps[4];
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct exec_case c;
        struct bell_error err = { BELL_OK, "" };
        struct bell_result result = { .events = 0 };
        exec_case_read(&c, settings[i]);
        struct bell_run run = { .program = &c.program, .stack = &c.stack, .platform = &p };
        assert_int_equal(bell_sim_executor.run(&run, &result, &err), BELL_OK);
        span_ps[i] = result.span_ps;
    }
    assert_in_range(span_ps[1], span_ps[0], span_ps[0] + span_ps[0] / 1000);
    assert_true(span_ps[2] > span_ps[0]);
    assert_true(span_ps[3] > span_ps[0]);
}

/* A lane that polls when its queue is full sees all that came meanwhile: in a collapsed CQ one look retires it. */
static void test_poll_is_fresh(void **state)
{
    const struct bell_platform p = made_up();
    static const char *const settings[] = { "submit=gpu pattern=stream depth=64 puts=640 iterations=1 cq=ring",
                                            "submit=gpu pattern=stream depth=64 puts=640 iterations=1 cq=collapsed" };
    uint64_t polls[2];
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct exec_case c;
        struct bell_error err = { BELL_OK, "" };
        struct bell_result result = { .events = 0 };
        exec_case_read(&c, settings[i]);
        assert_int_equal(traced(&c, &p, 0, &result, &err), BELL_OK);
        polls[i] = seen.count[BELL_EVENT_POLL];
    }
    assert_int_equal(polls[0], 640);
    if (polls[1] > 40) fail_msg("%" PRIu64 " looks at a collapsed CQ", polls[1]);
}

/* Posters that cost nothing get what a queue, and then what the port, lets through: in M puts/s. */
static void test_ceilings(void **state)
{
    static const struct {
        const char *settings;
        double queue_wqe_ps, port_wqe_ps, rate;
    } rates[] = {
        { "submit=gpu lanes=1 queues=1", 100000, 20000, 10 },
        { "submit=gpu lanes=4 queues=4", 100000, 20000, 40 },
        { "submit=gpu lanes=8 queues=8", 100000, 20000, 50 },
        { "submit=gpu lanes=8 queues=8", 100000, 10000, 80 },
        { "submit=gpu lanes=8 queues=2 sharing=ordered", 100000, 20000, 20 },
        { "submit=gpu lanes=8 queues=8 bytes=1024 payload=pointer", 100000, 20000, 24.41 }, /* 200 Gb/s of 1 KiB */
    };
    struct bell_platform p;
    (void)state;
    memset(&p, 0, sizeof p);
    bell_field_defaults(bell_platform_fields, &p);
    p.pcie_gpu_read_ps = 1e5;
    p.wire_gbps = 200;
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        struct exec_case c;
        struct bell_error err = { BELL_OK, "" };
        struct bell_result result = { .events = 0 };
        exec_case_read(&c, rates[i].settings);
        c.program.pattern = BELL_PATTERN_STREAM;
        c.program.puts = 512;
        c.program.iterations = 4;
        c.stack.wqes_per_doorbell = 16;
        c.stack.depth = 256;
        c.stack.cq = BELL_CQ_COLLAPSED;
        p.nic_queue_wqe_ps = rates[i].queue_wqe_ps;
        p.nic_port_wqe_ps = rates[i].port_wqe_ps;
        struct bell_run run = { .program = &c.program, .stack = &c.stack, .platform = &p };
        assert_int_equal(bell_sim_executor.run(&run, &result, &err), BELL_OK);
        double rate = (double)result.puts / (double)result.puts_ps * 1e6;
        if (rate > rates[i].rate * 1.0001 || rate < rates[i].rate * 0.97)
            fail_msg("'%s': %.3f M puts/s, expected %.3f", rates[i].settings, rate, rates[i].rate);
    }
}

/* ---- failures ---- */
static void expect_failure(const char *settings, uint64_t bound_ps, enum bell_status status, const char *why)
{
    const struct bell_platform p = made_up();
    struct exec_case c;
    struct bell_error err = { BELL_OK, "" };
    struct bell_result result = { .events = 0 };
    exec_case_read(&c, settings);
    struct bell_run run = { .program = &c.program, .stack = &c.stack, .platform = &p, .bound_ps = bound_ps };
    enum bell_status s = bell_sim_executor.run(&run, &result, &err);
    if (s != status || !strstr(err.text, why))
        fail_msg("'%s': status %d, '%s'; expected status %d and '%s'", settings, (int)s, err.text, (int)status, why);
    assert_true(result.span_ps < 2 * (uint64_t)BOUND_PS);
    /* The next run is not touched by it. */
    exec_case_read(&c, "submit=gpu iterations=2");
    run.bound_ps = 0;
    assert_int_equal(bell_sim_executor.run(&run, &result, &err), BELL_OK);
}

static void test_failures(void **state)
{
    (void)state;
    expect_failure("submit=gpu fault=silent", BOUND_PS, BELL_TIMEOUT, "a CQE");
    expect_failure("submit=gpu fault=silent sharing=ordered lanes=4 depth=2", BOUND_PS, BELL_TIMEOUT, "rank 0");
    expect_failure("submit=gpu fault=silent sharing=cooperative lanes=4", BOUND_PS, BELL_TIMEOUT, "rank 0");
    expect_failure("submit=gpu fault=silent sharing=locked lanes=4", BOUND_PS, BELL_TIMEOUT, "rank 0");
    expect_failure("submit=gpu fault=silent pattern=round-trip", BOUND_PS, BELL_TIMEOUT, "put");
    expect_failure(PROXY "fault=silent", BOUND_PS, BELL_TIMEOUT, "rank 0");
    expect_failure("submit=gpu fault=bad-key", BOUND_PS, BELL_CQE_ERROR, "remote access error");
    expect_failure("submit=gpu fault=bad-key sharing=ordered lanes=4", BOUND_PS, BELL_CQE_ERROR, "remote access error");
    expect_failure(PROXY "fault=bad-key", BOUND_PS, BELL_CQE_ERROR, "remote access error");
    expect_failure("submit=gpu flow=none puts=5 depth=4", BOUND_PS, BELL_OVERFLOW, "depth");
    expect_failure(PROXY "protocol=tuned flow=none puts=9 ring_depth=2 depth=1", BOUND_PS, BELL_OVERFLOW, "depth 2");
}

/* A wait that takes longer than the bound is a failure, though what it waited for comes later. */
static void test_bound(void **state)
{
    (void)state;
    expect_failure("submit=gpu", 1000000, BELL_TIMEOUT, "a CQE"); /* a completion takes 3 us here */
    expect_failure("submit=gpu pattern=round-trip", 1000000, BELL_TIMEOUT, "put");
    expect_failure(PROXY, 1000000, BELL_TIMEOUT, "rank 0");
}

static void test_platform_is_needed(void **state)
{
    struct exec_case c;
    struct bell_error err = { BELL_OK, "" };
    struct bell_result result = { .events = 0 };
    (void)state;
    exec_case_read(&c, "submit=gpu");
    struct bell_run run = { .program = &c.program, .stack = &c.stack };
    assert_int_equal(bell_sim_executor.probe(&err), BELL_OK);
    assert_int_equal(bell_sim_executor.run(&run, &result, &err), BELL_INVALID);
    assert_non_null(strstr(err.text, "platform"));
}

static enum bell_status refuse(void *context, const struct bell_event *event, struct bell_error *err)
{
    return event->seq < *(const uint64_t *)context ? BELL_OK : bell_fail(err, BELL_IO, "the disk is full");
}

static void test_sink_fails(void **state)
{
    const struct bell_platform p = made_up();
    struct exec_case c;
    struct bell_error err = { BELL_OK, "" };
    struct bell_result result = { .events = 0 };
    (void)state;
    exec_case_read(&c, "submit=gpu lanes=4 sharing=ordered iterations=5");
    for (uint64_t at = 1; at < 40; at++) {
        struct bell_sink sink = { &at, refuse };
        struct bell_run run = { .program = &c.program, .stack = &c.stack, .platform = &p, .sink = &sink };
        assert_int_equal(bell_sim_executor.run(&run, &result, &err), BELL_IO);
        assert_string_equal(err.text, "the disk is full");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_protocol),      cmocka_unit_test(test_trace_is_free),
        cmocka_unit_test(test_sharing_costs), cmocka_unit_test(test_poll_is_fresh),
        cmocka_unit_test(test_ceilings),      cmocka_unit_test(test_bound),
        cmocka_unit_test(test_sink_fails),    cmocka_unit_test(test_platform_is_needed),
        cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
