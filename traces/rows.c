/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/rows.h"

#include "traces/json.h"
#include "traces/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reading {
    const char *name;
    int line;
    struct bell_error *err;
};

static enum bell_status wrong(const struct reading *r, const char *key, const char *what)
{
    return bell_fail(r->err, BELL_INVALID, "%s:%d: '%.60s': %s", r->name, r->line, key, what);
}

static bool copy(char *out, size_t size, const char *text)
{
    if (strlen(text) >= size) return false;
    memcpy(out, text, strlen(text) + 1);
    return true;
}

static enum bell_status read_config(const struct reading *r, const cJSON *node, struct bell_row *row)
{
    if (!cJSON_IsObject(node)) return wrong(r, "config", "expected an object");
    for (const cJSON *n = node->child; n; n = n->next) {
        if (row->config_count == BELL_ROW_CONFIG_MAX) return wrong(r, "config", "expected at most 12 keys");
        if (bell_row_config(row, n->string)) return wrong(r, n->string, "duplicate key");
        char(*pair)[64] = row->config[row->config_count];
        char number[40] = "";
        for (int digits = 6; cJSON_IsNumber(n) && digits <= 17; digits++) {
            (void)snprintf(number, sizeof number, "%.*g", digits, n->valuedouble);
            double back = strtod(number, NULL);
            if (!(back < n->valuedouble) && !(back > n->valuedouble)) break;
        }
        const char *text = cJSON_IsString(n)   ? n->valuestring
                           : cJSON_IsNumber(n) ? number
                           : cJSON_IsTrue(n)   ? "true"
                           : cJSON_IsFalse(n)  ? "false"
                                               : NULL;
        if (!text) return wrong(r, n->string, "expected text, a number or true or false");
        if (!copy(pair[0], sizeof pair[0], n->string) || !copy(pair[1], sizeof pair[1], text))
            return wrong(r, n->string, "expected at most 63 bytes");
        row->config_count++;
    }
    return BELL_OK;
}

static enum bell_status read_row(const struct reading *r, const cJSON *node, struct bell_row *row)
{
    static const char *const keys[] = { "source", "platform", "stack", "metric", "config", "value" };
    char *const texts[] = { row->source, row->platform, row->stack, row->metric };
    const size_t sizes[] = { sizeof row->source, sizeof row->platform, sizeof row->stack, sizeof row->metric };
    const size_t key_count = sizeof keys / sizeof *keys;
    uint32_t seen = 0;
    if (!cJSON_IsObject(node)) return wrong(r, "row", "expected an object");
    row->line = r->line;
    for (const cJSON *n = node->child; n; n = n->next) {
        size_t k = 0;
        enum bell_status s = BELL_OK;
        while (k < key_count && strcmp(keys[k], n->string) != 0)
            k++;
        if (k == key_count) return wrong(r, n->string, "unknown key");
        if (seen >> k & 1) return wrong(r, n->string, "duplicate key");
        seen |= UINT32_C(1) << k;
        if (k < 4 && (!cJSON_IsString(n) || !*n->valuestring || !copy(texts[k], sizes[k], n->valuestring)))
            s = wrong(r, n->string, "expected text that is neither empty nor too long");
        else if (k == 4)
            s = read_config(r, n, row);
        else if (k == 5 && !cJSON_IsNumber(n))
            s = wrong(r, n->string, "expected a number");
        else if (k == 5)
            row->value = n->valuedouble;
        if (s != BELL_OK) return s;
    }
    for (size_t k = 0; k < key_count; k++)
        if (!(seen >> k & 1)) return wrong(r, keys[k], "missing");
    return BELL_OK;
}

/* Byte of the next element of the outer array, from `at` on: the text was parsed before, so it is well formed. */
static size_t next_element(const char *text, size_t length, size_t at, int *depth)
{
    bool in_string = false;
    for (; at < length; at++) {
        char c = text[at];
        if (in_string && c == '\\')
            at++;
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string && (c == ']' || c == '}'))
            --*depth;
        else if (!in_string && (c == '[' || c == '{') && ++*depth == 2)
            return at;
    }
    return length;
}

enum bell_status bell_rows_parse(const char *name, const char *text, size_t length, struct bell_rows *out,
                                 struct bell_error *err)
{
    cJSON *root = NULL;
    enum bell_status s = bell_json_parse(name, text, length, &root, err);
    if (s != BELL_OK) return s;
    struct bell_rows rows = { NULL, 0 };
    if (!cJSON_IsArray(root)) {
        s = bell_fail(err, BELL_INVALID, "%s: expected an array of rows", name);
    } else {
        /* Memory follows the file's size: a row that cannot be valid ends the reading before its slot is used. */
        size_t count = 0, room = (size_t)cJSON_GetArraySize(root);
        size_t fits = length / 60 + 1; /* the shortest valid row is longer than this */
        rows.row = calloc(room < fits ? room + 1 : fits, sizeof *rows.row);
        if (!rows.row) s = bell_fail(err, BELL_NO_MEMORY, "%s: out of memory", name);
        struct reading r = { name, 1, err };
        size_t at = 0, counted = 0;
        int depth = 0;
        for (const cJSON *n = root->child; n && s == BELL_OK; n = n->next) {
            if (!cJSON_IsObject(n)) {
                s = wrong(&r, "row", "expected an object after this line");
                break;
            }
            at = next_element(text, length, at, &depth);
            r.line += bell_text_line(text + counted, at - counted) - 1;
            counted = at++;
            s = read_row(&r, n, &rows.row[count++]);
        }
        rows.count = count;
    }
    cJSON_Delete(root);
    if (s != BELL_OK)
        bell_rows_free(&rows);
    else
        *out = rows;
    return s;
}

enum bell_status bell_rows_read(const char *path, struct bell_rows *out, struct bell_error *err)
{
    char *text;
    size_t length;
    enum bell_status s = bell_text_load(path, &text, &length, err);
    if (s != BELL_OK) return s;
    s = bell_rows_parse(path, text, length, out, err);
    free(text);
    return s;
}

enum bell_status bell_rows_append(struct bell_rows *rows, struct bell_rows *more, struct bell_error *err)
{
    struct bell_row *row = realloc(rows->row, (rows->count + more->count + 1) * sizeof *row);
    if (!row) return bell_fail(err, BELL_NO_MEMORY, "no memory for the rows");
    if (more->count) memcpy(row + rows->count, more->row, more->count * sizeof *row);
    rows->row = row;
    rows->count += more->count;
    bell_rows_free(more);
    return BELL_OK;
}

void bell_rows_free(struct bell_rows *rows)
{
    free(rows->row);
    rows->row = NULL;
    rows->count = 0;
}

const char *bell_row_config(const struct bell_row *row, const char *key)
{
    for (int i = 0; i < row->config_count; i++)
        if (strcmp(row->config[i][0], key) == 0) return row->config[i][1];
    return NULL;
}
