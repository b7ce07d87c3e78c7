/* SPDX-License-Identifier: Apache-2.0
 * Send work queue entries in the mlx5 wire format: build, decode, doorbell and doorbell-record values.
 * A WQE is segments of 16 bytes (DS units) in 64-byte basic blocks.  What is built here has up to 16 of them in four
 * blocks; what is read may have 63 in 16, which is what the six bits of DS hold.  Order of segments: control, [address
 * vector on DC], [remote address], [atomic, [masks]], [data or inline data].
 * Requests and views hold host-order values; the bytes are big-endian.  (GPU libraries keep keys already swapped: pass
 * the unswapped key here.)  Layout: mlx5dv.h of rdma-core. */
#ifndef BELL_CORE_WQE_H
#define BELL_CORE_WQE_H

#include "core/endian.h"
#include "core/status.h"

#define BELL_WQE_SEGMENT_BYTES 16u
#define BELL_WQE_BLOCK_BYTES 64u
#define BELL_WQE_BLOCKS_MAX 4u
#define BELL_WQE_BYTES_MAX (BELL_WQE_BLOCK_BYTES * BELL_WQE_BLOCKS_MAX)
#define BELL_WQE_DS_MAX (BELL_WQE_BYTES_MAX / BELL_WQE_SEGMENT_BYTES)
#define BELL_WQE_DS_READ_MAX 63u
#define BELL_WQE_BLOCKS_READ_MAX 16u
#define BELL_WQE_READ_BYTES_MAX (BELL_WQE_BLOCK_BYTES * BELL_WQE_BLOCKS_READ_MAX)
#define BELL_WQE_INLINE_MAX 220u        /* an RC write in 256 B; less fits behind an address vector */
#define BELL_WQE_DATA_MAX 0x7fffffffu   /* byte_count has 31 bits; bit 31 says inline */
#define BELL_WQE_INLINE_BIT 0x80000000u /* of the first word of a data segment */
#define BELL_AV_EXTENDED_BIT 0x80000000u /* of dqp_dct on the wire: the address vector is 48 B, not 16 B */
#define BELL_QPN_MAX 0xffffffu

enum bell_wqe_opcode {
    BELL_WQE_NOP = 0x00,
    BELL_WQE_WRITE = 0x08,
    BELL_WQE_WRITE_IMM = 0x09,
    BELL_WQE_SEND = 0x0a,
    BELL_WQE_SEND_IMM = 0x0b,
    BELL_WQE_WAIT = 0x0f, /* for another queue's CQE: has a name, but is neither built nor decoded here */
    BELL_WQE_READ = 0x10,
    BELL_WQE_ATOMIC_CS = 0x11,
    BELL_WQE_ATOMIC_FA = 0x12,
    BELL_WQE_MASKED_CS = 0x14,
    BELL_WQE_MASKED_FA = 0x15,
    BELL_WQE_DUMP = 0x23 /* read local memory and discard it */
};

/* Opmod of the masked atomics: the operand's size. */
enum bell_wqe_opmod { BELL_WQE_OPMOD_MASKED_4 = 0x08, BELL_WQE_OPMOD_MASKED_8 = 0x09 };

/* fm_ce_se.  Fence modes are named by value: rdma-core's "fence" is 4, DOCA's and NVSHMEM's is 2. */
enum bell_wqe_flag {
    BELL_WQE_SOLICITED = 1 << 1,
    BELL_WQE_CE_ON_ERROR = 0 << 2,
    BELL_WQE_CE_ON_FIRST_ERROR = 1 << 2,
    BELL_WQE_CE_ALWAYS = 2 << 2,
    BELL_WQE_CE_EVENT = 3 << 2, /* a CQE and an event */
    BELL_WQE_CE_MASK = 3 << 2,
    BELL_WQE_FENCE_MODE_1 = 1 << 5,
    BELL_WQE_FENCE_MODE_2 = 2 << 5,
    BELL_WQE_FENCE_MODE_3 = 3 << 5,
    BELL_WQE_FENCE_MODE_4 = 4 << 5,
    BELL_WQE_FENCE_MASK = 7 << 5
};

struct bell_wqe {
    uint8_t bytes[BELL_WQE_BYTES_MAX];
} __attribute__((aligned(64)));

BELL_STATIC_ASSERT(sizeof(struct bell_wqe) == 256, "four basic blocks");

/* Where a DC request goes.  A compact vector (full false) ends after rlid. */
struct bell_av {
    uint64_t dc_key;
    uint32_t dqp_dct; /* 24 bits, without the extended bit */
    uint8_t stat_rate_sl;
    uint8_t fl_mlid;
    uint16_t rlid;
    bool full;
    uint8_t rmac[6];
    uint8_t tclass;
    uint8_t hop_limit;
    uint32_t grh_gid_fl;
    uint8_t rgid[16];
};

/* What an atomic does.  4-byte operands use the low half of each field. */
struct bell_wqe_atomic {
    uint64_t swap_or_add;
    uint64_t compare;        /* CS */
    uint64_t swap_mask;      /* masked CS */
    uint64_t compare_mask;   /* masked CS */
    uint64_t field_boundary; /* masked FA */
};

/* Fields that an opcode has no place for are ignored.  Zero the whole before filling it in. */
struct bell_wqe_request {
    uint64_t index; /* free-running, of the first block; 16 bits reach the wire */
    uint64_t raddr;
    uint64_t laddr;          /* atomics: receives the old value */
    const void *inline_data; /* NULL: the payload is at laddr */
    uint32_t opcode;         /* enum bell_wqe_opcode */
    uint32_t opmod;          /* enum bell_wqe_opmod for masked atomics, else 0 */
    uint32_t qpn;
    uint32_t fm_ce_se; /* enum bell_wqe_flag */
    uint32_t imm_be;   /* network order already; stored unchanged */
    uint32_t rkey;
    uint32_t lkey;
    uint32_t bytes; /* of payload; atomics: of the operand, 4 or 8 */
    bool is_dc;
    struct bell_av av;
    struct bell_wqe_atomic atomic;
};

/* A decoded WQE.  Fields that the opcode has no place for are zero.  Of several data segments, lkey, laddr and
 * inline_offset are those of the first with payload: bell_wqe_next_piece walks through all of them. */
struct bell_wqe_view {
    uint64_t raddr;
    uint64_t laddr;
    uint64_t swap_or_add;
    uint64_t compare;
    uint64_t swap_mask;
    uint64_t compare_mask;
    uint64_t field_boundary;
    uint32_t qpn;
    uint32_t ds;
    uint32_t blocks;
    uint32_t imm_be; /* as it stands in the WQE */
    uint32_t rkey;
    uint32_t lkey;
    uint32_t bytes;         /* of all data segments */
    uint32_t pieces;        /* data segments with payload */
    uint32_t data_offset;   /* of the first data segment in the WQE's bytes */
    uint32_t inline_offset; /* of the payload in the WQE's bytes, when has_inline */
    uint16_t index16;
    uint8_t opcode;
    uint8_t opmod;
    uint8_t fm_ce_se;
    bool has_inline;
    bool is_dc;
    struct bell_av av;
};

/* One data segment with payload. */
struct bell_wqe_piece {
    uint64_t laddr;
    uint32_t lkey;
    uint32_t bytes;
    uint32_t inline_offset; /* of the payload in the WQE's bytes, when is_inline */
    bool is_inline;
};

BELL_PURE bool bell_wqe_is_masked(uint32_t opcode)
{
    return opcode == BELL_WQE_MASKED_CS || opcode == BELL_WQE_MASKED_FA;
}

BELL_PURE bool bell_wqe_is_atomic(uint32_t opcode)
{
    return opcode == BELL_WQE_ATOMIC_CS || opcode == BELL_WQE_ATOMIC_FA || bell_wqe_is_masked(opcode);
}

BELL_PURE bool bell_wqe_has_imm(uint32_t opcode)
{
    return opcode == BELL_WQE_WRITE_IMM || opcode == BELL_WQE_SEND_IMM;
}

/* Writes and sends: the payload leaves from here and may travel in the WQE. */
BELL_PURE bool bell_wqe_may_inline(uint32_t opcode)
{
    return opcode >= BELL_WQE_WRITE && opcode <= BELL_WQE_SEND_IMM;
}

BELL_PURE bool bell_wqe_has_raddr(uint32_t opcode)
{
    return opcode == BELL_WQE_WRITE || opcode == BELL_WQE_WRITE_IMM || opcode == BELL_WQE_READ
           || bell_wqe_is_atomic(opcode);
}

/* Whether an address vector follows the control segment on DC: whatever leaves the NIC needs one. */
BELL_PURE bool bell_wqe_has_av(uint32_t opcode)
{
    return opcode != BELL_WQE_NOP && opcode != BELL_WQE_DUMP;
}

BELL_PURE bool bell_wqe_is_known(uint32_t opcode)
{
    return opcode == BELL_WQE_NOP || opcode == BELL_WQE_DUMP || bell_wqe_may_inline(opcode)
           || bell_wqe_has_raddr(opcode);
}

/* Size of an atomic's operand in bytes; 0 when the two do not go together. */
BELL_PURE uint32_t bell_wqe_operand_bytes(uint32_t opcode, uint32_t opmod)
{
    if (!bell_wqe_is_atomic(opcode))
        return 0;
    if (!bell_wqe_is_masked(opcode))
        return opmod == 0 ? 8 : 0;
    return opmod == BELL_WQE_OPMOD_MASKED_4 ? 4 : opmod == BELL_WQE_OPMOD_MASKED_8 ? 8 : 0;
}

/* DS units in front of the data. */
BELL_PURE uint32_t bell_wqe_head_ds(uint32_t opcode, uint32_t opmod, bool is_dc, bool full_av)
{
    uint32_t ds = 1;
    if (is_dc && bell_wqe_has_av(opcode))
        ds += full_av ? 3 : 1;
    if (bell_wqe_has_raddr(opcode))
        ds += 1;
    if (bell_wqe_is_atomic(opcode))
        ds += opcode == BELL_WQE_MASKED_CS && opmod == BELL_WQE_OPMOD_MASKED_8 ? 2 : 1;
    return ds;
}

/* Size of a request's WQE in DS units; the request need not be valid.  Without payload there is no data segment. */
BELL_PURE uint32_t bell_wqe_ds(const struct bell_wqe_request *r)
{
    uint32_t ds = bell_wqe_head_ds(r->opcode, r->opmod, r->is_dc, r->av.full);
    if (r->opcode == BELL_WQE_NOP || r->bytes == 0)
        return ds;
    if (r->inline_data)
        return ds + (uint32_t)(((uint64_t)r->bytes + 4 + BELL_WQE_SEGMENT_BYTES - 1) / BELL_WQE_SEGMENT_BYTES);
    return ds + 1;
}

BELL_PURE uint32_t bell_wqe_blocks(uint32_t ds)
{
    return (ds * BELL_WQE_SEGMENT_BYTES + BELL_WQE_BLOCK_BYTES - 1) / BELL_WQE_BLOCK_BYTES;
}

BELL_PURE enum bell_status bell_wqe_check(const struct bell_wqe_request *r)
{
    if (!bell_wqe_is_known(r->opcode) || r->qpn > BELL_QPN_MAX || r->fm_ce_se > 0xff || r->bytes > BELL_WQE_DATA_MAX)
        return BELL_INVALID;
    if (!bell_wqe_is_masked(r->opcode) && r->opmod != 0)
        return BELL_INVALID;
    if (r->is_dc && bell_wqe_has_av(r->opcode) && r->av.dqp_dct > BELL_QPN_MAX)
        return BELL_INVALID;
    if (r->inline_data && r->opcode != BELL_WQE_NOP
        && (!bell_wqe_may_inline(r->opcode) || r->bytes > BELL_WQE_INLINE_MAX))
        return BELL_INVALID;
    if (r->opcode == BELL_WQE_DUMP && r->bytes == 0)
        return BELL_INVALID;
    if (bell_wqe_is_atomic(r->opcode)) {
        uint32_t operand = bell_wqe_operand_bytes(r->opcode, r->opmod);
        const struct bell_wqe_atomic *a = &r->atomic;
        if (operand == 0 || r->bytes != operand)
            return BELL_INVALID;
        if (operand == 4
            && (a->swap_or_add | a->compare | a->swap_mask | a->compare_mask | a->field_boundary) > 0xffffffffu)
            return BELL_INVALID;
    }
    return bell_wqe_ds(r) > BELL_WQE_DS_MAX ? BELL_INVALID : BELL_OK;
}

/* Returns the place after the vector.  Reserved bytes are zero already. */
BELL_PURE uint8_t *bell_wqe_put_av(uint8_t *at, const struct bell_av *av)
{
    bell_store_be64(at, av->dc_key);
    bell_store_be32(at + 8, av->dqp_dct | (av->full ? BELL_AV_EXTENDED_BIT : 0));
    at[12] = av->stat_rate_sl;
    at[13] = av->fl_mlid;
    bell_store_be16(at + 14, av->rlid);
    if (!av->full)
        return at + 16;
    memcpy(at + 20, av->rmac, sizeof av->rmac);
    at[26] = av->tclass;
    at[27] = av->hop_limit;
    bell_store_be32(at + 28, av->grh_gid_fl);
    memcpy(at + 32, av->rgid, sizeof av->rgid);
    return at + 48;
}

BELL_PURE uint8_t *bell_wqe_put_atomic(uint8_t *at, const struct bell_wqe_request *r)
{
    const struct bell_wqe_atomic *a = &r->atomic;
    bool is_cs = r->opcode == BELL_WQE_MASKED_CS;
    if (!bell_wqe_is_masked(r->opcode)) {
        bell_store_be64(at, a->swap_or_add);
        bell_store_be64(at + 8, r->opcode == BELL_WQE_ATOMIC_CS ? a->compare : 0);
        return at + 16;
    }
    if (r->opmod == BELL_WQE_OPMOD_MASKED_4) {
        bell_store_be32(at, (uint32_t)a->swap_or_add);
        bell_store_be32(at + 4, (uint32_t)(is_cs ? a->compare : a->field_boundary));
        if (is_cs) {
            bell_store_be32(at + 8, (uint32_t)a->swap_mask);
            bell_store_be32(at + 12, (uint32_t)a->compare_mask);
        }
        return at + 16;
    }
    bell_store_be64(at, a->swap_or_add);
    bell_store_be64(at + 8, is_cs ? a->compare : a->field_boundary);
    if (!is_cs)
        return at + 16;
    bell_store_be64(at + 16, a->swap_mask);
    bell_store_be64(at + 24, a->compare_mask);
    return at + 32;
}

/* Fill whole blocks of *wqe: every byte of bell_wqe_ds(r) * 16 is written and the rest of the last block is zero.
 * Reads r->bytes bytes of r->inline_data.  The request has passed bell_wqe_check.  Returns bell_wqe_ds(r). */
BELL_PURE BELL_RARELY uint32_t bell_wqe_fill(struct bell_wqe *wqe, const struct bell_wqe_request *r)
{
    uint32_t ds = bell_wqe_ds(r);
    uint8_t *at = wqe->bytes;
    for (uint32_t b = 0; b < bell_wqe_blocks(ds); b++)
        memset(at + b * BELL_WQE_BLOCK_BYTES, 0, BELL_WQE_BLOCK_BYTES);
    bell_store_be32(at, r->opmod << 24 | (uint32_t)(r->index & 0xffff) << 8 | r->opcode);
    bell_store_be32(at + 4, r->qpn << 8 | ds);
    at[11] = (uint8_t)r->fm_ce_se;
    if (bell_wqe_has_imm(r->opcode))
        memcpy(at + 12, &r->imm_be, sizeof r->imm_be);
    at += BELL_WQE_SEGMENT_BYTES;
    if (r->is_dc && bell_wqe_has_av(r->opcode))
        at = bell_wqe_put_av(at, &r->av);
    if (bell_wqe_has_raddr(r->opcode)) {
        bell_store_be64(at, r->raddr);
        bell_store_be32(at + 8, r->rkey);
        at += BELL_WQE_SEGMENT_BYTES;
    }
    if (bell_wqe_is_atomic(r->opcode))
        at = bell_wqe_put_atomic(at, r);
    if (r->opcode == BELL_WQE_NOP || r->bytes == 0)
        return ds;
    if (r->inline_data) {
        bell_store_be32(at, BELL_WQE_INLINE_BIT | r->bytes);
        if (r->bytes == 8) /* the common flag or counter, without a call */
            memcpy(at + 4, r->inline_data, 8);
        else
            memcpy(at + 4, r->inline_data, r->bytes);
    } else {
        bell_store_be32(at, r->bytes);
        bell_store_be32(at + 4, r->lkey);
        bell_store_be64(at + 8, r->laddr);
    }
    return ds;
}

/* Check and fill.  BELL_INVALID, and *wqe untouched, when the request has no wire form. */
BELL_PURE enum bell_status bell_wqe_build(struct bell_wqe *wqe, const struct bell_wqe_request *r)
{
    enum bell_status s = bell_wqe_check(r);
    if (s == BELL_OK)
        (void)bell_wqe_fill(wqe, r);
    return s;
}

/* The doorbell as its 8 bytes lie in memory, GPU library convention: opcode, opmod and ds zero, the index is the
 * producer index (one past the last block). */
BELL_PURE uint64_t bell_wqe_doorbell(uint32_t qpn, uint64_t producer)
{
    uint32_t words[2];
    uint64_t value;
    words[0] = bell_be32((uint32_t)(producer & 0xffff) << 8);
    words[1] = bell_be32(qpn << 8);
    memcpy(&value, words, sizeof value);
    return value;
}

/* The doorbell, rdma-core convention: the first 8 bytes of the last WQE, whose index is that WQE's first block. */
BELL_PURE uint64_t bell_wqe_doorbell_ctrl(const struct bell_wqe *wqe)
{
    uint64_t value;
    memcpy(&value, wqe->bytes, sizeof value);
    return value;
}

/* The 16-bit index in a doorbell; what it counts depends on the convention.  The opmod byte is ignored. */
BELL_PURE uint32_t bell_doorbell_index(uint64_t doorbell)
{
    uint32_t words[2];
    memcpy(words, &doorbell, sizeof words);
    return bell_be32(words[0]) >> 8 & 0xffff;
}

/* The 16-bit producer index that a doorbell of either convention announces: GPU libraries leave ds zero and give the
 * producer index; rdma-core gives the last WQE's own first block and its ds.  That this is how hardware tells them
 * apart is inferred: it fits both.  Opmod and opcode are ignored. */
BELL_PURE uint32_t bell_doorbell_producer(uint64_t doorbell)
{
    uint32_t words[2];
    memcpy(words, &doorbell, sizeof words);
    return (bell_doorbell_index(doorbell) + bell_wqe_blocks(bell_be32(words[1]) & 0x3f)) & 0xffff;
}

BELL_PURE uint32_t bell_doorbell_qpn(uint64_t doorbell)
{
    uint32_t words[2];
    memcpy(words, &doorbell, sizeof words);
    return bell_be32(words[1]) >> 8;
}

/* Send word of the doorbell record, as stored. */
BELL_PURE uint32_t bell_dbrec_value(uint64_t producer)
{
    return bell_be32((uint32_t)(producer & 0xffff));
}

BELL_PURE uint32_t bell_dbrec_index(uint32_t dbrec)
{
    return bell_be32(dbrec) & 0xffff;
}

/* Read the control segment (16 bytes) of a WQE's first block.  The view's control fields are filled in whatever is
 * returned, because an error CQE names them; BELL_INVALID: unknown opcode, or ds is 0.
 * Signature and stream id are ignored: some builders leave them uninitialised. */
BELL_PURE enum bell_status bell_wqe_decode_ctrl(const uint8_t *block, struct bell_wqe_view *view)
{
    uint32_t first = bell_load_be32(block), second = bell_load_be32(block + 4);
    memset(view, 0, sizeof *view);
    view->opmod = (uint8_t)(first >> 24);
    view->index16 = (uint16_t)(first >> 8 & 0xffff);
    view->opcode = (uint8_t)(first & 0xff);
    view->qpn = second >> 8;
    view->ds = second & 0x3f;
    view->blocks = bell_wqe_blocks(view->ds);
    view->fm_ce_se = block[11];
    if (bell_wqe_has_imm(view->opcode))
        memcpy(&view->imm_be, block + 12, sizeof view->imm_be);
    return !bell_wqe_is_known(view->opcode) || view->ds == 0 ? BELL_INVALID : BELL_OK;
}

BELL_PURE void bell_wqe_get_av(const uint8_t *at, struct bell_av *av)
{
    uint32_t dct = bell_load_be32(at + 8);
    av->dc_key = bell_load_be64(at);
    av->dqp_dct = dct & BELL_QPN_MAX;
    av->full = (dct & BELL_AV_EXTENDED_BIT) != 0;
    av->stat_rate_sl = at[12];
    av->fl_mlid = at[13];
    av->rlid = bell_load_be16(at + 14);
    if (!av->full)
        return;
    memcpy(av->rmac, at + 20, sizeof av->rmac);
    av->tclass = at[26];
    av->hop_limit = at[27];
    av->grh_gid_fl = bell_load_be32(at + 28);
    memcpy(av->rgid, at + 32, sizeof av->rgid);
}

BELL_PURE void bell_wqe_get_atomic(const uint8_t *at, struct bell_wqe_view *v)
{
    bool is_cs = v->opcode == BELL_WQE_MASKED_CS;
    bool is_half = v->opmod == BELL_WQE_OPMOD_MASKED_4;
    uint64_t second = is_half ? bell_load_be32(at + 4) : bell_load_be64(at + 8);
    v->swap_or_add = is_half ? bell_load_be32(at) : bell_load_be64(at);
    if (is_cs || v->opcode == BELL_WQE_ATOMIC_CS)
        v->compare = second;
    else if (v->opcode == BELL_WQE_MASKED_FA)
        v->field_boundary = second;
    if (is_cs) {
        v->swap_mask = is_half ? bell_load_be32(at + 8) : bell_load_be64(at + 16);
        v->compare_mask = is_half ? bell_load_be32(at + 12) : bell_load_be64(at + 24);
    }
}

/* The data segment at *at of bytes[..end), which *at then moves past; empty ones have bytes 0.  False: it does not lie
 * in the WQE. */
BELL_PURE bool bell_wqe_next_piece(const uint8_t *bytes, uint32_t *at, uint32_t end, struct bell_wqe_piece *piece)
{
    uint32_t word = bell_load_be32(bytes + *at), size = word & BELL_WQE_DATA_MAX;
    bool is_inline = (word & BELL_WQE_INLINE_BIT) != 0;
    if (is_inline && (size > end - *at || size + 4 > end - *at))
        return false;
    piece->bytes = size;
    piece->is_inline = is_inline;
    piece->inline_offset = is_inline ? *at + 4 : 0;
    piece->lkey = is_inline ? 0 : bell_load_be32(bytes + *at + 4);
    piece->laddr = is_inline ? 0 : bell_load_be64(bytes + *at + 8);
    uint32_t used = is_inline ? size + 4 : BELL_WQE_SEGMENT_BYTES;
    *at += (used + BELL_WQE_SEGMENT_BYTES - 1) / BELL_WQE_SEGMENT_BYTES * BELL_WQE_SEGMENT_BYTES;
    return true;
}

/* All data segments of bytes[v->data_offset, end). */
BELL_PURE enum bell_status bell_wqe_get_data(const uint8_t *bytes, uint32_t end, struct bell_wqe_view *v)
{
    struct bell_wqe_piece piece;
    for (uint32_t at = v->data_offset; at < end;) {
        if (!bell_wqe_next_piece(bytes, &at, end, &piece) || (piece.is_inline && !bell_wqe_may_inline(v->opcode))
            || piece.bytes > BELL_WQE_DATA_MAX - v->bytes)
            return BELL_INVALID;
        if (piece.bytes && v->pieces++ == 0) {
            v->has_inline = piece.is_inline;
            v->inline_offset = piece.inline_offset;
            v->lkey = piece.lkey;
            v->laddr = piece.laddr;
        }
        v->bytes += piece.bytes;
    }
    return BELL_OK;
}

/* Read a whole WQE from a contiguous copy; bytes holds as many blocks as bell_wqe_decode_ctrl said.  is_dc is a
 * property of the queue.  *view is written only on BELL_OK.  BELL_INVALID: malformed, or more than 2^31 - 1 bytes. */
BELL_PURE enum bell_status bell_wqe_decode(const uint8_t *bytes, bool is_dc, struct bell_wqe_view *view)
{
    struct bell_wqe_view v;
    enum bell_status s = bell_wqe_decode_ctrl(bytes, &v);
    if (s != BELL_OK)
        return s;
    uint32_t at = BELL_WQE_SEGMENT_BYTES, end = v.ds * BELL_WQE_SEGMENT_BYTES;
    v.is_dc = is_dc;
    if (v.opcode == BELL_WQE_NOP) {
        if (v.ds > 2)
            return BELL_INVALID;
        *view = v;
        return BELL_OK;
    }
    bool has_av = is_dc && bell_wqe_has_av(v.opcode);
    bool is_full = has_av && v.ds > 1 && (bell_load_be32(bytes + at + 8) & BELL_AV_EXTENDED_BIT) != 0;
    uint32_t head = bell_wqe_head_ds(v.opcode, v.opmod, is_dc, is_full) * BELL_WQE_SEGMENT_BYTES;
    uint32_t operand = bell_wqe_operand_bytes(v.opcode, v.opmod);
    if (head > end || (bell_wqe_is_atomic(v.opcode) && operand == 0))
        return BELL_INVALID;
    if (has_av) {
        bell_wqe_get_av(bytes + at, &v.av);
        at += is_full ? 48 : 16;
    }
    if (bell_wqe_has_raddr(v.opcode)) {
        v.raddr = bell_load_be64(bytes + at);
        v.rkey = bell_load_be32(bytes + at + 8);
        at += BELL_WQE_SEGMENT_BYTES;
    }
    if (operand)
        bell_wqe_get_atomic(bytes + at, &v);
    v.data_offset = head;
    s = bell_wqe_get_data(bytes, end, &v);
    if (s != BELL_OK)
        return s;
    if ((operand && (v.bytes != operand || v.pieces != 1)) || (v.opcode == BELL_WQE_DUMP && v.bytes == 0))
        return BELL_INVALID;
    *view = v;
    return BELL_OK;
}

#endif
