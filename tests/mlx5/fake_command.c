/* SPDX-License-Identifier: Apache-2.0
 * What the device in software makes of DevX commands. */
#include "tests/mlx5/fake.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define CQN_BASE 0x400u
#define QPN_BASE 0x123400u

#define CAP_LOG_SIZE 15u
#define LOG_BF_REG_SIZE 9u /* two halves of 256 B */
#define SYNDROME 0x1badd00du

void fake_break(struct fake *f, const char *format, ...)
{
    va_list arguments;
    if (f->broken[0])
        return;
    va_start(arguments, format);
    (void)vsnprintf(f->broken, sizeof f->broken, format, arguments);
    va_end(arguments);
}

int fake_refuse(uint8_t *out)
{
    (void)bell_prm_set(out, BELL_PRM_STATUS, 0x3);
    (void)bell_prm_set(out, BELL_PRM_SYNDROME, SYNDROME);
    return EREMOTEIO;
}

#define REFUSE_UNLESS(claim)                                                                                           \
    do {                                                                                                               \
        if (!(claim)) {                                                                                                \
            fake_break(f, "%s: %s", bell_prm_opcode_text((uint32_t)bell_prm_get(in, BELL_PRM_OPCODE)), #claim);        \
            return fake_refuse(out);                                                                                   \
        }                                                                                                              \
    } while (0)

/* Are all bits outside the fields that a command of this family has zero? */
static bool has_no_stray_bits(const uint8_t *in, size_t bytes, const char *family)
{
    uint8_t copy[BELL_PRM_QP_IN];
    memcpy(copy, in, bytes);
    (void)bell_prm_set(copy, BELL_PRM_OPCODE, 0);
    (void)bell_prm_set(copy, BELL_PRM_OP_MOD, 0);
    for (uint32_t i = 0; i < BELL_PRM_FIELDS; i++)
        if (strncmp(bell_prm_places[i].name, family, strlen(family)) == 0)
            (void)bell_prm_set(copy, (enum bell_prm_field)i, 0);
    for (size_t i = 0; i < bytes; i++)
        if (copy[i])
            return false;
    return true;
}

static struct fake_umem *umem_of(struct fake *f, uint64_t id)
{
    for (uint32_t i = 0; i < FAKE_THINGS; i++)
        if (f->umem[i].thing.is_live && f->umem[i].thing.number == id)
            return f->umem + i;
    return NULL;
}

static struct fake_uar *uar_of(struct fake *f, uint64_t page)
{
    for (uint32_t i = 0; i < FAKE_THINGS; i++)
        if (f->uar[i].thing.is_live && f->uar[i].thing.number == page)
            return f->uar + i;
    return NULL;
}

static struct fake_cq *cq_of(struct fake *f, uint64_t number)
{
    for (uint32_t i = 0; i < FAKE_THINGS; i++)
        if (f->cq[i].thing.is_live && f->cq[i].thing.number == number)
            return f->cq + i;
    return NULL;
}

static bool is_qp(struct fake *f, uint64_t number)
{
    for (uint32_t i = 0; i < FAKE_THINGS; i++)
        if (f->qp[i].thing.is_live && f->qp[i].thing.number == number)
            return true;
    return false;
}

/* A record is 8 B, aligned to them, inside its umem. */
static bool is_record(const struct fake_umem *umem, uint64_t offset)
{
    return umem && offset % 8 == 0 && offset + 8 <= umem->bytes;
}

static bool is_paged(const struct fake_umem *umem, uint64_t log_page_size, uint64_t bytes)
{
    uint64_t page = 1ull << (log_page_size + 12);
    return umem && bytes <= umem->bytes && umem->bytes % page == 0
           && (umem->is_mapped || (uintptr_t)umem->at % page == 0);
}

static int create_cq(struct fake *f, const uint8_t *in, size_t in_bytes, uint8_t *out, void **object)
{
    REFUSE_UNLESS(in_bytes == 0x110);
    REFUSE_UNLESS(has_no_stray_bits(in, in_bytes, "CQ_"));
    struct fake_umem *umem = umem_of(f, bell_prm_get(in, BELL_PRM_CQ_UMEM_ID));
    struct fake_umem *record = umem_of(f, bell_prm_get(in, BELL_PRM_CQ_DBR_UMEM_ID));
    uint32_t entries = 1u << bell_prm_get(in, BELL_PRM_CQ_LOG_SIZE);
    bool is_collapsed = bell_prm_get(in, BELL_PRM_CQ_CC) != 0;
    REFUSE_UNLESS(bell_prm_get(in, BELL_PRM_CQ_UMEM_VALID) == 1 && bell_prm_get(in, BELL_PRM_CQ_DBR_UMEM_VALID) == 1);
    REFUSE_UNLESS(is_paged(umem, bell_prm_get(in, BELL_PRM_CQ_LOG_PAGE_SIZE), (uint64_t)entries * 64));
    REFUSE_UNLESS(is_record(record, bell_prm_get(in, BELL_PRM_CQ_DBR_ADDR)));
    REFUSE_UNLESS(bell_prm_get(in, BELL_PRM_CQ_CQE_SZ) == 0);
    REFUSE_UNLESS(bell_prm_get(in, BELL_PRM_CQ_OI) == 1);
    REFUSE_UNLESS(uar_of(f, bell_prm_get(in, BELL_PRM_CQ_UAR_PAGE)));
    REFUSE_UNLESS(bell_prm_get(in, BELL_PRM_CQ_EQN) == 5);
    struct fake_cq *cq = FAKE_TAKE(f, cq, CQN_BASE);
    cq->cqe = (struct bell_cqe *)(void *)umem->at;
    cq->entries = entries;
    cq->is_collapsed = is_collapsed;
    for (uint32_t i = 0; i < entries && !f->is_deaf; i++)
        if (cq->cqe[i].op_own != (is_collapsed ? 0xff : 0xf1))
            fake_break(f, "CQE %u was not filled before the CQ was made", i);
    (void)bell_prm_set(out, BELL_PRM_OUT_NUMBER, cq->thing.number);
    *object = cq;
    return 0;
}

static void init_sq(struct fake *f, struct fake_qp *qp, const uint8_t *in, uint8_t *wqe, uint8_t *record,
                    uint8_t *uar_page)
{
    struct bell_sq *sq = &qp->sq;
    memset(sq, 0, sizeof *sq);
    sq->wqe = wqe;
    sq->cqe = qp->cq->cqe;
    sq->dbrec = (uint32_t *)(void *)(record + bell_prm_get(in, BELL_PRM_QP_DBR_ADDR) + 4);
    sq->doorbell = (uint64_t *)(void *)(uar_page + 0x800);
    sq->key = sq->wqe;
    sq->depth = 1u << bell_prm_get(in, BELL_PRM_QP_LOG_SQ_SIZE);
    sq->cq_depth = qp->cq->is_collapsed ? 1 : qp->cq->entries;
    for (sq->cq_shift = 0; 1u << sq->cq_shift < sq->cq_depth;)
        sq->cq_shift++;
    sq->qpn = qp->thing.number;
    sq->is_dc = bell_prm_get(in, BELL_PRM_QP_ST) == 5;
    memset(&qp->nicq, 0, sizeof qp->nicq);
    qp->nicq.sq = sq;
    qp->nicq.start = f->start;
}

static int create_qp(struct fake *f, const uint8_t *in, size_t in_bytes, uint8_t *out, void **object)
{
    REFUSE_UNLESS(in_bytes == 0x110);
    REFUSE_UNLESS(has_no_stray_bits(in, in_bytes, "QP_"));
    struct fake_umem *umem = umem_of(f, bell_prm_get(in, BELL_PRM_QP_WQ_UMEM_ID));
    struct fake_umem *record = umem_of(f, bell_prm_get(in, BELL_PRM_QP_DBR_UMEM_ID));
    struct fake_uar *uar = uar_of(f, bell_prm_get(in, BELL_PRM_QP_UAR_PAGE));
    struct fake_cq *cq = cq_of(f, bell_prm_get(in, BELL_PRM_QP_CQN_SND));
    uint64_t depth = 1ull << bell_prm_get(in, BELL_PRM_QP_LOG_SQ_SIZE), st = bell_prm_get(in, BELL_PRM_QP_ST);
    REFUSE_UNLESS(bell_prm_get(in, BELL_PRM_QP_WQ_UMEM_VALID) == 1
                  && bell_prm_get(in, BELL_PRM_QP_DBR_UMEM_VALID) == 1);
    REFUSE_UNLESS(is_paged(umem, bell_prm_get(in, BELL_PRM_QP_LOG_PAGE_SIZE), depth * 64));
    REFUSE_UNLESS(is_record(record, bell_prm_get(in, BELL_PRM_QP_DBR_ADDR)));
    REFUSE_UNLESS(uar && cq && bell_prm_get(in, BELL_PRM_QP_CQN_RCV) == cq->thing.number);
    REFUSE_UNLESS(st == 0 || (st == 5 && f->has_dc));
    REFUSE_UNLESS(bell_prm_get(in, BELL_PRM_QP_PM_STATE) == 3);
    REFUSE_UNLESS(f->pd.is_live && bell_prm_get(in, BELL_PRM_QP_PD) == f->pd.number);
    REFUSE_UNLESS(bell_prm_get(in, BELL_PRM_QP_RQ_TYPE) == 3);
    REFUSE_UNLESS(bell_prm_get(in, BELL_PRM_QP_CS_REQ) == 0 && bell_prm_get(in, BELL_PRM_QP_CS_RES) == 0);
    struct fake_qp *qp = FAKE_TAKE(f, qp, QPN_BASE);
    qp->state = FAKE_RESET;
    qp->cq = cq;
    init_sq(f, qp, in, umem->at, record->at, uar->page);
    (void)bell_prm_set(out, BELL_PRM_OUT_NUMBER, qp->thing.number);
    *object = qp;
    return 0;
}

int fake_do_create(struct fake *f, const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes, void **object)
{
    uint64_t opcode = bell_prm_get(in, BELL_PRM_OPCODE);
    REFUSE_UNLESS(out_bytes == 0x10);
    REFUSE_UNLESS(opcode == 0x400 || opcode == 0x500);
    f->commands[opcode]++;
    return opcode == 0x400 ? create_cq(f, in, in_bytes, out, object) : create_qp(f, in, in_bytes, out, object);
}

static int to_rtr(struct fake *f, struct fake_qp *qp, const uint8_t *in, uint8_t *out)
{
    REFUSE_UNLESS(bell_prm_get(in, BELL_PRM_QP_MTU) == 5);
    REFUSE_UNLESS(bell_prm_get(in, BELL_PRM_QP_LOG_MSG_MAX) == 30);
    REFUSE_UNLESS(bell_prm_get(in, BELL_PRM_QP_PORT) == 1);
    if (qp->sq.is_dc)
        return 0;
    qp->remote = (uint32_t)bell_prm_get(in, BELL_PRM_QP_REMOTE_QPN);
    REFUSE_UNLESS(is_qp(f, qp->remote));
    if (f->is_ethernet) {
        REFUSE_UNLESS(bell_prm_get(in, BELL_PRM_QP_RMAC_HIGH) == 0x0200);
        REFUSE_UNLESS(bell_prm_get(in, BELL_PRM_QP_RMAC_LOW) == 0x5e102030);
        REFUSE_UNLESS(bell_prm_get(in, BELL_PRM_QP_UDP_SPORT) == 0xc001);
        REFUSE_UNLESS(bell_prm_get(in, BELL_PRM_QP_SRC_ADDR_INDEX) == 3);
        REFUSE_UNLESS(bell_prm_get(in, BELL_PRM_QP_RGID_HIGH) == 0);
        REFUSE_UNLESS(bell_prm_get(in, BELL_PRM_QP_RGID_LOW) == 0x0000ffffc0000201);
        REFUSE_UNLESS(bell_prm_get(in, BELL_PRM_QP_HOP_LIMIT) == 64);
        REFUSE_UNLESS(bell_prm_get(in, BELL_PRM_QP_RLID) == 0 && bell_prm_get(in, BELL_PRM_QP_GRH) == 0);
    } else {
        REFUSE_UNLESS(bell_prm_get(in, BELL_PRM_QP_RLID) == 0x17);
        REFUSE_UNLESS(bell_prm_get(in, BELL_PRM_QP_UDP_SPORT) == 0 && bell_prm_get(in, BELL_PRM_QP_GRH) == 0);
    }
    return 0;
}

int fake_do_modify(struct fake_qp *qp, const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes)
{
    struct fake *f = qp->thing.fake;
    uint64_t opcode = bell_prm_get(in, BELL_PRM_OPCODE);
    REFUSE_UNLESS(in_bytes == 0x110 && out_bytes == 0x10);
    REFUSE_UNLESS(has_no_stray_bits(in, in_bytes, "QP_"));
    REFUSE_UNLESS(qp->thing.is_live && bell_prm_get(in, BELL_PRM_QP_NUMBER) == qp->thing.number);
    REFUSE_UNLESS(qp->state != FAKE_RTS && opcode == 0x502u + qp->state); /* RESET, INIT, RTR, RTS in this order */
    f->commands[opcode]++;
    int refused = 0;
    if (qp->state == FAKE_RESET) {
        uint64_t answers = qp->sq.is_dc ? 0 : 1; /* a DCI answers nobody */
        REFUSE_UNLESS(bell_prm_get(in, BELL_PRM_QP_PM_STATE) == 3 && bell_prm_get(in, BELL_PRM_QP_PORT) == 1);
        REFUSE_UNLESS(bell_prm_get(in, BELL_PRM_QP_RWE) == answers);
    } else if (qp->state == FAKE_INIT) {
        refused = to_rtr(f, qp, in, out);
    } else {
        REFUSE_UNLESS(bell_prm_get(in, BELL_PRM_QP_RETRY_COUNT) == 7);
        REFUSE_UNLESS(bell_prm_get(in, BELL_PRM_QP_RNR_RETRY) == 7);
        REFUSE_UNLESS(bell_prm_get(in, BELL_PRM_QP_ACK_TIMEOUT) == 20);
    }
    if (!refused)
        qp->state = (enum fake_state)(qp->state + 1);
    return refused;
}

int fake_do_command(struct fake *f, const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes)
{
    uint64_t opcode = bell_prm_get(in, BELL_PRM_OPCODE);
    REFUSE_UNLESS(opcode == 0x100 && in_bytes == 0x10 && out_bytes == 0x1010);
    REFUSE_UNLESS(bell_prm_get(in, BELL_PRM_OP_MOD) == 1);
    f->commands[opcode]++;
    (void)bell_prm_set(out, BELL_PRM_CAP_LOG_MAX_QP_SZ, CAP_LOG_SIZE);
    (void)bell_prm_set(out, BELL_PRM_CAP_LOG_MAX_CQ_SZ, CAP_LOG_SIZE);
    (void)bell_prm_set(out, BELL_PRM_CAP_CQE_VERSION, f->cqe_version);
    (void)bell_prm_set(out, BELL_PRM_CAP_DCT, f->has_dc);
    (void)bell_prm_set(out, BELL_PRM_CAP_CQ_OI, f->has_oi);
    (void)bell_prm_set(out, BELL_PRM_CAP_BF, 1);
    (void)bell_prm_set(out, BELL_PRM_CAP_LOG_BF_REG_SIZE, LOG_BF_REG_SIZE);
    return 0;
}
