/* SPDX-License-Identifier: Apache-2.0
 * The send queue: reserve, build, post, poll, quiet and the ways to put.  Port primitives are watched by macros of the
 * same name, which also let a second lane step in at a chosen moment. */
#include "core/port.h"

/* What the doorbell stores were given, and who steps in where. */
static struct {
    bool with_wqe, fenced_at_dbrec, fenced_at_doorbell;
    uint32_t doorbells;
    const uint64_t *word; /* before an acquire or CAS of it, once and after some to skip, step_in runs */
    uint32_t skip;
    void (*step_in)(void *context);
    void *context;
} spy;

static void spy_touch(const uint64_t *word)
{
    if (word != spy.word || !spy.step_in || spy.skip-- > 0) return;
    void (*step_in)(void *) = spy.step_in;
    spy.step_in = NULL;
    step_in(spy.context);
}

#define bell_port_store_dbrec(lane, memory, word, value, scope)                                                        \
    (spy.fenced_at_dbrec = (lane)->is_fenced, bell_port_store_dbrec(lane, memory, word, value, scope))
#define bell_port_store_doorbell(lane, word, value, scope, copied)                                                     \
    (spy.doorbells++, spy.with_wqe = (copied), spy.fenced_at_doorbell = (lane)->is_fenced,                             \
     bell_port_store_doorbell(lane, word, value, scope, copied))
#define bell_port_load_acquire(lane, memory, at) (spy_touch(at), bell_port_load_acquire(lane, memory, at))
#define bell_port_cas(lane, memory, at, from, to) (spy_touch(at), bell_port_cas(lane, memory, at, from, to))

#include "tests/unit/rig.h"

static const uint64_t starts[] = { 0, 0xfffe, 0x1fffd, 0xfffffffe, UINT64_C(0x7ffffffffffffffd), UINT64_MAX - 2 };
#define STARTS (sizeof starts / sizeof *starts)

static struct rig rig;

static int close_rig(void **state)
{
    (void)state;
    rig_close(&rig);
    memset(&spy, 0, sizeof spy);
    return 0;
}

static void step_in_before(const uint64_t *word, uint32_t skip, void (*what)(void *context), void *context)
{
    spy.word = word;
    spy.skip = skip;
    spy.step_in = what;
    spy.context = context;
}

static enum bell_status reserve(uint32_t blocks, uint64_t *first)
{
    return bell_sq_reserve(&rig.lane[0], &rig.sq, (enum bell_sharing)rig.stack.sharing, blocks, first);
}

/* ---- reserve ---- */

static void test_full_changes_nothing(void **state)
{
    (void)state;
    rig_open(&rig, 4, BELL_CQ_RING, 7);
    for (int32_t sharing = BELL_SHARING_OWNER; sharing <= BELL_SHARING_LOCKED; sharing++) {
        uint64_t first = 99;
        rig.stack.sharing = sharing;
        rig.words.reserved = rig.words.completed = 7;
        assert_int_equal(reserve(3, &first), BELL_OK);
        assert_int_equal(first, 7);
        size_t events = rig.lane[0].events;
        first = 99;
        assert_int_equal(reserve(2, &first), BELL_FULL);
        assert_int_equal(first, 99);
        assert_int_equal(rig.words.reserved, 10);
        assert_int_equal(rig.lane[0].events, events);
        assert_int_equal(reserve(1, &first), BELL_OK);
        assert_int_equal(first, 10);
        assert_int_equal(reserve(1, &first), BELL_FULL);
        rig.words.completed = 8;
        assert_int_equal(reserve(1, &first), BELL_OK);
        assert_int_equal(first, 11);
        assert_int_equal(rig.words.reserved - rig.words.completed, 4);
    }
    assert_int_equal(rig.lane[0].event[0].kind, BELL_EVENT_RESERVE);
    assert_int_equal(rig.lane[0].event[0].index, 7);
    assert_int_equal(rig.lane[0].event[0].count, 3);
}

/* Random requests of 1 to 4 blocks against a count of what is under way, from starts that wrap at 16, 32, 63, 64 bits.
 */
static void test_reserve_random(void **state)
{
    uint32_t seed = 12345;
    (void)state;
    for (uint32_t at = 0; at < STARTS; at++) {
        rig_open(&rig, 8, BELL_CQ_RING, starts[at]);
        rig.soft.is_traced = false;
        uint32_t under_way = 0;
        for (uint32_t turn = 0; turn < 3000; turn++) {
            seed = seed * 1664525u + 1013904223u;
            uint32_t n = (seed >> 20) % 4 + 1;
            uint64_t first = 0, before = rig.words.reserved;
            rig.stack.sharing = (int32_t)(seed >> 24) % 4;
            if (seed >> 31 && n <= under_way) {
                rig.words.completed += n;
                under_way -= n;
                continue;
            }
            enum bell_status s = reserve(n, &first);
            assert_int_equal(s, under_way + n <= 8 ? BELL_OK : BELL_FULL);
            if (s == BELL_OK) {
                assert_true(first == before);
                under_way += n;
            }
            assert_int_equal(rig.words.reserved - rig.words.completed, under_way);
        }
        rig_close(&rig);
    }
    rig_open(&rig, 1, BELL_CQ_RING, 0);
}

static void other_lane_goes_on(void *context)
{
    struct bell_wqe_request q = rig_write(&rig, 8, 0, true);
    uint64_t end = 0;
    (void)context;
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(bell_sq_put(&rig.lane[1], &rig.sq, &rig.stack, &q, 1, &end, &rig.done), BELL_OK);
        assert_int_equal(rig_nic(&rig), 1);
        assert_int_equal(bell_sq_poll(&rig.lane[1], &rig.sq, BELL_SHARING_ORDERED, &rig.done), BELL_OK);
    }
}

/* Lane 0 has read `reserved`; before it reads `completed`, the other lane takes both past what it read.  The queue is
 * empty then, so that it must not look full. */
static void test_reserve_when_completed_overtakes(void **state)
{
    uint64_t first = 0;
    (void)state;
    rig_open(&rig, 4, BELL_CQ_RING, 0);
    rig.stack.sharing = BELL_SHARING_ORDERED;
    step_in_before(&rig.words.completed, 0, other_lane_goes_on, NULL);
    assert_int_equal(reserve(1, &first), BELL_OK);
    assert_int_equal(first, 2);
    assert_int_equal(rig.words.reserved, 3);
}

/* ---- build ---- */

static void test_build_wraps_round_the_ring(void **state)
{
    struct bell_wqe wqe;
    (void)state;
    rig_open(&rig, 4, BELL_CQ_RING, 0x1fffe);
    struct bell_wqe_request q = rig_write(&rig, 200, 0, true);
    assert_int_equal(bell_sq_build(&rig.lane[0], &rig.sq, 0x1fffe, &q), BELL_OK);
    assert_int_equal(q.qpn, RIG_QPN);
    assert_int_equal(bell_wqe_build(&wqe, &q), BELL_OK);
    assert_memory_equal(rig.sq.wqe + 128, wqe.bytes, 128);
    assert_memory_equal(rig.sq.wqe, wqe.bytes + 128, (size_t)bell_wqe_ds(&q) * 16 - 128);
    assert_int_equal(rig.sq.wqe[128 + 1], 0xff);
    assert_int_equal(rig.sq.wqe[128 + 2], 0xfe);
    assert_int_equal(rig.sq.span[2], bell_wqe_blocks(bell_wqe_ds(&q)));
    assert_int_equal(rig.sq.span[2], 4);
    assert_int_equal(rig.lane[0].event[0].kind, BELL_EVENT_BUILD);
    assert_int_equal(rig.lane[0].event[0].count, 4);
    assert_int_equal(rig.lane[0].event[0].bytes, 200);
}

static void test_build_refuses(void **state)
{
    uint8_t zero[256] = { 0 };
    (void)state;
    rig_open(&rig, 4, BELL_CQ_RING, 0);
    struct bell_wqe_request q = rig_write(&rig, 221, 0, true);
    assert_int_equal(bell_sq_build(&rig.lane[0], &rig.sq, 0, &q), BELL_INVALID);
    assert_memory_equal(rig.sq.wqe, zero, sizeof zero);
    assert_int_equal(rig.sq.span[0], 0);
    /* A put of it, alone or among good ones, reserves nothing and rings for nothing. */
    struct bell_wqe_request two[2] = { rig_write(&rig, 8, 0, true), q };
    uint64_t end = 77;
    assert_int_equal(bell_sq_put(&rig.lane[0], &rig.sq, &rig.stack, two, 2, &end, &rig.done), BELL_INVALID);
    assert_int_equal(bell_sq_put_group(&rig.lane[0], &rig.sq, &rig.stack, &q, &end, &rig.done), BELL_INVALID);
    assert_int_equal(bell_sq_put_locked(&rig.lane[0], &rig.sq, &rig.stack, bell_request_of_array,
                                        two, 2, false, &end, &rig.done), BELL_INVALID);
    assert_int_equal(end, 77);
    assert_int_equal(rig.words.reserved, 0);
    assert_int_equal(rig.words.lock, 0);
    assert_int_equal(spy.doorbells, 0);
}

static void test_dc_address_vector(void **state)
{
    (void)state;
    rig_open(&rig, 8, BELL_CQ_RING, 0);
    rig.sq.is_dc = true;
    rig.sq.av.full = true;
    rig.sq.av.dc_key = UINT64_C(0x1122334455667788);
    rig.sq.av.dqp_dct = 0x123456;
    struct bell_wqe_request q = rig_write(&rig, 8, 0, true);
    assert_int_equal(rig_put(&rig, &q, 1), 2); /* control 1, vector 3, address 1, data 1: six segments, two blocks */
    assert_int_equal(rig.sq.wqe[16], 0x11);
    assert_int_equal(rig.sq.wqe[24], 0x80 | 0x00);
    assert_int_equal(rig.sq.wqe[25], 0x12);
    assert_int_equal(rig_nic(&rig), 1);
    assert_int_equal(rig_poll(&rig), BELL_OK);
    assert_int_equal(rig.words.completed, 2);
    assert_int_equal(rig.to[0], rig.from[0]);
}

/* ---- orderings ---- */

struct expectation {
    enum bell_ordering ordering;
    const char *owner, *ordered; /* f fence, d record, b doorbell, p publish; digit: scope */
    bool fenced_at_dbrec, fenced_at_doorbell;
};

static const struct expectation expectations[] = {
    { BELL_ORDERING_NONE, "d0b0", "d0b0p0", false, false },
    { BELL_ORDERING_GPU_FENCE, "f1f1d0b0", "f1f1d0b0p0", true, true },
    { BELL_ORDERING_GPU_FENCE_DBREC, "f1f1d0f1b0", "f1f1d0f1b0p0", true, true },
    { BELL_ORDERING_GPU_RELEASE, "d1b1", "d1b1p0", false, false },
    { BELL_ORDERING_THREADFENCE, "f2f2d0f2b0", "f2f2d0f2b0p0", true, true },
    { BELL_ORDERING_SYS_RELEASE, "d3b3", "d3b3p0", false, false },
    { BELL_ORDERING_SYS_FENCE, "f2f4d0f4b0", "f2f4d0f4b0p0", true, true },
};

static void spell(const struct bell_lane *lane, size_t from, char *out)
{
    static const char letter[BELL_EVENT_KINDS] = {
        [BELL_EVENT_FENCE] = 'f', [BELL_EVENT_DBREC] = 'd', [BELL_EVENT_DOORBELL] = 'b', [BELL_EVENT_PUBLISH] = 'p'
    };
    for (size_t i = from; i < lane->events; i++) {
        assert_true(letter[lane->event[i].kind] != 0);
        assert_true(lane->event[i].index == lane->event[from].index);
        *out++ = letter[lane->event[i].kind];
        *out++ = (char)('0' + lane->event[i].scope);
    }
    *out = '\0';
}

static void test_orderings(void **state)
{
    (void)state;
    rig_open(&rig, 64, BELL_CQ_RING, 0);
    assert_int_equal(sizeof expectations / sizeof *expectations, BELL_ORDERINGS);
    for (uint32_t i = 0; i < BELL_ORDERINGS; i++) {
        const struct expectation *e = expectations + i;
        for (int32_t sharing = BELL_SHARING_OWNER; sharing <= BELL_SHARING_LOCKED; sharing++) {
            bool in_order = sharing == BELL_SHARING_ORDERED || sharing == BELL_SHARING_COOPERATIVE;
            char text[32];
            uint64_t first = 0;
            rig.stack.ordering = (int32_t)e->ordering;
            rig.stack.sharing = sharing;
            assert_int_equal(reserve(2, &first), BELL_OK);
            rig.words.ready = in_order ? first : rig.words.ready;
            size_t from = rig.lane[0].events;
            assert_int_equal(bell_sq_post(&rig.lane[0], &rig.sq, &rig.stack, first, first + 2), BELL_OK);
            spell(&rig.lane[0], from, text);
            assert_string_equal(text, in_order ? e->ordered : e->owner);
            assert_int_equal(rig.lane[0].event[from].index, first + 2);
            assert_int_equal(spy.fenced_at_dbrec, e->fenced_at_dbrec);
            assert_int_equal(spy.fenced_at_doorbell, e->fenced_at_doorbell);
            assert_false(rig.lane[0].is_fenced); /* a fence holds for this doorbell only */
            assert_int_equal(bell_dbrec_index(rig.dbrec), first + 2);
            assert_int_equal(bell_doorbell_index(rig.doorbell), first + 2);
            assert_int_equal(bell_doorbell_qpn(rig.doorbell), RIG_QPN);
            assert_int_equal(rig.words.ready, in_order ? first + 2 : rig.words.ready);
        }
    }
}

/* What is not its turn is not rung for. */
static void test_post_waits_for_its_turn(void **state)
{
    uint64_t one = 0, two = 0;
    (void)state;
    rig_open(&rig, 8, BELL_CQ_RING, 0);
    rig.stack.sharing = BELL_SHARING_ORDERED;
    assert_int_equal(reserve(1, &one), BELL_OK);
    assert_int_equal(reserve(1, &two), BELL_OK);
    assert_int_equal(bell_sq_post(&rig.lane[0], &rig.sq, &rig.stack, two, two + 1), BELL_TIMEOUT);
    assert_string_equal(rig.lane[0].id.waited_for, "the lanes ahead to post");
    assert_int_equal(spy.doorbells, 0);
    assert_int_equal(rig.words.ready, 0);
    assert_int_equal(bell_sq_post(&rig.lane[1], &rig.sq, &rig.stack, one, one + 1), BELL_OK);
    assert_int_equal(bell_sq_post(&rig.lane[0], &rig.sq, &rig.stack, two, two + 1), BELL_OK);
    assert_null(rig.lane[0].id.waited_for);
    assert_int_equal(rig.words.ready, 2);
    assert_int_equal(bell_doorbell_index(rig.doorbell), 2);
}

static void test_blueflame(void **state)
{
    (void)state;
    rig_open(&rig, 64, BELL_CQ_RING, 0);
    struct bell_wqe_request q[2] = { rig_write(&rig, 8, 0, true), rig_write(&rig, 8, 1, true) };
    (void)rig_put(&rig, q, 1);
    assert_false(spy.with_wqe);
    rig.stack.blueflame = true;
    (void)rig_put(&rig, q, 1);
    assert_true(spy.with_wqe);
    (void)rig_put(&rig, q, 2); /* two WQEs: fetched */
    assert_false(spy.with_wqe);
    q[0] = rig_write(&rig, 64, 0, true);
    (void)rig_put(&rig, q, 1); /* two blocks: fetched */
    assert_false(spy.with_wqe);
    assert_int_equal(spy.doorbells, 4);
}

/* ---- put, poll, quiet ---- */

static void test_unsignaled_runs_retire_together(void **state)
{
    (void)state;
    for (uint32_t cq = BELL_CQ_RING; cq <= BELL_CQ_COLLAPSED; cq++) {
        rig_open(&rig, 16, (enum bell_cq_kind)cq, 0xfff9);
        struct bell_wqe_request q[4] = { rig_write(&rig, 8, 0, true), rig_write(&rig, 200, 1, true),
                                         rig_write(&rig, 400, 32, false), rig_write(&rig, 64, 100, true) };
        uint64_t end = rig_put(&rig, q, 4);
        assert_int_equal(end, 0xfff9 + 1 + 4 + 1 + 2);
        assert_int_equal(spy.doorbells, cq + 1);
        assert_int_equal(q[0].fm_ce_se | q[1].fm_ce_se | q[2].fm_ce_se, 0);
        assert_int_equal(rig_poll(&rig), BELL_EMPTY);
        assert_int_equal(rig_nic(&rig), 4);
        assert_int_equal(rig.nicq.cq_produced, 1);
        assert_int_equal(rig_poll(&rig), BELL_OK);
        assert_int_equal(rig.done.index, 0xfff9 + 6);
        assert_int_equal(rig.words.completed, end);
        assert_int_equal(rig_poll(&rig), BELL_EMPTY);
        assert_memory_equal(rig.to, rig.from, 8 + 200);
        assert_memory_equal(rig.to + 32, rig.from + 32, 400);
        assert_memory_equal(rig.to + 100, rig.from + 100, 64);
        if (cq == BELL_CQ_RING) rig_close(&rig);
    }
}

/* Hundreds of puts of changing size, across every kind of wrap, each one seen to land and to complete. */
static void test_laps(void **state)
{
    static const uint32_t size[] = { 8, 40, 56, 120, 200 };
    (void)state;
    for (uint32_t i = 0; i < 2 * STARTS; i++) {
        rig_open(&rig, 8, i % 2 ? BELL_CQ_COLLAPSED : BELL_CQ_RING, starts[i / 2]);
        rig.stack.sharing = (int32_t)(i / 2 % 2);
        rig.stack.nic_start = (int32_t)(i % 2);
        rig.nicq.start = (enum bell_nic_start)rig.stack.nic_start;
        rig.soft.is_traced = false;
        for (uint32_t n = 0; n < 300; n++) {
            rig.from[n % 64] = n + 1;
            struct bell_wqe_request q = rig_write(&rig, size[n % 5], n % 64, n % 3 != 0);
            uint64_t end = rig_put(&rig, &q, 1);
            assert_int_equal(rig_nic(&rig), 1);
            assert_int_equal(bell_sq_quiet(&rig.lane[0], &rig.sq, (enum bell_sharing)rig.stack.sharing, end, &rig.done),
                             BELL_OK);
            assert_true(rig.words.completed == end && rig.words.reserved == end);
            assert_int_equal(rig.to[n % 64], n + 1);
            assert_true(rig.done.index + bell_wqe_blocks(bell_wqe_ds(&q)) == end);
        }
        rig_close(&rig);
    }
    rig_open(&rig, 1, BELL_CQ_RING, 0);
}

static void test_depth_one(void **state)
{
    (void)state;
    for (uint32_t cq = BELL_CQ_RING; cq <= BELL_CQ_COLLAPSED; cq++) {
        rig_open(&rig, 1, (enum bell_cq_kind)cq, 0xfffe);
        struct bell_wqe_request q = rig_write(&rig, 8, 3, true);
        for (uint64_t n = 1; n <= 9; n++) {
            uint64_t first = 0;
            rig.from[3] = n;
            assert_int_equal(rig_put(&rig, &q, 1), 0xfffe + n); /* polls for room by itself */
            assert_int_equal(reserve(1, &first), BELL_FULL);
            assert_int_equal(rig_nic(&rig), 1);
            assert_int_equal(rig.to[3], n);
        }
        assert_int_equal(rig_poll(&rig), BELL_OK);
        assert_int_equal(rig.words.completed, 0xfffe + 9);
        q = rig_write(&rig, 64, 0, true);
        uint64_t end = 5;
        assert_int_equal(bell_sq_put(&rig.lane[0], &rig.sq, &rig.stack, &q, 1, &end, &rig.done), BELL_OVERFLOW);
        assert_int_equal(end, 5);
        if (cq == BELL_CQ_RING) rig_close(&rig);
    }
}

static void test_overflow_or_timeout(void **state)
{
    uint64_t end = 0;
    (void)state;
    rig_open(&rig, 4, BELL_CQ_RING, 0xfffd);
    struct bell_wqe_request q[3] = { rig_write(&rig, 8, 0, true), rig_write(&rig, 8, 1, true),
                                     rig_write(&rig, 8, 2, true) };
    (void)rig_put(&rig, q, 3);
    rig.stack.flow = BELL_FLOW_NONE;
    assert_int_equal(bell_sq_put(&rig.lane[0], &rig.sq, &rig.stack, q, 2, &end, &rig.done), BELL_OVERFLOW);
    rig.stack.flow = BELL_FLOW_POLL;
    assert_int_equal(bell_sq_put(&rig.lane[0], &rig.sq, &rig.stack, q, 2, &end, &rig.done), BELL_TIMEOUT);
    assert_string_equal(rig.lane[0].id.waited_for, "a CQE");
    assert_int_equal(rig.words.reserved, 0x10000);
    assert_int_equal(spy.doorbells, 1);
    assert_int_equal(rig_nic(&rig), 3);
    /* The CQE is there now; a put that needs room finds it. */
    assert_int_equal(rig_put(&rig, q, 2), 0x10002);
    assert_int_equal(rig.words.completed, 0x10000);
}

static void test_locked(void **state)
{
    uint64_t end = 0;
    (void)state;
    rig_open(&rig, 4, BELL_CQ_RING, 0);
    rig.stack.sharing = BELL_SHARING_LOCKED;
    struct bell_wqe_request q = rig_write(&rig, 8, 0, true);
    rig.words.lock = 1;
    assert_int_equal(bell_sq_put_locked(&rig.lane[0], &rig.sq, &rig.stack, bell_request_of_array,
                                        &q, 1, false, &end, &rig.done), BELL_TIMEOUT);
    assert_string_equal(rig.lane[0].id.waited_for, "the queue's lock");
    assert_int_equal(rig.words.reserved, 0);
    assert_int_equal(rig.words.lock, 1); /* still the other lane's */
    rig.words.lock = 0;
    for (uint32_t i = 1; i <= 4; i++) {
        assert_int_equal(bell_sq_put_locked(&rig.lane[i % 2], &rig.sq, &rig.stack, bell_request_of_array,
                                            &q, 1, false, &end, &rig.done), BELL_OK);
        assert_int_equal(end, i);
        assert_int_equal(rig.words.lock, 0);
    }
    rig.stack.flow = BELL_FLOW_NONE;
    assert_int_equal(bell_sq_put_locked(&rig.lane[0], &rig.sq, &rig.stack, bell_request_of_array,
                                        &q, 1, false, &end, &rig.done), BELL_OVERFLOW);
    assert_int_equal(rig.words.lock, 0); /* given back on failure too */
    assert_int_equal(rig_nic(&rig), 4);
    assert_int_equal(bell_sq_quiet(&rig.lane[1], &rig.sq, BELL_SHARING_LOCKED, 4, &rig.done), BELL_OK);
    assert_int_equal(rig.words.completed, 4);
}

static void test_group_of_one(void **state)
{
    uint64_t end = 0;
    (void)state;
    rig_open(&rig, 4, BELL_CQ_RING, 0);
    rig.stack.sharing = BELL_SHARING_COOPERATIVE;
    struct bell_wqe_request q = rig_write(&rig, 64, 0, true);
    for (uint32_t i = 1; i <= 3; i++) { /* the third needs room that the first gave back */
        rig.from[0] = i;
        assert_int_equal(bell_sq_put_group(&rig.lane[0], &rig.sq, &rig.stack, &q, &end, &rig.done), BELL_OK);
        assert_int_equal(end, 2 * i);
        assert_int_equal(q.fm_ce_se, BELL_WQE_CE_ALWAYS);
        assert_int_equal(rig.words.ready, 2 * i);
        assert_int_equal(rig_nic(&rig), 1);
        assert_int_equal(rig.to[0], i);
    }
    assert_int_equal(spy.doorbells, 3);
    rig.stack.flow = BELL_FLOW_NONE;
    rig.words.completed = 2;
    assert_int_equal(bell_sq_put_group(&rig.lane[0], &rig.sq, &rig.stack, &q, &end, &rig.done), BELL_OVERFLOW);
    assert_int_equal(end, 6);
}

static void test_error_cqe(void **state)
{
    (void)state;
    for (uint32_t cq = BELL_CQ_RING; cq <= BELL_CQ_COLLAPSED; cq++) {
        rig_open(&rig, 8, (enum bell_cq_kind)cq, 0x1fffe);
        struct bell_wqe_request q = rig_write(&rig, 8, 0, false);
        (void)rig_put(&rig, &q, 1);
        assert_int_equal(rig_nic(&rig), 1);
        q.rkey++;
        (void)rig_put(&rig, &q, 1);
        rig.to[0] = 0;
        if (cq == BELL_CQ_COLLAPSED)
            assert_int_equal(rig_poll(&rig), BELL_OK); /* its one entry is about to be overwritten */
        assert_int_equal(rig_nic(&rig), 1);
        if (cq == BELL_CQ_RING) assert_int_equal(rig_poll(&rig), BELL_OK);
        for (uint32_t again = 0; again < 2; again++) {
            memset(&rig.done, 0xee, sizeof rig.done);
            assert_int_equal(bell_sq_quiet(&rig.lane[0], &rig.sq, BELL_SHARING_OWNER, 0x20000, &rig.done),
                             BELL_CQE_ERROR);
            assert_int_equal(rig.done.index, 0x1ffff); /* free-running, not the 16 bits of the CQE */
            assert_int_equal(rig.done.syndrome, BELL_SYNDROME_REMOTE_ACCESS);
            assert_int_equal(rig.done.vendor, 0);
            assert_int_equal(rig.words.completed, 0x1ffff);
        }
        assert_int_equal(rig.to[0], 0);
        if (cq == BELL_CQ_RING) rig_close(&rig);
    }
}

static void other_lane_polls(void *context)
{
    (void)context;
    assert_int_equal(bell_sq_poll(&rig.lane[1], &rig.sq, BELL_SHARING_ORDERED, &rig.done), BELL_OK);
}

/* Two lanes see one CQE; the other one is faster, at each moment it can be. */
static void test_poll_race(void **state)
{
    struct bell_completion mine = { 1234, 0, 0 };
    struct bell_wqe_request q = rig_write(&rig, 64, 0, true);
    (void)state;
    for (uint32_t moment = 0; moment < 3; moment++) {
        rig_open(&rig, 8, moment == 2 ? BELL_CQ_COLLAPSED : BELL_CQ_RING, 0xffff);
        rig.stack.sharing = BELL_SHARING_ORDERED;
        (void)rig_put(&rig, &q, 1);
        assert_int_equal(rig_nic(&rig), 1);
        if (moment == 0) /* before it reads completed */
            step_in_before(&rig.words.completed, 0, other_lane_polls, NULL);
        else if (moment == 1) /* before it claims the CQE, having read both words */
            step_in_before(&rig.words.cq_index, 1, other_lane_polls, NULL);
        else /* before it retires what the collapsed CQE says */
            step_in_before(&rig.words.completed, 1, other_lane_polls, NULL);
        enum bell_status s = bell_sq_poll(&rig.lane[0], &rig.sq, BELL_SHARING_ORDERED, &mine);
        assert_null(spy.step_in);
        assert_int_equal(s, moment == 2 ? BELL_OK : BELL_EMPTY);
        assert_int_equal(rig.words.completed, 0x10001);
        assert_int_equal(rig.words.cq_index, moment != 2);
        assert_int_equal(rig_poll(&rig), BELL_EMPTY);
        if (moment < 2) rig_close(&rig);
    }
}

/* A CQE that names no WQE under way must not free anything. */
static void test_cqe_for_nothing(void **state)
{
    struct bell_cqe cqe;
    (void)state;
    rig_open(&rig, 8, BELL_CQ_RING, 20);
    bell_cqe_build_ok(&cqe, BELL_WQE_WRITE, RIG_QPN, 19, 8, 0);
    bell_port_store_cqe(&rig.nic, rig.sq.cqe, &cqe, rig.sq.key);
    assert_int_equal(rig_poll(&rig), BELL_CORRUPT);
    assert_int_equal(rig.words.completed, 20);
    bell_cqe_build_error(&cqe, BELL_SYNDROME_FLUSHED, 0, RIG_QPN, BELL_WQE_WRITE, 19, 0);
    bell_port_store_cqe(&rig.nic, rig.sq.cqe + 1, &cqe, rig.sq.key);
    assert_int_equal(rig_poll(&rig), BELL_CQE_ERROR);
    assert_int_equal(rig.done.index, 19); /* all there is to say of it */
    rig_close(&rig);
    rig_open(&rig, 8, BELL_CQ_COLLAPSED, 20); /* here it is merely the last one still standing there */
    bell_port_store_cqe(&rig.nic, rig.sq.cqe, &cqe, rig.sq.key);
    assert_int_equal(rig_poll(&rig), BELL_EMPTY);
    assert_int_equal(rig.words.completed, 20);
}

static void test_quiet(void **state)
{
    (void)state;
    rig_open(&rig, 8, BELL_CQ_RING, 0xffff);
    assert_int_equal(bell_sq_quiet(&rig.lane[0], &rig.sq, BELL_SHARING_OWNER, 0xffff, &rig.done), BELL_OK);
    assert_int_equal(rig.lane[0].events, 0);
    struct bell_wqe_request q = rig_write(&rig, 8, 0, true);
    for (uint32_t i = 0; i < 3; i++)
        (void)rig_put(&rig, &q, 1);
    assert_int_equal(rig_nic(&rig), 3);
    assert_int_equal(bell_sq_quiet(&rig.lane[0], &rig.sq, BELL_SHARING_OWNER, 0x10001, &rig.done), BELL_OK);
    assert_int_equal(rig.words.completed, 0x10001); /* no more CQEs than it needs */
    assert_int_equal(bell_sq_quiet(&rig.lane[1], &rig.sq, BELL_SHARING_ORDERED, 0x10002, &rig.done), BELL_OK);
    assert_int_equal(rig.lane[1].event[0].kind, BELL_EVENT_POLL);
    assert_int_equal(rig.lane[1].event[0].index, 0x10002);
    assert_int_equal(bell_sq_quiet(&rig.lane[0], &rig.sq, BELL_SHARING_OWNER, 0x10003, &rig.done), BELL_TIMEOUT);
    rig.soft.stop = 1;
    assert_int_equal(bell_sq_quiet(&rig.lane[0], &rig.sq, BELL_SHARING_OWNER, 0x10003, &rig.done), BELL_STOPPED);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_teardown(name, close_rig)
    const struct CMUnitTest tests[] = {
        CASE(test_full_changes_nothing),
        CASE(test_reserve_random),
        CASE(test_reserve_when_completed_overtakes),
        CASE(test_build_wraps_round_the_ring),
        CASE(test_build_refuses),
        CASE(test_dc_address_vector),
        CASE(test_orderings),
        CASE(test_post_waits_for_its_turn),
        CASE(test_blueflame),
        CASE(test_unsignaled_runs_retire_together),
        CASE(test_laps),
        CASE(test_depth_one),
        CASE(test_overflow_or_timeout),
        CASE(test_locked),
        CASE(test_group_of_one),
        CASE(test_error_cqe),
        CASE(test_poll_race),
        CASE(test_cqe_for_nothing),
        CASE(test_quiet),
    };
    return cmocka_run_group_tests_name("sq", tests, NULL, NULL);
}
