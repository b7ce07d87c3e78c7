/* SPDX-License-Identifier: Apache-2.0
 * Completion queue entries in the mlx5 wire format, for ring and collapsed CQs.  Fields named _be are big-endian.
 * Layout: struct mlx5_cqe64 and mlx5_err_cqe in mlx5dv.h of rdma-core. */
#ifndef BELL_CORE_CQE_H
#define BELL_CORE_CQE_H

#include "core/endian.h"

#define BELL_CQE_BYTES 64u
#define BELL_CQE_TAIL_OFFSET 60u
/* First content of a CQ: 0xf1 in byte 63 of each ring entry (opcode invalid, owner of no first lap), 0xff in every byte
 * of a collapsed entry (counter 0xffff is one before the first index). */
#define BELL_CQE_RING_FILL 0xf1u
#define BELL_CQE_COLLAPSED_FILL 0xffu
/* Longest send queue, in blocks, for which 16-bit counters tell new from old. */
#define BELL_CQE_DEPTH_MAX 0x8000u

/* Bits 7..4 of op_own. */
enum bell_cqe_opcode {
    BELL_CQE_REQ = 0,
    BELL_CQE_RESP_WRITE_IMM = 1,
    BELL_CQE_RESP_SEND = 2,
    BELL_CQE_RESP_SEND_IMM = 3,
    BELL_CQE_RESP_SEND_INV = 4,
    BELL_CQE_RESIZE_CQ = 5,
    BELL_CQE_NO_PACKET = 6,
    BELL_CQE_SIG_ERR = 12,
    BELL_CQE_REQ_ERR = 13,
    BELL_CQE_RESP_ERR = 14,
    BELL_CQE_INVALID = 15
};

#define BELL_SYNDROME_MAP(X)                                                                                           \
    X(LOCAL_LENGTH, 0x01, "local length error")                                                                        \
    X(LOCAL_QP_OP, 0x02, "local QP operation error")                                                                   \
    X(LOCAL_PROTECTION, 0x04, "local protection error")                                                                \
    X(FLUSHED, 0x05, "flushed after an earlier error")                                                                 \
    X(MW_BIND, 0x06, "memory window bind error")                                                                       \
    X(BAD_RESPONSE, 0x10, "bad response")                                                                              \
    X(LOCAL_ACCESS, 0x11, "local access error")                                                                        \
    X(REMOTE_INVALID, 0x12, "remote found the request invalid")                                                        \
    X(REMOTE_ACCESS, 0x13, "remote access error")                                                                      \
    X(REMOTE_OPERATION, 0x14, "remote operation error")                                                                \
    X(RETRY_EXCEEDED, 0x15, "transport retries exceeded")                                                              \
    X(RNR_EXCEEDED, 0x16, "receiver-not-ready retries exceeded")                                                       \
    X(REMOTE_ABORTED, 0x22, "remote aborted")

enum bell_syndrome {
    BELL_SYNDROME_NONE = 0,
#define BELL_SYNDROME_ENUM(name, value, text) BELL_SYNDROME_##name = value,
    BELL_SYNDROME_MAP(BELL_SYNDROME_ENUM)
#undef BELL_SYNDROME_ENUM
};

/* Bytes 52..55 are the syndromes of an error CQE, else the low half of the timestamp. */
struct bell_cqe {
    uint8_t reserved_0[2];
    uint16_t wqe_id_be;
    uint8_t reserved_4[13];
    uint8_t ml_path;
    uint8_t reserved_18[4];
    uint16_t slid_be;
    uint32_t flags_rqpn_be;
    uint8_t hds_ip_ext;
    uint8_t l4_hdr_type;
    uint16_t vlan_info_be;
    uint32_t srqn_uidx_be;
    uint32_t imm_inval_pkey_be;
    uint8_t app;
    uint8_t app_op;
    uint16_t app_info_be;
    uint32_t byte_cnt_be;
    uint32_t timestamp_high_be;
    uint8_t hw_err_synd;
    uint8_t hw_synd_type;
    uint8_t vendor_err_synd;
    uint8_t syndrome;
    uint32_t sop_drop_qpn_be; /* opcode of the WQE 31..24, QP number 23..0 */
    uint16_t wqe_counter_be;  /* first block of the WQE */
    uint8_t signature;
    uint8_t op_own; /* opcode 7..4, format 3..2, solicited 1, owner 0 */
} __attribute__((aligned(64)));

BELL_STATIC_ASSERT(sizeof(struct bell_cqe) == BELL_CQE_BYTES, "size of a CQE");
BELL_STATIC_ASSERT(offsetof(struct bell_cqe, wqe_id_be) == 2, "wqe_id");
BELL_STATIC_ASSERT(offsetof(struct bell_cqe, ml_path) == 17, "ml_path");
BELL_STATIC_ASSERT(offsetof(struct bell_cqe, slid_be) == 22, "slid");
BELL_STATIC_ASSERT(offsetof(struct bell_cqe, flags_rqpn_be) == 24, "flags_rqpn");
BELL_STATIC_ASSERT(offsetof(struct bell_cqe, hds_ip_ext) == 28, "hds_ip_ext");
BELL_STATIC_ASSERT(offsetof(struct bell_cqe, l4_hdr_type) == 29, "l4_hdr_type");
BELL_STATIC_ASSERT(offsetof(struct bell_cqe, vlan_info_be) == 30, "vlan_info");
BELL_STATIC_ASSERT(offsetof(struct bell_cqe, srqn_uidx_be) == 32, "srqn_uidx");
BELL_STATIC_ASSERT(offsetof(struct bell_cqe, imm_inval_pkey_be) == 36, "imm_inval_pkey");
BELL_STATIC_ASSERT(offsetof(struct bell_cqe, app) == 40, "app");
BELL_STATIC_ASSERT(offsetof(struct bell_cqe, app_info_be) == 42, "app_info");
BELL_STATIC_ASSERT(offsetof(struct bell_cqe, byte_cnt_be) == 44, "byte_cnt");
BELL_STATIC_ASSERT(offsetof(struct bell_cqe, timestamp_high_be) == 48, "timestamp");
BELL_STATIC_ASSERT(offsetof(struct bell_cqe, hw_err_synd) == 52, "hw_err_synd");
BELL_STATIC_ASSERT(offsetof(struct bell_cqe, hw_synd_type) == 53, "hw_synd_type");
BELL_STATIC_ASSERT(offsetof(struct bell_cqe, vendor_err_synd) == 54, "vendor_err_synd");
BELL_STATIC_ASSERT(offsetof(struct bell_cqe, syndrome) == 55, "syndrome");
BELL_STATIC_ASSERT(offsetof(struct bell_cqe, sop_drop_qpn_be) == 56, "sop_drop_qpn");
BELL_STATIC_ASSERT(offsetof(struct bell_cqe, wqe_counter_be) == BELL_CQE_TAIL_OFFSET, "wqe_counter");
BELL_STATIC_ASSERT(offsetof(struct bell_cqe, signature) == 62, "signature");
BELL_STATIC_ASSERT(offsetof(struct bell_cqe, op_own) == 63, "op_own");

/* Constant text, never NULL.  Host only. */
static inline const char *bell_syndrome_text(uint32_t syndrome)
{
    switch (syndrome) {
    case BELL_SYNDROME_NONE:
        return "no error";
#define BELL_SYNDROME_CASE(name, value, text)                                                                          \
    case value:                                                                                                        \
        return text;
        BELL_SYNDROME_MAP(BELL_SYNDROME_CASE)
#undef BELL_SYNDROME_CASE
    default:
        return "unknown syndrome";
    }
}

BELL_PURE uint8_t bell_cqe_op_own(uint32_t cqe_opcode, uint32_t owner)
{
    return (uint8_t)((cqe_opcode & 0xf) << 4 | (owner & 1));
}

/* Requester success.  wqe_opcode: enum bell_wqe_opcode; byte_cnt: payload, 8 for an atomic. */
BELL_PURE void bell_cqe_build_ok(struct bell_cqe *cqe, uint32_t wqe_opcode, uint32_t qpn, uint16_t wqe_counter,
                                 uint32_t byte_cnt, uint32_t owner)
{
    memset(cqe, 0, sizeof *cqe);
    cqe->byte_cnt_be = bell_be32(byte_cnt);
    cqe->sop_drop_qpn_be = bell_be32(wqe_opcode << 24 | (qpn & 0xffffff));
    cqe->wqe_counter_be = bell_be16(wqe_counter);
    cqe->op_own = bell_cqe_op_own(BELL_CQE_REQ, owner);
}

/* Requester error.  syndrome: enum bell_syndrome. */
BELL_PURE void bell_cqe_build_error(struct bell_cqe *cqe, uint8_t syndrome, uint8_t vendor, uint32_t qpn,
                                    uint32_t wqe_opcode, uint16_t wqe_counter, uint32_t owner)
{
    bell_cqe_build_ok(cqe, wqe_opcode, qpn, wqe_counter, 0, owner);
    cqe->vendor_err_synd = vendor;
    cqe->syndrome = syndrome;
    cqe->op_own = bell_cqe_op_own(BELL_CQE_REQ_ERR, owner);
}

/* What an entry holds before the NIC writes it. */
BELL_PURE void bell_cqe_fill_ring(struct bell_cqe *cqe)
{
    memset(cqe, 0, sizeof *cqe);
    cqe->op_own = BELL_CQE_RING_FILL;
}

BELL_PURE void bell_cqe_fill_collapsed(struct bell_cqe *cqe)
{
    memset(cqe, BELL_CQE_COLLAPSED_FILL, sizeof *cqe);
}

/* The tail: bytes 60..63 as they lie in memory (be16 wqe_counter, signature, op_own).  The NIC stores it last. */
BELL_PURE uint32_t bell_cqe_tail(const struct bell_cqe *cqe)
{
    uint32_t tail;
    memcpy(&tail, (const uint8_t *)cqe + BELL_CQE_TAIL_OFFSET, sizeof tail);
    return tail;
}

BELL_PURE uint32_t bell_cqe_tail_make(uint16_t wqe_counter, uint32_t cqe_opcode, uint32_t owner)
{
    return bell_be32((uint32_t)wqe_counter << 16 | bell_cqe_op_own(cqe_opcode, owner));
}

BELL_PURE uint16_t bell_cqe_tail_counter(uint32_t tail)
{
    return (uint16_t)(bell_be32(tail) >> 16);
}

BELL_PURE uint32_t bell_cqe_tail_opcode(uint32_t tail)
{
    return bell_be32(tail) >> 4 & 0xf;
}

BELL_PURE uint32_t bell_cqe_tail_owner(uint32_t tail)
{
    return bell_be32(tail) & 1;
}

/* Whether the entry that position n (free-running) maps to has been written on n's lap; the ring has 1 << log_ncqe
 * entries. */
BELL_PURE bool bell_cqe_is_valid(uint32_t tail, uint64_t n, uint32_t log_ncqe)
{
    return bell_cqe_tail_opcode(tail) != BELL_CQE_INVALID && bell_cqe_tail_owner(tail) == (n >> log_ncqe & 1);
}

/* The free-running index of the WQE that a 16-bit counter names.  completed: the first index not known to be complete;
 * depth: of the send queue, at most BELL_CQE_DEPTH_MAX.  False, and *first untouched, when the counter is old news. */
BELL_PURE bool bell_cqe_extend(uint16_t counter, uint64_t completed, uint32_t depth, uint64_t *first)
{
    uint16_t delta = (uint16_t)(counter - (uint16_t)completed);
    if (delta >= depth)
        return false;
    *first = completed + delta;
    return true;
}

#endif
