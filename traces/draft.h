/* SPDX-License-Identifier: Apache-2.0
 * A file that gets its name when it is whole. */
#ifndef BELL_TRACES_DRAFT_H
#define BELL_TRACES_DRAFT_H

#include "core/status.h"

#include <limits.h>

BELL_EXTERN_C_BEGIN

struct bell_draft {
    int fd; /* to write to; -1: closed */
    char path[PATH_MAX];
    char temporary[PATH_MAX]; /* its name until then; "": path is written directly */
};

/* Open a temporary file beside `path`.  A path that exists and is not a regular file (a pipe, /dev/stdout) is opened as
 * it is.  BELL_IO: it cannot be created, or is a directory.  BELL_INVALID: the path is too long. */
enum bell_status bell_draft_open(struct bell_draft *draft, const char *path, struct bell_error *err) BELL_MUST_USE;

/* Close it and give it its name.  On BELL_IO there is no file. */
enum bell_status bell_draft_keep(struct bell_draft *draft, struct bell_error *err) BELL_MUST_USE;

/* Close and remove it.  Does nothing once it is kept or dropped. */
void bell_draft_drop(struct bell_draft *draft);

BELL_EXTERN_C_END

#endif
