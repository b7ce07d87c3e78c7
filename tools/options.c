/* SPDX-License-Identifier: Apache-2.0
 * Options of a subcommand, read by its table. */
#include "tools/cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MAX 40

static const char *const form_names[] = { "text", "json", "csv", NULL };

/* Edits from a to b: insert, remove, replace; texts of at most 63 characters. */
static size_t distance(const char *a, const char *b)
{
    size_t row[64], n = strlen(a), m = strlen(b);
    if (n > 63 || m > 63) return SIZE_MAX;
    for (size_t j = 0; j <= m; j++)
        row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best) best = row[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[m];
}

const char *bell_near(const char *wrong, const char *const *names)
{
    const char *best = NULL;
    size_t least = strlen(wrong) > 4 ? 3 : 2; /* one less is near */
    for (; *names; names++) {
        size_t d = distance(wrong, *names);
        bool begins = strlen(wrong) > 2 && strncmp(*names, wrong, strlen(wrong)) == 0;
        if (begins && !best) best = *names;
        if (d < least) {
            least = d;
            best = *names;
        }
    }
    return best;
}

static int usage(const struct bell_command *command, struct bell_error *err)
{
    struct bell_error outer;
    (void)bell_fail(&outer, BELL_INVALID, "%s: %s; see bellwether help %s", command->name, err->text, command->name);
    (void)bell_complain(&outer);
    return -1;
}

static enum bell_status unknown(const struct bell_command *command, const char *text, struct bell_error *err)
{
    const char *names[NAMES_MAX];
    char name[64];
    size_t count = 0;
    for (const struct bell_option *o = command->options; o->name && count + 1 < NAMES_MAX; o++)
        names[count++] = o->name;
    names[count] = NULL;
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(text, "="), text);
    const char *near = bell_near(name, names);
    return bell_fail(err, BELL_INVALID, "unknown option '%s'%s%s", name, near ? ", did you mean " : "",
                     near ? near : "");
}

static enum bell_status whole(const struct bell_option *o, const char *text, uint64_t *to, struct bell_error *err)
{
    char *end;
    unsigned long long value = strtoull(text, &end, 0);
    if (text[0] < '0' || text[0] > '9' || *end || value >> 53)
        return bell_fail(err, BELL_INVALID, "%s: '%.60s' is not a whole number below 2^53", o->name, text);
    *to = value;
    return BELL_OK;
}

static enum bell_status assign(const struct bell_option *o, void *values, const char *text, struct bell_error *err)
{
    struct bell_options *common = values;
    char *to = (char *)values + o->offset;
    char *end;
    switch (o->kind) {
    case BELL_OPTION_FLAG:
        *(bool *)(void *)to = true;
        return BELL_OK;
    case BELL_OPTION_TEXT:
        *(const char **)(void *)to = text;
        return *text ? BELL_OK : bell_fail(err, BELL_INVALID, "%s: expected %s, found nothing", o->name, o->argument);
    case BELL_OPTION_REAL: {
        double value = strtod(text, &end);
        if (end == text || *end || !(value >= 0) || isinf(value))
            return bell_fail(err, BELL_INVALID, "%s: '%.60s' is not a number of at least 0", o->name, text);
        *(double *)(void *)to = value;
        return BELL_OK;
    }
    case BELL_OPTION_WHOLE:
        return whole(o, text, (uint64_t *)(void *)to, err);
    case BELL_OPTION_FORM:
        for (int32_t i = 0; form_names[i]; i++) {
            if (strcmp(form_names[i], text) == 0) {
                *(int32_t *)(void *)to = i;
                return BELL_OK;
            }
        }
        return bell_fail(err, BELL_INVALID, "%s: '%.60s' is unknown, expected text, json or csv", o->name, text);
    case BELL_OPTION_SET:
        if (common->sets == BELL_SETS_MAX)
            return bell_fail(err, BELL_INVALID, "%s: given more than %d times", o->name, BELL_SETS_MAX);
        common->set[common->sets++] = text;
        return BELL_OK;
    case BELL_OPTION_SEED:
        common->has_seed = true;
        return whole(o, text, &common->seed, err);
    }
    return BELL_OK;
}

/* One option at argv[*at], which moves to the last argument that it takes. */
static enum bell_status take(const struct bell_command *command, int argc, char **argv, int *at, void *values,
                             struct bell_error *err)
{
    char *text = argv[*at];
    for (const struct bell_option *o = command->options; o->name; o++) {
        size_t n = strlen(o->name);
        bool is_short = n == 2;
        if (strncmp(text, o->name, n) != 0 || (!is_short && text[n] && text[n] != '=')) continue;
        if (!o->argument)
            return text[n] ? bell_fail(err, BELL_INVALID, "%s takes no value", o->name) : assign(o, values, "", err);
        if (text[n]) return assign(o, values, text + n + !is_short, err);
        if (*at + 1 >= argc) return bell_fail(err, BELL_INVALID, "%s: expected %s after it", o->name, o->argument);
        return assign(o, values, argv[++*at], err);
    }
    return unknown(command, text, err);
}

int bell_parse(const struct bell_command *command, int argc, char **argv, void *values)
{
    struct bell_error err;
    int count = 0;
    bool only_arguments = false;
    for (int i = 1; i < argc; i++) {
        if (!only_arguments && strcmp(argv[i], "--") == 0)
            only_arguments = true;
        else if (only_arguments || argv[i][0] != '-' || argv[i][1] == '\0')
            argv[count++] = argv[i];
        else if (take(command, argc, argv, &i, values, &err) != BELL_OK)
            return usage(command, &err);
    }
    if (command->most >= 0 && count > command->most) {
        (void)bell_fail(&err, BELL_INVALID, "unexpected argument '%.60s'", argv[command->most]);
        return usage(command, &err);
    }
    if (count < command->least) {
        (void)bell_fail(&err, BELL_INVALID, "expected %s", command->arguments);
        return usage(command, &err);
    }
    return count;
}
