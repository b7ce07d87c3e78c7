/* SPDX-License-Identifier: Apache-2.0
 * One order for what a GPU lane and a NIC thread traced in two clocks. */
#include "hw/cuda/order.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define PUTS 20u
#define US ((uint64_t)1000000)

static struct bell_event lane_event[2 * PUTS], nic_event[2 * PUTS];
static struct bell_soft_member member[2];
static struct bell_soft_crew crew;

static struct bell_event event(enum bell_event_kind kind, uint64_t index, uint64_t start_ps, uint64_t duration_ps)
{
    return (struct bell_event){ .kind = (uint8_t)kind, .index = index, .start_ps = start_ps,
                                .duration_ps = duration_ps, .rank = 0, .queue = 0 };
}

/* Puts of one block, 10 us apart in the host's clock; the GPU's reads `ahead_ps` more.  The NIC delivers `after_ps`
 * from where the doorbell's store began, and the lane polls `after_ps` from where the CQE's began: less than either
 * lasts. */
static void trace_puts(int64_t ahead_ps, uint64_t after_ps)
{
    for (uint32_t i = 0; i < PUTS; i++) {
        uint64_t rung = 1000 * US + 10 * US * i, done = rung + after_ps, gpu = (uint64_t)ahead_ps;
        lane_event[2 * i] = event(BELL_EVENT_DOORBELL, i + 1, rung + gpu, US / 2);
        nic_event[2 * i] = event(BELL_EVENT_DELIVER, i, done - US / 20, US / 20);
        nic_event[2 * i + 1] = event(BELL_EVENT_CQE, i, done, US / 2);
        lane_event[2 * i + 1] = event(BELL_EVENT_POLL, i + 1, done + after_ps - US / 20 + gpu, US / 20);
        nic_event[2 * i].seq = 2 * i + 1;
        nic_event[2 * i + 1].seq = 2 * i + 2;
        lane_event[2 * i].lane = lane_event[2 * i + 1].lane = 0;
        nic_event[2 * i].lane = nic_event[2 * i + 1].lane = 1;
    }
    member[0] = (struct bell_soft_member){ .role = BELL_SOFT_LANE };
    member[0].lane.event = lane_event;
    member[1] = (struct bell_soft_member){ .role = BELL_SOFT_NIC };
    member[1].lane.event = nic_event;
    member[0].lane.events = member[1].lane.events = 2 * PUTS;
    crew.member = member;
    crew.members = 2;
}

static void expect_cause_before_effect(void)
{
    for (uint32_t i = 0; i < PUTS; i++) {
        assert_true(lane_event[2 * i].seq < nic_event[2 * i].seq);         /* rung, delivered */
        assert_true(nic_event[2 * i].seq < nic_event[2 * i + 1].seq);      /* then the CQE */
        assert_true(nic_event[2 * i + 1].seq < lane_event[2 * i + 1].seq); /* then polled */
        if (i) assert_true(lane_event[2 * i - 1].seq < lane_event[2 * i].seq);
    }
}

/* The measured offset is off by up to what is said of it; clocks are read after the stores they stand for. */
static void test_two_clocks(void **state)
{
    const int64_t ahead_ps = (int64_t)5000 * (int64_t)US, wrong_ps[] = { -2000000, -300000, 0, 300000, 2000000 };
    (void)state;
    for (size_t i = 0; i < sizeof wrong_ps / sizeof wrong_ps[0]; i++) {
        struct bell_error err;
        trace_puts(ahead_ps, US / 4);
        assert_int_equal(bell_gpu_order(&crew, wrong_ps[i] - ahead_ps, &err), BELL_OK);
        expect_cause_before_effect();
        uint64_t moved = lane_event[0].start_ps - 1000 * US; /* never further than the bounds allow */
        assert_true(moved < US / 2 || moved > UINT64_MAX - US / 2);
    }
}

/* Numbers run from 1 without a gap. */
static void test_numbers(void **state)
{
    bool seen[4 * PUTS + 1] = { false };
    struct bell_error err;
    (void)state;
    trace_puts(0, US / 4);
    assert_int_equal(bell_gpu_order(&crew, 0, &err), BELL_OK);
    for (uint32_t i = 0; i < 2 * PUTS; i++)
        seen[lane_event[i].seq] = seen[nic_event[i].seq] = true;
    for (uint32_t i = 1; i <= 4 * PUTS; i++)
        assert_true(seen[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_two_clocks), cmocka_unit_test(test_numbers) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
