/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/document.h"

#include "traces/json.h"
#include "traces/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_SIZE 200

struct reading {
    const char *name;
    const struct bell_field *table;
    void *object;
    const struct bell_sources *sources;
    bool *seen; /* one a row */
    struct bell_error *err;
};

static enum bell_status wrong(struct reading *r, const char *path, const char *what)
{
    return bell_fail(r->err, BELL_INVALID, "%s: $%s%s: %s", r->name, *path ? "." : "", path, what);
}

static size_t field_size(const struct bell_field *f)
{
    switch (f->type) {
    case BELL_FIELD_STRING:
        return (size_t)f->max;
    case BELL_FIELD_BOOL:
        return sizeof(bool);
    case BELL_FIELD_U64:
    case BELL_FIELD_REAL:
        return sizeof(uint64_t);
    case BELL_FIELD_U32:
    case BELL_FIELD_ENUM:
        break;
    }
    return sizeof(uint32_t);
}

static enum bell_status set_value(struct reading *r, const struct bell_field *f, const cJSON *node, const char *path)
{
    static const char *const wanted[] = { "a whole number", "a whole number", "a number",
                                          "true or false",  "text",           "text" };
    bool number = f->type == BELL_FIELD_U32 || f->type == BELL_FIELD_U64 || f->type == BELL_FIELD_REAL;
    struct bell_error inner = { BELL_OK, "" };
    enum bell_status s;
    if (number && cJSON_IsNumber(node)) {
        s = bell_field_set_number(f, r->object, node->valuedouble, &inner);
    } else if (f->type == BELL_FIELD_BOOL && cJSON_IsBool(node)) {
        s = bell_field_set_text(f, r->object, cJSON_IsTrue(node) ? "true" : "false", &inner);
    } else if (!number && f->type != BELL_FIELD_BOOL && cJSON_IsString(node)) {
        s = bell_field_set_text(f, r->object, node->valuestring, &inner);
    } else {
        char text[120];
        (void)snprintf(text, sizeof text, "expected %s, found %s", wanted[f->type], bell_json_kind(node));
        return wrong(r, path, text);
    }
    return s == BELL_OK ? s : wrong(r, path, inner.text);
}

static bool is_repeated(const cJSON *node)
{
    for (const cJSON *p = node->prev; p && p->next; p = p->prev)
        if (strcmp(p->string, node->string) == 0) return true;
    return false;
}

/* {"value": v, "source": "text"} */
static enum bell_status read_sourced(struct reading *r, const struct bell_field *f, const cJSON *object,
                                     const char *path)
{
    const cJSON *value = NULL, *source = NULL;
    for (const cJSON *n = object->child; n; n = n->next) {
        bool is_value = strcmp(n->string, "value") == 0;
        char text[120];
        (void)snprintf(text, sizeof text, "%s key '%.40s', expected value and source",
                       is_repeated(n) ? "duplicate" : "unknown", n->string);
        if (is_repeated(n) || (!is_value && strcmp(n->string, "source") != 0)) return wrong(r, path, text);
        *(is_value ? &value : &source) = n;
    }
    if (!value) return wrong(r, path, "expected a value, or an object with the key value");
    if (source && (!cJSON_IsString(source) || strlen(source->valuestring) >= BELL_SOURCE_SIZE))
        return wrong(r, path, "expected source to be text of at most 239 bytes");
    enum bell_status s = set_value(r, f, value, path);
    if (s == BELL_OK && source && r->sources)
        memcpy(r->sources->text[f - r->table], source->valuestring, strlen(source->valuestring) + 1);
    return s;
}

static enum bell_status read_leaf(struct reading *r, const struct bell_field *f, const cJSON *node, const char *path)
{
    if (r->seen[f - r->table]) return wrong(r, path, "given twice, once under parameters");
    r->seen[f - r->table] = true;
    return cJSON_IsObject(node) ? read_sourced(r, f, node, path) : set_value(r, f, node, path);
}

static bool is_inner(const struct bell_field *table, const char *key)
{
    size_t n = strlen(key);
    for (const struct bell_field *f = table; f->key; f++)
        if (strncmp(f->key, key, n) == 0 && f->key[n] == '.') return true;
    return false;
}

/* Members of `object`; `key` is the dotted key of the object, "" at the top and in parameters; `shown` is its path in
 * messages. */
static enum bell_status read_members(struct reading *r, const cJSON *object, const char *key, const char *shown)
{
    enum bell_status s = BELL_OK;
    for (const cJSON *n = object->child; n && s == BELL_OK; n = n->next) {
        char inner[PATH_SIZE], path[PATH_SIZE + 12];
        int length = snprintf(inner, sizeof inner, "%s%s%s", key, *key ? "." : "", n->string);
        (void)snprintf(path, sizeof path, "%s%s%s", shown, *shown ? "." : "", n->string);
        if (is_repeated(n)) return wrong(r, path, "duplicate key");
        bool is_foreign = length >= (int)sizeof inner || strchr(n->string, '.');
        const struct bell_field *f = is_foreign ? NULL : bell_field_find(r->table, inner);
        bool top = *key == '\0' && *shown == '\0';
        if (f)
            s = read_leaf(r, f, n, path);
        else if (top && (strcmp(inner, "name") == 0 || strcmp(inner, "summary") == 0 || strcmp(inner, "schema") == 0))
            s = cJSON_IsString(n) ? BELL_OK : wrong(r, path, "expected text");
        else if (top && strcmp(inner, "parameters") == 0 && !is_inner(r->table, inner))
            s = cJSON_IsObject(n) ? read_members(r, n, "", path) : wrong(r, path, "expected an object");
        else if (is_foreign || !is_inner(r->table, inner))
            s = wrong(r, path, "unknown key");
        else
            s = cJSON_IsObject(n) ? read_members(r, n, inner, path) : wrong(r, path, "expected an object");
    }
    return s;
}

static enum bell_status read_tree(struct reading *r, const cJSON *root, const char *schema)
{
    char text[160];
    if (!cJSON_IsObject(root)) return wrong(r, "", "expected an object");
    const cJSON *named = cJSON_GetObjectItemCaseSensitive(root, "schema");
    const char *found = !named ? "no such key" : cJSON_IsString(named) ? named->valuestring : bell_json_kind(named);
    if (strcmp(found, schema) != 0) {
        (void)snprintf(text, sizeof text, "expected \"%s\", found %.60s", schema, found);
        return wrong(r, "schema", text);
    }
    bell_field_defaults(r->table, r->object);
    enum bell_status s = read_members(r, root, "", "");
    for (const struct bell_field *f = r->table; f->key && s == BELL_OK; f++)
        if (f->required && !r->seen[f - r->table]) s = wrong(r, f->key, "missing, this field is required");
    return s;
}

enum bell_status bell_document_parse(const char *name, const char *text, size_t length, const char *schema,
                                     const struct bell_field *table, void *object, const struct bell_sources *sources,
                                     struct bell_error *err)
{
    size_t rows = 0, extent = 1;
    for (const struct bell_field *f = table; f->key; f++, rows++)
        if (f->offset + field_size(f) > extent) extent = f->offset + field_size(f);
    cJSON *root = NULL;
    enum bell_status s = bell_json_parse(name, text, length, &root, err);
    if (s != BELL_OK) return s;
    /* A trial run into scratch memory first, so that a failure leaves the caller's object as it was. */
    void *scratch = calloc(1, extent);
    bool *seen = calloc(rows + 1, sizeof *seen);
    struct reading r = { name, table, scratch, NULL, seen, err };
    if (!scratch || !seen) {
        s = bell_fail(err, BELL_NO_MEMORY, "%s: out of memory", name);
    } else {
        s = read_tree(&r, root, schema);
    }
    if (s == BELL_OK) {
        memset(seen, 0, rows * sizeof *seen);
        r.object = object;
        r.sources = sources;
        for (size_t i = 0; sources && i < rows; i++)
            sources->text[i][0] = '\0';
        s = read_tree(&r, root, schema);
    }
    free(scratch);
    free(seen);
    cJSON_Delete(root);
    return s;
}

enum bell_status bell_document_source(const char *path, const char *schema, const struct bell_field *table,
                                      void *object, const struct bell_sources *sources, struct bell_error *err)
{
    char *text;
    size_t length;
    enum bell_status s = bell_text_load(path, &text, &length, err);
    if (s != BELL_OK) return s;
    s = bell_document_parse(path, text, length, schema, table, object, sources, err);
    free(text);
    return s;
}

enum bell_status bell_document_read(const char *path, const char *schema, const struct bell_field *table, void *object,
                                    struct bell_error *err)
{
    return bell_document_source(path, schema, table, object, NULL, err);
}
