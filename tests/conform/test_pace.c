/* SPDX-License-Identifier: Apache-2.0
 * A paced software NIC under both stacks: no operation is faster than its stages, and what the trace shows keeps the
 * rules.  How late it is depends on the machine and is not tested; that WQEs overlap is, in made-up time, in
 * tests/unit/test_pipe.c. */
#include "tests/conform/exec_case.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct bell_pace pace = { .name = "made-up", .doorbell_ps = 20000000, .fetch_ps = 40000000,
                                       .payload_read_ps = 80000000, .wire_ps = 160000000, .ack_ps = 320000000,
                                       .cqe_ps = 640000000 };
#define INLINE_PS 1180000000u    /* the sum without the payload read: 1.18 ms */
#define ONE_WAY_PS 220000000u    /* until the payload is there */
#define OPS 20u

struct paced {
    const char *settings;
    uint64_t least_ps; /* of each operation */
};

static const struct paced cases[] = {
    { "submit=gpu iterations=20 depth=8", INLINE_PS },
    { "submit=gpu iterations=20 depth=8 cq=collapsed nic_start=dbrec", INLINE_PS },
    { "submit=gpu iterations=20 depth=8 payload=pointer bytes=256", INLINE_PS + 80000000u },
    { "submit=gpu iterations=20 depth=4 puts=9", INLINE_PS },
    { "submit=gpu iterations=20 sharing=ordered lanes=3 depth=8", INLINE_PS },
    { "submit=gpu iterations=20 lanes=3 queues=3 transport=dc", INLINE_PS },
    { "submit=gpu iterations=20 pattern=round-trip first_index=65530", 2 * ONE_WAY_PS },
    { "submit=proxy queue_memory=host iterations=20 depth=8 payload=pointer", INLINE_PS + 80000000u },
    { "submit=proxy queue_memory=host iterations=20 protocol=tuned batch=4 puts=6", INLINE_PS },
    { "submit=proxy queue_memory=host iterations=20 pattern=round-trip protocol=tuned", 2 * ONE_WAY_PS },
};

static enum bell_status run_paced(const struct exec_case *c, const struct bell_sink *sink, struct bell_result *result,
                                  struct bell_error *err)
{
    struct bell_machine machine;
    bell_machine_read(NULL, &machine);
    machine.nic_threads = 2;
    struct bell_run run = { .program = &c->program, .stack = &c->stack, .sink = sink, .bound_ps = EXEC_BOUND_PS,
                            .machine = &machine, .pace = &pace };
    return bell_soft_executor.run(&run, result, err);
}

static void test_no_faster_than_the_stages(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static uint64_t issue_ps[OPS * 4], total_ps[OPS * 4];
        struct exec_case c;
        struct bell_error err = { BELL_OK, "" };
        struct bell_result result = { .issue_ps = issue_ps, .total_ps = total_ps };
        exec_case_read(&c, cases[i].settings);
        if (run_paced(&c, NULL, &result, &err) != BELL_OK) fail_msg("%s: %s", cases[i].settings, err.text);
        for (uint32_t n = 0; n < c.program.lanes * OPS; n++)
            if (total_ps[n] < cases[i].least_ps)
                fail_msg("%s: operation %u took only %" PRIu64 " ps", cases[i].settings, n, total_ps[n]);
        if (!strstr(result.notes, "paced as on made-up, its stages ran "))
            fail_msg("%s: %s", cases[i].settings, result.notes);
    }
}

static void test_traced(void **state)
{
    static struct exec_seen seen;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct exec_case c;
        struct bell_trace_header header;
        struct bell_error err = { BELL_OK, "" };
        struct bell_result result = { .notes = "" };
        exec_case_read(&c, cases[i].settings);
        memset(&header, 0, sizeof header);
        memset(&seen, 0, sizeof seen);
        header.depth = c.stack.depth;
        header.first_index = c.program.first_index;
        (void)snprintf(header.executor, sizeof header.executor, "soft");
        bell_field_text(bell_field_find(bell_stack_fields, "ordering"), &c.stack, header.ordering,
                        sizeof header.ordering);
        assert_int_equal(bell_check_begin(&header, &seen.check, &err), BELL_OK);
        struct bell_sink sink = { &seen, exec_write };
        enum bell_status s = run_paced(&c, &sink, &result, &err);
        if (s == BELL_OK) s = bell_check_end(seen.check, true, &err);
        if (s != BELL_OK) fail_msg("%s: %s", cases[i].settings, err.text);
        bell_check_free(seen.check);
        assert_int_equal(seen.count[BELL_EVENT_DELIVER], exec_puts(&c));
        assert_int_equal(seen.wrong_causes, 0);
        assert_int_equal(seen.caused[BELL_EVENT_DELIVER], exec_puts(&c));
        if (c.stack.sharing == BELL_SHARING_OWNER)
            assert_int_equal(seen.caused[BELL_EVENT_POLL], seen.count[BELL_EVENT_POLL]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_faster_than_the_stages),
        cmocka_unit_test(test_traced),
    };
    return cmocka_run_group_tests_name("pace", tests, NULL, NULL);
}
