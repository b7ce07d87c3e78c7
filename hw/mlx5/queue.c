/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/mlx5/queue.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Places in the block of doorbell records: CQ's first, QP's on a line of its own.  A record is two words, of which a
 * QP's second is the send counter (MLX5_SND_DBR in mlx5dv.h). */
#define RECORD_OF_CQ 0u
#define RECORD_OF_QP 64u
#define SEND_WORD 4u
#define RECORD_BYTES 128u

#define CQES_AT_ONCE 64u /* written when a CQ is filled */

/* What the QP promises and tolerates.  Time-outs and retries: NVSHMEM's IBGDA transport, ibgda.cpp. */
#define ACK_TIMEOUT 20u
#define RETRY_COUNT 7u
#define RNR_RETRY 7u /* without end */
#define MIN_RNR_NAK 12u
#define LOG_MSG_MAX 30u
#define LOG_READS_MAX 4u

static uint32_t log2_of(uint64_t v)
{
    uint32_t n = 0;
    while (1ull << n < v)
        n++;
    return n;
}

static int register_block(const struct bell_mlx5_device *d, struct bell_mlx5_known *k)
{
    struct bell_mlx5_extent extent = { k->block.address, k->block.bytes, -1 };
    int fd = -1;
    if (k->memory->dmabuf && k->memory->dmabuf(k->memory->context, &k->block, &fd) == 0) {
        extent.dmabuf_fd = fd;
        int refused = d->calls->umem_register(d->handle, &extent, &k->umem, &k->id);
        (void)close(fd);
        k->way = BELL_MLX5_BY_DMABUF;
        if (!refused)
            return 0;
    }
    extent.dmabuf_fd = -1;
    k->way = BELL_MLX5_BY_ADDRESS;
    k->umem = NULL;
    return d->calls->umem_register(d->handle, &extent, &k->umem, &k->id);
}

/* On failure what is there already is left to bell_mlx5_queue_close. */
static enum bell_status make_known(const struct bell_mlx5_device *d, struct bell_mlx5_known *k,
                                   const struct bell_mlx5_memory *memory, size_t bytes, const char *what,
                                   struct bell_error *err)
{
    size_t whole = (bytes + memory->page_bytes - 1) / memory->page_bytes * memory->page_bytes;
    const char *kind = memory->kind == BELL_MEMORY_GPU ? "GPU" : "host";
    int failure = memory->alloc(memory->context, whole, &k->block);
    if (failure)
        return bell_fail(err, BELL_NO_MEMORY, "%s: %zu bytes of %s memory for %s: %s", d->name, whole, kind, what,
                         strerror(failure));
    k->memory = memory;
    failure = register_block(d, k);
    if (failure)
        return bell_fail(err, BELL_IO, "%s: %s memory for %s could not be registered (umem)%s: %s", d->name, kind, what,
                         memory->kind == BELL_MEMORY_GPU ? ", neither as a dma-buf nor through nvidia-peermem" : "",
                         strerror(failure));
    return BELL_OK;
}

static void forget(const struct bell_mlx5_device *d, struct bell_mlx5_known *k)
{
    if (k->umem)
        (void)d->calls->umem_release(k->umem);
    if (k->memory)
        k->memory->free(k->memory->context, &k->block);
    memset(k, 0, sizeof *k);
}

/* BlueFlame first when it is wanted; for 8 B doorbells a register of our own, then the shared one, then any. */
static enum bell_status take_uar(struct bell_mlx5_queue *q, struct bell_error *err)
{
    static const enum bell_mlx5_uar_kind plain[] = { BELL_MLX5_UAR_NC_DEDICATED, BELL_MLX5_UAR_NC, BELL_MLX5_UAR_BF },
                                         blueflame[] = { BELL_MLX5_UAR_BF, BELL_MLX5_UAR_NC_DEDICATED,
                                                         BELL_MLX5_UAR_NC };
    const enum bell_mlx5_uar_kind *kind = q->want.may_blueflame ? blueflame : plain;
    int failure = 0;
    for (uint32_t i = 0; i < BELL_MLX5_UAR_KINDS; i++) {
        failure = q->device->calls->uar_alloc(q->device->handle, kind[i], &q->uar);
        q->uar_kind = kind[i];
        if (!failure)
            return BELL_OK;
        memset(&q->uar, 0, sizeof q->uar);
    }
    return bell_mlx5_call_failed(q->device, "no UAR, of any kind", failure, err);
}

/* Give the poster the register; when it is refused, the host has to ring. */
static void map_doorbell(struct bell_mlx5_queue *q)
{
    const struct bell_mlx5_memory *m = q->want.memory;
    bool is_blueflame = q->uar_kind == BELL_MLX5_UAR_BF && q->device->blueflame_bytes;
    uint64_t address = (uint64_t)(uintptr_t)q->uar.reg;
    /* Of a BlueFlame register both halves; of another the 8 B that are stored to. */
    size_t bytes = is_blueflame ? 2 * (size_t)q->device->blueflame_bytes : 8;
    if (m->map_register && !q->want.must_host_ring)
        q->is_mapped = m->map_register(m->context, q->uar.reg, bytes, &address) == 0;
    bool is_host = q->want.must_host_ring || (m->map_register && !q->is_mapped);
    q->binding.ringer = is_host ? BELL_RINGER_HOST : BELL_RINGER_POSTER;
    q->binding.doorbell = address;
    q->binding.blueflame_bytes = is_blueflame && !is_host ? q->device->blueflame_bytes : 0;
}

static enum bell_status fill_cq(struct bell_mlx5_queue *q, uint32_t entries, struct bell_error *err)
{
    struct bell_cqe empty[CQES_AT_ONCE];
    for (uint32_t i = 0; i < CQES_AT_ONCE; i++) {
        bell_cqe_fill_ring(&empty[i]);
        if (q->want.is_collapsed)
            bell_cqe_fill_collapsed(&empty[i]);
    }
    for (uint32_t i = 0; i < entries; i += CQES_AT_ONCE) {
        size_t count = entries - i < CQES_AT_ONCE ? entries - i : CQES_AT_ONCE;
        int failure = q->cq.memory->write(q->cq.memory->context, &q->cq.block, (size_t)i * sizeof *empty, empty,
                                          count * sizeof *empty);
        if (failure)
            return bell_mlx5_call_failed(q->device, "the CQ could not be filled", failure, err);
    }
    return BELL_OK;
}

static enum bell_status create_cq(struct bell_mlx5_queue *q, uint32_t entries, struct bell_error *err)
{
    const struct bell_mlx5_device *d = q->device;
    uint8_t in[BELL_PRM_CREATE_CQ_IN] = { 0 }, out[BELL_PRM_OUT] = { 0 };
    (void)bell_prm_set(in, BELL_PRM_OPCODE, BELL_PRM_CREATE_CQ);
    (void)bell_prm_set(in, BELL_PRM_CQ_UMEM_VALID, 1);
    (void)bell_prm_set(in, BELL_PRM_CQ_UMEM_ID, q->cq.id);
    (void)bell_prm_set(in, BELL_PRM_CQ_CQE_SZ, BELL_PRM_CQE_64_BYTES);
    (void)bell_prm_set(in, BELL_PRM_CQ_CC, q->want.is_collapsed);
    (void)bell_prm_set(in, BELL_PRM_CQ_OI, 1);
    (void)bell_prm_set(in, BELL_PRM_CQ_LOG_SIZE, log2_of(entries));
    (void)bell_prm_set(in, BELL_PRM_CQ_LOG_PAGE_SIZE,
                       log2_of(q->cq.memory->page_bytes) - BELL_PRM_ADAPTER_PAGE_SHIFT);
    (void)bell_prm_set(in, BELL_PRM_CQ_UAR_PAGE, q->uar.page);
    (void)bell_prm_set(in, BELL_PRM_CQ_EQN, d->eqn);
    (void)bell_prm_set(in, BELL_PRM_CQ_DBR_UMEM_VALID, 1);
    (void)bell_prm_set(in, BELL_PRM_CQ_DBR_UMEM_ID, q->record.id);
    (void)bell_prm_set(in, BELL_PRM_CQ_DBR_ADDR, RECORD_OF_CQ);
    int failure = d->calls->create(d->handle, in, sizeof in, out, sizeof out, &q->cq_object);
    if (failure)
        return bell_mlx5_command_failed(d, in, out, failure, err);
    q->cqn = (uint32_t)bell_prm_get(out, BELL_PRM_OUT_NUMBER);
    return BELL_OK;
}

static enum bell_status create_qp(struct bell_mlx5_queue *q, struct bell_error *err)
{
    const struct bell_mlx5_device *d = q->device;
    uint8_t in[BELL_PRM_QP_IN] = { 0 }, out[BELL_PRM_OUT] = { 0 };
    (void)bell_prm_set(in, BELL_PRM_OPCODE, BELL_PRM_CREATE_QP);
    (void)bell_prm_set(in, BELL_PRM_QP_WQ_UMEM_VALID, 1);
    (void)bell_prm_set(in, BELL_PRM_QP_WQ_UMEM_ID, q->wq.id);
    (void)bell_prm_set(in, BELL_PRM_QP_ST, q->want.is_dc ? BELL_PRM_ST_DCI : BELL_PRM_ST_RC);
    (void)bell_prm_set(in, BELL_PRM_QP_PM_STATE, BELL_PRM_PM_MIGRATED);
    (void)bell_prm_set(in, BELL_PRM_QP_PD, d->pd_number);
    (void)bell_prm_set(in, BELL_PRM_QP_UAR_PAGE, q->uar.page);
    (void)bell_prm_set(in, BELL_PRM_QP_RQ_TYPE, BELL_PRM_RQ_NONE);
    (void)bell_prm_set(in, BELL_PRM_QP_CQN_SND, q->cqn);
    (void)bell_prm_set(in, BELL_PRM_QP_CQN_RCV, q->cqn);
    (void)bell_prm_set(in, BELL_PRM_QP_LOG_SQ_SIZE, log2_of(q->want.depth));
    (void)bell_prm_set(in, BELL_PRM_QP_LOG_PAGE_SIZE,
                       log2_of(q->wq.memory->page_bytes) - BELL_PRM_ADAPTER_PAGE_SHIFT);
    (void)bell_prm_set(in, BELL_PRM_QP_CS_REQ, 0);
    (void)bell_prm_set(in, BELL_PRM_QP_CS_RES, 0);
    (void)bell_prm_set(in, BELL_PRM_QP_DBR_UMEM_VALID, 1);
    (void)bell_prm_set(in, BELL_PRM_QP_DBR_UMEM_ID, q->record.id);
    (void)bell_prm_set(in, BELL_PRM_QP_DBR_ADDR, RECORD_OF_QP);
    int failure = d->calls->create(d->handle, in, sizeof in, out, sizeof out, &q->qp_object);
    if (failure)
        return bell_mlx5_command_failed(d, in, out, failure, err);
    q->binding.qpn = (uint32_t)bell_prm_get(out, BELL_PRM_OUT_NUMBER);
    return BELL_OK;
}

static enum bell_status modify(struct bell_mlx5_queue *q, uint8_t *in, enum bell_prm_opcode opcode,
                               struct bell_error *err)
{
    uint8_t out[BELL_PRM_OUT] = { 0 };
    (void)bell_prm_set(in, BELL_PRM_OPCODE, opcode);
    (void)bell_prm_set(in, BELL_PRM_QP_NUMBER, q->binding.qpn);
    int failure = q->device->calls->modify(q->qp_object, in, BELL_PRM_QP_IN, out, sizeof out);
    return failure ? bell_mlx5_command_failed(q->device, in, out, failure, err) : BELL_OK;
}

static enum bell_status to_init(struct bell_mlx5_queue *q, struct bell_error *err)
{
    uint8_t in[BELL_PRM_QP_IN] = { 0 };
    (void)bell_prm_set(in, BELL_PRM_QP_PM_STATE, BELL_PRM_PM_MIGRATED);
    (void)bell_prm_set(in, BELL_PRM_QP_PORT, q->device->port.number);
    (void)bell_prm_set(in, BELL_PRM_QP_PKEY_INDEX, 0);
    if (!q->want.is_dc) { /* what the peer may do here; a DCI answers nobody */
        (void)bell_prm_set(in, BELL_PRM_QP_RRE, 1);
        (void)bell_prm_set(in, BELL_PRM_QP_RWE, 1);
        (void)bell_prm_set(in, BELL_PRM_QP_RAE, 1);
        (void)bell_prm_set(in, BELL_PRM_QP_ATOMIC_MODE, BELL_PRM_ATOMIC_IB);
    }
    return modify(q, in, BELL_PRM_RST2INIT_QP, err);
}

/* The path of an RC QP, from the address vector that a WQE would carry.  The GRH flag is InfiniBand's; on Ethernet the
 * place of the LID holds the UDP source port. */
static void set_path(uint8_t *in, const struct bell_mlx5_port *own, const struct bell_av *av)
{
    uint64_t mac = 0;
    for (uint32_t i = 0; i < sizeof av->rmac; i++)
        mac = mac << 8 | av->rmac[i];
    (void)bell_prm_set(in, BELL_PRM_QP_SL, av->stat_rate_sl & 0xf);
    (void)bell_prm_set(in, BELL_PRM_QP_STAT_RATE, av->stat_rate_sl >> 4);
    (void)bell_prm_set(in, BELL_PRM_QP_SRC_ADDR_INDEX, av->grh_gid_fl >> 20 & 0xff);
    (void)bell_prm_set(in, BELL_PRM_QP_FLOW_LABEL, av->grh_gid_fl & 0xfffff);
    (void)bell_prm_set(in, BELL_PRM_QP_TCLASS, av->tclass);
    (void)bell_prm_set(in, BELL_PRM_QP_HOP_LIMIT, av->hop_limit);
    (void)bell_prm_set(in, BELL_PRM_QP_RGID_HIGH, bell_load_be64(av->rgid));
    (void)bell_prm_set(in, BELL_PRM_QP_RGID_LOW, bell_load_be64(av->rgid + 8));
    if (own->is_ethernet) {
        (void)bell_prm_set(in, BELL_PRM_QP_UDP_SPORT, av->rlid);
        (void)bell_prm_set(in, BELL_PRM_QP_RMAC_HIGH, mac >> 32);
        (void)bell_prm_set(in, BELL_PRM_QP_RMAC_LOW, mac & 0xffffffff);
    } else {
        (void)bell_prm_set(in, BELL_PRM_QP_RLID, av->rlid);
        (void)bell_prm_set(in, BELL_PRM_QP_MLID, av->fl_mlid & 0x7f);
        (void)bell_prm_set(in, BELL_PRM_QP_GRH, av->grh_gid_fl >> 30 & 1);
    }
}

static enum bell_status to_rtr(struct bell_mlx5_queue *q, const struct bell_av *av, uint32_t peer_number, uint8_t mtu,
                               struct bell_error *err)
{
    uint8_t in[BELL_PRM_QP_IN] = { 0 };
    (void)bell_prm_set(in, BELL_PRM_QP_MTU, mtu);
    (void)bell_prm_set(in, BELL_PRM_QP_LOG_MSG_MAX, LOG_MSG_MAX);
    (void)bell_prm_set(in, BELL_PRM_QP_PORT, q->device->port.number);
    if (!q->want.is_dc) {
        (void)bell_prm_set(in, BELL_PRM_QP_REMOTE_QPN, peer_number);
        (void)bell_prm_set(in, BELL_PRM_QP_LOG_RRA_MAX, LOG_READS_MAX);
        (void)bell_prm_set(in, BELL_PRM_QP_MIN_RNR_NAK, MIN_RNR_NAK);
        (void)bell_prm_set(in, BELL_PRM_QP_NEXT_RCV_PSN, 0);
        set_path(in, &q->device->port, av);
    }
    return modify(q, in, BELL_PRM_INIT2RTR_QP, err);
}

static enum bell_status to_rts(struct bell_mlx5_queue *q, struct bell_error *err)
{
    uint8_t in[BELL_PRM_QP_IN] = { 0 };
    (void)bell_prm_set(in, BELL_PRM_QP_ACK_TIMEOUT, ACK_TIMEOUT);
    (void)bell_prm_set(in, BELL_PRM_QP_RETRY_COUNT, RETRY_COUNT);
    (void)bell_prm_set(in, BELL_PRM_QP_RNR_RETRY, RNR_RETRY);
    (void)bell_prm_set(in, BELL_PRM_QP_LOG_SRA_MAX, LOG_READS_MAX);
    (void)bell_prm_set(in, BELL_PRM_QP_NEXT_SEND_PSN, 0);
    return modify(q, in, BELL_PRM_RTR2RTS_QP, err);
}

static enum bell_status check_want(const struct bell_mlx5_device *d, const struct bell_mlx5_want *want,
                                   uint32_t entries, struct bell_error *err)
{
    if (want->is_dc && !d->has_dc)
        return bell_fail(err, BELL_UNSUPPORTED, "%s has no dynamically connected transport; expected transport=rc",
                         d->name);
    /* 4 bits of log_sq_size reach 32768, which is also what 16-bit counters can tell apart. */
    if (log2_of(want->depth) > d->log_max_sq || want->depth > BELL_CQE_DEPTH_MAX || log2_of(entries) > d->log_max_cq)
        return bell_fail(err, BELL_UNSUPPORTED, "%s: depth %u is more than it has: an SQ of 2^%u blocks, a CQ of 2^%u",
                         d->name, want->depth, d->log_max_sq, d->log_max_cq);
    return BELL_OK;
}

static enum bell_status make(struct bell_mlx5_queue *q, uint32_t entries, struct bell_error *err)
{
    const struct bell_mlx5_device *d = q->device;
    const struct bell_mlx5_want *want = &q->want;
    enum bell_status s = take_uar(q, err);
    if (s != BELL_OK)
        return s;
    map_doorbell(q);
    const struct bell_mlx5_memory *records = q->binding.ringer == BELL_RINGER_HOST ? want->host : want->memory;
    s = make_known(d, &q->wq, want->memory, (size_t)want->depth * BELL_WQE_BLOCK_BYTES, "an SQ", err);
    if (s == BELL_OK)
        s = make_known(d, &q->cq, want->memory, (size_t)entries * BELL_CQE_BYTES, "a CQ", err);
    if (s == BELL_OK)
        s = make_known(d, &q->record, records, RECORD_BYTES, "doorbell records", err);
    if (s == BELL_OK)
        s = fill_cq(q, entries, err);
    if (s == BELL_OK)
        s = create_cq(q, entries, err);
    if (s == BELL_OK)
        s = create_qp(q, err);
    if (s == BELL_OK)
        s = to_init(q, err);
    return s;
}

enum bell_status bell_mlx5_queue_open(struct bell_mlx5_queue *queue, const struct bell_mlx5_device *device,
                                      const struct bell_mlx5_want *want, struct bell_error *err)
{
    /* A ring of one entry would be taken for a collapsed CQ. */
    uint32_t entries = want->depth < 2 && !want->is_collapsed ? 2 : want->depth;
    memset(queue, 0, sizeof *queue);
    queue->device = device;
    queue->want = *want;
    enum bell_status s = check_want(device, want, entries, err);
    if (s == BELL_OK)
        s = make(queue, entries, err);
    if (s != BELL_OK) {
        bell_mlx5_queue_close(queue);
        return s;
    }
    struct bell_binding *b = &queue->binding;
    b->wqe = queue->wq.block.address;
    b->cqe = queue->cq.block.address;
    b->dbrec = queue->record.block.address + RECORD_OF_QP + SEND_WORD;
    b->depth = want->depth;
    b->cq_depth = want->is_collapsed ? 1 : entries;
    b->memory = want->memory->kind;
    b->dbrec_memory = queue->record.memory->kind;
    b->is_dc = want->is_dc;
    return BELL_OK;
}

enum bell_status bell_mlx5_queue_connect(struct bell_mlx5_queue *queue, const struct bell_mlx5_port *peer,
                                         uint32_t peer_number, uint64_t dc_key, struct bell_error *err)
{
    const struct bell_mlx5_device *d = queue->device;
    uint8_t bytes[BELL_MLX5_AV_BYTES] = { 0 };
    int failure = d->calls->address(d->pd, &d->port, peer, bytes);
    if (failure)
        return bell_mlx5_call_failed(d, "no path to the peer's port", failure, err);
    bytes[8] |= 0x80; /* all 48 bytes count (core/wqe.h) */
    struct bell_av av;
    memset(&av, 0, sizeof av);
    bell_wqe_get_av(bytes, &av);
    av.dc_key = dc_key;
    av.dqp_dct = peer_number;
    if (queue->want.is_dc)
        queue->binding.av = av;
    enum bell_status s = to_rtr(queue, &av, peer_number, peer->mtu < d->port.mtu ? peer->mtu : d->port.mtu, err);
    return s == BELL_OK ? to_rts(queue, err) : s;
}

void bell_mlx5_queue_close(struct bell_mlx5_queue *queue)
{
    const struct bell_mlx5_device *d = queue->device;
    if (!d)
        return;
    if (queue->qp_object)
        (void)d->calls->destroy(queue->qp_object);
    if (queue->cq_object)
        (void)d->calls->destroy(queue->cq_object);
    forget(d, &queue->record);
    forget(d, &queue->cq);
    forget(d, &queue->wq);
    if (queue->is_mapped)
        queue->want.memory->unmap_register(queue->want.memory->context, queue->uar.reg);
    if (queue->uar.handle)
        d->calls->uar_free(&queue->uar);
    memset(queue, 0, sizeof *queue);
}
