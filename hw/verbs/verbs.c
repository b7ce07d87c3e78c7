/* SPDX-License-Identifier: Apache-2.0
 * Executor "verbs": CPU threads post through libibverbs to any RDMA device.
 *
 * With submit proxy a lane stands in for a GPU lane and fills the proxy ring; workers post chains of up to `batch` work
 * requests.  With submit gpu the lane posts itself: a host-submitted put, which says what a CPU needs for it, and
 * nothing about a GPU.  WQE layout, ordering, doorbell record and BlueFlame are the provider's. */
#include "hw/verbs/team.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BOUND_PS 20000000000000u /* of a wait, when the run names none: past all retries of RC, and slow machines */

/* What libibverbs gives nobody a say in must not look as if it had been measured. */
static enum bell_status check(const struct bell_program *p, const struct bell_stack *s, bool is_pair,
                              struct bell_error *err)
{
    const char *why = NULL;
    if (is_pair && p->pattern == BELL_PATTERN_PROBE)
        why = "pattern: a probe between two processes is not there; expected one-op, round-trip or stream";
    else if (p->fault != BELL_FAULT_NONE && p->fault != BELL_FAULT_BAD_KEY)
        why = "fault: a real device cannot be told to misbehave; expected none or bad-key";
    else if (p->first_index)
        why = "first_index: the provider's queues start at 0";
    else if (s->transport != BELL_TRANSPORT_RC)
        why = "transport: verbs has no portable DC; expected rc";
    else if (s->cq != BELL_CQ_RING)
        why = "cq: libibverbs has no collapsed CQ; expected ring";
    else if (s->nic_start != BELL_NIC_START_DOORBELL)
        why = "nic_start: what the device starts from is its own; expected doorbell";
    else if (s->doorbell != BELL_WRITER_GPU)
        why = "doorbell: ibv_post_send rings by itself; expected gpu";
    else if (s->submit == BELL_SUBMIT_GPU && s->sharing != BELL_SHARING_OWNER && s->sharing != BELL_SHARING_LOCKED)
        why = "sharing: ibv_post_send reserves, builds and rings in one call, which lanes cannot share; expected owner "
              "or locked";
    return why ? bell_fail(err, BELL_UNSUPPORTED, "%s", why) : BELL_OK;
}

/* Did every put land that the peers of the ranks that are here have sent to them?  core's bell_world_verify looks at
 * both ranks' memory, and only one may be here. */
static enum bell_status verify(const struct bell_verbs_team *t, struct bell_error *err)
{
    const struct bell_world *w = &t->crew.world;
    if (t->link.wire.fd < 0) return bell_world_verify(w, err);
    uint32_t rank = 1 - t->link.rank, bytes = w->program->bytes;
    uint64_t puts = bell_program_ops(w->program) * w->program->puts;
    for (uint32_t lane = 0; bell_world_is_active(w, rank) && lane < w->lanes; lane++) {
        const struct bell_box *box = &w->rank[rank].client[lane].away;
        for (uint64_t back = 0; back < box->slots && back < puts; back++) {
            uint64_t put = puts - 1 - back, tag;
            const uint8_t *payload = bell_box_payload(box, put, bytes);
            memcpy(&tag, payload + bytes - 8, sizeof tag);
            if (tag != put + 1 || !bell_payload_matches(payload, bytes, tag))
                return bell_fail(err, BELL_CORRUPT, "put %" PRIu64 " of lane %u on rank %u is not what arrived here",
                                 put, lane, rank);
        }
    }
    return BELL_OK;
}

static enum bell_status settle(const struct bell_verbs_team *t, struct bell_error *err)
{
    enum bell_status s = BELL_OK;
    uint32_t queues = t->crew.world.queues;
    for (uint32_t i = 0; s == BELL_OK && i < BELL_RANKS * queues; i++)
        if (t->link.is_here[i / queues]) s = bell_verbs_settle(t->link.queue + i, i / queues, err);
    return s;
}

/* The verdict on a run that went well; with a peer, its verdict too. */
static enum bell_status judge(struct bell_verbs_team *t, struct bell_error *err)
{
    struct bell_error peer = { BELL_OK, "" };
    enum bell_status s = settle(t, err);
    if (s == BELL_OK) s = verify(t, err);
    if (t->link.wire.fd < 0) return s;
    struct bell_error own = { BELL_OK, "" };
    if (s != BELL_OK) own = *err;
    enum bell_status theirs = bell_verbs_swap_verdicts(t, &own, &peer);
    if (s != BELL_OK || theirs == BELL_OK) return s;
    *err = peer;
    return theirs;
}

static void fill_result(const struct bell_verbs_team *t, struct bell_result *result)
{
    const struct bell_verbs_device *d = &t->link.device;
    uint64_t chains = 0;
    for (uint32_t i = 0; i < BELL_RANKS * t->crew.world.queues; i++)
        chains += t->link.queue[i].chains;
    bell_world_rate(&t->crew.world, &result->puts, &result->puts_ps);
    result->span_ps = t->ended_ps - t->crew.began_ps;
    (void)snprintf(result->path, sizeof result->path, "%s", t->crew.world.workers ? "proxy" : "host-doorbell");
    (void)snprintf(result->notes, sizeof result->notes,
                   "RDMA device %s, driver %s%s; %" PRIu64 " chains posted%s, one CQE each; ordering, doorbell record "
                   "and BlueFlame are the provider's%s",
                   d->name, d->driver[0] ? d->driver : "unknown",
                   d->is_software ? ", is SOFTWARE in the kernel: these times are not a NIC's, do not quote them" : "",
                   chains, t->link.wire.fd >= 0 ? " here" : "",
                   t->link.wire.fd >= 0 && t->link.rank == 1 ? "; the times are those that rank 0 measured" : "");
}

static enum bell_status run_team(struct bell_verbs_team *t, const struct bell_run *run, struct bell_result *result,
                                 struct bell_error *err)
{
    uint64_t sent = 0;
    struct bell_error untold;
    enum bell_status s = bell_verbs_team_run(t, err);
    if (bell_is_failure(t->end.status) && s == BELL_OK) {
        *err = t->end;
        s = t->end.status;
    }
    if (s == BELL_OK) s = judge(t, err);
    if (run->sink) {
        /* The trace of a failed run shows how far it came; what failed first is what is told. */
        enum bell_status merged = bell_soft_merge(&t->crew, run->sink, &sent, s == BELL_OK ? err : &untold);
        s = s == BELL_OK ? merged : s;
    }
    fill_result(t, result);
    result->events = sent;
    return s;
}

static enum bell_status run_verbs(const struct bell_run *run, struct bell_result *result, struct bell_error *err)
{
    struct bell_verbs_team t;
    struct bell_machine machine;
    memset(&t, 0, sizeof t);
    bell_machine_read(run->machine, &machine);
    enum bell_status s = check(run->program, run->stack, machine.peer[0] != '\0', err);
    if (s == BELL_OK) s = bell_soft_crew_open(&t.crew, run, result, err);
    if (s != BELL_OK) return s;
    if (!run->bound_ps) t.crew.soft.bound_ps = BOUND_PS;
    t.machine = &machine;
    t.result = result;
    t.bound_ms = t.crew.soft.bound_ps / 1000000000u + 1;
    s = bell_verbs_link_open(&t.link, &t.crew.world, &machine, t.bound_ms, err);
    if (s == BELL_OK) {
        if (pthread_mutex_init(&t.lock, NULL) != 0) {
            s = bell_fail(err, BELL_NO_MEMORY, "out of memory: a lock");
        } else if (pthread_cond_init(&t.opened, NULL) != 0) {
            s = bell_fail(err, BELL_NO_MEMORY, "out of memory: a condition");
            (void)pthread_mutex_destroy(&t.lock);
        } else {
            s = run_team(&t, run, result, err);
            (void)pthread_cond_destroy(&t.opened);
            (void)pthread_mutex_destroy(&t.lock);
        }
        bell_verbs_link_close(&t.link);
    }
    free(t.thread);
    free(t.member);
    free(t.cpu);
    bell_soft_crew_close(&t.crew);
    return s;
}

const struct bell_executor bell_verbs_executor = {
    "verbs", "CPU threads post through libibverbs to any RDMA device", "monotonic", bell_verbs_probe, run_verbs,
};
