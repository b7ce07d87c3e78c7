/* SPDX-License-Identifier: Apache-2.0
 * A JSON text before cJSON sees it: loading a bounded file, and the checks that cJSON leaves out. */
#ifndef BELL_TRACES_TEXT_H
#define BELL_TRACES_TEXT_H

#include "core/status.h"

BELL_EXTERN_C_BEGIN

#define BELL_TEXT_BYTES_MAX ((size_t)16 << 20)
#define BELL_TEXT_DEPTH_MAX 32

/* Read a whole file of at most BELL_TEXT_BYTES_MAX bytes.  On BELL_OK the caller frees *text, which ends in a NUL that
 * *length does not count. */
enum bell_status bell_text_load(const char *path, char **text, size_t *length, struct bell_error *err) BELL_MUST_USE;

/* Size, UTF-8, no NUL or other control byte, no \u0000, JSON's number form, nesting, balanced brackets.  Failures name
 * `name` and the line. */
enum bell_status bell_text_lint(const char *name, const char *text, size_t length,
                                struct bell_error *err) BELL_MUST_USE;

/* Line of byte `at`, from 1. */
int bell_text_line(const char *text, size_t at);

BELL_EXTERN_C_END

#endif
