/* SPDX-License-Identifier: Apache-2.0 */
#include "core/field.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXACT_END 9007199254740992.0 /* 2^53: from here on a double may stand for its neighbour */
#define WHOLE_END 1e15              /* whole numbers below it are printed without an exponent */
#define NUMBER_TEXT 32u

static char *at(const struct bell_field *f, const void *object)
{
    return (char *)(uintptr_t)object + f->offset;
}

void bell_field_defaults(const struct bell_field *table, void *object)
{
    for (const struct bell_field *f = table; f->key; f++) {
        if (f->type == BELL_FIELD_STRING)
            at(f, object)[0] = '\0';
        else if (f->type == BELL_FIELD_U32)
            *(uint32_t *)(void *)at(f, object) = (uint32_t)f->initial;
        else if (f->type == BELL_FIELD_U64)
            *(uint64_t *)(void *)at(f, object) = (uint64_t)f->initial;
        else if (f->type == BELL_FIELD_REAL)
            *(double *)(void *)at(f, object) = f->initial;
        else if (f->type == BELL_FIELD_BOOL)
            *(bool *)(void *)at(f, object) = f->initial > 0;
        else
            *(int32_t *)(void *)at(f, object) = (int32_t)f->initial;
    }
}

const struct bell_field *bell_field_find(const struct bell_field *table, const char *key)
{
    for (const struct bell_field *f = table; f->key; f++)
        if (strcmp(f->key, key) == 0)
            return f;
    return NULL;
}

/* The shortest text that reads back as the same number; whole numbers without an exponent. */
static const char *real_text(double v, char *out, size_t size)
{
    if (fabs(v) < WHOLE_END && !(v > floor(v))) {
        (void)snprintf(out, size, "%.0f", v);
        return out;
    }
    for (int digits = 6; digits <= 17; digits++) {
        (void)snprintf(out, size, "%.*g", digits, v);
        double back = strtod(out, NULL);
        if (!(back < v) && !(back > v))
            break;
    }
    return out;
}

enum bell_status bell_field_set_number(const struct bell_field *f, void *object, double value, struct bell_error *err)
{
    char is[NUMBER_TEXT], low[NUMBER_TEXT], high[NUMBER_TEXT];
    const char *gap = f->unit[0] ? " " : "";
    (void)real_text(value, is, sizeof is);
    if (f->type != BELL_FIELD_U32 && f->type != BELL_FIELD_U64 && f->type != BELL_FIELD_REAL)
        return bell_fail(err, BELL_INVALID, "%s: %s is a number, expected %s", f->key, is,
                         f->type == BELL_FIELD_BOOL ? "true or false" : "text");
    if (!(value >= f->min && value <= f->max))
        return bell_fail(err, BELL_INVALID, "%s: %s is out of range, expected %s to %s%s%s", f->key, is,
                         real_text(f->min, low, sizeof low), real_text(f->max, high, sizeof high), gap, f->unit);
    if (f->type == BELL_FIELD_REAL) {
        *(double *)(void *)at(f, object) = value;
        return BELL_OK;
    }
    if (value >= EXACT_END || value < 0 || value > floor(value))
        return bell_fail(err, BELL_INVALID, "%s: %s is not a whole number%s%s", f->key, is, f->unit[0] ? " of " : "",
                         f->unit);
    if (f->type == BELL_FIELD_U32)
        *(uint32_t *)(void *)at(f, object) = (uint32_t)value;
    else
        *(uint64_t *)(void *)at(f, object) = (uint64_t)value;
    return BELL_OK;
}

static enum bell_status set_enum(const struct bell_field *f, void *object, const char *text, struct bell_error *err)
{
    char choices[300] = "";
    size_t used = 0;
    for (int32_t i = 0; f->names[i]; i++) {
        if (strcmp(f->names[i], text) == 0) {
            *(int32_t *)(void *)at(f, object) = i;
            return BELL_OK;
        }
        int n = snprintf(choices + used, sizeof choices - used, "%s%s", i ? ", " : "", f->names[i]);
        if (n > 0 && used + (size_t)n < sizeof choices)
            used += (size_t)n;
    }
    return bell_fail(err, BELL_INVALID, "%s: '%s' is unknown, expected one of: %s", f->key, text, choices);
}

enum bell_status bell_field_set_text(const struct bell_field *f, void *object, const char *text, struct bell_error *err)
{
    if (f->type == BELL_FIELD_STRING) {
        if (strlen(text) >= (size_t)f->max)
            return bell_fail(err, BELL_INVALID, "%s: longer than %d characters", f->key, (int)f->max - 1);
        memcpy(at(f, object), text, strlen(text) + 1);
        return BELL_OK;
    }
    if (f->type == BELL_FIELD_ENUM)
        return set_enum(f, object, text, err);
    if (f->type == BELL_FIELD_BOOL) {
        bool yes = strcmp(text, "true") == 0;
        if (!yes && strcmp(text, "false") != 0)
            return bell_fail(err, BELL_INVALID, "%s: '%s' is neither true nor false", f->key, text);
        *(bool *)(void *)at(f, object) = yes;
        return BELL_OK;
    }
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0')
        return bell_fail(err, BELL_INVALID, "%s: '%s' is not a number%s%s%s", f->key, text,
                         f->unit[0] ? " (unit: " : "", f->unit, f->unit[0] ? ")" : "");
    return bell_field_set_number(f, object, value, err);
}

double bell_field_number(const struct bell_field *f, const void *object)
{
    switch (f->type) {
    case BELL_FIELD_U32:
        return *(const uint32_t *)(const void *)at(f, object);
    case BELL_FIELD_U64:
        return (double)*(const uint64_t *)(const void *)at(f, object);
    case BELL_FIELD_REAL:
        return *(const double *)(const void *)at(f, object);
    case BELL_FIELD_BOOL:
        return *(const bool *)(const void *)at(f, object) ? 1 : 0;
    case BELL_FIELD_ENUM:
        return *(const int32_t *)(const void *)at(f, object);
    case BELL_FIELD_STRING:
        break;
    }
    return 0;
}

void bell_field_text(const struct bell_field *f, const void *object, char *out, size_t size)
{
    if (f->type == BELL_FIELD_STRING) {
        (void)snprintf(out, size, "%s", at(f, object));
    } else if (f->type == BELL_FIELD_ENUM) {
        (void)snprintf(out, size, "%s", f->names[*(const int32_t *)(const void *)at(f, object)]);
    } else if (f->type == BELL_FIELD_BOOL) {
        (void)snprintf(out, size, "%s", bell_field_number(f, object) > 0 ? "true" : "false");
    } else if (f->type == BELL_FIELD_U32 || f->type == BELL_FIELD_U64) {
        (void)snprintf(out, size, "%.0f", bell_field_number(f, object));
    } else {
        (void)real_text(bell_field_number(f, object), out, size);
    }
}
