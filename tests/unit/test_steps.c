/* SPDX-License-Identifier: Apache-2.0
 * The graph of an operation, on hand-made events: what is on the critical path, and what each step is worth. */
#include "traces/steps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define EVENTS_MAX 16

/* A list of events; seq is the place in it, from 1. */
struct list {
    struct bell_event event[EVENTS_MAX];
    size_t count;
    struct bell_steps steps;
    struct bell_error err;
};

/* What acts is said by kind: lanes are on the GPU but for those that a test changes. */
static uint64_t add(struct list *l, enum bell_event_kind kind, uint16_t rank, uint16_t lane, uint64_t start_ps,
                    uint64_t end_ps, uint64_t cause)
{
    assert_true(l->count < EVENTS_MAX);
    struct bell_event *e = l->event + l->count++;
    memset(e, 0, sizeof *e);
    e->seq = l->count;
    e->kind = (uint8_t)kind;
    e->rank = rank;
    e->lane = lane;
    e->start_ps = start_ps;
    e->duration_ps = end_ps - start_ps;
    e->cause = cause;
    e->actor = kind == BELL_EVENT_NIC_FETCH || kind == BELL_EVENT_NIC_SCHEDULE ? BELL_ACTOR_NIC
               : kind == BELL_EVENT_WIRE || kind == BELL_EVENT_ACK             ? BELL_ACTOR_WIRE
               : kind == BELL_EVENT_DELIVER || kind == BELL_EVENT_CQE || kind == BELL_EVENT_DOORBELL_FLIGHT
                   ? BELL_ACTOR_PCIE
                   : BELL_ACTOR_GPU;
    return e->seq;
}

static uint64_t add_op(struct list *l, uint16_t rank, uint16_t lane, uint64_t start_ps, uint64_t end_ps)
{
    return add(l, BELL_EVENT_OP, rank, lane, start_ps, end_ps, 0);
}

/* The operation that event `op` closes; holds for every graph. */
static void take_apart(struct list *l, uint64_t op)
{
    assert_int_equal(bell_steps_of(l->event, l->count, (size_t)op - 1, &l->steps, &l->err), BELL_OK);
    const struct bell_steps *s = &l->steps;
    uint64_t critical_ps = 0;
    assert_int_equal(s->start_ps, l->event[op - 1].start_ps);
    assert_int_equal(s->total_ps, l->event[op - 1].duration_ps);
    assert_int_equal(s->critical_ps + s->gap_ps, s->total_ps);
    assert_true(s->gap_ps <= s->total_ps);
    for (size_t i = 0; i < s->count; i++) {
        critical_ps += s->step[i].is_critical ? s->step[i].event.duration_ps : 0;
        assert_true(s->step[i].gain_ps <= s->step[i].event.duration_ps);
        if (!s->step[i].is_critical) assert_int_equal(s->step[i].gain_ps, 0);
        if (i) assert_true(s->step[i - 1].event.start_ps <= s->step[i].event.start_ps);
    }
    assert_true(critical_ps >= s->critical_ps);
}

static const struct bell_step *step(const struct list *l, uint64_t seq)
{
    for (size_t i = 0; i < l->steps.count; i++)
        if (l->steps.step[i].event.seq == seq) return l->steps.step + i;
    return NULL;
}

static void expect(const struct list *l, uint64_t seq, bool is_critical, uint64_t gain_ps)
{
    const struct bell_step *s = step(l, seq);
    assert_non_null(s);
    assert_int_equal(s->is_critical, is_critical);
    assert_int_equal(s->gain_ps, gain_ps);
}

static void test_chain(void **state)
{
    struct list l = { .count = 0 };
    uint64_t a = add(&l, BELL_EVENT_BUILD, 0, 0, 100, 110, 0), b = add(&l, BELL_EVENT_FENCE, 0, 0, 110, 130, 0);
    uint64_t c = add(&l, BELL_EVENT_DOORBELL, 0, 0, 130, 160, 0);
    (void)state;
    take_apart(&l, add_op(&l, 0, 0, 100, 160));
    assert_int_equal(l.steps.count, 3);
    expect(&l, a, true, 10);
    expect(&l, b, true, 20);
    expect(&l, c, true, 30);
    assert_int_equal(l.steps.critical_ps, 60);
    assert_int_equal(l.steps.gap_ps, 0);
    bell_steps_free(&l.steps);
    assert_null(l.steps.step);
    assert_int_equal(l.steps.count, 0);
}

/* doorbell -> wire -> acknowledgement -> poll, and a delivery that nobody waits for. */
static void test_fork(void **state)
{
    struct list l = { .count = 0 };
    uint64_t ring = add(&l, BELL_EVENT_DOORBELL, 0, 0, 0, 10, 0), wire = add(&l, BELL_EVENT_WIRE, 0, 2, 10, 40, ring);
    uint64_t deliver = add(&l, BELL_EVENT_DELIVER, 0, 2, 40, 45, wire),
             ack = add(&l, BELL_EVENT_ACK, 0, 2, 40, 60, wire);
    uint64_t poll = add(&l, BELL_EVENT_POLL, 0, 0, 60, 67, ack);
    (void)state;
    take_apart(&l, add_op(&l, 0, 0, 0, 67));
    assert_int_equal(l.steps.count, 5);
    expect(&l, ring, true, 10);
    expect(&l, wire, true, 30);
    expect(&l, deliver, false, 0);
    expect(&l, ack, true, 20);
    expect(&l, poll, true, 7);
    assert_int_equal(l.steps.gap_ps, 0);
    bell_steps_free(&l.steps);
}

/* The poll follows the lane's own work (to 28) and the fetch (to 30): without the fetch it starts 2 sooner. */
static void test_join(void **state)
{
    struct list l = { .count = 0 };
    uint64_t ring = add(&l, BELL_EVENT_DOORBELL, 0, 0, 0, 10, 0);
    uint64_t fetch = add(&l, BELL_EVENT_NIC_FETCH, 0, 2, 10, 30, ring),
             work = add(&l, BELL_EVENT_BUILD, 0, 0, 10, 28, 0);
    uint64_t poll = add(&l, BELL_EVENT_POLL, 0, 0, 30, 35, fetch);
    (void)state;
    take_apart(&l, add_op(&l, 0, 0, 0, 35));
    expect(&l, ring, true, 10);
    expect(&l, fetch, true, 2);
    expect(&l, work, false, 0);
    expect(&l, poll, true, 5);
    assert_int_equal(l.steps.critical_ps, 35);
    bell_steps_free(&l.steps);
    /* The other way round the lane's work is what counts. */
    l.event[work - 1].duration_ps = 23;
    l.event[poll - 1].start_ps = 33;
    l.event[poll].duration_ps = 38;
    take_apart(&l, poll + 1);
    expect(&l, fetch, false, 0);
    expect(&l, work, true, 3);
    bell_steps_free(&l.steps);
    /* Equal: neither alone is worth anything. */
    l.event[work - 1].duration_ps = 20;
    l.event[poll - 1].start_ps = 30;
    l.event[poll].duration_ps = 35;
    take_apart(&l, poll + 1);
    expect(&l, fetch, true, 0);
    expect(&l, work, false, 0);
    bell_steps_free(&l.steps);
}

/* A round trip: the partner's steps count from the one that this operation caused, not the one before it. */
static void test_partner(void **state)
{
    struct list l = { .count = 0 };
    uint64_t ring = add(&l, BELL_EVENT_DOORBELL, 0, 0, 0, 10, 0), old = add(&l, BELL_EVENT_BUILD, 1, 0, 5, 12, 0);
    uint64_t there = add(&l, BELL_EVENT_DELIVER, 0, 2, 10, 30, ring),
             seen = add(&l, BELL_EVENT_FLAG, 1, 0, 30, 33, there);
    uint64_t build = add(&l, BELL_EVENT_BUILD, 1, 0, 33, 40, 0), answer = add(&l, BELL_EVENT_DOORBELL, 1, 0, 40, 41, 0);
    uint64_t lone = add(&l, BELL_EVENT_BUILD, 1, 1, 40, 44, 0);
    uint64_t back = add(&l, BELL_EVENT_DELIVER, 1, 2, 41, 61, answer),
             flag = add(&l, BELL_EVENT_FLAG, 0, 0, 61, 64, back);
    (void)state;
    take_apart(&l, add_op(&l, 0, 0, 0, 64));
    assert_null(step(&l, old));
    assert_null(step(&l, lone));
    expect(&l, ring, true, 10);
    expect(&l, there, true, 20);
    expect(&l, seen, true, 3);
    expect(&l, build, true, 7);
    expect(&l, answer, true, 1);
    expect(&l, back, true, 20);
    expect(&l, flag, true, 3);
    assert_int_equal(l.steps.count, 7);
    assert_int_equal(l.steps.critical_ps, 64);
    bell_steps_free(&l.steps);
}

/* What the machine does on its own follows its cause alone: two deliveries of one NIC do not wait for each other. */
static void test_machine_has_no_order(void **state)
{
    struct list l = { .count = 0 };
    uint64_t ring = add(&l, BELL_EVENT_DOORBELL, 0, 0, 0, 10, 0), first = add(&l, BELL_EVENT_WIRE, 0, 2, 10, 50, ring);
    uint64_t second = add(&l, BELL_EVENT_WIRE, 0, 2, 10, 30, ring),
             poll = add(&l, BELL_EVENT_POLL, 0, 0, 30, 35, second);
    (void)state;
    take_apart(&l, add_op(&l, 0, 0, 0, 35));
    expect(&l, first, false, 0);
    expect(&l, second, true, 20);
    expect(&l, poll, true, 5);
    bell_steps_free(&l.steps);
}

/* Time that no step accounts for stays when a step goes. */
static void test_gaps(void **state)
{
    struct list l = { .count = 0 };
    uint64_t a = add(&l, BELL_EVENT_BUILD, 0, 0, 5, 10, 0), b = add(&l, BELL_EVENT_DOORBELL, 0, 0, 14, 20, 0);
    (void)state;
    take_apart(&l, add_op(&l, 0, 0, 0, 23));
    expect(&l, a, true, 5);
    expect(&l, b, true, 6);
    assert_int_equal(l.steps.critical_ps, 11);
    assert_int_equal(l.steps.gap_ps, 12);
    bell_steps_free(&l.steps);
}

/* And so it limits what another step is worth: the work of the join, 4 late, ends at 28 in any case. */
static void test_gap_in_join(void **state)
{
    struct list l = { .count = 0 };
    uint64_t ring = add(&l, BELL_EVENT_DOORBELL, 0, 0, 0, 10, 0);
    uint64_t fetch = add(&l, BELL_EVENT_NIC_FETCH, 0, 2, 10, 30, ring);
    uint64_t work = add(&l, BELL_EVENT_BUILD, 0, 0, 14, 28, 0);
    (void)state;
    (void)add(&l, BELL_EVENT_POLL, 0, 0, 30, 35, fetch);
    take_apart(&l, add_op(&l, 0, 0, 0, 35));
    expect(&l, fetch, true, 2);
    expect(&l, work, false, 0);
    bell_steps_free(&l.steps);
}

/* In real time a step may begin before what it waited for has ended: the overlap is counted once. */
static void test_overlap(void **state)
{
    struct list l = { .count = 0 };
    uint64_t ring = add(&l, BELL_EVENT_DOORBELL, 0, 0, 0, 10, 0), cqe = add(&l, BELL_EVENT_CQE, 0, 2, 10, 30, ring);
    uint64_t poll = add(&l, BELL_EVENT_POLL, 0, 0, 10, 32, cqe);
    (void)state;
    take_apart(&l, add_op(&l, 0, 0, 0, 32));
    assert_true(step(&l, ring)->is_critical && step(&l, cqe)->is_critical && step(&l, poll)->is_critical);
    assert_int_equal(l.steps.critical_ps, 32);
    assert_int_equal(l.steps.gap_ps, 0);
    bell_steps_free(&l.steps);
}

/* Two lanes at once: each operation has the steps of its lane, and one has waited for the other. */
static void test_two_lanes(void **state)
{
    struct list l = { .count = 0 };
    uint64_t a0 = add(&l, BELL_EVENT_BUILD, 0, 0, 0, 10, 0), a1 = add(&l, BELL_EVENT_BUILD, 0, 1, 0, 4, 0);
    uint64_t b0 = add(&l, BELL_EVENT_PUBLISH, 0, 0, 10, 15, 0), b1 = add(&l, BELL_EVENT_DOORBELL, 0, 1, 15, 18, b0);
    uint64_t op0 = add_op(&l, 0, 0, 0, 15), op1 = add_op(&l, 0, 1, 0, 18);
    (void)state;
    take_apart(&l, op0);
    assert_int_equal(l.steps.count, 2);
    expect(&l, a0, true, 10);
    expect(&l, b0, true, 5);
    bell_steps_free(&l.steps);
    /* What the other lane did is not part of this operation, so waiting for it is. */
    take_apart(&l, op1);
    assert_int_equal(l.steps.count, 2);
    expect(&l, a1, true, 4);
    expect(&l, b1, true, 3);
    assert_int_equal(l.steps.gap_ps, 11);
    bell_steps_free(&l.steps);
}

/* The second of two operations: nothing of the first, nor of what came after it. */
static void test_second_operation(void **state)
{
    struct list l = { .count = 0 };
    uint64_t a = add(&l, BELL_EVENT_DOORBELL, 0, 0, 0, 10, 0), op = add_op(&l, 0, 0, 0, 10);
    uint64_t b = add(&l, BELL_EVENT_BUILD, 0, 0, 20, 26, 0), c = add(&l, BELL_EVENT_POLL, 0, 0, 30, 33, a);
    uint64_t after = 0;
    (void)state;
    op = add_op(&l, 0, 0, 20, 33);
    after = add(&l, BELL_EVENT_BUILD, 0, 0, 33, 40, b);
    take_apart(&l, op);
    assert_null(step(&l, a));
    assert_null(step(&l, after));
    expect(&l, b, true, 6);
    expect(&l, c, true, 3);
    assert_int_equal(l.steps.gap_ps, 4);
    bell_steps_free(&l.steps);
}

/* Rank 1 has a lane of the same number; a worker is a lane like a GPU thread. */
static void test_who(void **state)
{
    struct list l = { .count = 0 };
    uint64_t put = add(&l, BELL_EVENT_ENQUEUE, 0, 0, 0, 10, 0), other = add(&l, BELL_EVENT_BUILD, 1, 0, 2, 9, 0);
    uint64_t take = add(&l, BELL_EVENT_DEQUEUE, 0, 1, 10, 12, put),
             post = add(&l, BELL_EVENT_DOORBELL, 0, 1, 12, 20, 0);
    uint64_t flag = add(&l, BELL_EVENT_FLAG, 0, 0, 20, 21, post);
    (void)state;
    l.event[take - 1].actor = l.event[post - 1].actor = BELL_ACTOR_CPU;
    take_apart(&l, add_op(&l, 0, 0, 0, 21));
    assert_null(step(&l, other));
    expect(&l, put, true, 10);
    expect(&l, take, true, 2);
    expect(&l, post, true, 8);
    expect(&l, flag, true, 1);
    bell_steps_free(&l.steps);
}

static void test_order_of_steps(void **state)
{
    struct list l = { .count = 0 };
    uint64_t ring = add(&l, BELL_EVENT_DOORBELL, 0, 0, 0, 10, 0), late = add(&l, BELL_EVENT_WIRE, 0, 2, 20, 30, ring);
    uint64_t early = add(&l, BELL_EVENT_NIC_FETCH, 0, 2, 10, 15, ring),
             same = add(&l, BELL_EVENT_CQE, 0, 2, 10, 12, ring);
    uint64_t poll = add(&l, BELL_EVENT_POLL, 0, 0, 30, 31, late), order[] = { ring, early, same, late, poll };
    (void)state;
    take_apart(&l, add_op(&l, 0, 0, 0, 31));
    assert_int_equal(l.steps.count, 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(l.steps.step[i].event.seq, order[i]);
    bell_steps_free(&l.steps);
}

static void assert_refused(struct list *l, size_t count, size_t op, const char *why)
{
    l->err = (struct bell_error){ BELL_OK, "" };
    memset(&l->steps, 0xff, sizeof l->steps);
    assert_int_equal(bell_steps_of(l->event, count, op, &l->steps, &l->err), BELL_INVALID);
    assert_non_null(strstr(l->err.text, why));
    assert_null(l->steps.step);
    assert_int_equal(l->steps.count, 0);
}

static void test_refused(void **state)
{
    struct list l = { .count = 0 };
    (void)state;
    (void)add(&l, BELL_EVENT_BUILD, 0, 0, 0, 10, 0);
    (void)add_op(&l, 0, 0, 0, 10);
    (void)add_op(&l, 0, 1, 0, 10);
    assert_refused(&l, l.count, 0, "event 1 closes no operation");
    assert_refused(&l, l.count, 3, "event 4 closes no operation");
    assert_refused(&l, 1, 1, "event 2 closes no operation");
    assert_refused(&l, 0, 0, "event 1 closes no operation");
    assert_refused(&l, l.count, 2, "event 3: the operation has no steps");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_join),
        cmocka_unit_test(test_partner),
        cmocka_unit_test(test_machine_has_no_order),
        cmocka_unit_test(test_gaps),
        cmocka_unit_test(test_gap_in_join),
        cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_two_lanes),
        cmocka_unit_test(test_second_operation),
        cmocka_unit_test(test_who),
        cmocka_unit_test(test_order_of_steps),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
