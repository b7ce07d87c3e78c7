/* SPDX-License-Identifier: Apache-2.0
 * Measurement rows: a JSON array, one object a value, as in traces/reference/paper.json. */
#ifndef BELL_TRACES_ROWS_H
#define BELL_TRACES_ROWS_H

#include "core/status.h"

BELL_EXTERN_C_BEGIN

#define BELL_ROW_CONFIG_MAX 12

struct bell_row {
    char source[40];
    char platform[24];
    char stack[48];
    char metric[48]; /* the unit is the end of the name */
    double value;
    char config[BELL_ROW_CONFIG_MAX][2][64]; /* key, value; numbers in shortest form, booleans as true and false */
    int config_count;
    int line; /* in the file, from 1 */
};

struct bell_rows {
    struct bell_row *row;
    size_t count;
};

/* On BELL_OK the caller calls bell_rows_free. */
enum bell_status bell_rows_read(const char *path, struct bell_rows *out, struct bell_error *err) BELL_MUST_USE;
enum bell_status bell_rows_parse(const char *name, const char *text, size_t length, struct bell_rows *out,
                                 struct bell_error *err) BELL_MUST_USE;
void bell_rows_free(struct bell_rows *rows);

/* Move `more` behind `rows`. */
enum bell_status bell_rows_append(struct bell_rows *rows, struct bell_rows *more, struct bell_error *err) BELL_MUST_USE;

/* The value of `key`, or NULL when the row does not have it. */
const char *bell_row_config(const struct bell_row *row, const char *key);

BELL_EXTERN_C_END

#endif
