/* SPDX-License-Identifier: Apache-2.0
 * The rows that come with this program, and the user's own. */
#include "tools/prediction.h"

#define FILES_MAX 64
#define PATH_SIZE 4096

static enum bell_status add_file(struct bell_rows *rows, const char *folder, const char *name, struct bell_error *err)
{
    char relative[80], path[PATH_SIZE];
    struct bell_rows more = { NULL, 0 };
    (void)snprintf(relative, sizeof relative, "%s/%s.json", folder, name);
    enum bell_status s = bell_data_find(relative, path, sizeof path, err);
    if (s == BELL_OK)
        s = bell_rows_read(path, &more, err);
    if (s == BELL_OK)
        s = bell_rows_append(rows, &more, err);
    bell_rows_free(&more);
    return s;
}

enum bell_status bell_rows_load(struct bell_rows *rows, size_t *published, struct bell_error *err)
{
    static const char *const folders[] = { "traces/reference", "traces/measured" };
    char path[PATH_SIZE], names[FILES_MAX][24];
    *rows = (struct bell_rows){ NULL, 0 };
    enum bell_status s = bell_data_find(folders[0], path, sizeof path, err);
    for (size_t i = 0; s == BELL_OK && i < sizeof folders / sizeof folders[0]; i++) {
        size_t count = bell_data_files(folders[i], names, FILES_MAX);
        for (size_t k = 0; s == BELL_OK && k < count; k++)
            s = add_file(rows, folders[i], names[k], err);
        if (i == 0)
            *published = rows->count;
    }
    if (s != BELL_OK)
        bell_rows_free(rows);
    return s;
}
