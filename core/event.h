/* SPDX-License-Identifier: Apache-2.0
 * What happened, as one fixed-size record, and where records go.  Every executor writes the same records. */
#ifndef BELL_CORE_EVENT_H
#define BELL_CORE_EVENT_H

#include "core/status.h"

BELL_EXTERN_C_BEGIN

/* name, text in the trace, true when only a simulator can see it (dropped by a normalised diff) */
#define BELL_EVENT_MAP(X)                                                                                              \
    X(RESERVE, "reserve", false)           /* slots index .. index+count-1 of the SQ were claimed */                   \
    X(BUILD, "build", false)               /* the WQE starting at index was written; bytes = payload */                \
    X(PUBLISH, "publish", false)           /* every slot before index is ready */                                      \
    X(FENCE, "fence", false)               /* stores before it are ordered before what follows, at scope */            \
    X(DBREC, "dbrec", false)               /* doorbell record := index (producer) */                                   \
    X(DOORBELL, "doorbell", false)         /* doorbell register := index (producer) */                                 \
    X(MAILBOX, "mailbox", false)           /* producer index := index, for the host to ring with */                    \
    X(ENQUEUE, "enqueue", false)           /* proxy ring entry index was written; bytes = payload */                   \
    X(DEQUEUE, "dequeue", false)           /* a worker took proxy ring entry index */                                  \
    X(PROGRESS, "progress", false)         /* a worker published that ring entries before index are done */            \
    X(DOORBELL_FLIGHT, "doorbell_flight", true) /* posted write on its way to the NIC */                               \
    X(NIC_SCHEDULE, "nic_schedule", true)  /* doorbell seen to WQE fetch issued */                                     \
    X(NIC_FETCH, "nic_fetch", true)        /* WQE read by the NIC */                                                   \
    X(PAYLOAD_READ, "payload_read", true)  /* pointer payload read by the NIC */                                       \
    X(WIRE, "wire", true)                  /* NIC, link, remote NIC */                                                 \
    X(DELIVER, "deliver", false)           /* payload is in the peer's memory; bytes = payload */                      \
    X(ACK, "ack", true)                    /* remote acknowledgement travelled back */                                 \
    X(CQE, "cqe", false)                   /* NIC wrote a CQE for the WQE that starts at index; count = syndrome */    \
    X(POLL, "poll", false)                 /* a lane saw every slot before index completed */                          \
    X(FLAG, "flag", false)                 /* a lane saw a flag or counter reach index */                              \
    X(FLIGHT, "flight", true)              /* any other posted write on its way (proxy entry, counter) */              \
    X(STALL, "stall", true)                /* a worker core lost time (clock or scheduling) */                         \
    X(OP, "op", false)                     /* a whole operation of the program, from start to end; index = iteration */

enum bell_event_kind {
#define BELL_EVENT_ENUM(name, text, sim_only) BELL_EVENT_##name,
    BELL_EVENT_MAP(BELL_EVENT_ENUM)
#undef BELL_EVENT_ENUM
        BELL_EVENT_KINDS
};

/* Memory scope of a fence or release, as PTX names them. */
enum bell_scope { BELL_SCOPE_NONE, BELL_SCOPE_GPU, BELL_SCOPE_GPU_SC, BELL_SCOPE_SYS, BELL_SCOPE_SYS_SC, BELL_SCOPES };

/* Who acted, and so whose clock the duration depends on. */
enum bell_actor { BELL_ACTOR_GPU, BELL_ACTOR_CPU, BELL_ACTOR_NIC, BELL_ACTOR_PCIE, BELL_ACTOR_WIRE, BELL_ACTORS };

/* 64 bytes.  seq starts at 1 and follows the order of emission; cause is the seq of the event of another actor that
 * this one waited for, 0 when it only followed the event before it on its own lane. */
struct bell_event {
    uint64_t seq;
    uint64_t cause;
    uint64_t start_ps;
    uint64_t duration_ps;
    uint64_t index;
    uint32_t count;
    uint32_t bytes;
    uint16_t rank;
    uint16_t lane;  /* of the rank; lanes, then workers, then NIC queues */
    uint16_t queue; /* SQ, or proxy ring for ENQUEUE, DEQUEUE, PROGRESS */
    uint8_t kind;   /* enum bell_event_kind */
    uint8_t scope;  /* enum bell_scope */
    uint8_t actor;  /* enum bell_actor */
    uint8_t pad[7];
};
BELL_STATIC_ASSERT(sizeof(struct bell_event) == 64, "one cache line an event");

/* Text in the trace; NULL past the last kind. */
const char *bell_event_name(uint32_t kind);
const char *bell_scope_name(uint32_t scope);
const char *bell_actor_name(uint32_t actor);
bool bell_event_is_sim_only(uint32_t kind);

/* Where events go.  write is called from one thread at a time, in the order of seq; a failure ends the run. */
struct bell_sink {
    void *context;
    enum bell_status (*write)(void *context, const struct bell_event *event, struct bell_error *err);
};

BELL_EXTERN_C_END

#endif
