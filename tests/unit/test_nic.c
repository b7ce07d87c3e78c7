/* SPDX-License-Identifier: Apache-2.0
 * The NIC's side of a queue: taking the index, fetching, judging, carrying out, completing. */
#include "tests/unit/rig.h"

#include <pthread.h>
#include <time.h>

static struct rig rig;

static int close_rig(void **state)
{
    (void)state;
    rig_close(&rig);
    return 0;
}

static void ring_doorbell(uint64_t producer)
{
    rig.doorbell = bell_wqe_doorbell(RIG_QPN, producer);
}

static enum bell_status take(void)
{
    return bell_nic_take(&rig.nic, &rig.nicq);
}

/* Build `q` at the producer's end and ring; the NIC fetches and carries out.  Gives its syndrome. */
static uint8_t send_one(struct bell_wqe_request *q, struct bell_nic_work *work)
{
    uint64_t at = rig.nicq.producer;
    assert_int_equal(bell_sq_build(&rig.lane[0], &rig.sq, at, q), BELL_OK);
    ring_doorbell(at + rig.sq.span[at & (rig.sq.depth - 1)]);
    assert_int_equal(take(), BELL_OK);
    assert_int_equal(bell_nic_fetch(&rig.nic, &rig.nicq, work), BELL_OK);
    assert_true(work->index == at);
    bell_nic_execute(&rig.nic, &rig.nicq, work);
    return work->syndrome;
}

static uint8_t judge(struct bell_wqe_request *q)
{
    struct bell_nic_work work;
    rig.nicq.in_error = false;
    uint8_t syndrome = send_one(q, &work);
    assert_int_equal(rig.nicq.in_error, syndrome != 0);
    return syndrome;
}

/* ---- take ---- */

static void test_take_doorbell(void **state)
{
    (void)state;
    rig_open(&rig, 8, BELL_CQ_RING, 0xfffe);
    assert_int_equal(take(), BELL_EMPTY);
    rig.dbrec = bell_dbrec_value(0xffff); /* a record alone starts nothing here */
    assert_int_equal(take(), BELL_EMPTY);
    ring_doorbell(0x10001); /* early: ahead of its record */
    assert_int_equal(take(), BELL_OK);
    assert_int_equal(rig.nicq.producer, 0x10001);
    assert_int_equal(take(), BELL_EMPTY); /* repeated */
    ring_doorbell(0x10000);               /* late: an earlier doorbell arrives after it */
    assert_int_equal(take(), BELL_EMPTY);
    assert_int_equal(rig.nicq.producer, 0x10001);
    ring_doorbell(0x10006); /* 8 blocks from 0xfffe */
    assert_int_equal(take(), BELL_OK);
    ring_doorbell(0x10007); /* 9 */
    assert_int_equal(take(), BELL_INVALID);
    assert_int_equal(rig.nicq.producer, 0x10006);
}

static void test_take_dbrec(void **state)
{
    (void)state;
    rig_open(&rig, 8, BELL_CQ_RING, UINT64_MAX);
    rig.nicq.start = BELL_NIC_START_DBREC;
    ring_doorbell(3);
    assert_int_equal(take(), BELL_EMPTY);
    rig.dbrec = bell_dbrec_value(2);
    assert_int_equal(take(), BELL_OK);
    assert_true(rig.nicq.producer == 2);
    assert_int_equal(take(), BELL_EMPTY);
    rig.dbrec = bell_dbrec_value(UINT64_MAX);
    assert_int_equal(take(), BELL_EMPTY);
    rig.dbrec = bell_dbrec_value(8);
    assert_int_equal(take(), BELL_INVALID);
}

static void test_take_deepest(void **state)
{
    (void)state;
    rig_open(&rig, 32768, BELL_CQ_RING, 0);
    ring_doorbell(32768);
    assert_int_equal(take(), BELL_OK);
    assert_int_equal(rig.nicq.producer, 32768);
    ring_doorbell(32769);
    assert_int_equal(take(), BELL_INVALID);
}

static void test_silent(void **state)
{
    (void)state;
    rig_open(&rig, 8, BELL_CQ_RING, 0);
    rig.nicq.is_silent = true;
    ring_doorbell(1);
    assert_int_equal(take(), BELL_EMPTY);
    ring_doorbell(100);
    assert_int_equal(take(), BELL_EMPTY);
    assert_int_equal(rig.nicq.producer, 0);
}

/* ---- fetch ---- */

static void test_fetch_empty(void **state)
{
    struct bell_nic_work work;
    (void)state;
    rig_open(&rig, 8, BELL_CQ_RING, 5);
    assert_int_equal(bell_nic_fetch(&rig.nic, &rig.nicq, &work), BELL_EMPTY);
}

struct damage {
    const char *what;
    uint32_t at;
    uint8_t with;
};

/* Bytes of the control segment: opmod, index (2), opcode, QP number (3), segments; 35 is in the inline header. */
static const struct damage damages[] = {
    { "index, low byte", 2, 0x7f },          { "index, high byte", 1, 0x01 }, { "QP number", 6, 0xdd },
    { "unknown opcode", 3, 0x3f },           { "no segments", 7, 0 },         { "17 segments", 7, 17 },
    { "past the producer", 7, 9 },           { "no address", 7, 1 },          { "opcode needs another", 3, 0x11 },
    { "inline size past the end", 35, 200 },
};

static void test_fetch_damaged(void **state)
{
    (void)state;
    rig_open(&rig, 8, BELL_CQ_RING, 0);
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        const struct damage *d = damages + i;
        struct bell_nic_work work;
        struct bell_wqe_request q = rig_write(&rig, 8, 0, true);
        uint64_t at = rig.nicq.producer;
        assert_int_equal(bell_sq_build(&rig.lane[0], &rig.sq, at, &q), BELL_OK);
        bell_sq_block(&rig.sq, at)[d->at] = d->with;
        ring_doorbell(at + 1);
        assert_int_equal(take(), BELL_OK);
        rig.to[0] = 0;
        assert_int_equal(bell_nic_fetch(&rig.nic, &rig.nicq, &work), BELL_OK);
        if (work.syndrome != BELL_SYNDROME_LOCAL_QP_OP) fail_msg("%s: syndrome 0x%x", d->what, work.syndrome);
        assert_true(rig.nicq.fetched == at + 1); /* it goes on behind it */
        rig.nicq.in_error = false;
        bell_nic_execute(&rig.nic, &rig.nicq, &work);
        assert_int_equal(work.syndrome, BELL_SYNDROME_LOCAL_QP_OP);
        assert_int_equal(rig.to[0], 0);
        assert_true(bell_nic_wants_cqe(&work));
    }
}

/* A WQE that arrives after its doorbell: with patience it is waited for and counted. */
static void *arrive_late(void *context)
{
    const struct timespec a_moment = { 0, 2000000 };
    (void)context;
    (void)nanosleep(&a_moment, NULL);
    __atomic_store_n(bell_sq_block(&rig.sq, 0) + 2, 0, __ATOMIC_RELEASE);
    return NULL;
}

static void test_fetch_waits(void **state)
{
    struct bell_nic_work work;
    struct bell_wqe_request q = rig_write(&rig, 8, 0, true);
    pthread_t writer;
    (void)state;
    rig_open(&rig, 8, BELL_CQ_RING, 0);
    assert_int_equal(bell_sq_build(&rig.lane[0], &rig.sq, 0, &q), BELL_OK);
    assert_int_equal(bell_sq_build(&rig.lane[0], &rig.sq, 1, &q), BELL_OK);
    bell_sq_block(&rig.sq, 0)[2] = bell_sq_block(&rig.sq, 1)[2] = 0x7f; /* of their indices */
    ring_doorbell(2);
    assert_int_equal(take(), BELL_OK);
    rig.nicq.patience = 1000000000;
    assert_int_equal(pthread_create(&writer, NULL, arrive_late, NULL), 0);
    assert_int_equal(bell_nic_fetch(&rig.nic, &rig.nicq, &work), BELL_OK);
    assert_int_equal(pthread_join(writer, NULL), 0);
    assert_int_equal(work.syndrome, 0);
    assert_int_equal(rig.nicq.stale, 1);
    rig.nicq.patience = 10; /* the other one never does */
    assert_int_equal(bell_nic_fetch(&rig.nic, &rig.nicq, &work), BELL_OK);
    assert_int_equal(work.syndrome, BELL_SYNDROME_LOCAL_QP_OP);
    assert_int_equal(rig.nicq.stale, 2);
}

static void test_fetch_over_the_end(void **state)
{
    struct bell_nic_work work;
    (void)state;
    rig_open(&rig, 4, BELL_CQ_RING, UINT64_MAX - 1); /* slots 2, 3, 0, 1 and an index that wraps */
    struct bell_wqe_request q = rig_write(&rig, 216, 7, true);
    assert_int_equal(send_one(&q, &work), 0);
    assert_int_equal(work.view.blocks, 4);
    assert_int_equal(work.view.bytes, 216);
    assert_memory_equal(rig.to + 7, rig.from + 7, 216);
    assert_int_equal(rig.to[6], 0);
    assert_int_equal(rig.to[7 + 27], 0);
    assert_true(rig.nicq.fetched == 2);
}

/* ---- what opens what ---- */

static void test_regions(void **state)
{
    (void)state;
    rig_open(&rig, 8, BELL_CQ_RING, 0);
    const uint64_t local = rig.source.address, remote = rig.target.address, size = rig.target.size_bytes;
    const struct {
        uint64_t laddr, raddr;
        uint32_t lkey, rkey, bytes;
        uint8_t syndrome;
    } cases[] = {
        { local, remote, RIG_LKEY, RIG_RKEY, 64, 0 },
        { local, remote, RIG_LKEY, RIG_RKEY, (uint32_t)size, 0 },
        { local + size - 8, remote + size - 8, RIG_LKEY, RIG_RKEY, 8, 0 },
        { local, remote, RIG_LKEY + 1, RIG_RKEY, 8, BELL_SYNDROME_LOCAL_PROTECTION },
        { local, remote, RIG_RKEY, RIG_LKEY, 8, BELL_SYNDROME_LOCAL_PROTECTION },
        { local, remote, RIG_LKEY, RIG_RKEY + 1, 8, BELL_SYNDROME_REMOTE_ACCESS },
        { local - 1, remote, RIG_LKEY, RIG_RKEY, 8, BELL_SYNDROME_LOCAL_PROTECTION },
        { local + size - 7, remote, RIG_LKEY, RIG_RKEY, 8, BELL_SYNDROME_LOCAL_PROTECTION },
        { local + size, remote, RIG_LKEY, RIG_RKEY, 1, BELL_SYNDROME_LOCAL_PROTECTION },
        { local, remote - 8, RIG_LKEY, RIG_RKEY, 8, BELL_SYNDROME_REMOTE_ACCESS },
        { local, remote + size - 4, RIG_LKEY, RIG_RKEY, 8, BELL_SYNDROME_REMOTE_ACCESS },
        { local, remote + 8, RIG_LKEY, RIG_RKEY, (uint32_t)size, BELL_SYNDROME_REMOTE_ACCESS },
        { local, UINT64_MAX - 3, RIG_LKEY, RIG_RKEY, 8, BELL_SYNDROME_REMOTE_ACCESS },
        { UINT64_MAX - 3, remote, RIG_LKEY, RIG_RKEY, 8, BELL_SYNDROME_LOCAL_PROTECTION },
        { local, remote, RIG_LKEY, RIG_RKEY, BELL_WQE_DATA_MAX, BELL_SYNDROME_LOCAL_PROTECTION },
        { local, UINT64_MAX, RIG_LKEY, RIG_RKEY, 0, 0 }, /* nothing is touched */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bell_wqe_request q = rig_write(&rig, cases[i].bytes, 0, false);
        q.laddr = cases[i].laddr;
        q.raddr = cases[i].raddr;
        q.lkey = cases[i].lkey;
        q.rkey = cases[i].rkey;
        memset(rig.to, 0, sizeof rig.to);
        uint8_t syndrome = judge(&q);
        if (syndrome != cases[i].syndrome) fail_msg("case %zu: syndrome 0x%x", i, syndrome);
        uint64_t any = 0;
        for (uint32_t w = 0; w < RIG_WORDS; w++)
            any |= rig.to[w];
        assert_int_equal(any != 0, cases[i].bytes && !syndrome);
    }
    struct bell_wqe_request q = rig_write(&rig, 8, 0, false);
    rig.nicq.remote = NULL;
    assert_int_equal(judge(&q), BELL_SYNDROME_REMOTE_ACCESS);
    rig.nicq.local = NULL;
    assert_int_equal(judge(&q), BELL_SYNDROME_LOCAL_PROTECTION);
}

/* ---- operations ---- */

static void test_operations(void **state)
{
    (void)state;
    rig_open(&rig, 8, BELL_CQ_RING, 0);
    struct bell_wqe_request q = rig_write(&rig, 13, 4, false); /* an odd size */
    assert_int_equal(judge(&q), 0);
    assert_memory_equal(rig.to + 4, rig.from + 4, 13);
    assert_int_equal(((const uint8_t *)(rig.to + 4))[13], 0);
    q = rig_write(&rig, 24, 10, false);
    q.opcode = BELL_WQE_WRITE_IMM;
    q.imm_be = 0x01020304;
    assert_int_equal(judge(&q), 0);
    assert_memory_equal(rig.to + 10, rig.from + 10, 24);
    rig.to[20] = 0x77;
    q = rig_write(&rig, 8, 20, false);
    q.opcode = BELL_WQE_READ;
    assert_int_equal(judge(&q), 0);
    assert_int_equal(rig.from[20], 0x77);
    memset(&q, 0, sizeof q); /* NOP */
    assert_int_equal(judge(&q), 0);
    q = rig_write(&rig, 0, 0, true);
    assert_int_equal(judge(&q), 0);
    assert_int_equal(rig.to[0], 0);
    q = rig_write(&rig, 8, 0, false);
    q.opcode = BELL_WQE_SEND;
    assert_int_equal(judge(&q), BELL_SYNDROME_RNR_EXCEEDED); /* nobody has posted a receive */
    const struct bell_event *last = rig.nic.event + rig.nic.events - 1;
    assert_int_equal(last->kind, BELL_EVENT_DELIVER);
    assert_int_equal(last->bytes, 0);
    assert_int_equal(rig.nic.events, 5); /* five were carried out; the send was not */
}

static void test_atomics(void **state)
{
    (void)state;
    rig_open(&rig, 8, BELL_CQ_RING, 0);
    struct bell_wqe_request q = rig_write(&rig, 8, 5, false);
    q.opcode = BELL_WQE_ATOMIC_FA;
    q.atomic.swap_or_add = 3;
    rig.to[5] = UINT64_MAX;
    assert_int_equal(judge(&q), 0);
    assert_int_equal(rig.to[5], 2);
    assert_true(rig.from[5] == UINT64_MAX);
    q.opcode = BELL_WQE_ATOMIC_CS;
    q.atomic.swap_or_add = 9;
    q.atomic.compare = 1;
    assert_int_equal(judge(&q), 0); /* 2 is not 1 */
    assert_int_equal(rig.to[5], 2);
    assert_int_equal(rig.from[5], 2);
    q.atomic.compare = 2;
    assert_int_equal(judge(&q), 0);
    assert_int_equal(rig.to[5], 9);
    assert_int_equal(rig.from[5], 2);
    q.raddr += 4; /* must be aligned */
    assert_int_equal(judge(&q), BELL_SYNDROME_REMOTE_INVALID);
    q.raddr -= 4;
    q.rkey++;
    assert_int_equal(judge(&q), BELL_SYNDROME_REMOTE_ACCESS);
    q.rkey--;
    q.lkey++;
    assert_int_equal(judge(&q), BELL_SYNDROME_LOCAL_PROTECTION);
    q.lkey--;
    assert_int_equal(rig.to[5], 9);
}

/* ---- completion ---- */

static void test_who_gets_a_cqe(void **state)
{
    static const struct {
        uint32_t flag;
        bool good, bad;
    } cases[] = {
        { BELL_WQE_CE_ON_ERROR, false, true },
        { BELL_WQE_CE_ON_FIRST_ERROR, false, true }, /* but not for a flush: test_nic_wire */
        { BELL_WQE_CE_ALWAYS, true, true },
        { BELL_WQE_CE_EVENT, true, true },
        { BELL_WQE_FENCE_MODE_4 | BELL_WQE_SOLICITED, false, true },
    };
    (void)state;
    rig_open(&rig, 8, BELL_CQ_RING, 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (uint32_t bad = 0; bad < 2; bad++) {
            struct bell_nic_work work;
            struct bell_wqe_request q = rig_write(&rig, 8, 0, true);
            q.fm_ce_se = cases[i].flag;
            q.rkey += bad;
            rig.nicq.in_error = false;
            (void)send_one(&q, &work);
            uint64_t before = rig.nicq.cq_produced;
            bell_nic_complete(&rig.nic, &rig.nicq, &work);
            assert_int_equal(rig.nicq.cq_produced - before, bad ? cases[i].bad : cases[i].good);
        }
}

static void test_error_then_flushed(void **state)
{
    (void)state;
    rig_open(&rig, 8, BELL_CQ_RING, 0xfffe);
    struct bell_wqe_request q[4] = { rig_write(&rig, 8, 0, true), rig_write(&rig, 8, 1, true),
                                     rig_write(&rig, 8, 2, true), rig_write(&rig, 8, 3, true) };
    q[1].rkey = 0;
    (void)rig_put(&rig, q, 4); /* the first three unsignaled */
    assert_int_equal(rig_nic(&rig), 4);
    assert_int_equal(rig.to[0], rig.from[0]);
    assert_int_equal(rig.to[1] | rig.to[2] | rig.to[3], 0);
    assert_int_equal(rig.nicq.cq_produced, 3);
    static const uint8_t syndrome[] = { BELL_SYNDROME_REMOTE_ACCESS, BELL_SYNDROME_FLUSHED, BELL_SYNDROME_FLUSHED };
    for (uint32_t i = 0; i < 3; i++) {
        const struct bell_cqe *cqe = rig.sq.cqe + i;
        uint32_t tail = bell_cqe_tail(cqe);
        assert_int_equal(bell_cqe_tail_opcode(tail), BELL_CQE_REQ_ERR);
        assert_int_equal(bell_cqe_tail_counter(tail), (0xffff + i) & 0xffff);
        assert_int_equal(cqe->syndrome, syndrome[i]);
        assert_int_equal(bell_be32(cqe->sop_drop_qpn_be), (uint32_t)BELL_WQE_WRITE << 24 | RIG_QPN);
    }
    const struct bell_event *last = rig.nic.event + rig.nic.events - 1;
    assert_int_equal(last->kind, BELL_EVENT_CQE);
    assert_int_equal(last->count, BELL_SYNDROME_FLUSHED);
    memset(&q[0], 0, sizeof q[0]); /* a NOP is flushed as well */
    (void)rig_put(&rig, q, 1);
    assert_int_equal(rig_nic(&rig), 1);
    assert_int_equal(rig.sq.cqe[3].syndrome, BELL_SYNDROME_FLUSHED);
}

static void test_owner_bits(void **state)
{
    (void)state;
    rig_open(&rig, 4, BELL_CQ_RING, 0);
    struct bell_wqe_request q = rig_write(&rig, 8, 0, true);
    for (uint32_t n = 0; n < 20; n++) {
        uint32_t before = bell_cqe_tail(rig.sq.cqe + n % 4);
        assert_false(bell_cqe_is_valid(before, n, 2));
        (void)rig_put(&rig, &q, 1);
        assert_int_equal(rig_nic(&rig), 1);
        uint32_t tail = bell_cqe_tail(rig.sq.cqe + n % 4);
        assert_int_equal(bell_cqe_tail_owner(tail), n / 4 % 2);
        assert_true(bell_cqe_is_valid(tail, n, 2));
        assert_int_equal(bell_cqe_tail_counter(tail), n);
        assert_int_equal(bell_be32(rig.sq.cqe[n % 4].byte_cnt_be), 8);
    }
}

static void test_collapsed(void **state)
{
    (void)state;
    rig_open(&rig, 4, BELL_CQ_COLLAPSED, 0xfffe);
    struct bell_wqe_request q = rig_write(&rig, 8, 0, true);
    assert_int_equal(rig_poll(&rig), BELL_EMPTY);
    for (uint32_t n = 0; n < 3; n++)
        (void)rig_put(&rig, &q, 1);
    assert_int_equal(rig_nic(&rig), 3);
    assert_int_equal(rig.nicq.cq_produced, 3);
    uint32_t tail = bell_cqe_tail(rig.sq.cqe);
    assert_int_equal(bell_cqe_tail_owner(tail), 0);
    assert_int_equal(bell_cqe_tail_counter(tail), 0);
    assert_int_equal(rig_poll(&rig), BELL_OK); /* the one entry retires all three */
    assert_int_equal(rig.words.completed, 0x10001);
    assert_int_equal(rig_poll(&rig), BELL_EMPTY);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_teardown(name, close_rig)
    const struct CMUnitTest tests[] = {
        CASE(test_take_doorbell),      CASE(test_take_dbrec),
        CASE(test_take_deepest),       CASE(test_silent),
        CASE(test_fetch_empty),        CASE(test_fetch_damaged), CASE(test_fetch_waits),
        CASE(test_fetch_over_the_end), CASE(test_regions),
        CASE(test_operations),         CASE(test_atomics),
        CASE(test_who_gets_a_cqe),     CASE(test_error_then_flushed),
        CASE(test_owner_bits),         CASE(test_collapsed),
    };
    return cmocka_run_group_tests_name("nic", tests, NULL, NULL);
}
