/* SPDX-License-Identifier: Apache-2.0
 * CQEs: golden bytes, layout against mlx5dv.h (when BELL_HAVE_MLX5DV is defined), owner bit over laps, 16-bit counter
 * arithmetic. */
#include "core/cqe.h"

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

static void test_golden(void **state)
{
    static const uint8_t ok_tail[20] = { 0x00, 0x00, 0x10, 0x00, 0, 0, 0, 0, 0, 0, 0, 0, 0x08, 0xab, 0xcd, 0xef,
                                         0x12, 0x34, 0x00, 0x01 };
    static const uint8_t error_tail[20] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x77, 0x13, 0x10, 0xab, 0xcd, 0xef,
                                            0xff, 0xfe, 0x00, 0xd0 };
    static const uint8_t zero[44];
    struct bell_cqe cqe;
    (void)state;
    memset(&cqe, 0xee, sizeof cqe);
    bell_cqe_build_ok(&cqe, 0x08, 0xabcdef, 0x1234, 4096, 1);
    assert_memory_equal(&cqe, zero, sizeof zero);
    assert_memory_equal((const uint8_t *)&cqe + 44, ok_tail, sizeof ok_tail);
    memset(&cqe, 0xee, sizeof cqe);
    bell_cqe_build_error(&cqe, BELL_SYNDROME_REMOTE_ACCESS, 0x77, 0xabcdef, 0x10, 0xfffe, 0);
    assert_memory_equal(&cqe, zero, sizeof zero);
    assert_memory_equal((const uint8_t *)&cqe + 44, error_tail, sizeof error_tail);
    assert_int_equal(cqe.syndrome, BELL_SYNDROME_REMOTE_ACCESS);
}

#ifdef BELL_HAVE_MLX5DV
static void test_mlx5dv(void **state)
{
    (void)state;
#define SAME(ours, theirs) assert_int_equal(offsetof(struct bell_cqe, ours), offsetof(struct mlx5_cqe64, theirs))
    SAME(wqe_id_be, wqe_id);
    SAME(ml_path, ml_path);
    SAME(slid_be, slid);
    SAME(flags_rqpn_be, flags_rqpn);
    SAME(hds_ip_ext, hds_ip_ext);
    SAME(l4_hdr_type, l4_hdr_type_etc);
    SAME(vlan_info_be, vlan_info);
    SAME(srqn_uidx_be, srqn_uidx);
    SAME(imm_inval_pkey_be, imm_inval_pkey);
    SAME(app, app);
    SAME(app_op, app_op);
    SAME(app_info_be, app_info);
    SAME(byte_cnt_be, byte_cnt);
    SAME(timestamp_high_be, timestamp);
    SAME(sop_drop_qpn_be, sop_drop_qpn);
    SAME(wqe_counter_be, wqe_counter);
    SAME(signature, signature);
    SAME(op_own, op_own);
#undef SAME
    assert_int_equal(sizeof(struct bell_cqe), sizeof(struct mlx5_cqe64));
    assert_int_equal(offsetof(struct bell_cqe, vendor_err_synd), offsetof(struct mlx5_err_cqe, vendor_err_synd));
    assert_int_equal(offsetof(struct bell_cqe, syndrome), offsetof(struct mlx5_err_cqe, syndrome));
    assert_int_equal(offsetof(struct bell_cqe, sop_drop_qpn_be), offsetof(struct mlx5_err_cqe, s_wqe_opcode_qpn));
    static const struct {
        int ours, theirs;
    } values[] = { { BELL_CQE_REQ, MLX5_CQE_REQ },
                   { BELL_CQE_REQ_ERR, MLX5_CQE_REQ_ERR },
                   { BELL_CQE_RESP_ERR, MLX5_CQE_RESP_ERR },
                   { BELL_CQE_INVALID, MLX5_CQE_INVALID },
                   { BELL_SYNDROME_LOCAL_LENGTH, MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR },
                   { BELL_SYNDROME_LOCAL_QP_OP, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR },
                   { BELL_SYNDROME_LOCAL_PROTECTION, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR },
                   { BELL_SYNDROME_FLUSHED, MLX5_CQE_SYNDROME_WR_FLUSH_ERR },
                   { BELL_SYNDROME_MW_BIND, MLX5_CQE_SYNDROME_MW_BIND_ERR },
                   { BELL_SYNDROME_BAD_RESPONSE, MLX5_CQE_SYNDROME_BAD_RESP_ERR },
                   { BELL_SYNDROME_LOCAL_ACCESS, MLX5_CQE_SYNDROME_LOCAL_ACCESS_ERR },
                   { BELL_SYNDROME_REMOTE_INVALID, MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR },
                   { BELL_SYNDROME_REMOTE_ACCESS, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR },
                   { BELL_SYNDROME_REMOTE_OPERATION, MLX5_CQE_SYNDROME_REMOTE_OP_ERR },
                   { BELL_SYNDROME_RETRY_EXCEEDED, MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR },
                   { BELL_SYNDROME_RNR_EXCEEDED, MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR },
                   { BELL_SYNDROME_REMOTE_ABORTED, MLX5_CQE_SYNDROME_REMOTE_ABORTED_ERR } };
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        assert_int_equal(values[i].ours, values[i].theirs);
    struct bell_cqe cqe;
    struct mlx5_cqe64 seen;
    bell_cqe_build_error(&cqe, BELL_SYNDROME_FLUSHED, 0, 5, 0x08, 9, 1);
    memcpy(&seen, &cqe, sizeof seen);
    assert_int_equal(mlx5dv_get_cqe_opcode(&seen), MLX5_CQE_REQ_ERR);
    assert_int_equal(mlx5dv_get_cqe_owner(&seen), 1);
}
#else
static void test_mlx5dv(void **state)
{
    (void)state;
    print_message("infiniband/mlx5dv.h is not there: nothing compared with rdma-core\n");
    skip();
}
#endif

static void test_tail(void **state)
{
    static const uint16_t counters[] = { 0, 1, 0x1234, 0x8000, 0xff00, 0xffff };
    struct bell_cqe cqe;
    (void)state;
    for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++) {
        for (uint32_t owner = 0; owner < 2; owner++) {
            bell_cqe_build_ok(&cqe, 0x08, 1, counters[i], 64, owner);
            uint32_t tail = bell_cqe_tail(&cqe);
            assert_int_equal(tail, bell_cqe_tail_make(counters[i], BELL_CQE_REQ, owner));
            assert_memory_equal(&tail, (const uint8_t *)&cqe + BELL_CQE_TAIL_OFFSET, 4);
            assert_int_equal(bell_cqe_tail_counter(tail), counters[i]);
            assert_int_equal(bell_cqe_tail_opcode(tail), BELL_CQE_REQ);
            assert_int_equal(bell_cqe_tail_owner(tail), owner);
            bell_cqe_build_error(&cqe, BELL_SYNDROME_FLUSHED, 0, 1, 0x08, counters[i], owner);
            tail = bell_cqe_tail(&cqe);
            assert_int_equal(tail, bell_cqe_tail_make(counters[i], BELL_CQE_REQ_ERR, owner));
            assert_int_equal(bell_cqe_tail_opcode(tail), BELL_CQE_REQ_ERR);
        }
    }
}

/* A ring of 1 << log entries over five laps: nothing is valid early, and what one lap wrote is invalid to the next. */
static void test_owner(void **state)
{
    (void)state;
    for (uint32_t log = 0; log <= 3; log++) {
        struct bell_cqe ring[8];
        uint64_t n, size = (uint64_t)1 << log;
        for (size_t i = 0; i < 8; i++)
            bell_cqe_fill_ring(&ring[i]);
        for (n = 0; n < size * 5; n++) {
            struct bell_cqe *entry = &ring[n & (size - 1)];
            assert_false(bell_cqe_is_valid(bell_cqe_tail(entry), n, log));
            bell_cqe_build_ok(entry, 0x08, 1, (uint16_t)n, 64, (uint32_t)(n >> log & 1));
            assert_true(bell_cqe_is_valid(bell_cqe_tail(entry), n, log));
            assert_false(bell_cqe_is_valid(bell_cqe_tail(entry), n + size, log));
        }
    }
    for (uint64_t n = 0; n < 16; n++) {
        struct bell_cqe cqe;
        bell_cqe_fill_ring(&cqe);
        assert_false(bell_cqe_is_valid(bell_cqe_tail(&cqe), n, 2));
        bell_cqe_fill_collapsed(&cqe);
        assert_false(bell_cqe_is_valid(bell_cqe_tail(&cqe), n, 2));
    }
}

static void test_extend(void **state)
{
    static const uint64_t bases[] = { 0, 1, 0x7fff, 0xfff0, 0xffff, 0x10000, 0x1fff8, 0xffffffff, 0x123456789abc };
    static const uint32_t depths[] = { 1, 8, 1024, BELL_CQE_DEPTH_MAX };
    struct bell_cqe fresh;
    (void)state;
    bell_cqe_fill_collapsed(&fresh);
    for (size_t d = 0; d < sizeof depths / sizeof depths[0]; d++) {
        uint64_t first = 77;
        uint32_t depth = depths[d];
        assert_false(bell_cqe_extend(bell_cqe_tail_counter(bell_cqe_tail(&fresh)), 0, depth, &first));
        for (size_t b = 0; b < sizeof bases / sizeof bases[0]; b++) {
            uint64_t base = bases[b], deltas[] = { 0, depth / 2, depth - 1 };
            for (size_t i = 0; i < 3; i++) {
                assert_true(bell_cqe_extend((uint16_t)(base + deltas[i]), base, depth, &first));
                assert_int_equal(first, base + deltas[i]);
            }
            first = 77;
            assert_false(bell_cqe_extend((uint16_t)(base + depth), base, depth, &first));
            for (uint64_t back = 1; back <= 4; back++) /* the last WQE retired, of up to four blocks */
                assert_false(bell_cqe_extend((uint16_t)(base - back), base, depth, &first));
            assert_int_equal(first, 77);
        }
    }
}

static void test_syndromes(void **state)
{
    (void)state;
    assert_string_equal(bell_syndrome_text(BELL_SYNDROME_FLUSHED), "flushed after an earlier error");
    assert_string_equal(bell_syndrome_text(0), "no error");
    for (uint32_t s = 0; s < 0x200; s++)
        assert_non_null(bell_syndrome_text(s));
    assert_string_equal(bell_syndrome_text(0x23), "unknown syndrome");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden), cmocka_unit_test(test_mlx5dv), cmocka_unit_test(test_tail),
        cmocka_unit_test(test_owner),  cmocka_unit_test(test_extend), cmocka_unit_test(test_syndromes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
