/* SPDX-License-Identifier: Apache-2.0
 * What the subcommands of `bellwether` share: the command table, option parsing, set-up from documents, runs and
 * output. Results go to standard output, everything else to standard error, one line an error. */
#ifndef BELL_TOOLS_CLI_H
#define BELL_TOOLS_CLI_H

#include "core/exec.h"
#include "models/platform.h"
#include "traces/document.h"
#include "traces/trace.h"

#include <stdio.h>

enum bell_exit { BELL_EXIT_OK = 0, BELL_EXIT_FAILED = 1, BELL_EXIT_USAGE = 2, BELL_EXIT_CANNOT = 77 };

/* ---- options: one table a command drives parser and help ---- */

enum bell_form { BELL_FORM_TEXT, BELL_FORM_JSON, BELL_FORM_CSV };

#define BELL_SETS_MAX 64

/* What most commands take.  A command with more of its own puts this first in a struct of its own. */
struct bell_options {
    const char *platform, *stack, *executor, *output; /* as given; NULL: not given */
    const char *pace;                                 /* a platform, for the software NIC */
    const char *samples;                              /* file for each operation's times */
    const char *set[BELL_SETS_MAX];                   /* "KEY=VALUE", in the order given */
    uint32_t sets;
    uint64_t seed; /* valid when has_seed */
    bool has_seed;
    uint64_t max_events; /* of a trace; 0: no limit */
    int32_t form;        /* enum bell_form */
};

enum bell_option_kind {
    BELL_OPTION_FLAG,  /* bool */
    BELL_OPTION_TEXT,  /* const char * */
    BELL_OPTION_REAL,  /* double, finite and >= 0 */
    BELL_OPTION_WHOLE, /* uint64_t */
    BELL_OPTION_FORM,  /* int32_t: enum bell_form */
    BELL_OPTION_SET,   /* set, sets of struct bell_options */
    BELL_OPTION_SEED   /* seed, has_seed of struct bell_options */
};

struct bell_option {
    const char *name;     /* "--platform" or "-o"; NULL ends the table */
    const char *argument; /* "P" in help; NULL for a flag */
    const char *help;
    enum bell_option_kind kind;
    size_t offset; /* in the struct that bell_parse fills */
};

#define BELL_OPTION_OF_PLATFORM                                                                                        \
    {                                                                                                                  \
        "--platform", "P", "machine whose parameters are used (bellwether list platforms)", BELL_OPTION_TEXT,          \
            offsetof(struct bell_options, platform)                                                                    \
    }
#define BELL_OPTION_OF_STACK                                                                                           \
    {                                                                                                                  \
        "--stack", "S", "communication stack whose steps are run (default mini-gda)", BELL_OPTION_TEXT,                \
            offsetof(struct bell_options, stack)                                                                       \
    }
#define BELL_OPTION_OF_SET                                                                                             \
    {                                                                                                                  \
        "--set", "KEY=VALUE", "change one parameter; VALUE 2x multiplies it; may be given again", BELL_OPTION_SET, 0   \
    }
#define BELL_OPTION_OF_SEED                                                                                            \
    {                                                                                                                  \
        "--seed", "N", "seed of what is random (experiment.seed)", BELL_OPTION_SEED, 0                                 \
    }
#define BELL_OPTION_OF_FORM                                                                                            \
    {                                                                                                                  \
        "--format", "F", "of the result: text, json or csv", BELL_OPTION_FORM, offsetof(struct bell_options, form)     \
    }
#define BELL_OPTIONS_END                                                                                               \
    {                                                                                                                  \
        NULL, NULL, NULL, BELL_OPTION_FLAG, 0                                                                          \
    }

struct bell_command {
    const char *name;
    const char *arguments; /* positional ones, for help: "TRACE..."; "" for none */
    const char *summary;   /* one line */
    const char *details;   /* paragraph for `help NAME`, lines of at most 100 columns; "" for none */
    int least, most;       /* positional arguments; most -1: any number */
    const struct bell_option *options;
    int (*run)(int argc, char **argv); /* argv[0] is the command's name; gives the exit status */
};

extern const struct bell_command bell_command_run, bell_command_validate, bell_command_explain, bell_command_check,
    bell_command_diff, bell_command_list, bell_command_doctor, bell_command_help;
extern const struct bell_command *const bell_commands[]; /* all of them; ends in NULL */

/* Fill *values (zeroed by the caller, its own defaults set) from argv[1..].  Positional arguments move to the front,
 * argv[0] the first of them.  Their number, or -1 after an error line was printed: then return BELL_EXIT_USAGE. */
int bell_parse(const struct bell_command *command, int argc, char **argv, void *values);

/* The name of `names` (ends in NULL) that `wrong` most likely means, or NULL. */
const char *bell_near(const char *wrong, const char *const *names);

/* Print help on one command, or on all with NULL. */
void bell_help(FILE *to, const struct bell_command *command);

/* ---- errors ---- */

/* "bellwether: text" on standard error, on one line; gives bell_exit_of(err->status). */
int bell_complain(const struct bell_error *err);

/* OK 0, INVALID 2, UNSUPPORTED 77, anything else 1. */
int bell_exit_of(enum bell_status status);

/* ---- documents ---- */

/* The machine is no document: its values come from --set alone. */
enum bell_part { BELL_PART_EXPERIMENT, BELL_PART_STACK, BELL_PART_PLATFORM, BELL_PART_MACHINE, BELL_PARTS };

#define BELL_ROWS_MAX 96 /* of a field table, with the name and summary of the document */

/* The three documents of a run, in memory, with the source of each value. */
struct bell_setup {
    struct bell_program program;
    struct bell_stack stack;
    struct bell_platform platform;
    struct bell_machine machine;
    bool has_platform; /* time is virtual */
    bool has_pace;     /* time is real, and the software NIC takes what `platform` says */
    const struct bell_executor *executor;
    char digest[20];                                          /* of all parameters, hex; by bell_setup_finish */
    char source[BELL_PARTS][BELL_ROWS_MAX][BELL_SOURCE_SIZE]; /* by part and row of its table; "" when not said */
    char summary[BELL_PARTS][200];
    char fitted_to[200]; /* of the platform: sources of the rows that fixed its values, by commas; "": all rows */
};

/* Everything about a part that is not its values. */
struct bell_part_kind {
    const char *name;   /* "platform": prefix in --set */
    const char *folder; /* "models/platforms"; NULL: there are no documents of it */
    const char *schema;
    const struct bell_field *table;
    size_t name_offset;
    size_t offset; /* of its struct in struct bell_setup */
};
extern const struct bell_part_kind bell_parts[BELL_PARTS];

/* Where `relative` ("traces/reference/paper.json") is: in the folder that BELLWETHER_DATA names, beside the sources,
 * or where it was installed, the first that has it. */
enum bell_status bell_data_find(const char *relative, char *path, size_t size, struct bell_error *err) BELL_MUST_USE;

/* Names of the .json files of a data folder ("traces/measured"), sorted, at most `most`; returns how many. */
size_t bell_data_files(const char *folder, char names[][24], size_t most);

/* The same for the documents of a part. */
size_t bell_data_names(enum bell_part part, char names[][24], size_t most);

/* Read one document into *setup.  `name`: of a file in the part's folder, or a path when it holds '/' or ends in
 * .json.  BELL_INVALID with a message that lists what there is. */
enum bell_status bell_setup_read(struct bell_setup *setup, enum bell_part part, const char *name,
                                 struct bell_error *err) BELL_MUST_USE;

/* Does a run of this set-up depend on the values of that part? */
bool bell_setup_uses(const struct bell_setup *setup, uint32_t part);

/* One KEY=VALUE on the documents that were read.  BELL_INVALID names the key. */
enum bell_status bell_setup_set(struct bell_setup *setup, const char *assignment, struct bell_error *err) BELL_MUST_USE;

/* Resolve what the stack leaves to its protocol, validate, and fill digest.  Choices can't be changed afterwards. */
enum bell_status bell_setup_finish(struct bell_setup *setup, struct bell_error *err) BELL_MUST_USE;

/* All of this for a command: zero *setup, find the executor (default: sim with a platform, else soft), read the
 * documents (stack: default mini-gda), apply --set and --seed, finish. */
enum bell_status bell_setup_load(struct bell_setup *setup, const char *experiment, const struct bell_options *options,
                                 struct bell_error *err) BELL_MUST_USE;

/* tools/pace.c: read a platform that paces the software NIC.  BELL_INVALID: this executor has none. */
enum bell_status bell_setup_read_pace(struct bell_setup *setup, const char *name, struct bell_error *err) BELL_MUST_USE;

/* The stage delays, when setup->has_pace.  pace->name is the setup's. */
void bell_setup_pace(const struct bell_setup *setup, struct bell_pace *pace);

/* NULL-terminated. */
extern const struct bell_executor *const bell_executors[];

/* NULL when there is none of that name. */
const struct bell_executor *bell_executor_find(const char *name);

/* ---- a run ---- */

/* issue_ps and total_ps are sorted, `count` each. */
struct bell_samples {
    uint64_t *issue_ps, *total_ps;
    size_t count;
    struct bell_result result; /* everything else of the run */
};

/* Probe and run.  sink NULL: a timed run.  On BELL_OK the caller calls bell_samples_free. */
enum bell_status bell_samples_run(const struct bell_setup *setup, const struct bell_sink *sink,
                                  struct bell_samples *out, struct bell_error *err) BELL_MUST_USE;
void bell_samples_free(struct bell_samples *samples);

/* Each kind of time by itself, for bell_percentile; until then both are in the order of lanes and operations. */
void bell_samples_sort(struct bell_samples *samples);

/* The same, traced into a file; after a failure no file has the name. */
enum bell_status bell_samples_trace(const struct bell_setup *setup, const char *path, uint64_t max_events,
                                    struct bell_samples *out, struct bell_error *err) BELL_MUST_USE;

/* Nearest rank: the smallest sample that at least `percent` of all do not exceed.  sorted[count], count > 0. */
uint64_t bell_percentile(const uint64_t *sorted, size_t count, double percent);

/* What the total of an operation is: "put+completion", "round trip" or, in a stream, "operation". */
const char *bell_total_name(const struct bell_program *program);

/* Millions of puts a second of the lanes that post without waiting, or 0. */
double bell_samples_rate(const struct bell_samples *samples);

/* One sentence on where the numbers of a run come from. */
void bell_origin(const struct bell_setup *setup, char *out, size_t size);

/* ---- output ---- */

struct bell_column {
    const char *name;
    bool is_number; /* right-aligned; bare in JSON, null when "" */
};

/* rows * columns cells, row by row.  text: aligned under a line of names; csv: RFC 4180, names first; json: an array of
 * objects. */
void bell_print_table(FILE *to, enum bell_form form, const struct bell_column *column, size_t columns,
                      const char *const *cell, size_t rows);

/* A quoted JSON string. */
void bell_print_json(FILE *to, const char *text);

/* Microseconds of picoseconds with 3 decimals into out. */
void bell_us_text(uint64_t ps, char *out, size_t size);

#endif
