/* SPDX-License-Identifier: Apache-2.0
 * The software NIC on a CPU thread, for a queue that somebody else's code fills: plain addresses in, counts out.  Needs
 * no port, so that a translation unit with any port can include it. */
#ifndef BELL_TESTS_DEVICE_NIC_THREAD_H
#define BELL_TESTS_DEVICE_NIC_THREAD_H

#include "core/cqe.h"
#include "core/stack.h"
#include "core/wqe.h"

BELL_EXTERN_C_BEGIN

/* Memory that a key opens.  The key is in host order. */
struct bell_device_span {
    uint8_t *address;
    uint64_t size_bytes;
    uint32_t key;
};

/* One send queue with a ring CQ, in memory of the caller that the CPU reads and writes. */
struct bell_device_queue {
    uint8_t *wqe;         /* depth * 64 B, 64 B aligned */
    struct bell_cqe *cqe; /* depth entries */
    uint32_t *dbrec;      /* send word of the doorbell record */
    uint64_t *doorbell;   /* what stands for the UAR register */
    uint64_t *mailbox;    /* NULL, or a word whose producer index the CPU forwards: record first, then doorbell */
    uint32_t depth;       /* power of two, 2 to 32768 */
    uint32_t qpn;
    enum bell_nic_start start;
    struct bell_device_span source, target;
};

/* What the NIC saw from start to stop. */
struct bell_device_log {
    enum bell_status status;  /* BELL_OK, or BELL_INVALID: rung for more than the depth; it served nothing after that */
    uint64_t rings;           /* producer indices taken */
    uint64_t early_rings;     /* START_DOORBELL: of these, indices that the record had not reached a moment later */
    uint64_t wqes;            /* fetched */
    uint64_t cqes;            /* written */
    uint64_t inlined;         /* WQEs that carried their payload */
    uint64_t payload_bytes;   /* placed, all together */
    uint64_t bad_wqes;        /* WQEs with a syndrome */
    uint64_t first_bad_index; /* free-running, of the first of them */
    uint8_t first_syndrome;
};

/* The content of a new queue: CQ entries unused, indices 0.  Slots are filled with a pattern that is no WQE. */
void bell_device_queue_reset(const struct bell_device_queue *queue);

struct bell_device_nic;

/* Serve *queue, which is copied, from a thread of its own until bell_device_nic_stop.  NULL: no memory or no thread. */
struct bell_device_nic *bell_device_nic_start(const struct bell_device_queue *queue);

/* Serve what has been rung by now, end the thread, free it and fill in *log.  Nobody else may be posting. */
void bell_device_nic_stop(struct bell_device_nic *nic, struct bell_device_log *log);

/* Word w of the payload of a put: no two words of a run are alike. */
BELL_PURE uint64_t bell_device_word(uint64_t put, uint32_t w)
{
    uint64_t v = (put << 8 | w) + 1;
    v *= 0x9e3779b97f4a7c15u; /* odd, so that it is a bijection; 2^64 over the golden ratio */
    return v ^ v >> 29;
}

BELL_EXTERN_C_END

#endif
