/* SPDX-License-Identifier: Apache-2.0
 * Bindings, and queues made on the device in software: what a queue asks for, in which order, and what happens when it
 * is refused. */
#include "hw/mlx5/queue.h"
#include "tests/mlx5/fake.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct fake fake;
static struct fake_memory gpu;
static struct bell_mlx5_device device;
static struct bell_error err;

static int files; /* open at the start of the test */

static int open_files(void)
{
    int count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void open_device(void)
{
    memset(&err, 0, sizeof err);
    if (bell_mlx5_device_open(&device, &fake.table, "", 1, BELL_GID_ANY, &err) != BELL_OK)
        fail_msg("%s", err.text);
}

static void assert_clean(void)
{
    bell_mlx5_device_close(&device);
    assert_string_equal(fake.broken, "");
    assert_int_equal(fake_left(&fake), 0);
    assert_int_equal(gpu.blocks, 0);
    assert_int_equal(gpu.registers, 0);
    assert_int_equal(open_files(), files);
}

static int start(void **state)
{
    (void)state;
    fake_start(&fake);
    fake_memory_start(&gpu, BELL_MEMORY_GPU);
    files = open_files();
    return 0;
}

static struct bell_mlx5_want host_want(void)
{
    struct bell_mlx5_want want = { .memory = &bell_mlx5_host_memory, .host = &bell_mlx5_host_memory, .depth = 64 };
    return want;
}

static struct bell_binding some_binding(void)
{
    struct bell_binding b;
    memset(&b, 0, sizeof b);
    b.wqe = 0x10000;
    b.cqe = 0x20000;
    b.dbrec = 0x30004;
    b.doorbell = 0x40800;
    b.qpn = 0xabcdef;
    b.depth = 64;
    b.cq_depth = 128;
    b.memory = BELL_MEMORY_GPU;
    b.is_dc = true;
    b.av.dqp_dct = 7;
    return b;
}

static void test_binding(void **state)
{
    struct bell_sq sq, before;
    struct bell_binding b = some_binding();
    struct bell_sq_words words;
    uint64_t span[64];
    (void)state;
    memset(&sq, 0, sizeof sq);
    sq.words = &words;
    sq.span = span;
    sq.key = &words.completed;
    sq.queue = 9;
    assert_int_equal(bell_binding_apply(&b, &sq), BELL_OK);
    assert_true((uintptr_t)sq.wqe == 0x10000 && (uintptr_t)sq.cqe == 0x20000);
    assert_true((uintptr_t)sq.dbrec == 0x30004 && (uintptr_t)sq.doorbell == 0x40800);
    assert_int_equal(sq.qpn, 0xabcdef);
    assert_int_equal(sq.depth, 64);
    assert_int_equal(sq.cq_depth, 128);
    assert_int_equal(sq.cq_shift, 7);
    assert_int_equal(sq.memory, BELL_MEMORY_GPU);
    assert_true(sq.is_dc && sq.av.dqp_dct == 7);
    assert_true(sq.words == &words && sq.span == span && sq.key == &words.completed && sq.queue == 9);
    b.cq_depth = 1;
    assert_int_equal(bell_binding_apply(&b, &sq), BELL_OK);
    assert_int_equal(sq.cq_shift, 0);
    before = sq;
#define REFUSE(change) (b = some_binding(), change, assert_int_equal(bell_binding_apply(&b, &sq), BELL_INVALID))
    REFUSE(b.wqe = 0);
    REFUSE(b.wqe += 32);
    REFUSE(b.cqe = 0);
    REFUSE(b.cqe += 4);
    REFUSE(b.dbrec = 0);
    REFUSE(b.dbrec += 2);
    REFUSE(b.doorbell = 0);
    REFUSE(b.doorbell += 4);
    REFUSE(b.qpn = 0x1000000);
    REFUSE(b.depth = 0);
    REFUSE(b.depth = 48);
    REFUSE(b.depth = b.cq_depth = 0x10000);
    REFUSE(b.cq_depth = 32);
    REFUSE(b.cq_depth = 0);
    REFUSE(b.cq_depth = 96);
    REFUSE(b.ringer = BELL_RINGER_HOST); /* nowhere to tell it */
    before.mailbox = sq.mailbox = span;
    REFUSE(b.ringer = BELL_RINGER_POSTER);
#undef REFUSE
    assert_memory_equal(&sq, &before, sizeof sq);
}

/* CQ and QP with every choice; the device in software checks each field, and the order of states. */
static void test_open(void **state)
{
    (void)state;
    for (uint32_t choice = 0; choice < 16; choice++) {
        struct bell_mlx5_queue q;
        struct bell_mlx5_want want = host_want();
        (void)start(NULL);
        want.is_collapsed = choice & 1;
        want.is_dc = choice & 2;
        fake.is_ethernet = choice & 4;
        if (choice & 8)
            want.memory = &gpu.table;
        want.depth = 1u << choice;
        open_device();
        if (bell_mlx5_queue_open(&q, &device, &want, &err) != BELL_OK
            || bell_mlx5_queue_connect(&q, &device.port, q.binding.qpn, 0x77, &err) != BELL_OK)
            fail_msg("choice %u: %s; %s", choice, err.text, fake.broken);
        assert_int_equal(fake.commands[0x400], 1);
        assert_int_equal(fake.commands[0x500], 1);
        assert_int_equal(fake.commands[0x504], 1);
        assert_int_equal(q.binding.cq_depth, want.is_collapsed ? 1 : want.depth < 2 ? 2 : want.depth);
        assert_int_equal(q.binding.memory, want.memory->kind);
        assert_int_equal(q.binding.dbrec_memory, want.memory->kind);
        assert_int_equal(q.binding.ringer, BELL_RINGER_POSTER);
        assert_int_equal(q.uar_kind, BELL_MLX5_UAR_NC_DEDICATED);
        assert_int_equal(q.binding.blueflame_bytes, 0);
        assert_int_equal(fake.by_dmabuf, choice & 8 ? 3 : 0);
        assert_int_equal(fake.by_address, choice & 8 ? 0 : 3);
        if (want.is_dc)
            assert_true(q.binding.av.full && q.binding.av.dc_key == 0x77 && q.binding.av.dqp_dct == q.binding.qpn);
        bell_mlx5_queue_close(&q);
        bell_mlx5_queue_close(&q);
        assert_clean();
    }
}

/* dma-buf refused, by the memory or by the device: nvidia-peermem's way, the plain address. */
static void test_peermem(void **state)
{
    (void)state;
    for (int by_device = 0; by_device < 2; by_device++) {
        struct bell_mlx5_queue q;
        struct bell_mlx5_want want = host_want();
        (void)start(NULL);
        want.memory = &gpu.table;
        fake.refuse_dmabuf = by_device;
        gpu.refuse_dmabuf = !by_device;
        open_device();
        assert_int_equal(bell_mlx5_queue_open(&q, &device, &want, &err), BELL_OK);
        assert_int_equal(fake.by_dmabuf, 0);
        assert_int_equal(fake.by_address, 3);
        assert_int_equal(q.wq.way, BELL_MLX5_BY_ADDRESS);
        bell_mlx5_queue_close(&q);
        assert_clean();
    }
}

static void test_register_refused(void **state)
{
    struct bell_mlx5_queue q;
    struct bell_mlx5_want want = host_want();
    (void)state;
    want.memory = &gpu.table;
    gpu.refuse_register = true;
    open_device();
    assert_int_equal(bell_mlx5_queue_open(&q, &device, &want, &err), BELL_OK);
    assert_int_equal(q.binding.ringer, BELL_RINGER_HOST);
    assert_true(q.binding.doorbell == (uintptr_t)q.uar.reg);
    assert_int_equal(q.binding.memory, BELL_MEMORY_GPU);
    assert_int_equal(q.binding.dbrec_memory, BELL_MEMORY_HOST); /* the host has to write it */
    bell_mlx5_queue_close(&q);
    gpu.refuse_register = false;
    want.must_host_ring = true;
    assert_int_equal(bell_mlx5_queue_open(&q, &device, &want, &err), BELL_OK);
    assert_int_equal(q.binding.ringer, BELL_RINGER_HOST);
    assert_int_equal(gpu.mapped, 0);
    bell_mlx5_queue_close(&q);
    assert_clean();
}

static void test_uar_order(void **state)
{
    static const struct {
        bool may_blueflame, refuse[BELL_MLX5_UAR_KINDS];
        enum bell_mlx5_uar_kind kind;
        uint32_t blueflame_bytes;
    } rows[] = {
        { false, { false, false, false }, BELL_MLX5_UAR_NC_DEDICATED, 0 },
        { false, { true, false, false }, BELL_MLX5_UAR_NC, 0 },
        { false, { true, true, false }, BELL_MLX5_UAR_BF, 256 },
        { true, { false, false, false }, BELL_MLX5_UAR_BF, 256 },
        { true, { false, false, true }, BELL_MLX5_UAR_NC_DEDICATED, 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bell_mlx5_queue q;
        struct bell_mlx5_want want = host_want();
        (void)start(NULL);
        memcpy(fake.refuse_uar, rows[i].refuse, sizeof fake.refuse_uar);
        want.may_blueflame = rows[i].may_blueflame;
        open_device();
        assert_int_equal(bell_mlx5_queue_open(&q, &device, &want, &err), BELL_OK);
        assert_int_equal(q.uar_kind, rows[i].kind);
        assert_int_equal(q.binding.blueflame_bytes, rows[i].blueflame_bytes);
        bell_mlx5_queue_close(&q);
        assert_clean();
    }
}

static void test_device_lacks(void **state)
{
    static const char *const words[] = { "version 0; expected 1", "cq_oi", "no dynamically connected transport",
                                         "depth 32768 is more", "no UAR, of any kind", "there is no other_0" };
    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct bell_mlx5_queue q;
        struct bell_mlx5_want want = host_want();
        (void)start(NULL);
        fake.cqe_version = i != 0;
        fake.has_oi = i != 1;
        fake.has_dc = i != 2;
        want.is_dc = i == 2;
        want.depth = i == 3 ? 32768 : 64;
        memset(fake.refuse_uar, i == 4, sizeof fake.refuse_uar);
        enum bell_status s = bell_mlx5_device_open(&device, &fake.table, i == 5 ? "other_0" : "", 1, 0, &err);
        device.log_max_cq -= i == 3;
        if (s == BELL_OK)
            s = bell_mlx5_queue_open(&q, &device, &want, &err);
        assert_int_equal(s, i == 4 ? BELL_IO : BELL_UNSUPPORTED);
        if (!strstr(err.text, words[i]))
            fail_msg("'%s' is not in: %s", words[i], err.text);
        if (i > 1 && i < 5)
            assert_clean();
        assert_int_equal(fake_left(&fake), 0);
    }
}

/* A refused command is told with its name, status and syndrome. */
static void test_command_refused(void **state)
{
    static const char *const words[] = { "CREATE_CQ failed", "CREATE_QP failed", "RST2INIT_QP failed" };
    struct bell_mlx5_queue q;
    struct bell_mlx5_want want = host_want();
    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        (void)start(NULL);
        open_device();
        fake.fail_at = fake.calls + 1 + 3 + (uint32_t)i + 1; /* behind the UAR and three umems */
        assert_int_equal(bell_mlx5_queue_open(&q, &device, &want, &err), BELL_IO);
        assert_non_null(strstr(err.text, words[i]));
        assert_non_null(strstr(err.text, "fake_0: "));
        assert_non_null(strstr(err.text, "status 0x03 (bad parameter), syndrome 0x1badd00d"));
        assert_clean();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_binding),
        cmocka_unit_test_setup(test_open, start),
        cmocka_unit_test_setup(test_peermem, start),
        cmocka_unit_test_setup(test_register_refused, start),
        cmocka_unit_test_setup(test_uar_order, start),
        cmocka_unit_test_setup(test_device_lacks, start),
        cmocka_unit_test_setup(test_command_refused, start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
