/* SPDX-License-Identifier: Apache-2.0
 * Queue pairs: made, connected, posted to, polled.  The values of ibv_modify_qp that nobody chooses here are those of
 * rdma-core's libibverbs/examples/rc_pingpong.c: retries 7, time-out 14 (4.096 us << 14), RNR timer 12. */
#include "hw/verbs/device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RETRIES 7
#define ACK_TIMEOUT 14
#define RNR_TIMER 12
#define HOPS 64

static void build(void *queue, uint32_t at, const struct bell_wqe_request *r, uint64_t index, bool is_last)
{
    struct bell_verbs_qp *q = queue;
    struct ibv_send_wr *wr = q->wr + at;
    struct ibv_sge *sge = q->sge + at;
    sge->addr = r->inline_data ? (uint64_t)(uintptr_t)r->inline_data : r->laddr;
    sge->length = r->bytes;
    sge->lkey = r->lkey;
    wr->wr_id = index;
    wr->next = is_last ? NULL : wr + 1;
    wr->sg_list = sge;
    wr->num_sge = 1;
    wr->opcode = IBV_WR_RDMA_WRITE;
    wr->send_flags = (is_last ? IBV_SEND_SIGNALED : 0u) | (r->inline_data ? IBV_SEND_INLINE : 0u);
    wr->wr.rdma.remote_addr = r->raddr + q->remote_offset;
    wr->wr.rdma.rkey = r->rkey;
}

static int post(void *queue, uint32_t count, uint32_t *bad)
{
    struct bell_verbs_qp *q = queue;
    struct ibv_send_wr *refused = NULL;
    (void)count; /* the chain ends where build said so */
    int code = ibv_post_send(q->qp, q->wr, &refused);
    *bad = code && refused ? (uint32_t)(refused - q->wr) : 0;
    return code < 0 ? -code : code;
}

static int poll(void *queue, struct bell_verbs_done *out)
{
    struct bell_verbs_qp *q = queue;
    struct ibv_wc wc;
    int n = ibv_poll_cq(q->cq, 1, &wc);
    if (n != 1) return n;
    out->index = wc.wr_id;
    out->status = wc.status;
    out->vendor = wc.vendor_err;
    out->text = ibv_wc_status_str(wc.status);
    return 1;
}

const struct bell_verbs_backend bell_verbs_qp_backend = { build, post, poll };

/* ---- life of a queue pair ---- */

static struct ibv_qp *create(struct bell_verbs_qp *q, struct bell_verbs_device *d, uint32_t depth,
                             uint32_t inline_bytes, uint32_t *inline_given)
{
    struct ibv_qp_init_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.send_cq = attr.recv_cq = q->cq;
    attr.qp_type = IBV_QPT_RC;
    attr.cap.max_send_wr = depth;
    attr.cap.max_recv_wr = 1;
    attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
    attr.cap.max_inline_data = inline_bytes;
    struct ibv_qp *qp = ibv_create_qp(d->pd, &attr);
    *inline_given = attr.cap.max_inline_data;
    return qp;
}

static enum bell_status no_inline(const struct bell_verbs_device *d, uint32_t bytes, struct bell_error *err)
{
    return bell_fail(err, BELL_UNSUPPORTED, "payload: %s does not take %u bytes inline, expected pointer", d->name,
                     bytes);
}

static enum bell_status create_qp(struct bell_verbs_qp *q, struct bell_verbs_device *d,
                                  const struct bell_verbs_shape *shape, struct bell_error *err)
{
    uint32_t given = 0;
    q->qp = create(q, d, shape->depth, shape->inline_bytes, &given);
    if (q->qp && given >= shape->inline_bytes) return BELL_OK;
    if (q->qp) return no_inline(d, shape->inline_bytes, err);
    int code = errno;
    /* Is it the inline payload that the device does not like? */
    if (shape->inline_bytes && (q->qp = create(q, d, shape->depth, 0, &given)) != NULL)
        return no_inline(d, shape->inline_bytes, err);
    return bell_fail(err, BELL_IO, "%s: ibv_create_qp with %u work requests: %s", d->name, shape->depth,
                     strerror(code));
}

static enum bell_status check_limits(const struct bell_verbs_device *d, uint32_t depth, struct bell_error *err)
{
    struct ibv_device_attr attr;
    memset(&attr, 0, sizeof attr);
    int code = ibv_query_device(d->context, &attr);
    if (code) return bell_fail(err, BELL_IO, "%s: ibv_query_device: %s", d->name, strerror(code));
    uint32_t most = attr.max_qp_wr < attr.max_cqe ? (uint32_t)attr.max_qp_wr : (uint32_t)attr.max_cqe;
    if (depth <= most) return BELL_OK;
    return bell_fail(err, BELL_UNSUPPORTED,
                     "depth: %s takes %d work requests a queue and %d CQEs a CQ, expected %u of "
                     "both",
                     d->name, attr.max_qp_wr, attr.max_cqe, depth);
}

enum bell_status bell_verbs_qp_make(struct bell_verbs_qp *q, struct bell_verbs_device *d,
                                    const struct bell_verbs_shape *shape, uint32_t psn, struct bell_error *err)
{
    memset(q, 0, sizeof *q);
    q->psn = psn & 0xffffffu;
    enum bell_status s = check_limits(d, shape->depth, err);
    if (s != BELL_OK) return s;
    q->wr = calloc(shape->chain_max, sizeof *q->wr);
    q->sge = calloc(shape->chain_max, sizeof *q->sge);
    if (!q->wr || !q->sge) {
        s = bell_fail(err, BELL_NO_MEMORY, "out of memory: a chain of %u work requests", shape->chain_max);
    } else if (!(q->cq = ibv_create_cq(d->context, (int)shape->depth, NULL, NULL, 0))) {
        s = bell_fail(err, BELL_IO, "%s: ibv_create_cq with %u entries: %s", d->name, shape->depth, strerror(errno));
    } else {
        s = create_qp(q, d, shape, err);
    }
    if (s != BELL_OK) bell_verbs_qp_free(q);
    return s;
}

void bell_verbs_qp_free(struct bell_verbs_qp *q)
{
    if (q->qp) (void)ibv_destroy_qp(q->qp);
    if (q->cq) (void)ibv_destroy_cq(q->cq);
    free(q->wr);
    free(q->sge);
    memset(q, 0, sizeof *q);
}

static enum bell_status modify(const struct bell_verbs_qp *q, const struct bell_verbs_device *d,
                               struct ibv_qp_attr *attr, int mask, const char *state, struct bell_error *err)
{
    int code = ibv_modify_qp(q->qp, attr, mask);
    if (code == 0) return BELL_OK;
    return bell_fail(err, BELL_IO, "%s port %u, GID index %u: ibv_modify_qp to %s: %s", d->name, d->port, d->gid_index,
                     state, strerror(code > 0 ? code : errno));
}

static void fill_path(struct ibv_ah_attr *path, const struct bell_verbs_device *d,
                      const struct bell_verbs_address *peer)
{
    path->port_num = (uint8_t)d->port;
    path->dlid = peer->lid;
    path->is_global = d->address.has_global;
    if (!path->is_global) return;
    memcpy(path->grh.dgid.raw, peer->gid, sizeof peer->gid);
    path->grh.sgid_index = (uint8_t)d->gid_index;
    path->grh.hop_limit = HOPS;
}

enum bell_status bell_verbs_qp_connect(struct bell_verbs_qp *q, const struct bell_verbs_device *d,
                                       const struct bell_verbs_address *peer, uint32_t qpn, uint32_t psn,
                                       struct bell_error *err)
{
    struct ibv_qp_attr a;
    memset(&a, 0, sizeof a);
    a.qp_state = IBV_QPS_INIT;
    a.port_num = (uint8_t)d->port;
    a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    enum bell_status s =
        modify(q, d, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "INIT", err);
    if (s != BELL_OK) return s;
    memset(&a, 0, sizeof a);
    a.qp_state = IBV_QPS_RTR;
    a.path_mtu = (enum ibv_mtu)(peer->mtu < d->address.mtu ? peer->mtu : d->address.mtu);
    a.dest_qp_num = qpn;
    a.rq_psn = psn;
    a.max_dest_rd_atomic = 1;
    a.min_rnr_timer = RNR_TIMER;
    fill_path(&a.ah_attr, d, peer);
    s = modify(q, d, &a,
               IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
               "RTR", err);
    if (s != BELL_OK) return s;
    memset(&a, 0, sizeof a);
    a.qp_state = IBV_QPS_RTS;
    a.timeout = ACK_TIMEOUT;
    a.retry_cnt = a.rnr_retry = RETRIES;
    a.sq_psn = q->psn;
    a.max_rd_atomic = 1;
    return modify(q, d, &a,
                  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                      IBV_QP_MAX_QP_RD_ATOMIC,
                  "RTS", err);
}
