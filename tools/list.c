/* SPDX-License-Identifier: Apache-2.0
 * `bellwether list`: what can be named on the command line. */
#include "tools/prediction.h"

#include <stdlib.h>
#include <string.h>

#define NAMES_MAX 64

static const struct bell_option options[] = {
    BELL_OPTION_OF_PLATFORM, BELL_OPTION_OF_STACK, BELL_OPTION_OF_SET, BELL_OPTION_OF_FORM, BELL_OPTIONS_END,
};

/* A table that grows, of texts that it owns. */
struct listing {
    char **cell;
    size_t cells, room;
    bool is_out_of_memory;
};

static void add(struct listing *l, const char *text)
{
    if (l->cells == l->room) {
        size_t room = l->room ? 2 * l->room : 256;
        char **more = realloc(l->cell, room * sizeof *more);
        if (!more) {
            l->is_out_of_memory = true;
            return;
        }
        l->cell = more;
        l->room = room;
    }
    l->cell[l->cells] = strdup(text);
    l->is_out_of_memory |= !l->cell[l->cells];
    l->cells += l->cell[l->cells] != NULL;
}

/* Print and free. */
static enum bell_status finish(struct listing *l, int32_t form, const struct bell_column *column, size_t columns,
                               struct bell_error *err)
{
    if (!l->is_out_of_memory)
        bell_print_table(stdout, (enum bell_form)form, column, columns, (const char *const *)l->cell,
                         l->cells / columns);
    for (size_t i = 0; i < l->cells; i++)
        free(l->cell[i]);
    free(l->cell);
    return l->is_out_of_memory ? bell_fail(err, BELL_NO_MEMORY, "list: out of memory") : BELL_OK;
}

/* ---- documents and executors: kind, name, summary ---- */

static enum bell_status add_documents(struct listing *l, enum bell_part part, struct bell_error *err)
{
    static struct bell_setup setup;
    char names[NAMES_MAX][24];
    size_t count = bell_data_names(part, names, NAMES_MAX);
    for (size_t i = 0; i < count; i++) {
        enum bell_status s = bell_setup_read(&setup, part, names[i], err);
        if (s != BELL_OK) return s;
        add(l, bell_parts[part].name);
        add(l, names[i]);
        add(l, setup.summary[part]);
    }
    return BELL_OK;
}

static void add_executors(struct listing *l)
{
    for (const struct bell_executor *const *e = bell_executors; *e; e++) {
        struct bell_error why;
        char text[600];
        bool can = (*e)->probe(&why) == BELL_OK;
        (void)snprintf(text, sizeof text, "%s%s%s", (*e)->summary,
                       can ? "" : "; cannot run here: ", can ? "" : why.text);
        add(l, "executor");
        add(l, (*e)->name);
        add(l, text);
    }
}

/* ---- figures: the sources of the rows ---- */

static enum bell_status add_figures(struct listing *l, struct bell_error *err)
{
    struct bell_rows rows;
    size_t published;
    enum bell_status s = bell_rows_load(&rows, &published, err);
    if (s != BELL_OK) return s;
    for (size_t i = 0; i < rows.count; i++) {
        size_t before = 0, same = 0;
        for (size_t k = 0; k < rows.count; k++) {
            bool is_same = strcmp(rows.row[k].source, rows.row[i].source) == 0;
            same += is_same;
            before += is_same && k < i;
        }
        if (before) continue;
        char text[60];
        (void)snprintf(text, sizeof text, "%zu %s rows", same, i < published ? "published" : "measured");
        add(l, "figure");
        add(l, rows.row[i].source);
        add(l, text);
    }
    bell_rows_free(&rows);
    return BELL_OK;
}

/* ---- parameters ---- */

static void range_text(const struct bell_field *f, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    if (f->type == BELL_FIELD_BOOL)
        (void)snprintf(out, size, "true|false");
    else if (f->type == BELL_FIELD_STRING)
        (void)snprintf(out, size, "at most %.16g characters", f->max - 1);
    else if (f->type != BELL_FIELD_ENUM)
        (void)snprintf(out, size, "%.16g..%.16g", f->min, f->max);
    for (size_t i = 0; f->type == BELL_FIELD_ENUM && f->names[i]; i++) {
        int n = snprintf(out + used, size - used, "%s%s", i ? "|" : "", f->names[i]);
        if (n > 0 && used + (size_t)n < size) used += (size_t)n;
    }
}

/* Columns of a list of parameters; a bit each says which are shown. */
static const struct bell_column all_columns[] = { { "key", false },   { "unit", false }, { "default", false },
                                                  { "value", false }, { "help", false }, { "range", false },
                                                  { "source", false } };
#define COLUMNS (sizeof all_columns / sizeof all_columns[0])
enum { SHOW_ALL = 0x7f, SHOW_VALUES = 0x4b, SHOW_MEANING = 0x37 };

static void add_parameter(struct listing *l, const struct bell_setup *setup, uint32_t part, const struct bell_field *f,
                          bool is_read, unsigned shown)
{
    static struct bell_setup initial;
    const struct bell_part_kind *kind = &bell_parts[part];
    char key[80], range[200], first[80], value[80] = "";
    (void)snprintf(key, sizeof key, "%s.%s", kind->name, f->key);
    range_text(f, range, sizeof range);
    bell_field_defaults(kind->table, (char *)&initial + kind->offset);
    bell_field_text(f, (char *)&initial + kind->offset, first, sizeof first);
    if (f->type == BELL_FIELD_STRING) (void)snprintf(first, sizeof first, "empty");
    if (is_read) bell_field_text(f, (const char *)setup + kind->offset, value, sizeof value);
    const char *cell[COLUMNS] = { key,     f->unit, f->required ? "required" : first,    value,
                                  f->help, range,   setup->source[part][f - kind->table] };
    for (unsigned i = 0; i < COLUMNS; i++)
        if (shown >> i & 1) add(l, cell[i]);
}

/* Read what the options name; *is_read: which parts. */
static enum bell_status read_parts(struct bell_setup *setup, const struct bell_options *o, bool is_read[BELL_PARTS],
                                   struct bell_error *err)
{
    const char *const name[BELL_PARTS] = { NULL, o->stack, o->platform, NULL };
    enum bell_status s = BELL_OK;
    for (uint32_t part = 0; part < BELL_PARTS; part++) {
        is_read[part] = name[part] != NULL;
        bell_field_defaults(bell_parts[part].table, (char *)setup + bell_parts[part].offset);
        if (s == BELL_OK && name[part]) s = bell_setup_read(setup, (enum bell_part)part, name[part], err);
    }
    return s;
}

/* For people, either what parameters mean or the values of the parts that were named; for programs, everything. */
static enum bell_status list_parameters(const struct bell_options *o, struct bell_error *err)
{
    static struct bell_setup setup;
    struct bell_column column[COLUMNS];
    struct listing l = { NULL, 0, 0, false };
    bool is_read[BELL_PARTS], only_read = o->form == BELL_FORM_TEXT && (o->stack || o->platform);
    unsigned shown = o->form != BELL_FORM_TEXT ? SHOW_ALL : only_read ? SHOW_VALUES : SHOW_MEANING;
    size_t columns = 0;
    memset(&setup, 0, sizeof setup);
    enum bell_status s = read_parts(&setup, o, is_read, err);
    if (s != BELL_OK) return s;
    for (unsigned i = 0; i < COLUMNS; i++)
        if (shown >> i & 1) column[columns++] = all_columns[i];
    for (uint32_t part = 0; part < BELL_PARTS; part++)
        for (const struct bell_field *f = bell_parts[part].table; f->key; f++)
            if ((f->type != BELL_FIELD_STRING || part == BELL_PART_MACHINE) && (is_read[part] || !only_read))
                add_parameter(&l, &setup, part, f, is_read[part], shown);
    return finish(&l, o->form, column, columns, err);
}

/* ---- the command ---- */

static const char *const topics[] = {
    "executors", "platforms", "stacks", "experiments", "figures", "parameters", NULL
};

static enum bell_status list_names(const char *topic, const struct bell_options *o, struct bell_error *err)
{
    static const struct bell_column column[] = { { "kind", false }, { "name", false }, { "summary", false } };
    static const enum bell_part parts[] = { BELL_PART_PLATFORM, BELL_PART_STACK, BELL_PART_EXPERIMENT };
    struct listing l = { NULL, 0, 0, false };
    enum bell_status s = BELL_OK;
    if (o->platform || o->stack)
        return bell_fail(err, BELL_INVALID, "list: --platform and --stack are for list parameters");
    if (!topic || strcmp(topic, "executors") == 0) add_executors(&l);
    for (size_t i = 0; i < 3 && s == BELL_OK; i++)
        if (!topic || strcmp(topic, topics[i + 1]) == 0) s = add_documents(&l, parts[i], err);
    if (s == BELL_OK && topic && strcmp(topic, "figures") == 0) s = add_figures(&l, err);
    if (s == BELL_OK) return finish(&l, o->form, column, 3, err);
    for (size_t i = 0; i < l.cells; i++)
        free(l.cell[i]);
    free(l.cell);
    return s;
}

static int run_list(int argc, char **argv)
{
    struct bell_options o = { .form = BELL_FORM_TEXT };
    struct bell_error err;
    int count = bell_parse(&bell_command_list, argc, argv, &o);
    if (count < 0) return BELL_EXIT_USAGE;
    const char *topic = count ? argv[0] : NULL;
    size_t i = 0;
    while (topic && topics[i] && strcmp(topic, topics[i]) != 0)
        i++;
    enum bell_status s;
    if (topic && !topics[i]) {
        const char *near = bell_near(topic, topics);
        s = bell_fail(&err, BELL_INVALID, "list: '%.60s' is not listed%s%s; expected %s", topic,
                      near ? ", did you mean " : "", near ? near : "",
                      "executors, platforms, stacks, experiments, figures or parameters");
    } else {
        s = topic && strcmp(topic, "parameters") == 0 ? list_parameters(&o, &err) : list_names(topic, &o, &err);
    }
    return s == BELL_OK ? BELL_EXIT_OK : bell_complain(&err);
}

const struct bell_command bell_command_list = {
    "list",
    "[executors|platforms|stacks|experiments|figures|parameters]",
    "list what can be named, or every parameter",
    "Without a topic: executors, platforms, stacks and experiments.  list parameters prints what --set\n"
    "takes; with --platform or --stack the values there, and where they come from.",
    0,
    1,
    options,
    run_list,
};
