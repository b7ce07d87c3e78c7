/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/interleave/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t explore_mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

void *memory_add(struct explore_memory *m, const char *name, size_t bytes, uint32_t count, enum explore_kind kind)
{
    uint32_t words = (uint32_t)(bytes / 8), first = bytes % 64 ? m->words : (m->words + 7) / 8 * 8;
    if (first + words * count > EXPLORE_WORDS_MAX || m->places + count > EXPLORE_PLACES_MAX || bytes % 8) {
        fprintf(stderr, "explore: no room for %s\n", name);
        abort();
    }
    for (uint32_t i = 0; i < count; i++) {
        (void)snprintf(m->place[m->places].name, sizeof m->place[0].name, count > 1 ? "%s[%u]" : "%s", name, i);
        m->place[m->places].kind = kind;
        memset(m->place_of + first + i * words, (int)m->places, words);
        m->places++;
    }
    m->words = first + words * count;
    return m->now.memory + first;
}

bool memory_holds(const struct explore_memory *m, const void *at)
{
    uintptr_t offset = (uintptr_t)at - (uintptr_t)m->now.memory;
    return offset < (uintptr_t)m->words * sizeof m->now.memory[0];
}

uint32_t memory_place(const struct explore_memory *m, const void *at)
{
    return m->place_of[((uintptr_t)at - (uintptr_t)m->now.memory) / sizeof m->now.memory[0]];
}

static void clock_join(struct explore_clock *into, const struct explore_clock *from)
{
    for (uint32_t i = 0; i < EXPLORE_LANES_MAX; i++)
        if (into->of[i] < from->of[i]) into->of[i] = from->of[i];
}

/* The lane's next access, which nobody knows of yet. */
static uint16_t clock_next(struct explore_memory *m, uint32_t lane)
{
    return ++m->now.clock[lane].of[lane];
}

static bool knows_store(const struct explore_memory *m, uint32_t lane, uint32_t place)
{
    const struct explore_access *a = &m->now.access[place];
    return a->storer == 0 || a->store <= m->now.clock[lane].of[a->storer - 1];
}

static bool knows_reads(const struct explore_memory *m, uint32_t lane, uint32_t place)
{
    const struct explore_access *a = &m->now.access[place];
    for (uint32_t l = 0; l < m->lanes; l++)
        if (l != lane && a->read[l] > m->now.clock[lane].of[l]) return false;
    return true;
}

const char *memory_read(struct explore_memory *m, uint32_t lane, uint32_t place)
{
    m->now.access[place].read[lane] = clock_next(m, lane);
    return knows_store(m, lane, place) ? NULL : "race: read without having acquired the store";
}

const char *memory_write(struct explore_memory *m, uint32_t lane, uint32_t place)
{
    const char *wrong = !knows_store(m, lane, place)   ? "race: two stores that nothing orders"
                        : !knows_reads(m, lane, place) ? "race: stored to while another lane may still read"
                                                       : NULL;
    m->now.access[place].store = clock_next(m, lane);
    m->now.access[place].storer = (uint8_t)(lane + 1);
    return wrong;
}

const char *memory_load(struct explore_memory *m, uint32_t lane, uint32_t place, bool acquire)
{
    enum explore_kind kind = m->place[place].kind;
    if (acquire) clock_join(&m->now.clock[lane], &m->now.released[place]);
    if (kind == EXPLORE_DATA) return memory_read(m, lane, place);
    if ((kind == EXPLORE_FOLLOW || kind == EXPLORE_FIXED) &&
        (m->now.access[place].storer == 0 || !knows_store(m, lane, place)))
        return "load without having acquired any store";
    return NULL;
}

const char *memory_store(struct explore_memory *m, uint32_t lane, uint32_t place, bool release)
{
    enum explore_kind kind = m->place[place].kind;
    const char *wrong = NULL;
    if (kind == EXPLORE_SERIAL || kind == EXPLORE_DATA ||
        ((kind == EXPLORE_FOLLOW || kind == EXPLORE_FIXED) && m->now.access[place].storer == 0))
        wrong = memory_write(m, lane, place);
    m->now.released[place] = release ? m->now.clock[lane] : m->now.fenced[lane];
    return wrong;
}

const char *memory_swap(struct explore_memory *m, uint32_t lane, uint32_t place)
{
    const char *wrong = memory_load(m, lane, place, true);
    const char *worse = memory_store(m, lane, place, true);
    return wrong ? wrong : worse;
}

void memory_fence(struct explore_memory *m, uint32_t lane)
{
    m->now.fenced[lane] = m->now.clock[lane];
}

static void forget(struct explore_memory *m)
{
    uint16_t all[EXPLORE_LANES_MAX];
    for (uint32_t l = 0; l < m->lanes; l++) {
        all[l] = UINT16_MAX;
        for (uint32_t k = 0; k < m->lanes; k++)
            if (!(m->now.ended >> k & 1) && m->now.clock[k].of[l] < all[l]) all[l] = m->now.clock[k].of[l];
    }
    for (uint32_t p = 0; p < m->places; p++) {
        struct explore_access *a = &m->now.access[p];
        if (a->storer && a->store <= all[a->storer - 1]) {
            a->store = 0;
            a->storer = 1;
        }
        for (uint32_t l = 0; l < m->lanes; l++)
            if (a->read[l] <= all[l]) a->read[l] = 0;
    }
}

/* rank[l][c]: accesses of lane l that are remembered and not later than c.  Clocks matter only through them. */
static void rank_clocks(const struct explore_memory *m, uint8_t rank[][EXPLORE_CLOCK_MAX])
{
    const struct explore_state *s = &m->now;
    for (uint32_t l = 0; l < m->lanes; l++)
        memset(rank[l], 0, s->clock[l].of[l] + 1u);
    for (uint32_t p = 0; p < m->places; p++) {
        const struct explore_access *a = &s->access[p];
        if (a->store) rank[a->storer - 1][a->store] = 1;
        for (uint32_t l = 0; l < m->lanes; l++)
            if (a->read[l]) rank[l][a->read[l]] = 1;
    }
    for (uint32_t l = 0; l < m->lanes; l++)
        for (uint32_t c = 1; c <= s->clock[l].of[l]; c++)
            rank[l][c] = (uint8_t)(rank[l][c] + rank[l][c - 1]);
}

static void take_in(struct explore_key *key, uint64_t word)
{
    key->low = explore_mix(key->low, word);
    key->high = (key->high ^ word ^ key->high >> 31) * 0xd6e8feb86659fd93u;
}

static void take_in_clock(struct explore_key *key, const struct explore_memory *m, const struct explore_clock *c,
                          uint8_t rank[][EXPLORE_CLOCK_MAX])
{
    uint64_t word = 0;
    for (uint32_t l = 0; l < m->lanes; l++)
        word = word << 8 | rank[l][c->of[l]];
    take_in(key, word);
}

struct explore_key memory_fingerprint(struct explore_memory *m)
{
    static uint8_t rank[EXPLORE_LANES_MAX][EXPLORE_CLOCK_MAX];
    struct explore_state *s = &m->now;
    struct explore_key key = { 1, 2 };
    forget(m);
    rank_clocks(m, rank);
    for (uint32_t w = 0; w < m->words; w++)
        take_in(&key, s->memory[w]);
    for (uint32_t l = 0; l < m->lanes; l++) {
        take_in(&key, s->seen[l]);
        take_in_clock(&key, m, &s->clock[l], rank);
        take_in_clock(&key, m, &s->fenced[l], rank);
    }
    for (uint32_t p = 0; p < m->places; p++) {
        const struct explore_access *a = &s->access[p];
        struct explore_clock reads = { { 0 } };
        if (m->place[p].kind == EXPLORE_GHOST) continue;
        if (m->place[p].kind != EXPLORE_DATA && m->place[p].kind != EXPLORE_FIXED)
            take_in_clock(&key, m, &s->released[p], rank);
        if (m->place[p].kind == EXPLORE_WORD) continue;
        memcpy(reads.of, a->read, sizeof reads.of);
        take_in_clock(&key, m, &reads, rank);
        take_in(&key, (uint64_t)(a->store ? rank[a->storer - 1][a->store] : 0) << 8 | a->storer);
    }
    take_in(&key, (uint64_t)s->asleep << 16 | (uint64_t)s->ended << 8 | s->waits);
    return key;
}
