/* SPDX-License-Identifier: Apache-2.0
 * The NIC reads what other libraries write: WQEs and doorbells byte by byte, as the mlx5 format lays them out, without
 * the project's own builder. */
#include "tests/unit/rig.h"

static struct rig rig;
static uint8_t wqe[BELL_WQE_READ_BYTES_MAX];
static uint32_t wqe_bytes;

static int close_rig(void **state)
{
    (void)state;
    rig_close(&rig);
    return 0;
}

/* ---- bytes of a WQE, most significant first ---- */

static void be(uint64_t value, uint32_t bytes)
{
    while (bytes--)
        wqe[wqe_bytes++] = (uint8_t)(value >> (8 * bytes));
}

/* Signature, stream id and immediate are what a builder left on its stack. */
static void ctrl(uint8_t opmod, uint64_t index, uint8_t opcode, uint8_t ds, uint8_t fm_ce_se)
{
    memset(wqe, 0, sizeof wqe);
    wqe_bytes = 0;
    be(opmod, 1);
    be(index & 0xffff, 2);
    be(opcode, 1);
    be(RIG_QPN, 3);
    be(ds, 1);
    be(0xa5, 1);
    be(0x5a5a, 2);
    be(fm_ce_se, 1);
    be(0xdeadbeef, 4);
}

static void remote(uint32_t at)
{
    be((uint64_t)(uintptr_t)(rig.to + at), 8);
    be(RIG_RKEY, 4);
    be(0x77777777, 4); /* reserved: ignored */
}

static void local(uint32_t at, uint32_t bytes)
{
    be(bytes, 4);
    be(RIG_LKEY, 4);
    be((uint64_t)(uintptr_t)(rig.from + at), 8);
}

static void inlined(uint32_t at, uint32_t bytes)
{
    be(0x80000000u | bytes, 4);
    memcpy(wqe + wqe_bytes, rig.from + at, bytes);
    wqe_bytes = (wqe_bytes + bytes + 15) / 16 * 16;
}

/* Into the ring at `index`, block by block. */
static void store(uint64_t index)
{
    for (uint32_t b = 0; b * 64 < wqe_bytes; b++)
        memcpy(rig.sq.wqe + (index + b) % rig.sq.depth * 64, wqe + b * 64, 64);
}

/* As a GPU library rings: producer index, opmod not masked, ds 0. */
static void ring(uint64_t producer)
{
    const uint8_t bytes[8] = { (uint8_t)(producer >> 16), (uint8_t)(producer >> 8), (uint8_t)producer, 0,
                               RIG_QPN >> 16 & 0xff,      RIG_QPN >> 8 & 0xff,      RIG_QPN & 0xff,    0 };
    memcpy(&rig.doorbell, bytes, sizeof bytes);
}

/* As rdma-core rings: the first 8 bytes of the last WQE. */
static void ring_ctrl(void)
{
    memcpy(&rig.doorbell, wqe, 8);
}

static uint64_t end_of(uint64_t index)
{
    return index + (wqe_bytes + 63) / 64;
}

/* The WQE in `wqe`, at the producer's end, with its doorbell; gives the syndrome of the CQE that it asked for. */
static uint8_t post(void)
{
    uint64_t at = rig.nicq.producer, n = rig.nicq.cq_produced;
    store(at);
    ring(end_of(at));
    assert_int_equal(rig_nic(&rig), 1);
    assert_true(rig.nicq.fetched == end_of(at));
    assert_true(rig.nicq.cq_produced == n + 1);
    const struct bell_cqe *cqe = rig.sq.cqe + n % rig.sq.cq_depth;
    assert_int_equal(bell_cqe_tail_counter(bell_cqe_tail(cqe)), at & 0xffff);
    bool is_error = bell_cqe_tail_opcode(bell_cqe_tail(cqe)) == BELL_CQE_REQ_ERR;
    assert_int_equal(rig.nicq.in_error, is_error);
    rig.nicq.in_error = false;
    return is_error ? cqe->syndrome : 0;
}

/* ---- doorbells ---- */

static void test_doorbell_conventions(void **state)
{
    (void)state;
    rig_open(&rig, 16, BELL_CQ_RING, 0x1fffe);
    ctrl(0, 0x1fffe, 0x08, 5, 8); /* ds 5: two blocks */
    remote(0);
    inlined(0, 40);
    assert_int_equal(wqe_bytes, 80);
    store(0x1fffe);
    ring_ctrl();
    assert_int_equal(rig_nic(&rig), 1);
    assert_true(rig.nicq.producer == 0x20000);
    assert_memory_equal(rig.to, rig.from, 40);
    for (uint64_t at = 0x20000; at < 0x20003; at++) { /* three WQEs, one doorbell, which is the last one's ctrl */
        ctrl(0, at, 0x08, 3, at == 0x20002 ? 8 : 0);
        remote(8 + (uint32_t)(at & 0xff));
        local(8 + (uint32_t)(at & 0xff), 8);
        store(at);
    }
    ring_ctrl();
    assert_int_equal(rig_nic(&rig), 3);
    assert_true(rig.nicq.producer == 0x20003 && rig.nicq.cq_produced == 2);
    assert_int_equal(rig_nic(&rig), 0); /* repeated */
    ring(0x20003);
    assert_int_equal(rig_nic(&rig), 0); /* the same in the other convention */
    ctrl(0, 0x20003, 0x00, 1, 8);
    store(0x20003);
    ring(0x20004); /* opmod is 2: producer bits 23..16 */
    assert_int_equal(rig_nic(&rig), 1);
    assert_int_equal(bell_dbrec_index(rig.dbrec), 0xfffe); /* all of it without a record */
}

static void test_start_without_record(void **state)
{
    (void)state;
    rig_open(&rig, 8, BELL_CQ_RING, 0);
    rig.nicq.start = BELL_NIC_START_DBRLESS;
    rig.nicq.recover_ps = 1;
    rig.dbrec = bell_dbrec_value(3); /* garbage to a NIC that has no record */
    assert_int_equal(bell_nic_recover(&rig.nic, &rig.nicq, 1), BELL_EMPTY);
    assert_int_equal(bell_nic_recover(&rig.nic, &rig.nicq, 100), BELL_EMPTY);
    assert_int_equal(bell_nic_take(&rig.nic, &rig.nicq), BELL_EMPTY);
    ctrl(0, 0, 0x00, 1, 8);
    assert_int_equal(post(), 0);
}

static void test_start_mailbox(void **state)
{
    const uint8_t one[8] = { 0xff, 0xff, 1, 0, 1, 0, 0, 0 }, two[8] = { 1, 0, 2, 0, 1, 0, 0, 0 };
    const uint8_t far[8] = { 8, 0, 2, 0, 1, 0, 0, 0 };
    (void)state;
    rig_open(&rig, 8, BELL_CQ_RING, 0x10001fffe);
    rig.nicq.start = BELL_NIC_START_MAILBOX;
    memset(&rig.doorbell, 0, sizeof rig.doorbell); /* nobody has written it: behind by 2^32 */
    assert_int_equal(bell_nic_take(&rig.nic, &rig.nicq), BELL_EMPTY);
    memcpy(&rig.doorbell, one, sizeof one);
    assert_int_equal(bell_nic_take(&rig.nic, &rig.nicq), BELL_OK);
    assert_true(rig.nicq.producer == 0x10001ffff);
    assert_int_equal(bell_nic_take(&rig.nic, &rig.nicq), BELL_EMPTY);
    memcpy(&rig.doorbell, two, sizeof two);
    assert_int_equal(bell_nic_take(&rig.nic, &rig.nicq), BELL_OK);
    assert_true(rig.nicq.producer == 0x100020001);
    memcpy(&rig.doorbell, far, sizeof far);
    assert_int_equal(bell_nic_take(&rig.nic, &rig.nicq), BELL_INVALID);
}

static void test_recovery(void **state)
{
    (void)state;
    rig_open(&rig, 8, BELL_CQ_RING, 0xffff);
    ctrl(0, 0xffff, 0x00, 1, 8);
    store(0xffff);
    rig.dbrec = bell_dbrec_value(0x10000); /* and no doorbell */
    assert_int_equal(bell_nic_recover(&rig.nic, &rig.nicq, 1000), BELL_EMPTY); /* a mode that is off */
    rig.nicq.recover_ps = 500;
    assert_int_equal(bell_nic_recover(&rig.nic, &rig.nicq, 1000), BELL_EMPTY);
    assert_int_equal(bell_nic_recover(&rig.nic, &rig.nicq, 1499), BELL_EMPTY);
    assert_int_equal(bell_nic_recover(&rig.nic, &rig.nicq, 1500), BELL_OK);
    assert_true(rig.nicq.producer == 0x10000);
    assert_int_equal(bell_nic_recover(&rig.nic, &rig.nicq, 9000), BELL_EMPTY);
    rig.dbrec = bell_dbrec_value(0x10001);
    assert_int_equal(bell_nic_recover(&rig.nic, &rig.nicq, 10000), BELL_EMPTY);
    ring(0x10001); /* it was only late: time starts anew with the next one */
    assert_int_equal(bell_nic_take(&rig.nic, &rig.nicq), BELL_OK);
    rig.dbrec = bell_dbrec_value(0x10002);
    assert_int_equal(bell_nic_recover(&rig.nic, &rig.nicq, 10600), BELL_EMPTY);
    assert_int_equal(bell_nic_recover(&rig.nic, &rig.nicq, 11099), BELL_EMPTY);
    assert_int_equal(bell_nic_recover(&rig.nic, &rig.nicq, 11100), BELL_OK);
    rig.dbrec = bell_dbrec_value(0x1000a);
    assert_int_equal(bell_nic_recover(&rig.nic, &rig.nicq, 20000), BELL_EMPTY);
    assert_int_equal(bell_nic_recover(&rig.nic, &rig.nicq, 30000), BELL_INVALID); /* deeper than the queue */
    rig.nicq.is_silent = true;
    assert_int_equal(bell_nic_recover(&rig.nic, &rig.nicq, 40000), BELL_EMPTY);
}

static void test_lost_doorbell(void **state)
{
    (void)state;
    rig_open(&rig, 8, BELL_CQ_RING, 0);
    rig.nicq.fault = (struct bell_nic_fault){ .kind = BELL_FAULT_LOST_DOORBELL, .index = 2 };
    ring(2); /* covers blocks 0 and 1 */
    assert_int_equal(bell_nic_take(&rig.nic, &rig.nicq), BELL_OK);
    ring(4);
    assert_int_equal(bell_nic_take(&rig.nic, &rig.nicq), BELL_EMPTY);
    assert_int_equal(bell_nic_take(&rig.nic, &rig.nicq), BELL_EMPTY);
    assert_true(rig.nicq.fault.has_lost && rig.nicq.producer == 2);
    ring(5); /* the next one makes up for it */
    assert_int_equal(bell_nic_take(&rig.nic, &rig.nicq), BELL_OK);
    assert_true(rig.nicq.producer == 5);
    ring(6); /* only one gets lost */
    assert_int_equal(bell_nic_take(&rig.nic, &rig.nicq), BELL_OK);
}

/* ---- sizes ---- */

static void test_every_ds(void **state)
{
    (void)state;
    rig_open(&rig, 32, BELL_CQ_RING, 0xffe3);
    for (uint32_t ds = 3; ds <= 63; ds++) {
        uint32_t bytes = (ds - 2) * 16 - 4;
        memset(rig.to, 0, sizeof rig.to);
        ctrl(0, rig.nicq.producer, 0x08, (uint8_t)ds, 8);
        remote(1);
        inlined(3, bytes);
        assert_int_equal(wqe_bytes, ds * 16);
        assert_int_equal(post(), 0); /* at every offset of the ring sooner or later, over its end too */
        assert_memory_equal(rig.to + 1, rig.from + 3, bytes);
        assert_int_equal(((const uint8_t *)(rig.to + 1))[bytes], 0);
        assert_int_equal(rig.to[0], 0);
    }
    ctrl(0, rig.nicq.producer, 0x08, 8, 8); /* 92 B inline, as published: DS 8, two blocks */
    remote(0);
    inlined(0, 92);
    assert_int_equal(wqe_bytes, 128);
    assert_int_equal(post(), 0);
}

/* 61 pointers to 8 B each, in two places alternately. */
static void test_gather_and_scatter(void **state)
{
    (void)state;
    rig_open(&rig, 32, BELL_CQ_RING, 30);
    ctrl(0, 30, 0x08, 63, 8);
    remote(10);
    for (uint32_t i = 0; i < 61; i++)
        local(i % 2 ? 100 + i : i, 8);
    assert_int_equal(post(), 0);
    for (uint32_t i = 0; i < 61; i++)
        assert_true(rig.to[10 + i] == rig.from[i % 2 ? 100 + i : i]);
    assert_int_equal(bell_be32(rig.sq.cqe[0].byte_cnt_be), 61 * 8);
    for (uint32_t i = 0; i < 24; i++)
        rig.to[i] = 0xf00 + i;
    ctrl(0, rig.nicq.producer, 0x10, 6, 8); /* a read in four pieces, one of them empty */
    remote(0);
    local(200, 16);
    local(300, 0);
    local(210, 8);
    local(220, 24);
    uint64_t untouched = rig.from[300];
    assert_int_equal(post(), 0);
    assert_true(rig.from[200] == 0xf00 && rig.from[201] == 0xf01 && rig.from[210] == 0xf02 && rig.from[220] == 0xf03);
    assert_true(rig.from[222] == 0xf05 && rig.from[300] == untouched && rig.from[223] != 0xf06);
    ctrl(0, rig.nicq.producer, 0x08, 5, 8); /* pointer, inline, pointer */
    remote(400);
    local(0, 8);
    inlined(1, 8);
    local(2, 8);
    assert_int_equal(post(), 0);
    assert_memory_equal(rig.to + 400, rig.from, 24);
    ctrl(0, rig.nicq.producer, 0x08, 4, 8); /* a key that opens nothing, in the second */
    remote(410);
    local(0, 8);
    be(8, 4);
    be(0xbad, 4);
    be((uint64_t)(uintptr_t)rig.from, 8);
    assert_int_equal(post(), 0x04);
    assert_int_equal(rig.to[410], 0);
    ctrl(0, rig.nicq.producer, 0x08, 4, 8); /* together longer than what rkey opens */
    remote(RIG_WORDS - 1);
    local(0, 8);
    local(1, 8);
    assert_int_equal(post(), 0x13);
    assert_int_equal(rig.to[RIG_WORDS - 1], 0);
}

static void test_nop(void **state)
{
    (void)state;
    rig_open(&rig, 4, BELL_CQ_RING, 0);
    for (uint8_t ds = 1; ds <= 2; ds++) {
        ctrl(0, rig.nicq.producer, 0x00, ds, 8);
        be(0x1234567812345678, ds == 2 ? 8 : 0); /* whatever lies behind */
        assert_int_equal(post(), 0);
    }
}

/* What follows a WQE of several blocks that the NIC does not know is not taken for garbage. */
static void test_unknown_is_skipped_whole(void **state)
{
    (void)state;
    rig_open(&rig, 16, BELL_CQ_RING, 0);
    static const uint8_t opcodes[] = { 0x0f /* WAIT */, 0x01 /* SEND_INVAL */, 0x0e, 0x25 };
    for (size_t i = 0; i < sizeof opcodes; i++) {
        ctrl(0, rig.nicq.producer, opcodes[i], 9, 8);
        wqe_bytes = 9 * 16;
        assert_int_equal(post(), 0x02);
        ctrl(0, rig.nicq.producer, 0x00, 1, 8);
        assert_int_equal(post(), 0);
    }
}

/* ---- operations ---- */

static void test_dump(void **state)
{
    (void)state;
    rig_open(&rig, 8, BELL_CQ_RING, 0);
    ctrl(0, rig.nicq.producer, 0x23, 2, 8);
    local(7, 64);
    assert_int_equal(post(), 0);
    for (uint32_t i = 0; i < RIG_WORDS; i++)
        assert_int_equal(rig.to[i], 0);
    ctrl(0, rig.nicq.producer, 0x23, 2, 8);
    local(RIG_WORDS, 1);
    assert_int_equal(post(), 0x04);
}

static void test_send(void **state)
{
    struct bell_region receive = { (uint64_t)(uintptr_t)(rig.to + 50), 32, 0 };
    (void)state;
    rig_open(&rig, 8, BELL_CQ_RING, 0);
    for (uint8_t opcode = 0x0a; opcode <= 0x0b; opcode++) {
        rig.nicq.receive = NULL;
        ctrl(0, rig.nicq.producer, opcode, 2, 8);
        local(5, 32);
        assert_int_equal(post(), 0x16);
        rig.nicq.receive = &receive;
        ctrl(0, rig.nicq.producer, opcode, 2, 8);
        local(5 + opcode, 32);
        assert_int_equal(post(), 0);
        assert_memory_equal(rig.to + 50, rig.from + 5 + opcode, 32);
        ctrl(0, rig.nicq.producer, opcode, 2, 8);
        local(5, 33);
        assert_int_equal(post(), 0x12);
    }
    ctrl(0, rig.nicq.producer, 0x0a, 1, 8); /* nothing to send */
    assert_int_equal(post(), 0);
}

static uint8_t atomic_4(uint8_t opcode, uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t byte)
{
    ctrl(0x08, rig.nicq.producer, opcode, 4, 8);
    be((uint64_t)(uintptr_t)rig.to + byte, 8);
    be(RIG_RKEY, 4);
    be(0, 4);
    be(a, 4);
    be(b, 4);
    be(c, 4);
    be(d, 4);
    local(0, 4);
    return post();
}

static void test_masked_4(void **state)
{
    (void)state;
    rig_open(&rig, 16, BELL_CQ_RING, 0);
    uint32_t *word = (uint32_t *)(void *)rig.to, *old = (uint32_t *)(void *)rig.from;
    for (uint32_t i = 0; i < 2; i++) { /* either half of an 8 B word; the other is left alone */
        uint32_t other = word[1 - i] = 0x5a5a5a5a, above = old[1];
        word[i] = 0xffffffff;
        assert_int_equal(atomic_4(0x15, 2, 0, 0, 0, 4 * i), 0); /* FA, no boundary */
        assert_true(word[i] == 1 && old[0] == 0xffffffff && word[1 - i] == other && old[1] == above);
        word[i] = 0x00ff00ff; /* fields of 8 bits: no carry leaves one */
        assert_int_equal(atomic_4(0x15, 0x01010101, 0x80808080, 0, 0, 4 * i), 0);
        assert_true(word[i] == 0x01000100 && old[0] == 0x00ff00ff);
        word[i] = 0x12345678; /* CS: swap, compare, swap mask, compare mask */
        assert_int_equal(atomic_4(0x14, 0xaaaaaaaa, 0xffff5678, 0x00ffff00, 0x0000ffff, 4 * i), 0);
        assert_true(word[i] == 0x12aaaa78 && old[0] == 0x12345678);
        assert_int_equal(atomic_4(0x14, 0, 0, 0xffffffff, 1u << 28, 4 * i), 0); /* bit 28 differs */
        assert_true(word[i] == 0x12aaaa78 && old[0] == 0x12aaaa78 && word[1 - i] == other);
    }
    assert_int_equal(atomic_4(0x15, 1, 0, 0, 0, 2), 0x12); /* not aligned */
    ctrl(0x08, rig.nicq.producer, 0x12, 4, 8); /* a plain one has no opmod */
    remote(0);
    be(1, 8);
    be(0, 8);
    local(0, 4);
    assert_int_equal(post(), 0x02);
}

static uint8_t atomic_8(uint8_t opmod, uint8_t opcode, const uint64_t *words, uint32_t count)
{
    ctrl(opmod, rig.nicq.producer, opcode, (uint8_t)(3 + count / 2), 8);
    remote(3);
    for (uint32_t i = 0; i < count; i++)
        be(words[i], 8);
    local(9, 8);
    return post();
}

static void test_masked_8_and_plain(void **state)
{
    (void)state;
    rig_open(&rig, 16, BELL_CQ_RING, 0);
    const uint64_t add[] = { 0x0000000100000001, 0x8000000080000000 }, carry[] = { 1, 0 };
    rig.to[3] = 0xffffffffffffffff;
    assert_int_equal(atomic_8(0x09, 0x15, add, 2), 0); /* two fields of 32 bits, both wrap */
    assert_true(rig.to[3] == 0 && rig.from[9] == 0xffffffffffffffff);
    rig.to[3] = 0x00000000ffffffff;
    assert_int_equal(atomic_8(0x09, 0x15, carry, 2), 0);
    assert_true(rig.to[3] == 0x100000000);
    const uint64_t swap[] = { 0x1111111111111111, 0xff00000000000000, 0x00000000ffffffff, 0x0f00000000000000 };
    rig.to[3] = 0x8f22222222222222; /* DS 5, two blocks */
    assert_int_equal(atomic_8(0x09, 0x14, swap, 4), 0);
    assert_true(rig.to[3] == 0x8f22222211111111 && rig.from[9] == 0x8f22222222222222);
    rig.to[3] = 0x8e22222222222222;
    assert_int_equal(atomic_8(0x09, 0x14, swap, 4), 0);
    assert_true(rig.to[3] == 0x8e22222222222222);
    const uint64_t plain[] = { 5, 0x8e22222222222222 };
    assert_int_equal(atomic_8(0, 0x11, plain, 2), 0); /* CS: swap, compare */
    assert_true(rig.to[3] == 5 && rig.from[9] == 0x8e22222222222222);
    assert_int_equal(atomic_8(0, 0x12, plain, 2), 0); /* FA */
    assert_true(rig.to[3] == 10);
    assert_int_equal(bell_be32(rig.sq.cqe[rig.nicq.cq_produced - 1].byte_cnt_be), 8);
}

/* Bit by bit, the way the definition reads: a carry out of a boundary bit is dropped. */
static void test_fields_against_the_definition(void **state)
{
    uint64_t x = 88172645463325252u;
    (void)state;
    for (uint32_t n = 0; n < 20000; n++) {
        uint64_t v[3], sum = 0, carry = 0;
        for (uint32_t i = 0; i < 3; i++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            v[i] = x;
        }
        for (uint32_t bit = 0; bit < 64; bit++) {
            uint64_t ones = (v[0] >> bit & 1) + (v[1] >> bit & 1) + carry;
            sum |= (ones & 1) << bit;
            carry = v[2] >> bit & 1 ? 0 : ones >> 1;
        }
        assert_true(bell_nic_add_in_fields(v[0], v[1], v[2]) == sum);
    }
}

/* ---- completions ---- */

/* An error, then WQEs of each completion mode: 1 is told of the queue's first error only. */
static void test_modes_after_an_error(void **state)
{
    static const struct {
        uint8_t fm_ce_se;
        bool first, flushed; /* is there a CQE when it fails first; when it is flushed */
    } modes[] = { { 0, true, true }, { 4, true, false }, { 8, true, true }, { 12, true, true } };
    (void)state;
    rig_open(&rig, 64, BELL_CQ_RING, 0);
    for (size_t a = 0; a < 4; a++)
        for (size_t b = 0; b < 4; b++) {
            uint64_t at = rig.nicq.producer, n = rig.nicq.cq_produced;
            ctrl(0, at, 0x0f, 2, modes[a].fm_ce_se);
            store(at);
            ctrl(0, at + 1, 0x00, 1, modes[b].fm_ce_se);
            store(at + 1);
            ring(at + 2);
            rig.nicq.in_error = false;
            assert_int_equal(rig_nic(&rig), 2);
            assert_true(rig.nicq.cq_produced - n == (uint64_t)modes[a].first + modes[b].flushed);
            assert_int_equal(rig.sq.cqe[n].syndrome, 0x02);
            if (modes[b].flushed) assert_int_equal(rig.sq.cqe[n + 1].syndrome, 0x05);
        }
}

static void test_error_cqe(void **state)
{
    struct bell_nic_work work;
    (void)state;
    rig_open(&rig, 16, BELL_CQ_RING, 0);
    rig.nicq.fault = (struct bell_nic_fault){ .kind = BELL_FAULT_ERROR_CQE, .index = 2 };
    ctrl(0, 0, 0x00, 1, 8);
    assert_int_equal(post(), 0);
    ctrl(0, 1, 0x08, 5, 0); /* blocks 1 and 2 */
    remote(0);
    inlined(0, 40);
    assert_int_equal(post(), 0x15);
    assert_int_equal(rig.to[0], 0); /* and it was not carried out */
    ctrl(0, 3, 0x00, 1, 8);
    assert_int_equal(post(), 0);
    rig.nicq.fault = (struct bell_nic_fault){ .kind = BELL_FAULT_LATE_CQE, .index = 6, .delay_ps = 77 };
    work.view.blocks = 2;
    work.index = 4;
    assert_int_equal(bell_nic_cqe_delay_ps(&rig.nicq, &work), 0);
    work.index = 8; /* the one at 6 was not signaled */
    assert_int_equal(bell_nic_cqe_delay_ps(&rig.nicq, &work), 77);
    assert_int_equal(bell_nic_cqe_delay_ps(&rig.nicq, &work), 0); /* once */
}

/* A read and an atomic in two halves: the answer is what was there when the operation reached the peer. */
static void test_held_answer(void **state)
{
    struct bell_nic_work work;
    uint8_t held[64];
    (void)state;
    rig_open(&rig, 8, BELL_CQ_RING, 0);
    rig.to[0] = 1;
    rig.to[1] = 2;
    ctrl(0, 0, 0x10, 4, 8);
    remote(0);
    local(0, 8);
    local(10, 8);
    store(0);
    ring(1);
    assert_int_equal(bell_nic_take(&rig.nic, &rig.nicq), BELL_OK);
    assert_int_equal(bell_nic_fetch(&rig.nic, &rig.nicq, &work), BELL_OK);
    assert_true(bell_nic_has_answer(&work.view));
    work.held = held;
    uint64_t before = rig.from[0];
    bell_nic_execute(&rig.nic, &rig.nicq, &work);
    assert_true(rig.from[0] == before);
    rig.to[0] = 77;
    bell_nic_return(&rig.nic, &work);
    assert_true(rig.from[0] == 1 && rig.from[10] == 2);
    ctrl(0, 1, 0x12, 4, 8);
    remote(0);
    be(3, 8);
    be(0, 8);
    local(20, 8);
    store(1);
    ring(2);
    assert_int_equal(bell_nic_take(&rig.nic, &rig.nicq), BELL_OK);
    assert_int_equal(bell_nic_fetch(&rig.nic, &rig.nicq, &work), BELL_OK);
    work.held = held;
    before = rig.from[20];
    bell_nic_execute(&rig.nic, &rig.nicq, &work);
    assert_true(rig.to[0] == 80 && rig.from[20] == before);
    bell_nic_return(&rig.nic, &work);
    assert_true(rig.from[20] == 77);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_teardown(name, close_rig)
    const struct CMUnitTest tests[] = {
        CASE(test_doorbell_conventions), CASE(test_start_without_record),
        CASE(test_start_mailbox),        CASE(test_recovery),
        CASE(test_lost_doorbell),        CASE(test_every_ds),
        CASE(test_gather_and_scatter),   CASE(test_nop),
        CASE(test_dump),                 CASE(test_send),
        CASE(test_masked_4),             CASE(test_masked_8_and_plain),
        CASE(test_modes_after_an_error), CASE(test_error_cqe),
        CASE(test_held_answer),          CASE(test_unknown_is_skipped_whole),
        cmocka_unit_test(test_fields_against_the_definition),
    };
    return cmocka_run_group_tests_name("nic, wire", tests, NULL, NULL);
}
