/* SPDX-License-Identifier: Apache-2.0
 * Executor `verbs` on the device that is there, many small runs in one process: a guest under emulation loads the
 * shared libraries of `bellwether` slowly.  Few iterations, and no time is asserted.  Exits 1 when a case failed. */
#include "tests/conform/exec_case.h"

#include <sys/wait.h>
#include <unistd.h>

#define PORT 7470

struct one_case {
    const char *name, *settings;
    uint64_t builds, doorbells; /* doorbells 0: fewer than builds, when how many fit a chain depends on time */
};

static const struct one_case cases[] = {
    { "proxy, a write a chain", "submit=proxy queue_memory=host protocol=tuned iterations=20 warmup=2", 22, 22 },
    { "proxy, up to 16 writes a chain",
      "submit=proxy queue_memory=host protocol=tuned batch=16 puts=32 iterations=18 warmup=2", 640, 0 },
    { "proxy, two rings a worker",
      "submit=proxy queue_memory=host protocol=tuned lanes=4 queues=4 workers=2 iterations=5", 20, 20 },
    { "proxy, ring and queue shorter than an operation",
      "submit=proxy queue_memory=host protocol=tuned ring_depth=8 depth=8 batch=4 puts=32 iterations=5", 160, 0 },
    { "proxy, baseline protocol, pointer",
      "submit=proxy queue_memory=host protocol=baseline payload=pointer bytes=64 iterations=10", 10, 10 },
    { "host-submitted puts, inline", "submit=gpu iterations=30", 30, 30 },
    { "host-submitted puts, 16 a doorbell",
      "submit=gpu payload=pointer bytes=64 puts=32 wqes_per_doorbell=16 iterations=20", 640, 40 },
    { "a queue shorter than an operation", "submit=gpu depth=8 wqes_per_doorbell=4 puts=16 iterations=20", 320, 80 },
    { "four lanes, one locked queue", "submit=gpu sharing=locked lanes=4 queues=1 iterations=20", 80, 80 },
    { "payloads of several packets", "submit=gpu payload=pointer bytes=20000 puts=3 iterations=5", 15, 15 },
    { "stream", "submit=gpu pattern=stream depth=64 wqes_per_doorbell=8 puts=16 iterations=20", 320, 40 },
    { "probe", "submit=gpu pattern=probe lanes=2 queues=2 puts=2 iterations=3", 0, 0 },
    { "round trip, host-submitted", "submit=gpu pattern=round-trip iterations=20", 40, 40 },
    { "round trip, flag apart", "submit=gpu pattern=round-trip signal=separate iterations=20", 80, 80 },
    { "round trip, proxy", "submit=proxy queue_memory=host protocol=tuned pattern=round-trip iterations=5", 10, 10 },
};

struct failure {
    const char *name, *settings, *machine;
    enum bell_status status;
    const char *words;
};

static const struct failure failures[] = {
    { "bad key, host-submitted", "submit=gpu fault=bad-key", "", BELL_CQE_ERROR,
      "rank 0 queue 0: CQE for the write at index 0: remote access error" },
    { "bad key, proxy", "submit=proxy queue_memory=host batch=16 puts=32 fault=bad-key", "", BELL_CQE_ERROR,
      "rank 0 queue 0: CQE for the write at index 0: remote access error" },
    { "bad key, round trip", "submit=gpu pattern=round-trip fault=bad-key", "", BELL_CQE_ERROR,
      "rank 0 queue 0: CQE for the write at index 0: remote access error" },
    { "fault silent", "submit=gpu fault=silent", "", BELL_UNSUPPORTED, "cannot be told to misbehave" },
    { "transport dc", "submit=gpu transport=dc", "", BELL_UNSUPPORTED, "expected rc" },
    { "sharing ordered", "submit=gpu sharing=ordered lanes=2", "", BELL_UNSUPPORTED, "expected owner or locked" },
    { "collapsed CQ", "submit=gpu cq=collapsed", "", BELL_UNSUPPORTED, "expected ring" },
    { "doorbell by the host", "submit=gpu doorbell=host", "", BELL_UNSUPPORTED, "doorbell: " },
    { "a full queue without polling", "submit=gpu depth=2 puts=4 flow=none", "", BELL_OVERFLOW, "depth 2" },
    { "more pinned threads than cores", "submit=gpu lanes=4 queues=4", "pin=true", BELL_UNSUPPORTED,
      "want a core each" },
    { "no such device", "submit=gpu", "device=mlx5_7", BELL_INVALID, "no RDMA device 'mlx5_7'; here: rxe0" },
    { "no such port", "submit=gpu", "device=rxe0 port=2", BELL_INVALID, "expected an active port" },
    { "no such GID", "submit=gpu", "gid=900", BELL_INVALID, "machine.gid" },
};

static int failed;

static void say(const char *name, bool is_good, const char *why)
{
    (void)printf("guest: %s %s%s%s\n", is_good ? "ok" : "FAILED", name, is_good ? "" : ": ", is_good ? "" : why);
    (void)fflush(stdout);
    failed += !is_good;
}

static void read_machine(const char *settings, struct bell_machine *m)
{
    char text[200];
    struct bell_error err = { BELL_OK, "" };
    memset(m, 0, sizeof *m);
    bell_field_defaults(bell_machine_fields, m);
    (void)snprintf(text, sizeof text, "%s", settings);
    for (char *rest = text, *word; (word = strtok_r(rest, " ", &rest));) {
        char *value = strchr(word, '=');
        if (value) *value++ = '\0';
        const struct bell_field *f = bell_field_find(bell_machine_fields, word);
        if (!f || !value || bell_field_set_text(f, m, value, &err) != BELL_OK) {
            (void)fprintf(stderr, "'%s': %s\n", settings, err.text);
            exit(2);
        }
    }
}

static void run_case(const struct one_case *one)
{
    static struct exec_seen seen;
    struct exec_case c;
    struct bell_error err = { BELL_OK, "" };
    struct bell_result result = { .events = 0 };
    exec_case_read(&c, one->settings);
    size_t samples = (size_t)bell_program_counted(&c.program) * c.program.iterations;
    result.issue_ps = calloc(samples, sizeof *result.issue_ps);
    result.total_ps = calloc(samples, sizeof *result.total_ps);
    if (!result.issue_ps || !result.total_ps) exit(2);
    struct bell_run timed = { .program = &c.program, .stack = &c.stack };
    enum bell_status s = bell_verbs_executor.run(&timed, &result, &err);
    bool is_good = s == BELL_OK && strstr(result.notes, "SOFTWARE") && result.total_ps[samples - 1];
    if (s == BELL_OK && !is_good) (void)bell_fail(&err, BELL_CORRUPT, "timed: notes '%.200s'", result.notes);
    if (is_good) {
        s = exec_traced(&bell_verbs_executor, &c, 0, &seen, &result, &err);
        const uint64_t *n = seen.count;
        uint64_t rung = n[BELL_EVENT_DOORBELL], builds = n[BELL_EVENT_BUILD];
        is_good = s == BELL_OK && n[BELL_EVENT_POLL] == rung && (!one->builds || builds == one->builds) &&
                  (one->doorbells ? rung == one->doorbells : !one->builds || rung < builds);
        if (s == BELL_OK && !is_good)
            (void)bell_fail(&err, BELL_CORRUPT, "%" PRIu64 " builds, %" PRIu64 " doorbells, %" PRIu64 " polls", builds,
                            rung, n[BELL_EVENT_POLL]);
    }
    say(one->name, is_good, err.text);
    free(result.issue_ps);
    free(result.total_ps);
}

static void run_failure(const struct failure *f)
{
    struct exec_case c;
    struct bell_machine machine;
    struct bell_error err = { BELL_OK, "no error" };
    struct bell_result result = { .events = 0 };
    exec_case_read(&c, f->settings);
    read_machine(f->machine, &machine);
    struct bell_run run = { .program = &c.program, .stack = &c.stack, .machine = &machine };
    enum bell_status s = bell_verbs_executor.run(&run, &result, &err);
    say(f->name, s == f->status && err.status == s && strstr(err.text, f->words), err.text);
}

/* ---- two processes ---- */

struct verdict {
    struct bell_error err;
    uint64_t total_ps; /* of the last operation */
};

static void run_rank(const char *settings, uint32_t rank, int port, struct verdict *out)
{
    struct exec_case c;
    struct bell_machine machine;
    struct bell_result result = { .events = 0 };
    memset(out, 0, sizeof *out);
    exec_case_read(&c, settings);
    read_machine("", &machine);
    (void)snprintf(machine.peer, sizeof machine.peer, "127.0.0.1:%d", port);
    machine.rank = rank;
    size_t samples = (size_t)bell_program_counted(&c.program) * c.program.iterations;
    result.issue_ps = calloc(samples, sizeof *result.issue_ps);
    result.total_ps = calloc(samples, sizeof *result.total_ps);
    struct bell_run run = { .program = &c.program, .stack = &c.stack, .machine = &machine };
    out->err.status = bell_verbs_executor.run(&run, &result, &out->err);
    out->total_ps = samples && result.total_ps ? result.total_ps[samples - 1] : 0;
    free(result.issue_ps);
    free(result.total_ps);
}

static void run_pair(const char *name, int port, const char *const settings[2], const enum bell_status status[2],
                     const char *const words[2])
{
    struct verdict v[2];
    int end[2], code = 0;
    memset(v, 0, sizeof v);
    if (pipe(end) != 0) exit(2);
    pid_t child = fork();
    if (child < 0) exit(2);
    if (child == 0) {
        run_rank(settings[1], 1, port, &v[1]);
        exit(write(end[1], &v[1], sizeof v[1]) == (ssize_t)sizeof v[1] ? 0 : 2);
    }
    run_rank(settings[0], 0, port, &v[0]);
    bool is_good = read(end[0], &v[1], sizeof v[1]) == (ssize_t)sizeof v[1];
    is_good = waitpid(child, &code, 0) == child && code == 0 && is_good;
    (void)close(end[0]);
    (void)close(end[1]);
    for (int i = 0; i < 2; i++)
        is_good = is_good && v[i].err.status == status[i] && strstr(v[i].err.text, words[i]);
    if (status[0] == BELL_OK) is_good = is_good && v[0].total_ps && v[0].total_ps == v[1].total_ps;
    char why[1100];
    (void)snprintf(why, sizeof why, "rank 0: %s; rank 1: %s", v[0].err.text, v[1].err.text);
    say(name, is_good, why);
}

static void run_pairs(void)
{
    static const enum bell_status good[2] = { BELL_OK, BELL_OK }, bad[2] = { BELL_CQE_ERROR, BELL_CQE_ERROR },
                                  invalid[2] = { BELL_INVALID, BELL_INVALID };
    static const char *const none[2] = { "", "" };
    static const char *const round[2] = { "submit=gpu pattern=round-trip iterations=10",
                                          "submit=gpu pattern=round-trip iterations=10" };
    static const char *const one[2] = {
        "submit=proxy queue_memory=host protocol=tuned batch=16 puts=32 lanes=2 queues=2 iterations=10",
        "submit=proxy queue_memory=host protocol=tuned batch=16 puts=32 lanes=2 queues=2 iterations=10"
    };
    static const char *const other[2] = { "submit=gpu iterations=10", "submit=gpu bytes=64 iterations=10" };
    static const char *const differ[2] = { "here experiment.bytes=8, there experiment.bytes=64",
                                           "here experiment.bytes=64, there experiment.bytes=8" };
    static const char *const fault[2] = { "submit=gpu fault=bad-key", "submit=gpu fault=bad-key" };
    static const char *const error[2] = { "rank 0 queue 0: CQE for the write at index 0: remote access error",
                                          "failed: rank 0 queue 0: CQE for the write at index 0: remote access" };
    run_pair("two processes, round trip", PORT, round, good, none);
    run_pair("two processes, one-op by proxy", PORT + 1, one, good, none);
    run_pair("two processes that differ", PORT + 2, other, invalid, differ);
    run_pair("two processes, bad key", PORT + 3, fault, bad, error);
}

int main(void)
{
    run_pairs(); /* first, because they fork, and libibverbs has not been used yet */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        run_case(&cases[i]);
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++)
        run_failure(&failures[i]);
    return failed ? 1 : 0;
}
