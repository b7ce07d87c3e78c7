/* SPDX-License-Identifier: Apache-2.0
 * One program on one stack on one executor, for tests: settings as text, a sink that checks, what came of it. */
#ifndef BELL_TESTS_CONFORM_EXEC_CASE_H
#define BELL_TESTS_CONFORM_EXEC_CASE_H

#include "core/exec.h"
#include "traces/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXEC_EVENTS_KEPT 65536
#define EXEC_BOUND_PS 60000000000000u /* long enough for a loaded machine under a sanitizer */

struct exec_case {
    struct bell_program program;
    struct bell_stack stack;
};

/* What the sink saw. */
struct exec_seen {
    struct bell_check *check;
    uint64_t events, count[BELL_EVENT_KINDS];
    uint64_t stop_after;            /* events until the sink fails; 0: never */
    uint8_t kind[EXEC_EVENTS_KEPT]; /* of event seq - 1 */
    uint64_t caused[BELL_EVENT_KINDS], wrong_causes;
};

/* "key=value key=value" over the defaults of stack and program; exits where a setting is wrong. */
static inline void exec_case_read(struct exec_case *c, const char *settings)
{
    char text[400];
    struct bell_error err = { BELL_OK, "" };
    memset(c, 0, sizeof *c);
    bell_field_defaults(bell_stack_fields, &c->stack);
    bell_field_defaults(bell_program_fields, &c->program);
    (void)snprintf(text, sizeof text, "%s", settings);
    for (char *rest = text, *word; (word = strtok_r(rest, " ", &rest));) {
        char *value = strchr(word, '=');
        if (value) *value++ = '\0';
        const struct bell_field *f = bell_field_find(bell_stack_fields, word);
        void *object = f ? (void *)&c->stack : (void *)&c->program;
        f = f ? f : bell_field_find(bell_program_fields, word);
        if (!f || !value || bell_field_set_text(f, object, value, &err) != BELL_OK) {
            (void)fprintf(stderr, "'%s' in '%s': %s\n", word, settings, err.text);
            exit(2);
        }
    }
    bell_stack_resolve(&c->stack);
    if (bell_stack_validate(&c->stack, &err) != BELL_OK ||
        bell_program_validate(&c->program, &c->stack, &err) != BELL_OK) {
        (void)fprintf(stderr, "'%s': %s\n", settings, err.text);
        exit(2);
    }
}

/* Which kind of event starts the work of one of `kind`; BELL_EVENT_KINDS: not followed here. */
static inline bool exec_is_cause(uint32_t kind, uint32_t cause)
{
    return (kind == BELL_EVENT_DELIVER && (cause == BELL_EVENT_DOORBELL || cause == BELL_EVENT_DBREC)) ||
           (kind == BELL_EVENT_POLL && cause == BELL_EVENT_CQE) ||
           (kind == BELL_EVENT_DEQUEUE && cause == BELL_EVENT_ENQUEUE);
}

static inline void exec_count(struct exec_seen *seen, const struct bell_event *e)
{
    seen->count[e->kind]++;
    if (seen->events < EXEC_EVENTS_KEPT) seen->kind[seen->events] = e->kind;
    if (e->cause && e->cause <= EXEC_EVENTS_KEPT) {
        seen->caused[e->kind]++;
        seen->wrong_causes += !exec_is_cause(e->kind, seen->kind[e->cause - 1]);
    }
    seen->events++;
}

static inline enum bell_status exec_write(void *context, const struct bell_event *event, struct bell_error *err)
{
    struct exec_seen *seen = context;
    exec_count(seen, event);
    if (seen->stop_after && seen->events > seen->stop_after) return bell_fail(err, BELL_IO, "the sink is full");
    return seen->check ? bell_check_event(seen->check, event, err) : BELL_OK;
}

/* Run with every event checked.  A broken rule is the run's failure.  *seen is cleared but for stop_after. */
static inline enum bell_status exec_traced(const struct bell_executor *x, const struct exec_case *c, uint64_t bound_ps,
                                           struct exec_seen *seen, struct bell_result *result, struct bell_error *err)
{
    struct bell_trace_header header;
    uint64_t stop_after = seen->stop_after;
    memset(&header, 0, sizeof header);
    memset(seen, 0, sizeof *seen);
    seen->stop_after = stop_after;
    header.depth = c->stack.depth;
    header.first_index = c->program.first_index;
    (void)snprintf(header.executor, sizeof header.executor, "%s", x->name);
    bell_field_text(bell_field_find(bell_stack_fields, "ordering"), &c->stack, header.ordering, sizeof header.ordering);
    enum bell_status s = bell_check_begin(&header, &seen->check, err);
    if (s != BELL_OK) return s;
    struct bell_sink sink = { seen, exec_write };
    struct bell_run run = { .program = &c->program, .stack = &c->stack, .sink = &sink, .bound_ps = bound_ps };
    s = x->run(&run, result, err);
    if (s == BELL_OK) s = bell_check_end(seen->check, true, err);
    bell_check_free(seen->check);
    seen->check = NULL;
    return s;
}

/* Puts of the whole run: one WQE each. */
static inline uint64_t exec_puts(const struct exec_case *c)
{
    bool round_trip = c->program.pattern == BELL_PATTERN_ROUND_TRIP;
    bool flagged = round_trip && c->stack.signal == BELL_SIGNAL_SEPARATE;
    uint64_t each =
        c->stack.submit == BELL_SUBMIT_PROXY && flagged ? 2 * (uint64_t)c->program.puts : c->program.puts + flagged;
    return bell_program_ops(&c->program) * c->program.lanes * each * (round_trip ? 2 : 1);
}

#endif
