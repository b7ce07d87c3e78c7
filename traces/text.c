/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int bell_text_line(const char *text, size_t at)
{
    int line = 1;
    for (size_t i = 0; i < at; i++)
        line += text[i] == '\n';
    return line;
}

static enum bell_status too_large(const char *name, struct bell_error *err)
{
    return bell_fail(err, BELL_INVALID, "%s: larger than %zu bytes", name, BELL_TEXT_BYTES_MAX);
}

enum bell_status bell_text_load(const char *path, char **text, size_t *length, struct bell_error *err)
{
    FILE *f = fopen(path, "rb");
    if (!f) return bell_fail(err, BELL_IO, "%s: cannot open: %s", path, strerror(errno));
    size_t room = 1 << 14, used = 0;
    char *buffer = malloc(room);
    enum bell_status s = BELL_OK;
    while (buffer) {
        used += fread(buffer + used, 1, room - 1 - used, f);
        if (used < room - 1 || used > BELL_TEXT_BYTES_MAX) break;
        char *more = realloc(buffer, room * 2);
        if (!more) free(buffer);
        buffer = more;
        room *= 2;
    }
    if (!buffer)
        s = bell_fail(err, BELL_NO_MEMORY, "%s: out of memory", path);
    else if (ferror(f))
        s = bell_fail(err, BELL_IO, "%s: cannot read: %s", path, strerror(errno));
    else if (used > BELL_TEXT_BYTES_MAX)
        s = too_large(path, err);
    (void)fclose(f);
    if (s != BELL_OK) {
        free(buffer);
        return s;
    }
    buffer[used] = '\0';
    *text = buffer;
    *length = used;
    return BELL_OK;
}

struct lint {
    const unsigned char *text;
    size_t length, at;
    const char *expected;
};

/* Step over one UTF-8 sequence: shortest form, no surrogates, at most U+10FFFF. */
static bool take_utf8(struct lint *l)
{
    const unsigned char *p = l->text + l->at;
    size_t left = l->length - l->at, more = p[0] >= 0xf0 ? 3 : p[0] >= 0xe0 ? 2 : 1;
    if (p[0] < 0xc2 || p[0] > 0xf4 || left <= more) return false;
    for (size_t i = 1; i <= more; i++)
        if ((p[i] & 0xc0) != 0x80) return false;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf0 && p[1] < 0x90) ||
        (p[0] == 0xf4 && p[1] > 0x8f))
        return false;
    l->at += more + 1;
    return true;
}

static bool lint_string(struct lint *l)
{
    for (l->at++; l->at < l->length;) {
        unsigned char c = l->text[l->at];
        if (c == '"') {
            l->at++;
            return true;
        }
        if (c < 0x20) {
            l->expected = "no control byte in a string";
            return false;
        }
        if (c == '\\') {
            if (l->length - l->at >= 6 && memcmp(l->text + l->at, "\\u0000", 6) == 0) {
                l->expected = "no \\u0000 in a string";
                return false;
            }
            l->at += l->length - l->at >= 2 ? 2 : 1;
        } else if (c < 0x80) {
            l->at++;
        } else if (!take_utf8(l)) {
            l->expected = "UTF-8";
            return false;
        }
    }
    l->expected = "the end of a string";
    return false;
}

static size_t digits(const struct lint *l, size_t at)
{
    size_t n = 0;
    while (at + n < l->length && l->text[at + n] >= '0' && l->text[at + n] <= '9')
        n++;
    return n;
}

static bool lint_number(struct lint *l)
{
    size_t at = l->at + (l->text[l->at] == '-'), n = digits(l, at);
    l->expected = "a number in JSON's form";
    if (n == 0 || (n > 1 && l->text[at] == '0')) return false;
    at += n;
    if (at < l->length && l->text[at] == '.') {
        n = digits(l, at + 1);
        if (n == 0) return false;
        at += n + 1;
    }
    if (at < l->length && (l->text[at] | 0x20) == 'e') {
        at++;
        if (at < l->length && (l->text[at] == '+' || l->text[at] == '-')) at++;
        n = digits(l, at);
        if (n == 0) return false;
        at += n;
    }
    if (at - l->at > 60) return false;
    l->at = at;
    return true;
}

static bool lint_all(struct lint *l)
{
    uint64_t objects = 0; /* bit d: bracket d is an object */
    uint32_t depth = 0;
    while (l->at < l->length) {
        unsigned char c = l->text[l->at];
        if (c == '"') {
            if (!lint_string(l)) return false;
            continue;
        }
        if (c == '-' || (c >= '0' && c <= '9')) {
            if (!lint_number(l)) return false;
            continue;
        }
        if (c == '{' || c == '[') {
            l->expected = "nesting of at most 32";
            if (depth == BELL_TEXT_DEPTH_MAX) return false;
            objects = (objects & ~(UINT64_C(1) << depth)) | (uint64_t)(c == '{') << depth;
            depth++;
        } else if (c == '}' || c == ']') {
            l->expected = "balanced brackets";
            if (depth == 0 || (objects >> (depth - 1) & 1) != (c == '}')) return false;
            depth--;
        } else if (c >= 0x7f || (c < 0x20 && c != '\n' && c != '\t' && c != '\r')) {
            l->expected = "plain JSON, found a control or non-ASCII byte outside a string";
            return false;
        }
        l->at++;
    }
    l->expected = "balanced brackets, found the end of the text";
    return depth == 0;
}

enum bell_status bell_text_lint(const char *name, const char *text, size_t length, struct bell_error *err)
{
    struct lint l = { (const unsigned char *)text, length, 0, "" };
    if (length > BELL_TEXT_BYTES_MAX) return too_large(name, err);
    if (lint_all(&l)) return BELL_OK;
    return bell_fail(err, BELL_INVALID, "%s:%d: expected %s", name, bell_text_line(text, l.at), l.expected);
}
