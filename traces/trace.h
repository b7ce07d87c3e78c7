/* SPDX-License-Identifier: Apache-2.0
 * A trace on disk: Chrome's JSON array form, one event a line, openable in Perfetto.  Writer and reader stream: memory
 * does not grow with the file.
 *
 * Line 1 is `[`, line 2 the header, then events and lane names, then an end record and `]`.  A run that was cut off
 * lacks the last two and stays readable.  `ts` and `dur` are for the viewer and say the same as `ps` and `dur_ps`. */
#ifndef BELL_TRACES_TRACE_H
#define BELL_TRACES_TRACE_H

#include "core/event.h"

BELL_EXTERN_C_BEGIN

#define BELL_TRACE_SCHEMA "bell.trace/1"
#define BELL_TRACE_LINE_MAX ((size_t)1 << 16)

/* What was run, and where.  All text is NUL-terminated. */
struct bell_trace_header {
    char schema[16]; /* BELL_TRACE_SCHEMA; the writer fills an empty one in */
    char executor[16];
    char platform[24];
    char stack[24];
    char experiment[24];
    char ordering[28];     /* of the stack; "none" and "" switch the fence rule of the checker off */
    char clock_domain[16]; /* "virtual", "monotonic" */
    char path[24];         /* which really ran: "gpu-doorbell", "host-doorbell", "proxy" */
    char processor[160];    /* SM clock, CPU clock and affinity, in words */
    char digest[20];       /* of the parameters, hex */
    char revision[44];
    char machine[400]; /* what ran it, in real time: driver, NIC, governor, limits; "" in virtual time or not said */
    uint64_t seed;
    uint32_t depth;       /* of an SQ, in 64 B blocks; 0: unknown */
    uint64_t first_index; /* where the index of each SQ starts; 0 when the file does not say */
};

struct bell_trace_writer;
struct bell_trace_reader;

/* Write to a temporary file beside `path`; close gives it its name.  A path that exists and is not a regular file (a
 * pipe, a terminal) is written directly.  header NULL: bell_trace_begin gives it later.
 * On BELL_OK end with bell_trace_close or bell_trace_abort. */
enum bell_status bell_trace_create(const char *path, const struct bell_trace_header *header,
                                   struct bell_trace_writer **out, struct bell_error *err) BELL_MUST_USE;

/* The header, when it was not known at creation; before the first event or name. */
void bell_trace_begin(struct bell_trace_writer *w, const struct bell_trace_header *header);

/* After `events` events the rest is only counted; the end record says how many.  0: no limit. */
void bell_trace_limit(struct bell_trace_writer *w, uint64_t events);

/* Where an executor sends its events; valid until close or abort.  One thread at a time. */
struct bell_sink bell_trace_sink(struct bell_trace_writer *w);
enum bell_status bell_trace_write(struct bell_trace_writer *w, const struct bell_event *event,
                                  struct bell_error *err) BELL_MUST_USE;

/* Names for the viewer; UTF-8, cut at 200 bytes. */
enum bell_status bell_trace_name_rank(struct bell_trace_writer *w, uint16_t rank, const char *text,
                                      struct bell_error *err) BELL_MUST_USE;
enum bell_status bell_trace_name_lane(struct bell_trace_writer *w, uint16_t rank, uint16_t lane, const char *text,
                                      struct bell_error *err) BELL_MUST_USE;

/* Flush and rename.  w is gone whatever comes back; after a failure (BELL_IO) no file has the name. */
enum bell_status bell_trace_close(struct bell_trace_writer *w, struct bell_error *err) BELL_MUST_USE;

/* Remove the temporary file.  w may be NULL. */
void bell_trace_abort(struct bell_trace_writer *w);

/* On BELL_OK the caller calls bell_trace_free. */
enum bell_status bell_trace_open(const char *path, struct bell_trace_reader **out, struct bell_trace_header *header,
                                 struct bell_error *err) BELL_MUST_USE;

/* The same from memory that outlives the reader; `name` stands for the file in messages. */
enum bell_status bell_trace_open_memory(const char *name, const void *bytes, size_t length,
                                        struct bell_trace_reader **out, struct bell_trace_header *header,
                                        struct bell_error *err) BELL_MUST_USE;

/* BELL_OK and the next event, BELL_EMPTY at the end, or a failure that names file and line. */
enum bell_status bell_trace_next(struct bell_trace_reader *r, struct bell_event *event,
                                 struct bell_error *err) BELL_MUST_USE;

/* After BELL_EMPTY: the end record was there and no event was dropped. */
bool bell_trace_is_whole(const struct bell_trace_reader *r);
uint64_t bell_trace_dropped(const struct bell_trace_reader *r);

/* Line of the event that bell_trace_next gave last, from 1. */
uint64_t bell_trace_line(const struct bell_trace_reader *r);

void bell_trace_free(struct bell_trace_reader *r);

/* Text members of the header, in the order of the file; drives writer, reader and diff. */
struct bell_trace_text {
    const char *key;
    size_t offset, size;
};
extern const struct bell_trace_text bell_trace_texts[]; /* ends in a NULL key */

BELL_EXTERN_C_END

#endif
