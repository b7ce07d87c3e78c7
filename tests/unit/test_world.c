/* SPDX-License-Identifier: Apache-2.0
 * The world of a run: its layout in memory, whole programs run in one thread (a wait lets NIC, worker and partner act),
 * what verify notices and what explain says. */
#include "core/port.h"

static void act_while_waiting(const char *what);
#define bell_port_wait(lane, key, done, context, what)                                                                 \
    (act_while_waiting(what), bell_port_wait(lane, key, done, context, what))

#include "core/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct bell_soft soft = { .bound_ps = 200000000 };
static struct bell_stack stack;
static struct bell_program program;
static struct bell_world world;
static struct bell_lane lanes[BELL_RANKS][8];
static uint8_t *arena;
static bool is_acting, is_nic_off;

static int fresh(void **state)
{
    (void)state;
    memset(&stack, 0, sizeof stack);
    memset(&program, 0, sizeof program);
    bell_field_defaults(bell_stack_fields, &stack);
    bell_field_defaults(bell_program_fields, &program);
    stack.depth = 8;
    stack.ring_depth = 4;
    program.iterations = 5;
    is_nic_off = false;
    return 0;
}

static int drop(void **state)
{
    (void)state;
    free(arena);
    arena = NULL;
    memset(&world, 0, sizeof world);
    return 0;
}

static void build(void)
{
    struct bell_error error = { BELL_OK, "" };
    if (bell_stack_validate(&stack, &error) != BELL_OK || bell_program_validate(&program, &stack, &error) != BELL_OK)
        fail_msg("%s", error.text);
    size_t size = bell_world_size(&program, &stack);
    assert_int_equal(size % 64, 0);
    free(arena);
    arena = aligned_alloc(64, size);
    assert_non_null(arena);
    memset(arena, 0xa5, size);
    assert_int_equal(bell_world_build(&world, &program, &stack, arena, size - 1), BELL_NO_MEMORY);
    assert_int_equal(arena[0] & arena[size - 1], 0xa5); /* not touched */
    assert_int_equal(bell_world_build(&world, &program, &stack, arena, size), BELL_OK);
    for (int i = 0; i < BELL_RANKS * BELL_PLACES; i++) {
        const struct bell_extent *e = &world.place[i / BELL_PLACES][i % BELL_PLACES];
        assert_int_equal(e->used, e->size);
    }
    memset(lanes, 0, sizeof lanes);
    for (uint32_t rank = 0; rank < BELL_RANKS; rank++)
        for (uint32_t i = 0; i < 8; i++) {
            lanes[rank][i].soft = &soft;
            lanes[rank][i].id.rank = (uint16_t)rank;
            lanes[rank][i].id.lane = (uint16_t)i;
            lanes[rank][i].id.group_size = 1;
        }
}

static void use_proxy(void)
{
    stack.submit = BELL_SUBMIT_PROXY;
    stack.queue_memory = BELL_MEMORY_HOST;
}

/* ---- layout ---- */

struct extent {
    const uint8_t *at;
    size_t bytes;
};

static struct extent extents[512];
static size_t extent_count;

static void add(const void *at, size_t count, size_t each)
{
    if (count == 0) return;
    assert_non_null(at);
    assert_int_equal((uintptr_t)at % 64, 0);
    assert_true(extent_count < sizeof extents / sizeof *extents);
    extents[extent_count++] = (struct extent){ at, (count * each + 63) / 64 * 64 };
}

static int by_address(const void *a, const void *b)
{
    const struct extent *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

static void add_queue(const struct bell_rank *r, uint32_t q)
{
    const struct bell_sq *sq = r->sq + q;
    add(sq->wqe, sq->depth, 64);
    add(sq->span, sq->depth, sizeof *sq->span);
    add(sq->cqe, sq->cq_depth, 64);
    add(sq->dbrec, 1, 64);
    add(sq->doorbell, 1, 64);
    add(sq->words, 1, sizeof *sq->words);
    if (world.workers == 0) return;
    add(r->ring[q].entry, r->ring[q].depth, sizeof *r->ring->entry);
    add(r->ring[q].head, 1, 64);
    add(r->ring[q].progress, 1, 64);
    add(r->ring[q].done, 1, 64);
    add(r->worker[q].request, stack.batch, sizeof *r->worker->request);
    add(r->worker[q].value, stack.batch, sizeof *r->worker->value);
    add(r->worker[q].upto, stack.depth, sizeof *r->worker->upto);
}

/* The boxes of the lanes lie one after the other in a region, aligned so that tags and flags are atomic words. */
static void check_boxes(const struct bell_region *region, uint32_t offset, uint32_t rank)
{
    uint64_t end = region->address;
    for (uint32_t i = 0; i < world.lanes; i++) {
        const uint8_t *client = (const uint8_t *)(world.rank[rank].client + i);
        struct bell_box box;
        memcpy(&box, client + offset, sizeof box);
        uint64_t slot = (uint64_t)(uintptr_t)box.slot, flag = (uint64_t)(uintptr_t)box.flag;
        assert_true(slot == end);
        assert_true(box.slots >= 2 * program.puts && (box.slots & (box.slots - 1)) == 0);
        assert_true(box.stride >= program.bytes);
        assert_true(flag >= slot + (uint64_t)box.slots * box.stride);
        assert_int_equal(flag % 8, 0);
        for (uint32_t s = 0; s < box.slots; s++) {
            uint64_t payload = (uint64_t)(uintptr_t)bell_box_payload(&box, s, program.bytes);
            assert_true(payload >= slot + (uint64_t)s * box.stride);
            assert_int_equal((payload + program.bytes) % 8, 0);
            assert_true(payload + program.bytes <= flag);
        }
        end = flag + 64;
        assert_true(end <= region->address + region->size_bytes);
    }
    assert_true(end == region->address + region->size_bytes);
}

static void check_layout(void)
{
    build();
    extent_count = 0;
    size_t total = 0;
    for (uint32_t rank = 0; rank < BELL_RANKS; rank++) {
        const struct bell_rank *r = world.rank + rank;
        add((const void *)(uintptr_t)r->source.address, r->source.size_bytes, 1);
        add((const void *)(uintptr_t)r->target.address, r->target.size_bytes, 1);
        add(r->client, world.lanes, sizeof *r->client);
        add(r->sq, world.queues, sizeof *r->sq);
        add(r->nicq, world.queues, sizeof *r->nicq);
        add(r->ring, world.workers, sizeof *r->ring);
        add(r->worker, world.workers, sizeof *r->worker);
        for (uint32_t q = 0; q < world.queues; q++)
            add_queue(r, q);
        check_boxes(&r->source, offsetof(struct bell_client, outbox), rank);
        check_boxes(&r->target, offsetof(struct bell_client, inbox), rank);
        check_boxes(&r->target, offsetof(struct bell_client, away), 1 - rank);
    }
    qsort(extents, extent_count, sizeof *extents, by_address);
    const uint8_t *end = arena;
    for (size_t i = 0; i < extent_count; i++) {
        assert_ptr_equal(extents[i].at, end); /* neither a hole nor an overlap */
        end += extents[i].bytes;
        total += extents[i].bytes;
    }
    assert_int_equal(total, bell_world_size(&program, &stack));
}

/* Moved there and back, a world is what it was; in between all that points into the place points elsewhere. */
static void check_moves(void)
{
    size_t size = bell_world_size(&program, &stack);
    uint8_t *before = malloc(size);
    assert_non_null(before);
    memcpy(before, arena, size);
    struct bell_world first = world;
    for (int i = BELL_PLACE_SHARED + 1; i < BELL_PLACES; i++) {
        uint8_t *from = world.place[0][i].at, *to = from + (1u << 30);
        bell_world_move(&world, 0, (enum bell_place)i, to);
        assert_ptr_equal(world.place[0][i].at, to);
        const struct bell_rank *r = world.rank;
        assert_int_equal(r->sq->wqe - first.place[0][BELL_PLACE_QUEUE].at >= 1 << 30, i == BELL_PLACE_QUEUE);
        assert_int_equal(r->client->outbox.slot - first.place[0][BELL_PLACE_SOURCE].at >= 1 << 30,
                         i == BELL_PLACE_SOURCE);
        assert_int_equal(r->target.address != first.rank[0].target.address, i == BELL_PLACE_TARGET);
        assert_int_equal(world.rank[1].client->away.slot == r->client->inbox.slot, 1);
        assert_int_equal(world.rank[1].target.address == first.rank[1].target.address, 1);
        bell_world_move(&world, 0, (enum bell_place)i, from);
        assert_memory_equal(arena, before, size);
        assert_memory_equal(&world, &first, sizeof first);
    }
    free(before);
}

static void check_wiring(void)
{
    uint32_t qpns[16], n = 0;
    for (uint32_t rank = 0; rank < BELL_RANKS; rank++) {
        const struct bell_rank *r = world.rank + rank, *peer = world.rank + (1 - rank);
        for (uint32_t i = 0; i < world.lanes; i++) {
            assert_ptr_equal(r->client[i].sq, r->sq + i * world.queues / world.lanes);
            assert_memory_equal(&r->client[i].target, &peer->target, sizeof peer->target);
            assert_ptr_equal(r->client[i].away.slot, peer->client[i].inbox.slot);
            assert_ptr_equal(r->client[i].away.flag, peer->client[i].inbox.flag);
        }
        for (uint32_t q = 0; q < world.queues; q++, n++) {
            assert_ptr_equal(r->nicq[q].sq, r->sq + q);
            assert_ptr_equal(r->nicq[q].local, &r->source);
            assert_ptr_equal(r->nicq[q].remote, &peer->target);
            assert_true(r->sq[q].cq_depth == 1u << r->sq[q].cq_shift);
            assert_int_equal(r->sq[q].cq_depth == 1, stack.cq == BELL_CQ_COLLAPSED);
            qpns[n] = r->sq[q].qpn;
            for (uint32_t k = 0; k < n; k++)
                assert_int_not_equal(qpns[k], qpns[n]);
        }
    }
    const uint32_t keys[4] = { world.rank[0].source.key, world.rank[0].target.key, world.rank[1].source.key,
                               world.rank[1].target.key };
    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t k = 0; k < i; k++)
            assert_int_not_equal(keys[i], keys[k]);
}

static void test_layout(void **state)
{
    for (uint32_t variant = 0; variant < 32; variant++) {
        (void)fresh(state);
        program.lanes = variant & 1 ? 4 : 1;
        program.queues = variant & 1 && variant & 2 ? 4 : 1;
        program.bytes = variant & 2 ? 24 : 4096;
        program.puts = variant & 4 ? 3 : 1;
        stack.payload = BELL_PAYLOAD_POINTER;
        stack.sharing = program.lanes == program.queues ? BELL_SHARING_OWNER : BELL_SHARING_ORDERED;
        stack.cq = variant & 4 ? BELL_CQ_COLLAPSED : BELL_CQ_RING;
        stack.transport = variant & 8 ? BELL_TRANSPORT_DC : BELL_TRANSPORT_RC;
        stack.wqes_per_doorbell = variant & 8 ? 3 : 1;
        if (variant & 16 && stack.sharing == BELL_SHARING_OWNER) {
            use_proxy();
            stack.batch = 3;
        } else if (variant & 16) {
            stack.depth = 32768;
        }
        check_layout();
        check_wiring();
        check_moves();
    }
    (void)fresh(state);
    stack.depth = stack.ring_depth = 1;
    check_layout();
    assert_int_equal(world.rank[0].sq->cq_depth, 2); /* one entry would mean a collapsed CQ */
    check_wiring();
}

static void test_first_index(void **state)
{
    (void)state;
    program.first_index = 0x1fffe;
    for (int32_t cq = BELL_CQ_RING; cq <= BELL_CQ_COLLAPSED; cq++) {
        stack.cq = cq;
        build();
        struct bell_sq *sq = world.rank[1].sq;
        struct bell_completion done;
        assert_int_equal(sq->words->reserved, 0x1fffe);
        assert_int_equal(sq->words->ready, 0x1fffe);
        assert_int_equal(sq->words->completed, 0x1fffe);
        assert_int_equal(bell_dbrec_index(*sq->dbrec), 0xfffe);
        assert_int_equal(bell_doorbell_index(*sq->doorbell), 0xfffe);
        assert_int_equal(bell_sq_poll(&lanes[1][0], sq, BELL_SHARING_OWNER, &done), BELL_EMPTY);
        assert_int_equal(bell_nic_take(&lanes[1][7], world.rank[1].nicq), BELL_EMPTY);
    }
}

/* ---- whole programs ---- */

static void serve(uint32_t rank, uint32_t q)
{
    struct bell_nic_work work;
    struct bell_nicq *n = world.rank[rank].nicq + q;
    struct bell_lane *lane = &lanes[rank][7];
    for (uint32_t again = 0; world.workers && again < 2 * stack.batch; again++) {
        struct bell_worker *w = world.rank[rank].worker + q;
        (void)bell_worker_complete(lane, w);
        if (bell_worker_has_room(lane, w)) (void)bell_worker_post(lane, w);
    }
    if (is_nic_off || bell_nic_take(lane, n) != BELL_OK) return;
    while (bell_nic_fetch(lane, n, &work) == BELL_OK) {
        bell_nic_execute(lane, n, &work);
        bell_nic_complete(lane, n, &work);
    }
}

static void act_while_waiting(const char *what)
{
    for (uint32_t turn = 0; turn < 3; turn++)
        for (uint32_t rank = 0; rank < BELL_RANKS; rank++)
            for (uint32_t q = 0; q < world.queues; q++)
                serve(rank, q);
    if (is_acting || strcmp(what, "the partner's put") != 0) return;
    is_acting = true;
    for (uint32_t i = 0; i < world.lanes; i++) /* a partner answers what it was asked */
        if (world.rank[1].client[i].puts < world.rank[0].client[i].puts)
            assert_int_equal(bell_client_op(&lanes[1][i], world.rank[1].client + i, 0), BELL_OK);
    is_acting = false;
}

static void run_all(void)
{
    struct bell_error error = { BELL_OK, "" };
    build();
    for (uint32_t i = 0; i < world.lanes; i++) {
        enum bell_status s = bell_client_run(&lanes[0][i], world.rank[0].client + i);
        if (s != BELL_OK) {
            bell_world_explain(&world, &lanes[0][i].id, s, &error);
            fail_msg("%s", error.text);
        }
    }
    assert_int_equal(bell_client_run(&lanes[1][0], world.rank[1].client),
                     program.pattern == BELL_PATTERN_ONE_OP ? BELL_OK : BELL_TIMEOUT); /* asked for nothing more */
    if (bell_world_verify(&world, &error) != BELL_OK) fail_msg("%s", error.text);
}

static void test_programs(void **state)
{
    for (uint32_t variant = 0; variant < 64; variant++) {
        (void)fresh(state);
        program.pattern = variant & 1 ? BELL_PATTERN_ROUND_TRIP : BELL_PATTERN_ONE_OP;
        program.first_index = 0xfffd;
        program.bytes = variant & 2 ? 40 : 8;
        program.puts = variant & 2 ? 5 : 1;
        program.warmup = 2;
        stack.signal = variant & 4 ? BELL_SIGNAL_SEPARATE : BELL_SIGNAL_FUSED;
        stack.payload = variant & 8 ? BELL_PAYLOAD_POINTER : BELL_PAYLOAD_INLINE;
        stack.cq = variant & 16 ? BELL_CQ_COLLAPSED : BELL_CQ_RING;
        stack.transport = variant & 8 ? BELL_TRANSPORT_DC : BELL_TRANSPORT_RC;
        stack.wqes_per_doorbell = 3;
        if (variant & 32) {
            use_proxy();
            stack.protocol = (int32_t)(variant >> 1 & 1);
            stack.batch = variant & 2 ? 3 : 1;
        } else {
            stack.sharing = (int32_t)(variant >> 1 & 3);
            if (stack.sharing == BELL_SHARING_COOPERATIVE) stack.wqes_per_doorbell = 1;
            program.lanes = stack.sharing == BELL_SHARING_ORDERED || stack.sharing == BELL_SHARING_LOCKED ? 2 : 1;
        }
        run_all();
    }
}

static void test_verify_sees_a_flipped_byte(void **state)
{
    struct bell_error error;
    (void)state;
    program.bytes = 24;
    program.puts = 3;
    stack.payload = BELL_PAYLOAD_POINTER;
    run_all();
    const struct bell_box *box = &world.rank[0].client->away;
    uint64_t puts = 15;
    for (uint64_t put = puts - box->slots; put < puts; put++)
        for (uint32_t i = 0; i < program.bytes; i++) {
            uint8_t *at = bell_box_payload(box, put, program.bytes) + i;
            char expected[64];
            *at ^= 0x10;
            assert_int_equal(bell_world_verify(&world, &error), BELL_CORRUPT);
            assert_int_equal(error.status, BELL_CORRUPT);
            (void)snprintf(expected, sizeof expected, "put %u of lane 0 on rank 0 is not", (unsigned)put);
            assert_non_null(strstr(error.text, expected));
            *at ^= 0x10;
        }
    assert_int_equal(bell_world_verify(&world, &error), BELL_OK);
    /* The other rank sent nothing in this pattern, so what its slots hold is not looked at. */
    *bell_box_payload(&world.rank[1].client->away, 0, program.bytes) ^= 1;
    assert_int_equal(bell_world_verify(&world, &error), BELL_OK);
}

/* ---- explain ---- */

static void explain(const struct bell_lane_id *who, enum bell_status status, const char *expected)
{
    struct bell_error error = { BELL_OK, "" };
    bell_world_explain(&world, who, status, &error);
    assert_int_equal(error.status, status);
    assert_string_equal(error.text, expected);
}

static void test_explain_timeout(void **state)
{
    (void)state;
    program.first_index = 0x1ffff;
    program.lanes = program.queues = 2;
    is_nic_off = true;
    build();
    struct bell_lane *lane = &lanes[0][1];
    assert_int_equal(bell_client_run(lane, world.rank[0].client + 1), BELL_TIMEOUT);
    explain(&lane->id, BELL_TIMEOUT,
            "rank 0 lane 1 waited to its bound for a CQE; queue 1: SQ reserved 131072, doorbell "
            "record 0 mod 65536, completed 131071, CQ index 0; the NIC has taken indices up to 131071");
    world.has_device = true; /* nobody knows what that has taken */
    explain(&lane->id, BELL_TIMEOUT,
            "rank 0 lane 1 waited to its bound for a CQE; queue 1: SQ reserved 131072, doorbell "
            "record 0 mod 65536, completed 131071, CQ index 0");
    struct bell_lane_id nic = { .rank = 1, .lane = 3 }; /* after two lanes and no worker: the NIC's second queue */
    explain(&nic, BELL_INVALID, "rank 1 NIC queue 1: invalid input");
    explain(&lane->id, BELL_STOPPED, "rank 0 lane 1: ended because another lane failed");
    nic.waited_for = NULL;
    explain(&nic, BELL_TIMEOUT,
            "rank 1 NIC queue 1 waited to its bound for something; queue 1: SQ reserved 131071, "
            "doorbell record 65535 mod 65536, completed 131071, CQ index 0");
}

static void test_explain_cqe_error(void **state)
{
    (void)state;
    program.first_index = 0x1ffff;
    program.fault = BELL_FAULT_BAD_KEY;
    build();
    assert_int_equal(bell_client_run(&lanes[0][0], world.rank[0].client), BELL_CQE_ERROR);
    explain(&lanes[0][0].id, BELL_CQE_ERROR,
            "rank 0 lane 0: CQE with syndrome 0x13 (remote access error) for the WQE at index 131071 of queue 0");
}

/* Flushes overwrite the entry of a collapsed CQ; what failed first is told all the same. */
static void test_explain_flush(void **state)
{
    struct bell_completion *c;
    (void)state;
    stack.cq = BELL_CQ_COLLAPSED;
    build();
    world.rank[0].nicq->in_error = true;
    world.rank[0].nicq->first_error = (struct bell_completion){ 20, BELL_SYNDROME_RETRY_EXCEEDED, 0 };
    c = &world.rank[0].client->completion;
    *c = (struct bell_completion){ 23, BELL_SYNDROME_FLUSHED, 0 };
    explain(&lanes[0][0].id, BELL_CQE_ERROR,
            "rank 0 lane 0: CQE with syndrome 0x15 (transport retries exceeded) for the WQE at index 20 of queue 0 "
            "(what was polled is a flush behind it)");
    lanes[0][0].id.waited_for = "a CQE";
    explain(&lanes[0][0].id, BELL_TIMEOUT,
            "rank 0: CQE with syndrome 0x15 (transport retries exceeded) for the WQE at index 20 of queue 0; rank 0 "
            "lane 0 waited to its bound for a CQE");
    world.rank[0].nicq->in_error = false;
    world.has_device = true;
    explain(&lanes[0][0].id, BELL_CQE_ERROR,
            "rank 0 lane 0: CQE with syndrome 0x05 (flushed after an earlier error) for the WQE at index 23 of queue "
            "0; the first error's CQE was overwritten (cq=collapsed; cq=ring keeps it)");
}

static void test_explain_overflow(void **state)
{
    (void)state;
    stack.flow = BELL_FLOW_NONE;
    stack.depth = 4;
    program.puts = 6;
    is_nic_off = true;
    build();
    assert_int_equal(bell_client_run(&lanes[0][0], world.rank[0].client), BELL_OVERFLOW);
    explain(&lanes[0][0].id, BELL_OVERFLOW,
            "rank 0 lane 0: depth 4 of queue 0 exceeded without polling: SQ reserved 4, "
            "completed 0");
    use_proxy();
    stack.ring_depth = 2;
    build();
    assert_int_equal(bell_client_run(&lanes[0][0], world.rank[0].client), BELL_OVERFLOW);
    explain(&lanes[0][0].id, BELL_OVERFLOW,
            "rank 0 lane 0: depth 2 of proxy ring 0 exceeded without polling: progress 0, done 0");
    struct bell_lane_id worker = { .rank = 0, .lane = 1, .waited_for = "a proxy descriptor or a CQE" };
    explain(&worker, BELL_TIMEOUT,
            "rank 0 worker 0 waited to its bound for a proxy descriptor or a CQE; queue 0: SQ "
            "reserved 0, doorbell record 0 mod 65536, completed 0, CQ index 0");
    explain(&worker, BELL_OVERFLOW,
            "rank 0 worker 0: depth 4 of queue 0 exceeded without polling: SQ reserved 0, "
            "completed 0");
    world.rank[0].worker->completion = (struct bell_completion){ 77, BELL_SYNDROME_FLUSHED, 0 };
    explain(&worker, BELL_CQE_ERROR,
            "rank 0 worker 0: CQE with syndrome 0x05 (flushed after an earlier error) for the "
            "WQE at index 77 of queue 0");
}

static void test_faults(void **state)
{
    (void)state;
    program.fault = BELL_FAULT_SILENT;
    build();
    assert_int_equal(bell_client_run(&lanes[0][0], world.rank[0].client), BELL_TIMEOUT);
    assert_true(world.rank[0].nicq->is_silent && world.rank[1].nicq->is_silent);
    program.fault = BELL_FAULT_NONE;
    build();
    assert_false(world.rank[0].nicq->is_silent);
    /* A program that was run and verified, but only in part. */
    struct bell_error error;
    assert_int_equal(bell_world_verify(&world, &error), BELL_CORRUPT);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fresh, drop)
    const struct CMUnitTest tests[] = {
        CASE(test_layout),           CASE(test_first_index),
        CASE(test_programs),         CASE(test_verify_sees_a_flipped_byte),
        CASE(test_explain_timeout),  CASE(test_explain_cqe_error),
        CASE(test_explain_flush),    CASE(test_explain_overflow), CASE(test_faults),
    };
    return cmocka_run_group_tests_name("world", tests, NULL, NULL);
}
