/* SPDX-License-Identifier: Apache-2.0
 * Trace reader: a strict tokenizer for exactly the writer's records, keys in any order, one line at a time. */
#include "traces/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STRING_SIZE 256
#define PS_A_US UINT64_C(1000000)

enum place { IN_EVENTS, AFTER_LAST, AFTER_BRACKET };

struct bell_trace_reader {
    FILE *file;
    char *name;
    char *line;
    uint64_t line_number, events, dropped;
    enum place place;
    bool ended; /* the end record was there */
};

/* One line; `expected` is set by the first step that fails. */
struct scan {
    const char *at;
    const char *expected;
    char words[60]; /* when expected is made up */
};

static bool fail(struct scan *s, const char *expected)
{
    if (!s->expected) s->expected = expected;
    return false;
}

static void skip_space(struct scan *s)
{
    while (*s->at == ' ' || *s->at == '\t')
        s->at++;
}

static bool peek(struct scan *s, char c)
{
    skip_space(s);
    return *s->at == c;
}

static bool take(struct scan *s, char c, const char *expected)
{
    if (!peek(s, c)) return fail(s, expected);
    s->at++;
    return true;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The escapes that a writer of ASCII control bytes needs: \" \\ \/ and \u00XX. */
static bool take_escape(struct scan *s, char *c)
{
    if (*s->at == '"' || *s->at == '\\' || *s->at == '/') {
        *c = *s->at++;
        return true;
    }
    if (strncmp(s->at, "u00", 3) != 0 || hex_digit(s->at[3]) < 0 || hex_digit(s->at[4]) < 0)
        return fail(s, "an escape of the form \\\", \\\\, \\/ or \\u00XX");
    *c = (char)(hex_digit(s->at[3]) << 4 | hex_digit(s->at[4]));
    s->at += 5;
    return (*c > 0 && *c < 0x20) || *c == 0x7f ? true : fail(s, "\\u00XX only for a control byte");
}

static bool take_string(struct scan *s, char *out, size_t size)
{
    if (!take(s, '"', "a text in quotes")) return false;
    for (size_t n = 0; n < size; n++) {
        unsigned char c = (unsigned char)*s->at++;
        if (c == '"') {
            out[n] = '\0';
            return true;
        }
        if (c < 0x20) return fail(s, "the end of a text");
        out[n] = (char)c;
        if (c == '\\' && !take_escape(s, &out[n])) return false;
    }
    return fail(s, "a shorter text");
}

static bool take_number(struct scan *s, uint64_t max, uint64_t *out)
{
    skip_space(s);
    const char *start = s->at;
    uint64_t v = 0;
    for (; *s->at >= '0' && *s->at <= '9'; s->at++) {
        uint64_t digit = (uint64_t)(*s->at - '0');
        if (v > (UINT64_MAX - digit) / 10) return fail(s, "a number below 2^64");
        v = v * 10 + digit;
    }
    if (s->at == start || (*start == '0' && s->at - start > 1) || *s->at == '.' || (*s->at | 0x20) == 'e')
        return fail(s, "a whole number");
    if (v > max) return fail(s, "a smaller number");
    *out = v;
    return true;
}

/* Microseconds with at most six decimals, as picoseconds. */
static bool take_us(struct scan *s, uint64_t *out)
{
    static const char expected[] = "microseconds with at most six decimals";
    skip_space(s);
    const char *start = s->at;
    uint64_t v = 0;
    int decimals = -1;
    for (;; s->at++) {
        if (*s->at == '.' && decimals < 0 && s->at > start) {
            decimals = 0;
            continue;
        }
        if (*s->at < '0' || *s->at > '9') break;
        uint64_t digit = (uint64_t)(*s->at - '0');
        if (v > (UINT64_MAX - digit) / 10 || decimals == 6) return fail(s, expected);
        v = v * 10 + digit;
        decimals += decimals >= 0;
    }
    if (s->at == start || decimals == 0 || (*start == '0' && start[1] >= '0' && start[1] <= '9'))
        return fail(s, expected);
    for (int i = decimals < 0 ? 0 : decimals; i < 6; i++) {
        if (v > UINT64_MAX / 10) return fail(s, expected);
        v *= 10;
    }
    *out = v;
    return true;
}

/* The next key of an object, as its position in `keys`; *seen collects them.  *done at the closing brace. */
static bool next_key(struct scan *s, const char *const *keys, uint32_t *seen, uint32_t *which, bool *done)
{
    char key[STRING_SIZE];
    *done = false;
    if (peek(s, '}')) {
        s->at++;
        for (uint32_t k = 0; keys[k]; k++)
            if (!(*seen >> k & 1)) {
                (void)snprintf(s->words, sizeof s->words, "the key '%s'", keys[k]);
                return fail(s, s->words);
            }
        *done = true;
        return true;
    }
    if (*seen && !take(s, ',', "',' or '}'")) return false;
    if (!take_string(s, key, sizeof key) || !take(s, ':', "':'")) return false;
    for (uint32_t k = 0; keys[k]; k++) {
        if (strcmp(keys[k], key) != 0) continue;
        if (*seen >> k & 1) {
            (void)snprintf(s->words, sizeof s->words, "the key '%.30s' once", key);
            return fail(s, s->words);
        }
        *seen |= UINT32_C(1) << k;
        *which = k;
        return true;
    }
    (void)snprintf(s->words, sizeof s->words, "no key '%.30s' here", key);
    return fail(s, s->words);
}

/* Skip one object whose members are texts and numbers; they are read once the record's kind is known. */
static bool skip_object(struct scan *s)
{
    if (!take(s, '{', "'{'")) return false;
    for (bool in_string = false; *s->at && *s->at != '\n'; s->at++) {
        if (in_string && *s->at == '\\' && s->at[1])
            s->at++;
        else if (*s->at == '"')
            in_string = !in_string;
        else if (!in_string && *s->at == '{')
            return fail(s, "no object inside args");
        else if (!in_string && *s->at == '}') {
            s->at++;
            return true;
        }
    }
    return fail(s, "'}'");
}

struct record {
    char name[STRING_SIZE];
    char actor[16];
    char phase[4];
    uint64_t start_ps, duration_ps, rank, lane;
    const char *args;
};

static bool take_record(struct scan *s, struct record *r)
{
    /* Two tables, because only an X record has cat, ts and dur. */
    static const char *const keys[] = { "name", "ph", "pid", "tid", "args", "cat", "ts", "dur", NULL };
    uint32_t seen = 0, k = 0, optional = UINT32_C(7) << 5;
    bool done = false;
    if (!take(s, '{', "an event: '{'")) return false;
    for (;;) {
        /* Members that a metadata record leaves out count as seen at the closing brace. */
        uint32_t held = seen;
        if (peek(s, '}') && strcmp(r->phase, "M") == 0) {
            if (seen & optional) return fail(s, "no cat, ts or dur in metadata");
            held |= optional;
        }
        if (!next_key(s, keys, &held, &k, &done)) return false;
        if (done) return true;
        seen = held;
        bool ok = k == 0   ? take_string(s, r->name, sizeof r->name)
                  : k == 1 ? take_string(s, r->phase, sizeof r->phase)
                  : k == 2 ? take_number(s, UINT16_MAX, &r->rank)
                  : k == 3 ? take_number(s, UINT16_MAX, &r->lane)
                  : k == 5 ? take_string(s, r->actor, sizeof r->actor)
                  : k == 6 ? take_us(s, &r->start_ps)
                  : k == 7 ? take_us(s, &r->duration_ps)
                           : true;
        if (k == 4) {
            skip_space(s);
            r->args = s->at;
            ok = skip_object(s);
        }
        if (!ok) return false;
        if (k == 1 && strcmp(r->phase, "X") != 0 && strcmp(r->phase, "M") != 0) return fail(s, "ph X or M");
    }
}

static bool find_name(const char *(*name_of)(uint32_t), const char *text, uint8_t *out)
{
    for (uint32_t i = 0; name_of(i); i++)
        if (strcmp(name_of(i), text) == 0) {
            *out = (uint8_t)i;
            return true;
        }
    return false;
}

static bool take_event_args(struct scan *s, struct bell_event *e)
{
    static const char *const keys[] = { "seq",   "ps",    "dur_ps", "queue", "index",
                                        "count", "bytes", "scope",  "cause", NULL };
    uint64_t queue = 0, count = 0, bytes = 0;
    uint64_t *const into[] = { &e->seq, &e->start_ps, &e->duration_ps, &queue, &e->index, &count,
                               &bytes,  NULL,         &e->cause };
    uint32_t seen = 0, k = 0;
    bool done = false;
    if (!take(s, '{', "'{'")) return false;
    while (next_key(s, keys, &seen, &k, &done)) {
        if (done) {
            e->queue = (uint16_t)queue;
            e->count = (uint32_t)count;
            e->bytes = (uint32_t)bytes;
            return true;
        }
        uint64_t max = k == 3 ? UINT16_MAX : k == 5 || k == 6 ? UINT32_MAX : UINT64_MAX;
        char scope[16];
        if (into[k] && !take_number(s, max, into[k])) return false;
        if (!into[k] && (!take_string(s, scope, sizeof scope) || !find_name(bell_scope_name, scope, &e->scope)))
            return fail(s, "a scope: none, gpu, gpu_sc, sys or sys_sc");
    }
    return false;
}

static bool take_event(struct scan *s, const struct record *r, struct bell_event *out)
{
    struct bell_event e;
    memset(&e, 0, sizeof e);
    if (!find_name(bell_event_name, r->name, &e.kind)) return fail(s, "the name of an event");
    if (!find_name(bell_actor_name, r->actor, &e.actor)) return fail(s, "cat gpu, cpu, nic, pcie or wire");
    s->at = r->args;
    if (!take_event_args(s, &e)) return false;
    if (e.start_ps != r->start_ps) return fail(s, "ts to say the same as ps");
    if (e.duration_ps != r->duration_ps) return fail(s, "dur to say the same as dur_ps");
    e.rank = (uint16_t)r->rank;
    e.lane = (uint16_t)r->lane;
    *out = e;
    return true;
}

static bool take_header_args(struct scan *s, struct bell_trace_header *h)
{
    const char *keys[24];
    char seed[20];
    uint32_t seen = 0, k = 0, texts = 0, optional = 0;
    uint64_t depth = 0;
    bool done = false;
    for (; bell_trace_texts[texts].key; texts++) {
        keys[texts] = bell_trace_texts[texts].key;
        if (strcmp(keys[texts], "machine") == 0) optional |= UINT32_C(1) << texts;
    }
    optional |= UINT32_C(1) << (texts + 2);
    keys[texts] = "seed";
    keys[texts + 1] = "depth";
    keys[texts + 2] = "first_index";
    keys[texts + 3] = NULL;
    if (!take(s, '{', "'{'")) return false;
    for (;;) {
        if (peek(s, '}')) seen |= optional; /* may be left out */
        if (!next_key(s, keys, &seen, &k, &done)) return false;
        if (done) {
            h->depth = (uint32_t)depth;
            return strcmp(h->schema, BELL_TRACE_SCHEMA) == 0 ? true : fail(s, "schema \"" BELL_TRACE_SCHEMA "\"");
        }
        if (k < texts && !take_string(s, (char *)h + bell_trace_texts[k].offset, bell_trace_texts[k].size))
            return false;
        if (k == texts) {
            if (!take_string(s, seed, sizeof seed) || strlen(seed) != 16 || strspn(seed, "0123456789abcdef") != 16)
                return fail(s, "a seed of 16 hex digits in quotes");
            h->seed = strtoull(seed, NULL, 16);
        }
        if (k == texts + 1 && !take_number(s, UINT32_MAX, &depth)) return false;
        if (k == texts + 2 && !take_number(s, UINT64_MAX, &h->first_index)) return false;
    }
}

static bool take_end_args(struct scan *s, uint64_t *events, uint64_t *dropped)
{
    static const char *const keys[] = { "events", "dropped", NULL };
    uint32_t seen = 0, k = 0;
    bool done = false;
    if (!take(s, '{', "'{'")) return false;
    while (next_key(s, keys, &seen, &k, &done)) {
        if (done) return true;
        if (!take_number(s, UINT64_MAX, k == 0 ? events : dropped)) return false;
    }
    return false;
}

static bool take_name_args(struct scan *s)
{
    static const char *const keys[] = { "name", NULL };
    char text[STRING_SIZE];
    uint32_t seen = 0, k = 0;
    bool done = false;
    if (!take(s, '{', "'{'")) return false;
    while (next_key(s, keys, &seen, &k, &done)) {
        if (done) return true;
        if (!take_string(s, text, sizeof text)) return false;
    }
    return false;
}

static enum bell_status wrong(const struct bell_trace_reader *r, const char *expected, struct bell_error *err)
{
    return bell_fail(err, BELL_INVALID, "%s:%" PRIu64 ": expected %s", r->name, r->line_number, expected);
}

/* BELL_OK: r->line holds a whole line without its newline.  BELL_EMPTY: nothing left; a line without its newline that
 * does not end in a bracket was cut off in the middle of a write and counts as nothing. */
static enum bell_status next_line(struct bell_trace_reader *r, struct bell_error *err)
{
    errno = 0;
    if (!fgets(r->line, (int)BELL_TRACE_LINE_MAX + 2, r->file)) {
        if (ferror(r->file)) return bell_fail(err, BELL_IO, "%s: cannot read: %s", r->name, strerror(errno));
        return BELL_EMPTY;
    }
    r->line_number++;
    size_t n = strlen(r->line);
    if (n && r->line[n - 1] == '\n') {
        r->line[n - 1] = '\0';
        return BELL_OK;
    }
    if (!feof(r->file) || n > BELL_TRACE_LINE_MAX) return wrong(r, "a line of at most 65536 bytes without NUL", err);
    return strcmp(r->line, "]") == 0 ? BELL_OK : BELL_EMPTY;
}

static bool take_end(struct bell_trace_reader *r, struct scan *s)
{
    uint64_t events = 0;
    if (!take_end_args(s, &events, &r->dropped)) return false;
    if (r->place != AFTER_LAST) return fail(s, "no ',' after the end record");
    r->ended = true;
    return events == r->events ? true : fail(s, "the end record to count the events of the file");
}

/* One record; *is_event when it was an event, else metadata that the reader keeps. */
static bool take_line(struct bell_trace_reader *r, struct scan *s, struct bell_event *event, bool *is_event)
{
    struct record record;
    memset(&record, 0, sizeof record);
    *is_event = false;
    if (!take_record(s, &record)) return false;
    if (peek(s, ','))
        s->at++;
    else
        r->place = AFTER_LAST;
    skip_space(s);
    if (*s->at) return fail(s, "the end of the line");
    if (record.phase[0] == 'X') {
        *is_event = true;
        r->events++;
        return take_event(s, &record, event);
    }
    s->at = record.args;
    if (strcmp(record.name, "bellwether_end") == 0) return take_end(r, s);
    if (strcmp(record.name, "process_name") == 0 || strcmp(record.name, "thread_name") == 0) return take_name_args(s);
    return fail(s, "metadata process_name, thread_name or bellwether_end");
}

enum bell_status bell_trace_next(struct bell_trace_reader *r, struct bell_event *event, struct bell_error *err)
{
    for (;;) {
        enum bell_status s = next_line(r, err);
        if (s != BELL_OK) return s;
        if (r->place == AFTER_BRACKET) return wrong(r, "nothing after ']'", err);
        if (strcmp(r->line, "]") == 0) {
            if (r->place != AFTER_LAST) return wrong(r, "no ',' before ']'", err);
            r->place = AFTER_BRACKET;
            continue;
        }
        if (r->place == AFTER_LAST) return wrong(r, "']' after a record without ','", err);
        struct scan scan = { r->line, NULL, "" };
        bool is_event = false;
        if (!take_line(r, &scan, event, &is_event)) return wrong(r, scan.expected, err);
        if (is_event) return BELL_OK;
    }
}

static enum bell_status read_header(struct bell_trace_reader *r, struct bell_trace_header *header,
                                    struct bell_error *err)
{
    struct bell_trace_header h;
    struct record record;
    memset(&h, 0, sizeof h);
    memset(&record, 0, sizeof record);
    enum bell_status s = next_line(r, err);
    if (s == BELL_EMPTY || (s == BELL_OK && strcmp(r->line, "[") != 0))
        return wrong(r, "a trace: '[' alone on the first line", err);
    if (s == BELL_OK) s = next_line(r, err);
    if (s == BELL_EMPTY) return wrong(r, "the header on the second line", err);
    if (s != BELL_OK) return s;
    struct scan scan = { r->line, NULL, "" };
    if (!take_record(&scan, &record)) return wrong(r, scan.expected, err);
    if (record.phase[0] != 'M' || strcmp(record.name, "bellwether") != 0)
        return wrong(r, "the header: metadata named bellwether", err);
    if (peek(&scan, ','))
        scan.at++;
    else
        r->place = AFTER_LAST;
    skip_space(&scan);
    if (*scan.at) return wrong(r, "the end of the line", err);
    scan.at = record.args;
    if (!take_header_args(&scan, &h)) return wrong(r, scan.expected, err);
    *header = h;
    return BELL_OK;
}

/* Takes `file` over. */
static enum bell_status open_stream(const char *name, FILE *file, struct bell_trace_reader **out,
                                    struct bell_trace_header *header, struct bell_error *err)
{
    if (!file) return bell_fail(err, BELL_IO, "%s: cannot open: %s", name, strerror(errno));
    struct bell_trace_reader *r = calloc(1, sizeof *r);
    if (!r) {
        (void)fclose(file);
        return bell_fail(err, BELL_NO_MEMORY, "%s: out of memory", name);
    }
    r->file = file;
    r->name = strdup(name);
    r->line = malloc(BELL_TRACE_LINE_MAX + 2);
    enum bell_status s =
        r->name && r->line ? read_header(r, header, err) : bell_fail(err, BELL_NO_MEMORY, "%s: out of memory", name);
    if (s != BELL_OK)
        bell_trace_free(r);
    else
        *out = r;
    return s;
}

enum bell_status bell_trace_open(const char *path, struct bell_trace_reader **out, struct bell_trace_header *header,
                                 struct bell_error *err)
{
    return open_stream(path, fopen(path, "rb"), out, header, err);
}

enum bell_status bell_trace_open_memory(const char *name, const void *bytes, size_t length,
                                        struct bell_trace_reader **out, struct bell_trace_header *header,
                                        struct bell_error *err)
{
    if (!length) return bell_fail(err, BELL_INVALID, "%s:1: expected a trace: '[' alone on the first line", name);
    /* Opened for reading only: the cast loses no promise. */
    return open_stream(name, fmemopen((void *)(uintptr_t)bytes, length, "rb"), out, header, err);
}

bool bell_trace_is_whole(const struct bell_trace_reader *r)
{
    return r->ended && r->dropped == 0;
}

uint64_t bell_trace_dropped(const struct bell_trace_reader *r)
{
    return r->dropped;
}

uint64_t bell_trace_line(const struct bell_trace_reader *r)
{
    return r->line_number;
}

void bell_trace_free(struct bell_trace_reader *r)
{
    if (!r) return;
    if (r->file) (void)fclose(r->file);
    free(r->name);
    free(r->line);
    free(r);
}
