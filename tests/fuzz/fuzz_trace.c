/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a trace, through the reader and the checker: an error or known kinds, in bounded memory. */
#include "traces/check.h"
#include "traces/trace.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bell_error err = { BELL_OK, "" };
    struct bell_trace_header header;
    struct bell_trace_reader *reader = NULL;
    struct bell_check *check = NULL;
    struct bell_event e;
    if (bell_trace_open_memory("f", data, size, &reader, &header, &err) != BELL_OK) {
        if (err.text[0] == '\0') abort();
        return 0;
    }
    if (bell_check_begin(&header, &check, &err) != BELL_OK) abort();
    enum bell_status s, checked = BELL_OK;
    while ((s = bell_trace_next(reader, &e, &err)) == BELL_OK) {
        if (!bell_event_name(e.kind) || !bell_scope_name(e.scope) || !bell_actor_name(e.actor)) abort();
        if (checked == BELL_OK) checked = bell_check_event(check, &e, &err);
    }
    if (s == BELL_EMPTY && checked == BELL_OK) checked = bell_check_end(check, bell_trace_is_whole(reader), &err);
    if ((bell_is_failure(s) || bell_is_failure(checked)) && err.text[0] == '\0') abort();
    bell_check_free(check);
    bell_trace_free(reader);
    return 0;
}
