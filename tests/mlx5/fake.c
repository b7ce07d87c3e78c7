/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/mlx5/fake.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define UMEM_BASE 0x21u
#define PAGE_BASE 0x61u
#define KEY_BASE 0x7100u
#define DCT_BASE 0x555500u
#define PD_NUMBER 0x33u

static struct fake *fake_of(void *handle)
{
    return ((struct fake_thing *)handle)->fake;
}

/* Is it this call's turn to fail? */
static bool fails(struct fake *f)
{
    return ++f->calls == f->fail_at;
}

static void lock(struct fake *f)
{
    (void)pthread_mutex_lock(&f->lock);
}

static void unlock(struct fake *f)
{
    (void)pthread_mutex_unlock(&f->lock);
}

void *fake_take(struct fake *f, void *array, size_t size, uint32_t base)
{
    for (uint32_t i = 0; i < FAKE_THINGS; i++) {
        struct fake_thing *t = (struct fake_thing *)(void *)((uint8_t *)array + size * i);
        if (t->is_live)
            continue;
        memset(t, 0, size);
        t->fake = f;
        t->is_live = true;
        t->number = base + 2 * i;
        return t;
    }
    abort();
}

static void drop(void *handle)
{
    struct fake_thing *t = handle;
    if (!t->is_live)
        fake_break(t->fake, "something was given back twice");
    t->is_live = false;
}

/* ---- the NIC ---- */

static const struct bell_region *region_of(const struct fake *f, uint32_t key, bool is_remote)
{
    for (uint32_t i = 0; i < FAKE_THINGS; i++) {
        const struct bell_region *r = is_remote ? &f->mr[i].remote : &f->mr[i].local;
        if (f->mr[i].thing.is_live && r->key == key)
            return r;
    }
    return NULL;
}

static bool has_target(const struct fake *f, const struct bell_av *av)
{
    bool is_here = f->is_ethernet ? av->rmac[1] == 0 && av->rmac[5] == 0x30 && av->rlid == 0xc001 : av->rlid == 0x17;
    for (uint32_t i = 0; i < FAKE_THINGS; i++)
        if (f->dct[i].thing.is_live && f->dct[i].thing.number == av->dqp_dct && f->dct[i].key == av->dc_key)
            return is_here;
    return false;
}

static bool serve(struct fake *f, struct fake_qp *qp)
{
    struct bell_nic_work work;
    if (!qp->thing.is_live || qp->state != FAKE_RTS || f->is_deaf)
        return false;
    enum bell_status s = bell_nic_take(&f->lane, &qp->nicq);
    if (bell_is_failure(s))
        fake_break(f, "a QP was rung for more than its depth");
    if (s != BELL_OK)
        return false;
    while (bell_nic_fetch(&f->lane, &qp->nicq, &work) == BELL_OK) {
        if (f->wqes < FAKE_WQES) {
            f->wqe_is_dc[f->wqes] = qp->sq.is_dc;
            memcpy(f->wqe[f->wqes++], work.bytes, sizeof f->wqe[0]);
        }
        if (qp->sq.is_dc && !work.syndrome && !has_target(f, &work.view.av))
            work.syndrome = BELL_SYNDROME_RETRY_EXCEEDED;
        qp->nicq.local = region_of(f, work.view.lkey, false);
        qp->nicq.remote = region_of(f, work.view.rkey, true);
        bell_nic_execute(&f->lane, &qp->nicq, &work);
        bell_nic_complete(&f->lane, &qp->nicq, &work);
    }
    return true;
}

static void *run_nic(void *argument)
{
    struct fake *f = argument;
    for (;;) {
        bool any = false;
        lock(f);
        bool stop = f->stop;
        for (uint32_t i = 0; i < FAKE_THINGS; i++)
            any = serve(f, f->qp + i) || any;
        unlock(f);
        if (stop)
            return NULL;
        if (!any)
            (void)sched_yield();
    }
}

/* ---- the calls ---- */

static enum bell_status fake_open(void *context, const char *name, void **device, struct bell_error *err)
{
    struct fake *f = context;
    if (fails(f) || (name[0] && strcmp(name, f->name) != 0))
        return bell_fail(err, BELL_UNSUPPORTED, "there is no %s", name);
    f->device.fake = f;
    f->device.is_live = true;
    f->stop = false;
    if (pthread_create(&f->nic, NULL, run_nic, f) != 0)
        abort();
    *device = &f->device;
    return BELL_OK;
}

static void fake_close(void *device)
{
    struct fake *f = fake_of(device);
    lock(f);
    f->stop = true;
    unlock(f);
    (void)pthread_join(f->nic, NULL);
    drop(device);
}

static const char *fake_name(void *device)
{
    return fake_of(device)->name;
}

static int fake_command(void *device, const void *in, size_t in_bytes, void *out, size_t out_bytes)
{
    struct fake *f = fake_of(device);
    return fails(f) ? fake_refuse(out) : fake_do_command(f, in, in_bytes, out, out_bytes);
}

static int fake_create(void *device, const void *in, size_t in_bytes, void *out, size_t out_bytes, void **object)
{
    struct fake *f = fake_of(device);
    lock(f);
    int refused = fails(f) ? fake_refuse(out) : fake_do_create(f, in, in_bytes, out, out_bytes, object);
    unlock(f);
    return refused;
}

static int fake_modify(void *object, const void *in, size_t in_bytes, void *out, size_t out_bytes)
{
    struct fake *f = fake_of(object);
    lock(f);
    int refused = fails(f) ? fake_refuse(out) : fake_do_modify(object, in, in_bytes, out, out_bytes);
    unlock(f);
    return refused;
}

static int fake_destroy(void *object)
{
    struct fake *f = fake_of(object);
    lock(f);
    for (uint32_t i = 0; i < FAKE_THINGS; i++)
        if (f->qp[i].thing.is_live && f->qp[i].cq == object)
            fake_break(f, "a CQ went before its QP");
    drop(object);
    unlock(f);
    return 0;
}

static int fake_eqn(void *device, uint32_t vector, uint32_t *eqn)
{
    struct fake *f = fake_of(device);
    if (fails(f) || vector)
        return EINVAL;
    *eqn = 5;
    return 0;
}

static int fake_uar_alloc(void *device, enum bell_mlx5_uar_kind kind, struct bell_mlx5_uar *uar)
{
    struct fake *f = fake_of(device);
    if (fails(f) || f->refuse_uar[kind])
        return EOPNOTSUPP;
    lock(f);
    struct fake_uar *u = FAKE_TAKE(f, uar, PAGE_BASE);
    u->kind = kind;
    u->page = aligned_alloc(FAKE_PAGE, FAKE_PAGE);
    if (!u->page)
        abort();
    memset(u->page, 0, FAKE_PAGE);
    uar->handle = u;
    uar->reg = (uint64_t *)(void *)(u->page + 0x800);
    uar->page = u->thing.number;
    unlock(f);
    return 0;
}

static void fake_uar_free(const struct bell_mlx5_uar *uar)
{
    struct fake_uar *u = uar->handle;
    lock(u->thing.fake);
    if (u->thing.number == PAGE_BASE) /* of rank 0's first queue */
        memcpy(u->thing.fake->rung, u->page + 0x800, sizeof u->thing.fake->rung);
    free(u->page);
    drop(u);
    unlock(u->thing.fake);
}

/* A dma-buf tells its size at its end. */
static bool is_whole(const struct bell_mlx5_extent *extent)
{
    return lseek(extent->dmabuf_fd, 0, SEEK_END) >= (off_t)extent->bytes;
}

static int fake_umem_register(void *device, const struct bell_mlx5_extent *extent, void **umem, uint32_t *id)
{
    struct fake *f = fake_of(device);
    bool is_mapped = extent->dmabuf_fd >= 0;
    if (fails(f) || (is_mapped && f->refuse_dmabuf))
        return EOPNOTSUPP;
    lock(f);
    struct fake_umem *u = FAKE_TAKE(f, umem, UMEM_BASE);
    u->bytes = extent->bytes;
    u->is_mapped = is_mapped;
    /* A dma-buf is seen at an address of its own. */
    u->at = is_mapped ? mmap(NULL, u->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, extent->dmabuf_fd, 0)
                      : (uint8_t *)(uintptr_t)extent->address;
    if (u->at == MAP_FAILED && f->is_deaf && is_whole(extent)) { /* memory that no CPU maps */
        u->at = (uint8_t *)(uintptr_t)extent->address;
        u->is_mapped = false;
    }
    if (u->at == MAP_FAILED)
        abort();
    f->by_dmabuf += is_mapped;
    f->by_address += !is_mapped;
    *umem = u;
    *id = u->thing.number;
    unlock(f);
    return 0;
}

static int fake_umem_release(void *umem)
{
    struct fake_umem *u = umem;
    struct fake *f = u->thing.fake;
    lock(f);
    for (uint32_t i = 0; i < FAKE_THINGS; i++)
        if (f->qp[i].thing.is_live && f->qp[i].sq.wqe == u->at)
            fake_break(f, "a umem went before its QP");
    if (u->is_mapped)
        (void)munmap(u->at, u->bytes);
    drop(u);
    unlock(f);
    return 0;
}

static int fake_pd_alloc(void *device, void **pd, uint32_t *number)
{
    struct fake *f = fake_of(device);
    if (fails(f))
        return ENOMEM;
    f->pd.fake = f;
    f->pd.is_live = true;
    *number = f->pd.number = PD_NUMBER;
    *pd = &f->pd;
    return 0;
}

static int fake_pd_free(void *pd)
{
    drop(pd);
    return 0;
}

static int fake_mr_register(void *pd, const struct bell_mlx5_extent *extent, void **mr, uint32_t *lkey, uint32_t *rkey)
{
    struct fake *f = fake_of(pd);
    bool is_dmabuf = extent->dmabuf_fd >= 0;
    if (fails(f) || (is_dmabuf && (f->refuse_dmabuf || !is_whole(extent))))
        return EINVAL;
    lock(f);
    f->mr_by_dmabuf += is_dmabuf;
    struct fake_mr *m = FAKE_TAKE(f, mr, KEY_BASE);
    m->local = m->remote = (struct bell_region){ extent->address, extent->bytes, 0 };
    *lkey = m->local.key = m->thing.number << 8;
    *rkey = m->remote.key = m->thing.number << 8 | 0x80;
    *mr = m;
    unlock(f);
    return 0;
}

static int fake_give_back(void *thing)
{
    struct fake *f = fake_of(thing);
    lock(f);
    drop(thing);
    unlock(f);
    return 0;
}

static int fake_port(void *device, uint32_t number, uint32_t gid, struct bell_mlx5_port *port)
{
    struct fake *f = fake_of(device);
    (void)gid;
    memset(port, 0, sizeof *port);
    if (fails(f) || number != 1)
        return ENETDOWN;
    port->number = 1;
    port->mtu = 5;
    port->is_ethernet = f->is_ethernet;
    port->gid_index = f->is_ethernet ? 3 : 0;
    port->lid = f->is_ethernet ? 0 : 0x17;
    return 0;
}

static int fake_address(void *pd, const struct bell_mlx5_port *from, const struct bell_mlx5_port *to,
                        uint8_t av[BELL_MLX5_AV_BYTES])
{
    struct fake *f = fake_of(pd);
    static const uint8_t mac[6] = { 0x02, 0x00, 0x5e, 0x10, 0x20, 0x30 };
    static const uint8_t gid[16] = { [10] = 0xff, [11] = 0xff, [12] = 192, [13] = 0, [14] = 2, [15] = 1 };
    if (fails(f))
        return EHOSTUNREACH;
    memset(av, 0, BELL_MLX5_AV_BYTES);
    bell_store_be32(av + 12, f->is_ethernet ? 0xc001 : to->lid); /* rlid in the low half */
    if (f->is_ethernet) {
        memcpy(av + 20, mac, sizeof mac);
        av[27] = 64;
        bell_store_be32(av + 28, 1u << 30 | from->gid_index << 20);
        memcpy(av + 32, gid, sizeof gid);
    }
    return 0;
}

static int fake_dct_create(void *pd, const struct bell_mlx5_port *port, uint64_t dc_key, void **dct, uint32_t *number)
{
    struct fake *f = fake_of(pd);
    if (fails(f) || port->number != 1)
        return EINVAL;
    lock(f);
    struct fake_dct *d = FAKE_TAKE(f, dct, DCT_BASE);
    d->key = dc_key;
    *number = d->thing.number;
    *dct = d;
    unlock(f);
    return 0;
}

static const struct bell_mlx5_calls fake_calls = {
    .open = fake_open,
    .close = fake_close,
    .name = fake_name,
    .command = fake_command,
    .create = fake_create,
    .modify = fake_modify,
    .destroy = fake_destroy,
    .eqn = fake_eqn,
    .uar_alloc = fake_uar_alloc,
    .uar_free = fake_uar_free,
    .umem_register = fake_umem_register,
    .umem_release = fake_umem_release,
    .pd_alloc = fake_pd_alloc,
    .pd_free = fake_pd_free,
    .mr_register = fake_mr_register,
    .mr_release = fake_give_back,
    .port = fake_port,
    .address = fake_address,
    .dct_create = fake_dct_create,
    .dct_destroy = fake_give_back,
};

void fake_start(struct fake *f)
{
    memset(f, 0, sizeof *f);
    f->name = "fake_0";
    f->cqe_version = 1;
    f->has_dc = f->has_oi = true;
    f->lane.soft = &f->soft;
    f->lane.id.actor = BELL_ACTOR_NIC;
    (void)pthread_mutex_init(&f->lock, NULL);
    f->table = fake_calls;
    f->table.context = f;
}

#define LEFT(f, array)                                                                                                 \
    for (uint32_t i = 0; i < FAKE_THINGS; i++)                                                                         \
    left += (f)->array[i].thing.is_live

uint32_t fake_left(const struct fake *f)
{
    uint32_t left = (uint32_t)f->device.is_live + f->pd.is_live;
    LEFT(f, umem);
    LEFT(f, uar);
    LEFT(f, mr);
    LEFT(f, cq);
    LEFT(f, qp);
    LEFT(f, dct);
    return left;
}
