/* SPDX-License-Identifier: Apache-2.0
 * A struct described as data: one row a field.  The row drives the JSON reader, `--set a.b=v`, `bellwether help`, the
 * JSON output and the parameter table in the docs, so that no field is spelled twice. */
#ifndef BELL_CORE_FIELD_H
#define BELL_CORE_FIELD_H

#include "core/status.h"

BELL_EXTERN_C_BEGIN

enum bell_field_type {
    BELL_FIELD_U32,   /* uint32_t, min..max */
    BELL_FIELD_U64,   /* uint64_t, min..max, exact below 2^53 */
    BELL_FIELD_REAL,  /* double, min..max */
    BELL_FIELD_BOOL,  /* bool */
    BELL_FIELD_ENUM,  /* int32_t holding an index into names */
    BELL_FIELD_STRING /* char[max], NUL-terminated */
};

struct bell_field {
    const char *key; /* dotted path in the document and in --set: "gpu.fence_gpu.cycles"; NULL ends the table */
    enum bell_field_type type;
    uint32_t offset;           /* in the struct */
    const char *unit;          /* "ps", "cycles", "bytes", "" */
    double min, max;           /* inclusive; for a string, max is the array's size */
    double initial;            /* used when the document leaves an optional field out */
    bool required;             /* the document must hold it */
    const char *const *names;  /* for ENUM: NULL-terminated */
    const char *help;          /* one sentence */
};

/* Set every field of *object to its initial value. */
void bell_field_defaults(const struct bell_field *table, void *object);

/* The row whose key is `key`, or NULL. */
const struct bell_field *bell_field_find(const struct bell_field *table, const char *key);

/* Read `text` into one field.  BELL_INVALID with a message that names key, text and what was expected; then *object is
 * unchanged. */
enum bell_status bell_field_set_text(const struct bell_field *field, void *object, const char *text,
                                     struct bell_error *err) BELL_MUST_USE;

/* The same from a number (U32, U64, REAL). */
enum bell_status bell_field_set_number(const struct bell_field *field, void *object, double value,
                                       struct bell_error *err) BELL_MUST_USE;

/* Value as a number: ENUM gives its index, BOOL 0 or 1, STRING 0. */
double bell_field_number(const struct bell_field *field, const void *object);

/* Value as text into out[size]; a REAL in a short form that reads back the same, whole
 * numbers below 1e15 without an exponent. */
void bell_field_text(const struct bell_field *field, const void *object, char *out, size_t size);

BELL_EXTERN_C_END

#endif
