/* SPDX-License-Identifier: Apache-2.0
 * The calls of hw/mlx5/calls.h, by libibverbs and libmlx5.  Each is one call of theirs or the few that it takes; what
 * they mean is in the manual pages of rdma-core. */
#ifdef BELL_HAVE_MLX5
#include "core/machine.h"
#include "hw/mlx5/calls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#include <infiniband/mlx5dv.h>
#pragma GCC diagnostic pop

/* As in mlx5_api.h of rdma-core 56.1; an older library refuses it. */
#ifndef MLX5DV_UAR_ALLOC_TYPE_NC_DEDICATED
#define MLX5DV_UAR_ALLOC_TYPE_NC_DEDICATED (1u << 31)
#endif

#define ACCESS_ALL                                                                                                     \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define HOP_LIMIT 64
#define MIN_RNR_TIMER 12

static int failure(void)
{
    return errno ? errno : EIO;
}

/* "a, b and so on" of the devices that there are. */
static void list_names(struct ibv_device **list, int count, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < count && used + 1 < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", ibv_get_device_name(list[i]));
}

/* The device to open out of the list; NULL and *err: none of them. */
static struct ibv_device *choose(struct ibv_device **list, int count, const char *name, struct bell_error *err)
{
    char names[200];
    for (int i = 0; i < count; i++) {
        bool is_mlx5 = mlx5dv_is_supported(list[i]), is_named = strcmp(ibv_get_device_name(list[i]), name) == 0;
        if (is_mlx5 && (is_named || !name[0]))
            return list[i];
        if (is_named) {
            (void)bell_fail(err, BELL_UNSUPPORTED, "executor mlx5: %s is not an mlx5 device", name);
            return NULL;
        }
    }
    list_names(list, count, names, sizeof names);
    if (name[0])
        (void)bell_fail(err, BELL_UNSUPPORTED, "executor mlx5: there is no RDMA device %s here; there are: %s", name,
                        names);
    else
        (void)bell_fail(err, BELL_UNSUPPORTED, "executor mlx5: none of the RDMA devices here is an mlx5 device: %s",
                        names);
    return NULL;
}

static enum bell_status lib_open(void *context, const char *name, void **device, struct bell_error *err)
{
    struct mlx5dv_context_attr attr = { .flags = MLX5DV_CONTEXT_FLAGS_DEVX };
    enum bell_status s = BELL_OK;
    int count = 0;
    (void)context;
    struct ibv_device **list = ibv_get_device_list(&count);
    if (!list || count == 0) {
        if (list)
            ibv_free_device_list(list);
        return bell_fail(err, BELL_UNSUPPORTED, "executor mlx5: there is no RDMA device here");
    }
    struct ibv_device *chosen = choose(list, count, name, err);
    if (!chosen) {
        s = BELL_UNSUPPORTED;
    } else {
        errno = 0;
        struct ibv_context *opened = mlx5dv_open_device(chosen, &attr);
        if (opened)
            *device = opened;
        else
            s = bell_fail(err, BELL_UNSUPPORTED, "executor mlx5: %s cannot be opened with DevX: %s",
                          ibv_get_device_name(chosen), strerror(failure()));
    }
    ibv_free_device_list(list);
    return s;
}

static void lib_close(void *device)
{
    (void)ibv_close_device(device);
}

static const char *lib_name(void *device)
{
    return ibv_get_device_name(((struct ibv_context *)device)->device);
}

static int lib_command(void *device, const void *in, size_t in_bytes, void *out, size_t out_bytes)
{
    return mlx5dv_devx_general_cmd(device, in, in_bytes, out, out_bytes);
}

static int lib_create(void *device, const void *in, size_t in_bytes, void *out, size_t out_bytes, void **object)
{
    errno = 0;
    *object = mlx5dv_devx_obj_create(device, in, in_bytes, out, out_bytes);
    return *object ? 0 : failure();
}

static int lib_modify(void *object, const void *in, size_t in_bytes, void *out, size_t out_bytes)
{
    return mlx5dv_devx_obj_modify(object, in, in_bytes, out, out_bytes);
}

static int lib_destroy(void *object)
{
    return mlx5dv_devx_obj_destroy(object);
}

static int lib_eqn(void *device, uint32_t vector, uint32_t *eqn)
{
    return mlx5dv_devx_query_eqn(device, vector, eqn);
}

static int lib_uar_alloc(void *device, enum bell_mlx5_uar_kind kind, struct bell_mlx5_uar *uar)
{
    uint32_t flags = kind == BELL_MLX5_UAR_NC_DEDICATED ? MLX5DV_UAR_ALLOC_TYPE_NC_DEDICATED
                     : kind == BELL_MLX5_UAR_NC         ? MLX5DV_UAR_ALLOC_TYPE_NC
                                                        : MLX5DV_UAR_ALLOC_TYPE_BF;
    errno = 0;
    struct mlx5dv_devx_uar *got = mlx5dv_devx_alloc_uar(device, flags);
    if (!got)
        return failure();
    uar->handle = got;
    uar->reg = got->reg_addr;
    uar->page = got->page_id;
    return 0;
}

static void lib_uar_free(const struct bell_mlx5_uar *uar)
{
    mlx5dv_devx_free_uar(uar->handle);
}

static int lib_umem_register(void *device, const struct bell_mlx5_extent *extent, void **umem, uint32_t *id)
{
    struct mlx5dv_devx_umem *got;
    errno = 0;
    if (extent->dmabuf_fd < 0) {
        got = mlx5dv_devx_umem_reg(device, (void *)(uintptr_t)extent->address, extent->bytes, IBV_ACCESS_LOCAL_WRITE);
    } else {
        struct mlx5dv_devx_umem_in in = {
            .addr = NULL, /* the block is the dma-buf, from its start */
            .size = extent->bytes,
            .access = IBV_ACCESS_LOCAL_WRITE,
            .pgsz_bitmap = UINT64_MAX & ~(uint64_t)(4096 - 1),
            .comp_mask = MLX5DV_UMEM_MASK_DMABUF,
            .dmabuf_fd = extent->dmabuf_fd,
        };
        got = mlx5dv_devx_umem_reg_ex(device, &in);
    }
    if (!got)
        return failure();
    *umem = got;
    *id = got->umem_id;
    return 0;
}

static int lib_umem_release(void *umem)
{
    return mlx5dv_devx_umem_dereg(umem);
}

static int lib_pd_alloc(void *device, void **pd, uint32_t *number)
{
    struct mlx5dv_pd out = { 0 };
    struct mlx5dv_obj object = { .pd = { NULL, &out } };
    errno = 0;
    object.pd.in = ibv_alloc_pd(device);
    if (!object.pd.in)
        return failure();
    int refused = mlx5dv_init_obj(&object, MLX5DV_OBJ_PD);
    if (refused) {
        (void)ibv_dealloc_pd(object.pd.in);
        return refused;
    }
    *pd = object.pd.in;
    *number = out.pdn;
    return 0;
}

static int lib_pd_free(void *pd)
{
    return ibv_dealloc_pd(pd);
}

static int lib_mr_register(void *pd, const struct bell_mlx5_extent *extent, void **mr, uint32_t *lkey, uint32_t *rkey)
{
    struct ibv_mr *got;
    errno = 0;
    if (extent->dmabuf_fd < 0)
        got = ibv_reg_mr(pd, (void *)(uintptr_t)extent->address, extent->bytes, ACCESS_ALL);
    else
        got = ibv_reg_dmabuf_mr(pd, 0, extent->bytes, extent->address, extent->dmabuf_fd, ACCESS_ALL);
    if (!got)
        return failure();
    *mr = got;
    *lkey = got->lkey;
    *rkey = got->rkey;
    return 0;
}

static int lib_mr_release(void *mr)
{
    return ibv_dereg_mr(mr);
}

/* ::ffff:a.b.c.d */
static bool is_ipv4(const union ibv_gid *gid)
{
    static const uint8_t head[12] = { [10] = 0xff, [11] = 0xff };
    return memcmp(gid->raw, head, sizeof head) == 0;
}

/* On Ethernet any GID means the first RoCE v2 one of an IPv4 address; 0 where there is none. */
static int pick_gid(void *device, uint32_t number, uint32_t wanted, const struct ibv_port_attr *attr,
                    struct bell_mlx5_port *port)
{
    struct ibv_gid_entry entry;
    port->gid_index = wanted == BELL_GID_ANY ? 0 : wanted;
    for (uint32_t i = 0; wanted == BELL_GID_ANY && port->is_ethernet && i < (uint32_t)attr->gid_tbl_len; i++) {
        if (ibv_query_gid_ex(device, number, i, &entry, 0) != 0 || entry.gid_type != IBV_GID_TYPE_ROCE_V2
            || !is_ipv4(&entry.gid))
            continue;
        port->gid_index = i;
        break;
    }
    union ibv_gid gid;
    errno = 0;
    if (ibv_query_gid(device, (uint8_t)number, (int)port->gid_index, &gid) != 0)
        return failure();
    memcpy(port->gid, gid.raw, sizeof port->gid);
    return 0;
}

static int lib_port(void *device, uint32_t number, uint32_t gid, struct bell_mlx5_port *port)
{
    struct ibv_port_attr attr;
    memset(&attr, 0, sizeof attr);
    memset(port, 0, sizeof *port);
    int refused = ibv_query_port(device, (uint8_t)number, &attr);
    if (refused)
        return refused;
    if (attr.state != IBV_PORT_ACTIVE)
        return ENETDOWN;
    port->number = number;
    port->lid = attr.lid;
    port->mtu = (uint8_t)attr.active_mtu;
    port->is_ethernet = attr.link_layer == IBV_LINK_LAYER_ETHERNET;
    return pick_gid(device, number, gid, &attr, port);
}

static struct ibv_ah_attr path_of(const struct bell_mlx5_port *from, const struct bell_mlx5_port *to)
{
    struct ibv_ah_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.dlid = to->lid;
    attr.port_num = (uint8_t)from->number;
    attr.is_global = from->is_ethernet;
    if (attr.is_global) {
        memcpy(attr.grh.dgid.raw, to->gid, sizeof to->gid);
        attr.grh.sgid_index = (uint8_t)from->gid_index;
        attr.grh.hop_limit = HOP_LIMIT;
    }
    return attr;
}

/* libmlx5 resolves the MAC and fills in the vector when it makes an address handle. */
static int lib_address(void *pd, const struct bell_mlx5_port *from, const struct bell_mlx5_port *to,
                       uint8_t av[BELL_MLX5_AV_BYTES])
{
    struct ibv_ah_attr attr = path_of(from, to);
    struct mlx5dv_ah out = { 0 };
    struct mlx5dv_obj object = { .ah = { NULL, &out } };
    errno = 0;
    object.ah.in = ibv_create_ah(pd, &attr);
    if (!object.ah.in)
        return failure();
    int refused = mlx5dv_init_obj(&object, MLX5DV_OBJ_AH);
    BELL_STATIC_ASSERT(sizeof *out.av == BELL_MLX5_AV_BYTES, "size of an address vector");
    if (!refused)
        memcpy(av, out.av, BELL_MLX5_AV_BYTES);
    (void)ibv_destroy_ah(object.ah.in);
    return refused;
}

struct target {
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    struct ibv_qp *qp;
};

static int lib_dct_destroy(void *dct)
{
    struct target *t = dct;
    int refused = t->qp ? ibv_destroy_qp(t->qp) : 0;
    if (t->srq)
        (void)ibv_destroy_srq(t->srq);
    if (t->cq)
        (void)ibv_destroy_cq(t->cq);
    free(t);
    return refused;
}

/* A target has its number from the transition to RTR on. */
static int target_to_rtr(struct target *t, const struct bell_mlx5_port *port)
{
    struct ibv_qp_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = (uint8_t)port->number;
    attr.qp_access_flags = ACCESS_ALL;
    int refused = ibv_modify_qp(t->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (refused)
        return refused;
    memset(&attr, 0, sizeof attr);
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = (enum ibv_mtu)port->mtu;
    attr.min_rnr_timer = MIN_RNR_TIMER;
    attr.ah_attr = path_of(port, port);
    return ibv_modify_qp(t->qp, &attr, IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER | IBV_QP_AV);
}

static int lib_dct_create(void *pd, const struct bell_mlx5_port *port, uint64_t dc_key, void **dct, uint32_t *number)
{
    struct ibv_context *device = ((struct ibv_pd *)pd)->context;
    struct ibv_srq_init_attr srq = { .attr = { .max_wr = 1, .max_sge = 1 } };
    struct target *t = calloc(1, sizeof *t);
    if (!t)
        return ENOMEM;
    errno = 0;
    t->cq = ibv_create_cq(device, 1, NULL, NULL, 0);
    t->srq = t->cq ? ibv_create_srq(pd, &srq) : NULL;
    if (t->srq) {
        struct ibv_qp_init_attr_ex plain = { .qp_type = IBV_QPT_DRIVER, .comp_mask = IBV_QP_INIT_ATTR_PD };
        struct mlx5dv_qp_init_attr own = { .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC };
        plain.send_cq = plain.recv_cq = t->cq;
        plain.srq = t->srq;
        plain.pd = pd;
        own.dc_init_attr.dc_type = MLX5DV_DCTYPE_DCT;
        own.dc_init_attr.dct_access_key = dc_key;
        t->qp = mlx5dv_create_qp(device, &plain, &own);
    }
    int refused = t->qp ? target_to_rtr(t, port) : failure();
    if (refused || !t->qp) {
        (void)lib_dct_destroy(t);
        return refused;
    }
    *dct = t;
    *number = t->qp->qp_num;
    return 0;
}

const struct bell_mlx5_calls bell_mlx5_library = {
    .open = lib_open,
    .close = lib_close,
    .name = lib_name,
    .command = lib_command,
    .create = lib_create,
    .modify = lib_modify,
    .destroy = lib_destroy,
    .eqn = lib_eqn,
    .uar_alloc = lib_uar_alloc,
    .uar_free = lib_uar_free,
    .umem_register = lib_umem_register,
    .umem_release = lib_umem_release,
    .pd_alloc = lib_pd_alloc,
    .pd_free = lib_pd_free,
    .mr_register = lib_mr_register,
    .mr_release = lib_mr_release,
    .port = lib_port,
    .address = lib_address,
    .dct_create = lib_dct_create,
    .dct_destroy = lib_dct_destroy,
};
#else
typedef int bell_mlx5_library_is_absent; /* a translation unit is not empty */
#endif
