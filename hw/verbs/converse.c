/* SPDX-License-Identifier: Apache-2.0
 * What the main thread does while a run with two processes goes on: signs of life both ways, rank 0's samples, and how
 * it ended on each side. */
#include "core/endian.h"
#include "hw/verbs/team.h"

#include <inttypes.h>
#include <poll.h>

#define BEAT_EVERY 1000 /* ms between two signs of life */
#define SLICE 20        /* ms that it looks at the wire before it looks at its threads */

static enum bell_status send_times(struct bell_verbs_team *t, struct bell_error *err)
{
    const struct bell_program *p = t->crew.run->program;
    uint64_t count = (uint64_t)bell_program_counted(p) * p->iterations;
    enum bell_status s = BELL_OK;
    for (uint64_t at = 0; s == BELL_OK && at < count && t->result->issue_ps;) {
        uint8_t *out = t->link.body;
        for (uint32_t n = 0; n < BELL_TIMES_MAX && at < count; n++, at++, out += 16) {
            bell_store_be64(out, t->result->issue_ps[at]);
            bell_store_be64(out + 8, t->result->total_ps[at]);
        }
        s = bell_wire_send(&t->link.wire, BELL_MESSAGE_TIMES, t->link.body, (size_t)(out - t->link.body), err);
    }
    return s;
}

static enum bell_status take_times(struct bell_verbs_team *t, size_t size, struct bell_error *err)
{
    const struct bell_program *p = t->crew.run->program;
    uint64_t count = (uint64_t)bell_program_counted(p) * p->iterations;
    if (t->link.rank != 1 || size % 16 != 0 || size / 16 > count - t->samples)
        return bell_fail(err, BELL_CORRUPT, "peer on %s: TIMES of %zu bytes after %" PRIu64 " of %" PRIu64 " samples",
                         t->link.wire.peer, size, t->samples, count);
    for (size_t i = 0; i < size; i += 16, t->samples++) {
        if (!t->result->issue_ps || !t->result->total_ps) continue;
        t->result->issue_ps[t->samples] = bell_load_be64(t->link.body + i);
        t->result->total_ps[t->samples] = bell_load_be64(t->link.body + i + 8);
    }
    return BELL_OK;
}

static enum bell_status take_message(struct bell_verbs_team *t, bool *has_ran, struct bell_error *err)
{
    enum bell_message_kind kind;
    size_t size;
    enum bell_status s = bell_wire_receive(&t->link.wire, &kind, t->link.body, &size, err);
    if (s != BELL_OK) return s;
    switch (kind) {
    case BELL_MESSAGE_BEAT:
        return BELL_OK;
    case BELL_MESSAGE_TIMES:
        return take_times(t, size, err);
    case BELL_MESSAGE_RAN:
        *has_ran = true;
        s = bell_end_get(t->link.body, size, &t->peer_end, err);
        if (s == BELL_OK && t->peer_end.status != BELL_OK) bell_verbs_team_stop(t);
        return s;
    default:
        return bell_fail(err, BELL_CORRUPT, "peer on %s: it sent %s while it should be running", t->link.wire.peer,
                         bell_message_name(kind));
    }
}

static enum bell_status tell_ran(struct bell_verbs_team *t, struct bell_error *err)
{
    enum bell_status s = BELL_OK;
    bell_verbs_team_tell_end(t);
    if (t->end.status == BELL_OK && t->link.rank == 0) s = send_times(t, err);
    if (s != BELL_OK) return s;
    return bell_wire_send(&t->link.wire, BELL_MESSAGE_RAN, t->link.body, bell_end_put(&t->end, t->link.body), err);
}

/* Until both sides have told how their run ended.  A peer that is silent for the bound is given up. */
enum bell_status bell_verbs_converse(struct bell_verbs_team *t, struct bell_error *err)
{
    uint64_t heard_ms = bell_wire_now_ms(), told_ms = heard_ms;
    bool has_told = false, has_ran = false;
    enum bell_status s = BELL_OK;
    while (s == BELL_OK && !(has_told && has_ran)) {
        uint64_t now_ms = bell_wire_now_ms();
        if (!has_told && __atomic_load_n(&t->busy, __ATOMIC_ACQUIRE) == 0) {
            s = tell_ran(t, err);
            has_told = true;
        } else if (has_ran) {
            (void)poll(NULL, 0, SLICE);
        } else if (bell_wire_has_news(&t->link.wire, SLICE)) {
            s = take_message(t, &has_ran, err);
            heard_ms = now_ms;
        } else if (now_ms - heard_ms > t->bound_ms) {
            s = bell_fail(err, BELL_TIMEOUT, "peer on %s: no sign of life for %" PRIu64 " ms", t->link.wire.peer,
                          t->bound_ms);
        }
        if (s == BELL_OK && now_ms - told_ms > BEAT_EVERY) {
            s = bell_wire_send(&t->link.wire, BELL_MESSAGE_BEAT, NULL, 0, err);
            told_ms = now_ms;
        }
    }
    if (s != BELL_OK) bell_verbs_team_stop(t);
    return s;
}

enum bell_status bell_verbs_swap_verdicts(struct bell_verbs_team *t, const struct bell_error *own,
                                          struct bell_error *err)
{
    struct bell_error peer;
    size_t size;
    enum bell_status s =
        bell_wire_send(&t->link.wire, BELL_MESSAGE_VERIFIED, t->link.body, bell_end_put(own, t->link.body), err);
    if (s == BELL_OK) s = bell_wire_expect(&t->link.wire, BELL_MESSAGE_VERIFIED, t->link.body, &size, err);
    if (s == BELL_OK) s = bell_end_get(t->link.body, size, &peer, err);
    if (s != BELL_OK || peer.status == BELL_OK) return s;
    return bell_fail(err, peer.status, "rank %u, the peer on %s: %.400s", 1 - t->link.rank, t->link.wire.peer,
                     peer.text);
}
