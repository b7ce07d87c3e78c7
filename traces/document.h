/* SPDX-License-Identifier: Apache-2.0
 * Strict reader of one JSON document (platform, stack, experiment) into a struct that a bell_field table describes.
 *
 * {"schema": "bell.platform/1", "name": "...", "summary": "...", "parameters": {"gpu": {"clock_mhz": {"value": 1970,
 * "source": "..."}}}}.  Field "a.b.c" is found by nesting, from the top or inside "parameters".  A leaf is a value or
 * {"value": v, "source": "text"}. */
#ifndef BELL_TRACES_DOCUMENT_H
#define BELL_TRACES_DOCUMENT_H

#include "core/field.h"

BELL_EXTERN_C_BEGIN

#define BELL_SOURCE_SIZE 240

/* Where each value comes from: text[i] belongs to row i of the table, "" when the document does not say. */
struct bell_sources {
    char (*text)[BELL_SOURCE_SIZE];
};

/* Every row of `table` is set in *object: from the document, or to its initial value.  BELL_INVALID (what is wrong,
 * with file and line or JSON path), BELL_IO or BELL_NO_MEMORY leave *object and *sources unchanged. */
enum bell_status bell_document_read(const char *path, const char *schema, const struct bell_field *table, void *object,
                                    struct bell_error *err) BELL_MUST_USE;

/* The same, and collects the sources (may be NULL). */
enum bell_status bell_document_source(const char *path, const char *schema, const struct bell_field *table,
                                      void *object, const struct bell_sources *sources,
                                      struct bell_error *err) BELL_MUST_USE;

/* The same from memory; `name` stands for the file in messages.  text need not end in a NUL. */
enum bell_status bell_document_parse(const char *name, const char *text, size_t length, const char *schema,
                                     const struct bell_field *table, void *object, const struct bell_sources *sources,
                                     struct bell_error *err) BELL_MUST_USE;

BELL_EXTERN_C_END

#endif
