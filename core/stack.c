/* SPDX-License-Identifier: Apache-2.0 */
#include "core/stack.h"

static const char *const submit_names[] = { "gpu", "proxy", NULL };
static const char *const ordering_names[] = { "none", "gpu-fence", "gpu-fence+fenced-dbrec", "gpu-release-store",
                                              "threadfence", "system-release-store", "system-fence", NULL };
static const char *const payload_names[] = { "inline", "pointer", NULL };
static const char *const sharing_names[] = { "owner", "ordered", "cooperative", "locked", NULL };
static const char *const transport_names[] = { "rc", "dc", NULL };
static const char *const memory_names[] = { "gpu", "host", NULL };
static const char *const counter_names[] = { "gpu", "host", "by-protocol", NULL };
static const char *const cq_names[] = { "ring", "collapsed", NULL };
static const char *const flow_names[] = { "poll", "none", NULL };
static const char *const writer_names[] = { "gpu", "host", NULL };
static const char *const start_names[] = { "doorbell", "dbrec", NULL };
static const char *const protocol_names[] = { "baseline", "tuned", NULL };
static const char *const signal_names[] = { "fused", "separate", "by-protocol", NULL };

#define CHOICE(key, member, first, names, required, help)                                                              \
    { key, BELL_FIELD_ENUM, offsetof(struct bell_stack, member), "", 0, 0, first, required, names, help }
#define COUNT(key, member, low, high, first, help)                                                                     \
    { key, BELL_FIELD_U32, offsetof(struct bell_stack, member), "", low, high, first, false, NULL, help }

const struct bell_field bell_stack_fields[] = {
    CHOICE("submit", submit, 0, submit_names, true,
           "Who posts to the NIC: a GPU thread, or a CPU proxy on its behalf."),
    CHOICE("ordering", ordering, 1, ordering_names, false, "What keeps WQE and doorbell record ahead of the doorbell."),
    CHOICE("payload", payload, 0, payload_names, false, "Payload inside the WQE (up to 220 B), or read by the NIC."),
    CHOICE("sharing", sharing, 0, sharing_names, false, "How lanes share a send queue."),
    CHOICE("transport", transport, 0, transport_names, false, "RC, or DC with a full address vector in each WQE."),
    CHOICE("queue_memory", queue_memory, 0, memory_names, false, "Where SQ, CQ and doorbell record live."),
    CHOICE("cq", cq, 0, cq_names, false, "A ring of CQEs, or one entry that is overwritten."),
    CHOICE("flow", flow, 0, flow_names, false, "On a full SQ: poll for room, or treat it as the caller's error."),
    CHOICE("nic_start", nic_start, 0, start_names, false, "What the NIC takes the producer index from."),
    COUNT("depth", depth, 1, 32768, 1024, "Depth of a send queue in 64 B basic blocks, a power of two."),
    COUNT("wqes_per_doorbell", wqes_per_doorbell, 1, 256, 1,
          "WQEs that one doorbell covers; sharing cooperative: lanes of a group, 1: all of a queue."),
    CHOICE("doorbell", doorbell, 0, writer_names, false,
           "Who writes doorbell record and doorbell for a GPU that posts: itself, or a CPU worker that it tells."),
    CHOICE("protocol", protocol, 0, protocol_names, false, "How the proxy ring is filled."),
    CHOICE("completion_memory", completion_memory, 2, counter_names, false,
           "Where the proxy's completion counter lives."),
    CHOICE("signal", signal, 2, signal_names, false, "A notified put is one descriptor, or payload and flag apart."),
    { "blueflame", BELL_FIELD_BOOL, offsetof(struct bell_stack, blueflame), "", 0, 1, 0, false, NULL,
      "A lone one-block WQE is copied into the BlueFlame register instead of being fetched." },
    COUNT("ring_depth", ring_depth, 1, 65536, 512, "Depth of a proxy ring in 16 B entries, a power of two."),
    COUNT("workers", workers, 0, 256, 0, "CPU workers of a rank, which share its rings or queues; 0: one each."),
    COUNT("batch", batch, 1, 256, 1, "Requests a worker chains behind one doorbell."),
    { NULL, BELL_FIELD_BOOL, 0, "", 0, 0, 0, false, NULL, NULL },
};

void bell_stack_resolve(struct bell_stack *s)
{
    bool is_baseline = s->submit == BELL_SUBMIT_PROXY && s->protocol == BELL_PROTOCOL_BASELINE;
    if (s->completion_memory == BELL_MEMORY_BY_PROTOCOL)
        s->completion_memory = is_baseline ? BELL_MEMORY_HOST : BELL_MEMORY_GPU;
    if (s->signal == BELL_SIGNAL_BY_PROTOCOL)
        s->signal = is_baseline ? BELL_SIGNAL_SEPARATE : BELL_SIGNAL_FUSED;
}

static bool is_power_of_two(uint32_t v)
{
    return v && (v & (v - 1)) == 0;
}

enum bell_status bell_stack_validate(const struct bell_stack *s, struct bell_error *err)
{
    if (!is_power_of_two(s->depth))
        return bell_fail(err, BELL_INVALID, "depth: %u is not a power of two", s->depth);
    if (!is_power_of_two(s->ring_depth))
        return bell_fail(err, BELL_INVALID, "ring_depth: %u is not a power of two", s->ring_depth);
    uint32_t batch = s->submit == BELL_SUBMIT_PROXY ? s->batch * (s->transport == BELL_TRANSPORT_DC ? 2 : 1)
                                                    : s->wqes_per_doorbell;
    if (batch > s->depth)
        return bell_fail(err, BELL_INVALID, "%s: %u blocks behind one doorbell do not fit a queue of depth %u",
                         s->submit == BELL_SUBMIT_PROXY ? "batch" : "wqes_per_doorbell", batch, s->depth);
    if (s->submit == BELL_SUBMIT_PROXY && s->sharing != BELL_SHARING_OWNER)
        return bell_fail(err, BELL_INVALID, "sharing: a proxy worker owns its send queue, expected owner");
    if (s->submit == BELL_SUBMIT_PROXY && s->queue_memory != BELL_MEMORY_HOST)
        return bell_fail(err, BELL_INVALID, "queue_memory: a proxy worker posts from host memory, expected host");
    if (s->submit == BELL_SUBMIT_PROXY && s->doorbell == BELL_WRITER_HOST)
        return bell_fail(err, BELL_INVALID, "doorbell: a proxy worker rings for its own posts, expected gpu");
    return BELL_OK;
}
