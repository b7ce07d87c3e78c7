/* SPDX-License-Identifier: Apache-2.0
 * WQEs made in registers are those that bell_wqe_fill makes. */
#include "core/wqe_words.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static uint32_t payload[BELL_WQE_BYTES_MAX / 4];

static struct bell_wqe_request request(uint32_t bytes, const void *inline_data)
{
    return (struct bell_wqe_request){
        .opcode = BELL_WQE_WRITE, .index = 0x12345678abcdu, .qpn = 0xabcdef, .fm_ce_se = BELL_WQE_CE_ALWAYS,
        .raddr = 0x0123456789abcdefu, .rkey = 0x89abcdef, .laddr = 0xfedcba9876543210u, .lkey = 0x13579bdf,
        .bytes = bytes, .inline_data = inline_data,
    };
}

static void test_short(void **state)
{
    const struct {
        uint32_t bytes;
        bool is_inline;
    } rows[] = { { 8, true }, { 1, false }, { 8, false }, { 65536, false } };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bell_wqe_request r = request(rows[i].bytes, rows[i].is_inline ? payload : NULL);
        struct bell_wqe whole = { 0 };
        struct bell_wqe_short brief;
        assert_true(bell_wqe_is_short(&r));
        assert_int_equal(bell_wqe_fill(&whole, &r) * BELL_WQE_SEGMENT_BYTES, sizeof brief.words);
        bell_wqe_fill_short(&brief, &r);
        assert_memory_equal(&whole, brief.words, sizeof brief.words);
    }
}

/* Every size of whole words up to the longest that fits a WQE. */
static void test_segments(void **state)
{
    (void)state;
    for (uint32_t bytes = 4; bytes <= BELL_WQE_INLINE_MAX; bytes += 4) {
        struct bell_wqe_request r = request(bytes, payload);
        struct bell_wqe whole = { 0 };
        assert_true(bell_wqe_is_segmented(&r));
        uint32_t ds = bell_wqe_fill(&whole, &r);
        assert_int_equal(ds, bell_wqe_ds(&r));
        for (uint32_t s = 0; s < ds; s++) {
            struct bell_wqe_segment segment;
            bell_wqe_fill_segment(&segment, &r, s, ds);
            assert_memory_equal((const uint8_t *)&whole + s * BELL_WQE_SEGMENT_BYTES, &segment, sizeof segment);
        }
    }
}

/* Others have to go through memory. */
static void test_neither(void **state)
{
    struct bell_wqe_request dc = request(8, payload), odd = request(6, payload), askew = request(8, NULL),
                            atomic = request(8, payload), empty = request(0, payload);
    (void)state;
    dc.is_dc = true;
    askew.inline_data = (const uint8_t *)payload + 2;
    atomic.opcode = BELL_WQE_ATOMIC_FA;
    assert_false(bell_wqe_is_short(&dc) || bell_wqe_is_segmented(&dc));
    assert_false(bell_wqe_is_short(&odd) || bell_wqe_is_segmented(&odd));
    assert_false(bell_wqe_is_segmented(&askew));
    assert_false(bell_wqe_is_short(&atomic) || bell_wqe_is_segmented(&atomic));
    assert_false(bell_wqe_is_short(&empty) || bell_wqe_is_segmented(&empty));
}

static int fill_payload(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < sizeof payload / sizeof payload[0]; i++)
        payload[i] = i * 0x9e3779b9u + 1;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_short), cmocka_unit_test(test_segments), cmocka_unit_test(test_neither),
    };
    return cmocka_run_group_tests(tests, fill_payload, NULL);
}
