/* SPDX-License-Identifier: Apache-2.0
 * `bellwether help`: printed from the tables of commands and options. */
#include "tools/cli.h"

#include <string.h>

static void help_all(FILE *to)
{
    (void)fprintf(to,
                  "bellwether: predict and measure what GPU-initiated communication costs at the GPU-NIC boundary\n\n"
                  "usage: bellwether COMMAND ARGUMENTS\n\n");
    for (const struct bell_command *const *c = bell_commands; *c; c++)
        (void)fprintf(to, "  %-10s %s\n", (*c)->name, (*c)->summary);
    (void)fprintf(to, "\nbellwether help COMMAND says more; bellwether --version names the version and revision.\n\n"
                      "exit status: 0 done, 1 failed, 2 wrong usage or bad input, 77 cannot run here\n\n"
                      "  bellwether run one-op --on sim --platform P-IB --stack mini-gda -o one-op.json\n"
                      "  bellwether explain --stack mini-proxy --platform P-IB --vs mini-gda\n"
                      "  bellwether validate --platform P-IB\n");
}

void bell_help(FILE *to, const struct bell_command *command)
{
    if (!command) {
        help_all(to);
        return;
    }
    bool has_options = command->options->name != NULL;
    (void)fprintf(to, "usage: bellwether %s%s%s%s\n\n%s\n", command->name, *command->arguments ? " " : "",
                  command->arguments, has_options ? " [OPTIONS]" : "", command->summary);
    if (*command->details) (void)fprintf(to, "%s\n", command->details);
    if (has_options) (void)fprintf(to, "\n");
    for (const struct bell_option *o = command->options; o->name; o++) {
        char left[60];
        (void)snprintf(left, sizeof left, "%s %s", o->name, o->argument ? o->argument : "");
        (void)fprintf(to, "  %-22s %s\n", left, o->help);
    }
}

static const struct bell_option options[] = { BELL_OPTIONS_END };

static int run_help(int argc, char **argv)
{
    int count = bell_parse(&bell_command_help, argc, argv, NULL);
    if (count < 0) return BELL_EXIT_USAGE;
    if (count == 0) {
        bell_help(stdout, NULL);
        return BELL_EXIT_OK;
    }
    const char *names[32];
    size_t n = 0;
    for (const struct bell_command *const *c = bell_commands; *c && n < 31; c++) {
        names[n++] = (*c)->name;
        if (strcmp((*c)->name, argv[0]) == 0) {
            bell_help(stdout, *c);
            return BELL_EXIT_OK;
        }
    }
    names[n] = NULL;
    struct bell_error err;
    const char *near = bell_near(argv[0], names);
    (void)bell_fail(&err, BELL_INVALID, "help: '%.60s' is not a command%s%s; see bellwether help", argv[0],
                    near ? ", did you mean " : "", near ? near : "");
    return bell_complain(&err);
}

const struct bell_command bell_command_help = {
    "help", "[COMMAND]", "print help on a command", "", 0, 1, options, run_help,
};
