/* SPDX-License-Identifier: Apache-2.0
 * Executor soft under load: many operations, every way to share, indices across 2^16.  Under the thread sanitizer this
 * is where a missing fence or acquire shows. */
#include "tests/conform/exec_case.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define PROXY "submit=proxy queue_memory=host "

/* Each starts near the wrap and posts far past it. */
static const char *const cases[] = {
    "submit=gpu lanes=4 queues=4 depth=16 puts=5 wqes_per_doorbell=3",
    "submit=gpu lanes=2 queues=2 depth=8 cq=collapsed payload=pointer bytes=64 nic_start=dbrec",
    "submit=gpu lanes=4 sharing=ordered depth=4 puts=3",
    "submit=gpu lanes=4 sharing=ordered depth=8 cq=collapsed payload=pointer bytes=96",
    "submit=gpu lanes=4 queues=2 sharing=ordered depth=8 puts=4 wqes_per_doorbell=2 ordering=gpu-release-store",
    "submit=gpu lanes=4 sharing=ordered depth=16 transport=dc nic_start=dbrec ordering=threadfence",
    "submit=gpu lanes=4 sharing=ordered depth=16 puts=8",
    "submit=gpu lanes=4 sharing=locked depth=16 puts=8",
    "submit=gpu lanes=4 sharing=locked depth=4 puts=3 nic_start=dbrec",
    "submit=gpu lanes=4 sharing=locked depth=8 cq=collapsed bytes=128 ordering=system-release-store",
    "submit=gpu lanes=4 sharing=cooperative depth=8 puts=3",
    "submit=gpu lanes=4 sharing=cooperative wqes_per_doorbell=2 depth=4 puts=3",
    "submit=gpu lanes=4 queues=2 sharing=cooperative depth=4 cq=collapsed payload=pointer bytes=256 nic_start=dbrec",
    "submit=gpu lanes=4 sharing=ordered pattern=round-trip signal=separate bytes=128 depth=16",
    "submit=gpu lanes=4 sharing=locked pattern=round-trip signal=separate bytes=128 depth=16 cq=collapsed",
    "submit=gpu lanes=4 sharing=cooperative pattern=round-trip depth=16 payload=pointer bytes=64",
    "submit=gpu lanes=2 queues=2 pattern=round-trip puts=2 depth=8 ordering=system-fence",
    PROXY "lanes=2 queues=2 ring_depth=4 puts=9 depth=4",
    PROXY "lanes=2 queues=2 protocol=tuned ring_depth=8 puts=17 batch=4 depth=8 payload=pointer bytes=64",
    PROXY "lanes=2 queues=2 pattern=round-trip signal=separate bytes=64 ring_depth=4 cq=collapsed",
    PROXY "lanes=2 queues=2 pattern=round-trip protocol=tuned payload=pointer bytes=128 nic_start=dbrec",
};

static struct exec_seen seen;

static void read_case(struct exec_case *c, const char *settings, const char *iterations)
{
    char text[300];
    (void)snprintf(text, sizeof text, "%s first_index=65000 iterations=%s", settings, iterations);
    exec_case_read(c, text);
}

static void test_timed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct exec_case c;
        struct bell_error err = { BELL_OK, "" };
        struct bell_result result = { .events = 0 };
        read_case(&c, cases[i], "2000");
        struct bell_run run = { .program = &c.program, .stack = &c.stack, .bound_ps = EXEC_BOUND_PS };
        if (bell_soft_executor.run(&run, &result, &err) != BELL_OK) fail_msg("%s: %s", cases[i], err.text);
    }
}

static void test_traced(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct exec_case c;
        struct bell_error err = { BELL_OK, "" };
        struct bell_result result = { .events = 0 };
        read_case(&c, cases[i], "700");
        if (exec_traced(&bell_soft_executor, &c, EXEC_BOUND_PS, &seen, &result, &err) != BELL_OK)
            fail_msg("%s: %s", cases[i], err.text);
        assert_int_equal(seen.count[BELL_EVENT_DELIVER], exec_puts(&c));
        assert_int_equal(seen.count[BELL_EVENT_BUILD], exec_puts(&c));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timed),
        cmocka_unit_test(test_traced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
