/* SPDX-License-Identifier: Apache-2.0
 * What a lane of the program does: put, quiet, await, over whichever path its stack takes.
 *
 * Put number p (from 0) carries tag p + 1 in its last 8 bytes and, before them, bytes that follow from the tag, so that
 * every byte that lands can be verified.  It goes to slot p % slots of the lane's part of the peer's memory.  With
 * separate signalling the tag is also put into the lane's flag, after the payload. */
#ifndef BELL_CORE_CLIENT_H
#define BELL_CORE_CLIENT_H

#include "core/program.h"
#include "core/proxy.h"

/* The lane's part of a rank's memory: slots of stride bytes, payload at the end of each, then one flag. */
struct bell_box {
    uint8_t *slot;
    uint64_t *flag;
    uint32_t slots; /* power of two */
    uint32_t stride;
};

struct bell_client {
    const struct bell_stack *stack;
    const struct bell_program *program;
    struct bell_sq *sq;     /* submit gpu */
    struct bell_ring *ring; /* submit proxy */
    struct bell_region source, target; /* own memory that puts leave from; the peer's that they go to */
    struct bell_box outbox; /* in source */
    struct bell_box away;   /* in target */
    struct bell_box inbox;  /* own memory that the partner writes to */
    uint64_t *issue_ps, *total_ps;    /* iterations of each, or NULL */
    uint64_t *is_over;      /* PROBE: becomes 1 when lane 0 is done; NULL in other patterns */
    enum bell_memory target_memory; /* where puts arrive */
    bool is_answered;       /* its partner posts back */
    bool is_background;     /* it posts until *is_over */
    bool is_flagged;        /* an operation ends with a put into the flag */
    uint64_t began_ps, ended_ps; /* start of the first counted operation, end of the last */
    uint64_t puts;          /* posted so far */
    uint64_t end;           /* of what was posted last: SQ index or ring index */
    struct bell_completion completion; /* of a put that failed */
};

BELL_PURE uint8_t *bell_box_payload(const struct bell_box *box, uint64_t put, uint32_t bytes)
{
    return box->slot + (size_t)(put & (box->slots - 1)) * box->stride + (box->stride - bytes);
}

/* Bytes at .. at+7 of a payload, `at` a multiple of 8; the last eight are the tag. */
BELL_PURE uint64_t bell_payload_word(uint64_t tag, uint32_t at)
{
    uint8_t byte[8];
    uint64_t word;
    for (uint32_t k = 0; k < 8; k++)
        byte[k] = (uint8_t)(tag * 31 + at + k);
    memcpy(&word, byte, sizeof word);
    return word;
}

/* Boxes end at a word, and payloads are whole words. */
BELL_PURE void bell_payload_fill(uint8_t *payload, uint32_t bytes, uint64_t tag)
{
    uint64_t *word = (uint64_t *)__builtin_assume_aligned(payload, 8);
    for (uint32_t i = 0; i + 8 < bytes; i += 8)
        word[i / 8] = bell_payload_word(tag, i);
    word[bytes / 8 - 1] = tag;
}

/* Everything but the tag, which a waiting lane has already seen. */
BELL_PURE bool bell_payload_matches(const uint8_t *payload, uint32_t bytes, uint64_t tag)
{
    const uint64_t *word = (const uint64_t *)__builtin_assume_aligned(payload, 8);
    for (uint32_t i = 0; i + 8 < bytes; i += 8)
        if (word[i / 8] != bell_payload_word(tag, i))
            return false;
    return true;
}

/* What the requests of one post are made from. */
struct bell_client_post {
    struct bell_client *client;
    uint64_t put;     /* number of the first */
    uint64_t *tag;    /* of the request made last, whose whole payload it may be; NULL: read payloads from memory */
    bool is_flag;     /* the flag of that put, not its payload */
};

/* One write: the payload of put number post->put + i, or the flag. */
BELL_STEP struct bell_wqe_request *bell_client_request(void *context, uint32_t i, struct bell_wqe_request *r)
{
    const struct bell_client_post *post = (const struct bell_client_post *)context;
    const struct bell_client *c = post->client;
    uint32_t bytes = c->program->bytes;
    const uint8_t *from = bell_box_payload(&c->outbox, post->put + i, bytes);
    const uint8_t *to = bell_box_payload(&c->away, post->put + i, bytes);
    memset(r, 0, sizeof *r);
    r->opcode = BELL_WQE_WRITE;
    r->raddr = (uint64_t)(uintptr_t)(post->is_flag ? (const uint8_t *)c->away.flag : to);
    r->rkey = c->target.key;
    r->laddr = (uint64_t)(uintptr_t)(post->is_flag ? from + bytes - 8 : from);
    r->lkey = c->source.key;
    r->bytes = post->is_flag ? 8 : bytes;
    if (post->tag)
        *post->tag = post->put + i + 1;
    if (c->stack->payload == BELL_PAYLOAD_INLINE)
        r->inline_data = post->is_flag ? from + bytes - 8 : from;
    if (r->inline_data && r->bytes == 8 && post->tag)
        r->inline_data = post->tag;
    return r;
}

#ifdef BELL_CLIENT_OWN_QUEUES
/* A translation unit whose queues are not those of core/sq.h (a library keeps them) defines both itself. */
BELL_STEP enum bell_status bell_client_post(struct bell_lane *lane, struct bell_client *c, uint64_t put, bool is_flag,
                                            uint32_t count);
BELL_STEP enum bell_status bell_client_quiet_posted(struct bell_lane *lane, struct bell_client *c);
#else
/* `count` of them behind one doorbell. */
BELL_STEP enum bell_status bell_client_post(struct bell_lane *lane, struct bell_client *c, uint64_t put, bool is_flag,
                                            uint32_t count)
{
    uint64_t tag;
    struct bell_client_post post = { c, put, &tag, is_flag };
    if (c->stack->sharing == BELL_SHARING_COOPERATIVE) {
        struct bell_wqe_request scratch;
        return bell_sq_put_group(lane, c->sq, c->stack, bell_client_request(&post, 0, &scratch), &c->end,
                                 &c->completion);
    }
    if (c->stack->sharing == BELL_SHARING_LOCKED)
        return bell_sq_put_locked(lane, c->sq, c->stack, bell_client_request, &post, count, true, &c->end,
                                  &c->completion);
    return bell_sq_put_each(lane, c->sq, c->stack, bell_client_request, &post, count, true, &c->end, &c->completion);
}

BELL_STEP enum bell_status bell_client_quiet_posted(struct bell_lane *lane, struct bell_client *c)
{
    return bell_sq_quiet(lane, c->sq, (enum bell_sharing)c->stack->sharing, c->end, &c->completion);
}
#endif

/* The same through the proxy ring; a payload of 8 bytes travels in the descriptor. */
BELL_STEP enum bell_status bell_client_enqueue(struct bell_lane *lane, struct bell_client *c, const uint8_t *from,
                                               const uint8_t *to, uint32_t bytes)
{
    struct bell_put put;
    put.is_inline = bytes == 8 && c->stack->payload == BELL_PAYLOAD_INLINE;
    put.value = 0;
    if (put.is_inline)
        memcpy(&put.value, from, sizeof put.value);
    put.from = (uint64_t)(uintptr_t)from - c->source.address;
    put.to = (uint64_t)(uintptr_t)to - c->target.address;
    put.bytes = bytes;
    uint64_t index = 0;
    enum bell_status s = bell_ring_enqueue(lane, c->ring, c->stack, &put, &index);
    c->end = index + 1;
    return s;
}

BELL_STEP enum bell_status bell_client_put_proxy(struct bell_lane *lane, struct bell_client *c)
{
    uint32_t bytes = c->program->bytes;
    const uint8_t *from = bell_box_payload(&c->outbox, c->puts, bytes);
    enum bell_status s = bell_client_enqueue(lane, c, from, bell_box_payload(&c->away, c->puts, bytes), bytes);
    if (s == BELL_OK && c->is_flagged)
        s = bell_client_enqueue(lane, c, from + bytes - 8, (const uint8_t *)c->away.flag, 8);
    c->puts++;
    return s;
}

/* The puts of one operation. */
BELL_STEP enum bell_status bell_client_put(struct bell_lane *lane, struct bell_client *c)
{
    uint32_t left = c->program->puts;
    enum bell_status s = BELL_OK;
    if (c->stack->submit == BELL_SUBMIT_PROXY) {
        for (; s == BELL_OK && left; left--)
            s = bell_client_put_proxy(lane, c);
        return s;
    }
    uint32_t most = c->stack->sharing == BELL_SHARING_COOPERATIVE ? 1 : c->stack->wqes_per_doorbell; /* of a lane */
    while (s == BELL_OK && left) {
        uint32_t n = left < most ? left : most;
        s = bell_client_post(lane, c, c->puts, false, n);
        c->puts += n;
        left -= n;
    }
    return s == BELL_OK && c->is_flagged ? bell_client_post(lane, c, c->puts - 1, true, 1) : s;
}

/* Until everything the lane posted has completed. */
BELL_STEP enum bell_status bell_client_quiet(struct bell_lane *lane, struct bell_client *c)
{
    if (c->stack->submit == BELL_SUBMIT_PROXY)
        return bell_ring_quiet(lane, c->ring, c->end);
    return bell_client_quiet_posted(lane, c);
}

/* Wait for the partner's put number `put`, the last of its operation. */
BELL_STEP enum bell_status bell_client_await(struct bell_lane *lane, struct bell_client *c, uint64_t put)
{
    uint32_t bytes = c->program->bytes;
    uint8_t *end = bell_box_payload(&c->inbox, put, bytes) + bytes - 8;
    uint64_t *word = c->stack->signal == BELL_SIGNAL_SEPARATE ? c->inbox.flag : (uint64_t *)(void *)end;
    struct bell_word_wait w = { word, put + 1, c->target_memory };
    enum bell_status s = bell_port_wait(lane, word, bell_word_reached, &w, "the partner's put");
    if (s != BELL_OK)
        return s;
    bell_note(lane, BELL_EVENT_FLAG, 0, put + 1, 0, 0, BELL_SCOPE_NONE);
    return BELL_OK;
}

/* Are the payloads of the operation that ends with that put what was sent?  The partner sends into other slots until it
 * is answered twice, so there is time to look after the clock has stopped. */
BELL_STEP enum bell_status bell_client_check(const struct bell_client *c, uint64_t put)
{
    uint32_t bytes = c->program->bytes;
    for (uint64_t p = put + 1 - c->program->puts; p <= put; p++)
        if (!bell_payload_matches(bell_box_payload(&c->inbox, p, bytes), bytes, p + 1))
            return BELL_CORRUPT;
    return BELL_OK;
}

BELL_STEP void bell_client_fill(struct bell_client *c)
{
    for (uint32_t i = 0; i < c->program->puts; i++)
        bell_payload_fill(bell_box_payload(&c->outbox, c->puts + i, c->program->bytes), c->program->bytes,
                          c->puts + i + 1);
}

/* Does it post operation after operation without waiting for each? */
BELL_STEP bool bell_client_streams(const struct bell_client *c)
{
    return c->is_background || c->program->pattern == BELL_PATTERN_STREAM;
}

BELL_STEP void bell_client_sample(struct bell_client *c, uint64_t op, uint64_t begin_ps, uint64_t issued_ps,
                                  uint64_t end_ps)
{
    uint64_t warmup = c->program->warmup;
    c->ended_ps = end_ps;
    if (op == (c->is_background ? 0 : warmup))
        c->began_ps = begin_ps;
    if (op < warmup || !c->issue_ps)
        return;
    c->issue_ps[op - warmup] = issued_ps - begin_ps;
    c->total_ps[op - warmup] = end_ps - begin_ps;
}

/* One operation.  Rank 0 puts, and waits for the completion, the answer, or (when it streams) nothing; rank 1 waits for
 * the question, and answers. */
BELL_STEP enum bell_status bell_client_op(struct bell_lane *lane, struct bell_client *c, uint64_t op)
{
    bool asks = lane->id.rank == 0;
    enum bell_status s = BELL_OK;
    bell_client_fill(c);
    uint64_t begin_ps = bell_port_now(lane);
    lane->id.step_start_ps = lane->id.op_start_ps = begin_ps;
    if (!asks)
        s = bell_client_await(lane, c, c->puts + c->program->puts - 1);
    if (s == BELL_OK)
        s = bell_client_put(lane, c);
    uint64_t issued_ps = bell_port_now(lane);
    if (s == BELL_OK && asks && !bell_client_streams(c))
        s = c->is_answered ? bell_client_await(lane, c, c->puts - 1) : bell_client_quiet(lane, c);
    uint64_t end_ps = bell_port_now(lane);
    if (s != BELL_OK)
        return s;
    if (asks) {
        bell_note(lane, BELL_EVENT_OP, 0, op, 1, c->program->bytes * c->program->puts, BELL_SCOPE_NONE);
        bell_client_sample(c, op, begin_ps, issued_ps, end_ps);
    }
    if (!c->is_answered)
        return BELL_OK;
    s = bell_client_check(c, c->puts - 1);
    return s == BELL_OK ? bell_client_quiet(lane, c) : s;
}

BELL_STEP bool bell_client_is_done(struct bell_lane *lane, const struct bell_client *c, uint64_t op)
{
    /* Acquire, not because anything follows: a plain load would do for a word of the lane's own only. */
    return c->is_background ? bell_port_load_acquire(lane, BELL_MEMORY_GPU, c->is_over) != 0
                            : op == bell_program_ops(c->program);
}

/* All operations of a lane.  Rank 0 asks; rank 1 answers, or has nothing to do. */
BELL_STEP enum bell_status bell_client_run(struct bell_lane *lane, struct bell_client *c)
{
    enum bell_status s = BELL_OK;
    if (lane->id.rank == 1 && !c->is_answered)
        return BELL_OK;
    for (uint64_t op = 0; s == BELL_OK && !bell_client_is_done(lane, c, op); op++)
        s = bell_client_op(lane, c, op);
    if (s == BELL_OK && bell_client_streams(c)) {
        s = bell_client_quiet(lane, c);
        c->ended_ps = bell_port_now(lane);
    }
    if (c->is_over && lane->id.rank == 0 && !c->is_background)
        bell_port_store_release(lane, BELL_MEMORY_GPU, c->is_over, 1);
    return s;
}

#endif
