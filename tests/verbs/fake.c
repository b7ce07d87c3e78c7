/* SPDX-License-Identifier: Apache-2.0 */
#ifdef BELL_HAVE_IBVERBS
#include "tests/verbs/fake.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define RING 8192
#define REGIONS 64

struct fake_cq {
    struct ibv_cq cq;
    struct ibv_wc wc[RING];
    uint32_t head, tail;
    int empty;
};

struct fake_qp {
    struct ibv_qp qp;
    struct fake_cq *cq;
    bool is_broken;
};

struct fake fake;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ibv_device the_device = { .name = "fake0", .ibdev_path = "/nonexistent/fake0" };
static struct ibv_mr *region[REGIONS];
static uint32_t next_key = 0x100, next_qpn = 0x11;

void fake_reset(void)
{
    static const struct fake_gid gids[FAKE_GIDS] = {
        { { 0xfe, 0x80, [15] = 1 }, IBV_GID_TYPE_ROCE_V1 },
        { { 0xfe, 0x80, [15] = 1 }, IBV_GID_TYPE_ROCE_V2 },
        { { [10] = 0xff, 0xff, 10, 9, 0, 1 }, IBV_GID_TYPE_ROCE_V1 },
        { { [10] = 0xff, 0xff, 10, 9, 0, 1 }, IBV_GID_TYPE_ROCE_V2 },
        { { [10] = 0xff, 0xff, 10, 9, 0, 2 }, IBV_GID_TYPE_ROCE_V2 },
    };
    int live = fake.live;
    memset(&fake, 0, sizeof fake);
    fake.live = live;
    fake.devices = 1;
    fake.state = IBV_PORT_ACTIVE;
    fake.link_layer = IBV_LINK_LAYER_ETHERNET;
    fake.max_inline = 256;
    fake.max_qp_wr = fake.max_cqe = 32768;
    memcpy(fake.gid, gids, sizeof gids);
    fake.refuse_place = fake.corrupt_chain = fake.lose_chain = fake.double_chain = fake.signal_all_chain = -1;
}

static bool refuses(int code)
{
    int call = __atomic_add_fetch(&fake.calls, 1, __ATOMIC_RELAXED);
    if (call != fake.refuse_call) return false;
    errno = code;
    return true;
}

static void count(int by)
{
    (void)__atomic_add_fetch(&fake.live, by, __ATOMIC_RELAXED);
}

/* ---- devices ---- */

struct ibv_device **ibv_get_device_list(int *number)
{
    if (fake.devices < 0) {
        errno = ENOSYS;
        return NULL;
    }
    if (refuses(ENOMEM)) return NULL;
    struct ibv_device **list = calloc((size_t)fake.devices + 1, sizeof *list);
    for (int i = 0; list && i < fake.devices; i++)
        list[i] = &the_device;
    if (number) *number = fake.devices;
    count(1);
    return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
    count(-1);
    free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
static int poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc);

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    if (refuses(EACCES)) return NULL;
    struct ibv_context *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->device = device;
    c->ops.post_send = post_send;
    c->ops.poll_cq = poll_cq;
    count(1);
    return c;
}

int ibv_close_device(struct ibv_context *context)
{
    count(-1);
    free(context);
    return 0;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    (void)context;
    if (refuses(EIO)) return EIO;
    attr->vendor_id = fake.vendor_id;
    attr->max_qp_wr = fake.max_qp_wr;
    attr->max_cqe = fake.max_cqe;
    return 0;
}

#undef ibv_query_port
int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *out)
{
    struct ibv_port_attr *attr = (struct ibv_port_attr *)(void *)out;
    (void)context;
    if (refuses(EIO)) return EIO;
    if (port != 1) return EINVAL;
    attr->state = fake.state;
    attr->active_mtu = IBV_MTU_1024;
    attr->lid = 7;
    attr->gid_tbl_len = FAKE_GIDS;
    attr->link_layer = fake.link_layer;
    return 0;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry,
                      uint32_t flags, size_t size)
{
    static const uint8_t none[16] = { 0 };
    (void)context;
    (void)flags;
    (void)size;
    if (index >= FAKE_GIDS) return EINVAL;
    if (memcmp(fake.gid[index].raw, none, sizeof none) == 0) return ENODATA;
    memcpy(entry->gid.raw, fake.gid[index].raw, sizeof none);
    entry->gid_index = index;
    entry->port_num = port;
    entry->gid_type = fake.gid[index].type;
    return 0;
}

const char *ibv_port_state_str(enum ibv_port_state state)
{
    return state == IBV_PORT_DOWN ? "PORT_DOWN" : "PORT_ACTIVE";
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
    return status == IBV_WC_REM_ACCESS_ERR ? "remote access error" : "Work Request Flushed Error";
}

/* ---- memory ---- */

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    if (refuses(ENOMEM)) return NULL;
    struct ibv_pd *pd = calloc(1, sizeof *pd);
    if (!pd) return NULL;
    pd->context = context;
    count(1);
    return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
    count(-1);
    free(pd);
    return 0;
}

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *at, size_t length)
{
    if (refuses(ENOMEM)) return NULL;
    struct ibv_mr *mr = calloc(1, sizeof *mr);
    if (!mr) return NULL;
    mr->pd = pd;
    mr->addr = at;
    mr->length = length;
    (void)pthread_mutex_lock(&lock);
    mr->lkey = mr->rkey = next_key += 0x100;
    for (int i = 0; i < REGIONS; i++) {
        if (region[i]) continue;
        region[i] = mr;
        break;
    }
    (void)pthread_mutex_unlock(&lock);
    count(1);
    return mr;
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *at, size_t length, int access)
{
    (void)access;
    return reg_mr(pd, at, length);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *at, size_t length, uint64_t iova, unsigned int access)
{
    (void)iova;
    (void)access;
    return reg_mr(pd, at, length);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
    (void)pthread_mutex_lock(&lock);
    for (int i = 0; i < REGIONS; i++)
        if (region[i] == mr) region[i] = NULL;
    (void)pthread_mutex_unlock(&lock);
    count(-1);
    free(mr);
    return 0;
}

static bool opens(uint32_t key, uint64_t address, uint32_t size)
{
    for (int i = 0; i < REGIONS; i++) {
        const struct ibv_mr *m = region[i];
        if (m && m->rkey == key && address >= (uintptr_t)m->addr && size <= m->length &&
            address - (uintptr_t)m->addr <= m->length - size)
            return true;
    }
    return false;
}

/* ---- queues ---- */

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context, struct ibv_comp_channel *channel,
                             int vector)
{
    (void)cq_context;
    (void)channel;
    (void)vector;
    if (refuses(ENOMEM)) return NULL;
    struct fake_cq *cq = calloc(1, sizeof *cq);
    if (!cq) return NULL;
    cq->cq.context = context;
    cq->cq.cqe = cqe;
    count(1);
    return &cq->cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
    count(-1);
    free(cq);
    return 0;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    if (refuses(ENOMEM)) return NULL;
    if (attr->cap.max_inline_data > fake.max_inline) {
        errno = EINVAL;
        return NULL;
    }
    struct fake_qp *q = calloc(1, sizeof *q);
    if (!q) return NULL;
    q->qp.context = pd->context;
    q->cq = (struct fake_cq *)attr->send_cq;
    q->qp.qp_num = __atomic_add_fetch(&next_qpn, 1, __ATOMIC_RELAXED);
    attr->cap.max_inline_data = fake.max_inline;
    count(1);
    return &q->qp;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
    count(-1);
    free(qp);
    return 0;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    (void)qp;
    if (refuses(EINVAL)) return EINVAL;
    if (!(mask & IBV_QP_AV)) return 0;
    (void)pthread_mutex_lock(&lock);
    fake.last_path_mtu = attr->path_mtu;
    fake.last_sgid_index = attr->ah_attr.grh.sgid_index;
    fake.last_is_global = attr->ah_attr.is_global;
    fake.last_dlid = attr->ah_attr.dlid;
    (void)pthread_mutex_unlock(&lock);
    return 0;
}

static void complete(struct fake_qp *q, const struct ibv_send_wr *wr, enum ibv_wc_status status)
{
    struct ibv_wc *wc = &q->cq->wc[q->cq->head++ % RING];
    memset(wc, 0, sizeof *wc);
    wc->wr_id = wr->wr_id;
    wc->status = status;
    wc->qp_num = q->qp.qp_num;
    wc->vendor_err = status ? 0x88 : 0;
}

static void execute(struct fake_qp *q, const struct ibv_send_wr *wr, int chain)
{
    const struct ibv_sge *s = wr->sg_list;
    if (q->is_broken) {
        complete(q, wr, IBV_WC_WR_FLUSH_ERR);
        return;
    }
    if (!opens(wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, s->length)) {
        q->is_broken = true;
        complete(q, wr, IBV_WC_REM_ACCESS_ERR);
        return;
    }
    uint8_t *to = (uint8_t *)(uintptr_t)wr->wr.rdma.remote_addr;
    const uint8_t *from = (const uint8_t *)(uintptr_t)s->addr;
    uint64_t last;
    memcpy(&last, from + s->length - 8, sizeof last);
    memcpy(to, from, s->length - 8);
    if (chain == fake.corrupt_chain) last ^= 1;
    __atomic_store_n((uint64_t *)(void *)(to + s->length - 8), last, __ATOMIC_RELEASE);
    if (wr->send_flags & IBV_SEND_SIGNALED || chain == fake.signal_all_chain) {
        if (chain != fake.lose_chain) complete(q, wr, IBV_WC_SUCCESS);
        if (chain == fake.double_chain) complete(q, wr, IBV_WC_SUCCESS);
    }
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    struct fake_qp *q = (struct fake_qp *)qp;
    int place = 0;
    (void)pthread_mutex_lock(&lock);
    int chain = (int)fake.chains++;
    for (; wr; wr = wr->next, place++) {
        if (place == fake.refuse_place) {
            *bad = wr;
            (void)pthread_mutex_unlock(&lock);
            return ENOMEM;
        }
        if (place < 256) {
            fake.last[place] = *wr;
            fake.last_sge[place] = wr->sg_list[0];
        }
        fake.writes++;
        fake.signaled += (wr->send_flags & IBV_SEND_SIGNALED) != 0;
        fake.inlined += (wr->send_flags & IBV_SEND_INLINE) != 0;
        execute(q, wr, chain);
    }
    if (chain < FAKE_CHAINS) fake.chain_length[chain] = (uint32_t)place;
    (void)pthread_mutex_unlock(&lock);
    return 0;
}

static int poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc)
{
    struct fake_cq *c = (struct fake_cq *)cq;
    int n = 0;
    if (fake.poll_fails) return -5;
    (void)pthread_mutex_lock(&lock);
    if (c->tail != c->head && c->empty++ >= fake.empty_polls) {
        for (; n < most && c->tail != c->head; n++)
            wc[n] = c->wc[c->tail++ % RING];
        c->empty = 0;
    }
    (void)pthread_mutex_unlock(&lock);
    return n;
}
#else
typedef int bell_fake_is_left_out;
#endif
