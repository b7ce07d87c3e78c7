/* SPDX-License-Identifier: Apache-2.0
 * Programs on the device in software, posted by hw/mlx5's port through its bindings: what arrives, the bytes of the
 * WQEs, forwarded doorbells, and each call failing once. */
#include "hw/mlx5/run.h"
#include "tests/conform/exec_case.h"
#include "tests/mlx5/fake.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#ifdef BELL_HAVE_MLX5DV
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#include <infiniband/mlx5dv.h>
#pragma GCC diagnostic pop
#endif

#define HOST "queue_memory=host "
#define PROXY "submit=proxy queue_memory=host "

static struct fake fake;
static struct fake_memory gpu;
static struct fake_lanes others;
static const struct bell_mlx5_memory *payload; /* of both ranks; NULL: in the world */
static const struct bell_mlx5_lanes *lanes;    /* NULL: CPU threads of hw/mlx5 */
static struct bell_error err;
static struct bell_result result;
static uint64_t issue_ps[4096], total_ps[4096];

static int start(void **state)
{
    (void)state;
    fake_start(&fake);
    fake_memory_start(&gpu, BELL_MEMORY_GPU);
    fake_lanes_start(&others);
    payload = NULL;
    lanes = NULL;
    memset(&err, 0, sizeof err);
    return 0;
}

static struct bell_mlx5_ground ground_of(bool has_gpu)
{
    struct bell_mlx5_site site = { &bell_mlx5_host_memory, has_gpu ? &gpu.table : NULL, payload };
    return (struct bell_mlx5_ground){ &fake.table, &bell_mlx5_host_memory, { site, site }, lanes };
}

static enum bell_status run(const char *settings, uint64_t bound_ps)
{
    struct bell_mlx5_ground ground = ground_of(true);
    struct exec_case c;
    exec_case_read(&c, settings);
    fake.start = (enum bell_nic_start)c.stack.nic_start;
    struct bell_run r = { .program = &c.program, .stack = &c.stack, .bound_ps = bound_ps };
    memset(&result, 0, sizeof result);
    memset(total_ps, 0xff, sizeof total_ps);
    result.issue_ps = issue_ps;
    result.total_ps = total_ps;
    enum bell_status s = bell_mlx5_run(&ground, &r, &result, &err);
    size_t samples = (size_t)bell_program_counted(&c.program) * c.program.iterations;
    for (size_t i = 0; s == BELL_OK && i < samples; i++)
        assert_true(issue_ps[i] <= total_ps[i] && total_ps[i] < UINT64_MAX);
    assert_true(total_ps[samples] == UINT64_MAX);
    return s;
}

static void assert_clean(const char *settings)
{
    if (fake.broken[0])
        fail_msg("%s: %s", settings, fake.broken);
    assert_int_equal(fake_left(&fake), 0);
    assert_int_equal(gpu.blocks, 0);
    assert_int_equal(gpu.registers, 0);
}

static void assert_runs(const char *settings, const char *path)
{
    if (run(settings, EXEC_BOUND_PS) != BELL_OK)
        fail_msg("%s: %s; %s", settings, err.text, fake.broken);
    assert_clean(settings);
    if (path)
        assert_string_equal(result.path, path);
    assert_true(fake.wqes > 0 && result.span_ps > 0);
    assert_true((strstr(settings, "stream") || strstr(settings, "probe")) == (result.puts > 0 && result.puts_ps > 0));
}

static const char *const cases[] = {
    HOST "submit=gpu",
    HOST "submit=gpu cq=collapsed",
    HOST "submit=gpu transport=dc",
    HOST "submit=gpu transport=dc cq=collapsed",
    HOST "submit=gpu payload=pointer bytes=4096",
    HOST "submit=gpu payload=pointer bytes=4096 cq=collapsed",
    HOST "submit=gpu transport=dc payload=pointer bytes=1024",
    HOST "submit=gpu transport=dc payload=pointer bytes=1024 cq=collapsed puts=3 depth=8",
    HOST "submit=gpu depth=1 puts=3 iterations=50",
    HOST "submit=gpu depth=8 puts=5 iterations=300 ordering=system-fence",
    HOST "submit=gpu nic_start=dbrec puts=4 depth=4 ordering=system-release-store",
    HOST "submit=gpu blueflame=true nic_start=dbrec",
    HOST "submit=gpu blueflame=true",
    HOST "submit=gpu bytes=200 wqes_per_doorbell=4 puts=12 depth=32",
    HOST "submit=gpu lanes=4 queues=4",
    HOST "submit=gpu sharing=ordered lanes=4 queues=2 depth=8 puts=3",
    HOST "submit=gpu sharing=locked lanes=3 cq=collapsed transport=dc depth=8",
    HOST "submit=gpu sharing=cooperative lanes=6 queues=2 cq=collapsed payload=pointer",
    HOST "submit=gpu sharing=cooperative lanes=8 queues=2 wqes_per_doorbell=2 puts=3 depth=8",
    HOST "submit=gpu depth=2 puts=25 iterations=4000 warmup=0", /* past the wrap at 65536 */
    HOST "submit=gpu pattern=stream iterations=500 depth=16",
    HOST "submit=gpu pattern=probe lanes=3 queues=3",
    PROXY "ring_depth=8 puts=5 depth=4",
    PROXY "lanes=4 queues=4 workers=2 puts=3",
    PROXY "protocol=tuned payload=pointer bytes=512 lanes=3 queues=3",
    PROXY "transport=dc batch=3 puts=7 depth=8 cq=collapsed",
    HOST "submit=gpu pattern=round-trip",
    HOST "submit=gpu pattern=round-trip transport=dc cq=collapsed",
    HOST "submit=gpu pattern=round-trip payload=pointer bytes=2048 sharing=locked lanes=2",
    HOST "submit=gpu pattern=round-trip sharing=cooperative lanes=4 queues=2 signal=separate",
    PROXY "pattern=round-trip signal=separate bytes=64 puts=2 ring_depth=8",
    PROXY "pattern=round-trip protocol=tuned payload=pointer bytes=256 lanes=2 queues=2",
};

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        const char *settings = cases[i / 2];
        (void)start(NULL);
        fake.is_ethernet = i % 2;
        assert_runs(settings, strstr(settings, "submit=proxy") ? "proxy" : "host-doorbell");
        assert_true(fake.by_address > 0 && fake.by_dmabuf == 0);
    }
}

/* Queues in memory that the NIC reaches through a dma-buf, at addresses of its own. */
static void test_gpu_memory(void **state)
{
    (void)state;
    assert_runs("submit=gpu pattern=round-trip cq=collapsed", "host-doorbell");
    assert_int_equal(fake.by_dmabuf, 6);
    assert_int_equal(gpu.mapped, 2);
    assert_non_null(strstr(result.notes, "queues in GPU memory, registered as dma-buf, UAR dedicated non-cached"));
    (void)start(NULL);
    fake.refuse_dmabuf = true;
    assert_runs("submit=gpu transport=dc", "host-doorbell");
    assert_int_equal(fake.by_address, 6);
    assert_non_null(strstr(result.notes, "registered by address"));
}

/* Payload in memory that the NIC is given as dma-bufs, or by address where it takes none. */
static void test_payload(void **state)
{
    static const struct {
        const char *settings;
        uint32_t regions; /* outside of the world */
        const char *where;
    } rows[] = {
        { "submit=gpu pattern=round-trip payload=pointer bytes=4096", 4, "; payload in GPU memory" },
        { HOST "submit=gpu transport=dc bytes=64", 4, "; payload in GPU memory" },
        { HOST "submit=gpu pattern=stream iterations=500 depth=16", 4, "; payload in GPU memory" },
        { PROXY "protocol=tuned payload=pointer bytes=512 lanes=3 queues=3", 4, "; payload in GPU memory" },
        { PROXY "bytes=64", 2, "; payload in GPU memory" }, /* a worker reads the source */
        { PROXY "bytes=8", 4, "; payload in GPU memory" },  /* the descriptor carries it */
    };
    (void)state;
    for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
        (void)start(NULL);
        payload = &gpu.table;
        fake.refuse_dmabuf = i % 2;
        assert_runs(rows[i / 2].settings, NULL);
        assert_int_equal(fake.mr_by_dmabuf, i % 2 ? 0 : rows[i / 2].regions);
        assert_non_null(strstr(result.notes, rows[i / 2].where));
    }
    (void)start(NULL);
    payload = &gpu.table;
    gpu.refuse_alloc = true;
    assert_int_equal(run(HOST "submit=gpu", 0), BELL_NO_MEMORY);
    assert_non_null(strstr(err.text, "GPU memory for payload"));
    assert_clean("no memory");
}

/* Lanes that are somebody else's, with the workers still here. */
static void test_other_lanes(void **state)
{
    static const struct {
        const char *settings, *path;
        bool is_refused; /* the register */
    } rows[] = {
        { "submit=gpu pattern=round-trip puts=5 depth=8", "gpu-doorbell", false },
        { HOST "submit=gpu pattern=stream lanes=4 queues=2 sharing=ordered", "gpu-doorbell", false },
        { "submit=gpu transport=dc cq=collapsed lanes=3 sharing=locked", "gpu-doorbell", false },
        { "submit=gpu pattern=probe lanes=3 queues=3", "gpu-doorbell", false },
        { "submit=gpu pattern=round-trip lanes=3 queues=3", "host-doorbell", true },
        { "submit=gpu doorbell=host", "host-doorbell", false },
        { PROXY "lanes=4 queues=4 workers=2 puts=3", "proxy", false },
        { PROXY "pattern=round-trip protocol=tuned payload=pointer bytes=256", "proxy", false },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        (void)start(NULL);
        lanes = &others.table;
        payload = &gpu.table;
        gpu.refuse_register = rows[i].is_refused;
        assert_runs(rows[i].settings, rows[i].path);
        assert_string_equal(result.processor, "fake lanes");
        assert_true(others.checked == 1 && others.placed == 1 && others.ran == 1 && others.left == 1);
        assert_true((strstr(result.notes, "rung by CPU workers") != NULL) == !strcmp(rows[i].path, "host-doorbell"));
    }
}

/* Whoever fails is named, those on the other side leave, and the lanes are let go of. */
static void test_other_lanes_fail(void **state)
{
    (void)state;
    lanes = &others.table;
    assert_int_equal(run(HOST "submit=gpu fault=bad-key lanes=2 queues=2", EXEC_BOUND_PS), BELL_CQE_ERROR);
    assert_non_null(strstr(err.text, "syndrome 0x13 (remote access error) for the WQE at index 0 of queue "));
    assert_int_equal(others.left, 1);
    assert_clean("bad key");
    (void)start(NULL);
    lanes = &others.table;
    assert_int_equal(run(PROXY "fault=bad-key", EXEC_BOUND_PS), BELL_CQE_ERROR);
    assert_clean("bad key of a worker");
    for (int i = 0; i < 2; i++) {
        (void)start(NULL);
        lanes = &others.table;
        fake.is_deaf = true;
        assert_int_equal(run(i ? PROXY : HOST "submit=gpu", 50000000000u), BELL_TIMEOUT);
        assert_non_null(strstr(err.text, "rank 0 "));
        assert_non_null(strstr(err.text, i ? "waited to its bound for" : "lane 0 waited to its bound for a CQE"));
        assert_clean("deaf");
    }
    for (int i = 0; i < 2; i++) {
        (void)start(NULL);
        lanes = &others.table;
        others.refuse_place = !i;
        others.refuse_run = i;
        assert_int_equal(run(HOST "submit=gpu", EXEC_BOUND_PS), i ? BELL_IO : BELL_NO_MEMORY);
        assert_non_null(strstr(err.text, i ? "fell over" : "have no room"));
        assert_int_equal(others.left, 1);
        assert_clean("lanes that refuse");
    }
}

/* The register cannot be mapped for the poster: a host thread rings. */
static void test_forwarded(void **state)
{
    static const char *const settings[] = {
        "submit=gpu puts=9 depth=4 iterations=300",
        "submit=gpu pattern=round-trip lanes=3 queues=3",
        "submit=gpu cq=collapsed transport=dc sharing=ordered lanes=4 depth=16",
        "submit=gpu nic_start=dbrec puts=3",
        "submit=gpu pattern=stream lanes=4 queues=4 workers=2",
    };
    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        (void)start(NULL);
        gpu.refuse_register = true;
        assert_runs(settings[i], "host-doorbell");
        assert_non_null(strstr(result.notes, "rung by CPU workers"));
    }
}

/* One register for everybody: the NIC goes by the records, because a register in memory keeps one doorbell only. */
static void test_shared_uar(void **state)
{
    (void)state;
    fake.refuse_uar[BELL_MLX5_UAR_NC_DEDICATED] = true;
    assert_runs(HOST "submit=gpu nic_start=dbrec lanes=2 queues=2", "host-doorbell");
    assert_non_null(strstr(result.notes, "UAR shared non-cached"));
}

/* BlueFlame: the register holds the WQE itself, and it is the one that the queue holds. */
static void test_blueflame(void **state)
{
    (void)state;
    assert_runs(HOST "submit=gpu blueflame=true nic_start=dbrec iterations=1 warmup=0", "host-doorbell");
    assert_non_null(strstr(result.notes, "UAR BlueFlame"));
    assert_memory_equal(fake.rung, fake.wqe[0], sizeof fake.rung);
    (void)start(NULL);
    fake.refuse_uar[BELL_MLX5_UAR_BF] = true; /* asked for, and not to be had: 8 B and no more */
    assert_runs(HOST "submit=gpu blueflame=true iterations=1 warmup=0", "host-doorbell");
    assert_int_equal(bell_load_be32(fake.rung), 1u << 8); /* a plain doorbell: producer index 1 */
    assert_int_equal(bell_load_be32(fake.rung + 8), 0);
}

#ifdef BELL_HAVE_MLX5DV
/* The WQE of a view, written with rdma-core's helpers. */
static void with_mlx5dv(uint8_t *out, const struct bell_wqe_view *v, const uint8_t *bytes)
{
    struct mlx5_wqe_ctrl_seg ctrl;
    memset(&ctrl, 0, sizeof ctrl);
    mlx5dv_set_ctrl_seg(&ctrl, v->index16, (uint8_t)v->opcode, 0, v->qpn, v->fm_ce_se, (uint8_t)v->ds, 0, 0);
    memcpy(out, &ctrl, sizeof ctrl);
    out += sizeof ctrl;
    if (v->is_dc) {
        struct mlx5_wqe_datagram_seg av;
        struct bell_av a = v->av;
        memset(&av, 0, sizeof av);
        mlx5dv_set_dgram_seg(&av, a.dc_key, a.dqp_dct, a.full, a.stat_rate_sl, a.fl_mlid, a.rlid, a.rmac, a.tclass,
                             a.hop_limit, a.grh_gid_fl, a.rgid);
        memcpy(out, &av, sizeof av);
        out += sizeof av;
    }
    struct mlx5_wqe_raddr_seg raddr = { htobe64(v->raddr), htobe32(v->rkey), 0 };
    memcpy(out, &raddr, sizeof raddr);
    out += sizeof raddr;
    if (v->has_inline) {
        uint32_t count = htobe32(v->bytes | MLX5_INLINE_SEG);
        memcpy(out, &count, sizeof count);
        memcpy(out + 4, bytes, v->bytes);
    } else {
        struct mlx5_wqe_data_seg data;
        mlx5dv_set_data_seg(&data, v->bytes, v->lkey, v->laddr);
        memcpy(out, &data, sizeof data);
    }
}

/* What the NIC fetched from the bound queue, byte by byte. */
static void test_bytes(void **state)
{
    static const char *const settings[] = {
        HOST "submit=gpu iterations=20",
        HOST "submit=gpu iterations=20 payload=pointer bytes=4096",
        HOST "submit=gpu iterations=20 transport=dc bytes=96",
        HOST "submit=gpu iterations=20 transport=dc payload=pointer bytes=256",
        PROXY "iterations=20",
    };
    (void)state;
    for (size_t i = 0; i < 2 * sizeof settings / sizeof *settings; i++) {
        (void)start(NULL);
        fake.is_ethernet = i % 2;
        assert_runs(settings[i / 2], NULL);
        assert_true(fake.wqes >= 20);
        for (uint32_t n = 0; n < fake.wqes; n++) {
            struct bell_wqe_view v;
            uint8_t expected[BELL_WQE_BYTES_MAX] = { 0 };
            memset(&v, 0, sizeof v);
            assert_int_equal(bell_wqe_decode(fake.wqe[n], fake.wqe_is_dc[n], &v), BELL_OK);
            with_mlx5dv(expected, &v, fake.wqe[n] + v.inline_offset);
            assert_memory_equal(fake.wqe[n], expected, (size_t)v.ds * 16);
            assert_int_equal(v.qpn & ~0xffu, 0x123400);
            assert_int_equal(v.opcode, MLX5_OPCODE_RDMA_WRITE);
        }
    }
}
#else
static void test_bytes(void **state)
{
    (void)state;
    print_message("infiniband/mlx5dv.h is not there: nothing compared with rdma-core\n");
    skip();
}
#endif

/* Each call fails once: a clean error, or another way that works; and nothing is left behind. */
static bool has_payload, has_lanes;

static void sweep(const char *settings, bool is_gpu_refused)
{
    uint32_t failures = 0;
    for (uint32_t n = 1;; n++) {
        (void)start(NULL);
        fake.fail_at = n;
        gpu.refuse_register = is_gpu_refused;
        payload = has_payload ? &gpu.table : NULL;
        lanes = has_lanes ? &others.table : NULL;
        enum bell_status s = run(settings, EXEC_BOUND_PS);
        assert_clean(settings);
        if (fake.calls < n) {
            assert_int_equal(s, BELL_OK);
            break;
        }
        failures += s != BELL_OK;
        if (s != BELL_OK && (s == BELL_TIMEOUT || !err.text[0] || (n > 1 && !strstr(err.text, "fake_0"))))
            fail_msg("%s, call %u: %s: '%s'", settings, n, bell_status_text(s), err.text);
    }
    assert_true(failures > 15); /* of about 30 calls, some with a second way */
}

static void test_each_call_fails(void **state)
{
    (void)state;
    sweep(HOST "submit=gpu iterations=2", false);
    sweep(HOST "submit=gpu iterations=2 transport=dc cq=collapsed", false);
    sweep("submit=gpu iterations=2", true);
    sweep(PROXY "iterations=2 lanes=2 queues=2", false);
    has_payload = has_lanes = true;
    sweep("submit=gpu iterations=2 payload=pointer", false);
    has_payload = has_lanes = false;
    (void)start(NULL);
    gpu.refuse_alloc = true;
    assert_int_equal(run("submit=gpu", 0), BELL_NO_MEMORY);
    assert_non_null(strstr(err.text, "GPU memory for an SQ"));
    assert_clean("no memory");
}

static void test_bad_key(void **state)
{
    static const char *const settings[] = { HOST "submit=gpu fault=bad-key",
                                            HOST "submit=gpu fault=bad-key cq=collapsed", PROXY "fault=bad-key" };
    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        (void)start(NULL);
        assert_int_equal(run(settings[i], EXEC_BOUND_PS), BELL_CQE_ERROR);
        assert_non_null(strstr(err.text, "syndrome 0x13 (remote access error) for the WQE at index 0 of queue 0"));
        assert_clean(settings[i]);
    }
}

/* A NIC that does not see the doorbells: the wait ends at its bound, and all is taken down. */
static void test_silence(void **state)
{
    (void)state;
    fake.is_deaf = true;
    assert_int_equal(run(HOST "submit=gpu", 50000000000u), BELL_TIMEOUT);
    assert_non_null(strstr(err.text, "rank 0 lane 0 waited to its bound for a CQE"));
    assert_clean("deaf");
}

static void refuse(const char *settings, struct bell_machine *machine, const struct bell_sink *sink, bool has_gpu,
                   const char *words)
{
    struct bell_mlx5_ground ground = ground_of(has_gpu);
    struct exec_case c;
    exec_case_read(&c, settings);
    struct bell_run r = { .program = &c.program, .stack = &c.stack, .sink = sink, .machine = machine };
    memset(&result, 0, sizeof result);
    assert_int_equal(bell_mlx5_run(&ground, &r, &result, &err), BELL_UNSUPPORTED);
    if (!strstr(err.text, words))
        fail_msg("'%s' is not in: %s", words, err.text);
    assert_clean(settings);
}

static void test_refusals(void **state)
{
    struct bell_machine machine;
    struct bell_sink sink = { NULL, NULL };
    (void)state;
    bell_machine_read(NULL, &machine);
    refuse("submit=gpu", NULL, NULL, false, "--set queue_memory=host runs the same stack on CPU threads");
    refuse(HOST "submit=gpu first_index=5", NULL, NULL, true, "starts at 0");
    refuse(HOST "submit=gpu fault=silent", NULL, NULL, true, "fault=silent: a NIC cannot be told to");
    refuse(HOST "submit=gpu fault=error-cqe", NULL, NULL, true, "fault=error-cqe: a NIC cannot be told to");
    refuse(HOST "submit=gpu", NULL, &sink, true, "writes no trace");
    (void)snprintf(machine.peer, sizeof machine.peer, "there:1");
    refuse(HOST "submit=gpu", &machine, NULL, true, "machine.peer");
    lanes = &others.table;
    refuse(HOST "submit=gpu blueflame=true", NULL, NULL, true, "a GPU lane rings with 8 B stores");
    refuse(HOST "submit=gpu lanes=2 sharing=cooperative", NULL, NULL, true, "fake lanes do not cooperate");
    lanes = NULL;
    machine.peer[0] = '\0';
    machine.port = 2;
    refuse(HOST "submit=gpu", &machine, NULL, true, "port 2 is not active");
    machine.port = 1;
    machine.pin = true;
    machine.first_core = 4000;
    refuse(HOST "submit=gpu", &machine, NULL, true, "machine.pin");
    (void)snprintf(machine.device, sizeof machine.device, "other_1");
    refuse(HOST "submit=gpu", &machine, NULL, true, "there is no other_1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_cases, start),
        cmocka_unit_test_setup(test_gpu_memory, start),
        cmocka_unit_test_setup(test_payload, start),
        cmocka_unit_test_setup(test_other_lanes, start),
        cmocka_unit_test_setup(test_other_lanes_fail, start),
        cmocka_unit_test_setup(test_forwarded, start),
        cmocka_unit_test_setup(test_shared_uar, start),
        cmocka_unit_test_setup(test_blueflame, start),
        cmocka_unit_test_setup(test_bytes, start),
        cmocka_unit_test_setup(test_each_call_fails, start),
        cmocka_unit_test_setup(test_bad_key, start),
        cmocka_unit_test_setup(test_silence, start),
        cmocka_unit_test_setup(test_refusals, start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
