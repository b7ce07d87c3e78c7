/* SPDX-License-Identifier: Apache-2.0
 * A whole JSON text into a cJSON tree, strictly.  Private to traces/. */
#ifndef BELL_TRACES_JSON_H
#define BELL_TRACES_JSON_H

#include "core/status.h"

#include <cjson/cJSON.h>

/* Lints, then parses; trailing text and numbers that are not finite are errors.  On BELL_OK the caller calls
 * cJSON_Delete(*root). */
enum bell_status bell_json_parse(const char *name, const char *text, size_t length, cJSON **root,
                                 struct bell_error *err) BELL_MUST_USE;

/* "an object", "text", ... for messages. */
const char *bell_json_kind(const cJSON *node);

#endif
