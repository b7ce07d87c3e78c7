/* SPDX-License-Identifier: Apache-2.0
 * What two processes tell each other: the bytes, strangers that speak something else, and both ranks of executor
 * `verbs` as two threads over a stand-in for libibverbs. */
#ifdef BELL_HAVE_IBVERBS
#include "tests/conform/exec_case.h"
#include "tests/verbs/fake.h"

#include "hw/verbs/wire.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define BOUND 20000 /* ms: long enough for a loaded machine */
#define BRIEF 200   /* ms: of a wait that a test waits out */

/* ---- bytes ---- */

static struct bell_hello_end ends[2] = { { 0x123456, 0xabcdef }, { 0x11, 0x22 } };

static struct bell_hello hello_of(uint32_t rank, const char *terms)
{
    struct bell_hello h = {
        rank, 2,     0x1122334455667788u,    4096, 0xa0b0c0d0, 0x1234, 5, true, true, { 0xfe, [15] = 9 },
        ends, terms, (uint32_t)strlen(terms)
    };
    return h;
}

static void test_bytes(void **state)
{
    static const uint8_t header[] = { 'b', 'e', 'l', 'l', 0, 1, 0, 1, 0, 0, 0, 68 };
    static const uint8_t body[] = { 0,    0,    0, 1,    0,    0, 0, 2,    0x11, 0x22, 0x33, 0x44, 0x55, 0x66,
                                    0x77, 0x88, 0, 0,    0,    0, 0, 0,    0x10, 0,    0xa0, 0xb0, 0xc0, 0xd0,
                                    0x12, 0x34, 5, 3,    0xfe, 0, 0, 0,    0,    0,    0,    0,    0,    0,
                                    0,    0,    0, 0,    0,    9, 0, 0x12, 0x34, 0x56, 0,    0xab, 0xcd, 0xef,
                                    0,    0,    0, 0x11, 0,    0, 0, 0x22, 'a',  '=',  '1',  '\n' };
    struct bell_hello h = hello_of(1, "a=1\n"), own = hello_of(0, "a=1\n"), out;
    struct bell_hello_end got[2];
    uint8_t bytes[256];
    enum bell_message_kind kind;
    uint32_t size;
    struct bell_error err = { BELL_OK, "" };
    (void)state;
    assert_int_equal(bell_hello_size(&h), sizeof body);
    bell_message_put_header(bytes, BELL_MESSAGE_HELLO, sizeof body);
    assert_memory_equal(bytes, header, sizeof header);
    assert_int_equal(bell_message_get_header(bytes, &kind, &size, &err), BELL_OK);
    assert_int_equal(kind, BELL_MESSAGE_HELLO);
    assert_int_equal(size, sizeof body);
    bell_hello_put(&h, bytes);
    assert_memory_equal(bytes, body, sizeof body);
    out.end = got;
    if (bell_hello_get(bytes, sizeof body, &own, &out, &err) != BELL_OK) fail_msg("%s", err.text);
    assert_int_equal(out.address, h.address);
    assert_int_equal(out.rkey, h.rkey);
    assert_int_equal(out.lid, 0x1234);
    assert_int_equal(got[0].qpn, 0x123456);
    assert_int_equal(got[1].psn, 0x22);
    assert_true(out.is_roce && out.has_global);
    assert_memory_equal(out.gid, h.gid, 16);
}

/* The body of `h` with one byte changed is refused with these words. */
static void refuse(const struct bell_hello *h, size_t at, uint8_t value, enum bell_status status, const char *words)
{
    struct bell_hello own = hello_of(0, "a=1\nb=2\n"), out;
    struct bell_hello_end got[2];
    uint8_t bytes[256];
    struct bell_error err = { BELL_OK, "" };
    bell_hello_put(h, bytes);
    if (at < sizeof bytes) bytes[at] = value;
    out.end = got;
    enum bell_status s = bell_hello_get(bytes, bell_hello_size(h), &own, &out, &err);
    if (s != status || !strstr(err.text, words)) fail_msg("byte %zu: status %d, %s", at, (int)s, err.text);
}

static void test_long_terms(void **state)
{
    static char terms[BELL_TERMS_MAX + 2];
    static uint8_t bytes[BELL_TERMS_MAX + 200];
    struct bell_hello_end got[2];
    struct bell_hello own = hello_of(0, ""), out;
    struct bell_error err = { BELL_OK, "" };
    (void)state;
    memset(terms, 'a', sizeof terms - 1);
    struct bell_hello h = hello_of(1, terms);
    bell_hello_put(&h, bytes);
    out.end = got;
    assert_int_equal(bell_hello_get(bytes, bell_hello_size(&h), &own, &out, &err), BELL_CORRUPT);
    assert_non_null(strstr(err.text, "does not hold 2 queues and at most 8192 bytes of terms"));
}

static void test_strange_hellos(void **state)
{
    struct bell_hello h = hello_of(1, "a=1\nb=2\n"), other = hello_of(1, "a=1\nb=3\n"), own = hello_of(0, "a=1\nb=2\n");
    struct bell_hello same = hello_of(0, "a=1\nb=2\n"), out;
    struct bell_hello_end got[2];
    uint8_t bytes[256];
    struct bell_error err;
    (void)state;
    refuse(&h, 999, 0, BELL_OK, "");
    refuse(&h, 3, 2, BELL_CORRUPT, "HELLO of rank 2, expected 0 or 1");
    refuse(&h, 4, 0xff, BELL_CORRUPT, "does not hold 4278190082 queues");
    refuse(&h, 7, 1, BELL_INVALID, "both sides must run the same");
    refuse(&h, 23, 1, BELL_CORRUPT, "HELLO with 2 queues and 4097 bytes");
    refuse(&h, 30, 0, BELL_CORRUPT, "MTU code 0, expected 1 to 5");
    refuse(&h, 31, 2, BELL_INVALID, "here RoCE with a GID, there InfiniBand with a GID");
    refuse(&h, 48, 1, BELL_CORRUPT, "QPN 0x1123456");
    refuse(&other, 999, 0, BELL_INVALID, "both sides must run the same: here b=2, there b=3");
    refuse(&h, 69, 7, BELL_INVALID, "here b=2, there b?2");
    refuse(&same, 999, 0, BELL_INVALID, "both sides are rank 0");
    bell_hello_put(&h, bytes);
    out.end = got;
    for (size_t size = 0; size < bell_hello_size(&h); size++)
        assert_int_not_equal(bell_hello_get(bytes, size, &own, &out, &err), BELL_OK);
}

/* Whatever the bytes are, nothing is read or written out of bounds (under the address sanitizer). */
static void test_random_bodies(void **state)
{
    struct bell_hello h = hello_of(1, "a=1\n"), own = hello_of(0, "a=1\n"), out;
    struct bell_hello_end got[2];
    struct bell_error err, end;
    uint64_t x = 88172645463325252u;
    int accepted = 0;
    (void)state;
    for (int round = 0; round < 20000; round++) {
        uint8_t whole[128];
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        size_t size = x % (bell_hello_size(&h) + 8);
        memset(whole, (int)(x >> 8), sizeof whole);
        bell_hello_put(&h, whole);
        for (int i = 0; i < (int)(x >> 40 & 7); i++)
            whole[(x >> (8 * i)) % sizeof whole] = (uint8_t)(x >> 3 * i);
        uint8_t *exact = malloc(size + !size);
        assert_non_null(exact);
        memcpy(exact, whole, size);
        out.end = got;
        accepted += bell_hello_get(exact, size, &own, &out, &err) == BELL_OK;
        accepted += bell_end_get(exact, size, &end, &err) == BELL_OK;
        free(exact);
    }
    assert_in_range(accepted, 1, 39999);
}

static void test_ends(void **state)
{
    struct bell_error in = { BELL_TIMEOUT, "lane 0 waited" }, out, err;
    uint8_t bytes[600] = { 0 };
    (void)state;
    size_t size = bell_end_put(&in, bytes);
    assert_int_equal(bell_end_get(bytes, size, &out, &err), BELL_OK);
    assert_int_equal(out.status, BELL_TIMEOUT);
    assert_string_equal(out.text, in.text);
    bytes[6] = 7;
    assert_int_equal(bell_end_get(bytes, size, &out, &err), BELL_OK);
    assert_string_equal(out.text, "la?e 0 waited");
    assert_int_equal(bell_end_get(bytes, 3, &out, &err), BELL_CORRUPT);
    assert_int_equal(bell_end_get(bytes, sizeof bytes, &out, &err), BELL_CORRUPT);
    bytes[0] = 1;
    assert_int_equal(bell_end_get(bytes, size, &out, &err), BELL_CORRUPT);
}

static void test_terms(void **state)
{
    static char terms[BELL_TERMS_MAX + 1];
    struct exec_case c;
    (void)state;
    exec_case_read(&c, "submit=gpu bytes=64 sharing=locked");
    uint32_t n = bell_terms_put(&c.program, &c.stack, terms);
    terms[n] = '\0';
    assert_non_null(strstr(terms, "experiment.bytes=64\n"));
    assert_non_null(strstr(terms, "stack.sharing=locked\n"));
    assert_true(n < BELL_TERMS_MAX / 2);
}

/* ---- strangers ---- */

static int free_port(void)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t size = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &size), 0);
    (void)close(fd);
    return ntohs(a.sin_port);
}

struct stranger {
    int port;
    const uint8_t *bytes;
    size_t size;
    bool waits; /* keeps the connection open until the other side closes it */
};

static void *be_strange(void *argument)
{
    const struct stranger *s = argument;
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    char byte;
    a.sin_port = htons((uint16_t)s->port);
    for (int tries = 0; tries < 400; tries++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) == 0) {
            (void)send(fd, s->bytes, s->size, MSG_NOSIGNAL);
            if (!s->waits) (void)shutdown(fd, SHUT_WR);
            while (recv(fd, &byte, 1, 0) > 0)
                ;
            (void)close(fd);
            return NULL;
        }
        (void)close(fd);
        (void)usleep(10000);
    }
    return NULL;
}

/* What rank 0 makes of a stranger that sends these bytes. */
static void meet(const void *bytes, size_t size, bool waits, enum bell_status status, const char *words)
{
    static uint8_t body[BELL_MESSAGE_MAX];
    struct stranger s = { free_port(), bytes, size, waits };
    struct bell_wire w;
    struct bell_error err = { BELL_OK, "" };
    pthread_t thread;
    char peer[64];
    (void)snprintf(peer, sizeof peer, "127.0.0.1:%d", s.port);
    assert_int_equal(pthread_create(&thread, NULL, be_strange, &s), 0);
    if (bell_wire_open(&w, peer, 0, BOUND, &err) != BELL_OK) fail_msg("%s", err.text);
    if (waits) w.bound_ms = BRIEF;
    enum bell_status got = bell_wire_expect(&w, BELL_MESSAGE_HELLO, body, &size, &err);
    bell_wire_close(&w);
    (void)pthread_join(thread, NULL);
    if (got != status || !strstr(err.text, words)) fail_msg("status %d, %s; expected '%s'", (int)got, err.text, words);
}

static void test_strangers(void **state)
{
    (void)state;
    meet("GET / HTTP/1.1\r\n\r\n", 18, false, BELL_CORRUPT, "it begins with bytes 47 45 54 20: not a bellwether");
    meet("bell\0\2\0\1\0\0\0\0", 12, false, BELL_CORRUPT, "it speaks version 2, this one 1");
    meet("bell\0\1\0\1\0\1\0\1", 12, false, BELL_CORRUPT, "HELLO of 65537 bytes, expected at most 65536");
    meet("bell\0\1\0\1\xff\xff\xff\xff", 12, true, BELL_CORRUPT, "HELLO of 4294967295 bytes");
    meet("bell\0\1\0\x63\0\0\0\0", 12, false, BELL_CORRUPT, "message of unknown kind 99");
    meet("bell\0\1\0\2\0\0\0\0", 12, false, BELL_CORRUPT, "it sent READY, expected HELLO");
    meet("bell\0\1", 6, false, BELL_IO, "it closed the connection after 6 of 12 bytes of a message");
    meet("", 0, false, BELL_IO, "it closed the connection after 0 of 12 bytes of a message");
    meet("bell\0\1\0\1\0\0\0\x20half of", 19, false, BELL_IO, "after 7 of 32 bytes of HELLO");
    meet("bell\0\1\0\1\0\0\0\x20half of", 19, true, BELL_TIMEOUT, "7 of 32 bytes of HELLO came within 200 ms");
    meet("", 0, true, BELL_TIMEOUT, "0 of 12 bytes of a message came within 200 ms");
}

static void open_badly(const char *peer, uint32_t rank, enum bell_status status, const char *words)
{
    struct bell_wire w;
    struct bell_error err = { BELL_OK, "" };
    enum bell_status s = bell_wire_open(&w, peer, rank, BRIEF, &err);
    if (s != status || !strstr(err.text, words)) fail_msg("%s: status %d, %s", peer, (int)s, err.text);
    assert_int_equal(w.fd, -1);
}

static void test_no_peer(void **state)
{
    char peer[64];
    (void)state;
    open_badly("", 0, BELL_INVALID, "expected HOST:PORT");
    open_badly("host", 0, BELL_INVALID, "machine.peer: 'host', expected HOST:PORT");
    open_badly(":7471", 0, BELL_INVALID, "expected HOST:PORT");
    open_badly("host:", 1, BELL_INVALID, "expected HOST:PORT");
    open_badly("host:port", 1, BELL_INVALID, "expected HOST:PORT");
    open_badly("2001:db8::1:7471", 1, BELL_INVALID, "or [2001:db8::1]:7471");
    open_badly("127.0.0.1:99999999", 1, BELL_INVALID, "expected HOST:PORT");
    open_badly("127.0.0.1:0", 0, BELL_INVALID, "expected HOST:PORT");
    open_badly("192.0.2.1:7471", 0, BELL_IO, "HOST must be an address of rank 0's machine");
    (void)snprintf(peer, sizeof peer, "127.0.0.1:%d", free_port());
    open_badly(peer, 0, BELL_TIMEOUT, "rank 1 did not come");
    open_badly(peer, 1, BELL_TIMEOUT, "rank 1 tried for 200 ms to connect to rank 0 on 127.0.0.1");
}

/* ---- both ranks ---- */

struct side {
    struct exec_case c;
    struct bell_machine machine;
    struct bell_result result;
    struct bell_error err;
    enum bell_status status;
    uint64_t bound_ps;
};

static void *be_rank(void *argument)
{
    struct side *s = argument;
    struct bell_run run = {
        .program = &s->c.program, .stack = &s->c.stack, .machine = &s->machine, .bound_ps = s->bound_ps
    };
    s->status = bell_verbs_executor.run(&run, &s->result, &s->err);
    return NULL;
}

static void open_side(struct side *s, const char *settings, uint32_t rank, int port)
{
    memset(s, 0, sizeof *s);
    exec_case_read(&s->c, settings);
    bell_field_defaults(bell_machine_fields, &s->machine);
    (void)snprintf(s->machine.peer, sizeof s->machine.peer, "127.0.0.1:%d", port);
    s->machine.rank = rank;
    size_t samples = (size_t)s->c.program.lanes * s->c.program.iterations;
    s->result.issue_ps = calloc(samples, sizeof(uint64_t));
    s->result.total_ps = calloc(samples, sizeof(uint64_t));
    assert_non_null(s->result.issue_ps);
    assert_non_null(s->result.total_ps);
}

static void close_side(struct side *s)
{
    free(s->result.issue_ps);
    free(s->result.total_ps);
}

static void run_sides(struct side side[2], const char *settings0, const char *settings1)
{
    int port = free_port();
    pthread_t thread;
    open_side(&side[0], settings0, 0, port);
    open_side(&side[1], settings1, 1, port);
    assert_int_equal(pthread_create(&thread, NULL, be_rank, &side[0]), 0);
    (void)be_rank(&side[1]);
    (void)pthread_join(thread, NULL);
    assert_int_equal(fake.live, 0);
}

static void test_both_ranks(void **state)
{
    static const char *const cases[] = {
        "submit=gpu iterations=5000",
        "submit=gpu pattern=round-trip iterations=100",
        "submit=gpu pattern=round-trip signal=separate payload=pointer bytes=64 puts=3 iterations=100",
        "submit=gpu pattern=stream puts=8 wqes_per_doorbell=8 iterations=100",
        "submit=proxy queue_memory=host protocol=tuned batch=8 puts=16 lanes=2 queues=2 iterations=20",
    };
    struct side side[2];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fake_reset();
        run_sides(side, cases[i], cases[i]);
        for (int r = 0; r < 2; r++)
            if (side[r].status != BELL_OK) fail_msg("%s, rank %d: %s", cases[i], r, side[r].err.text);
        size_t bytes = (size_t)side[0].c.program.lanes * side[0].c.program.iterations * sizeof(uint64_t);
        assert_memory_equal(side[0].result.total_ps, side[1].result.total_ps, bytes);
        assert_memory_equal(side[0].result.issue_ps, side[1].result.issue_ps, bytes);
        assert_true(side[1].result.total_ps[0] > 0);
        assert_non_null(strstr(side[1].result.notes, "those that rank 0 measured"));
        assert_null(strstr(side[0].result.notes, "those that rank 0 measured"));
        assert_int_equal(fake.signaled, fake.chains);
        close_side(&side[0]);
        close_side(&side[1]);
    }
}

static void expect_pair(const char *settings0, const char *settings1, enum bell_status status, const char *words0,
                        const char *words1)
{
    struct side side[2];
    run_sides(side, settings0, settings1);
    for (int r = 0; r < 2; r++)
        if (side[r].status != status || !strstr(side[r].err.text, r ? words1 : words0))
            fail_msg("rank %d: status %d, %s", r, (int)side[r].status, side[r].err.text);
    close_side(&side[0]);
    close_side(&side[1]);
}

static void test_pairs_that_fail(void **state)
{
    (void)state;
    fake_reset();
    expect_pair("submit=gpu", "submit=gpu bytes=64", BELL_INVALID, "here experiment.bytes=8, there experiment.bytes=64",
                "here experiment.bytes=64, there experiment.bytes=8");
    expect_pair("submit=gpu sharing=locked", "submit=gpu", BELL_INVALID,
                "here stack.sharing=locked, there stack.sharing=owner", "here stack.sharing=owner");
    expect_pair("submit=gpu fault=bad-key", "submit=gpu fault=bad-key", BELL_CQE_ERROR,
                "rank 0 queue 0: CQE for the write at index 0: remote access error",
                "failed: rank 0 queue 0: CQE for the write at index 0");
    /* The side that waits for an answer leaves when the other fails, long before its bound. */
    expect_pair("submit=gpu pattern=round-trip fault=bad-key", "submit=gpu pattern=round-trip fault=bad-key",
                BELL_CQE_ERROR, "rank 0 queue 0: CQE for the write at index 0: remote access error",
                "failed: rank 0 queue 0: CQE for the write at index 0");
    expect_pair("submit=gpu pattern=probe lanes=2 queues=2", "submit=gpu pattern=probe lanes=2 queues=2",
                BELL_UNSUPPORTED, "a probe between two processes", "a probe between two processes");
    fake_reset();
    fake.corrupt_chain = 99;
    expect_pair("submit=gpu iterations=100", "submit=gpu iterations=100", BELL_CORRUPT, "rank 1, the peer on 127.0.0.1",
                "put 99 of lane 0 on rank 0 is not what arrived here");
}

/* A peer that goes away, or does not come. */
static void test_lost_peer(void **state)
{
    struct side side;
    (void)state;
    fake_reset();
    open_side(&side, "submit=gpu", 0, free_port());
    side.bound_ps = 200000000000u;
    (void)be_rank(&side);
    assert_int_equal(side.status, BELL_TIMEOUT);
    assert_int_equal(fake.live, 0);
    close_side(&side);
    open_side(&side, "submit=gpu", 0, free_port());
    struct stranger s = { atoi(strchr(side.machine.peer, ':') + 1), (const uint8_t *)"bell", 4, false };
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, be_strange, &s), 0);
    (void)be_rank(&side);
    (void)pthread_join(thread, NULL);
    assert_int_equal(side.status, BELL_IO);
    assert_int_equal(fake.live, 0);
    close_side(&side);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),      cmocka_unit_test(test_strange_hellos),
        cmocka_unit_test(test_long_terms), cmocka_unit_test(test_random_bodies),
        cmocka_unit_test(test_ends),       cmocka_unit_test(test_terms),
        cmocka_unit_test(test_strangers),  cmocka_unit_test(test_no_peer),
        cmocka_unit_test(test_both_ranks), cmocka_unit_test(test_pairs_that_fail),
        cmocka_unit_test(test_lost_peer),
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
