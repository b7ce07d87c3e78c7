/* SPDX-License-Identifier: Apache-2.0
 * `bellwether check`: do traces keep the queue protocol? */
#include "traces/check.h"

#include "tools/cli.h"

#include <inttypes.h>

static const struct bell_option options[] = { BELL_OPTIONS_END };

static enum bell_status check_events(struct bell_trace_reader *reader, struct bell_check *c, const char *path,
                                     uint64_t *events, struct bell_error *err)
{
    struct bell_event e;
    struct bell_error inner;
    enum bell_status s;
    while ((s = bell_trace_next(reader, &e, err)) == BELL_OK) {
        s = bell_check_event(c, &e, &inner);
        if (s != BELL_OK) return bell_fail(err, s, "%s:%" PRIu64 ": %s", path, bell_trace_line(reader), inner.text);
        ++*events;
    }
    if (s != BELL_EMPTY) return s;
    s = bell_check_end(c, bell_trace_is_whole(reader), &inner);
    return s == BELL_OK ? s : bell_fail(err, s, "%s: %s", path, inner.text);
}

static enum bell_status check_file(const char *path, struct bell_error *err)
{
    struct bell_trace_reader *reader = NULL;
    struct bell_trace_header header;
    struct bell_check *c = NULL;
    uint64_t events = 0;
    enum bell_status s = bell_trace_open(path, &reader, &header, err);
    if (s == BELL_OK) s = bell_check_begin(&header, &c, err);
    if (s == BELL_OK) s = check_events(reader, c, path, &events, err);
    if (s == BELL_OK)
        (void)printf("%s: OK, %" PRIu64 " events%s\n", path, events,
                     bell_trace_is_whole(reader) ? "" : "; it was cut off, so the rules of the end were left out");
    bell_check_free(c);
    bell_trace_free(reader);
    if (s == BELL_IO) /* a file that cannot be read is bad input */
        s = err->status = BELL_INVALID;
    return s;
}

static int run_check(int argc, char **argv)
{
    int count = bell_parse(&bell_command_check, argc, argv, NULL);
    int status = count < 0 ? BELL_EXIT_USAGE : BELL_EXIT_OK;
    for (int i = 0; i < count; i++) {
        struct bell_error err;
        if (check_file(argv[i], &err) == BELL_OK) continue;
        int failure = bell_complain(&err);
        status = failure > status ? failure : status;
    }
    return status;
}

const struct bell_command bell_command_check = {
    "check",
    "TRACE...",
    "check that traces keep the queue protocol",
    "A broken rule is named with its event: FILE:LINE: event SEQ: RULE: what is wrong.  Exit 1 then.\n"
    "A trace that cannot be read is exit 2.  docs/trace.md lists the rules.",
    1,
    -1,
    options,
    run_check,
};
