/* SPDX-License-Identifier: Apache-2.0
 * Each fault on each stack, both kinds of CQ and every executor: it ends within its bound, in success or with one
 * message that names queue, index and cause. */
#include "tests/conform/exec_case.h"

#include "models/platform.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define BOUND_PS 200000000000u /* of a wait that ends there: 200 ms */

static struct bell_platform platform;

struct way {
    const char *name, *settings;
    bool is_shared; /* another lane's doorbell may make up for a lost one */
};

static const struct way ways[] = {
    { "gda, ring", "submit=gpu cq=ring depth=8", false },
    { "gda, collapsed", "submit=gpu cq=collapsed depth=8", false },
    { "gda, shared", "submit=gpu sharing=ordered lanes=3 depth=8", true },
    { "gda, two queues", "submit=gpu lanes=2 queues=2 depth=8", false },
    { "gda, high index", "submit=gpu first_index=65533 cq=collapsed depth=8", false },
    { "proxy, ring", "submit=proxy queue_memory=host cq=ring depth=8 protocol=tuned", false },
    { "proxy, collapsed", "submit=proxy queue_memory=host cq=collapsed depth=8", false },
};

/* What must come of it.  words: what the message says; %u is first_index + the fault's index. */
struct expected {
    const char *fault;
    enum bell_status status;
    const char *words[3];
    uint64_t add; /* to the number in words[2] */
    uint64_t least_us; /* the run takes at least so long */
};

static const struct expected faults[] = {
    { "fault=silent", BELL_TIMEOUT, { "answers nothing (fault silent)", "; queue ", "doorbell record" }, 0, 0 },
    { "fault=bad-key", BELL_CQE_ERROR, { "syndrome 0x13 (remote access error)", "queue", "WQE at index" }, 0, 0 },
    { "fault=error-cqe fault_index=5", BELL_CQE_ERROR,
      { "syndrome 0x15 (transport retries exceeded)", "of queue 0", "index %" PRIu64 }, 5, 0 },
    { "fault=lost-doorbell fault_index=5 fault_delay_us=0", BELL_TIMEOUT,
      { "fault lost-doorbell, no recovery", "rank 0 queue 0", "producer index %" PRIu64 }, 6, 0 },
    { "fault=lost-doorbell fault_index=5 fault_delay_us=20000", BELL_OK, { NULL, NULL, NULL }, 0, 20000 },
    { "fault=late-cqe fault_index=5 fault_delay_us=20000", BELL_OK, { NULL, NULL, NULL }, 0, 20000 },
    { "fault=late-cqe fault_index=5 fault_delay_us=1000000", BELL_TIMEOUT,
      { "fault late-cqe", "rank 0 queue 0", "index %" PRIu64 }, 5, 0 },
};

static void try_one(const struct bell_executor *x, const struct way *way, const struct expected *f)
{
    char settings[300], number[60];
    struct exec_case c;
    struct bell_error err = { BELL_OK, "" };
    struct bell_result result = { .notes = "" };
    (void)snprintf(settings, sizeof settings, "%s iterations=20 %s", way->settings, f->fault);
    exec_case_read(&c, settings);
    struct bell_run run = { .program = &c.program, .stack = &c.stack, .bound_ps = BOUND_PS };
    if (f->status != BELL_TIMEOUT) run.bound_ps = EXEC_BOUND_PS;
    bool is_sim = strcmp(x->name, "sim") == 0;
    if (is_sim) run.platform = &platform;
    enum bell_status s = x->run(&run, &result, &err);
    if (s == BELL_OK && way->is_shared && c.program.fault == BELL_FAULT_LOST_DOORBELL) return;
    if (s != f->status) fail_msg("%s, %s, %s: %d: %s", x->name, way->name, f->fault, (int)s, err.text);
    if (s == BELL_OK) {
        if (result.span_ps < f->least_us * 1000000)
            fail_msg("%s, %s, %s: took only %" PRIu64 " ps", x->name, way->name, f->fault, result.span_ps);
        (void)snprintf(number, sizeof number, " struck at index %" PRIu64 " of rank 0 queue 0",
                       c.program.first_index + 5);
        if (!strstr(result.notes, number))
            fail_msg("%s, %s, %s: '%s' does not say that it struck", x->name, way->name, f->fault, result.notes);
        return;
    }
    for (size_t i = 0; i < 3; i++) {
        const char *words = f->words[i];
        if (i == 2 && way->is_shared) break; /* its doorbell may have been for more */
        if (i == 2 && strchr(words, '%')) {
            const char *what = strstr(words, "producer") ? "producer index " : "index ";
            (void)snprintf(number, sizeof number, "%s%" PRIu64, what, c.program.first_index + f->add);
            words = number;
        }
        if (!strstr(err.text, words))
            fail_msg("%s, %s, %s: '%s' lacks '%s'", x->name, way->name, f->fault, err.text, words);
    }
    if (strchr(err.text, '\n')) fail_msg("%s: more than a line: %s", x->name, err.text);
}

static void try_all(const struct bell_executor *x)
{
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
        for (size_t f = 0; f < sizeof faults / sizeof *faults; f++)
            try_one(x, &ways[w], &faults[f]);
}

static void test_on_soft(void **state)
{
    (void)state;
    try_all(&bell_soft_executor);
}

static void test_on_null(void **state)
{
    (void)state;
    try_all(&bell_null_executor);
}

static void test_on_sim(void **state)
{
    (void)state;
    bell_field_defaults(bell_platform_fields, &platform);
    platform.gpu_clock_mhz = platform.cpu_cold_mhz = platform.cpu_warm_mhz = 1000;
    platform.pcie_gpu_read_ps = platform.pcie_host_read_ps = platform.wire_transmit_ps = platform.wire_ack_ps = 1e6;
    platform.wire_gbps = 400;
    try_all(&bell_sim_executor);
}

/* The other rank waits for what one fault kept back; it is told which. */
static void test_round_trip(void **state)
{
    static const char *const settings[] = {
        "submit=gpu pattern=round-trip fault=lost-doorbell fault_index=3 fault_delay_us=0",
        "submit=proxy queue_memory=host pattern=round-trip fault=lost-doorbell fault_index=3 fault_delay_us=0",
    };
    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        struct exec_case c;
        struct bell_error err = { BELL_OK, "" };
        struct bell_result result = { .notes = "" };
        exec_case_read(&c, settings[i]);
        struct bell_run run = { .program = &c.program, .stack = &c.stack, .bound_ps = BOUND_PS };
        assert_int_equal(bell_soft_executor.run(&run, &result, &err), BELL_TIMEOUT);
        if (!strstr(err.text, "the doorbell for producer index 4 of rank 0 queue 0 and stands at "))
            fail_msg("%s: %s", settings[i], err.text);
    }
}

/* A fault that strikes late is one that a traced run shows by the rules. */
static void test_traced(void **state)
{
    static struct exec_seen seen;
    static const char *const settings[] = {
        "submit=gpu fault=late-cqe fault_index=3 iterations=9 puts=4 depth=8",
        "submit=gpu fault=lost-doorbell fault_index=3 iterations=9 cq=collapsed",
        "submit=proxy queue_memory=host fault=late-cqe fault_index=2 iterations=9 batch=3 puts=5",
    };
    const struct bell_executor *const both[] = { &bell_soft_executor, &bell_null_executor };
    (void)state;
    for (size_t i = 0; i < 2 * sizeof settings / sizeof *settings; i++) {
        struct exec_case c;
        struct bell_error err = { BELL_OK, "" };
        struct bell_result result = { .notes = "" };
        exec_case_read(&c, settings[i / 2]);
        if (exec_traced(both[i % 2], &c, EXEC_BOUND_PS, &seen, &result, &err) != BELL_OK)
            fail_msg("%s: %s: %s", both[i % 2]->name, settings[i / 2], err.text);
        assert_int_equal(seen.count[BELL_EVENT_DELIVER], exec_puts(&c));
        assert_int_equal(seen.wrong_causes, 0);
    }
}

/* A run that ends before its fault says so. */
static void test_never_struck(void **state)
{
    const struct bell_executor *const all[] = { &bell_soft_executor, &bell_null_executor, &bell_sim_executor };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct exec_case c;
        struct bell_error err = { BELL_OK, "" };
        struct bell_result result = { .notes = "" };
        exec_case_read(&c, "submit=gpu iterations=9 fault=error-cqe fault_index=9");
        struct bell_run run = { .program = &c.program, .stack = &c.stack, .platform = &platform };
        assert_int_equal(all[i]->run(&run, &result, &err), BELL_OK);
        assert_non_null(strstr(result.notes, "error-cqe NEVER STRUCK: the run did not come to index 9 of"));
    }
}

static void test_refused(void **state)
{
    struct exec_case c;
    struct bell_error err = { BELL_OK, "" };
    (void)state;
    exec_case_read(&c, "submit=gpu nic_start=dbrec");
    c.program.fault = BELL_FAULT_LOST_DOORBELL;
    assert_int_equal(bell_program_validate(&c.program, &c.stack, &err), BELL_INVALID);
    assert_non_null(strstr(err.text, "expected nic_start doorbell"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_on_soft),    cmocka_unit_test(test_on_null), cmocka_unit_test(test_on_sim),
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_traced),  cmocka_unit_test(test_refused),
        cmocka_unit_test(test_never_struck),
    };
    return cmocka_run_group_tests_name("faults", tests, NULL, NULL);
}
