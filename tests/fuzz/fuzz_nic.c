/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: a send queue, doorbell and doorbell record of arbitrary bytes, served by the NIC.  It touches no memory
 * but what keys open, carries out no more WQEs than there are blocks, and leaves a CQE for each failure.
 *
 * Input: one byte of choices (start, DC, CQ kind), 8 of the doorbell, 4 of the record, then the ring.  In the ring a
 * byte 0xfa where an address begins stands for one in the right memory, and 0xfb where a key begins for its key. */
#include "core/nic.h"

#include <stdlib.h>

#define DEPTH 16u
#define WORDS 64u
#define KEY 0x10203u
#define QPN 0x40u
#define GUARD 0x5555aaaa5555aaaau

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool claim)
{
    if (!claim)
        abort();
}

struct memory {
    uint64_t below[4], word[WORDS], above[4];
};

static struct memory from, to;
static uint8_t ring[DEPTH * BELL_WQE_BLOCK_BYTES] __attribute__((aligned(64)));
static struct bell_cqe cqe[DEPTH];

static void fill(struct memory *m)
{
    for (uint32_t i = 0; i < 4; i++)
        m->below[i] = m->above[i] = GUARD;
    memset(m->word, 0, sizeof m->word);
}

static void check(const struct memory *m)
{
    for (uint32_t i = 0; i < 4; i++)
        demand(m->below[i] == GUARD && m->above[i] == GUARD);
}

static void put_address(uint8_t *at, const struct memory *m)
{
    if (at[0] == 0xfa)
        bell_store_be64(at, (uint64_t)(uintptr_t)m->word + at[1] * 2u);
}

static void put_key(uint8_t *at)
{
    if (at[0] == 0xfb)
        bell_store_be32(at, KEY);
}

/* Segments may be any: each place where one could have an address or a key. */
static void relocate(void)
{
    for (uint8_t *at = ring; at < ring + sizeof ring; at += BELL_WQE_SEGMENT_BYTES) {
        put_address(at, &to);
        put_address(at + 8, &from);
        put_key(at + 4);
        put_key(at + 8);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bell_soft soft;
    struct bell_lane lane;
    struct bell_nic_work work;
    uint64_t doorbell = 0;
    uint32_t dbrec = 0;
    if (size < 13)
        return 0;
    memset(&soft, 0, sizeof soft);
    memset(&lane, 0, sizeof lane);
    lane.soft = &soft;
    memcpy(&doorbell, data + 1, sizeof doorbell);
    memcpy(&dbrec, data + 9, sizeof dbrec);
    memset(ring, 0, sizeof ring);
    memcpy(ring, data + 13, size - 13 < sizeof ring ? size - 13 : sizeof ring);
    fill(&from);
    fill(&to);
    relocate();
    const struct bell_region source = { (uint64_t)(uintptr_t)from.word, sizeof from.word, KEY };
    const struct bell_region target = { (uint64_t)(uintptr_t)to.word, sizeof to.word, KEY };
    struct bell_sq sq = { .wqe = ring, .cqe = cqe, .dbrec = &dbrec, .doorbell = &doorbell, .depth = DEPTH,
                          .cq_depth = data[0] & 8 ? 1 : DEPTH, .cq_shift = data[0] & 8 ? 0 : 4, .qpn = QPN,
                          .is_dc = data[0] & 4 };
    struct bell_nicq q = { .sq = &sq, .local = &source, .remote = &target, .start = (enum bell_nic_start)(data[0] & 3),
                           .receive = data[0] & 16 ? &target : NULL, .recover_ps = 1 };
    if (bell_nic_take(&lane, &q) == BELL_EMPTY && bell_nic_recover(&lane, &q, 1) == BELL_EMPTY)
        (void)bell_nic_recover(&lane, &q, 2);
    demand(q.producer <= DEPTH);
    uint32_t wqes = 0;
    for (; bell_nic_fetch(&lane, &q, &work) == BELL_OK; wqes++) {
        demand(work.view.blocks >= 1 && q.fetched <= q.producer);
        if (data[0] & 32)
            q.in_error = false;
        uint64_t before = q.cq_produced;
        bell_nic_execute(&lane, &q, &work);
        bell_nic_complete(&lane, &q, &work);
        demand(q.cq_produced - before == bell_nic_wants_cqe(&work));
        demand(work.syndrome == 0 || q.in_error);
    }
    demand(wqes <= DEPTH && q.fetched == q.producer);
    check(&from);
    check(&to);
    return 0;
}
