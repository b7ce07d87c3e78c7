/* SPDX-License-Identifier: Apache-2.0
 * The software NIC's server: whom it serves, what it counts, what it says of itself. */
#include "tests/unit/rig.h"

#include "hw/soft/server.h"

#include <pthread.h>

static struct rig rig[3];
static struct bell_nic_seat seat[3];
static uint32_t stop;

static void open_rigs(struct bell_nic_server *server, uint32_t seats)
{
    stop = 0;
    for (uint32_t i = 0; i < seats; i++) {
        rig_open(&rig[i], 8, BELL_CQ_RING, 0);
        seat[i].nicq = &rig[i].nicq;
        seat[i].lane = (uint16_t)(40 + i);
    }
    bell_nic_server_init(server, &rig[0].nic, seat, seats, &stop);
}

static void close_rigs(uint32_t seats)
{
    for (uint32_t i = 0; i < seats; i++)
        rig_close(&rig[i]);
}

static void test_turn_serves_every_seat(void **state)
{
    struct bell_nic_server server;
    (void)state;
    open_rigs(&server, 3);
    assert_int_equal(bell_nic_server_turn(&server), BELL_EMPTY);
    assert_true(server.stats.busy_ps == 0 && server.stats.wqes == 0);
    for (uint32_t i = 0; i < 3; i += 2) {
        struct bell_wqe_request q[3] = { rig_write(&rig[i], 8, 0, true), rig_write(&rig[i], 8, 1, true),
                                         rig_write(&rig[i], 8, 2, true) };
        (void)rig_put(&rig[i], q, i + 1);
    }
    assert_int_equal(bell_nic_server_turn(&server), BELL_OK);
    assert_int_equal(server.stats.wqes, 4);
    assert_true(server.stats.busy_ps > 0);
    assert_true(rig[0].to[0] && !rig[1].to[0] && rig[2].to[2]);
    assert_int_equal(rig[0].nic.event[0].lane, 40);
    assert_int_equal(rig[0].nic.event[rig[0].nic.events - 1].lane, 42);
    uint64_t busy_ps = server.stats.busy_ps;
    assert_int_equal(bell_nic_server_turn(&server), BELL_EMPTY);
    assert_true(server.stats.busy_ps == busy_ps); /* looking is not serving */
    rig[1].doorbell = bell_wqe_doorbell(RIG_QPN, 9);
    assert_int_equal(bell_nic_server_turn(&server), BELL_INVALID);
    assert_int_equal(server.lane->id.lane, 41); /* whose fault it is */
    close_rigs(3);
}

static void *run(void *server)
{
    enum bell_status *s = malloc(sizeof *s);
    assert_non_null(s);
    *s = bell_nic_server_run(server);
    return s;
}

static enum bell_status join(pthread_t thread)
{
    void *result = NULL;
    assert_int_equal(pthread_join(thread, &result), 0);
    enum bell_status s = *(enum bell_status *)result;
    free(result);
    return s;
}

/* Puts by this thread, served by two others until they are told to stop. */
static void test_two_servers(void **state)
{
    struct bell_nic_server server[2];
    pthread_t thread[2];
    (void)state;
    open_rigs(&server[0], 3);
    rig[0].soft.is_traced = rig[1].soft.is_traced = rig[2].soft.is_traced = false;
    bell_nic_server_init(&server[0], &rig[0].nic, seat, 2, &stop);
    bell_nic_server_init(&server[1], &rig[2].nic, seat + 2, 1, &stop);
    server[0].core = CPU_SETSIZE; /* there is none */
    for (uint32_t t = 0; t < 2; t++)
        assert_int_equal(pthread_create(&thread[t], NULL, run, &server[t]), 0);
    for (uint32_t n = 0; n < 50; n++)
        for (uint32_t i = 0; i < 3; i++) {
            struct bell_wqe_request q = rig_write(&rig[i], 8, n, true);
            rig[i].soft.bound_ps = 60000000000000u;
            uint64_t end = rig_put(&rig[i], &q, 1);
            assert_int_equal(bell_sq_quiet(&rig[i].lane[0], &rig[i].sq, BELL_SHARING_OWNER, end, &rig[i].done),
                             BELL_OK);
            assert_true(rig[i].to[n] == rig[i].from[n]);
        }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (uint32_t t = 0; t < 2; t++)
        assert_int_equal(join(thread[t]), BELL_OK);
    assert_int_equal(server[0].stats.wqes, 100);
    assert_int_equal(server[1].stats.wqes, 50);
    for (uint32_t t = 0; t < 2; t++)
        assert_true(server[t].stats.span_ps >= server[t].stats.busy_ps && server[t].stats.busy_ps > 0);
    char text[400];
    bell_nic_server_report(server, 2, text, sizeof text);
    assert_non_null(strstr(text, "software NIC: 2 threads"));
    assert_non_null(strstr(text, "1 of 2 could not be bound to a core of its own"));
    close_rigs(3);
}

static void test_failure_ends_a_server(void **state)
{
    struct bell_nic_server server;
    (void)state;
    open_rigs(&server, 2);
    rig[1].doorbell = bell_wqe_doorbell(RIG_QPN, 100);
    assert_int_equal(bell_nic_server_run(&server), BELL_INVALID);
    assert_int_equal(server.lane->id.lane, 41);
    close_rigs(2);
}

static void test_report(void **state)
{
    struct bell_nic_server s[2];
    char text[400];
    (void)state;
    memset(s, 0, sizeof s);
    s[0].core = s[1].core = BELL_NIC_ANY_CORE;
    bell_nic_server_report(s, 1, text, sizeof text);
    assert_string_equal(text, "software NIC: 1 thread, which completed no WQE");
    /* 30 M WQEs in 2 + 3 s of work: each thread could do 6 M/s. */
    s[0].stats = (struct bell_nic_stats){ 10000000, 2000000000000u, 10000000000000u, 10000000000000u };
    s[1].stats = (struct bell_nic_stats){ 20000000, 3000000000000u, 10000000000000u, 10000000000000u };
    bell_nic_server_report(s, 2, text, sizeof text);
    assert_string_equal(text, "software NIC: 2 threads, 25 % busy, could serve about 12 M WQE/s; it is not the limit "
                              "of this run");
    s[1].stats.cpu_ps = 6000000000000u; /* no claim for a thread that had to wait for its core */
    bell_nic_server_report(s, 2, text, sizeof text);
    assert_string_equal(text, "software NIC: 2 threads, 25 % busy, could serve about 12 M WQE/s; it had a core "
                              "for only 80 % of the time, so others set its speed");
    s[1].stats.cpu_ps = 10000000000000u;
    s[0].paced_by = "P";
    s[0].pace_ps = 2000000;
    bell_lateness_add(&s[1].late, 190000);
    bell_nic_server_report(s, 2, text, sizeof text);
    assert_non_null(strstr(text, "; paced as on P, its stages ran 0.176 us late (p50)"));
    assert_null(strstr(text, "PACE"));
    s[0].pace_ps = 1500000;
    bell_nic_server_report(s, 2, text, sizeof text);
    assert_non_null(strstr(text, "late (p50): IT DID NOT KEEP THE PACE"));
    s[0].paced_by = NULL;
    s[1].stats.busy_ps = 9500000000000u; /* one of the two is enough of a bottleneck */
    bell_nic_server_report(s, 2, text, sizeof text);
    assert_string_equal(text, "software NIC: 2 threads, the busiest 95 % of the time, all of them 58 %: THE SOFTWARE "
                              "NIC IS THE BOTTLENECK, and the rate shown is its own (it could serve about 5.22 M WQE/s "
                              "at most); try more machine.nic_threads");
    s[0].core = 0;
    s[0].is_bound = true;
    bell_nic_server_report(s, 2, text, sizeof text);
    assert_null(strstr(text, "could not be bound"));
    struct bell_nicq queue[2] = { { .stale = 3 }, { .stale = 4 } };
    struct bell_nic_seat both[2] = { { .nicq = queue }, { .nicq = queue + 1 } };
    s[0].seat = both;
    s[0].seats = 2;
    bell_nic_server_report(s, 2, text, sizeof text);
    assert_non_null(strstr(text, "; 7 of 30000000 WQES HAD NOT ARRIVED when they were read"));
    char little[10];
    bell_nic_server_report(s, 2, little, sizeof little);
    assert_string_equal(little, "software ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turn_serves_every_seat),
        cmocka_unit_test(test_two_servers),
        cmocka_unit_test(test_failure_ends_a_server),
        cmocka_unit_test(test_report),
    };
    return cmocka_run_group_tests_name("server", tests, NULL, NULL);
}
