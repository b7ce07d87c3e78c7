/* SPDX-License-Identifier: Apache-2.0
 * Small files under a root, such as those of /sys and /proc.  Paths are given by format, absolute and without the root.
 * What fails leaves "" or 0 and sets errno; opening never waits for another process. */
#ifndef BELL_HW_DOCTOR_TREE_H
#define BELL_HW_DOCTOR_TREE_H

#include "core/compiler.h"

#include <stddef.h>

#define BELL_TREE_PATH 1024
#define BELL_TREE_NAME 64

/* At most size bytes of a file; how many, or -1. */
ptrdiff_t bell_tree_bytes(const char *root, void *out, size_t size, const char *format, ...) BELL_FORMAT(4, 5);

/* The first line without white space at its ends. */
bool bell_tree_text(const char *root, char *out, size_t size, const char *format, ...) BELL_FORMAT(4, 5);

/* A whole number, decimal or 0x, that may be followed by words. */
bool bell_tree_number(const char *root, int64_t *out, const char *format, ...) BELL_FORMAT(3, 4);

/* What follows `key` and a colon or white space, in the first line that begins so. */
bool bell_tree_field(const char *root, const char *key, char *out, size_t size, const char *format, ...)
    BELL_FORMAT(5, 6);

bool bell_tree_has(const char *root, const char *format, ...) BELL_FORMAT(2, 3);

/* Names in a folder, sorted so that mlx5_2 comes before mlx5_10, without those that begin with a dot; at most `most`.
 */
size_t bell_tree_list(const char *root, char names[][BELL_TREE_NAME], size_t most, const char *format, ...)
    BELL_FORMAT(4, 5);

/* Where the links of a path lead, without the root. */
bool bell_tree_real(const char *root, char out[BELL_TREE_PATH], const char *format, ...) BELL_FORMAT(3, 4);

/* errno of the call before in words: "is not there", "may only be read by root", ... */
const char *bell_tree_why(void);

#endif
