/* SPDX-License-Identifier: Apache-2.0
 * `bellwether diff`: how do two traces differ? */
#include "traces/diff.h"

#include "tools/cli.h"

#include <inttypes.h>

struct diff_options {
    struct bell_options common;
    bool normalize;
    uint64_t max;
};

static const struct bell_option options[] = {
    { "--normalize", NULL, "compare what was done in each queue, not when, nor what only a simulator sees",
      BELL_OPTION_FLAG, offsetof(struct diff_options, normalize) },
    { "--max", "N", "differences to print; the rest is counted (default 20)", BELL_OPTION_WHOLE,
      offsetof(struct diff_options, max) },
    BELL_OPTIONS_END,
};

static void report(void *context, const char *text)
{
    (void)context;
    (void)printf("%s\n", text);
}

static int run_diff(int argc, char **argv)
{
    struct diff_options o = { .max = 20 };
    struct bell_error err;
    uint64_t count = 0;
    if (bell_parse(&bell_command_diff, argc, argv, &o) < 0) return BELL_EXIT_USAGE;
    const struct bell_diff diff = { o.normalize, o.max, NULL, report };
    if (bell_diff_files(argv[0], argv[1], &diff, &count, &err) != BELL_OK) {
        (void)bell_complain(&err);
        return BELL_EXIT_USAGE;
    }
    (void)printf("%" PRIu64 " difference%s\n", count, count == 1 ? "" : "s");
    return count ? BELL_EXIT_FAILED : BELL_EXIT_OK;
}

const struct bell_command bell_command_diff = {
    "diff",  "A B",    "compare two traces", "Exit 0: the same; 1: different; 2: one of them cannot be read.", 2, 2,
    options, run_diff,
};
