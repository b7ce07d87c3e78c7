/* SPDX-License-Identifier: Apache-2.0
 * One status for the whole project.  Back-pressure (FULL, EMPTY, AGAIN) is expected; everything after it is failure. */
#ifndef BELL_CORE_STATUS_H
#define BELL_CORE_STATUS_H

#include "core/compiler.h"

BELL_EXTERN_C_BEGIN

#define BELL_STATUS_MAP(X)                                                                                             \
    X(OK, "ok")                                                                                                        \
    X(FULL, "queue is full")                                                                                           \
    X(EMPTY, "nothing there")                                                                                          \
    X(AGAIN, "not yet")                                                                                                \
    X(INVALID, "invalid input")                                                                                        \
    X(UNSUPPORTED, "not supported here")                                                                               \
    X(NO_MEMORY, "out of memory")                                                                                      \
    X(IO, "input or output failed")                                                                                    \
    X(TIMEOUT, "wait reached its bound")                                                                               \
    X(OVERFLOW, "queue depth exceeded without polling")                                                                \
    X(CQE_ERROR, "completion with error")                                                                              \
    X(CORRUPT, "data differs from what was sent")                                                                      \
    X(STOPPED, "ended because another lane failed")

enum bell_status {
#define BELL_STATUS_ENUM(name, text) BELL_##name,
    BELL_STATUS_MAP(BELL_STATUS_ENUM)
#undef BELL_STATUS_ENUM
};

/* True for failures, false for BELL_OK and expected back-pressure. */
BELL_PURE bool bell_is_failure(enum bell_status s)
{
    return s > BELL_AGAIN;
}

/* Constant text, never NULL. */
const char *bell_status_text(enum bell_status s);

/* Written by the first function that knows the cause; callers above only pass the status on.  text names file, line or
 * JSON path and what was expected. */
struct bell_error {
    enum bell_status status;
    char text[500];
};

/* Fill *err (may be NULL) and return s. */
enum bell_status bell_fail(struct bell_error *err, enum bell_status s, const char *format, ...) BELL_FORMAT(3, 4);
#ifdef __clang_analyzer__ /* says so to a reader that does not see the function */
#define bell_fail(err, s, ...) ((void)(bell_fail)(err, s, __VA_ARGS__), (s))
#endif

BELL_EXTERN_C_END

#endif
