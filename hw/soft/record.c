/* SPDX-License-Identifier: Apache-2.0
 * What a lane does while it is traced: one record more in memory of its own. */
#include "core/port.h"

#include <stdlib.h>

#define EVENTS_FIRST 1024

/* Kinds that tell of a store which others see: what they do then must have a higher number, so this one's was drawn
 * before the store.  Reserving and polling are such only where lanes share a queue; otherwise the plain store in them
 * has left no number. */
static bool is_of_a_store(enum bell_event_kind kind)
{
    switch (kind) {
    case BELL_EVENT_RESERVE:
    case BELL_EVENT_PUBLISH:
    case BELL_EVENT_DBREC:
    case BELL_EVENT_DOORBELL:
    case BELL_EVENT_ENQUEUE:
    case BELL_EVENT_PROGRESS:
    case BELL_EVENT_DELIVER:
    case BELL_EVENT_CQE:
    case BELL_EVENT_POLL:
        return true;
    default:
        return false;
    }
}

static bool grow(struct bell_lane *lane)
{
    size_t capacity = lane->capacity ? 2 * lane->capacity : EVENTS_FIRST;
    struct bell_event *more = realloc(lane->event, capacity * sizeof *more);
    if (!more) return false;
    lane->event = more;
    lane->capacity = capacity;
    return true;
}

void bell_soft_record(struct bell_lane *lane, const struct bell_note *note)
{
    uint64_t now_ps = bell_port_now(lane);
    uint64_t start_ps = note->kind == BELL_EVENT_OP ? lane->id.op_start_ps : lane->id.step_start_ps;
    uint64_t seq = is_of_a_store(note->kind) ? lane->early_seq : 0;
    lane->id.step_start_ps = now_ps;
    lane->early_seq = 0;
    if (seq == 0) seq = __atomic_add_fetch(&lane->soft->seq, 1, __ATOMIC_RELAXED);
    if (lane->events == lane->capacity && !grow(lane)) {
        lane->is_out_of_memory = true;
        return;
    }
    struct bell_event *e = &lane->event[lane->events++];
    memset(e, 0, sizeof *e);
    e->seq = seq;
    e->start_ps = start_ps;
    e->duration_ps = now_ps - start_ps;
    e->index = note->index;
    e->count = note->count;
    e->bytes = note->bytes;
    e->rank = lane->id.rank;
    e->lane = lane->id.lane;
    e->queue = note->queue;
    e->kind = (uint8_t)note->kind;
    e->scope = (uint8_t)note->scope;
    e->actor = (uint8_t)lane->id.actor;
}
