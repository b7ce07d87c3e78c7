/* SPDX-License-Identifier: Apache-2.0
 * Executors soft and null: what they run is delivered, sampled and traced by the rules; what fails is named. */
#include "tests/conform/exec_case.h"

#include "hw/soft/crew.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define PROXY "submit=proxy queue_memory=host "

static const char *const cases[] = {
    "submit=gpu",
    "submit=gpu iterations=300 warmup=7 depth=8 puts=5",
    "submit=gpu depth=1 puts=3 iterations=50",
    "submit=gpu depth=2 puts=5 wqes_per_doorbell=2 iterations=50",
    "submit=gpu cq=collapsed depth=16 puts=9 iterations=200",
    "submit=gpu payload=pointer bytes=4096 nic_start=dbrec",
    "submit=gpu nic_start=dbrec ordering=gpu-fence+fenced-dbrec puts=4 depth=4",
    "submit=gpu ordering=none",
    "submit=gpu ordering=gpu-release-store",
    "submit=gpu ordering=threadfence blueflame=true",
    "submit=gpu ordering=system-release-store payload=pointer bytes=64",
    "submit=gpu ordering=system-fence bytes=200",
    "submit=gpu transport=dc puts=3 depth=8",
    "submit=gpu transport=dc payload=pointer bytes=1024 cq=collapsed",
    "submit=gpu wqes_per_doorbell=8 puts=20 depth=32",
    "submit=gpu first_index=65530 depth=8 puts=5",
    "submit=gpu first_index=65530 cq=collapsed depth=8 bytes=128",
    "submit=gpu first_index=65530 transport=dc nic_start=dbrec depth=16",
    "submit=gpu flow=none puts=4 depth=4 iterations=30",
    "submit=gpu lanes=4 queues=4",
    "submit=gpu sharing=ordered lanes=4 queues=2 depth=8 puts=3",
    "submit=gpu sharing=ordered lanes=4 cq=collapsed first_index=65500 wqes_per_doorbell=2 puts=5 depth=16",
    "submit=gpu sharing=ordered lanes=3 nic_start=dbrec iterations=200",
    "submit=gpu sharing=locked lanes=4 queues=2 depth=8 puts=3",
    "submit=gpu sharing=locked lanes=3 cq=collapsed transport=dc depth=8 nic_start=dbrec",
    "submit=gpu sharing=cooperative lanes=4 puts=3 depth=8",
    "submit=gpu sharing=cooperative lanes=6 queues=2 cq=collapsed payload=pointer first_index=65520 nic_start=dbrec",
    "submit=gpu sharing=cooperative lanes=2 queues=2",
    "submit=gpu sharing=cooperative lanes=8 queues=2 wqes_per_doorbell=2 puts=3 depth=4 cq=collapsed",
    PROXY "ring_depth=8 puts=5 depth=4",
    PROXY "protocol=tuned ring_depth=4 puts=9 batch=4 depth=8",
    PROXY "protocol=tuned payload=pointer bytes=512 lanes=3 queues=3 completion_memory=gpu",
    PROXY "transport=dc batch=3 puts=7 depth=8 cq=collapsed nic_start=dbrec first_index=65530",
    "submit=gpu pattern=round-trip",
    "submit=gpu pattern=round-trip signal=separate bytes=128 puts=3 depth=8 cq=collapsed",
    "submit=gpu pattern=round-trip sharing=ordered lanes=4 signal=separate bytes=64 depth=8 first_index=65500",
    "submit=gpu pattern=round-trip sharing=locked lanes=2 payload=pointer bytes=2048 transport=dc",
    "submit=gpu pattern=round-trip sharing=cooperative lanes=4 queues=2 signal=separate nic_start=dbrec",
    PROXY "pattern=round-trip signal=separate bytes=64 puts=2 ring_depth=8",
    PROXY "pattern=round-trip protocol=tuned payload=pointer bytes=256 lanes=2 queues=2",
};

static struct exec_seen seen;

/* Does one thread do? */
static bool is_for_null(const struct exec_case *c)
{
    return c->program.pattern == BELL_PATTERN_ONE_OP &&
           (c->stack.sharing != BELL_SHARING_COOPERATIVE || c->program.lanes == c->program.queues);
}

static void assert_counts(const struct exec_case *c, const struct bell_result *result)
{
    const uint64_t *n = seen.count, puts = exec_puts(c), ops = bell_program_ops(&c->program) * c->program.lanes;
    bool proxy = c->stack.submit == BELL_SUBMIT_PROXY;
    assert_int_equal(result->events, seen.events);
    assert_true(result->span_ps > 0);
    assert_int_equal(n[BELL_EVENT_BUILD], puts);
    assert_int_equal(n[BELL_EVENT_DELIVER], puts);
    assert_int_equal(n[BELL_EVENT_OP], ops);
    assert_int_equal(n[BELL_EVENT_ENQUEUE], proxy ? puts : 0);
    assert_int_equal(n[BELL_EVENT_DEQUEUE], proxy ? puts : 0);
    assert_int_equal(n[BELL_EVENT_CQE], n[BELL_EVENT_DOORBELL]);
    assert_int_equal(n[BELL_EVENT_DBREC], n[BELL_EVENT_DOORBELL]);
    if (c->stack.cq == BELL_CQ_RING)
        assert_int_equal(n[BELL_EVENT_POLL], n[BELL_EVENT_CQE]);
    else
        assert_true(n[BELL_EVENT_POLL] > 0);
    assert_int_equal(seen.wrong_causes, 0);
    if (seen.events <= EXEC_EVENTS_KEPT) {
        assert_int_equal(seen.caused[BELL_EVENT_DELIVER], puts);
        if (c->stack.sharing == BELL_SHARING_OWNER) /* else a slot may be in use again when a slow lane has polled */
            assert_int_equal(seen.caused[BELL_EVENT_POLL], n[BELL_EVENT_POLL]);
        assert_int_equal(seen.caused[BELL_EVENT_DEQUEUE], n[BELL_EVENT_DEQUEUE]);
    }
}

/* Every sample is written, none behind them, and issuing is part of the whole. */
static void assert_samples(const struct bell_result *result, size_t samples)
{
    for (size_t i = 0; i < samples; i++)
        assert_true(result->issue_ps[i] <= result->total_ps[i] && result->total_ps[i] < UINT64_MAX);
    assert_true(result->issue_ps[samples] == UINT64_MAX && result->total_ps[samples] == UINT64_MAX);
}

static void run_case(const struct bell_executor *x, const struct exec_case *c, const char *name)
{
    struct bell_error err = { BELL_OK, "" };
    struct bell_result result = { .events = 0 };
    size_t samples = (size_t)c->program.lanes * c->program.iterations, bytes = (samples + 1) * sizeof(uint64_t);
    result.issue_ps = malloc(bytes);
    result.total_ps = malloc(bytes);
    assert_true(result.issue_ps && result.total_ps);
    memset(result.issue_ps, 0xff, bytes);
    memset(result.total_ps, 0xff, bytes);
    enum bell_status s = exec_traced(x, c, EXEC_BOUND_PS, &seen, &result, &err);
    if (s != BELL_OK) fail_msg("%s: %s: %s", x->name, name, err.text);
    assert_counts(c, &result);
    assert_samples(&result, samples);
    memset(result.issue_ps, 0xff, bytes);
    memset(result.total_ps, 0xff, bytes);
    struct bell_run timed = { .program = &c->program, .stack = &c->stack, .bound_ps = EXEC_BOUND_PS };
    s = x->run(&timed, &result, &err);
    if (s != BELL_OK) fail_msg("%s, timed: %s: %s", x->name, name, err.text);
    assert_int_equal(result.events, 0);
    assert_samples(&result, samples);
    free(result.issue_ps);
    free(result.total_ps);
}

static void test_cases_on_soft(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct exec_case c;
        exec_case_read(&c, cases[i]);
        run_case(&bell_soft_executor, &c, cases[i]);
    }
}

static void test_cases_on_null(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct exec_case c;
        struct bell_error err = { BELL_OK, "" };
        struct bell_result result = { .events = 0 };
        exec_case_read(&c, cases[i]);
        if (is_for_null(&c)) {
            run_case(&bell_null_executor, &c, cases[i]);
            continue;
        }
        assert_int_equal(exec_traced(&bell_null_executor, &c, 0, &seen, &result, &err), BELL_UNSUPPORTED);
        assert_non_null(strstr(err.text, "on null one thread"));
        assert_int_equal(seen.events, 0);
    }
}

/* On null everything happens in one order, so two traces differ in times only. */
static void test_null_repeats(void **state)
{
    static struct exec_seen again;
    struct exec_case c;
    struct bell_error err = { BELL_OK, "" };
    struct bell_result result = { .events = 0 };
    (void)state;
    exec_case_read(&c, "submit=gpu sharing=locked lanes=3 puts=3 depth=8");
    assert_int_equal(exec_traced(&bell_null_executor, &c, 0, &seen, &result, &err), BELL_OK);
    assert_int_equal(exec_traced(&bell_null_executor, &c, 0, &again, &result, &err), BELL_OK);
    assert_int_equal(seen.events, again.events);
    assert_memory_equal(seen.kind, again.kind, sizeof seen.kind);
}

static void test_probe(void **state)
{
    struct bell_error err = { BELL_OK, "" };
    (void)state;
    assert_int_equal(bell_soft_executor.probe(&err), BELL_OK);
    assert_int_equal(bell_null_executor.probe(&err), BELL_OK);
    assert_string_equal(bell_soft_executor.name, "soft");
    assert_string_equal(bell_null_executor.name, "null");
    assert_string_equal(bell_soft_executor.clock_domain, "monotonic");
}

/* Queues go to NIC threads in turn; each notes what it could have served. */
static void test_nic_threads(void **state)
{
    static const char *const settings[] = {
        "submit=gpu lanes=5 queues=5 puts=3 depth=8",
        "submit=gpu lanes=4 queues=2 sharing=ordered puts=3 depth=8 cq=collapsed",
        "submit=gpu lanes=3 queues=3 pattern=round-trip nic_start=dbrec",
        PROXY "lanes=3 queues=3 puts=2",
    };
    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        for (uint32_t threads = 1; threads <= 64; threads *= threads < 4 ? 2u : 16u) {
            struct exec_case c;
            struct bell_machine machine;
            struct bell_error err = { BELL_OK, "" };
            struct bell_result result = { .notes = "" };
            char words[60];
            exec_case_read(&c, settings[i]);
            bell_machine_read(NULL, &machine);
            machine.nic_threads = threads;
            struct bell_run run = {
                .program = &c.program, .stack = &c.stack, .bound_ps = EXEC_BOUND_PS, .machine = &machine
            };
            if (bell_soft_executor.run(&run, &result, &err) != BELL_OK) fail_msg("%s: %s", settings[i], err.text);
            uint32_t ranks = c.program.pattern == BELL_PATTERN_ROUND_TRIP ? 2 : 1;
            uint32_t each = threads < c.program.queues ? threads : c.program.queues;
            each *= ranks;
            (void)snprintf(words, sizeof words, "software NIC: %u thread%s, ", each, each > 1 ? "s" : "");
            if (!strstr(result.notes, words)) fail_msg("%s: '%s' lacks '%s'", settings[i], result.notes, words);
        }
}

static void test_pinned(void **state)
{
    struct exec_case c;
    struct bell_machine machine;
    struct bell_error err = { BELL_OK, "" };
    struct bell_result result = { .notes = "" };
    (void)state;
    exec_case_read(&c, "submit=gpu");
    bell_machine_read(NULL, &machine);
    machine.pin = true;
    struct bell_run run = { .program = &c.program, .stack = &c.stack, .bound_ps = EXEC_BOUND_PS, .machine = &machine };
    enum bell_status s = bell_soft_executor.run(&run, &result, &err);
    if (s == BELL_UNSUPPORTED) /* one core */
        assert_non_null(strstr(err.text, "machine.pin: 2 threads need a core each"));
    else
        assert_int_equal(s, BELL_OK);
    assert_null(strstr(result.notes, "could not be bound"));
    machine.first_core = 4095;
    assert_int_equal(bell_soft_executor.run(&run, &result, &err), BELL_UNSUPPORTED);
    assert_string_equal(err.text, "machine.pin: 2 threads need a core each; from machine.first_core 4095 on, this "
                                  "process may use 0");
}

/* A run that must fail, the text that its message must hold, and how long a wait may take. */
struct failure {
    const char *settings;
    uint64_t bound_ps;
    enum bell_status status;
    const char *words[4];
};

static const struct failure failures[] = {
    { "submit=gpu flow=none puts=5 depth=4",
      EXEC_BOUND_PS,
      BELL_OVERFLOW,
      { "rank 0 lane 0", "depth 4 of queue 0", "SQ reserved 4", "completed 0" } },
    { "submit=gpu flow=none puts=5 depth=4 first_index=65534 cq=collapsed",
      EXEC_BOUND_PS,
      BELL_OVERFLOW,
      { "depth 4 of queue 0", "SQ reserved 65538", "completed 65534", "" } },
    { "submit=gpu fault=silent",
      50000000000u,
      BELL_TIMEOUT,
      { "rank 0 lane 0", "for a CQE", "SQ reserved 1, doorbell record 1 mod 65536, completed 0", "CQ index 0" } },
    { "submit=gpu fault=silent first_index=65535 lanes=2 queues=2",
      50000000000u,
      BELL_TIMEOUT,
      { "rank 0 lane", "SQ reserved 65536, doorbell record 0 mod 65536, completed 65535", "CQ index 0", "" } },
    { PROXY "fault=silent",
      50000000000u,
      BELL_TIMEOUT,
      { "rank 0", "queue 0: SQ reserved 1, doorbell record 1 mod 65536, completed 0", "CQ index 0", "" } },
    { "submit=gpu fault=bad-key",
      EXEC_BOUND_PS,
      BELL_CQE_ERROR,
      { "rank 0 lane 0", "syndrome 0x13 (remote access error)", "index 0 of queue 0", "" } },
    { PROXY "fault=bad-key payload=pointer protocol=tuned",
      EXEC_BOUND_PS,
      BELL_CQE_ERROR,
      { "rank 0 worker 0", "syndrome 0x13 (remote access error)", "index 0 of queue 0", "" } },
};

static void test_failures(void **state)
{
    const struct bell_executor *const both[] = { &bell_soft_executor, &bell_null_executor };
    (void)state;
    for (size_t i = 0; i < 2 * sizeof failures / sizeof *failures; i++) {
        const struct failure *f = &failures[i / 2];
        struct exec_case c;
        struct bell_error err = { BELL_OK, "" };
        struct bell_result result = { .events = 0 };
        exec_case_read(&c, f->settings);
        if (!f->words[0]) continue;
        struct bell_run run = { .program = &c.program, .stack = &c.stack, .bound_ps = f->bound_ps };
        enum bell_status s = both[i % 2]->run(&run, &result, &err);
        if (s != f->status || err.status != s)
            fail_msg("%s: %s: status %d, %s", both[i % 2]->name, f->settings, (int)s, err.text);
        for (size_t w = 0; w < 4; w++)
            if (!strstr(err.text, f->words[w]))
                fail_msg("%s: %s: '%s' lacks '%s'", both[i % 2]->name, f->settings, err.text, f->words[w]);
    }
}

/* Lanes of a group and partners of a round trip leave too when one of them fails. */
static void test_failure_stops_all(void **state)
{
    static const char *const settings[] = {
        "submit=gpu fault=silent sharing=cooperative lanes=4 queues=2",
        "submit=gpu fault=silent sharing=ordered lanes=4 puts=9 depth=8",
        "submit=gpu fault=silent sharing=locked lanes=3 puts=9 depth=8",
        "submit=gpu fault=silent pattern=round-trip lanes=2 queues=2",
        PROXY "fault=silent pattern=round-trip ring_depth=2 puts=4",
    };
    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        struct exec_case c;
        struct bell_error err = { BELL_OK, "" };
        struct bell_result result = { .events = 0 };
        exec_case_read(&c, settings[i]);
        struct bell_run run = { .program = &c.program, .stack = &c.stack, .bound_ps = 50000000000u };
        assert_int_equal(bell_soft_executor.run(&run, &result, &err), BELL_TIMEOUT);
        assert_non_null(strstr(err.text, "waited to its bound for"));
    }
}

/* The trace of a failed run is sent, and ends in what failed. */
static void test_failed_run_is_traced(void **state)
{
    struct exec_case c;
    struct bell_error err = { BELL_OK, "" };
    struct bell_result result = { .events = 0 };
    (void)state;
    exec_case_read(&c, "submit=gpu fault=bad-key");
    assert_int_equal(exec_traced(&bell_soft_executor, &c, EXEC_BOUND_PS, &seen, &result, &err), BELL_CQE_ERROR);
    assert_non_null(strstr(err.text, "remote access error"));
    assert_int_equal(seen.count[BELL_EVENT_DOORBELL], 1);
    assert_int_equal(seen.count[BELL_EVENT_DELIVER], 0);
    assert_int_equal(seen.count[BELL_EVENT_CQE], 1);
}

static void test_sink_failure_ends_the_run(void **state)
{
    const struct bell_executor *const both[] = { &bell_soft_executor, &bell_null_executor };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct exec_case c;
        struct bell_error err = { BELL_OK, "" };
        struct bell_result result = { .events = 0 };
        exec_case_read(&c, "submit=gpu");
        seen.stop_after = 20;
        assert_int_equal(exec_traced(both[i], &c, 0, &seen, &result, &err), BELL_IO);
        assert_string_equal(err.text, "the sink is full");
        assert_int_equal(result.events, 20);
        assert_int_equal(seen.events, 21);
    }
    seen.stop_after = 0;
}

/* As the lane would note it after a store whose number was drawn early; 0: it draws one now. */
static void note(struct bell_soft_member *m, enum bell_event_kind kind, uint64_t index, uint64_t early_seq)
{
    struct bell_note n = { kind, 0, index, 1, 8, BELL_SCOPE_GPU };
    m->lane.early_seq = early_seq;
    bell_soft_record(&m->lane, &n);
}

static enum bell_status keep(void *context, const struct bell_event *event, struct bell_error *err)
{
    struct bell_event *kept = context;
    (void)err;
    assert_in_range(event->seq, 1, 16);
    kept[event->seq - 1] = *event;
    return BELL_OK;
}

/* Three lanes reserve: their numbers were drawn in the opposite order.  Then the last lane's doorbell is behind what
 * the NIC did on its record. */
static void test_merge_puts_two_orders_right(void **state)
{
    static const struct {
        uint8_t kind;
        uint64_t index, cause;
    } expected[] = {
        { BELL_EVENT_RESERVE, 0, 0 },  { BELL_EVENT_RESERVE, 1, 0 }, { BELL_EVENT_RESERVE, 2, 0 },
        { BELL_EVENT_BUILD, 2, 0 },    { BELL_EVENT_DBREC, 3, 0 },   { BELL_EVENT_FENCE, 3, 0 },
        { BELL_EVENT_DOORBELL, 3, 0 }, { BELL_EVENT_DELIVER, 2, 5 }, { BELL_EVENT_CQE, 2, 0 },
        { BELL_EVENT_POLL, 3, 9 },
    };
    struct bell_event kept[16];
    struct exec_case c;
    struct bell_soft_crew crew;
    struct bell_error err = { BELL_OK, "" };
    struct bell_result result = { .events = 0 };
    struct bell_sink sink = { kept, keep };
    (void)state;
    exec_case_read(&c, "submit=gpu sharing=ordered lanes=3 nic_start=dbrec depth=4");
    struct bell_run run = { .program = &c.program, .stack = &c.stack, .sink = &sink };
    assert_int_equal(bell_soft_crew_open(&crew, &run, &result, &err), BELL_OK);
    assert_int_equal(crew.members, 4);
    struct bell_soft_member *m = crew.member;
    crew.soft.seq = 3;
    note(&m[0], BELL_EVENT_RESERVE, 2, 1);
    note(&m[1], BELL_EVENT_RESERVE, 1, 2);
    note(&m[2], BELL_EVENT_RESERVE, 0, 3);
    note(&m[0], BELL_EVENT_BUILD, 2, 1); /* not a store that others see: the old number does not count */
    note(&m[0], BELL_EVENT_DBREC, 3, 0);
    note(&m[3], BELL_EVENT_DELIVER, 2, 0);
    note(&m[0], BELL_EVENT_FENCE, 3, 0);
    note(&m[3], BELL_EVENT_CQE, 2, 0);
    m[3].lane.event[1].count = 0; /* its syndrome */
    note(&m[0], BELL_EVENT_DOORBELL, 3, 0);
    note(&m[1], BELL_EVENT_POLL, 3, 0);
    uint64_t sent = 0;
    assert_int_equal(bell_soft_merge(&crew, &sink, &sent, &err), BELL_OK);
    assert_int_equal(sent, sizeof expected / sizeof *expected);
    for (size_t i = 0; i < sent; i++) {
        assert_int_equal(kept[i].kind, expected[i].kind);
        assert_int_equal(kept[i].index, expected[i].index);
        assert_int_equal(kept[i].cause, expected[i].cause);
    }
    bell_soft_crew_close(&crew);
}

/* A number that was drawn for a store without a note, such as a lock's, is not used for a later poll. */
static void test_stale_number_is_forgotten(void **state)
{
    struct bell_soft soft;
    struct bell_lane lane;
    struct bell_cqe cqe;
    uint64_t word = 0;
    (void)state;
    memset(&soft, 0, sizeof soft);
    memset(&lane, 0, sizeof lane);
    bell_cqe_fill_ring(&cqe);
    soft.is_traced = true;
    lane.soft = &soft;
    bell_port_store_release(&lane, BELL_MEMORY_GPU, &word, 1);
    assert_int_equal(lane.early_seq, 1);
    (void)bell_port_load_cqe_tail(&lane, BELL_MEMORY_GPU, &cqe);
    assert_int_equal(lane.early_seq, 0);
    assert_true(bell_port_cas(&lane, BELL_MEMORY_GPU, &word, 1, 2));
    assert_int_equal(lane.early_seq, 2);
    bell_port_store(&lane, BELL_MEMORY_GPU, &word, 3);
    assert_int_equal(lane.early_seq, 0);
}

/* A world whose puts all landed, written by hand. */
static void land(const struct bell_world *w)
{
    uint64_t puts = bell_program_ops(w->program) * w->program->puts;
    for (uint32_t lane = 0; lane < w->lanes; lane++, w->rank[0].client[lane - 1].puts = puts)
        for (uint64_t p = 0; p < puts; p++)
            bell_payload_fill(bell_box_payload(&w->rank[0].client[lane].away, p, w->program->bytes), w->program->bytes,
                              p + 1);
}

static void test_verify_sees_each_byte(void **state)
{
    struct exec_case c;
    struct bell_world w;
    struct bell_error err = { BELL_OK, "" };
    (void)state;
    exec_case_read(&c, "submit=gpu payload=pointer bytes=40 puts=3 iterations=4 lanes=2 queues=2");
    size_t size = bell_world_size(&c.program, &c.stack);
    void *arena = aligned_alloc(64, size);
    assert_non_null(arena);
    assert_int_equal(bell_world_build(&w, &c.program, &c.stack, arena, size), BELL_OK);
    assert_int_equal(bell_world_verify(&w, &err), BELL_CORRUPT); /* nothing landed yet */
    land(&w);
    assert_int_equal(bell_world_verify(&w, &err), BELL_OK);
    for (uint32_t lane = 0; lane < 2; lane++)
        for (uint64_t put = 12 - 8; put < 12; put++)
            for (uint32_t at = 0; at < 40; at++) {
                char words[40];
                uint8_t *byte = bell_box_payload(&w.rank[0].client[lane].away, put, 40) + at;
                (void)snprintf(words, sizeof words, "put %" PRIu64 " of lane %u on rank 0", put, lane);
                *byte ^= 0x10;
                assert_int_equal(bell_world_verify(&w, &err), BELL_CORRUPT);
                assert_non_null(strstr(err.text, words));
                *byte ^= 0x10;
            }
    assert_int_equal(bell_world_verify(&w, &err), BELL_OK);
    free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_probe),
        cmocka_unit_test(test_cases_on_soft),
        cmocka_unit_test(test_cases_on_null),
        cmocka_unit_test(test_null_repeats),
        cmocka_unit_test(test_nic_threads),
        cmocka_unit_test(test_pinned),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_failure_stops_all),
        cmocka_unit_test(test_failed_run_is_traced),
        cmocka_unit_test(test_sink_failure_ends_the_run),
        cmocka_unit_test(test_merge_puts_two_orders_right),
        cmocka_unit_test(test_stale_number_is_forgotten),
        cmocka_unit_test(test_verify_sees_each_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
