/* SPDX-License-Identifier: Apache-2.0
 * hw/mlx5/library.c between hw/mlx5 and libraries that this file plays: functions of the names of libibverbs and
 * libmlx5, which the linker takes instead of theirs.  Behind them stands the device in software. */
#include "hw/mlx5/run.h"
#include "tests/conform/exec_case.h"
#include "tests/mlx5/fake.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#ifdef BELL_HAVE_MLX5
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#include <infiniband/mlx5dv.h>
#pragma GCC diagnostic pop
#undef ibv_query_port
#undef ibv_reg_mr

static struct fake fake;
static struct fake_memory gpu;

/* What the libraries have. */
static struct {
    struct ibv_device device[3];
    int devices;
    uint32_t mlx5; /* bit i: device i is one */
    bool is_locked;
    bool is_down;
    bool has_no_target, has_no_numbers;
    struct ibv_context context;
    struct ibv_pd pd;
    void *fake_device, *fake_pd;
    uint32_t left; /* verbs objects handed out and not given back */
    enum ibv_qp_state target_state;
} lib;

struct ibv_device **ibv_get_device_list(int *count)
{
    struct ibv_device **list = calloc((size_t)lib.devices + 1, sizeof *list);
    for (int i = 0; list && i < lib.devices; i++)
        list[i] = &lib.device[i];
    *count = lib.devices;
    return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

bool mlx5dv_is_supported(struct ibv_device *device)
{
    return lib.mlx5 >> (device - lib.device) & 1;
}

struct ibv_context *mlx5dv_open_device(struct ibv_device *device, struct mlx5dv_context_attr *attr)
{
    struct bell_error err;
    assert_int_equal(attr->flags, MLX5DV_CONTEXT_FLAGS_DEVX);
    if (lib.is_locked || fake.table.open(&fake, "", &lib.fake_device, &err) != BELL_OK) {
        errno = EPERM;
        return NULL;
    }
    lib.context.device = device;
    return &lib.context;
}

int ibv_close_device(struct ibv_context *context)
{
    (void)context;
    fake.table.close(lib.fake_device);
    return 0;
}

int mlx5dv_devx_general_cmd(struct ibv_context *context, const void *in, size_t inlen, void *out, size_t outlen)
{
    (void)context;
    return fake.table.command(lib.fake_device, in, inlen, out, outlen);
}

struct mlx5dv_devx_obj *mlx5dv_devx_obj_create(struct ibv_context *context, const void *in, size_t inlen, void *out,
                                               size_t outlen)
{
    void *object = NULL;
    (void)context;
    errno = fake.table.create(lib.fake_device, in, inlen, out, outlen, &object);
    return errno ? NULL : object;
}

int mlx5dv_devx_obj_modify(struct mlx5dv_devx_obj *obj, const void *in, size_t inlen, void *out, size_t outlen)
{
    return fake.table.modify(obj, in, inlen, out, outlen);
}

int mlx5dv_devx_obj_destroy(struct mlx5dv_devx_obj *obj)
{
    return fake.table.destroy(obj);
}

int mlx5dv_devx_query_eqn(struct ibv_context *context, uint32_t vector, uint32_t *eqn)
{
    (void)context;
    return fake.table.eqn(lib.fake_device, vector, eqn);
}

struct mlx5dv_devx_uar *mlx5dv_devx_alloc_uar(struct ibv_context *context, uint32_t flags)
{
    struct mlx5dv_devx_uar *out = calloc(1, sizeof *out + sizeof(struct bell_mlx5_uar));
    struct bell_mlx5_uar *uar = (struct bell_mlx5_uar *)(void *)(out + 1);
    (void)context;
    enum bell_mlx5_uar_kind kind = flags == 1u << 31 ? BELL_MLX5_UAR_NC_DEDICATED
                                   : flags == 1      ? BELL_MLX5_UAR_NC
                                                     : BELL_MLX5_UAR_BF;
    assert_true(flags == 0 || flags == 1 || flags == 1u << 31);
    errno = fake.table.uar_alloc(lib.fake_device, kind, uar);
    if (errno) {
        free(out);
        return NULL;
    }
    out->reg_addr = uar->reg;
    out->base_addr = (uint8_t *)uar->reg - 0x800;
    out->page_id = uar->page;
    return out;
}

void mlx5dv_devx_free_uar(struct mlx5dv_devx_uar *uar)
{
    fake.table.uar_free((struct bell_mlx5_uar *)(void *)(uar + 1));
    free(uar);
}

struct umem {
    struct mlx5dv_devx_umem shown;
    void *fake;
};

static struct mlx5dv_devx_umem *register_umem(const struct bell_mlx5_extent *extent)
{
    struct umem *u = calloc(1, sizeof *u);
    errno = fake.table.umem_register(lib.fake_device, extent, &u->fake, &u->shown.umem_id);
    if (errno) {
        free(u);
        return NULL;
    }
    return &u->shown;
}

struct mlx5dv_devx_umem *mlx5dv_devx_umem_reg(struct ibv_context *context, void *addr, size_t size, uint32_t access)
{
    struct bell_mlx5_extent extent = { (uint64_t)(uintptr_t)addr, size, -1 };
    (void)context;
    assert_int_equal(access, IBV_ACCESS_LOCAL_WRITE);
    return register_umem(&extent);
}

struct mlx5dv_devx_umem *mlx5dv_devx_umem_reg_ex(struct ibv_context *context, struct mlx5dv_devx_umem_in *in)
{
    struct bell_mlx5_extent extent = { 0, in->size, in->dmabuf_fd };
    (void)context;
    assert_int_equal(in->comp_mask, MLX5DV_UMEM_MASK_DMABUF);
    assert_true(in->addr == NULL && in->access == IBV_ACCESS_LOCAL_WRITE && in->pgsz_bitmap == ~0xfffull);
    return register_umem(&extent);
}

int mlx5dv_devx_umem_dereg(struct mlx5dv_devx_umem *umem)
{
    struct umem *u = (struct umem *)umem;
    int refused = fake.table.umem_release(u->fake);
    free(u);
    return refused;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    uint32_t number;
    errno = fake.table.pd_alloc(lib.fake_device, &lib.fake_pd, &number);
    lib.pd.context = context;
    return errno ? NULL : &lib.pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
    (void)pd;
    return fake.table.pd_free(lib.fake_pd);
}

struct ah {
    struct ibv_ah shown;
    struct mlx5_wqe_av av;
};

int mlx5dv_init_obj(struct mlx5dv_obj *obj, uint64_t type)
{
    if (lib.has_no_numbers)
        return EINVAL;
    if (type == MLX5DV_OBJ_PD)
        obj->pd.out->pdn = fake.pd.number;
    else
        obj->ah.out->av = &((struct ah *)obj->ah.in)->av;
    return 0;
}

struct mr {
    struct ibv_mr shown;
    void *fake;
};

static struct ibv_mr *register_mr(uint64_t address, size_t bytes, int fd, int access)
{
    struct bell_mlx5_extent extent = { address, bytes, fd };
    struct mr *m = calloc(1, sizeof *m);
    assert_int_equal(access, 0xf); /* local write, remote write, remote read, remote atomic */
    errno = fake.table.mr_register(lib.fake_pd, &extent, &m->fake, &m->shown.lkey, &m->shown.rkey);
    if (errno) {
        free(m);
        return NULL;
    }
    return &m->shown;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    (void)pd;
    return register_mr((uint64_t)(uintptr_t)addr, length, -1, access);
}

/* What ibv_reg_mr of the header turns into without optimisation. */
struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
    (void)pd;
    (void)iova;
    return register_mr((uint64_t)(uintptr_t)addr, length, -1, (int)access);
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access)
{
    (void)pd;
    assert_true(offset == 0 && fd >= 0);
    return register_mr(iova, length, fd, access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
    int refused = fake.table.mr_release(((struct mr *)mr)->fake);
    free(mr);
    return refused;
}

int ibv_query_port(struct ibv_context *context, uint8_t number, struct _compat_ibv_port_attr *attr)
{
    struct bell_mlx5_port port;
    struct ibv_port_attr *out = (struct ibv_port_attr *)attr;
    (void)context;
    int refused = fake.table.port(lib.fake_device, number, 0, &port);
    if (refused)
        return refused;
    out->state = lib.is_down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
    out->lid = port.lid;
    out->active_mtu = (enum ibv_mtu)port.mtu;
    out->gid_tbl_len = 6;
    out->link_layer = port.is_ethernet ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND;
    return 0;
}

/* Index 3 is the first of RoCE v2 and IPv4. */
int ibv_query_gid(struct ibv_context *context, uint8_t number, int index, union ibv_gid *gid)
{
    (void)context;
    (void)number;
    memset(gid, 0, sizeof *gid);
    if (index < 2) {
        gid->raw[0] = 0xfe;
        gid->raw[1] = 0x80;
    } else {
        gid->raw[10] = gid->raw[11] = 0xff;
        gid->raw[12] = 192;
        gid->raw[14] = 2;
        gid->raw[15] = 1;
    }
    return 0;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t number, uint32_t index, struct ibv_gid_entry *entry,
                      uint32_t flags, size_t entry_size)
{
    (void)flags;
    (void)entry_size;
    memset(entry, 0, sizeof *entry);
    entry->gid_type = index % 2 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1;
    return ibv_query_gid(context, (uint8_t)number, (int)index, &entry->gid);
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    struct bell_mlx5_port from = { .number = attr->port_num, .gid_index = attr->grh.sgid_index };
    struct bell_mlx5_port to = { .lid = attr->dlid };
    struct ah *ah = calloc(1, sizeof *ah);
    (void)pd;
    assert_int_equal(attr->port_num, 1);
    assert_int_equal(attr->is_global, fake.is_ethernet);
    if (fake.is_ethernet)
        assert_true(attr->grh.sgid_index == 3 && attr->grh.hop_limit == 64 && attr->grh.dgid.raw[12] == 192);
    errno = fake.table.address(lib.fake_pd, &from, &to, (uint8_t *)&ah->av);
    if (errno) {
        free(ah);
        return NULL;
    }
    lib.left++;
    return &ah->shown;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
    free(ah);
    lib.left--;
    return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context, struct ibv_comp_channel *channel,
                             int vector)
{
    static struct ibv_cq cq;
    (void)context;
    (void)cqe;
    (void)cq_context;
    (void)channel;
    (void)vector;
    lib.left++;
    return &cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
    (void)cq;
    lib.left--;
    return 0;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    static struct ibv_srq srq;
    (void)pd;
    (void)attr;
    lib.left++;
    return &srq;
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
    (void)srq;
    lib.left--;
    return 0;
}

struct qp {
    struct ibv_qp shown;
    uint64_t key;
    void *fake;
};

struct ibv_qp *mlx5dv_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
                                struct mlx5dv_qp_init_attr *own)
{
    (void)context;
    assert_true(attr->qp_type == IBV_QPT_DRIVER && attr->comp_mask == IBV_QP_INIT_ATTR_PD && attr->pd == &lib.pd);
    assert_true(attr->srq && attr->recv_cq);
    assert_true(own->comp_mask == MLX5DV_QP_INIT_ATTR_MASK_DC && own->dc_init_attr.dc_type == MLX5DV_DCTYPE_DCT);
    if (lib.has_no_target) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    struct qp *q = calloc(1, sizeof *q);
    q->key = own->dc_init_attr.dct_access_key;
    q->shown.state = IBV_QPS_RESET;
    lib.left++;
    return &q->shown;
}

/* INIT, then RTR, from where on the target has a number. */
int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    struct qp *q = (struct qp *)qp;
    struct bell_mlx5_port port = { .number = 1 };
    if (attr->qp_state == IBV_QPS_INIT) {
        assert_int_equal(q->shown.state, IBV_QPS_RESET);
        assert_int_equal(mask, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
        assert_int_equal(attr->port_num, 1);
    } else {
        assert_int_equal(attr->qp_state, IBV_QPS_RTR);
        assert_int_equal(q->shown.state, IBV_QPS_INIT);
        assert_int_equal(mask, IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER | IBV_QP_AV);
        assert_true(attr->path_mtu == IBV_MTU_4096 && attr->ah_attr.port_num == 1);
        assert_int_equal(attr->ah_attr.is_global, fake.is_ethernet);
        int refused = fake.table.dct_create(lib.fake_pd, &port, q->key, &q->fake, &q->shown.qp_num);
        if (refused)
            return refused;
    }
    q->shown.state = attr->qp_state;
    return 0;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
    struct qp *q = (struct qp *)qp;
    int refused = q->fake ? fake.table.dct_destroy(q->fake) : 0;
    free(q);
    lib.left--;
    return refused;
}

/* ---- the tests ---- */

static int start(void **state)
{
    (void)state;
    fake_start(&fake);
    fake_memory_start(&gpu, BELL_MEMORY_GPU);
    memset(&lib, 0, sizeof lib);
    lib.devices = 3;
    lib.mlx5 = 6;
    for (int i = 0; i < 3; i++)
        (void)snprintf(lib.device[i].name, sizeof lib.device[i].name, "%s_%d", i ? "mlx5" : "irdma", i);
    return 0;
}

static enum bell_status run(const char *settings, struct bell_error *err)
{
    const struct bell_mlx5_site site = { &bell_mlx5_host_memory, &gpu.table, &gpu.table };
    struct bell_mlx5_ground ground = { &bell_mlx5_library, &bell_mlx5_host_memory, { site, site }, NULL };
    struct exec_case c;
    struct bell_result result;
    exec_case_read(&c, settings);
    struct bell_run r = { .program = &c.program, .stack = &c.stack, .bound_ps = EXEC_BOUND_PS };
    memset(&result, 0, sizeof result);
    memset(err, 0, sizeof *err);
    enum bell_status s = bell_mlx5_run(&ground, &r, &result, err);
    assert_string_equal(fake.broken, "");
    assert_int_equal(fake_left(&fake), 0);
    assert_int_equal(lib.left, 0);
    assert_int_equal(gpu.blocks, 0);
    if (s == BELL_OK)
        assert_non_null(strstr(result.notes, "mlx5_1 port 1"));
    return s;
}

static const char *const settings[] = {
    "queue_memory=host submit=gpu iterations=20",
    "queue_memory=host submit=gpu transport=dc cq=collapsed pattern=round-trip iterations=20",
    "queue_memory=gpu submit=gpu payload=pointer bytes=512 iterations=20",
    "queue_memory=host submit=gpu blueflame=true nic_start=dbrec iterations=20",
    "queue_memory=host submit=proxy iterations=20",
};

static void test_runs(void **state)
{
    struct bell_error err;
    (void)state;
    for (size_t i = 0; i < 2 * sizeof settings / sizeof *settings; i++) {
        (void)start(NULL);
        fake.is_ethernet = i % 2;
        fake.start = strstr(settings[i / 2], "dbrec") ? BELL_NIC_START_DBREC : BELL_NIC_START_DOORBELL;
        if (run(settings[i / 2], &err) != BELL_OK)
            fail_msg("%s: %s; %s", settings[i / 2], err.text, fake.broken);
        assert_int_equal(fake.by_dmabuf, strstr(settings[i / 2], "queue_memory=gpu") ? 6 : 0);
        assert_int_equal(fake.mr_by_dmabuf, 4); /* of both ranks, source and target */
    }
}

/* Each call that reaches a library fails once. */
static void test_each_call_fails(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++)
        for (uint32_t n = 1;; n++) {
            struct bell_error err;
            (void)start(NULL);
            fake.fail_at = n;
            enum bell_status s = run(settings[i], &err);
            assert_true(s == BELL_OK || err.text[0]);
            if (fake.calls < n)
                break;
        }
    for (int i = 0; i < 3; i++) {
        struct bell_error err;
        (void)start(NULL);
        lib.has_no_target = i == 0;
        lib.has_no_numbers = i == 1;
        lib.is_down = i == 2;
        assert_true(run(settings[1], &err) != BELL_OK);
        assert_non_null(strstr(err.text, i == 0 ? "no DC target" : i == 1 ? "no protection domain" : "is not active"));
    }
}

static void test_dmabuf_mr(void **state)
{
    void *device, *pd, *mr;
    uint32_t number, lkey, rkey;
    uint8_t memory[64];
    struct bell_error err;
    struct bell_mlx5_extent extent = { (uint64_t)(uintptr_t)memory, sizeof memory, memfd_create("memory", 0) };
    (void)state;
    assert_int_equal(ftruncate(extent.dmabuf_fd, sizeof memory), 0);
    assert_int_equal(bell_mlx5_library.open(NULL, "mlx5_2", &device, &err), BELL_OK);
    assert_string_equal(bell_mlx5_library.name(device), "mlx5_2");
    assert_int_equal(bell_mlx5_library.pd_alloc(device, &pd, &number), 0);
    assert_int_equal(bell_mlx5_library.mr_register(pd, &extent, &mr, &lkey, &rkey), 0);
    assert_true(lkey != rkey && lkey && rkey);
    assert_int_equal(fake.mr_by_dmabuf, 1);
    (void)close(extent.dmabuf_fd);
    assert_int_equal(bell_mlx5_library.mr_release(mr), 0);
    assert_int_equal(bell_mlx5_library.pd_free(pd), 0);
    bell_mlx5_library.close(device);
    assert_int_equal(fake_left(&fake), 0);
}

/* The sentence that `bellwether run --on mlx5` prints where it cannot run. */
static void test_open_refused(void **state)
{
    static const struct {
        const char *name;
        int devices;
        uint32_t mlx5;
        bool is_locked;
        const char *text;
    } rows[] = {
        { "", 0, 0, false, "executor mlx5: there is no RDMA device here" },
        { "mlx5_0", 0, 0, false, "executor mlx5: there is no RDMA device here" },
        { "", 3, 0, false, "executor mlx5: none of the RDMA devices here is an mlx5 device: irdma_0, mlx5_1, mlx5_2" },
        { "irdma_0", 3, 6, false, "executor mlx5: irdma_0 is not an mlx5 device" },
        { "mlx5_7", 2, 2, false, "executor mlx5: there is no RDMA device mlx5_7 here; there are: irdma_0, mlx5_1" },
        { "", 3, 6, true, "executor mlx5: mlx5_1 cannot be opened with DevX: Operation not permitted" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bell_error err;
        void *device;
        lib.devices = rows[i].devices;
        lib.mlx5 = rows[i].mlx5;
        lib.is_locked = rows[i].is_locked;
        assert_int_equal(bell_mlx5_library.open(NULL, rows[i].name, &device, &err), BELL_UNSUPPORTED);
        assert_string_equal(err.text, rows[i].text);
    }
    struct bell_error err;
    lib.is_locked = false;
    assert_int_equal(bell_mlx5_executor.probe(&err), BELL_OK);
    lib.devices = 0;
    assert_int_equal(bell_mlx5_executor.probe(&err), BELL_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_runs, start),
        cmocka_unit_test_setup(test_each_call_fails, start),
        cmocka_unit_test_setup(test_dmabuf_mr, start),
        cmocka_unit_test_setup(test_open_refused, start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
    (void)printf("skipped: this build has no libmlx5\n");
    return 77;
}
#endif
