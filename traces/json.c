/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/json.h"

#include "traces/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *bell_json_kind(const cJSON *node)
{
    if (cJSON_IsObject(node)) return "an object";
    if (cJSON_IsArray(node)) return "an array";
    if (cJSON_IsString(node)) return "text";
    if (cJSON_IsNumber(node)) return "a number";
    return cJSON_IsBool(node) ? "true or false" : "null";
}

/* Nesting is at most BELL_TEXT_DEPTH_MAX here, which bounds the recursion. */
static bool all_finite(const cJSON *node)
{
    for (; node; node = node->next)
        if ((cJSON_IsNumber(node) && !isfinite(node->valuedouble)) || (node->child && !all_finite(node->child)))
            return false;
    return true;
}

enum bell_status bell_json_parse(const char *name, const char *text, size_t length, cJSON **root,
                                 struct bell_error *err)
{
    enum bell_status s = bell_text_lint(name, text, length, err);
    if (s != BELL_OK) return s;
    char *copy = malloc(length + 1);
    if (!copy) return bell_fail(err, BELL_NO_MEMORY, "%s: out of memory", name);
    memcpy(copy, text, length);
    copy[length] = '\0';
    const char *end = copy;
    cJSON *tree = cJSON_ParseWithLengthOpts(copy, length + 1, &end, 1);
    size_t at = end && end >= copy && (size_t)(end - copy) <= length ? (size_t)(end - copy) : length;
    if (!tree && at == length)
        s = bell_fail(err, BELL_INVALID, "%s:%d: syntax error, the text ends too early", name,
                      bell_text_line(copy, at));
    else if (!tree)
        s = bell_fail(err, BELL_INVALID, "%s:%d: syntax error or trailing text near '%.12s'", name,
                      bell_text_line(copy, at), copy + at);
    else if (!all_finite(tree))
        s = bell_fail(err, BELL_INVALID, "%s: a number is not finite", name);
    free(copy);
    if (s == BELL_OK)
        *root = tree;
    else
        cJSON_Delete(tree);
    return s;
}
