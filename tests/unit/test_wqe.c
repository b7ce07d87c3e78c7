/* SPDX-License-Identifier: Apache-2.0
 * WQEs: golden bytes, sizes, the mlx5dv helpers as an oracle (when BELL_HAVE_MLX5DV is defined), build and decode as
 * inverses, malformed input, doorbells across the 16-bit wrap. */
#include "core/wqe.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#ifdef BELL_HAVE_MLX5DV
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#include <infiniband/mlx5dv.h>
#pragma GCC diagnostic pop
#endif

static const uint32_t opcodes[] = { BELL_WQE_NOP,       BELL_WQE_WRITE,     BELL_WQE_WRITE_IMM, BELL_WQE_SEND,
                                    BELL_WQE_SEND_IMM,  BELL_WQE_READ,      BELL_WQE_ATOMIC_CS, BELL_WQE_ATOMIC_FA,
                                    BELL_WQE_MASKED_CS, BELL_WQE_MASKED_FA, BELL_WQE_DUMP };
#define OPCODES (sizeof opcodes / sizeof opcodes[0])

static uint8_t payload[BELL_WQE_INLINE_MAX + 36];

/* A pointer request of an opcode with every field that has a place filled in. */
static struct bell_wqe_request request_of(uint32_t opcode, uint32_t bytes)
{
    struct bell_wqe_request r;
    memset(&r, 0, sizeof r);
    r.opcode = opcode;
    r.index = 0x1234;
    r.qpn = 0xabcdef;
    r.fm_ce_se = BELL_WQE_CE_ALWAYS;
    r.raddr = 0x1122334455667788;
    r.rkey = 0xcafe0001;
    r.laddr = 0x99aabbccddeeff00;
    r.lkey = 0xbeef0002;
    r.bytes = bytes;
    return r;
}

static void set_av(struct bell_wqe_request *r, bool full)
{
    r->is_dc = true;
    r->av.dc_key = 0x0102030405060708;
    r->av.dqp_dct = 0x00c0de11 & BELL_QPN_MAX;
    r->av.stat_rate_sl = 0x21;
    r->av.fl_mlid = 0x32;
    r->av.rlid = 0x4354;
    if (!full)
        return;
    r->av.full = true;
    for (uint8_t i = 0; i < 6; i++)
        r->av.rmac[i] = (uint8_t)(0xa0 + i);
    r->av.tclass = 0x65;
    r->av.hop_limit = 0x40;
    r->av.grh_gid_fl = 0x50012345;
    for (uint8_t i = 0; i < 16; i++)
        r->av.rgid[i] = (uint8_t)(0xd0 + i);
}

static void set_atomic(struct bell_wqe_request *r)
{
    bool half = r->opmod == BELL_WQE_OPMOD_MASKED_4;
    uint64_t keep = half ? 0xffffffff : UINT64_MAX;
    r->bytes = half ? 4 : 8;
    r->atomic.swap_or_add = 0x0123456789abcdef & keep;
    if (r->opcode == BELL_WQE_ATOMIC_CS || r->opcode == BELL_WQE_MASKED_CS)
        r->atomic.compare = 0xfedcba9876543210 & keep;
    if (r->opcode == BELL_WQE_MASKED_CS) {
        r->atomic.swap_mask = 0xff00ff00f0f0f0f0 & keep;
        r->atomic.compare_mask = 0x00ff00ff0f0f0f0f & keep;
    }
    if (r->opcode == BELL_WQE_MASKED_FA)
        r->atomic.field_boundary = 0x8000000080000001 & keep;
}

static void test_golden(void **state)
{
    static const uint8_t golden[48] = { 0x00, 0x12, 0x34, 0x08, 0xab, 0xcd, 0xef, 0x03, 0x00, 0x00, 0x00, 0x08,
                                        0x00, 0x00, 0x00, 0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
                                        0xca, 0xfe, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10, 0x00,
                                        0xbe, 0xef, 0x00, 0x02, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff, 0x00 };
    static const uint8_t doorbell[8] = { 0x00, 0x12, 0x35, 0x00, 0xab, 0xcd, 0xef, 0x00 };
    static const uint8_t dbrec[4] = { 0x00, 0x00, 0x12, 0x35 };
    static const uint8_t zero[16];
    struct bell_wqe_request r = request_of(BELL_WQE_WRITE, 4096);
    struct bell_wqe wqe;
    (void)state;
    memset(&wqe, 0xee, sizeof wqe);
    assert_int_equal(bell_wqe_build(&wqe, &r), BELL_OK);
    assert_memory_equal(wqe.bytes, golden, sizeof golden);
    assert_memory_equal(wqe.bytes + 48, zero, 16);
    assert_int_equal(wqe.bytes[64], 0xee);
    uint64_t bell = bell_wqe_doorbell(r.qpn, 0x1235);
    uint32_t rec = bell_dbrec_value(0x1235);
    assert_memory_equal(&bell, doorbell, sizeof doorbell);
    assert_memory_equal(&rec, dbrec, sizeof dbrec);
    bell = bell_wqe_doorbell_ctrl(&wqe);
    assert_memory_equal(&bell, golden, 8);
    assert_int_equal(bell_doorbell_index(bell), 0x1234);
}

/* Masked atomics have no helper in mlx5dv.h; their bytes are written out by hand. */
static void test_golden_masked(void **state)
{
    static const uint8_t cs4[16] = { 0x89, 0xab, 0xcd, 0xef, 0x76, 0x54, 0x32, 0x10,
                                     0xf0, 0xf0, 0xf0, 0xf0, 0x0f, 0x0f, 0x0f, 0x0f };
    static const uint8_t cs8[32] = { 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xfe, 0xdc, 0xba,
                                     0x98, 0x76, 0x54, 0x32, 0x10, 0xff, 0x00, 0xff, 0x00, 0xf0, 0xf0,
                                     0xf0, 0xf0, 0x00, 0xff, 0x00, 0xff, 0x0f, 0x0f, 0x0f, 0x0f };
    static const uint8_t fa4[16] = { 0x89, 0xab, 0xcd, 0xef, 0x80, 0x00, 0x00, 0x01 };
    static const uint8_t fa8[16] = { 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
                                     0x80, 0x00, 0x00, 0x00, 0x80, 0x00, 0x00, 0x01 };
    static const struct {
        uint32_t opcode, opmod, ds;
        const uint8_t *bytes;
        size_t size;
    } rows[] = { { BELL_WQE_MASKED_CS, BELL_WQE_OPMOD_MASKED_4, 4, cs4, sizeof cs4 },
                 { BELL_WQE_MASKED_CS, BELL_WQE_OPMOD_MASKED_8, 5, cs8, sizeof cs8 },
                 { BELL_WQE_MASKED_FA, BELL_WQE_OPMOD_MASKED_4, 4, fa4, sizeof fa4 },
                 { BELL_WQE_MASKED_FA, BELL_WQE_OPMOD_MASKED_8, 4, fa8, sizeof fa8 } };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bell_wqe_request r = request_of(rows[i].opcode, 0);
        struct bell_wqe wqe;
        r.opmod = rows[i].opmod;
        set_atomic(&r);
        assert_int_equal(bell_wqe_build(&wqe, &r), BELL_OK);
        assert_int_equal(bell_wqe_ds(&r), rows[i].ds);
        assert_int_equal(wqe.bytes[0], rows[i].opmod);
        assert_memory_equal(wqe.bytes + 32, rows[i].bytes, rows[i].size);
    }
}

static void test_sizes(void **state)
{
    (void)state;
    for (int av = 0; av < 3; av++) {
        uint32_t head = av == 0 ? 2 : av == 1 ? 3 : 5;
        for (uint32_t n = 0; n <= BELL_WQE_INLINE_MAX + 1; n++) {
            struct bell_wqe_request r = request_of(BELL_WQE_WRITE, n);
            struct bell_wqe wqe;
            if (av)
                set_av(&r, av == 2);
            assert_int_equal(bell_wqe_ds(&r), head + (n > 0));
            assert_int_equal(bell_wqe_build(&wqe, &r), BELL_OK);
            r.inline_data = payload;
            uint32_t ds = n ? head + (4 + n + 15) / 16 : head; /* an empty inline request emits no segment */
            bool fits = n <= BELL_WQE_INLINE_MAX && ds <= 16;
            assert_int_equal(bell_wqe_ds(&r), ds);
            assert_int_equal(bell_wqe_build(&wqe, &r), fits ? BELL_OK : BELL_INVALID);
            if (fits)
                assert_int_equal(wqe.bytes[7], ds);
        }
    }
    struct bell_wqe_request r = request_of(BELL_WQE_NOP, 0);
    assert_int_equal(bell_wqe_ds(&r), 1);
    r = request_of(BELL_WQE_READ, 64);
    assert_int_equal(bell_wqe_ds(&r), 3);
    r = request_of(BELL_WQE_ATOMIC_FA, 8);
    assert_int_equal(bell_wqe_ds(&r), 4);
    r = request_of(BELL_WQE_DUMP, 8);
    assert_int_equal(bell_wqe_ds(&r), 2);
    r = request_of(BELL_WQE_WRITE, 8);
    set_av(&r, true);
    assert_int_equal(bell_wqe_blocks(bell_wqe_ds(&r)), 2);
    r = request_of(BELL_WQE_WRITE, 92);
    r.inline_data = payload;
    assert_int_equal(bell_wqe_ds(&r), 8);
    assert_int_equal(bell_wqe_blocks(8), 2);
    static const uint32_t blocks[] = { 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5 };
    for (uint32_t ds = 0; ds < sizeof blocks / sizeof blocks[0]; ds++)
        assert_int_equal(bell_wqe_blocks(ds), blocks[ds]);
}

#ifdef BELL_HAVE_MLX5DV
/* The same request, written with rdma-core's helpers. */
static void build_with_mlx5dv(uint8_t *out, const struct bell_wqe_request *r, uint8_t ds)
{
    struct mlx5_wqe_ctrl_seg ctrl;
    memset(&ctrl, 0, sizeof ctrl);
    mlx5dv_set_ctrl_seg(&ctrl, (uint16_t)r->index, (uint8_t)r->opcode, (uint8_t)r->opmod, r->qpn,
                        (uint8_t)r->fm_ce_se, ds, 0, r->imm_be);
    memcpy(out, &ctrl, sizeof ctrl);
    out += sizeof ctrl;
    if (r->is_dc) {
        struct mlx5_wqe_datagram_seg av;
        struct bell_av a = r->av;
        memset(&av, 0, sizeof av);
        mlx5dv_set_dgram_seg(&av, a.dc_key, a.dqp_dct, a.full, a.stat_rate_sl, a.fl_mlid, a.rlid, a.rmac, a.tclass,
                             a.hop_limit, a.grh_gid_fl, a.rgid);
        memcpy(out, &av, a.full ? 48 : 16);
        out += a.full ? 48 : 16;
    }
    if (r->opcode != BELL_WQE_NOP && r->opcode != BELL_WQE_SEND && r->opcode != BELL_WQE_SEND_IMM) {
        struct mlx5_wqe_raddr_seg raddr = { htobe64(r->raddr), htobe32(r->rkey), 0 };
        memcpy(out, &raddr, sizeof raddr);
        out += sizeof raddr;
    }
    if (r->opcode == BELL_WQE_ATOMIC_CS || r->opcode == BELL_WQE_ATOMIC_FA) {
        struct mlx5_wqe_atomic_seg atomic = { htobe64(r->atomic.swap_or_add), htobe64(r->atomic.compare) };
        memcpy(out, &atomic, sizeof atomic);
        out += sizeof atomic;
    }
    if (r->opcode == BELL_WQE_NOP)
        return;
    if (r->inline_data) {
        struct mlx5_wqe_inl_data_seg head = { htobe32(MLX5_INLINE_SEG | r->bytes) };
        memcpy(out, &head, sizeof head);
        memcpy(out + sizeof head, r->inline_data, r->bytes);
    } else {
        struct mlx5_wqe_data_seg data;
        mlx5dv_set_data_seg(&data, r->bytes, r->lkey, (uintptr_t)r->laddr);
        memcpy(out, &data, sizeof data);
    }
}

static void test_mlx5dv(void **state)
{
    static const struct {
        uint32_t opcode, bytes;
        uint8_t ds; /* on RC */
        bool is_inline;
    } rows[] = { { MLX5_OPCODE_RDMA_WRITE, 4096, 3, false },  { MLX5_OPCODE_RDMA_WRITE, 28, 4, true },
                 { MLX5_OPCODE_RDMA_WRITE, 92, 8, true },     { MLX5_OPCODE_RDMA_WRITE_IMM, 1u << 30, 3, false },
                 { MLX5_OPCODE_SEND, 77, 2, false },          { MLX5_OPCODE_SEND_IMM, 77, 2, false },
                 { MLX5_OPCODE_RDMA_READ, 4096, 3, false },   { MLX5_OPCODE_ATOMIC_CS, 8, 4, false },
                 { MLX5_OPCODE_ATOMIC_FA, 8, 4, false },      { MLX5_OPCODE_NOP, 0, 1, false } };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int av = 0; av < 3; av++) {
            struct bell_wqe_request r = request_of(rows[i].opcode, rows[i].bytes);
            uint8_t expected[BELL_WQE_BYTES_MAX] = { 0 }, ds = rows[i].ds;
            struct bell_wqe wqe;
            if (av && rows[i].opcode == BELL_WQE_NOP)
                continue;
            if (av)
                set_av(&r, av == 2);
            ds = (uint8_t)(ds + (av == 0 ? 0 : av == 1 ? 1 : 3));
            if (bell_wqe_has_imm(r.opcode))
                r.imm_be = 0x11223344;
            if (bell_wqe_is_atomic(r.opcode))
                set_atomic(&r);
            if (rows[i].is_inline)
                r.inline_data = payload;
            r.fm_ce_se |= BELL_WQE_SOLICITED | BELL_WQE_FENCE_MODE_4;
            assert_int_equal(r.fm_ce_se,
                             MLX5_WQE_CTRL_CQ_UPDATE | MLX5_WQE_CTRL_SOLICITED | MLX5_WQE_CTRL_FENCE);
            memset(&wqe, 0, sizeof wqe);
            assert_int_equal(bell_wqe_build(&wqe, &r), BELL_OK);
            build_with_mlx5dv(expected, &r, ds);
            assert_memory_equal(wqe.bytes, expected, sizeof expected);
        }
    }
}
#else
static void test_mlx5dv(void **state)
{
    (void)state;
    print_message("infiniband/mlx5dv.h is not there: nothing compared with rdma-core\n");
    skip();
}
#endif

static void assert_same_av(const struct bell_av *a, const struct bell_av *b)
{
    assert_int_equal(a->dc_key, b->dc_key);
    assert_int_equal(a->dqp_dct, b->dqp_dct);
    assert_int_equal(a->stat_rate_sl, b->stat_rate_sl);
    assert_int_equal(a->fl_mlid, b->fl_mlid);
    assert_int_equal(a->rlid, b->rlid);
    assert_int_equal(a->full, b->full);
    assert_memory_equal(a->rmac, b->rmac, sizeof a->rmac);
    assert_int_equal(a->tclass, b->tclass);
    assert_int_equal(a->hop_limit, b->hop_limit);
    assert_int_equal(a->grh_gid_fl, b->grh_gid_fl);
    assert_memory_equal(a->rgid, b->rgid, sizeof a->rgid);
}

/* Build, decode, compare.  The WQE's bytes stand in a heap block of exactly ds * 16, so that a sanitizer sees reads
 * past the end. */
static void assert_round_trip(const struct bell_wqe_request *r)
{
    struct bell_wqe wqe;
    struct bell_wqe_view v;
    uint32_t ds = bell_wqe_ds(r), op = r->opcode;
    memset(&wqe, 0xee, sizeof wqe);
    assert_int_equal(bell_wqe_build(&wqe, r), BELL_OK);
    for (uint32_t i = bell_wqe_blocks(ds) * 64; i < sizeof wqe; i++)
        assert_int_equal(wqe.bytes[i], 0xee);
    uint8_t *copy = test_malloc(ds * 16);
    memcpy(copy, wqe.bytes, ds * 16);
    copy[8] = 0x5a; /* signature and stream id are ignored */
    copy[9] = 0xa5;
    assert_int_equal(bell_wqe_decode_ctrl(copy, &v), BELL_OK);
    assert_int_equal(v.ds, ds);
    assert_int_equal(v.blocks, bell_wqe_blocks(ds));
    assert_int_equal(bell_wqe_decode(copy, r->is_dc, &v), BELL_OK);
    assert_int_equal(v.opcode, op);
    assert_int_equal(v.opmod, r->opmod);
    assert_int_equal(v.index16, r->index & 0xffff);
    assert_int_equal(v.qpn, r->qpn);
    assert_int_equal(v.fm_ce_se, r->fm_ce_se);
    assert_int_equal(v.is_dc, r->is_dc);
    assert_int_equal(v.imm_be, bell_wqe_has_imm(op) ? r->imm_be : 0);
    if (r->is_dc && bell_wqe_has_av(op))
        assert_same_av(&v.av, &r->av);
    assert_int_equal(v.raddr, bell_wqe_has_raddr(op) ? r->raddr : 0);
    assert_int_equal(v.rkey, bell_wqe_has_raddr(op) ? r->rkey : 0);
    assert_int_equal(v.swap_or_add, r->atomic.swap_or_add);
    assert_int_equal(v.compare, r->atomic.compare);
    assert_int_equal(v.swap_mask, r->atomic.swap_mask);
    assert_int_equal(v.compare_mask, r->atomic.compare_mask);
    assert_int_equal(v.field_boundary, r->atomic.field_boundary);
    assert_int_equal(v.bytes, op == BELL_WQE_NOP ? 0 : r->bytes);
    bool has_pointer = v.bytes && !r->inline_data;
    assert_int_equal(v.has_inline, v.bytes && r->inline_data);
    assert_int_equal(v.laddr, has_pointer ? r->laddr : 0);
    assert_int_equal(v.lkey, has_pointer ? r->lkey : 0);
    if (v.has_inline)
        assert_memory_equal(copy + v.inline_offset, r->inline_data, v.bytes);
    test_free(copy);
}

static void test_round_trip(void **state)
{
    static const uint32_t lengths[] = { 0, 1, 8, 64, 4096, 1u << 30, BELL_WQE_DATA_MAX };
    (void)state;
    for (size_t o = 0; o < OPCODES; o++) {
        for (int av = 0; av < 3; av++) {
            struct bell_wqe_request r = request_of(opcodes[o], 0);
            r.imm_be = 0x44332211;
            if (av)
                set_av(&r, av == 2);
            if (bell_wqe_is_atomic(r.opcode)) {
                bool masked = bell_wqe_is_masked(r.opcode);
                for (uint32_t opmod = masked ? 8 : 0; opmod <= (masked ? 9u : 0u); opmod++) {
                    r.opmod = opmod;
                    set_atomic(&r);
                    assert_round_trip(&r);
                }
                continue;
            }
            for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
                r.bytes = lengths[i];
                if (r.bytes || r.opcode != BELL_WQE_DUMP)
                    assert_round_trip(&r);
            }
            r.inline_data = payload;
            for (uint32_t n = 0; bell_wqe_may_inline(r.opcode) && n <= BELL_WQE_INLINE_MAX; n++) {
                r.bytes = n;
                if (bell_wqe_ds(&r) <= BELL_WQE_DS_MAX)
                    assert_round_trip(&r);
            }
        }
    }
}

static void test_index_wrap(void **state)
{
    static const uint64_t indices[] = { 0, 1, 0xfffe, 0xffff, 0x10000, 0x10001, 0x1ffff, UINT64_MAX };
    (void)state;
    for (size_t i = 0; i < sizeof indices / sizeof indices[0]; i++) {
        struct bell_wqe_request r = request_of(BELL_WQE_WRITE, 64);
        struct bell_wqe wqe;
        r.index = indices[i];
        assert_round_trip(&r);
        assert_int_equal(bell_wqe_build(&wqe, &r), BELL_OK);
        assert_int_equal(wqe.bytes[0], 0); /* opmod is not reached by index bits 23..16 */
        assert_int_equal(bell_doorbell_index(bell_wqe_doorbell_ctrl(&wqe)), indices[i] & 0xffff);
        assert_int_equal(bell_doorbell_index(bell_wqe_doorbell(r.qpn, indices[i])), indices[i] & 0xffff);
        assert_int_equal(bell_doorbell_qpn(bell_wqe_doorbell(r.qpn, indices[i])), r.qpn);
        assert_int_equal(bell_dbrec_index(bell_dbrec_value(indices[i])), indices[i] & 0xffff);
    }
    static const uint8_t unmasked[8] = { 0x01, 0x00, 0x05, 0x00, 0x00, 0x00, 0x09, 0x00 };
    uint64_t doorbell; /* DOCA does not mask the index */
    memcpy(&doorbell, unmasked, sizeof doorbell);
    assert_int_equal(bell_doorbell_index(doorbell), 5);
    assert_int_equal(bell_doorbell_qpn(doorbell), 9);
}

static void assert_refused(const struct bell_wqe_request *r)
{
    struct bell_wqe wqe;
    memset(&wqe, 0xee, sizeof wqe);
    assert_int_equal(bell_wqe_build(&wqe, r), BELL_INVALID);
    for (size_t i = 0; i < sizeof wqe; i++)
        assert_int_equal(wqe.bytes[i], 0xee);
}

static void test_build_refuses(void **state)
{
    struct bell_wqe_request r;
    (void)state;
    for (uint32_t op = 0; op < 0x200; op++) {
        bool known = false;
        for (size_t o = 0; o < OPCODES; o++)
            known = known || opcodes[o] == op;
        r = request_of(op, 64);
        if (!known)
            assert_refused(&r);
    }
#define REFUSE(opcode, bytes, change) (r = request_of(opcode, bytes), change, assert_refused(&r))
    REFUSE(BELL_WQE_WRITE, 64, r.qpn = 0x1000000);
    REFUSE(BELL_WQE_WRITE, 64, r.fm_ce_se = 0x100);
    REFUSE(BELL_WQE_WRITE, 64, r.opmod = 1);
    REFUSE(BELL_WQE_WRITE, 0x80000000, r.inline_data = NULL);
    REFUSE(BELL_WQE_WRITE, 221, r.inline_data = payload);
    REFUSE(BELL_WQE_SEND, 221, r.inline_data = payload);
    REFUSE(BELL_WQE_WRITE, 0xffffffff, r.inline_data = payload);
    REFUSE(BELL_WQE_READ, 8, r.inline_data = payload);
    REFUSE(BELL_WQE_DUMP, 8, r.inline_data = payload);
    REFUSE(BELL_WQE_DUMP, 0, r.inline_data = NULL);
    REFUSE(BELL_WQE_ATOMIC_FA, 8, r.inline_data = payload);
    REFUSE(BELL_WQE_ATOMIC_FA, 4, r.opmod = 0);
    REFUSE(BELL_WQE_ATOMIC_CS, 8, r.opmod = BELL_WQE_OPMOD_MASKED_8);
    REFUSE(BELL_WQE_MASKED_CS, 8, r.opmod = 0);
    REFUSE(BELL_WQE_MASKED_CS, 8, r.opmod = BELL_WQE_OPMOD_MASKED_4);
    REFUSE(BELL_WQE_MASKED_FA, 8, r.opmod = 0x108);
    REFUSE(BELL_WQE_MASKED_FA, 4, (r.opmod = BELL_WQE_OPMOD_MASKED_4, r.atomic.swap_or_add = 0x100000000));
    REFUSE(BELL_WQE_WRITE, 173, (set_av(&r, true), r.inline_data = payload));
    REFUSE(BELL_WQE_WRITE, 205, (set_av(&r, false), r.inline_data = payload));
    REFUSE(BELL_WQE_WRITE, 64, (set_av(&r, false), r.av.dqp_dct = 0x1000000));
#undef REFUSE
}

/* Each row is a WQE of `ds` units, all zero but for its control segment and up to two words. */
static void test_decode_refuses(void **state)
{
    static const struct {
        const char *what;
        uint8_t opcode, opmod, ds;
        bool is_dc;
        uint32_t at, word; /* one word stored at a byte offset; 0: none */
        uint32_t at2, word2;
        enum bell_status status;
    } rows[] = {
        { "ds 0", BELL_WQE_NOP, 0, 0, false, 0, 0, 0, 0, BELL_INVALID },
        { "ds 17", BELL_WQE_WRITE, 0, 17, false, 0, 0, 0, 0, BELL_OK },
        { "ds 63", BELL_WQE_WRITE, 0, 63, false, 0, 0, 0, 0, BELL_OK },
        { "ds 63, inline to the end", BELL_WQE_WRITE, 0, 63, false, 32, 0x80000000 | (61 * 16 - 4), 0, 0, BELL_OK },
        { "ds 63, inline past it", BELL_WQE_WRITE, 0, 63, false, 32, 0x80000000 | (61 * 16 - 3), 0, 0, BELL_INVALID },
        { "opcode 0xff", 0xff, 0, 1, false, 0, 0, 0, 0, BELL_INVALID },
        { "nop of 1", BELL_WQE_NOP, 0, 1, true, 0, 0, 0, 0, BELL_OK },
        { "nop of 2", BELL_WQE_NOP, 0, 2, false, 0, 0, 0, 0, BELL_OK },
        { "nop of 3", BELL_WQE_NOP, 0, 3, false, 0, 0, 0, 0, BELL_INVALID },
        { "write without raddr", BELL_WQE_WRITE, 0, 1, false, 0, 0, 0, 0, BELL_INVALID },
        { "write without data", BELL_WQE_WRITE, 0, 2, false, 0, 0, 0, 0, BELL_OK },
        { "dc send without av", BELL_WQE_SEND, 0, 1, true, 0, 0, 0, 0, BELL_INVALID },
        { "dc write without raddr", BELL_WQE_WRITE, 0, 2, true, 0, 0, 0, 0, BELL_INVALID },
        { "full av cut", BELL_WQE_SEND, 0, 3, true, 24, 0x80000001, 0, 0, BELL_INVALID },
        { "full av, no raddr", BELL_WQE_WRITE, 0, 4, true, 24, 0x80000001, 0, 0, BELL_INVALID },
        { "full av, raddr", BELL_WQE_WRITE, 0, 5, true, 24, 0x80000001, 0, 0, BELL_OK },
        { "inline past the end", BELL_WQE_WRITE, 0, 3, false, 32, 0x8000000d, 0, 0, BELL_INVALID },
        { "inline to the end", BELL_WQE_WRITE, 0, 3, false, 32, 0x8000000c, 0, 0, BELL_OK },
        { "inline over what is built", BELL_WQE_SEND, 0, 16, false, 16, 0x800000dd, 0, 0, BELL_OK },
        { "inline of 31 bits", BELL_WQE_WRITE, 0, 16, false, 32, 0xffffffff, 0, 0, BELL_INVALID },
        { "inline read", BELL_WQE_READ, 0, 3, false, 32, 0x80000004, 0, 0, BELL_INVALID },
        { "empty inline read", BELL_WQE_READ, 0, 3, false, 32, 0x80000000, 0, 0, BELL_INVALID },
        { "empty inline, then pointer", BELL_WQE_WRITE, 0, 4, false, 32, 0x80000000, 48, 64, BELL_OK },
        { "empty pointer, then pointer", BELL_WQE_WRITE, 0, 4, false, 48, 64, 0, 0, BELL_OK },
        { "two pointers", BELL_WQE_WRITE, 0, 4, false, 32, 64, 48, 64, BELL_OK },
        { "pointer and inline", BELL_WQE_WRITE, 0, 4, false, 32, 64, 48, 0x80000004, BELL_OK },
        { "2^31 bytes in two", BELL_WQE_WRITE, 0, 4, false, 32, 0x7fffffff, 48, 1, BELL_INVALID },
        { "atomic of 4 and 4", BELL_WQE_ATOMIC_FA, 0, 5, false, 48, 4, 64, 4, BELL_INVALID },
        { "wait", BELL_WQE_WAIT, 0, 2, false, 0, 0, 0, 0, BELL_INVALID },
        { "atomic without data", BELL_WQE_ATOMIC_FA, 0, 3, false, 0, 0, 0, 0, BELL_INVALID },
        { "atomic without atomic", BELL_WQE_ATOMIC_CS, 0, 2, false, 0, 0, 0, 0, BELL_INVALID },
        { "atomic of 4", BELL_WQE_ATOMIC_CS, 0, 4, false, 48, 4, 0, 0, BELL_INVALID },
        { "atomic of 8", BELL_WQE_ATOMIC_CS, 0, 4, false, 48, 8, 0, 0, BELL_OK },
        { "atomic with opmod", BELL_WQE_ATOMIC_CS, 9, 4, false, 48, 8, 0, 0, BELL_INVALID },
        { "masked, unknown opmod", BELL_WQE_MASKED_FA, 7, 4, false, 48, 8, 0, 0, BELL_INVALID },
        { "masked cs 8, masks missing", BELL_WQE_MASKED_CS, 9, 4, false, 48, 8, 0, 0, BELL_INVALID },
        { "masked cs 8", BELL_WQE_MASKED_CS, 9, 5, false, 64, 8, 0, 0, BELL_OK },
        { "dump without data", BELL_WQE_DUMP, 0, 1, false, 0, 0, 0, 0, BELL_INVALID },
        { "dump of nothing", BELL_WQE_DUMP, 0, 2, false, 0, 0, 0, 0, BELL_INVALID },
        { "dump", BELL_WQE_DUMP, 0, 2, true, 16, 8, 0, 0, BELL_OK },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t bytes[BELL_WQE_READ_BYTES_MAX] = { 0 };
        struct bell_wqe_view v, before;
        bell_store_be32(bytes, (uint32_t)rows[i].opmod << 24 | rows[i].opcode);
        bell_store_be32(bytes + 4, 0x123400u | rows[i].ds);
        if (rows[i].at)
            bell_store_be32(bytes + rows[i].at, rows[i].word);
        if (rows[i].at2)
            bell_store_be32(bytes + rows[i].at2, rows[i].word2);
        memset(&v, 0xee, sizeof v);
        before = v;
        enum bell_status s = bell_wqe_decode(bytes, rows[i].is_dc, &v);
        if (s != rows[i].status)
            fail_msg("%s: %d", rows[i].what, (int)s);
        if (s != BELL_OK)
            assert_memory_equal(&v, &before, sizeof v);
        (void)bell_wqe_decode_ctrl(bytes, &v); /* fills the control fields in any case */
        assert_int_equal(v.opcode, rows[i].opcode);
        assert_int_equal(v.qpn, 0x1234);
    }
}

/* Both conventions, and bytes that the NIC must not look at. */
static void test_doorbell_producer(void **state)
{
    static const struct {
        uint8_t bytes[8];
        uint32_t producer;
    } rows[] = {
        { { 0, 0x12, 0x35, 0, 0xab, 0xcd, 0xef, 0 }, 0x1235 },         /* DOCA, NVSHMEM: the producer index */
        { { 0xff, 0x12, 0x35, 0xff, 0xab, 0xcd, 0xef, 0 }, 0x1235 },   /* producer bits 23..16 in opmod */
        { { 0, 0x12, 0x34, 8, 0xab, 0xcd, 0xef, 3 }, 0x1235 },         /* rdma-core: the last WQE's first words */
        { { 0, 0x12, 0x34, 8, 0xab, 0xcd, 0xef, 4 }, 0x1235 },         /* one block holds ds 4 */
        { { 0, 0x12, 0x34, 8, 0xab, 0xcd, 0xef, 5 }, 0x1236 },         /* ds 5 takes two */
        { { 9, 0xff, 0xff, 0x14, 0xab, 0xcd, 0xef, 5 }, 1 },           /* over the wrap */
        { { 0, 0xff, 0xf8, 8, 0xab, 0xcd, 0xef, 63 }, 8 },             /* 16 blocks */
        { { 0, 0xff, 0xff, 0, 0xab, 0xcd, 0xef, 0xc1 }, 0 },           /* six bits of ds count */
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t value;
        memcpy(&value, rows[i].bytes, sizeof value);
        if (bell_doorbell_producer(value) != rows[i].producer)
            fail_msg("row %zu: 0x%x", i, bell_doorbell_producer(value));
    }
}

/* A pointer, an empty one, inline data, a pointer: read in this order. */
static void test_pieces(void **state)
{
    uint8_t bytes[BELL_WQE_READ_BYTES_MAX] = { 0 };
    struct bell_wqe_view v;
    struct bell_wqe_piece p;
    (void)state;
    bell_store_be32(bytes, BELL_WQE_WRITE);
    bell_store_be32(bytes + 4, 7);
    bell_store_be32(bytes + 32, 100);
    bell_store_be32(bytes + 36, 0xa1);
    bell_store_be64(bytes + 40, 0x1111);
    bell_store_be32(bytes + 64, BELL_WQE_INLINE_BIT | 9);
    bell_store_be32(bytes + 112, 1); /* behind the WQE */
    assert_int_equal(bell_wqe_decode(bytes, false, &v), BELL_OK);
    assert_int_equal(v.bytes, 109);
    assert_int_equal(v.pieces, 2);
    assert_int_equal(v.data_offset, 32);
    assert_true(v.lkey == 0xa1 && v.laddr == 0x1111 && !v.has_inline);
    uint32_t at = v.data_offset, end = v.ds * BELL_WQE_SEGMENT_BYTES;
    assert_true(bell_wqe_next_piece(bytes, &at, end, &p) && at == 48 && p.bytes == 100 && p.lkey == 0xa1);
    assert_true(bell_wqe_next_piece(bytes, &at, end, &p) && at == 64 && p.bytes == 0);
    assert_true(bell_wqe_next_piece(bytes, &at, end, &p) && at == 80 && p.is_inline && p.inline_offset == 68);
    assert_int_equal(p.bytes, 9);
    assert_true(bell_wqe_next_piece(bytes, &at, end, &p) && at == 96 && p.bytes == 0);
    assert_true(at < end); /* one more, empty */
}

static int fill_payload(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof payload; i++)
        payload[i] = (uint8_t)(i * 7 + 1);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),        cmocka_unit_test(test_golden_masked), cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_mlx5dv),        cmocka_unit_test(test_round_trip),    cmocka_unit_test(test_index_wrap),
        cmocka_unit_test(test_build_refuses), cmocka_unit_test(test_decode_refuses),
        cmocka_unit_test(test_doorbell_producer), cmocka_unit_test(test_pieces),
    };
    return cmocka_run_group_tests(tests, fill_payload, NULL);
}
