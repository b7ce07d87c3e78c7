/* SPDX-License-Identifier: Apache-2.0
 * From steps to events; and the posted stores that arrive later. */
#include "sim/nic.h"

static void send(struct bell_sim *sim, const struct bell_event *e)
{
    enum bell_status s = sim->sink->write(sim->sink->context, e, sim->err);
    if (s != BELL_OK)
        bell_sim_stop(sim, s, sim->clock_ps);
}

static struct bell_event event_of(const struct bell_lane_id *who, const struct bell_note *n)
{
    struct bell_event e = { .index = n->index, .count = n->count, .bytes = n->bytes, .rank = who->rank,
                            .lane = who->lane, .queue = n->queue, .kind = (uint8_t)n->kind,
                            .scope = (uint8_t)n->scope, .actor = (uint8_t)who->actor };
    return e;
}

uint64_t bell_sim_emit(struct bell_sim *sim, const struct bell_lane_id *who, enum bell_actor actor,
                       const struct bell_note *note, uint64_t start_ps, uint64_t end_ps, uint64_t cause)
{
    if (!sim->sink)
        return 0;
    struct bell_event e = event_of(who, note);
    e.actor = (uint8_t)actor;
    e.seq = ++sim->seq;
    e.cause = cause;
    e.start_ps = start_ps;
    e.duration_ps = end_ps - start_ps;
    send(sim, &e);
    return e.seq;
}

void bell_sim_note(struct bell_lane *lane, const struct bell_note *note)
{
    struct bell_sim *sim = lane->sim;
    uint64_t start_ps = note->kind == BELL_EVENT_OP ? lane->id.op_start_ps : lane->id.step_start_ps;
    lane->id.step_start_ps = lane->now_ps;
    if (note->kind == BELL_EVENT_BUILD)
        lane->wqe_segments = 0;
    if (!sim->sink)
        return;
    struct bell_event e = event_of(&lane->id, note);
    /* What the NIC writes takes the time of its way over PCIe. */
    if (note->kind == BELL_EVENT_DELIVER || note->kind == BELL_EVENT_CQE)
        e.actor = BELL_ACTOR_PCIE;
    e.seq = lane->early_seq ? lane->early_seq : ++sim->seq;
    e.cause = lane->cause;
    e.start_ps = start_ps;
    e.duration_ps = lane->now_ps - start_ps;
    lane->early_seq = lane->cause = 0;
    lane->last_seq = e.seq;
    send(sim, &e);
}

static uint64_t flight(struct bell_sim *sim, const struct bell_timer *t, uint16_t queue)
{
    if (t->at_ps == t->start_ps)
        return t->cause;
    struct bell_note n = { BELL_EVENT_FLIGHT, queue, 0, 0, 0, BELL_SCOPE_NONE };
    return bell_sim_emit(sim, &t->lane->id, BELL_ACTOR_PCIE, &n, t->start_ps, t->at_ps, t->cause);
}

void bell_sim_store_word(struct bell_sim *sim, struct bell_timer *t)
{
    uint64_t *word = t->target;
    *word = t->value[0];
    bell_sim_wake(sim, word, t->at_ps, flight(sim, t, 0));
}

void bell_sim_store_entry(struct bell_sim *sim, struct bell_timer *t)
{
    struct bell_entry *entry = t->target;
    entry->lo = t->value[0];
    entry->hi = t->value[1];
    bell_sim_wake(sim, t->key, t->at_ps, flight(sim, t, 0));
}

/* splitmix64 */
static uint64_t next_random(struct bell_sim *sim)
{
    uint64_t z = (sim->random += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

void bell_sim_stall(struct bell_lane *lane)
{
    struct bell_sim *sim = lane->sim;
    if (sim->cost.stall_ps == 0 || (double)(next_random(sim) >> 11) * 0x1p-53 >= sim->cost.stall_chance)
        return;
    lane->now_ps += sim->cost.stall_ps;
    bell_note(lane, BELL_EVENT_STALL, 0, 0, 0, 0, BELL_SCOPE_NONE);
}
