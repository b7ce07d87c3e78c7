/* SPDX-License-Identifier: Apache-2.0
 * Every schedule of the lanes that fill a proxy ring, the worker that empties it, and its NIC. */
#include "core/serve.h"
#include "tests/interleave/queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define PRODUCERS_MAX 2u
#define BATCH_MAX 2u
#define DEPTH_MAX 4u

struct setup {
    const char *name;
    enum bell_protocol protocol;
    uint32_t producers, puts; /* puts of a producer */
    uint32_t ring_depth, depth, batch;
    enum bell_cq_kind cq;
    bool is_inline;
    bool lazy; /* quiet after the last put only */
    struct queue_counts counts;
};

struct proxy {
    const struct setup *setup;
    struct queue queue;
    struct bell_ring ring; /* as every lane finds it; each has its own copy */
    struct producer {
        struct proxy *proxy;
        uint8_t *source;
        uint32_t number;
    } producer[PRODUCERS_MAX];
};

static uint64_t value_of(uint32_t target)
{
    return 0x1122334455667700u + target;
}

static void enqueue(struct bell_lane *lane, const struct producer *p, struct bell_ring *ring, uint32_t put,
                    uint64_t *index)
{
    const struct setup *s = p->proxy->setup;
    const struct queue *q = &p->proxy->queue;
    uint32_t target = p->number * s->puts + put;
    uint64_t value = value_of(target);
    uint8_t *source = p->source + (s->lazy ? put * sizeof value : 0);
    struct bell_put request = { value, 0, 0, sizeof value, s->is_inline };
    if (!s->is_inline) {
        explore_write(lane, source, &value, sizeof value);
        request.from = (uint64_t)(uintptr_t)source - q->region.address;
    }
    request.to = (uint64_t)(uintptr_t)(q->target + target * q->target_bytes) - q->region.address;
    explore_claim(lane, bell_ring_enqueue(lane, ring, &q->stack, &request, index) == BELL_OK, "a put failed");
}

static void verify(struct bell_lane *lane, const struct producer *p, uint32_t put)
{
    const struct queue *q = &p->proxy->queue;
    uint32_t target = p->number * p->proxy->setup->puts + put;
    uint64_t found;
    explore_read(lane, &found, q->target + target * q->target_bytes, sizeof found);
    explore_claim(lane, found == value_of(target), "other bytes arrived than were sent");
}

static void produce(struct bell_lane *lane, void *context)
{
    const struct producer *p = context;
    const struct setup *s = p->proxy->setup;
    struct bell_ring ring = p->proxy->ring;
    for (uint32_t put = 0; put < s->puts; put++) {
        uint64_t index = 0;
        enqueue(lane, p, &ring, put, &index);
        uint64_t kept[] = { put, index, ring.next, ring.cached };
        explore_mark(lane, kept, 4, 0);
        if (s->lazy && put + 1 < s->puts) continue;
        explore_claim(lane, bell_ring_quiet(lane, &ring, index + 1) == BELL_OK, "quiet failed");
        for (uint32_t done = s->lazy ? 0 : put; done <= put; done++)
            verify(lane, p, done);
        kept[1] = 0;
        explore_mark(lane, kept, 4, 1);
    }
}

static void work(struct bell_lane *lane, void *context)
{
    struct proxy *p = context;
    struct bell_ring ring = p->ring;
    struct bell_wqe_request request[BATCH_MAX];
    uint64_t value[BATCH_MAX];
    struct {
        uint64_t upto[DEPTH_MAX];
        struct bell_worker worker;
    } kept;
    memset(&kept, 0, sizeof kept);
    struct bell_worker *w = &kept.worker;
    w->ring = &ring;
    w->sq = &p->queue.sq;
    w->stack = &p->queue.stack;
    w->source = w->target = &p->queue.region;
    w->request = request;
    w->value = value;
    w->upto = kept.upto;
    w->posted_end = p->queue.start;
    w->expected = p->queue.targets;
    lane->kept = kept.upto;
    lane->kept_words = sizeof kept / sizeof kept.upto[0];
    lane->points = BELL_POINT(DOORBELL) | BELL_POINTS_OF_QUIET;
    struct bell_share share = { w, NULL, 1 };
    explore_claim(lane, bell_serve(lane, &share) == BELL_OK, "the worker failed");
}

static const char *check(struct explore *x, void *context)
{
    const struct proxy *p = context;
    uint64_t progress = *p->ring.progress, done = *p->ring.done;
    if (progress < *(const uint64_t *)explore_before(x, p->ring.progress) ||
        done < *(const uint64_t *)explore_before(x, p->ring.done))
        return "a counter of the ring falls back";
    if (done > progress || done > *p->queue.executed - p->queue.start)
        return "something is done that the NIC has not carried out";
    return queue_check(x, (void *)&p->queue);
}

static const char *at_end(struct explore *x, void *context)
{
    struct proxy *p = context;
    uint64_t all = p->queue.targets;
    if (*p->ring.progress != all || *p->ring.done != all ||
        (p->setup->protocol == BELL_PROTOCOL_BASELINE && *p->ring.head != all))
        return "the counters of the ring do not meet at the end";
    return queue_at_end(x, &p->queue);
}

static struct explore *open_setup(const struct setup *s, struct proxy *p, bool by_key)
{
    static const char *const names[PRODUCERS_MAX] = { "lane0", "lane1" };
    struct explore *x = explore_new();
    struct bell_stack stack;
    assert_non_null(x);
    memset(p, 0, sizeof *p);
    memset(&stack, 0, sizeof stack);
    stack.sharing = BELL_SHARING_OWNER;
    stack.ordering = BELL_ORDERING_SYS_RELEASE;
    stack.cq = (int32_t)s->cq;
    stack.depth = s->depth;
    stack.batch = s->batch;
    stack.protocol = (int32_t)s->protocol;
    p->setup = s;
    queue_open(&p->queue, x, &stack, 65535, s->producers * s->puts, 8, true);
    p->queue.blocks = p->queue.targets;
    p->ring.entry = explore_place(x, "entry", sizeof *p->ring.entry, s->ring_depth, EXPLORE_SERIAL);
    p->ring.head = explore_place(x, "head", 8, 1, EXPLORE_WORD);
    p->ring.progress = explore_place(x, "progress", 8, 1, EXPLORE_SERIAL);
    p->ring.done = explore_place(x, "done", 8, 1, EXPLORE_SERIAL);
    p->ring.key = p->queue.sq.key = p->ring.entry; /* the worker waits for either at once */
    p->ring.depth = s->ring_depth;
    p->ring.shift = (uint32_t)__builtin_ctz(s->ring_depth);
    for (uint32_t i = 0; i < s->producers; i++) {
        p->producer[i].proxy = p;
        p->producer[i].number = i;
        p->producer[i].source = explore_place(x, "source", 8, s->lazy ? s->puts : 1, EXPLORE_DATA);
        (void)explore_lane(x, names[i], produce, &p->producer[i]);
    }
    (void)explore_lane(x, "worker", work, p);
    (void)explore_lane(x, "nic", queue_nic, &p->queue);
    if (by_key) explore_wake_by_key(x);
    return x;
}

#define BASE BELL_PROTOCOL_BASELINE
#define TUNED BELL_PROTOCOL_TUNED
#define RING BELL_CQ_RING
#define COLL BELL_CQ_COLLAPSED

/* protocol, lanes, puts, depth of the ring, of the queue, batch, CQ, inline, lazy; counts */
static const struct setup setups[] = {
    { "tuned, ring 1, queue 1", TUNED, 1, 3, 1, 1, 1, RING, false, true, { "16236288", 208, 383 } },
    { "tuned, ring 2, queue 2, inline", TUNED, 1, 3, 2, 2, 2, COLL, true, true, { "415032", 406, 718 } },
    { "tuned, ring 2, queue 4, batch 2", TUNED, 1, 4, 2, 4, 2, RING, false, true, { "17495590402121", 14418, 29898 } },
    { "tuned, ring 1, waiting for each", TUNED, 1, 3, 1, 2, 1, COLL, false, false, { "120000", 88, 116 } },
    { "baseline, ring 1, queue 1", BASE, 1, 3, 1, 1, 1, COLL, true, true, { "633718368", 268, 509 } },
    { "baseline, 2 lanes, ring 1, queue 1",
      BASE,
      2,
      2,
      1,
      1,
      1,
      RING,
      false,
      false,
      { "1991854343470032", 1434, 2908 } },
    { "baseline, 2 lanes, ring 2, queue 2",
      BASE,
      2,
      2,
      2,
      2,
      2,
      COLL,
      false,
      false,
      { "761215583912892", 3790, 7315 } },
    { "baseline, 2 lanes, ring 2, queue 4",
      BASE,
      2,
      2,
      2,
      4,
      2,
      RING,
      false,
      true,
      { "97712990958057074842", 208836, 492360 } },
    { "baseline, 2 lanes, ring 4, queue 2",
      BASE,
      2,
      2,
      4,
      2,
      1,
      RING,
      true,
      true,
      { "8235419245653659690", 115521, 268168 } },
};

static void run_all(bool by_key)
{
    bool holds = true;
    for (size_t i = 0; i < sizeof setups / sizeof setups[0]; i++) {
        struct proxy p;
        struct explore *x = open_setup(setups + i, &p, by_key);
        holds = queue_explore(x, setups[i].name, check, at_end, &p, &setups[i].counts) && holds;
    }
    assert_true(holds);
}

static void test_schedules(void **state)
{
    (void)state;
    run_all(false);
}

static void test_wake_by_key(void **state)
{
    (void)state;
    run_all(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_schedules), cmocka_unit_test(test_wake_by_key) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
