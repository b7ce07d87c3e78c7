/* SPDX-License-Identifier: Apache-2.0
 * Stacks and programs as data: what orderings are made of, and which choices contradict each other. */
#include "core/program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct bell_stack stack;
static struct bell_program program;
static struct bell_error error;

static int fresh(void **state)
{
    (void)state;
    memset(&stack, 0, sizeof stack);
    memset(&program, 0, sizeof program);
    memset(&error, 0, sizeof error);
    bell_field_defaults(bell_stack_fields, &stack);
    bell_field_defaults(bell_program_fields, &program);
    return 0;
}

static void test_orderings(void **state)
{
    /* publish, nic, dbrec_release, dbrec_fence, doorbell_release */
    static const struct {
        const char *name;
        uint8_t steps[5];
    } expected[BELL_ORDERINGS] = {
        { "none", { 0, 0, 0, 0, 0 } },
        { "gpu-fence", { 1, 1, 0, 0, 0 } },
        { "gpu-fence+fenced-dbrec", { 1, 1, 0, 1, 0 } },
        { "gpu-release-store", { 0, 0, 1, 0, 1 } },
        { "threadfence", { 2, 2, 0, 2, 0 } },
        { "system-release-store", { 0, 0, 3, 0, 3 } },
        { "system-fence", { 2, 4, 0, 4, 0 } },
    };
    const struct bell_field *field = bell_field_find(bell_stack_fields, "ordering");
    (void)state;
    assert_int_equal(BELL_SCOPE_GPU | BELL_SCOPE_GPU_SC << 4 | BELL_SCOPE_SYS << 8 | BELL_SCOPE_SYS_SC << 12, 0x4321);
    for (uint32_t i = 0; i < BELL_ORDERINGS; i++) {
        assert_int_equal(bell_field_set_text(field, &stack, expected[i].name, &error), BELL_OK);
        assert_int_equal(stack.ordering, i);
        struct bell_ordering_steps s = bell_ordering_steps((enum bell_ordering)stack.ordering);
        const enum bell_scope steps[5] = { s.publish, s.nic, s.dbrec_release, s.dbrec_fence, s.doorbell_release };
        for (uint32_t k = 0; k < 5; k++)
            if (steps[k] != expected[i].steps[k])
                fail_msg("%s: step %u is %s", expected[i].name, k, bell_scope_name(steps[k]));
    }
    assert_null(field->names[BELL_ORDERINGS]);
    struct bell_ordering_steps past = bell_ordering_steps(BELL_ORDERINGS);
    assert_int_equal(past.publish | past.nic | past.dbrec_release | past.dbrec_fence | past.doorbell_release, 0);
}

static void refuse_stack(const char *complaint)
{
    assert_int_equal(bell_stack_validate(&stack, &error), BELL_INVALID);
    if (strncmp(error.text, complaint, strlen(complaint)) != 0)
        fail_msg("'%s' does not begin with '%s'", error.text, complaint);
    assert_int_equal(bell_stack_validate(&stack, NULL), BELL_INVALID);
    (void)fresh(NULL);
}

static void test_stack_refusals(void **state)
{
    (void)state;
    assert_int_equal(bell_stack_validate(&stack, &error), BELL_OK);
    stack.depth = 48;
    refuse_stack("depth: 48 is not a power of two");
    stack.depth = 0;
    refuse_stack("depth: 0");
    stack.ring_depth = 3;
    refuse_stack("ring_depth: 3 is not a power of two");
    stack.depth = 8;
    stack.wqes_per_doorbell = 9;
    refuse_stack("wqes_per_doorbell: 9 blocks");
    stack.submit = BELL_SUBMIT_PROXY;
    refuse_stack("queue_memory: a proxy worker posts from host memory");
    stack.submit = BELL_SUBMIT_PROXY;
    stack.queue_memory = BELL_MEMORY_HOST;
    stack.sharing = BELL_SHARING_LOCKED;
    refuse_stack("sharing: a proxy worker owns its send queue");
    stack.submit = BELL_SUBMIT_PROXY;
    stack.queue_memory = BELL_MEMORY_HOST;
    stack.depth = 8;
    stack.batch = 16;
    refuse_stack("batch: 16 blocks");
    stack.submit = BELL_SUBMIT_PROXY;
    stack.queue_memory = BELL_MEMORY_HOST;
    stack.depth = 8;
    stack.batch = 8;
    assert_int_equal(bell_stack_validate(&stack, &error), BELL_OK);
    stack.transport = BELL_TRANSPORT_DC; /* two blocks each */
    refuse_stack("batch: 16 blocks");
    stack.depth = stack.wqes_per_doorbell = 8;
    assert_int_equal(bell_stack_validate(&stack, &error), BELL_OK);
}

static void refuse_program(const char *complaint)
{
    assert_int_equal(bell_stack_validate(&stack, &error), BELL_OK);
    assert_int_equal(bell_program_validate(&program, &stack, &error), BELL_INVALID);
    if (strncmp(error.text, complaint, strlen(complaint)) != 0)
        fail_msg("'%s' does not begin with '%s'", error.text, complaint);
    (void)fresh(NULL);
}

static void accept_program(void)
{
    if (bell_program_validate(&program, &stack, &error) != BELL_OK) fail_msg("%s", error.text);
}

static void test_payload_refusals(void **state)
{
    (void)state;
    accept_program();
    program.bytes = 12;
    refuse_program("bytes: 12 is not a multiple of 8");
    program.bytes = 216; /* of 220 */
    accept_program();
    program.bytes = 224;
    refuse_program("bytes: 224 do not fit inline");
    program.bytes = 224;
    stack.payload = BELL_PAYLOAD_POINTER;
    accept_program();
    (void)fresh(NULL);
    stack.transport = BELL_TRANSPORT_DC; /* the vector takes 48 of the 220 */
    program.bytes = 168;
    accept_program();
    program.bytes = 176;
    refuse_program("bytes: 176 do not fit inline");
    /* A proxy's descriptor carries 8 bytes; more than that is read from memory, inline or not. */
    stack.submit = BELL_SUBMIT_PROXY;
    stack.queue_memory = BELL_MEMORY_HOST;
    program.bytes = 4096;
    accept_program();
}

static void test_depth_refusals(void **state)
{
    (void)state;
    stack.depth = stack.wqes_per_doorbell = 4;
    program.bytes = 56; /* two blocks */
    refuse_program("depth: 4 blocks do not hold the 8");
    stack.depth = 4;
    stack.wqes_per_doorbell = 2;
    program.bytes = 56;
    accept_program();
    (void)fresh(NULL);
    stack.depth = 4;
    stack.sharing = BELL_SHARING_COOPERATIVE;
    program.lanes = 8;
    refuse_program("depth: 4 blocks do not hold the 8");
    stack.depth = 8;
    stack.sharing = BELL_SHARING_COOPERATIVE;
    program.lanes = 8;
    accept_program();
    program.queues = 2;
    stack.depth = 4;
    accept_program();
}

static void test_sharing_refusals(void **state)
{
    (void)state;
    program.lanes = 4;
    program.queues = 3;
    refuse_program("queues: 4 lanes cannot share 3 queues evenly");
    program.queues = 2;
    refuse_program("queues: 1 lanes cannot share 2 queues");
    program.lanes = 2;
    refuse_program("sharing: 2 lanes a queue, expected ordered, cooperative or locked");
    program.lanes = 2;
    stack.sharing = BELL_SHARING_LOCKED;
    accept_program();
    (void)fresh(NULL);
    stack.submit = BELL_SUBMIT_PROXY;
    stack.queue_memory = BELL_MEMORY_HOST;
    program.lanes = 2;
    refuse_program("queues: a proxy ring has one producer, expected 2");
    stack.sharing = BELL_SHARING_COOPERATIVE;
    stack.wqes_per_doorbell = 2;
    refuse_program("wqes_per_doorbell: the 1 lanes of a queue are no groups of 2");
    program.warmup = 3;
    program.iterations = 10000000;
    assert_int_equal(bell_program_ops(&program), 10000003);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup(name, fresh)
    const struct CMUnitTest tests[] = {
        CASE(test_orderings),      CASE(test_stack_refusals),   CASE(test_payload_refusals),
        CASE(test_depth_refusals), CASE(test_sharing_refusals),
    };
    return cmocka_run_group_tests_name("stack", tests, NULL, NULL);
}
