/* SPDX-License-Identifier: Apache-2.0
 * DevX commands as bytes: which fields this project writes and reads, where they lie, and the words of the answers.
 *
 * A field is a run of bits in a big-endian buffer; bit 0 is the most significant bit of byte 0.  Offsets count from the
 * start of the command or of its answer.  Offsets, sizes, opcodes and values: providers/mlx5/mlx5_ifc.h of rdma-core
 * 56.1; for CREATE_CQ, which rdma-core does not issue itself, drivers/common/mlx5/mlx5_prm.h of DPDK 22.11.
 * tests/mlx5/test_mlx5_prm.c holds the numbers of a second source beside them. */
#ifndef BELL_HW_MLX5_PRM_H
#define BELL_HW_MLX5_PRM_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

BELL_EXTERN_C_BEGIN

enum bell_prm_opcode {
    BELL_PRM_QUERY_HCA_CAP = 0x100,
    BELL_PRM_CREATE_CQ = 0x400,
    BELL_PRM_CREATE_QP = 0x500,
    BELL_PRM_RST2INIT_QP = 0x502,
    BELL_PRM_INIT2RTR_QP = 0x503,
    BELL_PRM_RTR2RTS_QP = 0x504
};

/* Bytes of commands and answers. */
#define BELL_PRM_QUERY_HCA_CAP_IN 0x10u
#define BELL_PRM_QUERY_HCA_CAP_OUT 0x1010u
#define BELL_PRM_CREATE_CQ_IN 0x110u
#define BELL_PRM_QP_IN 0x110u /* CREATE_QP and the three transitions */
#define BELL_PRM_OUT 0x10u    /* all but QUERY_HCA_CAP */

/* Values. */
#define BELL_PRM_CAP_GENERAL_CURRENT 0x1u /* op_mod: capability 0 (general) << 1, 1: current */
#define BELL_PRM_ST_RC 0x0u
#define BELL_PRM_ST_DCI 0x5u
#define BELL_PRM_PM_MIGRATED 0x3u
#define BELL_PRM_RQ_NONE 0x3u     /* zero-length receive queue: include/linux/mlx5/qp.h */
#define BELL_PRM_ATOMIC_IB 0x1u   /* atomics as the InfiniBand specification has them, 8 B */
#define BELL_PRM_CQE_64_BYTES 0x0u
#define BELL_PRM_ADAPTER_PAGE_SHIFT 12u /* log_page_size counts from pages of 4 KiB */

/* name, first bit, bits.  CREATE_QP and the transitions share one QP context, at bit 0xc0. */
#define BELL_PRM_MAP(X)                                                                                                \
    X(OPCODE, 0x0, 16)                                                                                                 \
    X(OP_MOD, 0x30, 16)                                                                                                \
    X(STATUS, 0x0, 8)                                                                                                  \
    X(SYNDROME, 0x20, 32)                                                                                              \
    X(OUT_NUMBER, 0x48, 24)     /* of the CQ or QP that was made */                                                    \
    X(CAP_LOG_MAX_QP_SZ, 0x108, 8)                                                                                     \
    X(CAP_LOG_MAX_CQ_SZ, 0x148, 8)                                                                                     \
    X(CAP_CQE_VERSION, 0x27c, 4)                                                                                       \
    X(CAP_DCT, 0x29a, 1)                                                                                               \
    X(CAP_CQ_OI, 0x2a0, 1)                                                                                             \
    X(CAP_BF, 0x2e0, 1)                                                                                                \
    X(CAP_LOG_BF_REG_SIZE, 0x2eb, 5)                                                                                   \
    X(CQ_DBR_UMEM_VALID, 0x86, 1)                                                                                      \
    X(CQ_CQE_SZ, 0x88, 3)                                                                                              \
    X(CQ_CC, 0x8b, 1)           /* collapsed: every CQE goes to entry 0 */                                             \
    X(CQ_OI, 0x8e, 1)           /* overrun ignored: nobody moves the consumer counter */                               \
    X(CQ_DBR_UMEM_ID, 0xa0, 32)                                                                                        \
    X(CQ_LOG_SIZE, 0xe3, 5)                                                                                            \
    X(CQ_UAR_PAGE, 0xe8, 24)                                                                                           \
    X(CQ_EQN, 0x138, 8)                                                                                                \
    X(CQ_LOG_PAGE_SIZE, 0x143, 5)                                                                                      \
    X(CQ_DBR_ADDR, 0x240, 64)   /* an offset in the doorbell record's umem */                                          \
    X(CQ_UMEM_ID, 0x2c0, 32)                                                                                           \
    X(CQ_UMEM_VALID, 0x2e0, 1)                                                                                         \
    X(QP_NUMBER, 0x48, 24)      /* transitions only */                                                                 \
    X(QP_ST, 0xc8, 8)                                                                                                  \
    X(QP_PM_STATE, 0xd3, 2)                                                                                            \
    X(QP_PD, 0xe8, 24)                                                                                                 \
    X(QP_MTU, 0x100, 3)                                                                                                \
    X(QP_LOG_MSG_MAX, 0x103, 5)                                                                                        \
    X(QP_LOG_SQ_SIZE, 0x111, 4) /* in basic blocks */                                                                  \
    X(QP_UAR_PAGE, 0x128, 24)                                                                                          \
    X(QP_LOG_PAGE_SIZE, 0x163, 5)                                                                                      \
    X(QP_REMOTE_QPN, 0x168, 24)                                                                                        \
    X(QP_PKEY_INDEX, 0x190, 16)                                                                                        \
    X(QP_GRH, 0x1a8, 1)                                                                                                \
    X(QP_MLID, 0x1a9, 7)                                                                                               \
    X(QP_RLID, 0x1b0, 16)                                                                                              \
    X(QP_ACK_TIMEOUT, 0x1c0, 5)                                                                                        \
    X(QP_SRC_ADDR_INDEX, 0x1c8, 8)                                                                                     \
    X(QP_STAT_RATE, 0x1d4, 4)                                                                                          \
    X(QP_HOP_LIMIT, 0x1d8, 8)                                                                                          \
    X(QP_TCLASS, 0x1e4, 8)                                                                                             \
    X(QP_FLOW_LABEL, 0x1ec, 20)                                                                                        \
    X(QP_RGID_HIGH, 0x200, 64)  /* of 128 bits */                                                                      \
    X(QP_RGID_LOW, 0x240, 64)                                                                                          \
    X(QP_UDP_SPORT, 0x290, 16)                                                                                         \
    X(QP_SL, 0x2a4, 4)                                                                                                 \
    X(QP_PORT, 0x2a8, 8)                                                                                               \
    X(QP_RMAC_HIGH, 0x2b0, 16)  /* bits 47..32 */                                                                      \
    X(QP_RMAC_LOW, 0x2c0, 32)                                                                                          \
    X(QP_LOG_SRA_MAX, 0x448, 3)                                                                                        \
    X(QP_RETRY_COUNT, 0x44d, 3)                                                                                        \
    X(QP_RNR_RETRY, 0x450, 3)                                                                                          \
    X(QP_NEXT_SEND_PSN, 0x488, 24)                                                                                     \
    X(QP_CQN_SND, 0x4a8, 24)                                                                                           \
    X(QP_LOG_RRA_MAX, 0x548, 3)                                                                                        \
    X(QP_ATOMIC_MODE, 0x54c, 4)                                                                                        \
    X(QP_RRE, 0x550, 1)                                                                                                \
    X(QP_RWE, 0x551, 1)                                                                                                \
    X(QP_RAE, 0x552, 1)                                                                                                \
    X(QP_MIN_RNR_NAK, 0x563, 5)                                                                                        \
    X(QP_NEXT_RCV_PSN, 0x568, 24)                                                                                      \
    X(QP_CQN_RCV, 0x5a8, 24)                                                                                           \
    X(QP_DBR_ADDR, 0x5c0, 64)   /* an offset in the doorbell record's umem */                                          \
    X(QP_RQ_TYPE, 0x625, 3)                                                                                            \
    X(QP_CS_REQ, 0x6f0, 8)      /* 0: small answers are never put into the CQE */                                      \
    X(QP_CS_RES, 0x6f8, 8)                                                                                             \
    X(QP_DBR_UMEM_VALID, 0x743, 1)                                                                                     \
    X(QP_DBR_UMEM_ID, 0x7e0, 32)                                                                                       \
    X(QP_WQ_UMEM_ID, 0x840, 32)                                                                                        \
    X(QP_WQ_UMEM_VALID, 0x860, 1)

enum bell_prm_field {
#define BELL_PRM_ENUM(name, bit, bits) BELL_PRM_##name,
    BELL_PRM_MAP(BELL_PRM_ENUM)
#undef BELL_PRM_ENUM
    BELL_PRM_FIELDS
};

struct bell_prm_place {
    const char *name;
    uint16_t bit, bits; /* 1 to 64 of them; a field of more than 32 starts at a whole byte */
};

extern const struct bell_prm_place bell_prm_places[BELL_PRM_FIELDS];

/* Write a field into `bytes`, keeping the bits around it.  False, and nothing written: the value is too wide. */
bool bell_prm_set(uint8_t *bytes, enum bell_prm_field field, uint64_t value);

uint64_t bell_prm_get(const uint8_t *bytes, enum bell_prm_field field);

/* "CREATE_QP"; never NULL. */
const char *bell_prm_opcode_text(uint32_t opcode);

/* What a status word of an answer means; never NULL.  Source: MLX5_CMD_STAT_* in include/linux/mlx5/device.h. */
const char *bell_prm_status_text(uint32_t status);

BELL_EXTERN_C_END

#endif
