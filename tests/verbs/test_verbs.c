/* SPDX-License-Identifier: Apache-2.0
 * Executor `verbs` over a stand-in for libibverbs: chains, completions, what goes wrong and what is left behind. */
#ifdef BELL_HAVE_IBVERBS
#include "tests/conform/exec_case.h"
#include "tests/verbs/fake.h"

#include "hw/verbs/cores.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define SHORT_PS 300000000000u /* a bound that a test waits out */

static struct exec_seen seen;

static enum bell_status run(const char *settings, uint64_t bound_ps, struct bell_result *result, struct bell_error *err)
{
    struct exec_case c;
    struct bell_result unused = { .events = 0 };
    exec_case_read(&c, settings);
    struct bell_run r = { .program = &c.program, .stack = &c.stack, .bound_ps = bound_ps };
    return bell_verbs_executor.run(&r, result ? result : &unused, err);
}

static void run_on(const struct bell_machine *machine, enum bell_status status, const char *words)
{
    struct exec_case c;
    struct bell_result result = { .events = 0 };
    struct bell_error err = { BELL_OK, "" };
    exec_case_read(&c, "submit=gpu iterations=3");
    struct bell_run r = { .program = &c.program, .stack = &c.stack, .machine = machine };
    enum bell_status s = bell_verbs_executor.run(&r, &result, &err);
    if (s != status || !strstr(err.text, words)) fail_msg("status %d, %s; expected '%s'", (int)s, err.text, words);
    assert_int_equal(fake.live, 0);
}

static void expect_good(const char *settings)
{
    struct exec_case c;
    struct bell_error err = { BELL_OK, "" };
    struct bell_result result = { .events = 0 };
    exec_case_read(&c, settings);
    if (exec_traced(&bell_verbs_executor, &c, 0, &seen, &result, &err) != BELL_OK)
        fail_msg("%s: %s", settings, err.text);
    assert_int_equal(fake.live, 0);
    assert_int_equal(fake.signaled, fake.chains);
    assert_int_equal(seen.count[BELL_EVENT_DOORBELL], fake.chains);
    assert_int_equal(seen.count[BELL_EVENT_POLL], fake.chains);
    assert_int_equal(seen.count[BELL_EVENT_BUILD], fake.writes);
    assert_int_equal(seen.count[BELL_EVENT_RESERVE], fake.chains);
    assert_int_equal(seen.count[BELL_EVENT_DBREC] + seen.count[BELL_EVENT_CQE] + seen.count[BELL_EVENT_DELIVER], 0);
    if (c.program.pattern != BELL_PATTERN_PROBE) assert_int_equal(fake.writes, exec_puts(&c));
}

static void expect_failure(const char *settings, enum bell_status status, const char *words)
{
    struct bell_error err = { BELL_OK, "" };
    enum bell_status s = run(settings, SHORT_PS, NULL, &err);
    if (s != status || err.status != s || !strstr(err.text, words))
        fail_msg("%s: status %d, '%s'; expected '%s'", settings, (int)s, err.text, words);
    assert_int_equal(fake.live, 0);
}

static int reset(void **state)
{
    (void)state;
    fake_reset();
    return 0;
}

#define PROXY "submit=proxy queue_memory=host protocol=tuned "

static void test_runs(void **state)
{
    static const char *const cases[] = {
        "submit=gpu iterations=50 warmup=3",
        "submit=gpu payload=pointer bytes=4096 puts=7 wqes_per_doorbell=4 iterations=20",
        "submit=gpu depth=8 wqes_per_doorbell=4 puts=32 iterations=20",
        "submit=gpu sharing=locked lanes=4 queues=2 puts=3 depth=4 iterations=50",
        "submit=gpu pattern=round-trip lanes=2 queues=2 iterations=50",
        "submit=gpu pattern=round-trip signal=separate iterations=50",
        "submit=gpu pattern=stream depth=16 wqes_per_doorbell=8 puts=16 iterations=50",
        "submit=gpu pattern=probe lanes=3 queues=3 iterations=10",
        PROXY "iterations=50",
        PROXY "batch=16 puts=40 iterations=20",
        PROXY "lanes=4 queues=4 workers=2 iterations=20",
        PROXY "pattern=round-trip iterations=20",
        "submit=proxy queue_memory=host protocol=baseline payload=pointer bytes=64 pattern=round-trip iterations=20",
    };
    (void)state;
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        fake_reset();
        fake.empty_polls = i % 2 ? 5 : 0;
        expect_good(cases[i / 2]);
    }
}

static void test_chain(void **state)
{
    (void)state;
    expect_good("submit=gpu payload=pointer bytes=64 puts=16 wqes_per_doorbell=16 iterations=2");
    assert_int_equal(fake.chains, 2);
    assert_int_equal(fake.chain_length[0], 16);
    assert_int_equal(fake.inlined, 0);
    for (int i = 0; i < 16; i++) {
        const struct ibv_send_wr *w = &fake.last[i];
        assert_int_equal(w->wr_id, 16 + i);
        assert_int_equal(w->opcode, IBV_WR_RDMA_WRITE);
        assert_int_equal(w->num_sge, 1);
        assert_int_equal(w->send_flags, i == 15 ? IBV_SEND_SIGNALED : 0);
        assert_true((w->next == NULL) == (i == 15));
        assert_int_equal(fake.last_sge[i].length, 64);
        assert_int_not_equal(fake.last_sge[i].lkey, w->wr.rdma.rkey);
        if (i) assert_int_equal(w->wr.rdma.remote_addr - fake.last[i - 1].wr.rdma.remote_addr, 64);
    }
}

static void test_chain_of_proxy(void **state)
{
    uint32_t longest = 0;
    (void)state;
    fake.empty_polls = 3;
    expect_good(PROXY "batch=16 puts=64 iterations=20");
    for (uint32_t i = 0; i < fake.chains && i < FAKE_CHAINS; i++) {
        assert_in_range(fake.chain_length[i], 1, 16);
        longest = fake.chain_length[i] > longest ? fake.chain_length[i] : longest;
    }
    assert_true(longest > 1);
    assert_int_equal(fake.inlined, fake.writes);
    assert_int_equal(seen.count[BELL_EVENT_ENQUEUE], 1280);
    assert_int_equal(seen.count[BELL_EVENT_DEQUEUE], 1280);
    fake_reset();
    expect_good(PROXY "puts=64 iterations=2");
    assert_int_equal(fake.chains, 128);
}

static void test_result(void **state)
{
    struct bell_error err = { BELL_OK, "" };
    uint64_t issue_ps[5] = { 0 }, total_ps[5] = { 0 };
    struct bell_result result = { .issue_ps = issue_ps, .total_ps = total_ps };
    (void)state;
    fake.vendor_id = 0x2c9;
    assert_int_equal(run(PROXY "iterations=5", 0, &result, &err), BELL_OK);
    assert_string_equal(result.path, "proxy");
    assert_non_null(strstr(result.notes, "RDMA device fake0, driver unknown, is SOFTWARE"));
    assert_non_null(strstr(result.notes, "5 chains posted, one CQE each"));
    assert_true(result.span_ps > 0 && total_ps[4] > 0);
    fake.vendor_id = 0xffffff;
    assert_int_equal(run("submit=gpu iterations=5", 0, &result, &err), BELL_OK);
    assert_string_equal(result.path, "host-doorbell");
    assert_non_null(strstr(result.notes, "driver rdma_rxe, is SOFTWARE"));
}

static void test_refused(void **state)
{
    (void)state;
    expect_failure("submit=gpu fault=silent", BELL_UNSUPPORTED, "fault: a real device cannot be told to misbehave");
    expect_failure("submit=gpu fault=late-cqe", BELL_UNSUPPORTED, "expected none or bad-key");
    expect_failure("submit=gpu transport=dc", BELL_UNSUPPORTED, "transport: ");
    expect_failure("submit=gpu cq=collapsed", BELL_UNSUPPORTED, "cq: ");
    expect_failure("submit=gpu nic_start=dbrec", BELL_UNSUPPORTED, "nic_start: ");
    expect_failure("submit=gpu first_index=7", BELL_UNSUPPORTED, "first_index: ");
    expect_failure("submit=gpu doorbell=host", BELL_UNSUPPORTED, "doorbell: ");
    expect_failure("submit=gpu sharing=ordered lanes=2", BELL_UNSUPPORTED, "expected owner or locked");
    expect_failure("submit=gpu sharing=cooperative lanes=2", BELL_UNSUPPORTED, "expected owner or locked");
    assert_int_equal(fake.calls, 0);
    fake.max_inline = 16;
    expect_failure("submit=gpu bytes=64", BELL_UNSUPPORTED,
                   "payload: fake0 does not take 64 bytes inline, expected pointer");
    expect_good("submit=gpu bytes=16 iterations=2");
    fake_reset();
    fake.max_inline = 4;
    expect_failure(PROXY "bytes=8", BELL_UNSUPPORTED, "payload: fake0 does not take 8 bytes inline");
    expect_good(PROXY "payload=pointer iterations=2");
    fake_reset();
    fake.max_qp_wr = 512;
    expect_failure("submit=gpu depth=1024", BELL_UNSUPPORTED, "depth: fake0 takes 512 work requests a queue");
}

static void test_faults(void **state)
{
    (void)state;
    expect_failure("submit=gpu fault=bad-key", BELL_CQE_ERROR,
                   "rank 0 queue 0: CQE for the write at index 0: remote access error (status 10, vendor code 0x88)");
    expect_failure(PROXY "fault=bad-key batch=8 puts=8 lanes=2 queues=2", BELL_CQE_ERROR, ": remote access error");
    expect_failure("submit=gpu fault=bad-key pattern=round-trip", BELL_CQE_ERROR,
                   "rank 0 queue 0: CQE for the write at index 0: remote access error");
    fake.refuse_place = 2;
    expect_failure(
        "submit=gpu puts=4 wqes_per_doorbell=4", BELL_IO,
        "rank 0 queue 0: ibv_post_send refused the write at index 2 of a chain of 4: Cannot allocate memory");
    fake_reset();
    fake.poll_fails = true;
    expect_failure("submit=gpu", BELL_IO, "rank 0 queue 0: ibv_poll_cq failed (-5)");
    fake_reset();
    fake.lose_chain = 4;
    expect_failure("submit=gpu", BELL_TIMEOUT,
                   "rank 0 lane 0 waited to its bound for a CQE; queue 0: posted 5, completed "
                   "4, chains 5, CQEs 4");
    fake_reset();
    fake.lose_chain = 4;
    expect_failure(PROXY, BELL_TIMEOUT, "waited to its bound for");
    fake_reset();
    fake.corrupt_chain = 9;
    expect_failure("submit=gpu iterations=10", BELL_CORRUPT, "put 9 of lane 0 on rank 0 is not what arrived");
}

static void test_one_completion_a_chain(void **state)
{
    (void)state;
    fake.double_chain = 2;
    expect_failure("submit=gpu iterations=10", BELL_CORRUPT,
                   "rank 0 queue 0: CQE for the write at index 2, which is not the "
                   "last of a chain under way");
    fake_reset();
    fake.double_chain = 9;
    expect_failure("submit=gpu iterations=10", BELL_CORRUPT,
                   "one more CQE after the last chain, for the write at index 9");
    fake_reset();
    fake.signal_all_chain = 1;
    expect_failure("submit=gpu puts=8 wqes_per_doorbell=8 iterations=4", BELL_CORRUPT,
                   "CQE for the write at index 8, which is not the last of a chain under way");
    fake_reset();
    fake.double_chain = 9;
    expect_failure("submit=gpu sharing=locked lanes=2 iterations=5", BELL_CORRUPT, "CQE");
}

static void test_devices(void **state)
{
    struct bell_error err = { BELL_OK, "" };
    struct bell_machine m;
    (void)state;
    memset(&m, 0, sizeof m);
    bell_field_defaults(bell_machine_fields, &m);
    assert_int_equal(bell_verbs_executor.probe(&err), BELL_OK);
    run_on(&m, BELL_OK, "");
    assert_int_equal(fake.last_sgid_index, 3); /* the first that is IPv4-mapped and RoCE v2 */
    assert_int_equal(fake.last_path_mtu, IBV_MTU_1024);
    m.gid = 1;
    run_on(&m, BELL_OK, "");
    assert_int_equal(fake.last_sgid_index, 1);
    m.gid = 5;
    run_on(&m, BELL_INVALID, "machine.gid: GID 5 of fake0 port 1 is empty");
    m.gid = 6;
    run_on(&m, BELL_INVALID, "machine.gid: fake0 port 1 has GIDs 0 to 5, got 6");
    m.gid = BELL_GID_ANY;
    memset(fake.gid, 0, sizeof fake.gid);
    run_on(&m, BELL_UNSUPPORTED, "fake0 port 1 has no GID");
    fake.link_layer = IBV_LINK_LAYER_INFINIBAND;
    run_on(&m, BELL_OK, "");
    assert_int_equal(fake.last_is_global, 0);
    assert_int_equal(fake.last_dlid, 7);
    m.port = 2;
    run_on(&m, BELL_UNSUPPORTED, "port 2 of fake0 is Invalid argument; expected an active port (machine.port=2)");
    m.port = 1;
    fake.state = IBV_PORT_DOWN;
    run_on(&m, BELL_UNSUPPORTED, "port 1 of fake0 is PORT_DOWN");
    fake.devices = 2;
    (void)snprintf(m.device, sizeof m.device, "mlx5_1");
    run_on(&m, BELL_INVALID, "machine.device: no RDMA device 'mlx5_1'; here: fake0, fake0");
    fake.devices = 0;
    run_on(&m, BELL_UNSUPPORTED, "no RDMA device: ");
    assert_int_equal(bell_verbs_executor.probe(&err), BELL_UNSUPPORTED);
    fake.devices = -1;
    assert_int_equal(bell_verbs_executor.probe(&err), BELL_UNSUPPORTED);
    assert_non_null(strstr(err.text, "no RDMA device: ibv_get_device_list: the kernel has no RDMA devices"));
}

/* Each call that can fail does so once; the run says so and gives everything back. */
static void test_every_call_fails(void **state)
{
    static const char *const cases[] = { "submit=gpu iterations=2 lanes=2 queues=2", PROXY "iterations=2" };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        int call = 0;
        do {
            struct bell_error err = { BELL_OK, "" };
            fake_reset();
            fake.refuse_call = ++call;
            enum bell_status s = run(cases[i], 0, NULL, &err);
            if (fake.live) fail_msg("call %d refused: %d objects are left", call, fake.live);
            if (s != BELL_OK && (err.status != s || strlen(err.text) < 10)) fail_msg("call %d: '%s'", call, err.text);
            /* Of the device that cannot be asked for its vendor only the name of the driver is missing. */
            if (s == BELL_OK && fake.calls >= call && call != 4)
                fail_msg("call %d was refused, and nobody noticed", call);
        } while (fake.calls >= call);
        assert_true(call > 15);
    }
}

static void test_cores(void **state)
{
    struct bell_error err = { BELL_OK, "" };
    int cpu[4] = { -1, -1, -1, -1 };
    (void)state;
    assert_true(bell_verbs_cores_list_has("0-3,8,10-11\n", 2));
    assert_true(bell_verbs_cores_list_has("0-3,8,10-11\n", 8));
    assert_true(bell_verbs_cores_list_has("0-3,8,10-11\n", 11));
    assert_false(bell_verbs_cores_list_has("0-3,8,10-11\n", 9));
    assert_false(bell_verbs_cores_list_has("", 0));
    assert_int_equal(bell_verbs_cores_pick(0, -1, 1, cpu, &err), BELL_OK);
    assert_true(cpu[0] >= 0);
    assert_int_equal(bell_verbs_cores_pick(4000, -1, 1, cpu, &err), BELL_UNSUPPORTED);
    assert_non_null(strstr(err.text, "machine.pin: 1 threads want a core each"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_runs, reset),
        cmocka_unit_test_setup(test_chain, reset),
        cmocka_unit_test_setup(test_chain_of_proxy, reset),
        cmocka_unit_test_setup(test_result, reset),
        cmocka_unit_test_setup(test_refused, reset),
        cmocka_unit_test_setup(test_faults, reset),
        cmocka_unit_test_setup(test_one_completion_a_chain, reset),
        cmocka_unit_test_setup(test_devices, reset),
        cmocka_unit_test_setup(test_every_call_fails, reset),
        cmocka_unit_test_setup(test_cores, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
#include <stdio.h>

int main(void)
{
    (void)puts("skipped: built without libibverbs: apt-get install libibverbs-dev");
    return 77;
}
#endif
