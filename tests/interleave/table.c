/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/interleave/table.h"

#include <stdlib.h>

#define TABLE_SIZE_FIRST 4096u

bool table_open(struct explore_table *t)
{
    t->size = TABLE_SIZE_FIRST;
    t->used = 0;
    t->entry = calloc(t->size, sizeof *t->entry);
    return t->entry != NULL;
}

void table_close(struct explore_table *t)
{
    free(t->entry);
}

/* The key's entry, or the free one where it belongs. */
static struct explore_entry *seek(const struct explore_table *t, struct explore_key key)
{
    size_t at = key.low & (t->size - 1);
    while ((t->entry[at].key.low | t->entry[at].key.high) &&
           (t->entry[at].key.low != key.low || t->entry[at].key.high != key.high))
        at = (at + 1) & (t->size - 1);
    return t->entry + at;
}

const struct explore_count *table_find(const struct explore_table *t, struct explore_key key)
{
    const struct explore_entry *e = seek(t, key);
    return e->key.low | e->key.high ? &e->schedules : NULL;
}

static void grow(struct explore_table *t)
{
    struct explore_table wide = { calloc(t->size * 2, sizeof *t->entry), t->size * 2, t->used };
    if (!wide.entry) abort();
    for (size_t i = 0; i < t->size; i++)
        if (t->entry[i].key.low | t->entry[i].key.high) *seek(&wide, t->entry[i].key) = t->entry[i];
    free(t->entry);
    *t = wide;
}

void table_put(struct explore_table *t, struct explore_key key, struct explore_count schedules)
{
    if (t->used * 2 > t->size) grow(t);
    struct explore_entry *e = seek(t, key);
    t->used += (e->key.low | e->key.high) == 0;
    e->key = key;
    e->schedules = schedules;
}

void count_add(struct explore_count *to, const struct explore_count *more)
{
    uint64_t carry = 0;
    for (int i = 0; i < 4; i++) {
        uint64_t sum = to->word[i] + more->word[i], all = sum + carry;
        carry = sum < more->word[i] || all < carry;
        to->word[i] = all;
    }
    if (carry) abort();
}

/* Long division by ten, in halves of words. */
static uint32_t take_digit(struct explore_count *count)
{
    uint64_t rest = 0;
    for (int i = 3; i >= 0; i--) {
        uint64_t high = rest << 32 | count->word[i] >> 32, low = (high % 10) << 32 | (count->word[i] & 0xffffffff);
        count->word[i] = (high / 10) << 32 | low / 10;
        rest = low % 10;
    }
    return (uint32_t)rest;
}

const char *explore_count_text(struct explore_count count, char *text)
{
    char *at = text + EXPLORE_COUNT_TEXT - 1;
    *at = '\0';
    do
        *--at = (char)('0' + take_digit(&count));
    while (count.word[0] | count.word[1] | count.word[2] | count.word[3]);
    return at;
}
