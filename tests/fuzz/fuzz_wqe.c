/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: decode 1024 arbitrary bytes as a WQE of an RC and of a DC queue, and hold the decoder to what its
 * callers rely on.  With BELL_LIBFUZZER a libFuzzer target; without, a program that feeds it the files it is given. */
#include "core/wqe.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool claim)
{
    if (!claim)
        abort();
}

/* What a NIC relies on: the WQE lies in its blocks and inline payload lies in the WQE. */
static void check_view(const struct bell_wqe_view *v)
{
    demand(v->ds >= 1 && v->ds <= BELL_WQE_DS_READ_MAX && v->blocks <= BELL_WQE_BLOCKS_READ_MAX);
    demand(v->bytes <= BELL_WQE_DATA_MAX && v->qpn <= BELL_QPN_MAX && bell_wqe_is_known(v->opcode));
    demand((v->bytes == 0) == (v->pieces == 0));
    if (v->has_inline && v->pieces == 1)
        demand(v->inline_offset + v->bytes <= v->ds * BELL_WQE_SEGMENT_BYTES);
}

/* The data segments are found again, lie in the WQE and add up. */
static void check_pieces(const uint8_t *bytes, const struct bell_wqe_view *v)
{
    uint64_t sum = 0;
    uint32_t pieces = 0, end = v->ds * BELL_WQE_SEGMENT_BYTES;
    struct bell_wqe_piece p;
    for (uint32_t at = v->data_offset; v->data_offset && at < end;) {
        demand(bell_wqe_next_piece(bytes, &at, end, &p));
        if (p.is_inline)
            demand(p.inline_offset + p.bytes <= end);
        pieces += p.bytes != 0;
        sum += p.bytes;
    }
    demand(sum == v->bytes && pieces == v->pieces);
}

/* Rebuild what was read, read it again: the second view says the same. */
static void check_rebuild(const uint8_t *bytes, const struct bell_wqe_view *v)
{
    struct bell_wqe_request r;
    struct bell_wqe_view again;
    struct bell_wqe wqe;
    memset(&r, 0, sizeof r);
    r.opcode = v->opcode;
    r.opmod = bell_wqe_is_masked(v->opcode) ? v->opmod : 0;
    r.index = v->index16;
    r.qpn = v->qpn;
    r.fm_ce_se = v->fm_ce_se;
    r.imm_be = v->imm_be;
    r.raddr = v->raddr;
    r.rkey = v->rkey;
    r.laddr = v->laddr;
    r.lkey = v->lkey;
    r.bytes = v->bytes;
    r.inline_data = v->has_inline ? bytes + v->inline_offset : NULL;
    r.is_dc = v->is_dc;
    r.av = v->av;
    r.atomic.swap_or_add = v->swap_or_add;
    r.atomic.compare = v->compare;
    r.atomic.swap_mask = v->swap_mask;
    r.atomic.compare_mask = v->compare_mask;
    r.atomic.field_boundary = v->field_boundary;
    demand(bell_wqe_build(&wqe, &r) == BELL_OK);
    demand(bell_wqe_decode(wqe.bytes, v->is_dc, &again) == BELL_OK);
    check_view(&again);
    demand(again.opcode == v->opcode && again.bytes == v->bytes && again.has_inline == v->has_inline);
    demand(again.raddr == v->raddr && again.rkey == v->rkey && again.laddr == v->laddr && again.lkey == v->lkey);
    demand(again.swap_or_add == v->swap_or_add && again.compare == v->compare && again.av.full == v->av.full);
    if (v->has_inline)
        demand(memcmp(wqe.bytes + again.inline_offset, bytes + v->inline_offset, v->bytes) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t bytes[BELL_WQE_READ_BYTES_MAX] = { 0 };
    struct bell_wqe_view ctrl, v;
    memcpy(bytes, data, size < sizeof bytes ? size : sizeof bytes);
    if (bell_wqe_decode_ctrl(bytes, &ctrl) != BELL_OK)
        return 0;
    /* Only ds * 16 bytes may be read: a sanitizer watches the end of this copy. */
    uint8_t *copy = malloc(ctrl.ds * BELL_WQE_SEGMENT_BYTES);
    if (!copy)
        return 0;
    memcpy(copy, bytes, ctrl.ds * BELL_WQE_SEGMENT_BYTES);
    for (int dc = 0; dc < 2; dc++) {
        if (bell_wqe_decode(copy, dc == 1, &v) != BELL_OK)
            continue;
        check_view(&v);
        check_pieces(copy, &v);
        if (v.pieces <= 1 && v.ds <= BELL_WQE_DS_MAX && (!v.has_inline || v.bytes <= BELL_WQE_INLINE_MAX))
            check_rebuild(copy, &v);
    }
    free(copy);
    return 0;
}

