/* SPDX-License-Identifier: Apache-2.0
 * The common WQEs made in registers, word by word: the same bytes as bell_wqe_fill gives, which goes through memory.  A
 * GPU lane has no memory of its own that is near. */
#ifndef BELL_CORE_WQE_WORDS_H
#define BELL_CORE_WQE_WORDS_H

#include "core/wqe.h"

/* An RC write of 8 bytes inline, or by pointer, is three segments: the common put. */
struct bell_wqe_short {
    uint64_t words[6];
};

BELL_PURE bool bell_wqe_is_short(const struct bell_wqe_request *r)
{
    return r->opcode == BELL_WQE_WRITE && !r->is_dc && r->bytes && (!r->inline_data || r->bytes == 8);
}

/* Two be32 in the order they lie in memory. */
BELL_PURE uint64_t bell_wqe_pair(uint32_t first, uint32_t second)
{
    return (uint64_t)bell_be32(second) << 32 | bell_be32(first);
}

/* The bytes bell_wqe_fill gives for a short request, in registers where the compiler can. */
BELL_PURE void bell_wqe_fill_short(struct bell_wqe_short *wqe, const struct bell_wqe_request *r)
{
    wqe->words[0] = bell_wqe_pair((uint32_t)(r->index & 0xffff) << 8 | BELL_WQE_WRITE,
                                  r->qpn << 8 | (uint32_t)(sizeof wqe->words / BELL_WQE_SEGMENT_BYTES));
    wqe->words[1] = bell_wqe_pair(r->fm_ce_se, 0); /* stream id is zero */
    wqe->words[2] = bell_be64(r->raddr);
    wqe->words[3] = bell_wqe_pair(r->rkey, 0);
    if (r->inline_data) {
        uint64_t value;
        memcpy(&value, r->inline_data, sizeof value);
        wqe->words[4] = value << 32 | bell_be32(BELL_WQE_INLINE_BIT | 8);
        wqe->words[5] = value >> 32;
    } else {
        wqe->words[4] = bell_wqe_pair(r->bytes, r->lkey);
        wqe->words[5] = bell_be64(r->laddr);
    }
}

/* An RC write with an inline payload of whole 4 B words at a 4 B boundary can be made a segment at a time. */
BELL_PURE bool bell_wqe_is_segmented(const struct bell_wqe_request *r)
{
    return r->opcode == BELL_WQE_WRITE && !r->is_dc && r->inline_data && r->bytes && r->bytes % 4 == 0
           && (uintptr_t)r->inline_data % 4 == 0;
}

struct bell_wqe_segment {
    uint32_t word[BELL_WQE_SEGMENT_BYTES / 4];
} __attribute__((aligned(16)));

/* Segment `s` of the `ds` that bell_wqe_fill gives for a segmented request: control, remote address, then the payload
 * behind its length, the last segment filled up with zeros. */
BELL_PURE void bell_wqe_fill_segment(struct bell_wqe_segment *out, const struct bell_wqe_request *r, uint32_t s,
                                     uint32_t ds)
{
    const uint32_t *from = (const uint32_t *)r->inline_data;
    uint32_t at = (s - 2) * 4; /* word of the data part, whose first is the length */
    out->word[3] = 0;
    if (s == 0) {
        out->word[0] = bell_be32((uint32_t)(r->index & 0xffff) << 8 | BELL_WQE_WRITE);
        out->word[1] = bell_be32(r->qpn << 8 | ds);
        out->word[2] = bell_be32(r->fm_ce_se);
    } else if (s == 1) {
        out->word[0] = bell_be32((uint32_t)(r->raddr >> 32));
        out->word[1] = bell_be32((uint32_t)r->raddr);
        out->word[2] = bell_be32(r->rkey);
    } else {
        out->word[0] = at == 0 ? bell_be32(BELL_WQE_INLINE_BIT | r->bytes) : from[at - 1];
        for (uint32_t k = 1; k < 4; k++)
            out->word[k] = at + k <= r->bytes / 4 ? from[at + k - 1] : 0;
    }
}

#endif
