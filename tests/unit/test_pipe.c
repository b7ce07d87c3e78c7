/* SPDX-License-Identifier: Apache-2.0
 * A NIC that takes its time, in time that the test makes up: what is done at which picosecond. */
#include "tests/unit/rig.h"

#include "hw/soft/pipe.h"

/* Sums of any of these differ. */
static const struct bell_pace pace = { .name = "test", .doorbell_ps = 1, .fetch_ps = 20, .payload_read_ps = 300,
                                       .wire_ps = 4000, .ack_ps = 50000, .cqe_ps = 600000 };
#define DELIVERED 4021u
#define ANSWERED 54021u
#define COMPLETED 654021u
#define PAYLOAD 300u

static struct rig rig;
static struct bell_pipe *pipe_;
static struct bell_lateness late;
static uint64_t wqes;

static void open_with(const struct bell_pace *p, uint32_t depth)
{
    rig_open(&rig, depth, BELL_CQ_RING, 0xfffe);
    memset(&late, 0, sizeof late);
    wqes = 0;
    assert_int_equal(bell_pipe_open(&pipe_, p, depth), BELL_OK);
}

static int close_all(void **state)
{
    (void)state;
    bell_pipe_close(pipe_);
    pipe_ = NULL;
    rig_close(&rig);
    return 0;
}

/* All that is due at `now`, stages that follow each other at once too. */
static void turn(uint64_t now_ps)
{
    enum bell_status s;
    do {
        s = bell_pipe_turn(pipe_, &rig.nic, &rig.nicq, now_ps, &wqes, &late);
        assert_false(bell_is_failure(s));
    } while (s == BELL_OK);
}

static void put_with(struct bell_wqe_request q, uint32_t fm_ce_se)
{
    uint64_t reserved = rig.words.reserved;
    q.fm_ce_se = fm_ce_se;
    assert_int_equal(bell_sq_build(&rig.lane[0], &rig.sq, reserved, &q), BELL_OK);
    uint64_t end = reserved + rig.sq.span[reserved & (rig.sq.depth - 1)];
    rig.words.reserved = end;
    rig.dbrec = bell_dbrec_value(end);
    rig.doorbell = bell_wqe_doorbell(RIG_QPN, end);
}

static void put(uint32_t bytes, uint32_t at, bool is_inline)
{
    put_with(rig_write(&rig, bytes, at, is_inline), BELL_WQE_CE_ALWAYS);
}

static void put_read(uint32_t from, uint32_t to)
{
    struct bell_wqe_request q = rig_write(&rig, 8, from, false);
    q.opcode = BELL_WQE_READ;
    q.laddr = (uint64_t)(uintptr_t)(rig.from + to);
    put_with(q, BELL_WQE_CE_ALWAYS);
}

static void test_each_stage_has_its_time(void **state)
{
    (void)state;
    open_with(&pace, 8);
    turn(1000);
    assert_int_equal(wqes, 0);
    put(8, 0, true);
    turn(2000);
    turn(2000 + DELIVERED - 1);
    assert_true(rig.to[0] == 0 && rig.nicq.cq_produced == 0);
    turn(2000 + DELIVERED);
    assert_true(rig.to[0] == rig.from[0] && rig.nicq.cq_produced == 0);
    turn(2000 + COMPLETED - 1);
    assert_true(rig.nicq.cq_produced == 0 && wqes == 0);
    turn(2000 + COMPLETED);
    assert_true(rig.nicq.cq_produced == 1 && wqes == 1);
    put(8, 1, false); /* this one's payload is read */
    turn(9000000);
    turn(9000000 + DELIVERED + PAYLOAD - 1);
    assert_true(rig.to[1] == 0);
    turn(9000000 + DELIVERED + PAYLOAD);
    assert_true(rig.to[1] == rig.from[1]);
    turn(9000000 + COMPLETED + PAYLOAD);
    assert_true(rig.nicq.cq_produced == 2);
    assert_true(bell_lateness_median_ps(&late) == 0 && late.total == 6);
}

/* Eight at once take little longer than one; those behind a pointer do not overtake it. */
static void test_many_under_way_in_order(void **state)
{
    struct bell_pace p = pace;
    (void)state;
    p.per_wqe_ps = 7;
    p.per_kib_ps = 1024;
    open_with(&p, 8);
    put(8, 0, false);
    for (uint32_t i = 1; i < 8; i++)
        put(16, 2 * i, true);
    turn(0);
    uint64_t first = DELIVERED + PAYLOAD + 7 + 8;
    turn(first - 1);
    assert_int_equal(rig.to[0] | rig.to[2], 0);
    for (uint64_t i = 0; i < 8; i++) {
        turn(first + i * (7 + 16));
        assert_true(rig.to[2 * i] == rig.from[2 * i]);
        if (i < 7) assert_int_equal(rig.to[2 * i + 2], 0);
    }
    turn(first + COMPLETED - DELIVERED + 3 * (7 + 16));
    assert_int_equal(rig.nicq.cq_produced, 4);
    turn(first + COMPLETED - DELIVERED + 7 * (7 + 16));
    assert_int_equal(wqes, 8);
    for (uint32_t i = 0; i < 8; i++)
        assert_int_equal(bell_cqe_tail_counter(bell_cqe_tail(rig.sq.cqe + i)), (0xfffe + i) & 0xffff);
}

/* WQEs that are rung for later start later. */
static void test_doorbells_one_by_one(void **state)
{
    (void)state;
    open_with(&pace, 8);
    put(8, 0, true);
    turn(0);
    put(8, 1, true);
    turn(10);
    put(8, 2, true);
    turn(11);
    turn(DELIVERED + 9);
    assert_true(rig.to[0] && !rig.to[1]);
    turn(DELIVERED + 10);
    assert_true(rig.to[1] && !rig.to[2]);
    turn(DELIVERED + 11);
    assert_true(rig.to[2]);
}

/* A server that was away catches up: what was due is done, and what follows is where it would have been. */
static void test_late_server(void **state)
{
    (void)state;
    open_with(&pace, 8);
    put(8, 0, true);
    turn(0);
    turn(DELIVERED + 5000000); /* all stages at once */
    assert_int_equal(rig.nicq.cq_produced, 1);
    assert_int_equal(late.total, 3);
    uint64_t median = bell_lateness_median_ps(&late);
    assert_in_range(median, (5000000 - 50000) * 7 / 8, 5000000 - 50000);
}

static void test_lateness(void **state)
{
    (void)state;
    struct bell_lateness l;
    memset(&l, 0, sizeof l);
    assert_true(bell_lateness_median_ps(&l) == 0);
    for (uint64_t ns = 1; ns < UINT64_C(1) << 50; ns = ns * 9 / 8 + 1) {
        memset(&l, 0, sizeof l);
        bell_lateness_add(&l, ns * 1000);
        uint64_t m = bell_lateness_median_ps(&l);
        assert_true(m <= ns * 1000 && m >= ns * 1000 * 7 / 8);
    }
    memset(&l, 0, sizeof l);
    for (uint32_t i = 0; i < 5; i++)
        bell_lateness_add(&l, i < 3 ? 5000 : 8000000);
    assert_int_equal(bell_lateness_median_ps(&l), 5000);
    bell_lateness_add(&l, UINT64_MAX); /* has a bucket */
}

/* ---- reads and fences ---- */

/* The answer is what the peer's memory held when the read was there; a later write does not change it. */
static void test_read_comes_back(void **state)
{
    (void)state;
    open_with(&pace, 8);
    rig.to[0] = 5;
    rig.from[0] = 6;
    put_read(0, 9);
    put(8, 0, true);
    turn(0);
    uint64_t before = rig.from[9];
    turn(DELIVERED);
    assert_true(rig.to[0] == 6 && rig.from[9] == before);
    turn(ANSWERED - 1);
    assert_true(rig.from[9] == before);
    turn(ANSWERED);
    assert_true(rig.from[9] == 5);
    turn(COMPLETED);
    assert_int_equal(rig.nicq.cq_produced, 2);
}

/* A write sends what a read brought: with a fence it waits, in each of the modes; without one it sends what was there
 * before. */
static void test_fences(void **state)
{
    static const uint32_t modes[] = { 0, BELL_WQE_FENCE_MODE_1, BELL_WQE_FENCE_MODE_2, BELL_WQE_FENCE_MODE_3,
                                      BELL_WQE_FENCE_MODE_4 };
    (void)state;
    for (size_t m = 0; m < 5; m++) {
        open_with(&pace, 8);
        rig.to[0] = 123;
        rig.from[1] = 45;
        put_read(0, 1);
        put_with(rig_write(&rig, 8, 1, false), BELL_WQE_CE_ALWAYS | modes[m]);
        turn(0);
        turn(DELIVERED + PAYLOAD);
        assert_true(rig.to[1] == (m ? 0 : 45));
        turn(ANSWERED + 4000 - 1);
        assert_true(rig.to[1] == (m ? 0 : 45));
        turn(ANSWERED + 4000); /* it leaves when the answer is there */
        assert_true(rig.to[1] == (m ? 123 : 45));
        turn(COMPLETED + ANSWERED);
        assert_int_equal(rig.nicq.cq_produced, 2);
        close_all(NULL);
    }
    open_with(&pace, 8);
}

/* A late server must not let a fenced write go in the turn in which the read is only now on its way. */
static void test_fence_of_a_late_server(void **state)
{
    (void)state;
    open_with(&pace, 8);
    rig.to[0] = 123;
    rig.from[1] = 45;
    put_read(0, 1);
    put_with(rig_write(&rig, 8, 1, false), BELL_WQE_CE_ALWAYS | BELL_WQE_FENCE_MODE_4);
    turn(0);
    turn(100000000);
    assert_true(rig.to[1] == 123);
    assert_int_equal(rig.nicq.cq_produced, 2);
}

/* Only the strong mode waits for writes too. */
static void test_strong_fence(void **state)
{
    (void)state;
    for (uint32_t strong = 0; strong < 2; strong++) {
        open_with(&pace, 8);
        put(8, 0, true);
        put_with(rig_write(&rig, 8, 1, true),
                 BELL_WQE_CE_ALWAYS | (strong ? BELL_WQE_FENCE_MODE_3 : BELL_WQE_FENCE_MODE_2));
        turn(0);
        turn(DELIVERED);
        assert_true(rig.to[0] && (rig.to[1] == 0) == strong);
        turn(ANSWERED + 4000 - 1);
        assert_true((rig.to[1] == 0) == strong);
        turn(ANSWERED + 4000);
        assert_true(rig.to[1]);
        close_all(NULL);
    }
    open_with(&pace, 8);
}

/* The strong one's write was not yet acknowledged when a late server came to both. */
static void test_strong_fence_of_a_late_server(void **state)
{
    (void)state;
    open_with(&pace, 8);
    put(8, 0, true);
    put_with(rig_write(&rig, 8, 1, true), BELL_WQE_CE_ALWAYS | BELL_WQE_FENCE_MODE_3);
    turn(0);
    assert_int_equal(bell_pipe_turn(pipe_, &rig.nic, &rig.nicq, 100000000, &wqes, &late), BELL_OK);
    assert_true(rig.to[0] && !rig.to[1] && pipe_->delivered == 1);
    assert_int_equal(bell_pipe_turn(pipe_, &rig.nic, &rig.nicq, 100000000, &wqes, &late), BELL_OK);
    assert_true(rig.to[1]);
}

/* Only so many reads wait for their answers; the next one waits for the first. */
static void test_reads_are_limited(void **state)
{
    (void)state;
    open_with(&pace, 64);
    for (uint32_t i = 0; i < BELL_PIPE_READS + 1; i++) {
        rig.to[i] = 1000 + i;
        put_read(i, 100 + i);
    }
    put(8, 50, true);
    turn(0);
    turn(DELIVERED);
    assert_int_equal(pipe_->asked, BELL_PIPE_READS);
    assert_int_equal(rig.to[50], 0); /* and what is behind it */
    turn(ANSWERED);
    assert_int_equal(pipe_->asked, BELL_PIPE_READS + 1);
    turn(COMPLETED + ANSWERED);
    assert_int_equal(rig.nicq.cq_produced, BELL_PIPE_READS + 2);
    for (uint32_t i = 0; i < BELL_PIPE_READS + 1; i++)
        assert_true(rig.from[100 + i] == 1000 + i);
    assert_true(rig.to[50]);
}

static void test_atomics_come_back(void **state)
{
    (void)state;
    open_with(&pace, 8);
    struct bell_wqe_request q = rig_write(&rig, 8, 3, false);
    q.opcode = BELL_WQE_ATOMIC_FA;
    q.atomic.swap_or_add = 1;
    rig.to[3] = 10;
    put_with(q, BELL_WQE_CE_ALWAYS);
    q.laddr += 8;
    put_with(q, BELL_WQE_CE_ALWAYS | BELL_WQE_FENCE_MODE_1);
    turn(0);
    turn(DELIVERED);
    assert_true(rig.to[3] == 11 && rig.from[3] != 10);
    turn(ANSWERED);
    assert_true(rig.to[3] == 11 && rig.from[3] == 10);
    turn(ANSWERED + 4000);
    assert_true(rig.to[3] == 12);
    turn(COMPLETED + ANSWERED);
    assert_true(rig.from[4] == 11 && rig.nicq.cq_produced == 2);
}

/* ---- what goes wrong ---- */

static void test_error_and_flush_in_order(void **state)
{
    (void)state;
    open_with(&pace, 8);
    put(8, 0, true);
    struct bell_wqe_request q = rig_write(&rig, 8, 1, true);
    q.rkey++;
    put_with(q, 0);
    put_read(2, 2);
    turn(0);
    turn(COMPLETED - 1);
    assert_int_equal(rig.nicq.cq_produced, 0);
    turn(COMPLETED);
    assert_int_equal(rig.nicq.cq_produced, 3);
    assert_int_equal(rig.sq.cqe[0].syndrome, 0);
    assert_int_equal(rig.sq.cqe[1].syndrome, BELL_SYNDROME_REMOTE_ACCESS);
    assert_int_equal(rig.sq.cqe[2].syndrome, BELL_SYNDROME_FLUSHED);
    assert_true(rig.to[0] && !rig.to[1] && pipe_->asked == 0);
}

static void test_late_cqe(void **state)
{
    (void)state;
    open_with(NULL, 8);
    rig.nicq.fault = (struct bell_nic_fault){ .kind = BELL_FAULT_LATE_CQE, .index = 0xffff, .delay_ps = 5000 };
    for (uint32_t i = 0; i < 3; i++)
        put(8, i, true);
    turn(100);
    assert_true(rig.to[0] && rig.to[1] && rig.to[2]); /* only the CQE is late */
    assert_int_equal(rig.nicq.cq_produced, 1);
    turn(5099);
    assert_int_equal(rig.nicq.cq_produced, 1);
    turn(5100);
    assert_int_equal(rig.nicq.cq_produced, 3); /* those behind it waited */
}

static void test_lost_doorbell(void **state)
{
    (void)state;
    open_with(&pace, 8);
    rig.nicq.fault = (struct bell_nic_fault){ .kind = BELL_FAULT_LOST_DOORBELL, .index = 0xffff };
    rig.nicq.recover_ps = 10000000;
    put(8, 0, true);
    turn(10);
    put(8, 1, true);
    turn(20); /* it sees the record ahead */
    turn(10 + COMPLETED);
    assert_int_equal(rig.nicq.cq_produced, 1);
    turn(20 + 10000000 - 1);
    turn(20 + 10000000 - 1 + COMPLETED - 1);
    assert_int_equal(rig.nicq.cq_produced, 1);
    assert_int_equal(rig.to[1], 0);
    turn(50000000);
    turn(50000000 + COMPLETED);
    assert_int_equal(rig.nicq.cq_produced, 2);
}

/* More doorbells than it keeps on their way: the rest waits in the register, none is lost. */
static void test_flood_of_doorbells(void **state)
{
    (void)state;
    open_with(&pace, 512);
    for (uint32_t i = 0; i < 400; i++) {
        put(8, i, true);
        turn(0);
    }
    assert_int_equal(pipe_->rung, BELL_PIPE_RINGS);
    for (uint64_t now = 0; now < 3 * COMPLETED; now += COMPLETED / 2)
        turn(now);
    assert_int_equal(wqes, 400);
    for (uint32_t i = 0; i < 400; i++)
        assert_true(rig.to[i] == rig.from[i]);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_teardown(name, close_all)
    const struct CMUnitTest tests[] = {
        CASE(test_each_stage_has_its_time),  CASE(test_many_under_way_in_order),
        CASE(test_doorbells_one_by_one),     CASE(test_late_server),
        CASE(test_read_comes_back),          CASE(test_fences),
        CASE(test_fence_of_a_late_server),   CASE(test_strong_fence),
        CASE(test_strong_fence_of_a_late_server), CASE(test_reads_are_limited),        CASE(test_atomics_come_back),
        CASE(test_error_and_flush_in_order), CASE(test_late_cqe),
        CASE(test_lost_doorbell),            CASE(test_flood_of_doorbells),
        cmocka_unit_test(test_lateness),
    };
    return cmocka_run_group_tests_name("pipe", tests, NULL, NULL);
}
