/* SPDX-License-Identifier: Apache-2.0
 * Places of DevX fields against a second source; the field writer. */
#include "hw/mlx5/prm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Numbers: offsetof and sizeof of the bit structures in include/linux/mlx5/mlx5_ifc.h of Linux 6.1, computed with
 * a compiler.  "path" is qpc.primary_address_path, "cap" capability.cmd_hca_cap, "cqc" cq_context. */
static const struct {
    enum bell_prm_field field;
    const char *there;
    uint32_t bit, bits;
} second[] = {
    { BELL_PRM_OPCODE, "create_qp_in.opcode", 0x0, 16 },
    { BELL_PRM_OP_MOD, "create_qp_in.op_mod", 0x30, 16 },
    { BELL_PRM_STATUS, "create_qp_out.status", 0x0, 8 },
    { BELL_PRM_SYNDROME, "create_qp_out.syndrome", 0x20, 32 },
    { BELL_PRM_OUT_NUMBER, "create_qp_out.qpn", 0x48, 24 },
    { BELL_PRM_OUT_NUMBER, "create_cq_out.cqn", 0x48, 24 },
    { BELL_PRM_CAP_LOG_MAX_QP_SZ, "query_hca_cap_out.cap.log_max_qp_sz", 0x108, 8 },
    { BELL_PRM_CAP_LOG_MAX_CQ_SZ, "query_hca_cap_out.cap.log_max_cq_sz", 0x148, 8 },
    { BELL_PRM_CAP_CQE_VERSION, "query_hca_cap_out.cap.cqe_version", 0x27c, 4 },
    { BELL_PRM_CAP_DCT, "query_hca_cap_out.cap.dct", 0x29a, 1 },
    { BELL_PRM_CAP_CQ_OI, "query_hca_cap_out.cap.cq_oi", 0x2a0, 1 },
    { BELL_PRM_CAP_BF, "query_hca_cap_out.cap.bf", 0x2e0, 1 },
    { BELL_PRM_CAP_LOG_BF_REG_SIZE, "query_hca_cap_out.cap.log_bf_reg_size", 0x2eb, 5 },
    { BELL_PRM_CQ_DBR_UMEM_VALID, "create_cq_in.cqc.dbr_umem_valid", 0x86, 1 },
    { BELL_PRM_CQ_CQE_SZ, "create_cq_in.cqc.cqe_sz", 0x88, 3 },
    { BELL_PRM_CQ_CC, "create_cq_in.cqc.cc", 0x8b, 1 },
    { BELL_PRM_CQ_OI, "create_cq_in.cqc.oi", 0x8e, 1 },
    { BELL_PRM_CQ_LOG_SIZE, "create_cq_in.cqc.log_cq_size", 0xe3, 5 },
    { BELL_PRM_CQ_UAR_PAGE, "create_cq_in.cqc.uar_page", 0xe8, 24 },
    { BELL_PRM_CQ_LOG_PAGE_SIZE, "create_cq_in.cqc.log_page_size", 0x143, 5 },
    { BELL_PRM_CQ_DBR_ADDR, "create_cq_in.cqc.dbr_addr", 0x240, 64 },
    { BELL_PRM_CQ_UMEM_VALID, "create_cq_in.cq_umem_valid", 0x2e0, 1 },
    { BELL_PRM_QP_NUMBER, "rst2init_qp_in.qpn", 0x48, 24 },
    { BELL_PRM_QP_NUMBER, "init2rtr_qp_in.qpn", 0x48, 24 },
    { BELL_PRM_QP_NUMBER, "rtr2rts_qp_in.qpn", 0x48, 24 },
    { BELL_PRM_QP_ST, "create_qp_in.qpc.st", 0xc8, 8 },
    { BELL_PRM_QP_PM_STATE, "create_qp_in.qpc.pm_state", 0xd3, 2 },
    { BELL_PRM_QP_PD, "create_qp_in.qpc.pd", 0xe8, 24 },
    { BELL_PRM_QP_MTU, "create_qp_in.qpc.mtu", 0x100, 3 },
    { BELL_PRM_QP_MTU, "init2rtr_qp_in.qpc.mtu", 0x100, 3 },
    { BELL_PRM_QP_LOG_MSG_MAX, "create_qp_in.qpc.log_msg_max", 0x103, 5 },
    { BELL_PRM_QP_LOG_SQ_SIZE, "create_qp_in.qpc.log_sq_size", 0x111, 4 },
    { BELL_PRM_QP_UAR_PAGE, "create_qp_in.qpc.uar_page", 0x128, 24 },
    { BELL_PRM_QP_LOG_PAGE_SIZE, "create_qp_in.qpc.log_page_size", 0x163, 5 },
    { BELL_PRM_QP_REMOTE_QPN, "create_qp_in.qpc.remote_qpn", 0x168, 24 },
    { BELL_PRM_QP_PKEY_INDEX, "create_qp_in.qpc.path.pkey_index", 0x190, 16 },
    { BELL_PRM_QP_GRH, "create_qp_in.qpc.path.grh", 0x1a8, 1 },
    { BELL_PRM_QP_MLID, "create_qp_in.qpc.path.mlid", 0x1a9, 7 },
    { BELL_PRM_QP_RLID, "create_qp_in.qpc.path.rlid", 0x1b0, 16 },
    { BELL_PRM_QP_ACK_TIMEOUT, "create_qp_in.qpc.path.ack_timeout", 0x1c0, 5 },
    { BELL_PRM_QP_SRC_ADDR_INDEX, "create_qp_in.qpc.path.src_addr_index", 0x1c8, 8 },
    { BELL_PRM_QP_STAT_RATE, "create_qp_in.qpc.path.stat_rate", 0x1d4, 4 },
    { BELL_PRM_QP_HOP_LIMIT, "create_qp_in.qpc.path.hop_limit", 0x1d8, 8 },
    { BELL_PRM_QP_TCLASS, "create_qp_in.qpc.path.tclass", 0x1e4, 8 },
    { BELL_PRM_QP_FLOW_LABEL, "create_qp_in.qpc.path.flow_label", 0x1ec, 20 },
    { BELL_PRM_QP_UDP_SPORT, "create_qp_in.qpc.path.udp_sport", 0x290, 16 },
    { BELL_PRM_QP_SL, "create_qp_in.qpc.path.sl", 0x2a4, 4 },
    { BELL_PRM_QP_PORT, "create_qp_in.qpc.path.vhca_port_num", 0x2a8, 8 },
    { BELL_PRM_QP_PORT, "rst2init_qp_in.qpc.path.vhca_port_num", 0x2a8, 8 },
    { BELL_PRM_QP_RMAC_HIGH, "create_qp_in.qpc.path.rmac_47_32", 0x2b0, 16 },
    { BELL_PRM_QP_RMAC_LOW, "create_qp_in.qpc.path.rmac_31_0", 0x2c0, 32 },
    { BELL_PRM_QP_LOG_SRA_MAX, "create_qp_in.qpc.log_sra_max", 0x448, 3 },
    { BELL_PRM_QP_RETRY_COUNT, "create_qp_in.qpc.retry_count", 0x44d, 3 },
    { BELL_PRM_QP_RETRY_COUNT, "rtr2rts_qp_in.qpc.retry_count", 0x44d, 3 },
    { BELL_PRM_QP_RNR_RETRY, "create_qp_in.qpc.rnr_retry", 0x450, 3 },
    { BELL_PRM_QP_NEXT_SEND_PSN, "create_qp_in.qpc.next_send_psn", 0x488, 24 },
    { BELL_PRM_QP_CQN_SND, "create_qp_in.qpc.cqn_snd", 0x4a8, 24 },
    { BELL_PRM_QP_LOG_RRA_MAX, "create_qp_in.qpc.log_rra_max", 0x548, 3 },
    { BELL_PRM_QP_ATOMIC_MODE, "create_qp_in.qpc.atomic_mode", 0x54c, 4 },
    { BELL_PRM_QP_RRE, "create_qp_in.qpc.rre", 0x550, 1 },
    { BELL_PRM_QP_RWE, "create_qp_in.qpc.rwe", 0x551, 1 },
    { BELL_PRM_QP_RAE, "create_qp_in.qpc.rae", 0x552, 1 },
    { BELL_PRM_QP_MIN_RNR_NAK, "create_qp_in.qpc.min_rnr_nak", 0x563, 5 },
    { BELL_PRM_QP_NEXT_RCV_PSN, "create_qp_in.qpc.next_rcv_psn", 0x568, 24 },
    { BELL_PRM_QP_CQN_RCV, "create_qp_in.qpc.cqn_rcv", 0x5a8, 24 },
    { BELL_PRM_QP_DBR_ADDR, "create_qp_in.qpc.dbr_addr", 0x5c0, 64 },
    { BELL_PRM_QP_RQ_TYPE, "create_qp_in.qpc.rq_type", 0x625, 3 },
    { BELL_PRM_QP_CS_REQ, "create_qp_in.qpc.cs_req", 0x6f0, 8 },
    { BELL_PRM_QP_CS_RES, "create_qp_in.qpc.cs_res", 0x6f8, 8 },
    { BELL_PRM_QP_DBR_UMEM_VALID, "create_qp_in.qpc.dbr_umem_valid", 0x743, 1 },
    { BELL_PRM_QP_WQ_UMEM_VALID, "create_qp_in.wq_umem_valid", 0x860, 1 },
    /* c_eqn_or_apu_element is 32 bits from 0x120; an event queue's number is its low byte. */
    { BELL_PRM_CQ_EQN, "create_cq_in.cqc.c_eqn_or_apu_element", 0x120 + 24, 8 },
    /* rgid_rip is 128 bits from 0x200. */
    { BELL_PRM_QP_RGID_HIGH, "create_qp_in.qpc.path.rgid_rip", 0x200, 64 },
    { BELL_PRM_QP_RGID_LOW, "create_qp_in.qpc.path.rgid_rip", 0x200 + 64, 64 },
    /* Linux keeps the rest reserved, for user space to fill in.  The QP's: ib_mlx5_ifc.h of UCX 1.13.1, computed in the
     * same way. */
    { BELL_PRM_QP_DBR_UMEM_ID, "create_qp_in.qpc.dbr_umem_id (UCX)", 0x7e0, 32 },
    { BELL_PRM_QP_WQ_UMEM_ID, "create_qp_in.wq_umem_id (UCX)", 0x840, 32 },
    /* The CQ's: reserved_at_20 of cqc, 32 bits at 0x80 + 0x20; and the last 32 of the 96 bits reserved_at_280 before
     * cq_umem_valid, as in create_qp_in the last 32 of as many before wq_umem_valid. */
    { BELL_PRM_CQ_DBR_UMEM_ID, "create_cq_in.cqc.reserved_at_20", 0x80 + 0x20, 32 },
    { BELL_PRM_CQ_UMEM_ID, "create_cq_in.reserved_at_280", 0x280 + 64, 32 },
};

static void test_places(void **state)
{
    bool seen[BELL_PRM_FIELDS] = { false };
    (void)state;
    for (size_t i = 0; i < sizeof second / sizeof *second; i++) {
        const struct bell_prm_place *p = &bell_prm_places[second[i].field];
        if (p->bit != second[i].bit || p->bits != second[i].bits)
            fail_msg("%s is at 0x%x, %u bits; %s at 0x%x, %u bits", p->name, p->bit, p->bits, second[i].there,
                     second[i].bit, second[i].bits);
        seen[second[i].field] = true;
    }
    for (uint32_t i = 0; i < BELL_PRM_FIELDS; i++)
        if (!seen[i])
            fail_msg("%s stands in one source only", bell_prm_places[i].name);
}

/* sizeof of the same structures: create_cq_in, create_qp_in, rst2init_qp_in, init2rtr_qp_in and rtr2rts_qp_in have
 * 0x110 bytes, their answers 0x10, query_hca_cap_in 0x10 and query_hca_cap_out 0x1010. */
static void test_sizes(void **state)
{
    (void)state;
    assert_int_equal(BELL_PRM_CREATE_CQ_IN, 0x110);
    assert_int_equal(BELL_PRM_QP_IN, 0x110);
    assert_int_equal(BELL_PRM_OUT, 0x10);
    assert_int_equal(BELL_PRM_QUERY_HCA_CAP_IN, 0x10);
    assert_int_equal(BELL_PRM_QUERY_HCA_CAP_OUT, 0x1010);
}

/* MLX5_CMD_OP_* of the same file. */
static void test_opcodes(void **state)
{
    (void)state;
    assert_int_equal(BELL_PRM_QUERY_HCA_CAP, 0x100);
    assert_int_equal(BELL_PRM_CREATE_CQ, 0x400);
    assert_int_equal(BELL_PRM_CREATE_QP, 0x500);
    assert_int_equal(BELL_PRM_RST2INIT_QP, 0x502);
    assert_int_equal(BELL_PRM_INIT2RTR_QP, 0x503);
    assert_int_equal(BELL_PRM_RTR2RTS_QP, 0x504);
    assert_string_equal(bell_prm_opcode_text(0x504), "RTR2RTS_QP");
    assert_string_equal(bell_prm_opcode_text(0x505), "unknown command");
    assert_string_equal(bell_prm_status_text(0x10), "bad QP state");
    assert_string_equal(bell_prm_status_text(0x11), "unknown status");
}

/* Of one command no two fields share a bit. */
static void test_no_overlap(void **state)
{
    static const char *const families[] = { "CAP_", "CQ_", "QP_" };
    (void)state;
    for (size_t k = 0; k < sizeof families / sizeof *families; k++) {
        uint8_t taken[0x1010 * 8] = { 0 };
        for (uint32_t i = 0; i < BELL_PRM_FIELDS; i++) {
            const struct bell_prm_place *p = &bell_prm_places[i];
            bool is_shared = strcmp(p->name, "OPCODE") == 0 || strcmp(p->name, "OP_MOD") == 0;
            if (!is_shared && strncmp(p->name, families[k], strlen(families[k])) != 0)
                continue;
            for (uint32_t b = p->bit; b < (uint32_t)p->bit + p->bits; b++) {
                if (taken[b])
                    fail_msg("%s overlaps another field at bit 0x%x", p->name, b);
                taken[b] = 1;
            }
        }
    }
}

static uint64_t widest(const struct bell_prm_place *p)
{
    return p->bits == 64 ? UINT64_MAX : (1ull << p->bits) - 1;
}

/* Every field alone in a buffer of ones and in one of zeros: its bits change, and no others. */
static void test_writer(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < BELL_PRM_FIELDS; i++) {
        const struct bell_prm_place *p = &bell_prm_places[i];
        enum bell_prm_field field = (enum bell_prm_field)i;
        uint8_t ones[BELL_PRM_QUERY_HCA_CAP_OUT], zeros[sizeof ones];
        memset(ones, 0xff, sizeof ones);
        memset(zeros, 0, sizeof zeros);
        uint64_t value = 0x0123456789abcdefu & widest(p);
        assert_true(bell_prm_set(zeros, field, value));
        assert_true(bell_prm_set(ones, field, value));
        assert_true(bell_prm_get(zeros, field) == value && bell_prm_get(ones, field) == value);
        for (uint32_t b = 0; b < sizeof ones * 8; b++) {
            uint32_t mask = 0x80u >> b % 8;
            bool is_in = b >= p->bit && b < (uint32_t)p->bit + p->bits;
            assert_true(is_in || ((ones[b / 8] & mask) && !(zeros[b / 8] & mask)));
            assert_true(!is_in || (ones[b / 8] & mask) == (zeros[b / 8] & mask));
        }
        memcpy(ones, zeros, sizeof ones);
        if (p->bits < 64) {
            assert_false(bell_prm_set(zeros, field, widest(p) + 1));
            assert_memory_equal(zeros, ones, sizeof ones);
        }
    }
}

/* Bytes by hand: big-endian, most significant bit first. */
static void test_bytes(void **state)
{
    uint8_t b[BELL_PRM_QP_IN] = { 0 };
    (void)state;
    assert_true(bell_prm_set(b, BELL_PRM_OPCODE, 0x0502));
    assert_true(bell_prm_set(b, BELL_PRM_QP_NUMBER, 0xabcdef));
    assert_true(bell_prm_set(b, BELL_PRM_QP_LOG_SQ_SIZE, 0xa)); /* bits 1..4 of byte 34 */
    assert_true(bell_prm_set(b, BELL_PRM_QP_DBR_ADDR, 0x0102030405060708u));
    static const uint8_t dbr[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    assert_int_equal(b[0], 0x05);
    assert_int_equal(b[1], 0x02);
    assert_int_equal(b[9], 0xab);
    assert_int_equal(b[11], 0xef);
    assert_int_equal(b[34], 0x50);
    assert_memory_equal(b + 0x5c0 / 8, dbr, sizeof dbr);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),     cmocka_unit_test(test_sizes),  cmocka_unit_test(test_opcodes),
        cmocka_unit_test(test_no_overlap), cmocka_unit_test(test_writer), cmocka_unit_test(test_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
