/* SPDX-License-Identifier: Apache-2.0
 * The choices a communication library makes, as data: what the study compares.  An ordering is a composition of
 * fences and release stores at five named places, never a cost of its own. */
#ifndef BELL_CORE_STACK_H
#define BELL_CORE_STACK_H

#include "core/event.h"
#include "core/field.h"

BELL_EXTERN_C_BEGIN

enum bell_submit { BELL_SUBMIT_GPU, BELL_SUBMIT_PROXY };
enum bell_memory { BELL_MEMORY_GPU, BELL_MEMORY_HOST, BELL_MEMORY_BY_PROTOCOL };
enum bell_payload { BELL_PAYLOAD_INLINE, BELL_PAYLOAD_POINTER };
enum bell_transport { BELL_TRANSPORT_RC, BELL_TRANSPORT_DC };
enum bell_cq_kind { BELL_CQ_RING, BELL_CQ_COLLAPSED };
enum bell_flow { BELL_FLOW_POLL, BELL_FLOW_NONE }; /* NONE: the caller promises the depth; exceeding it is an error */
enum bell_protocol { BELL_PROTOCOL_BASELINE, BELL_PROTOCOL_TUNED };
enum bell_signal { BELL_SIGNAL_FUSED, BELL_SIGNAL_SEPARATE, BELL_SIGNAL_BY_PROTOCOL };
enum bell_writer { BELL_WRITER_GPU, BELL_WRITER_HOST };
/* What the NIC takes the producer index from (core/nic.h).  The last two are for queues that another library posts to:
 * a stack here always writes record and doorbell. */
enum bell_nic_start {
    BELL_NIC_START_DOORBELL,
    BELL_NIC_START_DBREC,
    BELL_NIC_START_DBRLESS,
    BELL_NIC_START_MAILBOX
};

/* Who may use a queue at once.  OWNER: one lane.  ORDERED: lanes reserve alone and post in reservation order.
 * COOPERATIVE: a group reserves, builds and posts together.  LOCKED: one lock around each post. */
enum bell_sharing { BELL_SHARING_OWNER, BELL_SHARING_ORDERED, BELL_SHARING_COOPERATIVE, BELL_SHARING_LOCKED };

enum bell_ordering {
    BELL_ORDERING_NONE, /* unsafe: nothing keeps the WQE ahead of the doorbell */
    BELL_ORDERING_GPU_FENCE,
    BELL_ORDERING_GPU_FENCE_DBREC,
    BELL_ORDERING_GPU_RELEASE,
    BELL_ORDERING_THREADFENCE,
    BELL_ORDERING_SYS_RELEASE,
    BELL_ORDERING_SYS_FENCE,
    BELL_ORDERINGS
};

/* Where an ordering acts on the way from WQE stores to the doorbell; BELL_SCOPE_NONE means nothing there. */
struct bell_ordering_steps {
    enum bell_scope publish;          /* fence: WQE stores before the slot is ready for whoever rings */
    enum bell_scope nic;              /* fence: everything before the doorbell record */
    enum bell_scope dbrec_release;    /* the doorbell record is a release store */
    enum bell_scope dbrec_fence;      /* fence: doorbell record before the doorbell */
    enum bell_scope doorbell_release; /* the doorbell is a release store */
};

BELL_PURE struct bell_ordering_steps bell_ordering_steps(enum bell_ordering ordering)
{
    struct bell_ordering_steps s = { BELL_SCOPE_NONE, BELL_SCOPE_NONE, BELL_SCOPE_NONE, BELL_SCOPE_NONE,
                                     BELL_SCOPE_NONE };
    switch (ordering) {
    case BELL_ORDERING_NONE:
    case BELL_ORDERINGS:
        break;
    case BELL_ORDERING_GPU_FENCE_DBREC:
        s.dbrec_fence = BELL_SCOPE_GPU;
        s.publish = s.nic = BELL_SCOPE_GPU;
        break;
    case BELL_ORDERING_GPU_FENCE:
        s.publish = s.nic = BELL_SCOPE_GPU;
        break;
    case BELL_ORDERING_GPU_RELEASE:
        s.dbrec_release = s.doorbell_release = BELL_SCOPE_GPU;
        break;
    case BELL_ORDERING_THREADFENCE: /* __threadfence() is membar.gl, that is fence.sc.gpu */
        s.publish = s.nic = s.dbrec_fence = BELL_SCOPE_GPU_SC;
        break;
    case BELL_ORDERING_SYS_RELEASE:
        s.dbrec_release = s.doorbell_release = BELL_SCOPE_SYS;
        break;
    case BELL_ORDERING_SYS_FENCE: /* __threadfence_system() is membar.sys, that is fence.sc.sys */
        s.publish = BELL_SCOPE_GPU_SC; /* who rings is on the same GPU */
        s.nic = s.dbrec_fence = BELL_SCOPE_SYS_SC;
        break;
    }
    return s;
}

/* Enums are held as int32_t so that struct bell_field can describe them. */
struct bell_stack {
    char name[24];
    int32_t submit;          /* enum bell_submit */
    int32_t ordering;        /* enum bell_ordering */
    int32_t payload;         /* enum bell_payload */
    int32_t sharing;         /* enum bell_sharing */
    int32_t transport;       /* enum bell_transport */
    int32_t queue_memory;    /* enum bell_memory: SQ, CQ, doorbell record */
    int32_t cq;              /* enum bell_cq_kind */
    int32_t flow;            /* enum bell_flow */
    int32_t nic_start;       /* enum bell_nic_start */
    uint32_t depth;          /* of an SQ, in 64 B basic blocks; a power of two */
    uint32_t wqes_per_doorbell;
    int32_t doorbell;        /* enum bell_writer: who rings; HOST: a CPU worker, told by a mailbox */
    int32_t protocol;        /* enum bell_protocol: how the proxy ring is filled */
    int32_t completion_memory; /* enum bell_memory: where the proxy's completion counter lives */
    int32_t signal;          /* enum bell_signal: a notified put is one descriptor or two */
    bool blueflame;          /* a lone WQE is copied into the BlueFlame register instead of being fetched */
    uint32_t ring_depth;     /* of a proxy ring, in 16 B entries; a power of two */
    uint32_t workers;        /* CPU threads of a rank that serve its rings or ring for it; 0: one a queue */
    uint32_t batch;          /* requests a worker chains behind one doorbell */
};

extern const struct bell_field bell_stack_fields[];

/* Does a CPU take part in a put? */
BELL_PURE bool bell_stack_has_workers(const struct bell_stack *s)
{
    return s->submit == BELL_SUBMIT_PROXY || s->doorbell == BELL_WRITER_HOST;
}

/* How many a rank with that many queues has. */
BELL_PURE uint32_t bell_stack_workers(const struct bell_stack *s, uint32_t queues)
{
    return !bell_stack_has_workers(s) ? 0 : s->workers ? s->workers : queues;
}

/* Choices left to the protocol become what that protocol does: the baseline counts completions in host memory and
 * notifies with a second descriptor, the tuned one counts in GPU memory and notifies with the payload.  Call it before
 * bell_stack_validate. */
void bell_stack_resolve(struct bell_stack *stack);

/* BELL_INVALID with a message when two choices contradict each other. */
enum bell_status bell_stack_validate(const struct bell_stack *stack, struct bell_error *err) BELL_MUST_USE;

BELL_EXTERN_C_END

#endif
