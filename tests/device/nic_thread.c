/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/device/nic_thread.h"

#include "core/nic.h"

#include <pthread.h>
#include <stdlib.h>

#define SLOT_FILL 0xa5 /* opcode and index of no WQE */

struct bell_device_nic {
    struct bell_device_queue queue;
    struct bell_soft soft;
    struct bell_lane lane;
    struct bell_sq sq;
    struct bell_region source, target;
    struct bell_nicq nicq;
    struct bell_device_log log;
    uint64_t forwarded; /* last producer index taken from the mailbox */
    pthread_t thread;
    uint32_t stop;
};

void bell_device_queue_reset(const struct bell_device_queue *q)
{
    memset(q->wqe, SLOT_FILL, (size_t)q->depth * BELL_WQE_BLOCK_BYTES);
    for (uint32_t i = 0; i < q->depth; i++)
        bell_cqe_fill_ring(q->cqe + i);
    *q->dbrec = bell_dbrec_value(0);
    *q->doorbell = q->start == BELL_NIC_START_MAILBOX ? 0 : bell_wqe_doorbell(q->qpn, 0);
    if (q->mailbox) *q->mailbox = 0;
}

/* What a CPU does that rings for a GPU.  Each store is a release, so the record is never behind the doorbell. */
static void forward(struct bell_device_nic *nic)
{
    if (!nic->queue.mailbox) return;
    uint64_t end = bell_port_load_acquire(&nic->lane, BELL_MEMORY_HOST, nic->queue.mailbox);
    if (end == nic->forwarded) return;
    nic->forwarded = end;
    bell_port_store_dbrec(&nic->lane, BELL_MEMORY_HOST, nic->sq.dbrec, bell_dbrec_value(end), BELL_SCOPE_SYS);
    bell_port_store_doorbell(&nic->lane, nic->sq.doorbell, bell_wqe_doorbell(nic->sq.qpn, end), BELL_SCOPE_SYS, false);
}

static void count_ring(struct bell_device_nic *nic)
{
    uint16_t record = (uint16_t)bell_dbrec_index(bell_port_load_dbrec(&nic->lane, nic->sq.dbrec));
    uint16_t behind = (uint16_t)((uint16_t)nic->nicq.producer - record);
    nic->log.rings++;
    if (nic->queue.start == BELL_NIC_START_DOORBELL && behind != 0 && behind < 0x8000) nic->log.early_rings++;
}

static void count_wqe(struct bell_device_nic *nic, const struct bell_nic_work *work)
{
    struct bell_device_log *log = &nic->log;
    log->wqes++;
    if (work->view.has_inline) log->inlined++;
    if (work->syndrome && log->bad_wqes++ == 0) {
        log->first_bad_index = work->index;
        log->first_syndrome = work->syndrome;
    }
    if (!work->syndrome) log->payload_bytes += work->view.bytes;
}

static void serve(struct bell_device_nic *nic)
{
    struct bell_nic_work work;
    forward(nic);
    enum bell_status s = bell_nic_take(&nic->lane, &nic->nicq);
    if (bell_is_failure(s)) nic->log.status = s;
    if (s != BELL_OK) return;
    count_ring(nic);
    while (bell_nic_fetch(&nic->lane, &nic->nicq, &work) == BELL_OK) {
        bell_nic_execute(&nic->lane, &nic->nicq, &work);
        bell_nic_complete(&nic->lane, &nic->nicq, &work);
        count_wqe(nic, &work);
    }
}

static void *run(void *context)
{
    struct bell_device_nic *nic = context;
    uint32_t last = 0;
    do { /* one more turn after the word to stop, for what was rung just before */
        last = __atomic_load_n(&nic->stop, __ATOMIC_ACQUIRE);
        if (nic->log.status == BELL_OK) serve(nic);
    } while (!last);
    return NULL;
}

struct bell_device_nic *bell_device_nic_start(const struct bell_device_queue *queue)
{
    size_t size = (sizeof(struct bell_device_nic) + 63) / 64 * 64;
    struct bell_device_nic *nic = aligned_alloc(64, size);
    if (!nic) return NULL;
    memset(nic, 0, size);
    nic->queue = *queue;
    nic->lane.soft = &nic->soft;
    nic->lane.id.group_size = 1;
    nic->lane.id.actor = BELL_ACTOR_NIC;
    nic->sq.wqe = queue->wqe;
    nic->sq.cqe = queue->cqe;
    nic->sq.dbrec = queue->dbrec;
    nic->sq.doorbell = queue->doorbell;
    nic->sq.depth = nic->sq.cq_depth = queue->depth;
    while (1u << nic->sq.cq_shift < queue->depth)
        nic->sq.cq_shift++;
    nic->sq.qpn = queue->qpn;
    nic->sq.memory = BELL_MEMORY_HOST;
    nic->source = (struct bell_region){ (uint64_t)(uintptr_t)queue->source.address, queue->source.size_bytes,
                                        queue->source.key };
    nic->target = (struct bell_region){ (uint64_t)(uintptr_t)queue->target.address, queue->target.size_bytes,
                                        queue->target.key };
    nic->nicq.sq = &nic->sq;
    nic->nicq.local = &nic->source;
    nic->nicq.remote = &nic->target;
    nic->nicq.start = queue->start;
    if (pthread_create(&nic->thread, NULL, run, nic) == 0) return nic;
    free(nic);
    return NULL;
}

void bell_device_nic_stop(struct bell_device_nic *nic, struct bell_device_log *log)
{
    __atomic_store_n(&nic->stop, 1, __ATOMIC_RELEASE);
    (void)pthread_join(nic->thread, NULL);
    *log = nic->log;
    log->cqes = nic->nicq.cq_produced;
    free(nic);
}
