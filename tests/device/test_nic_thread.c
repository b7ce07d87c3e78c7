/* SPDX-License-Identifier: Apache-2.0
 * The NIC thread that the device programs rely on, driven by a CPU thread: needs no GPU and nobody else's headers. */
#include "core/sq.h"
#include "tests/device/nic_thread.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define DEPTH 8u
#define PUTS 100u
#define BOUND_PS 20000000000000u /* of a wait: 20 s */

static struct bell_soft soft = { .bound_ps = BOUND_PS };
static struct bell_lane lane = { .soft = &soft, .id = { .group_size = 1 } };
static struct bell_wqe slot[DEPTH]; /* more than the blocks need */
static struct bell_cqe cqe[DEPTH];
static uint64_t doorbell, mailbox, span[DEPTH], from[PUTS], to[PUTS + 1];
static uint32_t dbrec;
static struct bell_sq_words words;
static struct bell_sq sq;

static struct bell_device_queue new_queue(void)
{
    struct bell_device_queue q = { .wqe = slot[0].bytes,
                                   .cqe = cqe,
                                   .dbrec = &dbrec,
                                   .doorbell = &doorbell,
                                   .depth = DEPTH,
                                   .qpn = 0x1234,
                                   .source = { (uint8_t *)from, sizeof from, 0x10 },
                                   .target = { (uint8_t *)to, PUTS * 8, 0x20 } };
    bell_device_queue_reset(&q);
    memset(&words, 0, sizeof words);
    memset(to, 0, sizeof to);
    for (uint32_t i = 0; i < PUTS; i++)
        from[i] = bell_device_word(i, 0);
    sq = (struct bell_sq){ .wqe = q.wqe, .span = span, .cqe = cqe, .dbrec = &dbrec, .doorbell = &doorbell };
    sq.words = &words;
    sq.depth = sq.cq_depth = DEPTH;
    sq.cq_shift = 3;
    sq.qpn = q.qpn;
    return q;
}

static struct bell_wqe_request request_of(uint64_t put, uint64_t *value)
{
    struct bell_wqe_request r = { .opcode = BELL_WQE_WRITE, .rkey = 0x20, .lkey = 0x10, .bytes = 8 };
    *value = from[put];
    r.raddr = (uint64_t)(uintptr_t)(to + put);
    r.laddr = (uint64_t)(uintptr_t)(from + put);
    r.inline_data = put % 2 ? value : NULL;
    r.fm_ce_se = BELL_WQE_CE_ALWAYS;
    return r;
}

static void post_and_check(struct bell_device_queue *q)
{
    struct bell_stack stack = { .ordering = BELL_ORDERING_GPU_FENCE };
    struct bell_completion done;
    struct bell_device_log log;
    struct bell_device_nic *nic = bell_device_nic_start(q);
    assert_non_null(nic);
    for (uint64_t i = 0; i < PUTS; i++) {
        uint64_t value, end;
        struct bell_wqe_request r = request_of(i, &value);
        assert_int_equal(bell_sq_put(&lane, &sq, &stack, &r, 1, &end, &done), BELL_OK);
    }
    assert_int_equal(bell_sq_quiet(&lane, &sq, BELL_SHARING_OWNER, PUTS, &done), BELL_OK);
    bell_device_nic_stop(nic, &log);
    assert_int_equal(log.status, BELL_OK);
    assert_int_equal(log.wqes, PUTS);
    assert_int_equal(log.cqes, PUTS);
    assert_int_equal(log.inlined, PUTS / 2);
    assert_int_equal(log.payload_bytes, PUTS * 8);
    assert_int_equal(log.bad_wqes, 0);
    assert_memory_equal(to, from, sizeof from);
    assert_int_equal(to[PUTS], 0);
}

static void from_doorbell(void **state)
{
    struct bell_device_queue q = new_queue();
    (void)state;
    post_and_check(&q);
}

static void from_record(void **state)
{
    struct bell_device_queue q = new_queue();
    (void)state;
    q.start = BELL_NIC_START_DBREC;
    post_and_check(&q);
}

/* The record comes only after the completion, as when a library rings early. */
static void early_ring(void **state)
{
    struct bell_device_queue q = new_queue();
    struct bell_completion done;
    struct bell_device_log log;
    struct bell_device_nic *nic = bell_device_nic_start(&q);
    uint64_t value, first = 0;
    struct bell_wqe_request r = request_of(0, &value);
    (void)state;
    assert_non_null(nic);
    assert_int_equal(bell_sq_reserve(&lane, &sq, BELL_SHARING_OWNER, 1, &first), BELL_OK);
    assert_int_equal(bell_sq_build(&lane, &sq, first, &r), BELL_OK);
    bell_port_store_doorbell(&lane, &doorbell, bell_wqe_doorbell(q.qpn, 1), BELL_SCOPE_SYS, false);
    assert_int_equal(bell_sq_quiet(&lane, &sq, BELL_SHARING_OWNER, 1, &done), BELL_OK);
    bell_port_store_dbrec(&lane, BELL_MEMORY_HOST, &dbrec, bell_dbrec_value(1), BELL_SCOPE_SYS);
    bell_port_store_doorbell(&lane, &doorbell, bell_wqe_doorbell(q.qpn, 1), BELL_SCOPE_SYS, false);
    bell_device_nic_stop(nic, &log);
    assert_int_equal(log.early_rings, 1);
    assert_int_equal(log.rings, 1);
    assert_int_equal(log.cqes, 1);
    assert_int_equal(to[0], from[0]);
}

/* A CPU rings for the GPU: only the mailbox is written here. */
static void from_mailbox(void **state)
{
    struct bell_device_queue q = new_queue();
    struct bell_completion done;
    struct bell_device_log log;
    uint64_t value, first = 0;
    struct bell_wqe_request r = request_of(1, &value);
    (void)state;
    q.mailbox = &mailbox;
    bell_device_queue_reset(&q);
    struct bell_device_nic *nic = bell_device_nic_start(&q);
    assert_non_null(nic);
    assert_int_equal(bell_sq_reserve(&lane, &sq, BELL_SHARING_OWNER, 1, &first), BELL_OK);
    assert_int_equal(bell_sq_build(&lane, &sq, first, &r), BELL_OK);
    bell_port_store_release(&lane, BELL_MEMORY_HOST, &mailbox, 1);
    assert_int_equal(bell_sq_quiet(&lane, &sq, BELL_SHARING_OWNER, 1, &done), BELL_OK);
    bell_device_nic_stop(nic, &log);
    assert_int_equal(log.rings, 1);
    assert_int_equal(log.early_rings, 0);
    assert_int_equal(bell_dbrec_index(dbrec), 1);
    assert_int_equal(to[1], from[1]);
}

/* The NIC takes the index itself from the word that the library writes for a CPU. */
static void index_in_doorbell(void **state)
{
    struct bell_device_queue q = new_queue();
    struct bell_completion done;
    struct bell_device_log log;
    uint64_t value, first = 0;
    struct bell_wqe_request r = request_of(1, &value);
    (void)state;
    q.start = BELL_NIC_START_MAILBOX;
    bell_device_queue_reset(&q);
    struct bell_device_nic *nic = bell_device_nic_start(&q);
    assert_non_null(nic);
    assert_int_equal(bell_sq_reserve(&lane, &sq, BELL_SHARING_OWNER, 1, &first), BELL_OK);
    assert_int_equal(bell_sq_build(&lane, &sq, first, &r), BELL_OK);
    bell_port_store_doorbell(&lane, &doorbell, 1, BELL_SCOPE_SYS, false);
    assert_int_equal(bell_sq_quiet(&lane, &sq, BELL_SHARING_OWNER, 1, &done), BELL_OK);
    bell_device_nic_stop(nic, &log);
    assert_int_equal(log.rings, 1);
    assert_int_equal(log.early_rings, 0);
    assert_int_equal(to[1], from[1]);
}

/* A slot that nobody wrote: the NIC says so, and the poller sees an error. */
static void rung_without_wqe(void **state)
{
    struct bell_device_queue q = new_queue();
    struct bell_completion done;
    struct bell_device_log log;
    struct bell_device_nic *nic = bell_device_nic_start(&q);
    (void)state;
    assert_non_null(nic);
    bell_port_store_doorbell(&lane, &doorbell, bell_wqe_doorbell(q.qpn, 1), BELL_SCOPE_SYS, false);
    assert_int_equal(bell_sq_quiet(&lane, &sq, BELL_SHARING_OWNER, 1, &done), BELL_CQE_ERROR);
    bell_device_nic_stop(nic, &log);
    assert_int_equal(log.bad_wqes, 1);
    assert_int_equal(log.first_syndrome, BELL_SYNDROME_LOCAL_QP_OP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_doorbell), cmocka_unit_test(from_record),       cmocka_unit_test(early_ring),
        cmocka_unit_test(from_mailbox),  cmocka_unit_test(index_in_doorbell), cmocka_unit_test(rung_without_wqe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
