/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/window.h"

#include <stdlib.h>
#include <string.h>

struct bell_slot *bell_window_at(const struct bell_window *w, uint64_t index)
{
    return index >= w->base && index - w->base < w->room ? &w->slot[index & (w->room - 1)] : NULL;
}

struct bell_slot *bell_window_grow(struct bell_window *w, uint64_t index)
{
    if (index - w->base >= w->room) {
        uint64_t room = w->room ? w->room : 16;
        while (index - w->base >= room)
            room *= 2;
        struct bell_slot *more = calloc(room, sizeof *more);
        if (!more) return NULL;
        for (uint64_t i = 0; i < w->room; i++)
            more[(w->base + i) & (room - 1)] = w->slot[(w->base + i) & (w->room - 1)];
        free(w->slot);
        w->slot = more;
        w->room = room;
    }
    return &w->slot[index & (w->room - 1)];
}

void bell_window_advance(struct bell_window *w, uint64_t to)
{
    if (to - w->base >= w->room && w->room)
        memset(w->slot, 0, w->room * sizeof *w->slot);
    else
        for (uint64_t i = w->base; i < to && w->room; i++)
            memset(&w->slot[i & (w->room - 1)], 0, sizeof *w->slot);
    w->base = to;
}

static struct bell_pair *find(struct bell_pair *pair, size_t room, uint64_t key)
{
    uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15);
    size_t at = (size_t)(hash >> 32) & (room - 1);
    while (pair[at].key && pair[at].key != key)
        at = (at + 1) & (room - 1);
    return &pair[at];
}

uint64_t *bell_map_at(struct bell_map *m, uint64_t key)
{
    if ((m->used + 1) * 2 > m->room) {
        size_t room = m->room ? m->room * 2 : 64;
        struct bell_pair *more = calloc(room, sizeof *more);
        if (!more) return NULL;
        for (size_t i = 0; i < m->room; i++)
            if (m->pair[i].key) *find(more, room, m->pair[i].key) = m->pair[i];
        free(m->pair);
        m->pair = more;
        m->room = room;
    }
    struct bell_pair *p = find(m->pair, m->room, key);
    if (!p->key) {
        p->key = key;
        m->used++;
    }
    return &p->value;
}
