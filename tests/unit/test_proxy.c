/* SPDX-License-Identifier: Apache-2.0
 * The proxy ring: descriptors, the two ways to fill it, the worker.  Reads of the progress word are counted, and a wait
 * lets the NIC work, so that a worker's whole run happens in one thread. */
#include "core/port.h"

static struct {
    const uint64_t *progress;
    uint32_t progress_reads;
    enum bell_scope scope; /* of the last entry stored */
    void (*on_wait)(void);
} spy;

static void spy_wait(void)
{
    if (spy.on_wait) spy.on_wait();
}

#define bell_port_load_acquire(lane, memory, at)                                                                       \
    (spy.progress_reads += (at) == spy.progress, bell_port_load_acquire(lane, memory, at))
#define bell_port_store_entry(lane, entry, value, how, key)                                                            \
    (spy.scope = (how), bell_port_store_entry(lane, entry, value, how, key))
#define bell_port_wait(lane, key, done, context, what) (spy_wait(), bell_port_wait(lane, key, done, context, what))

#include "core/serve.h"
#include "tests/unit/rig.h"

#define RING_DEPTH 4u

static struct rig rig;
static struct bell_ring ring;
static struct bell_worker worker;
static uint64_t head, progress, done;

/* Lane 0 produces, lane 1 is the worker. */
static void open_proxy(enum bell_protocol protocol, uint32_t sq_depth, uint32_t batch, uint64_t first)
{
    rig_open(&rig, sq_depth, BELL_CQ_RING, first);
    memset(&ring, 0, sizeof ring);
    memset(&worker, 0, sizeof worker);
    memset(&spy, 0, sizeof spy);
    head = progress = done = 0;
    rig.stack.submit = BELL_SUBMIT_PROXY;
    rig.stack.protocol = (int32_t)protocol;
    rig.stack.batch = batch;
    rig.stack.ring_depth = RING_DEPTH;
    ring.entry = rig_memory(RING_DEPTH * sizeof *ring.entry);
    ring.head = &head;
    ring.progress = &progress;
    ring.done = &done;
    ring.key = ring.entry;
    ring.depth = RING_DEPTH;
    ring.shift = 2;
    ring.ring = 3;
    ring.done_memory = BELL_MEMORY_HOST;
    worker.ring = &ring;
    worker.sq = &rig.sq;
    worker.stack = &rig.stack;
    worker.source = &rig.source;
    worker.target = &rig.target;
    worker.request = rig_memory(batch * sizeof *worker.request);
    worker.value = rig_memory(batch * sizeof *worker.value);
    worker.upto = rig_memory(sq_depth * sizeof *worker.upto);
    worker.posted_end = first;
    worker.expected = UINT64_MAX;
    spy.progress = &progress;
}

static int close_proxy(void **state)
{
    (void)state;
    free(ring.entry);
    free(worker.request);
    free(worker.value);
    free(worker.upto);
    memset(&ring, 0, sizeof ring);
    memset(&worker, 0, sizeof worker);
    memset(&spy, 0, sizeof spy);
    rig_close(&rig);
    memset(&rig, 0, sizeof rig);
    return 0;
}

/* Eight bytes of value to the word `at`, inline or from the source's same word. */
static struct bell_put put_of(uint32_t at, uint64_t value, bool is_inline)
{
    struct bell_put p = { is_inline ? value : 0, is_inline ? 0 : at * 8, at * 8, 8, is_inline };
    rig.from[at] = value;
    return p;
}

static enum bell_status enqueue(uint32_t at, uint64_t value, bool is_inline, uint64_t *index)
{
    struct bell_put p = put_of(at, value, is_inline);
    return bell_ring_enqueue(&rig.lane[0], &ring, &rig.stack, &p, index);
}

/* ---- descriptors ---- */

static void test_entry_bounds(void **state)
{
    static const struct bell_put puts[] = {
        { 0, 0, 0, 0, false },
        { 0, UINT64_MAX, BELL_ENTRY_OFFSET_MAX, BELL_ENTRY_BYTES_MAX, false },
        { UINT64_MAX, 0, BELL_ENTRY_OFFSET_MAX, 8, true },
        { 0, 0, 0, 0, true },
        { 0, 1, 2, 3, false },
        { 5, 0, 1, 1, true },
        { 0, UINT64_C(1) << 63, UINT64_C(1) << 39, 1u << 21, false },
    };
    (void)state;
    for (size_t i = 0; i < sizeof puts / sizeof *puts; i++)
        for (uint32_t parity = 0; parity < 2; parity++) {
            struct bell_entry e = bell_entry_make(puts + i, parity);
            struct bell_put back = bell_entry_read(&e);
            assert_int_equal(e.hi >> 63, parity);
            assert_int_equal(back.is_inline, puts[i].is_inline);
            assert_true(back.value == puts[i].value);
            assert_true(back.from == puts[i].from);
            assert_true(back.to == puts[i].to);
            assert_int_equal(back.bytes, puts[i].bytes);
        }
    struct bell_put one = { 0, 7, 0x123456789a, 0x2abcde, false };
    struct bell_entry e = bell_entry_make(&one, 1);
    assert_true(e.lo == 7);
    assert_true(e.hi == UINT64_C(0xaabcde123456789a));
}

static void test_parity(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 64; i++) {
        assert_int_equal(bell_entry_parity(i, 3), i / 8 % 2 == 0);
        assert_int_equal(bell_entry_parity(i, 0), i % 2 == 0);
    }
    assert_int_equal(bell_entry_parity(UINT64_MAX, 16), 0);
}

static void test_put_that_does_not_fit(void **state)
{
    static const struct bell_put bad[] = {
        { 0, 0, 0, BELL_ENTRY_BYTES_MAX + 1, false },
        { 0, 0, BELL_ENTRY_OFFSET_MAX + 1, 8, false },
        { 0, 0, 0, 9, true },
    };
    (void)state;
    for (uint32_t protocol = 0; protocol < 2; protocol++) {
        open_proxy((enum bell_protocol)protocol, 8, 1, 0);
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            uint64_t index = 55;
            assert_int_equal(bell_ring_enqueue(&rig.lane[0], &ring, &rig.stack, bad + i, &index), BELL_INVALID);
            assert_int_equal(index, 55);
        }
        assert_int_equal(head, 0);
        assert_int_equal(ring.next, 0);
        assert_int_equal(rig.lane[0].events, 0);
        (void)close_proxy(NULL);
    }
}

/* ---- filling the ring ---- */

static void test_baseline_claim(void **state)
{
    uint64_t index = 0;
    (void)state;
    open_proxy(BELL_PROTOCOL_BASELINE, 8, 1, 0);
    for (uint64_t i = 0; i < RING_DEPTH; i++) {
        assert_int_equal(enqueue((uint32_t)i, 100 + i, true, &index), BELL_OK);
        assert_int_equal(index, i);
        assert_int_equal(head, i + 1);
        assert_int_equal(spy.progress_reads, i + 1); /* each time, across PCIe */
        assert_int_equal(spy.scope, BELL_SCOPE_SYS);
    }
    head = 9; /* the shared word says where, not what the producer remembers */
    progress = 9;
    assert_int_equal(enqueue(0, 1, true, &index), BELL_OK);
    assert_int_equal(index, 9);
}

static void test_tuned_claim(void **state)
{
    uint64_t index = 0;
    (void)state;
    open_proxy(BELL_PROTOCOL_TUNED, 8, 1, 0);
    for (uint64_t i = 0; i < RING_DEPTH; i++) {
        assert_int_equal(enqueue((uint32_t)i, 100 + i, true, &index), BELL_OK);
        assert_int_equal(index, i);
    }
    assert_int_equal(head, 0);
    assert_int_equal(spy.progress_reads, 0);
    progress = 3;
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(enqueue((uint32_t)i, 100 + i, true, &index), BELL_OK);
    assert_int_equal(index, 6);
    assert_int_equal(spy.progress_reads, 1); /* once for three */
    assert_int_equal(ring.cached, 3);
}

static void test_scope(void **state)
{
    uint64_t index = 0;
    (void)state;
    for (uint32_t protocol = 0; protocol < 2; protocol++) {
        open_proxy((enum bell_protocol)protocol, 8, 1, 0);
        assert_int_equal(enqueue(0, 1, true, &index), BELL_OK);
        assert_int_equal(spy.scope, protocol == BELL_PROTOCOL_TUNED ? BELL_SCOPE_NONE : BELL_SCOPE_SYS);
        assert_int_equal(enqueue(0, 1, false, &index), BELL_OK); /* the NIC will read the payload */
        assert_int_equal(spy.scope, BELL_SCOPE_SYS);
        assert_int_equal(rig.lane[0].events, 2);
        const struct bell_event *e = rig.lane[0].event + 1;
        assert_int_equal(e->kind, BELL_EVENT_ENQUEUE);
        assert_int_equal(e->queue, 3);
        assert_int_equal(e->index, 1);
        assert_int_equal(e->bytes, 8);
        assert_int_equal(e->scope, BELL_SCOPE_SYS);
        (void)close_proxy(NULL);
    }
}

static void free_two(void)
{
    progress = 2;
    spy.on_wait = NULL;
}

static void test_full_ring(void **state)
{
    uint64_t index = 0;
    (void)state;
    for (uint32_t protocol = 0; protocol < 2; protocol++) {
        open_proxy((enum bell_protocol)protocol, 8, 1, 0);
        for (uint32_t i = 0; i < RING_DEPTH; i++)
            assert_int_equal(enqueue(i, 100 + i, true, &index), BELL_OK);
        struct bell_entry oldest = ring.entry[0];
        spy.on_wait = free_two; /* the worker makes room while the producer waits */
        assert_int_equal(enqueue(0, 200, true, &index), BELL_OK);
        assert_int_equal(index, RING_DEPTH);
        assert_int_equal(ring.entry[0].lo, 200);
        assert_int_equal(ring.entry[0].hi >> 63, 0);
        assert_int_equal(oldest.hi >> 63, 1);
        assert_int_equal(enqueue(1, 201, true, &index), BELL_OK);
        oldest = ring.entry[2];
        rig.stack.flow = BELL_FLOW_NONE;
        assert_int_equal(enqueue(2, 202, true, &index), BELL_OVERFLOW);
        assert_memory_equal(&oldest, ring.entry + 2, sizeof oldest); /* never overwritten */
        rig.stack.flow = BELL_FLOW_POLL;
        assert_int_equal(enqueue(3, 203, true, &index), BELL_TIMEOUT);
        assert_string_equal(rig.lane[0].id.waited_for, "room in the proxy ring");
        assert_memory_equal(&oldest, ring.entry + 2, sizeof oldest);
        (void)close_proxy(NULL);
    }
}

/* ---- the worker ---- */

static void test_batches(void **state)
{
    uint64_t index = 0;
    (void)state;
    open_proxy(BELL_PROTOCOL_TUNED, 8, 3, 0xfffe);
    assert_int_equal(bell_worker_post(&rig.lane[1], &worker), BELL_EMPTY);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(enqueue(i, 100 + i, i % 2 == 0, &index), BELL_OK);
    assert_int_equal(bell_worker_post(&rig.lane[1], &worker), BELL_OK);
    assert_int_equal(progress, 3); /* slots are free before anything has completed */
    assert_int_equal(worker.posted_end, 0x10001);
    assert_int_equal(bell_doorbell_index(rig.doorbell), 1);
    assert_int_equal(bell_worker_post(&rig.lane[1], &worker), BELL_OK);
    assert_int_equal(progress, 4);
    assert_int_equal(worker.posted_end, 0x10002);
    assert_int_equal(bell_worker_post(&rig.lane[1], &worker), BELL_EMPTY);
    assert_int_equal(bell_worker_complete(&rig.lane[1], &worker), BELL_EMPTY);
    assert_int_equal(done, 0);
    assert_int_equal(rig_nic(&rig), 4);
    assert_int_equal(rig.nicq.cq_produced, 2); /* one a chain */
    assert_memory_equal(rig.to, rig.from, 32);
    assert_int_equal(rig.to[3], 103);
    assert_int_equal(bell_worker_complete(&rig.lane[1], &worker), BELL_OK);
    assert_int_equal(done, 3);
    assert_int_equal(bell_worker_complete(&rig.lane[1], &worker), BELL_OK);
    assert_int_equal(done, 4);
    assert_int_equal(bell_worker_complete(&rig.lane[1], &worker), BELL_EMPTY);
    assert_int_equal(bell_ring_quiet(&rig.lane[0], &ring, 4), BELL_OK);
    assert_int_equal(bell_ring_quiet(&rig.lane[0], &ring, 5), BELL_TIMEOUT);
    assert_string_equal(rig.lane[0].id.waited_for, "the proxy's completion counter");
    uint32_t kinds[BELL_EVENT_KINDS] = { 0 };
    for (size_t i = 0; i < rig.lane[1].events; i++)
        kinds[rig.lane[1].event[i].kind]++;
    assert_int_equal(kinds[BELL_EVENT_DEQUEUE], 4);
    assert_int_equal(kinds[BELL_EVENT_PROGRESS], 2);
    assert_int_equal(kinds[BELL_EVENT_BUILD], 4);
    assert_int_equal(kinds[BELL_EVENT_DOORBELL], 2);
    assert_int_equal(kinds[BELL_EVENT_POLL], 2);
}

static void nic_works(void)
{
    (void)rig_nic(&rig);
}

static enum bell_status serve(void)
{
    struct bell_share share = { &worker, NULL, 1 };
    return bell_serve(&rig.lane[1], &share);
}

/* Many laps of ring and queue; the worker runs for each handful, the NIC works whenever the worker waits. */
static void run_laps(bool is_dc, uint32_t sq_depth, uint32_t batch)
{
    open_proxy(BELL_PROTOCOL_TUNED, sq_depth, batch, 0xfff0);
    rig.soft.is_traced = false;
    rig.sq.is_dc = rig.sq.av.full = is_dc;
    worker.expected = 0;
    for (uint64_t n = 0; n < 100; n++) {
        uint32_t handful = (uint32_t)(n % RING_DEPTH) + 1;
        uint64_t index = 0;
        for (uint32_t i = 0; i < handful; i++)
            assert_int_equal(enqueue(i, 1000 * n + i, (n + i) % 3 != 0, &index), BELL_OK);
        worker.expected += handful;
        spy.on_wait = nic_works;
        assert_int_equal(serve(), BELL_OK);
        spy.on_wait = NULL;
        assert_int_equal(index + 1, worker.expected);
        assert_int_equal(bell_ring_quiet(&rig.lane[0], &ring, index + 1), BELL_OK);
        assert_int_equal(progress, worker.expected);
        assert_int_equal(done, worker.expected);
        assert_int_equal(rig.words.completed, 0xfff0 + worker.expected * (is_dc ? 2 : 1));
        for (uint32_t i = 0; i < handful; i++)
            assert_int_equal(rig.to[i], 1000 * n + i);
    }
    (void)close_proxy(NULL);
}

static void test_worker_runs(void **state)
{
    (void)state;
    run_laps(false, 8, 4);
    run_laps(false, 4, 4);
    run_laps(false, 1, 1);
    run_laps(true, 8, 4);
    run_laps(true, 4, 1);
    run_laps(true, 2, 1);
}

/* Behind a full address vector a descriptor takes two blocks: a batch has room for both or is not begun. */
static void test_room_for_a_batch(void **state)
{
    (void)state;
    for (uint32_t is_dc = 0; is_dc < 2; is_dc++) {
        open_proxy(BELL_PROTOCOL_TUNED, 8, 2, 0);
        rig.sq.is_dc = rig.sq.av.full = is_dc != 0;
        uint32_t need = is_dc ? 4 : 2;
        for (uint64_t used = 0; used <= 8; used++) {
            worker.posted_end = used;
            assert_int_equal(bell_worker_has_room(&rig.lane[1], &worker), used + need <= 8);
            assert_int_equal(bell_worker_has_news(&rig.lane[1], &worker), false);
        }
        uint64_t index = 0;
        assert_int_equal(enqueue(0, 1, true, &index), BELL_OK);
        for (uint64_t used = 0; used <= 8; used++) {
            worker.posted_end = used;
            assert_int_equal(bell_worker_has_news(&rig.lane[1], &worker), used + need <= 8);
        }
        (void)close_proxy(NULL);
    }
}

static void test_worker_stops_at_its_number(void **state)
{
    uint64_t index = 0;
    (void)state;
    open_proxy(BELL_PROTOCOL_BASELINE, 8, 4, 0);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(enqueue(i, i, true, &index), BELL_OK);
    worker.expected = 3;
    assert_int_equal(bell_worker_post(&rig.lane[1], &worker), BELL_OK);
    assert_int_equal(progress, 3);
    assert_int_equal(bell_worker_post(&rig.lane[1], &worker), BELL_EMPTY);
    assert_int_equal(serve(), BELL_TIMEOUT); /* this NIC does nothing */
    assert_string_equal(rig.lane[1].id.waited_for, "a proxy descriptor or a CQE");
}

static void test_worker_meets_an_error(void **state)
{
    uint64_t index = 0;
    (void)state;
    open_proxy(BELL_PROTOCOL_TUNED, 8, 1, 0x1ffff);
    rig.target.size_bytes = 8;
    worker.expected = 2;
    assert_int_equal(enqueue(0, 1, true, &index), BELL_OK);
    assert_int_equal(enqueue(1, 2, true, &index), BELL_OK);
    spy.on_wait = nic_works;
    assert_int_equal(serve(), BELL_CQE_ERROR);
    assert_int_equal(worker.completion.index, 0x20000);
    assert_int_equal(worker.completion.syndrome, BELL_SYNDROME_REMOTE_ACCESS);
    assert_int_equal(done, 1);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_teardown(name, close_proxy)
    const struct CMUnitTest tests[] = {
        CASE(test_entry_bounds),
        CASE(test_parity),
        CASE(test_put_that_does_not_fit),
        CASE(test_baseline_claim),
        CASE(test_tuned_claim),
        CASE(test_scope),
        CASE(test_full_ring),
        CASE(test_batches),
        CASE(test_worker_runs),
        CASE(test_room_for_a_batch),
        CASE(test_worker_stops_at_its_number),
        CASE(test_worker_meets_an_error),
    };
    return cmocka_run_group_tests_name("proxy", tests, NULL, NULL);
}
