/* SPDX-License-Identifier: Apache-2.0
 * What a post costs the processor, next to a plain ring of the same element size.
 *
 * Timed, ours: bell_sq_put over the soft port by one lane that owns the queue, untraced, of 8 B inline RC writes whose
 * requests are filled in before: reserve, build, copy to the queue, doorbell record, doorbell (ordering gpu-fence).
 * There is no NIC; `completed` is advanced between the timed parts, so that no put polls.
 * Timed, theirs: ck_ring_enqueue_spsc of a 64 B element (Concurrency Kit); the ring is emptied between the timed parts.
 * Batches of the cases take turns; the median of the batches is printed. */
#include "core/sq.h"

#include <ck_ring.h>

#include <stdio.h>
#include <stdlib.h>

#define DEPTH 2048u
#define BATCH 1024u /* WQEs or elements in a timed part */
#define BATCHES 4001u

struct element {
    uint64_t word[8];
};
CK_RING_PROTOTYPE(bench, element)

static struct bell_soft soft;
static struct bell_lane lane = { .id = { .group_size = 1 }, .soft = &soft };
static struct bell_stack stack;
static struct bell_sq_words words;
static struct bell_cqe cqe[DEPTH];
static uint8_t wqe[DEPTH * BELL_WQE_BLOCK_BYTES] __attribute__((aligned(64)));
static uint64_t span[DEPTH], doorbell __attribute__((aligned(64)));
static uint32_t dbrec __attribute__((aligned(64)));
static struct bell_sq sq = { .wqe = wqe,
                             .span = span,
                             .cqe = cqe,
                             .dbrec = &dbrec,
                             .doorbell = &doorbell,
                             .words = &words,
                             .key = cqe,
                             .depth = DEPTH,
                             .cq_depth = DEPTH,
                             .cq_shift = 11,
                             .qpn = 0x40 };
static struct bell_wqe_request requests[16];
static uint64_t payload = 1;

static ck_ring_t ring;
static struct element slots[DEPTH];

static void fail(const char *what)
{
    (void)fprintf(stderr, "bench_post: %s\n", what);
    exit(1);
}

static double put_batch(uint32_t wqes_per_doorbell)
{
    struct bell_completion done;
    uint64_t end = 0, start_ps = bell_port_now(&lane);
    for (uint32_t n = 0; n < BATCH; n += wqes_per_doorbell)
        if (bell_sq_put(&lane, &sq, &stack, requests, wqes_per_doorbell, &end, &done) != BELL_OK) fail("a put failed");
    uint64_t spent_ps = bell_port_now(&lane) - start_ps;
    words.completed = end;
    return (double)spent_ps / 1000 / BATCH;
}

static double ring_batch(void)
{
    struct element e = { { 1, 2, 3, 4, 5, 6, 7, 8 } };
    uint64_t start_ps = bell_port_now(&lane);
    for (uint32_t n = 0; n < BATCH; n++) {
        e.word[0] = n;
        if (!CK_RING_ENQUEUE_SPSC(bench, &ring, slots, &e)) fail("an enqueue failed");
    }
    uint64_t spent_ps = bell_port_now(&lane) - start_ps;
    for (uint32_t n = 0; n < BATCH; n++)
        if (!CK_RING_DEQUEUE_SPSC(bench, &ring, slots, &e) || e.word[0] != n) fail("a dequeue failed");
    return (double)spent_ps / 1000 / BATCH;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *sample)
{
    qsort(sample, BATCHES, sizeof *sample, ascending);
    return sample[BATCHES / 2];
}

int main(void)
{
    static double one[BATCHES], sixteen[BATCHES], theirs[BATCHES];
    bell_field_defaults(bell_stack_fields, &stack);
    ck_ring_init(&ring, DEPTH);
    for (uint32_t i = 0; i < 16; i++) {
        requests[i].opcode = BELL_WQE_WRITE;
        requests[i].raddr = 0x1000;
        requests[i].rkey = 0x2000;
        requests[i].inline_data = &payload;
        requests[i].bytes = sizeof payload;
    }
    for (uint32_t i = 0; i < BATCHES; i++) {
        one[i] = put_batch(1);
        sixteen[i] = put_batch(16);
        theirs[i] = ring_batch();
    }
    double p50_one = median(one), p50_sixteen = median(sixteen), p50_theirs = median(theirs);
    printf("p50 of %u batches of %u, processor time, one thread, no NIC\n", BATCHES, BATCH);
    printf("bell_sq_put, 8 B inline write, 1 WQE a doorbell    %7.2f ns/WQE\n", p50_one);
    printf("bell_sq_put, 8 B inline write, 16 WQEs a doorbell  %7.2f ns/WQE\n", p50_sixteen);
    printf("ck_ring_enqueue_spsc, 64 B element                 %7.2f ns/element\n", p50_theirs);
    printf("ratio of bell_sq_put to ck_ring: %.2f with 1, %.2f with 16\n", p50_one / p50_theirs,
           p50_sixteen / p50_theirs);
    return 0;
}
