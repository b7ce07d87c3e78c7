/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/soft/pipe.h"

#include <stdlib.h>

#define ITEMS_MAX 256u /* WQEs of a queue under way */

struct bell_pipe_item {
    struct bell_nic_work work;
    uint64_t fetch_ps, deliver_ps, answer_ps, cqe_ps; /* when each stage ends */
};

enum bell_status bell_pipe_open(struct bell_pipe **pipe, const struct bell_pace *pace, uint32_t depth)
{
    struct bell_pipe *p = calloc(1, sizeof *p);
    *pipe = NULL;
    if (!p) return BELL_NO_MEMORY;
    p->capacity = depth < ITEMS_MAX ? depth : ITEMS_MAX;
    p->item = malloc(p->capacity * sizeof *p->item);
    if (!p->item) {
        free(p);
        return BELL_NO_MEMORY;
    }
    if (pace) p->pace = *pace;
    *pipe = p;
    return BELL_OK;
}

void bell_pipe_close(struct bell_pipe *pipe)
{
    if (!pipe) return;
    for (uint32_t i = 0; i < BELL_PIPE_READS; i++)
        free(pipe->held[i]);
    free(pipe->item);
    free(pipe);
}

/* ---- lateness ---- */

static uint32_t bucket_of(uint64_t ns)
{
    uint32_t octave = 3;
    if (ns < 16) return (uint32_t)ns;
    while (ns >> (octave + 1))
        octave++;
    return (octave - 2) * 8 + ((uint32_t)(ns >> (octave - 3)) & 7);
}

void bell_lateness_add(struct bell_lateness *late, uint64_t ps)
{
    late->count[bucket_of(ps / 1000)]++;
    late->total++;
}

uint64_t bell_lateness_median_ps(const struct bell_lateness *late)
{
    uint64_t sum = 0;
    for (uint32_t b = 0; b < BELL_LATE_BUCKETS; b++) {
        sum += late->count[b];
        if (2 * sum < late->total || sum == 0) continue;
        uint64_t ns = b < 16 ? b : (uint64_t)(8 + (b & 7)) << (b / 8 - 1);
        return ns * 1000;
    }
    return 0;
}

/* ---- plan ---- */

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static struct bell_pipe_item *item_of(const struct bell_pipe *pipe, uint64_t n)
{
    return pipe->item + (n & (pipe->capacity - 1));
}

static uint32_t fence_of(const struct bell_nic_work *work)
{
    return work->view.fm_ce_se & BELL_WQE_FENCE_MASK;
}

/* A WQE leaves when its payload is there, its predecessors have left and its fence lets it. */
static void plan(struct bell_pipe *pipe, struct bell_pipe_item *item)
{
    const struct bell_pace *pace = &pipe->pace;
    const struct bell_wqe_view *v = &item->work.view;
    uint64_t bytes_ps = v->bytes * pace->per_kib_ps / 1024, ready_ps = item->fetch_ps;
    bool has_answer = bell_nic_has_answer(v) && !item->work.syndrome;
    if (v->bytes && !v->has_inline && !has_answer && !item->work.syndrome) ready_ps += pace->payload_read_ps;
    if (fence_of(&item->work)) ready_ps = later(ready_ps, pipe->answer_ps);
    if (fence_of(&item->work) == BELL_WQE_FENCE_MODE_3) ready_ps = later(ready_ps, pipe->acked_ps);
    uint64_t start_ps = later(ready_ps, pipe->wire_free_ps);
    pipe->wire_free_ps = start_ps + pace->per_wqe_ps + (has_answer ? 0 : bytes_ps);
    item->deliver_ps = pipe->wire_free_ps + pace->wire_ps;
    item->answer_ps = item->deliver_ps + pace->ack_ps + (has_answer ? bytes_ps : 0);
    item->answer_ps = pipe->acked_ps = later(item->answer_ps, pipe->acked_ps);
    if (has_answer) pipe->answer_ps = item->answer_ps;
    item->cqe_ps = pipe->cqe_ps = later(item->answer_ps + pace->cqe_ps, pipe->cqe_ps);
}

/* ---- stages ---- */

static enum bell_status take(struct bell_pipe *pipe, struct bell_lane *lane, struct bell_nicq *q, uint64_t now_ps)
{
    if (pipe->rung - pipe->read == BELL_PIPE_RINGS) return BELL_EMPTY;
    enum bell_status s = bell_nic_take(lane, q);
    if (s == BELL_EMPTY && q->recover_ps) s = bell_nic_recover(lane, q, now_ps);
    if (s != BELL_OK) return s;
    uint32_t at = (uint32_t)(pipe->rung++ % BELL_PIPE_RINGS);
    pipe->ring[at].producer = q->producer;
    pipe->ring[at].at_ps = now_ps + pipe->pace.doorbell_ps + pipe->pace.fetch_ps;
    return BELL_OK;
}

static bool fetch(struct bell_pipe *pipe, struct bell_lane *lane, struct bell_nicq *q, uint64_t now_ps)
{
    uint64_t before = pipe->fetched;
    while (pipe->read != pipe->rung && pipe->fetched - pipe->completed < pipe->capacity) {
        uint32_t at = (uint32_t)(pipe->read % BELL_PIPE_RINGS);
        if (pipe->ring[at].at_ps > now_ps) break;
        if (bell_has_reached(q->fetched, pipe->ring[at].producer)) {
            pipe->read++;
            continue;
        }
        struct bell_pipe_item *item = item_of(pipe, pipe->fetched);
        if (bell_nic_fetch(lane, q, &item->work) != BELL_OK) break;
        item->fetch_ps = pipe->ring[at].at_ps;
        plan(pipe, item);
        pipe->fetched++;
    }
    return pipe->fetched != before;
}

/* Where the answer of the next read or atomic waits. */
static enum bell_status hold(struct bell_pipe *pipe, struct bell_nic_work *work)
{
    size_t bytes = work->view.bytes;
    uint32_t at = (uint32_t)(pipe->asked % BELL_PIPE_READS);
    if (pipe->held_bytes[at] < bytes) {
        uint8_t *more = realloc(pipe->held[at], bytes);
        if (!more) return BELL_NO_MEMORY;
        pipe->held[at] = more;
        pipe->held_bytes[at] = bytes;
    }
    work->held = pipe->held[at];
    return BELL_OK;
}

/* Everything before it was delivered, so what has not returned is older than the fence. */
static bool is_fenced_off(const struct bell_pipe *pipe, const struct bell_nic_work *work)
{
    uint32_t fence = fence_of(work);
    if (fence == BELL_WQE_FENCE_MODE_3 && pipe->answered != pipe->delivered) return true;
    return fence && pipe->asked != pipe->returned;
}

static enum bell_status deliver(struct bell_pipe *pipe, struct bell_lane *lane, struct bell_nicq *q, uint64_t now_ps,
                                struct bell_lateness *late)
{
    enum bell_status turn = BELL_EMPTY;
    for (; pipe->delivered != pipe->fetched; pipe->delivered++) {
        struct bell_pipe_item *item = item_of(pipe, pipe->delivered);
        struct bell_nic_work *work = &item->work;
        if (item->deliver_ps > now_ps || is_fenced_off(pipe, work)) break;
        if (bell_nic_has_answer(&work->view) && !bell_nic_judge(q, work)) {
            if (pipe->asked - pipe->returned == BELL_PIPE_READS) break;
            if (hold(pipe, work) != BELL_OK) return BELL_NO_MEMORY;
            pipe->asked++;
        }
        lane->id.step_start_ps = item->fetch_ps;
        bell_nic_execute(lane, q, work);
        if (bell_nic_wants_cqe(work)) item->cqe_ps += bell_nic_cqe_delay_ps(q, work);
        bell_lateness_add(late, now_ps - item->deliver_ps);
        turn = BELL_OK;
    }
    return turn;
}

static bool answer(struct bell_pipe *pipe, struct bell_lane *lane, uint64_t now_ps, struct bell_lateness *late)
{
    uint64_t before = pipe->answered;
    for (; pipe->answered != pipe->delivered; pipe->answered++) {
        struct bell_pipe_item *item = item_of(pipe, pipe->answered);
        if (item->answer_ps > now_ps) break;
        if (item->work.held) {
            bell_nic_return(lane, &item->work);
            lane->early_seq = 0; /* no event tells of that store */
            pipe->returned++;
        }
        bell_lateness_add(late, now_ps - item->answer_ps);
    }
    return pipe->answered != before;
}

static bool complete(struct bell_pipe *pipe, struct bell_lane *lane, struct bell_nicq *q, uint64_t now_ps,
                     struct bell_lateness *late)
{
    uint64_t before = pipe->completed;
    for (; pipe->completed != pipe->answered; pipe->completed++) {
        struct bell_pipe_item *item = item_of(pipe, pipe->completed);
        if (item->cqe_ps > now_ps) break;
        lane->id.step_start_ps = item->answer_ps;
        bell_nic_complete(lane, q, &item->work);
        bell_lateness_add(late, now_ps - item->cqe_ps);
    }
    return pipe->completed != before;
}

enum bell_status bell_pipe_turn(struct bell_pipe *pipe, struct bell_lane *lane, struct bell_nicq *q, uint64_t now_ps,
                                uint64_t *wqes, struct bell_lateness *late)
{
    enum bell_status taken = take(pipe, lane, q, now_ps);
    if (bell_is_failure(taken)) return taken;
    bool has_fetched = fetch(pipe, lane, q, now_ps);
    enum bell_status delivered = deliver(pipe, lane, q, now_ps, late);
    if (bell_is_failure(delivered)) return delivered;
    bool has_answered = answer(pipe, lane, now_ps, late);
    uint64_t before = pipe->completed;
    bool has_completed = complete(pipe, lane, q, now_ps, late);
    *wqes += pipe->completed - before;
    return taken == BELL_OK || has_fetched || delivered == BELL_OK || has_answered || has_completed ? BELL_OK
                                                                                                     : BELL_EMPTY;
}
