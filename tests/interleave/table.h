/* SPDX-License-Identifier: Apache-2.0
 * States that were visited, with the number of complete schedules from each.  A hash table that grows; aborts when
 * memory is short. */
#ifndef BELL_INTERLEAVE_TABLE_H
#define BELL_INTERLEAVE_TABLE_H

#include "tests/interleave/memory.h"

struct explore_table {
    struct explore_entry {
        struct explore_key key; /* {0, 0}: free */
        struct explore_count schedules;
    } * entry;
    size_t size, used;
};

bool table_open(struct explore_table *t);
void table_close(struct explore_table *t);

/* NULL when the state is new.  Valid until the next put. */
const struct explore_count *table_find(const struct explore_table *t, struct explore_key key);
void table_put(struct explore_table *t, struct explore_key key, struct explore_count schedules);

/* Aborts when the sum has no place. */
void count_add(struct explore_count *to, const struct explore_count *more);

#endif
