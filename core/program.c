/* SPDX-License-Identifier: Apache-2.0 */
#include "core/program.h"

#include "core/wqe.h"

static const char *const pattern_names[] = { "one-op", "round-trip", "stream", "probe", NULL };
static const char *const fault_names[] = { "none", "silent", "bad-key", "lost-doorbell", "late-cqe", "error-cqe",
                                           NULL };

#define BYTES_MAX (1 << 20)
#define COUNT(key, member, low, high, first, unit, help)                                                               \
    { key, BELL_FIELD_U32, offsetof(struct bell_program, member), unit, low, high, first, false, NULL, help }
#define WIDE(key, member, high, help)                                                                                  \
    { key, BELL_FIELD_U64, offsetof(struct bell_program, member), "", 0, high, 0, false, NULL, help }

const struct bell_field bell_program_fields[] = {
    { "pattern", BELL_FIELD_ENUM, offsetof(struct bell_program, pattern), "", 0, 0, 0, true, pattern_names,
      "Post and wait for the completion; or for the partner's answer; or post all and wait once; or lane 0 asks beside "
      "others that post." },
    { "fault", BELL_FIELD_ENUM, offsetof(struct bell_program, fault), "", 0, 0, 0, false, fault_names,
      "A NIC that never answers, a remote key that opens nothing, a doorbell that gets lost, a CQE that is late, or an "
      "operation that fails." },
    COUNT("bytes", bytes, 8, BYTES_MAX, 8, "bytes", "Payload of a put; a multiple of 8."),
    COUNT("puts", puts, 1, 65536, 1, "", "Puts of an operation, before it waits."),
    COUNT("lanes", lanes, 1, 4096, 1, "", "Lanes of a rank: GPU threads that post."),
    COUNT("queues", queues, 1, 4096, 1, "", "Send queues (or proxy rings) of a rank; lanes share them evenly."),
    COUNT("iterations", iterations, 1, 10000000, 100, "", "Operations of a lane that are counted."),
    COUNT("warmup", warmup, 0, 1000000, 0, "", "Operations before them that are not."),
    WIDE("fault_index", fault_index, 4294967296.0, "Block of queue 0 of rank 0 at which the last three faults strike."),
    { "fault_delay_us", BELL_FIELD_U64, offsetof(struct bell_program, fault_delay_us), "us", 0, 1e9, 1000, false, NULL,
      "How late a CQE is; until the NIC finds the record of a lost doorbell, 0: never." },
    WIDE("seed", seed, 9007199254740991.0, "Of everything random."),
    WIDE("first_index", first_index, 4294967296.0, "Index at which a new send queue starts."),
    { NULL, BELL_FIELD_BOOL, 0, "", 0, 0, 0, false, NULL, NULL },
};

static enum bell_status validate_sharing(const struct bell_program *p, const struct bell_stack *s,
                                         struct bell_error *err)
{
    bool is_reserved = p->pattern == BELL_PATTERN_PROBE && p->queues > 1; /* the first queue is lane 0's */
    uint32_t lanes = p->lanes - is_reserved, queues = p->queues - is_reserved, share = queues ? lanes / queues : 0;
    if (queues > lanes || (queues && lanes % queues))
        return bell_fail(err, BELL_INVALID, "queues: %u lanes cannot share %u queues evenly", lanes, queues);
    if (p->pattern == BELL_PATTERN_PROBE && bell_stack_has_workers(s))
        return bell_fail(err, BELL_INVALID, "pattern: probe is for lanes that post and ring themselves");
    if (s->workers && p->queues % s->workers)
        return bell_fail(err, BELL_INVALID, "workers: %u cannot share %u queues evenly", s->workers, p->queues);
    if (p->pattern == BELL_PATTERN_PROBE && s->sharing == BELL_SHARING_COOPERATIVE)
        return bell_fail(err, BELL_INVALID, "sharing: a probe's lanes do different things, expected ordered or locked");
    if (share > 1 && s->submit == BELL_SUBMIT_PROXY)
        return bell_fail(err, BELL_INVALID, "queues: a proxy ring has one producer, expected %u", p->lanes);
    if (share > 1 && s->sharing == BELL_SHARING_OWNER)
        return bell_fail(err, BELL_INVALID, "sharing: %u lanes a queue, expected ordered, cooperative or locked",
                         share);
    if (s->sharing == BELL_SHARING_COOPERATIVE && share % bell_program_group(p, s))
        return bell_fail(err, BELL_INVALID, "wqes_per_doorbell: the %u lanes of a queue are no groups of %u that ring "
                                            "once each", share, s->wqes_per_doorbell);
    return BELL_OK;
}

enum bell_status bell_program_validate(const struct bell_program *p, const struct bell_stack *s, struct bell_error *err)
{
    if (p->bytes % 8)
        return bell_fail(err, BELL_INVALID, "bytes: %u is not a multiple of 8", p->bytes);
    if (p->fault == BELL_FAULT_LOST_DOORBELL && s->nic_start != BELL_NIC_START_DOORBELL)
        return bell_fail(err, BELL_INVALID, "fault: a NIC that starts from the doorbell record misses no doorbell, "
                                            "expected nic_start doorbell");
    bool is_inline = s->submit == BELL_SUBMIT_GPU && s->payload == BELL_PAYLOAD_INLINE;
    struct bell_wqe_request r = { .opcode = BELL_WQE_WRITE, .bytes = p->bytes, .inline_data = is_inline ? p : NULL,
                                  .is_dc = s->transport == BELL_TRANSPORT_DC, .av = { .full = true } };
    if (bell_wqe_check(&r) != BELL_OK)
        return bell_fail(err, BELL_INVALID, "bytes: %u do not fit inline in a WQE, expected payload pointer", p->bytes);
    uint32_t wqes = s->sharing == BELL_SHARING_COOPERATIVE ? bell_program_group(p, s) : s->wqes_per_doorbell;
    uint32_t blocks = bell_wqe_blocks(bell_wqe_ds(&r)) * wqes;
    if (s->submit == BELL_SUBMIT_GPU && blocks > s->depth)
        return bell_fail(err, BELL_INVALID, "depth: %u blocks do not hold the %u that one doorbell covers", s->depth,
                         blocks);
    return validate_sharing(p, s, err);
}
