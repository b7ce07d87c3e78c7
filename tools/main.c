/* SPDX-License-Identifier: Apache-2.0
 * The command `bellwether`: finds the subcommand, and makes sure that what it printed arrived. */
#include "tools/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct bell_command *const bell_commands[] = {
    &bell_command_run,  &bell_command_validate, &bell_command_explain, &bell_command_check, &bell_command_diff,
    &bell_command_list, &bell_command_doctor,   &bell_command_help,    NULL,
};

int bell_exit_of(enum bell_status status)
{
    switch (status) {
    case BELL_OK:
        return BELL_EXIT_OK;
    case BELL_INVALID:
        return BELL_EXIT_USAGE;
    case BELL_UNSUPPORTED:
        return BELL_EXIT_CANNOT;
    default:
        return BELL_EXIT_FAILED;
    }
}

int bell_complain(const struct bell_error *err)
{
    char line[sizeof err->text];
    (void)snprintf(line, sizeof line, "%s", err->text[0] ? err->text : bell_status_text(err->status));
    for (char *c = line; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127) *c = '?';
    (void)fprintf(stderr, "bellwether: %s\n", line);
    return bell_exit_of(err->status);
}

/* A file opened later must not get the number of a closed standard stream: what is printed would go into it. */
static bool has_streams(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) >= 0) continue;
        if (open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY) != fd || fd == 1) return false;
    }
    return true;
}

static const struct bell_command *find(const char *name)
{
    for (const struct bell_command *const *c = bell_commands; *c; c++)
        if (strcmp((*c)->name, name) == 0) return *c;
    return NULL;
}

static int unknown(const char *name)
{
    const char *names[32];
    size_t count = 0;
    for (const struct bell_command *const *c = bell_commands; *c && count < 31; c++)
        names[count++] = (*c)->name;
    names[count] = NULL;
    struct bell_error err;
    const char *near = bell_near(name, names);
    (void)bell_fail(&err, BELL_INVALID, "'%.60s' is not a command%s%s; see bellwether help", name,
                    near ? ", did you mean " : "", near ? near : "");
    return bell_complain(&err);
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        struct bell_error err;
        (void)bell_fail(&err, BELL_INVALID, "expected a command; see bellwether help");
        return bell_complain(&err);
    }
    if (strcmp(argv[1], "--version") == 0) {
        (void)printf("bellwether %s (%s)\n", BELL_VERSION, BELL_REVISION);
        return BELL_EXIT_OK;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        bell_help(stdout, NULL);
        return BELL_EXIT_OK;
    }
    const struct bell_command *command = find(argv[1]);
    if (!command) return unknown(argv[1]);
    for (int i = 2; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            bell_help(stdout, command);
            return BELL_EXIT_OK;
        }
    }
    return command->run(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    struct bell_error err;
    if (!has_streams()) {
        (void)bell_fail(&err, BELL_IO, "standard output is closed");
        return bell_complain(&err);
    }
    int status = dispatch(argc, argv);
    bool failed = ferror(stdout);
    errno = 0;
    if (fclose(stdout) != 0 || failed) {
        (void)bell_fail(&err, BELL_IO, "standard output cannot be written: %s",
                        errno ? strerror(errno) : "an earlier write failed");
        int written = bell_complain(&err);
        return status == BELL_EXIT_OK ? written : status;
    }
    return status;
}
