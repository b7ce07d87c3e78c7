/* SPDX-License-Identifier: Apache-2.0 */
#include "core/status.h"

#include <stdarg.h>
#include <stdio.h>

const char *bell_status_text(enum bell_status s)
{
    static const char *const text[] = {
#define BELL_STATUS_TEXT(name, words) words,
        BELL_STATUS_MAP(BELL_STATUS_TEXT)
#undef BELL_STATUS_TEXT
    };
    return (size_t)s < sizeof text / sizeof *text ? text[s] : "unknown status";
}

enum bell_status (bell_fail)(struct bell_error *err, enum bell_status s, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        err->status = s;
        (void)vsnprintf(err->text, sizeof err->text, format, args);
        va_end(args);
    }
    return s;
}
