/* SPDX-License-Identifier: Apache-2.0
 * The checker itself: does it see every schedule once, and every race, deadlock and lost wake-up?  Counts are those of
 * combinatorics. */
#include "core/port.h"
#include "tests/interleave/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

struct words {
    uint64_t *data, *flag, *other, *lock;
    bool release, acquire, fence;
};

static struct explore *begin(struct words *w, enum explore_kind flag)
{
    struct explore *x = explore_new();
    assert_non_null(x);
    memset(w, 0, sizeof *w);
    w->data = explore_place(x, "data", 8, 1, EXPLORE_DATA);
    w->flag = explore_place(x, "flag", 8, 1, flag);
    w->other = explore_place(x, "other", 8, 1, EXPLORE_WORD);
    w->lock = explore_place(x, "lock", 8, 1, EXPLORE_WORD);
    return x;
}

static void expect_failure(struct explore *x, const char *text)
{
    struct explore_result result;
    assert_false(explore_run(x, NULL, NULL, NULL, &result));
    if (!strstr(explore_failure(x), text)) fail_msg("expected '%s' in: %s", text, explore_failure(x));
    explore_free(x);
}

static void expect_schedules(struct explore *x, unsigned long schedules)
{
    struct explore_result result;
    if (!explore_run(x, NULL, NULL, NULL, &result)) fail_msg("%s", explore_failure(x));
    assert_true(result.schedules.word[0] == schedules && result.schedules.word[1] == 0);
    explore_free(x);
}

static void count_up(struct bell_lane *lane, void *context)
{
    struct words *w = context;
    for (int i = 0; i < 4; i++)
        (void)bell_port_fetch_add(lane, BELL_MEMORY_HOST, w->flag, 1);
}

static void test_every_schedule(void **state)
{
    struct words w;
    (void)state;
    struct explore *x = begin(&w, EXPLORE_WORD);
    explore_lane(x, "a", count_up, &w);
    explore_lane(x, "b", count_up, &w);
    expect_schedules(x, 70); /* 8! / (4! 4!) */
    x = begin(&w, EXPLORE_WORD);
    for (int i = 0; i < 3; i++)
        explore_lane(x, "a", count_up, &w);
    expect_schedules(x, 34650); /* 12! / (4! 4! 4!) */
}

static bool is_set(struct bell_lane *lane, void *context)
{
    struct words *w = context;
    return w->acquire ? bell_port_load_acquire(lane, BELL_MEMORY_HOST, w->flag) != 0
                      : bell_port_load(lane, BELL_MEMORY_HOST, w->flag) != 0;
}

static void produce(struct bell_lane *lane, void *context)
{
    struct words *w = context;
    uint64_t value = 7;
    explore_write(lane, w->data, &value, sizeof value);
    if (w->fence) bell_port_fence(lane, BELL_SCOPE_GPU);
    if (w->release)
        bell_port_store_release(lane, BELL_MEMORY_HOST, w->flag, 1);
    else
        bell_port_store(lane, BELL_MEMORY_HOST, w->flag, 1);
}

static void consume(struct bell_lane *lane, void *context)
{
    struct words *w = context;
    uint64_t value = 0;
    assert_int_equal(bell_port_wait(lane, w->flag, is_set, w, "the flag"), BELL_OK);
    explore_read(lane, &value, w->data, sizeof value);
    explore_claim(lane, value == 7, "wrong value");
}

static void test_message(void **state)
{
    struct words w;
    (void)state;
    for (int i = 0; i < 8; i++) {
        struct explore *x = begin(&w, EXPLORE_WORD);
        w.release = i & 1;
        w.acquire = i & 2;
        w.fence = i & 4;
        explore_lane(x, "producer", produce, &w);
        explore_lane(x, "consumer", consume, &w);
        if (w.acquire && (w.release || w.fence))
            expect_schedules(x, 1);
        else
            expect_failure(x, "race: read without having acquired the store");
    }
}

static void produce_late(struct bell_lane *lane, void *context)
{
    struct words *w = context;
    uint64_t value = 7;
    bell_port_fence(lane, BELL_SCOPE_GPU);
    explore_write(lane, w->data, &value, sizeof value);
    bell_port_store(lane, BELL_MEMORY_HOST, w->flag, 1);
}

static void test_fence_orders_only_what_is_before(void **state)
{
    struct words w;
    (void)state;
    struct explore *x = begin(&w, EXPLORE_WORD);
    w.acquire = true;
    explore_lane(x, "producer", produce_late, &w);
    explore_lane(x, "consumer", consume, &w);
    expect_failure(x, "race");
}

static void overwrite(struct bell_lane *lane, void *context)
{
    struct words *w = context;
    uint64_t value = 7;
    assert_int_equal(bell_port_wait(lane, w->flag, is_set, w, "the flag"), BELL_OK);
    explore_write(lane, w->data, &value, sizeof value);
}

static void read_then_set(struct bell_lane *lane, void *context)
{
    struct words *w = context;
    uint64_t value;
    explore_read(lane, &value, w->data, sizeof value);
    bell_port_store_release(lane, BELL_MEMORY_HOST, w->flag, 1);
}

static void test_overwrite_needs_acquire(void **state)
{
    struct words w;
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct explore *x = begin(&w, EXPLORE_WORD);
        w.acquire = i;
        explore_lane(x, "reader", read_then_set, &w);
        explore_lane(x, "writer", overwrite, &w);
        if (w.acquire)
            expect_schedules(x, 1);
        else
            expect_failure(x, "race: stored to while another lane may still read");
    }
}

static void test_count(void **state)
{
    struct explore_count c = { { UINT64_MAX, UINT64_MAX, 0, 0 } }, two = { { 2, 0, 0, 0 } };
    char text[EXPLORE_COUNT_TEXT];
    (void)state;
    assert_string_equal(explore_count_text(c, text), "340282366920938463463374607431768211455");
    count_add(&c, &two);
    assert_string_equal(explore_count_text(c, text), "340282366920938463463374607431768211457");
}

static void lock_both(struct bell_lane *lane, void *context)
{
    struct words *w = context;
    uint64_t *first = lane->number ? w->lock : w->other, *second = lane->number ? w->other : w->lock;
    w->acquire = true;
    if (!bell_port_cas(lane, BELL_MEMORY_HOST, first, 0, 1) || !bell_port_cas(lane, BELL_MEMORY_HOST, second, 0, 1))
        (void)bell_port_wait(lane, w->flag, is_set, w, "the other lock");
    bell_port_store_release(lane, BELL_MEMORY_HOST, w->flag, 1);
}

static void test_deadlock(void **state)
{
    struct words w;
    (void)state;
    struct explore *x = begin(&w, EXPLORE_WORD);
    explore_lane(x, "a", lock_both, &w);
    explore_lane(x, "b", lock_both, &w);
    expect_failure(x, "deadlock");
}

static void add_unguarded(struct bell_lane *lane, void *context)
{
    struct words *w = context;
    uint64_t value = bell_port_load(lane, BELL_MEMORY_HOST, w->flag);
    bell_port_store(lane, BELL_MEMORY_HOST, w->flag, value + 1);
}

static const char *is_two(struct explore *x, void *context)
{
    const struct words *w = context;
    (void)x;
    return *w->flag == 2 ? NULL : "an addition was lost";
}

static void test_lost_update(void **state)
{
    struct words w;
    struct explore_result result;
    (void)state;
    struct explore *x = begin(&w, EXPLORE_WORD);
    explore_lane(x, "a", add_unguarded, &w);
    explore_lane(x, "b", add_unguarded, &w);
    assert_false(explore_run(x, NULL, is_two, &w, &result));
    assert_non_null(strstr(explore_failure(x), "an addition was lost"));
    explore_free(x);
    x = begin(&w, EXPLORE_DATA);
    explore_lane(x, "a", add_unguarded, &w);
    explore_lane(x, "b", add_unguarded, &w);
    expect_failure(x, "race");
}

static void set_quietly(struct bell_lane *lane, void *context)
{
    struct words *w = context;
    bell_port_store(lane, BELL_MEMORY_HOST, w->flag, 1); /* wakes nobody */
}

static void await(struct bell_lane *lane, void *context)
{
    struct words *w = context;
    assert_int_equal(bell_port_wait(lane, w->flag, is_set, w, "the flag"), BELL_OK);
}

static void test_lost_wake_up(void **state)
{
    struct words w;
    (void)state;
    struct explore *x = begin(&w, EXPLORE_WORD);
    explore_lane(x, "a", set_quietly, &w);
    explore_lane(x, "b", await, &w);
    expect_schedules(x, 1);
    x = begin(&w, EXPLORE_WORD);
    explore_wake_by_key(x);
    explore_lane(x, "a", set_quietly, &w);
    explore_lane(x, "b", await, &w);
    expect_failure(x, "deadlock");
    x = begin(&w, EXPLORE_WORD);
    explore_wake_by_key(x);
    w.acquire = w.release = true;
    explore_lane(x, "a", produce, &w);
    explore_lane(x, "b", consume, &w);
    expect_schedules(x, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_schedule),
        cmocka_unit_test(test_count),
        cmocka_unit_test(test_message),
        cmocka_unit_test(test_fence_orders_only_what_is_before),
        cmocka_unit_test(test_overwrite_needs_acquire),
        cmocka_unit_test(test_deadlock),
        cmocka_unit_test(test_lost_update),
        cmocka_unit_test(test_lost_wake_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
