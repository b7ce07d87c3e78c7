/* SPDX-License-Identifier: Apache-2.0
 * Traces: what is written is read back, what is broken is named by line or by rule, what differs is found. */
#include "traces/check.h"
#include "traces/diff.h"
#include "traces/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#ifndef BELL_TEST_SOURCE_DIR
#define BELL_TEST_SOURCE_DIR "."
#endif
#define BROKEN BELL_TEST_SOURCE_DIR "/tests/data/broken/"

static char folder[] = "/tmp/bell_traces_XXXXXX";
static char path_a[80], path_b[80];

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) return 1;
    (void)snprintf(path_a, sizeof path_a, "%s/a.json", folder);
    (void)snprintf(path_b, sizeof path_b, "%s/b.json", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    (void)unlink(path_a);
    (void)unlink(path_b);
    return rmdir(folder); /* fails when a temporary file was left behind */
}

static struct bell_trace_header header_of_test(void)
{
    struct bell_trace_header h;
    memset(&h, 0, sizeof h);
    (void)snprintf(h.executor, sizeof h.executor, "soft");
    (void)snprintf(h.platform, sizeof h.platform, "P-IB");
    (void)snprintf(h.ordering, sizeof h.ordering, "gpu-fence");
    (void)snprintf(h.processor, sizeof h.processor, "a \"quoted\" \\ word,\ttab, \xc3\xa9");
    (void)snprintf(h.machine, sizeof h.machine, "kernel 6.1; RDMA mlx5_0");
    h.seed = UINT64_MAX - 1;
    h.depth = 64;
    h.first_index = UINT64_MAX - 2;
    return h;
}

/* Every kind, with the largest and smallest values that a record can hold. */
static struct bell_event event_of_test(uint64_t i)
{
    struct bell_event e;
    memset(&e, 0, sizeof e);
    e.seq = i + 1;
    e.cause = i / 2;
    e.start_ps = i % 7 == 0 ? UINT64_MAX - i : i * UINT64_C(1234567);
    e.duration_ps = i % 5 == 0 ? 0 : i * 999;
    e.index = i % 3 == 0 ? UINT64_MAX : i;
    e.count = i % 2 ? UINT32_MAX : (uint32_t)i;
    e.bytes = (uint32_t)i;
    e.rank = (uint16_t)(i % 4);
    e.lane = i % 11 ? (uint16_t)i : UINT16_MAX;
    e.queue = (uint16_t)(i % 13);
    e.kind = (uint8_t)(i % BELL_EVENT_KINDS);
    e.scope = (uint8_t)(i % BELL_SCOPES);
    e.actor = (uint8_t)(i % BELL_ACTORS);
    return e;
}

static void write_trace(const char *path, uint64_t count, uint64_t limit)
{
    struct bell_error err = { BELL_OK, "" };
    struct bell_trace_header h = header_of_test();
    struct bell_trace_writer *w = NULL;
    assert_int_equal(bell_trace_create(path, &h, &w, &err), BELL_OK);
    bell_trace_limit(w, limit);
    struct bell_sink sink = bell_trace_sink(w);
    assert_int_equal(bell_trace_name_rank(w, 0, "rank 0", &err), BELL_OK);
    assert_int_equal(bell_trace_name_lane(w, 0, 1, "lane \"1\"", &err), BELL_OK);
    for (uint64_t i = 0; i < count; i++) {
        struct bell_event e = event_of_test(i);
        assert_int_equal(sink.write(sink.context, &e, &err), BELL_OK);
    }
    assert_int_equal(bell_trace_close(w, &err), BELL_OK);
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    struct bell_error err = { BELL_OK, "" };
    struct bell_trace_header h = header_of_test(), back;
    struct bell_trace_reader *r = NULL;
    struct bell_event e;
    write_trace(path_a, COUNT, 0);
    assert_int_equal(bell_trace_open(path_a, &r, &back, &err), BELL_OK);
    assert_string_equal(back.schema, BELL_TRACE_SCHEMA);
    assert_string_equal(back.executor, h.executor);
    assert_string_equal(back.processor, h.processor);
    assert_string_equal(back.machine, h.machine);
    assert_true(back.seed == h.seed);
    assert_int_equal(back.depth, h.depth);
    assert_true(back.first_index == h.first_index);
    for (uint64_t i = 0; i < COUNT; i++) {
        struct bell_event want = event_of_test(i);
        if (bell_trace_next(r, &e, &err) != BELL_OK) fail_msg("%s", err.text);
        assert_memory_equal(&e, &want, sizeof e);
    }
    assert_int_equal(bell_trace_next(r, &e, &err), BELL_EMPTY);
    assert_int_equal(bell_trace_next(r, &e, &err), BELL_EMPTY);
    assert_true(bell_trace_is_whole(r));
    bell_trace_free(r);
}

static void a_limit_is_stated(void **state)
{
    (void)state;
    struct bell_error err = { BELL_OK, "" };
    struct bell_trace_header h;
    struct bell_trace_reader *r = NULL;
    struct bell_event e;
    uint64_t count = 0;
    write_trace(path_a, 100, 30);
    assert_int_equal(bell_trace_open(path_a, &r, &h, &err), BELL_OK);
    while (bell_trace_next(r, &e, &err) == BELL_OK)
        count++;
    assert_int_equal(count, 30);
    assert_int_equal(bell_trace_dropped(r), 70);
    assert_false(bell_trace_is_whole(r));
    bell_trace_free(r);
}

static void an_abort_leaves_nothing(void **state)
{
    (void)state;
    struct bell_error err = { BELL_OK, "" };
    struct bell_trace_header h = header_of_test();
    struct bell_trace_writer *w = NULL;
    (void)unlink(path_b);
    assert_int_equal(bell_trace_create(path_b, &h, &w, &err), BELL_OK);
    bell_trace_abort(w);
    assert_int_not_equal(access(path_b, F_OK), 0);
    bell_trace_abort(NULL);
}

static void a_full_disk_is_an_error(void **state)
{
    (void)state;
    struct bell_error err = { BELL_OK, "" };
    struct bell_trace_header h = header_of_test();
    struct bell_trace_writer *w = NULL;
    if (access("/dev/full", W_OK) != 0) skip();
    assert_int_equal(bell_trace_create("/dev/full", &h, &w, &err), BELL_OK);
    assert_int_equal(bell_trace_close(w, &err), BELL_IO);
    assert_non_null(strstr(err.text, "/dev/full: cannot write"));
    assert_int_equal(bell_trace_create("/nowhere/at/all.json", &h, &w, &err), BELL_IO);
}

#define HEADER_WITH(more)                                                                                              \
    "[\n{\"name\":\"bellwether\",\"ph\":\"M\",\"pid\":0,\"tid\":0,\"args\":{\"schema\":\"bell.trace/1\","              \
    "\"executor\":\"\",\"platform\":\"\",\"stack\":\"\",\"experiment\":\"\",\"ordering\":\"\",\"clock_domain\":\"\","  \
    "\"path\":\"\",\"processor\":\"\",\"digest\":\"\",\"revision\":\"\",\"seed\":\"0000000000000000\",\"depth\":"      \
    "0" more "}},\n"
#define HEADER HEADER_WITH("")
#define FRONT "{\"name\":\"build\",\"cat\":\"gpu\",\"ph\":\"X\",\"ts\":1.5,\"dur\":0,\"pid\":0,\"tid\":0,\"args\":"
#define ARGS                                                                                                           \
    "{\"seq\":1,\"ps\":1500000,\"dur_ps\":0,\"queue\":0,\"index\":0,\"count\":1,\"bytes\":8,\"scope\":\"none\","       \
    "\"cause\":0}"

struct broken_text {
    const char *text, *message; /* NULL: no error */
};

static void read_all(const char *text, size_t length, struct bell_error *err)
{
    struct bell_trace_header h;
    struct bell_trace_reader *r = NULL;
    struct bell_event e;
    err->text[0] = '\0';
    enum bell_status s = bell_trace_open_memory("t", text, length, &r, &h, err);
    while (s == BELL_OK)
        s = bell_trace_next(r, &e, err);
    assert_true(s == BELL_EMPTY || s == BELL_INVALID);
    assert_int_equal(s == BELL_EMPTY, err->text[0] == '\0');
    bell_trace_free(r);
}

static void broken_lines_are_named(void **state)
{
    (void)state;
    static const struct broken_text cases[] = {
        { HEADER FRONT ARGS "},\n", NULL },
        { HEADER FRONT ARGS "}\n]\n", NULL },
        { HEADER FRONT ARGS "}\n]", NULL },
        { HEADER FRONT ARGS "},\n{\"name\":\"bui", NULL },
        { "", "t:1: expected a trace" },
        { "{}\n", "t:1: expected a trace" },
        { "[\n", "expected the header on the second line" },
        { "[\n" FRONT ARGS "},\n", "t:2: expected the header" },
        { HEADER FRONT ARGS "}\n" FRONT ARGS "},\n", "t:4: expected ']' after a record without ','" },
        { HEADER FRONT ARGS "},\n]\n", "t:4: expected no ',' before ']'" },
        { HEADER FRONT ARGS "}\n]\n]\n", "t:5: expected nothing after ']'" },
        { HEADER FRONT ARGS "} x\n", "t:3: expected the end of the line" },
        { HEADER FRONT "{\"seq\":1}},\n", "t:3: expected the key 'ps'" },
        { HEADER FRONT "{\"seq\":1,\"seq\":1}},\n", "t:3: expected the key 'seq' once" },
        { HEADER FRONT "{\"seq\":\"1\"}},\n", "t:3: expected a whole number" },
        { HEADER FRONT "{\"seq\":1.0}},\n", "t:3: expected a whole number" },
        { HEADER FRONT "{\"seq\":01}},\n", "t:3: expected a whole number" },
        { HEADER FRONT "{\"seq\":-1}},\n", "t:3: expected a whole number" },
        { HEADER FRONT "{\"seq\":18446744073709551616}},\n", "t:3: expected a number below 2^64" },
        { HEADER FRONT "{\"queue\":65536}},\n", "t:3: expected a smaller number" },
        { HEADER FRONT "{\"Seq\":1}},\n", "t:3: expected no key 'Seq' here" },
        { HEADER FRONT "{\"scope\":\"cta\"}},\n", "t:3: expected a scope" },
        { HEADER FRONT "{\"seq\":1,}},\n", "t:3: expected a text in quotes" },
        { HEADER "{\"name\":\"build\",\"cat\":\"gpu\",\"ph\":\"X\",\"ts\":1,\"dur\":0,\"pid\":0,\"tid\":0},\n",
          "t:3: expected the key 'args'" },
        { HEADER
          "{\"name\":\"built\",\"cat\":\"gpu\",\"ph\":\"X\",\"ts\":1.5,\"dur\":0,\"pid\":0,\"tid\":0,\"args\":" ARGS
          "},\n",
          "t:3: expected the name of an event" },
        { HEADER
          "{\"name\":\"build\",\"cat\":\"gpu\",\"ph\":\"X\",\"ts\":1.6,\"dur\":0,\"pid\":0,\"tid\":0,\"args\":" ARGS
          "},\n",
          "t:3: expected ts to say the same as ps" },
        { HEADER
          "{\"name\":\"build\",\"cat\":\"gpu\",\"ph\":\"X\",\"ts\":1.5,\"dur\":0.1,\"pid\":0,\"tid\":0,\"args\":" ARGS
          "},\n",
          "t:3: expected dur to say the same as dur_ps" },
        { HEADER "{\"name\":\"build\",\"cat\":\"gpu\",\"ph\":\"B\"},\n", "t:3: expected ph X or M" },
        { HEADER "{\"name\":\"build\",\"ph\":\"M\",\"pid\":0,\"tid\":0,\"args\":{}},\n", "t:3: expected metadata" },
        { HEADER "{\"name\":\"build\",\"ph\":\"X\",\"ts\":1.1234567},\n", "t:3: expected microseconds" },
        { HEADER "{\"name\":\"build\",\"ph\":\"X\",\"ts\":18446744073709551615},\n", "t:3: expected microseconds" },
        { HEADER
          "{\"name\":\"bellwether_end\",\"ph\":\"M\",\"pid\":0,\"tid\":0,\"args\":{\"events\":3,\"dropped\":0}}\n]\n",
          "t:3: expected the end record to count the events" },
        { HEADER "\n", "t:3: expected an event" },
        { HEADER_WITH(",\"first_index\":7") FRONT ARGS "},\n", NULL },
        { HEADER_WITH(",\"first_index\":-7"), "t:2: expected a whole number" },
        { HEADER_WITH(",\"first_index\":7,\"first_index\":7"), "t:2: expected the key 'first_index' once" },
        { HEADER_WITH(","), "t:2: expected a text in quotes" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bell_error err = { BELL_OK, "" };
        read_all(cases[i].text, strlen(cases[i].text), &err);
        if (cases[i].message ? !strstr(err.text, cases[i].message) : err.text[0] != '\0')
            fail_msg("case %zu: '%s', expected '%s'", i, err.text, cases[i].message ? cases[i].message : "");
    }
}

static void long_lines_and_nul_are_errors(void **state)
{
    (void)state;
    struct bell_error err = { BELL_OK, "" };
    size_t front = strlen(HEADER), size = front + BELL_TRACE_LINE_MAX + 100;
    char *text = malloc(size);
    assert_non_null(text);
    memset(text, ' ', size);
    memcpy(text, HEADER, front);
    text[size - 1] = '\n';
    read_all(text, size, &err);
    assert_non_null(strstr(err.text, "t:3: expected a line of at most 65536 bytes"));
    text[front] = '\0';
    text[front + 5] = '\n';
    read_all(text, front + 6 + 10, &err);
    assert_non_null(strstr(err.text, "without NUL"));
    free(text);
}

static void keys_come_in_any_order(void **state)
{
    (void)state;
    static const char text[] = HEADER "{\"args\":{\"cause\":0,\"scope\":\"sys\",\"bytes\":8,\"count\":1,\"index\":5,"
                                      "\"queue\":2,\"dur_ps\":1,\"ps\":1000000,"
                                      "\"seq\":1}, \"tid\":3, \"pid\":4, \"dur\":0.000001, \"ts\":1, \"ph\":\"X\", "
                                      "\"cat\":\"nic\", \"name\":\"wire\"},\n";
    struct bell_error err = { BELL_OK, "" };
    struct bell_trace_header h;
    struct bell_trace_reader *r = NULL;
    struct bell_event e;
    assert_int_equal(bell_trace_open_memory("t", text, sizeof text - 1, &r, &h, &err), BELL_OK);
    if (bell_trace_next(r, &e, &err) != BELL_OK) fail_msg("%s", err.text);
    assert_int_equal(e.kind, BELL_EVENT_WIRE);
    assert_int_equal(e.scope, BELL_SCOPE_SYS);
    assert_int_equal(e.actor, BELL_ACTOR_NIC);
    assert_int_equal(e.lane, 3);
    assert_int_equal(e.rank, 4);
    assert_int_equal(e.queue, 2);
    assert_int_equal(e.index, 5);
    assert_true(h.first_index == 0);
    bell_trace_free(r);
}

struct broken_trace {
    const char *name, *rule;
    uint64_t seq;
};

/* Checks a file; rule and seq as bell_check gives them. */
static enum bell_status check(const char *name, char rule[32], uint64_t *seq)
{
    char path[300];
    struct bell_error err = { BELL_OK, "" };
    struct bell_trace_header h;
    struct bell_trace_reader *r = NULL;
    struct bell_check *c = NULL;
    struct bell_event e;
    (void)snprintf(path, sizeof path, BROKEN "%s.json", name);
    if (bell_trace_open(path, &r, &h, &err) != BELL_OK || bell_check_begin(&h, &c, &err) != BELL_OK)
        fail_msg("%s", err.text);
    enum bell_status s;
    while ((s = bell_trace_next(r, &e, &err)) == BELL_OK)
        if ((s = bell_check_event(c, &e, &err)) != BELL_OK) break;
    if (s == BELL_INVALID) fail_msg("%s", err.text);
    if (s == BELL_EMPTY) s = bell_check_end(c, bell_trace_is_whole(r), &err);
    (void)snprintf(rule, 32, "%s", bell_check_rule(c));
    *seq = bell_check_seq(c);
    bell_check_free(c);
    bell_trace_free(r);
    return s;
}

static void broken_traces_name_their_rule(void **state)
{
    (void)state;
    static const struct broken_trace cases[] = {
        { "seq_gap", "seq-order", 6 },
        { "time_past_64_bits", "time-range", 4 },
        { "cause_later", "cause-earlier", 7 },
        { "reserve_gap", "reserve-contiguous", 11 },
        { "build_before_reserve", "build-reserved", 11 },
        { "build_twice", "build-once", 13 },
        { "slot_reused", "slot-reuse", 13 },
        { "no_fence", "fence-before-dbrec", 15 },
        { "fence_too_early", "fence-before-dbrec", 16 },
        { "fence_after_dbrec", "fence-before-dbrec", 15 },
        { "fence_without_scope", "fence-before-dbrec", 5 },
        { "release_on_record_only", "fence-before-doorbell", 16 },
        { "build_missing", "dbrec-covers-built", 15 },
        { "dbrec_ahead", "dbrec-covers-built", 5 },
        { "doorbell_back", "doorbell-monotonic", 17 },
        { "dbrec_back", "doorbell-monotonic", 16 },
        { "dbrec_late", "dbrec-before-doorbell", 5 },
        { "delivered_early", "deliver-after-doorbell", 17 },
        { "delivered_twice", "deliver-once", 8 },
        { "bytes_lost", "bytes-conserved", 19 },
        { "cqe_back", "cqe-order", 21 },
        { "cqe_without_delivery", "cqe-after-deliver", 8 },
        { "cqe_syndrome", "cqe-error", 21 },
        { "poll_without_cqe", "poll-after-cqe", 9 },
        { "poll_back", "poll-monotonic", 22 },
        { "enqueue_gap", "enqueue-contiguous", 24 },
        { "dequeue_early", "dequeue-after-enqueue", 25 },
        { "dequeue_skips", "dequeue-order", 25 },
        { "progress_early", "progress-after-dequeue", 26 },
        { "progress_back", "progress-monotonic", 28 },
        { "never_rung", "unrung", 29 },
        { "never_delivered", "incomplete", 29 },
        { "never_built", "incomplete", 28 },
        { "never_done", "incomplete", 28 },
    };
    char rule[32];
    uint64_t seq;
    assert_int_equal(check("good", rule, &seq), BELL_OK);
    assert_string_equal(rule, "");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum bell_status s = check(cases[i].name, rule, &seq);
        if (!bell_is_failure(s) || strcmp(rule, cases[i].rule) != 0 || seq != cases[i].seq)
            fail_msg("%s: %s at %llu, expected %s at %llu", cases[i].name, rule, (unsigned long long)seq, cases[i].rule,
                     (unsigned long long)cases[i].seq);
    }
}

static void check_file_names_file_and_line(void **state)
{
    (void)state;
    struct bell_error err = { BELL_OK, "" };
    assert_int_equal(bell_check_file(BROKEN "good.json", &err), BELL_OK);
    assert_int_equal(bell_check_file(BROKEN "cqe_syndrome.json", &err), BELL_CQE_ERROR);
    assert_non_null(strstr(err.text, "cqe_syndrome.json:23: event 21: cqe-error:"));
    assert_int_equal(bell_check_file(BROKEN "absent.json", &err), BELL_IO);
}

struct reported {
    int lines;
    char last[600];
};

static void report(void *context, const char *text)
{
    struct reported *r = context;
    r->lines++;
    (void)snprintf(r->last, sizeof r->last, "%s", text);
}

static uint64_t diff(const char *a, const char *b, bool is_normalised, uint64_t most, struct reported *r)
{
    struct bell_error err = { BELL_OK, "" };
    struct bell_diff d = { is_normalised, most, r, report };
    uint64_t count = 0;
    memset(r, 0, sizeof *r);
    if (bell_diff_files(a, b, &d, &count, &err) != BELL_OK) fail_msg("%s", err.text);
    return count;
}

static void differences_are_counted(void **state)
{
    (void)state;
    struct reported r;
    assert_int_equal(diff(BROKEN "good.json", BROKEN "good.json", false, 10, &r), 0);
    assert_int_equal(diff(BROKEN "good.json", BROKEN "good.json", true, 10, &r), 0);
    assert_int_equal(diff(BROKEN "good.json", BROKEN "bytes_lost.json", false, 10, &r), 1);
    assert_non_null(strstr(r.last, "deliver rank 0 lane 9 queue 0 index 3: bytes 8|4"));
    assert_int_equal(diff(BROKEN "good.json", BROKEN "time_past_64_bits.json", true, 10, &r), 0);
    assert_int_equal(diff(BROKEN "good.json", BROKEN "time_past_64_bits.json", false, 10, &r), 1);
    assert_int_equal(diff(BROKEN "good.json", BROKEN "cause_later.json", true, 10, &r), 0);
    /* The NIC's events move freely between a lane's, the order within a lane counts. */
    assert_int_equal(diff(BROKEN "good.json", BROKEN "delivered_early.json", true, 10, &r), 0);
    assert_int_equal(diff(BROKEN "good.json", BROKEN "dbrec_late.json", true, 10, &r), 2);
    assert_int_equal(diff(BROKEN "good.json", BROKEN "no_fence.json", true, 10, &r), 3);
    assert_int_equal(diff(BROKEN "good.json", BROKEN "never_built.json", true, 10, &r), 1);
    assert_non_null(strstr(r.last, "reserve rank 0 lane 0 queue 0 index 5: only in the second trace"));
    write_trace(path_a, 50, 0);
    assert_true(diff(BROKEN "good.json", path_a, false, 3, &r) > 50);
    assert_int_equal(r.lines, 3);
}

/* One lane's events across 2^16, in a queue of four slots that starts at 65534.  The lane sees two completions. */
struct brief {
    uint8_t kind;
    uint64_t index;
};
enum { FIRST = 65534, FIRST_CQE = 10, FIRST_POLL = 11, LAST_POLL = 15 };
static const struct brief wrap[] = {
    { BELL_EVENT_RESERVE, FIRST },     { BELL_EVENT_BUILD, FIRST },        { BELL_EVENT_BUILD, FIRST + 1 },
    { BELL_EVENT_BUILD, FIRST + 2 },   { BELL_EVENT_BUILD, FIRST + 3 },    { BELL_EVENT_FENCE, FIRST + 4 },
    { BELL_EVENT_DBREC, FIRST + 4 },   { BELL_EVENT_DOORBELL, FIRST + 4 }, { BELL_EVENT_DELIVER, FIRST },
    { BELL_EVENT_DELIVER, FIRST + 1 }, { BELL_EVENT_CQE, FIRST + 1 },      { BELL_EVENT_POLL, FIRST + 2 },
    { BELL_EVENT_DELIVER, FIRST + 2 }, { BELL_EVENT_DELIVER, FIRST + 3 },  { BELL_EVENT_CQE, FIRST + 3 },
    { BELL_EVENT_POLL, FIRST + 4 },
};
#define WRAP_COUNT (sizeof wrap / sizeof *wrap)

static struct bell_event event_of_brief(const struct brief *b, uint64_t seq, uint64_t shift)
{
    struct bell_event e;
    memset(&e, 0, sizeof e);
    e.seq = seq;
    e.kind = b->kind;
    e.index = b->index - FIRST + shift;
    e.count = b->kind == BELL_EVENT_RESERVE ? 4 : b->kind == BELL_EVENT_BUILD;
    e.bytes = b->kind == BELL_EVENT_BUILD || b->kind == BELL_EVENT_DELIVER ? 8 : 0;
    e.scope = b->kind == BELL_EVENT_FENCE ? BELL_SCOPE_GPU : BELL_SCOPE_NONE;
    return e;
}

/* The rule that breaks when the queue starts at first_index and the events at `shift`; poll_at replaces a POLL. */
static enum bell_status check_wrap(uint64_t first_index, uint64_t shift, const uint64_t *poll_at, char rule[32])
{
    struct bell_error err = { BELL_OK, "" };
    struct bell_trace_header h = header_of_test();
    struct bell_check *c = NULL;
    h.depth = 4;
    h.first_index = first_index;
    assert_int_equal(bell_check_begin(&h, &c, &err), BELL_OK);
    enum bell_status s = BELL_OK;
    for (size_t i = 0; i < WRAP_COUNT && s == BELL_OK; i++) {
        struct bell_event e = event_of_brief(&wrap[i], i + 1, shift);
        if (poll_at && i == FIRST_POLL) e.index = *poll_at;
        s = bell_check_event(c, &e, &err);
    }
    if (s == BELL_OK) s = bell_check_end(c, true, &err);
    (void)snprintf(rule, 32, "%s", bell_check_rule(c));
    bell_check_free(c);
    return s;
}

static void a_queue_starts_where_the_header_says(void **state)
{
    (void)state;
    static const uint64_t starts[] = { 0, 1, FIRST, UINT64_C(4294967294), UINT64_MAX - 4 };
    char rule[32];
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (check_wrap(starts[i], starts[i], NULL, rule) != BELL_OK)
            fail_msg("first_index %llu: %s", (unsigned long long)starts[i], rule);
    assert_int_equal(check_wrap(0, FIRST, NULL, rule), BELL_CORRUPT);
    assert_string_equal(rule, "reserve-contiguous");
    assert_int_equal(check_wrap(FIRST, 0, NULL, rule), BELL_CORRUPT);
    assert_string_equal(rule, "reserve-contiguous");
    uint64_t low = 2; /* only the low 16 bits of FIRST + 4 */
    assert_int_equal(check_wrap(FIRST, FIRST, &low, rule), BELL_CORRUPT);
    assert_string_equal(rule, "poll-monotonic");
}

/* Write `wrap` without one event (WRAP_COUNT: with all), then POLL events at `more`, which ends in a 0. */
static void write_wrap(const char *path, size_t without, const uint64_t *more)
{
    struct bell_error err = { BELL_OK, "" };
    struct bell_trace_header h = header_of_test();
    struct bell_trace_writer *w = NULL;
    uint64_t seq = 0;
    assert_int_equal(bell_trace_create(path, &h, &w, &err), BELL_OK);
    for (size_t i = 0; i < WRAP_COUNT; i++) {
        if (i == without) continue;
        struct bell_event e = event_of_brief(&wrap[i], ++seq, FIRST);
        assert_int_equal(bell_trace_write(w, &e, &err), BELL_OK);
    }
    for (; *more; more++) {
        struct brief b = { BELL_EVENT_POLL, *more };
        struct bell_event e = event_of_brief(&b, ++seq, FIRST);
        assert_int_equal(bell_trace_write(w, &e, &err), BELL_OK);
    }
    assert_int_equal(bell_trace_close(w, &err), BELL_OK);
}

static void polls_on_the_way_are_free(void **state)
{
    (void)state;
    static const uint64_t none[] = { 0 }, same[] = { FIRST + 4, 0 }, back[] = { FIRST + 3, FIRST + 4, 0 };
    struct reported r;
    write_wrap(path_a, WRAP_COUNT, none);
    write_wrap(path_b, FIRST_POLL, none);
    assert_int_equal(diff(path_a, path_b, true, 10, &r), 0);
    assert_true(diff(path_a, path_b, false, 10, &r) > 0);
    write_wrap(path_b, WRAP_COUNT, same);
    assert_int_equal(diff(path_a, path_b, true, 10, &r), 0);
    write_wrap(path_b, WRAP_COUNT, back);
    assert_int_equal(diff(path_a, path_b, true, 10, &r), 1);
    assert_non_null(strstr(r.last, "index 65537: goes back from 65538 in the second trace"));
    write_wrap(path_b, LAST_POLL, none); /* a completion that its lane never saw */
    assert_int_equal(diff(path_a, path_b, true, 10, &r), 2);
    assert_non_null(strstr(r.last, "poll rank 0 lane 0 queue 0 index 65538: only in the first trace"));
    write_wrap(path_b, FIRST_CQE, none); /* one that the NIC never wrote */
    assert_int_equal(diff(path_a, path_b, true, 10, &r), 1);
    assert_non_null(strstr(r.last, "cqe rank 0 lane 0 queue 0 index 65535: only in the first trace"));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(a_limit_is_stated),
        cmocka_unit_test(an_abort_leaves_nothing),
        cmocka_unit_test(a_full_disk_is_an_error),
        cmocka_unit_test(broken_lines_are_named),
        cmocka_unit_test(long_lines_and_nul_are_errors),
        cmocka_unit_test(keys_come_in_any_order),
        cmocka_unit_test(broken_traces_name_their_rule),
        cmocka_unit_test(check_file_names_file_and_line),
        cmocka_unit_test(differences_are_counted),
        cmocka_unit_test(a_queue_starts_where_the_header_says),
        cmocka_unit_test(polls_on_the_way_are_free),
    };
    return cmocka_run_group_tests_name("traces", tests, set_up, tear_down);
}
