/* SPDX-License-Identifier: Apache-2.0
 * Where documents lie, and what they are called. */
#include "tools/cli.h"

#include <assert.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_SIZE 4096

/* What comes with this program lies in the first of the two; a file of the user's own folder goes before it. */
static const char *const roots[] = { BELL_DATA_SOURCE_DIR, BELL_DATA_INSTALL_DIR, NULL };

static const char *own_root(void)
{
    const char *own = getenv("BELLWETHER_DATA");
    return own && *own ? own : NULL;
}

const struct bell_part_kind bell_parts[BELL_PARTS] = {
    { "experiment", "models/experiments", "bell.experiment/1", bell_program_fields, offsetof(struct bell_program, name),
      offsetof(struct bell_setup, program) },
    { "stack", "models/stacks", "bell.stack/1", bell_stack_fields, offsetof(struct bell_stack, name),
      offsetof(struct bell_setup, stack) },
    { "platform", "models/platforms", "bell.platform/1", bell_platform_fields, offsetof(struct bell_platform, name),
      offsetof(struct bell_setup, platform) },
    { "machine", NULL, NULL, bell_machine_fields, offsetof(struct bell_machine, name),
      offsetof(struct bell_setup, machine) },
};

static bool is_at(const char *root, const char *relative, char *path, size_t size)
{
    int n = snprintf(path, size, "%s/%s", root, relative);
    return n > 0 && (size_t)n < size && access(path, F_OK) == 0;
}

enum bell_status bell_data_find(const char *relative, char *path, size_t size, struct bell_error *err)
{
    const char *own = own_root();
    if (own && is_at(own, relative, path, size)) return BELL_OK;
    for (const char *const *root = roots; *root; root++)
        if (is_at(*root, relative, path, size)) return BELL_OK;
    return bell_fail(err, BELL_INVALID, "%s: neither in %s%s%s nor in %s", relative, own ? own : "", own ? ", " : "",
                     roots[0], roots[1]);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Add the names in one folder that are not there yet. */
static size_t add_names(const char *path, char names[][24], size_t count, size_t most)
{
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && count < most && (entry = readdir(folder)) != NULL;) {
        size_t n = strlen(entry->d_name), same = 0;
        if (n <= 5 || n - 5 >= 24 || strcmp(entry->d_name + n - 5, ".json") != 0) continue;
        memcpy(names[count], entry->d_name, n - 5);
        names[count][n - 5] = '\0';
        while (strcmp(names[same], names[count]) != 0)
            same++;
        count += same == count;
    }
    if (folder) (void)closedir(folder);
    return count;
}

size_t bell_data_files(const char *folder, char names[][24], size_t most)
{
    char path[PATH_SIZE];
    const char *own = own_root();
    size_t count = 0;
    if (own && is_at(own, folder, path, sizeof path)) count = add_names(path, names, count, most);
    for (const char *const *root = roots; *root; root++)
        if (is_at(*root, folder, path, sizeof path)) {
            count = add_names(path, names, count, most);
            break;
        }
    qsort(names, count, sizeof names[0], compare_names);
    return count;
}

size_t bell_data_names(enum bell_part part, char names[][24], size_t most)
{
    return bell_data_files(bell_parts[part].folder, names, most);
}

static enum bell_status unknown(enum bell_part part, const char *name, struct bell_error *err)
{
    char names[64][24], list[400] = "";
    const char *pointers[65];
    size_t count = bell_data_names(part, names, 64), used = 0;
    for (size_t i = 0; i < count; i++) {
        pointers[i] = names[i];
        int n = snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", names[i]);
        if (n > 0 && used + (size_t)n < sizeof list) used += (size_t)n;
    }
    pointers[count] = NULL;
    const char *near = bell_near(name, pointers);
    return bell_fail(err, BELL_INVALID, "'%.60s' is not a known %s%s%s; known: %s", name, bell_parts[part].name,
                     near ? ", did you mean " : "", near ? near : "", count ? list : "none");
}

/* The file that `name` stands for. */
static enum bell_status resolve(enum bell_part part, const char *name, char *path, size_t size, struct bell_error *err)
{
    size_t length = strlen(name);
    if (length >= size / 2) return bell_fail(err, BELL_INVALID, "'%.60s...' is too long a name", name);
    if (strchr(name, '/') || (length > 5 && strcmp(name + length - 5, ".json") == 0)) {
        memcpy(path, name, length + 1);
        return BELL_OK;
    }
    char relative[PATH_SIZE];
    (void)snprintf(relative, sizeof relative, "%s/%s.json", bell_parts[part].folder, name);
    return *name && bell_data_find(relative, path, size, err) == BELL_OK ? BELL_OK : unknown(part, name, err);
}

/* The part's table, with rows for what a document says of itself behind it. */
static void extend(enum bell_part part, struct bell_field table[BELL_ROWS_MAX])
{
    const struct bell_part_kind *kind = &bell_parts[part];
    size_t rows = 0;
    for (; kind->table[rows].key; rows++) {
        assert(rows + 4 < BELL_ROWS_MAX);
        table[rows] = kind->table[rows];
    }
    struct bell_field text = { .key = "summary", .type = BELL_FIELD_STRING, .unit = "", .help = "" };
    text.offset = (uint32_t)(offsetof(struct bell_setup, summary) +
                             sizeof(((struct bell_setup *)0)->summary[0]) * part - kind->offset);
    text.max = sizeof(((struct bell_setup *)0)->summary[0]);
    table[rows++] = text;
    if (part == BELL_PART_PLATFORM) {
        text.key = "fitted_to";
        text.offset = (uint32_t)(offsetof(struct bell_setup, fitted_to) - kind->offset);
        text.max = sizeof(((struct bell_setup *)0)->fitted_to);
        table[rows++] = text;
    }
    if (!bell_field_find(kind->table, "name")) {
        text.key = "name";
        text.offset = (uint32_t)kind->name_offset;
        text.max = 24;
        table[rows++] = text;
    }
    memset(&table[rows], 0, sizeof table[rows]);
}

static void name_after_file(char name[24], const char *path)
{
    const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    size_t n = strlen(base);
    if (n > 5 && strcmp(base + n - 5, ".json") == 0) n -= 5;
    (void)snprintf(name, 24, "%.*s", n < 24 ? (int)n : 23, base);
}

enum bell_status bell_setup_read(struct bell_setup *setup, enum bell_part part, const char *name,
                                 struct bell_error *err)
{
    const struct bell_part_kind *kind = &bell_parts[part];
    struct bell_field table[BELL_ROWS_MAX];
    char path[PATH_SIZE];
    char *object = (char *)setup + kind->offset;
    struct bell_sources sources = { setup->source[part] };
    enum bell_status s = resolve(part, name, path, sizeof path, err);
    if (s != BELL_OK) return s;
    extend(part, table);
    s = bell_document_source(path, kind->schema, table, object, &sources, err);
    if (s == BELL_IO) return err->status = BELL_INVALID; /* a file that cannot be read is bad input */
    if (s != BELL_OK) return s;
    if (!object[kind->name_offset]) name_after_file(object + kind->name_offset, path);
    if (part == BELL_PART_PLATFORM) setup->has_platform = true;
    return BELL_OK;
}
