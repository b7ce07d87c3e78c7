/* SPDX-License-Identifier: Apache-2.0
 * Every schedule of lanes that share a send queue, and its NIC, without a bound on preemptions.  The counts are
 * asserted: another number means that something else was covered.
 *
 * What the NIC does between two accesses to a shared word is one step, as for a lane: take an index; fetch, carry out
 * and complete one WQE.  Of lanes that do the same, only schedules are followed in which they first reserve in the
 * order of their numbers; the others are these with the names exchanged. */
#include "tests/interleave/queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define LANES_MAX 4u
#define CHAIN_MAX 2u

enum size { ONE, TWO, MIXED }; /* blocks of a WQE; MIXED: odd lanes need two */

/* REMEMBERS: states are told apart by all that lanes have seen: more states, as many schedules.  PROMISED: the lanes
 * never find the queue full, and the stack says so. */
enum variant { PLAIN, REMEMBERS, PROMISED };

struct setup {
    const char *name;
    enum bell_sharing sharing;
    uint32_t lanes, group, puts, chain; /* puts of a lane; WQEs of a put */
    uint32_t depth;
    uint64_t start;
    enum bell_ordering ordering;
    enum bell_nic_start nic_start;
    enum bell_cq_kind cq;
    bool lazy; /* quiet after the last put only */
    enum size size;
    enum variant variant;
    struct queue_counts counts;
};

struct lane_setup {
    const struct setup *setup;
    struct queue *queue;
    uint8_t *source; /* of the lane: chain places */
    uint32_t number;
};

static uint32_t put_bytes(const struct setup *s, uint32_t lane)
{
    return s->size == TWO || (s->size == MIXED && lane % 2) ? 32 : 8;
}

static bool put_is_inline(const struct setup *s)
{
    return s->size != ONE;
}

/* Number of a target; bytes of payload follow from it. */
static uint32_t target_of(const struct lane_setup *l, uint32_t put, uint32_t i)
{
    return (l->number * l->setup->puts + put) * l->setup->chain + i;
}

static void fill(uint8_t *payload, uint32_t target)
{
    for (uint32_t i = 0; i < 32; i++)
        payload[i] = (uint8_t)(target * 40 + i + 1);
}

static enum bell_status post(struct bell_lane *lane, const struct lane_setup *l, uint32_t put, uint64_t *end)
{
    const struct setup *s = l->setup;
    struct bell_wqe_request request[CHAIN_MAX];
    struct bell_completion completion;
    uint8_t payload[CHAIN_MAX][32];
    memset(request, 0, sizeof request);
    for (uint32_t i = 0; i < s->chain; i++) {
        uint32_t place = s->lazy ? put * s->chain + i : i;
        fill(payload[i], target_of(l, put, i));
        request[i].opcode = BELL_WQE_WRITE;
        request[i].bytes = put_bytes(s, l->number);
        request[i].raddr = (uint64_t)(uintptr_t)(l->queue->target + target_of(l, put, i) * l->queue->target_bytes);
        request[i].rkey = request[i].lkey = l->queue->region.key;
        if (put_is_inline(s)) {
            request[i].inline_data = payload[i];
        } else {
            explore_write(lane, l->source + place * 8, payload[i], 8);
            request[i].laddr = (uint64_t)(uintptr_t)(l->source + place * 8);
        }
    }
    if (s->sharing == BELL_SHARING_COOPERATIVE)
        return bell_sq_put_group(lane, &l->queue->sq, &l->queue->stack, request, end, &completion);
    if (s->sharing == BELL_SHARING_LOCKED)
        return bell_sq_put_locked(lane, &l->queue->sq, &l->queue->stack, bell_request_of_array, request,
                                  s->chain, false, end, &completion);
    return bell_sq_put(lane, &l->queue->sq, &l->queue->stack, request, s->chain, end, &completion);
}

/* What was put has arrived, and the lane may look at it. */
static void verify(struct bell_lane *lane, const struct lane_setup *l, uint32_t put)
{
    uint8_t expected[32], found[32];
    for (uint32_t i = 0; i < l->setup->chain; i++) {
        uint32_t target = target_of(l, put, i), bytes = put_bytes(l->setup, l->number);
        fill(expected, target);
        explore_read(lane, found, l->queue->target + target * l->queue->target_bytes, bytes);
        explore_claim(lane, memcmp(found, expected, bytes) == 0, "other bytes arrived than were sent");
    }
}

static void run_lane(struct bell_lane *lane, void *context)
{
    const struct lane_setup *l = context;
    const struct setup *s = l->setup;
    struct bell_completion completion;
    uint64_t kept[2] = { 0, 0 }; /* put, end */
    lane->kept = kept;
    lane->kept_words = 2;
    for (uint32_t put = 0; put < s->puts; put++) {
        uint64_t end = 0;
        kept[0] = put;
        lane->points = s->variant == REMEMBERS ? 0 : BELL_POINTS_OF_PUT;
        explore_claim(lane, post(lane, l, put, &end) == BELL_OK, "a put failed");
        kept[1] = end;
        lane->points = s->variant == REMEMBERS ? 0 : BELL_POINTS_OF_QUIET;
        explore_mark(lane, kept, 2, 0);
        if (s->lazy && put + 1 < s->puts) continue;
        explore_claim(lane, bell_sq_quiet(lane, &l->queue->sq, s->sharing, end, &completion) == BELL_OK,
                      "quiet failed");
        kept[1] = 0;
        explore_mark(lane, kept, 2, 1);
        for (uint32_t p = s->lazy ? 0 : put; p <= put; p++)
            verify(lane, l, p);
    }
}

static struct explore *open_setup(const struct setup *s, struct queue *q, struct lane_setup *lanes, bool by_key)
{
    static char names[LANES_MAX][16];
    struct explore *x = explore_new();
    struct bell_stack stack;
    assert_non_null(x);
    memset(&stack, 0, sizeof stack);
    stack.sharing = (int32_t)s->sharing;
    stack.ordering = (int32_t)s->ordering;
    stack.nic_start = (int32_t)s->nic_start;
    stack.cq = (int32_t)s->cq;
    stack.flow = s->variant == PROMISED ? BELL_FLOW_NONE : BELL_FLOW_POLL;
    stack.depth = s->depth;
    queue_open(q, x, &stack, s->start, s->lanes * s->puts * s->chain, s->size == ONE ? 8 : 32, s->size != MIXED);
    q->checks_dbrec = s->lanes == 1 && !s->lazy && s->nic_start == BELL_NIC_START_DOORBELL &&
                      (s->ordering == BELL_ORDERING_GPU_FENCE_DBREC || s->ordering == BELL_ORDERING_SYS_RELEASE);
    uint64_t *group = NULL, *arrivals = NULL;
    if (s->size != MIXED && s->lanes % s->group == 0) arrivals = explore_place(x, "arrivals", 8, 1, EXPLORE_GHOST);
    for (uint32_t i = 0; i < s->lanes; i++) {
        struct lane_setup *l = lanes + i;
        l->setup = s;
        l->queue = q;
        l->number = i;
        l->source = put_is_inline(s)
                        ? NULL
                        : explore_place(x, "source", 8, s->lazy ? s->puts * s->chain : s->chain, EXPLORE_DATA);
        q->blocks += s->puts * s->chain * (put_bytes(s, i) == 32 ? 2u : 1u);
        (void)snprintf(names[i], sizeof names[i], "lane%u", i);
        struct bell_lane *lane = explore_lane(x, names[i], run_lane, l);
        lane->arrivals = arrivals;
        lane->arrival = i / s->group;
        if (s->group < 2) continue;
        uint32_t left = s->lanes - i / s->group * s->group, size = left < s->group ? left : s->group;
        if (i % s->group == 0 && size > 1) {
            group = explore_place(x, "arrived", 8, 1, EXPLORE_WORD);
            (void)explore_place(x, "turn", 8, 1, EXPLORE_WORD);
            (void)explore_place(x, "broadcast", 8, 1, EXPLORE_DATA);
        }
        lane->group = size > 1 ? group : NULL;
        lane->id.group_rank = (uint16_t)(i % s->group);
        lane->id.group_size = (uint16_t)size;
    }
    (void)explore_lane(x, "nic", queue_nic, q);
    if (by_key) explore_wake_by_key(x);
    return x;
}

static bool run_setup(const struct setup *s, bool by_key)
{
    struct queue q;
    struct lane_setup lanes[LANES_MAX];
    struct explore *x = open_setup(s, &q, lanes, by_key);
    return queue_explore(x, s->name, queue_check, queue_at_end, &q, &s->counts);
}

#define OWN BELL_SHARING_OWNER
#define ORD BELL_SHARING_ORDERED
#define COOP BELL_SHARING_COOPERATIVE
#define LOCK BELL_SHARING_LOCKED
#define FENCE BELL_ORDERING_GPU_FENCE
#define FENCE2 BELL_ORDERING_GPU_FENCE_DBREC
#define RELEASE BELL_ORDERING_SYS_RELEASE
#define BELLS BELL_NIC_START_DOORBELL
#define RECORD BELL_NIC_START_DBREC
#define RING BELL_CQ_RING
#define COLL BELL_CQ_COLLAPSED

/* sharing, lanes, group, puts, chain; depth, start; ordering, start of the NIC, CQ; lazy, size, variant; counts */
/* clang-format off */
static const struct setup owner[] = {
    { "owner, depth 1, ring CQ", OWN, 1, 1, 2, 1, 1, 65535, FENCE2, BELLS, RING, false, ONE, PLAIN,
      { "1", 11, 10 } },
    { "owner, depth 1, collapsed CQ", OWN, 1, 1, 2, 1, 1, 65535, RELEASE, BELLS, COLL, false, ONE, PLAIN,
      { "1", 11, 10 } },
    { "owner, depth 2", OWN, 1, 1, 3, 1, 2, 65535, RELEASE, RECORD, COLL, true, ONE, PLAIN,
      { "80", 48, 65 } },
    { "owner, depth 4, chains of 2", OWN, 1, 1, 2, 2, 4, 65534, FENCE, BELLS, RING, true, TWO, PLAIN,
      { "1", 11, 10 } },
};
static const struct setup ordered[] = {
    { "ordered, 2 lanes, depth 1", ORD, 2, 1, 2, 1, 1, 65535, FENCE, BELLS, RING, false, ONE, PLAIN,
      { "18780468257894410301245200", 15058, 30300 } },
    { "ordered, 2 lanes, depth 1, fenced record", ORD, 2, 1, 2, 1, 1, 65534, FENCE2, RECORD, COLL, false, ONE, PLAIN,
      { "18780468257894410301245200", 15058, 30300 } },
    { "ordered, 2 lanes, depth 2", ORD, 2, 1, 2, 1, 2, 65535, FENCE, BELLS, RING, false, ONE, PLAIN,
      { "370348262805224494261943940", 11684, 26775 } },
    { "ordered, 2 lanes, depth 2, release", ORD, 2, 1, 2, 1, 2, 65534, RELEASE, BELLS, COLL, true, ONE, PLAIN,
      { "4557781691778192307243397063979", 100785, 236124 } },
    { "ordered, 2 lanes, depth 2, two blocks", ORD, 2, 1, 2, 1, 2, 65534, FENCE, RECORD, COLL, false, TWO, PLAIN,
      { "18780468257894410301245200", 14753, 29608 } },
    { "ordered, 2 lanes, depth 4", ORD, 2, 1, 2, 1, 4, 0, FENCE, RECORD, RING, false, ONE, PLAIN,
      { "143001716908834465026170400", 11092, 25459 } },
    { "ordered, 2 lanes, depth 4, promised", ORD, 2, 1, 2, 1, 4, 65534, FENCE, BELLS, COLL, false, ONE, PROMISED,
      { "1104700943123751710049213", 8529, 19584 } },
    { "ordered, 2 lanes, depth 4, one or two blocks", ORD, 2, 1, 2, 1, 4, 65534, RELEASE, RECORD, RING, false, MIXED,
      PLAIN, { "127774926164894926431197207096", 27421, 62514 } },
    { "ordered, 2 lanes, depth 4, chains of 2", ORD, 2, 1, 1, 2, 4, 65533, FENCE, BELLS, COLL, true, MIXED, PLAIN,
      { "341915686620", 1275, 2540 } },
    { "ordered, 2 lanes, depth 2, one put each", ORD, 2, 1, 1, 1, 2, 65535, FENCE, BELLS, RING, false, ONE, PLAIN,
      { "3391851146263", 1092, 2406 } },
    { "the same, remembering all", ORD, 2, 1, 1, 1, 2, 65535, FENCE, BELLS, RING, false, ONE, REMEMBERS,
      { "3466637315277", 1568, 3302 } },
};
static const struct setup locked[] = {
    { "locked, 2 lanes, depth 1", LOCK, 2, 1, 2, 1, 1, 65535, FENCE, BELLS, RING, false, ONE, PLAIN,
      { "53050596172941047040", 2330, 4865 } },
    { "locked, 2 lanes, depth 2", LOCK, 2, 1, 2, 1, 2, 65535, FENCE, RECORD, RING, false, ONE, PLAIN,
      { "536415312173441586835590", 9063, 20898 } },
    { "locked, 2 lanes, depth 2, two blocks", LOCK, 2, 1, 2, 1, 2, 65534, RELEASE, BELLS, RING, false, TWO, PLAIN,
      { "1769440815182377068640", 2968, 6084 } },
    { "locked, 2 lanes, depth 4", LOCK, 2, 1, 2, 1, 4, 65534, RELEASE, BELLS, COLL, true, ONE, PLAIN,
      { "10624836011015521822", 48419, 129375 } },
};
static const struct setup cooperative[] = {
    { "a group of 2, depth 2", COOP, 2, 2, 2, 1, 2, 65534, FENCE, BELLS, RING, false, ONE, PLAIN,
      { "68766243750034736508", 1097, 2009 } },
    { "a group of 2, depth 4", COOP, 2, 2, 2, 1, 4, 65534, FENCE, RECORD, COLL, true, ONE, PLAIN,
      { "96774464619217203219", 2728, 6073 } },
    { "a group of 2, depth 4, two blocks", COOP, 2, 2, 2, 1, 4, 65534, RELEASE, BELLS, RING, false, TWO, PLAIN,
      { "68766243750034736508", 1097, 2009 } },
    { "groups of 1, depth 1", COOP, 2, 1, 2, 1, 1, 65535, FENCE, BELLS, RING, false, ONE, PLAIN,
      { "18780468257894410301245200", 15058, 30300 } },
};
static const struct setup three[] = {
    { "ordered, 3 lanes, depth 1", ORD, 3, 1, 1, 1, 1, 65535, FENCE, BELLS, RING, false, ONE, PLAIN,
      { "25524196784325218846509257520", 83350, 230990 } },
    { "ordered, 3 lanes, depth 2", ORD, 3, 1, 1, 1, 2, 65535, FENCE, BELLS, RING, false, ONE, PLAIN,
      { "8505568852794059500391773569209957", 287359, 833795 } },
    { "ordered, 3 lanes, depth 4", ORD, 3, 1, 1, 1, 4, 65534, RELEASE, RECORD, COLL, false, ONE, PLAIN,
      { "7466485373667205795680311727", 101230, 315681 } },
    { "locked, 3 lanes, depth 1", LOCK, 3, 1, 1, 1, 1, 65535, FENCE, BELLS, RING, false, ONE, PLAIN,
      { "662304729920824770", 4537, 12701 } },
    { "locked, 3 lanes, depth 2", LOCK, 3, 1, 1, 1, 2, 65535, FENCE, BELLS, RING, false, ONE, PLAIN,
      { "9666482664828067646599352562", 100271, 304986 } },
    { "locked, 3 lanes, depth 4", LOCK, 3, 1, 1, 1, 4, 65534, RELEASE, RECORD, COLL, false, ONE, PLAIN,
      { "11127119780109010645120", 82060, 258430 } },
    { "a group of 3, depth 4", COOP, 3, 3, 1, 1, 4, 65534, FENCE, BELLS, RING, false, ONE, PLAIN,
      { "15576569673786855878400", 8084, 19252 } },
    { "groups of 2 and 1, depth 2", COOP, 3, 2, 1, 1, 2, 65535, FENCE, BELLS, RING, false, ONE, PLAIN,
      { "1473482313035412744945078", 21358, 57744 } },
    { "groups of 2 and 1, depth 4", COOP, 3, 2, 1, 1, 4, 65534, FENCE, BELLS, COLL, false, ONE, PLAIN,
      { "40712409965648606194249461", 32200, 91958 } },
};
/* clang-format on */

static void run_setups(const struct setup *setups, size_t n, bool by_key)
{
    bool holds = true;
    for (size_t i = 0; i < n; i++)
        holds = run_setup(setups + i, by_key) && holds;
    assert_true(holds);
}

#define RUN(setups, by_key) run_setups(setups, sizeof(setups) / sizeof(setups)[0], by_key)

static void test_owner(void **state)
{
    (void)state;
    RUN(owner, false);
}

static void test_ordered(void **state)
{
    (void)state;
    RUN(ordered, false);
}

static void test_locked(void **state)
{
    (void)state;
    RUN(locked, false);
}

static void test_cooperative(void **state)
{
    (void)state;
    RUN(cooperative, false);
}

static void test_three_lanes(void **state)
{
    (void)state;
    RUN(three, false);
}

/* Lanes that sleep until their key changes: nobody sleeps through what it waits for. */
static void test_wake_by_key(void **state)
{
    (void)state;
    RUN(ordered, true);
    RUN(locked, true);
    RUN(cooperative, true);
}

/* Without an ordering the NIC may read a WQE before its stores arrive: the checker must see that. */
static void test_no_ordering(void **state)
{
    static const enum bell_sharing sharings[] = { OWN, ORD, LOCK, COOP };
    (void)state;
    for (size_t i = 0; i < 8; i++) {
        struct setup s = ordered[0];
        struct queue q;
        struct lane_setup lanes[LANES_MAX];
        struct explore_result r;
        s.sharing = sharings[i / 2];
        s.lanes = s.sharing == OWN ? 1 : 2;
        s.ordering = BELL_ORDERING_NONE;
        s.nic_start = i % 2 ? RECORD : BELLS;
        struct explore *x = open_setup(&s, &q, lanes, false);
        assert_false(explore_run(x, queue_check, queue_at_end, &q, &r));
        if (!strstr(explore_failure(x), "wqe: race")) fail_msg("%s", explore_failure(x));
        explore_free(x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_owner),       cmocka_unit_test(test_ordered),     cmocka_unit_test(test_locked),
        cmocka_unit_test(test_cooperative), cmocka_unit_test(test_three_lanes), cmocka_unit_test(test_wake_by_key),
        cmocka_unit_test(test_no_ordering),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
