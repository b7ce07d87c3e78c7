/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/verbs/message.h"

#include "core/endian.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define HELLO_BYTES 48u
#define END_BYTES 8u
#define MTU_MAX 5
#define FLAG_ROCE 1
#define FLAG_GLOBAL 2

static const char magic[4] = { 'b', 'e', 'l', 'l' };

const char *bell_message_name(uint32_t kind)
{
    static const char *const names[BELL_MESSAGE_KINDS] = { "?", "HELLO", "READY", "BEAT", "TIMES", "RAN", "VERIFIED" };
    return kind < BELL_MESSAGE_KINDS ? names[kind] : names[0];
}

void bell_message_put_header(uint8_t *out, enum bell_message_kind kind, uint32_t body_bytes)
{
    memcpy(out, magic, sizeof magic);
    bell_store_be16(out + 4, BELL_MESSAGE_VERSION);
    bell_store_be16(out + 6, (uint16_t)kind);
    bell_store_be32(out + 8, body_bytes);
}

enum bell_status bell_message_get_header(const uint8_t *in, enum bell_message_kind *kind, uint32_t *body_bytes,
                                         struct bell_error *err)
{
    uint32_t version = bell_load_be16(in + 4), number = bell_load_be16(in + 6);
    *body_bytes = bell_load_be32(in + 8);
    if (memcmp(in, magic, sizeof magic) != 0)
        return bell_fail(err, BELL_CORRUPT, "it begins with bytes %02x %02x %02x %02x: not a bellwether", in[0], in[1],
                         in[2], in[3]);
    if (version != BELL_MESSAGE_VERSION)
        return bell_fail(err, BELL_CORRUPT, "it speaks version %u, this one %u: run the same bellwether on both sides",
                         version, BELL_MESSAGE_VERSION);
    if (number == 0 || number >= BELL_MESSAGE_KINDS)
        return bell_fail(err, BELL_CORRUPT, "message of unknown kind %u", number);
    *kind = (enum bell_message_kind)number;
    if (*body_bytes > BELL_MESSAGE_MAX)
        return bell_fail(err, BELL_CORRUPT, "%s of %u bytes, expected at most %u", bell_message_name(number),
                         *body_bytes, BELL_MESSAGE_MAX);
    return BELL_OK;
}

size_t bell_hello_size(const struct bell_hello *h)
{
    return HELLO_BYTES + (size_t)h->queues * END_BYTES + h->terms_bytes;
}

void bell_hello_put(const struct bell_hello *h, uint8_t *out)
{
    bell_store_be32(out, h->rank);
    bell_store_be32(out + 4, h->queues);
    bell_store_be64(out + 8, h->address);
    bell_store_be64(out + 16, h->size_bytes);
    bell_store_be32(out + 24, h->rkey);
    bell_store_be16(out + 28, h->lid);
    out[30] = h->mtu;
    out[31] = (uint8_t)((h->is_roce ? FLAG_ROCE : 0) | (h->has_global ? FLAG_GLOBAL : 0));
    memcpy(out + 32, h->gid, sizeof h->gid);
    uint8_t *at = out + HELLO_BYTES;
    for (uint32_t i = 0; i < h->queues; i++, at += END_BYTES) {
        bell_store_be32(at, h->end[i].qpn);
        bell_store_be32(at + 4, h->end[i].psn);
    }
    memcpy(at, h->terms, h->terms_bytes);
}

/* ---- terms ---- */

static uint32_t put_table(const struct bell_field *table, const void *object, const char *part, char *out,
                          uint32_t used)
{
    for (const struct bell_field *f = table; f->key; f++) {
        char value[64];
        if (f->type == BELL_FIELD_STRING) continue;
        bell_field_text(f, object, value, sizeof value);
        int n = snprintf(out + used, BELL_TERMS_MAX - used, "%s.%s=%s\n", part, f->key, value);
        if (n < 0 || (uint32_t)n >= BELL_TERMS_MAX - used) break;
        used += (uint32_t)n;
    }
    return used;
}

uint32_t bell_terms_put(const struct bell_program *program, const struct bell_stack *stack, char *out)
{
    return put_table(bell_stack_fields, stack, "stack", out,
                     put_table(bell_program_fields, program, "experiment", out, 0));
}

/* The line of terms[bytes] at `at`, cut to what fits; control characters of a stranger are not passed on. */
static void copy_line(const char *terms, uint32_t bytes, uint32_t at, char *out, size_t size)
{
    size_t n = 0;
    while (at > 0 && terms[at - 1] != '\n')
        at--;
    for (; at < bytes && terms[at] != '\n' && n + 1 < size; at++, n++)
        out[n] = terms[at] >= ' ' && terms[at] <= '~' ? terms[at] : '?';
    out[n] = '\0';
}

static enum bell_status compare_terms(const struct bell_hello *own, const struct bell_hello *peer,
                                      struct bell_error *err)
{
    char here[80], there[80];
    uint32_t shared = own->terms_bytes < peer->terms_bytes ? own->terms_bytes : peer->terms_bytes, at = 0;
    if (own->terms_bytes == peer->terms_bytes && memcmp(own->terms, peer->terms, shared) == 0) return BELL_OK;
    while (at < shared && own->terms[at] == peer->terms[at])
        at++;
    copy_line(own->terms, own->terms_bytes, at, here, sizeof here);
    copy_line(peer->terms, peer->terms_bytes, at, there, sizeof there);
    return bell_fail(err, BELL_INVALID, "both sides must run the same: here %s, there %s", here, there);
}

/* ---- HELLO ---- */

static enum bell_status check_hello(const struct bell_hello *own, const struct bell_hello *h, struct bell_error *err)
{
    if (h->rank > 1) return bell_fail(err, BELL_CORRUPT, "HELLO of rank %u, expected 0 or 1", h->rank);
    enum bell_status s = compare_terms(own, h, err);
    if (s != BELL_OK) return s;
    if (h->rank == own->rank)
        return bell_fail(err, BELL_INVALID,
                         "machine.rank: both sides are rank %u, expected 0 on one and 1 on the other", h->rank);
    if (h->queues != own->queues || h->size_bytes != own->size_bytes)
        return bell_fail(err, BELL_CORRUPT, "HELLO with %u queues and %" PRIu64 " bytes, expected %u and %" PRIu64,
                         h->queues, h->size_bytes, own->queues, own->size_bytes);
    if (h->mtu < 1 || h->mtu > MTU_MAX)
        return bell_fail(err, BELL_CORRUPT, "HELLO with MTU code %u, expected 1 to %d", h->mtu, MTU_MAX);
    if (h->is_roce != own->is_roce || h->has_global != own->has_global)
        return bell_fail(err, BELL_INVALID, "the devices do not match: here %s%s, there %s%s",
                         own->is_roce ? "RoCE" : "InfiniBand", own->has_global ? " with a GID" : "",
                         h->is_roce ? "RoCE" : "InfiniBand", h->has_global ? " with a GID" : "");
    return BELL_OK;
}

enum bell_status bell_hello_get(const uint8_t *body, size_t size, const struct bell_hello *own, struct bell_hello *out,
                                struct bell_error *err)
{
    struct bell_hello_end *end = out->end;
    memset(out, 0, sizeof *out);
    out->end = end;
    if (size < HELLO_BYTES)
        return bell_fail(err, BELL_CORRUPT, "HELLO of %zu bytes, expected at least %u", size, HELLO_BYTES);
    out->rank = bell_load_be32(body);
    out->queues = bell_load_be32(body + 4);
    out->address = bell_load_be64(body + 8);
    out->size_bytes = bell_load_be64(body + 16);
    out->rkey = bell_load_be32(body + 24);
    out->lid = bell_load_be16(body + 28);
    out->mtu = body[30];
    out->is_roce = (body[31] & FLAG_ROCE) != 0;
    out->has_global = (body[31] & FLAG_GLOBAL) != 0;
    memcpy(out->gid, body + 32, sizeof out->gid);
    size_t left = size - HELLO_BYTES;
    if (out->queues > left / END_BYTES || left - (size_t)out->queues * END_BYTES > BELL_TERMS_MAX)
        return bell_fail(err, BELL_CORRUPT, "HELLO of %zu bytes does not hold %u queues and at most %u bytes of terms",
                         size, out->queues, BELL_TERMS_MAX);
    const uint8_t *at = body + HELLO_BYTES;
    out->terms = (const char *)at + (size_t)out->queues * END_BYTES;
    out->terms_bytes = (uint32_t)(left - (size_t)out->queues * END_BYTES);
    enum bell_status s = check_hello(own, out, err);
    for (uint32_t i = 0; s == BELL_OK && i < out->queues; i++, at += END_BYTES) {
        end[i].qpn = bell_load_be32(at);
        end[i].psn = bell_load_be32(at + 4);
        if (end[i].qpn > 0xffffff || end[i].psn > 0xffffff)
            s = bell_fail(err, BELL_CORRUPT, "HELLO with QPN 0x%x and PSN 0x%x of queue %u, expected 24 bits",
                          end[i].qpn, end[i].psn, i);
    }
    return s;
}

/* ---- RAN, VERIFIED ---- */

size_t bell_end_put(const struct bell_error *end, uint8_t *out)
{
    size_t n = end->status == BELL_OK ? 0 : strnlen(end->text, sizeof end->text - 1);
    bell_store_be32(out, (uint32_t)end->status);
    memcpy(out + 4, end->text, n);
    return 4 + n;
}

enum bell_status bell_end_get(const uint8_t *body, size_t size, struct bell_error *out, struct bell_error *err)
{
    if (size < 4 || size - 4 >= sizeof out->text || bell_load_be32(body) > BELL_STOPPED)
        return bell_fail(err, BELL_CORRUPT, "RAN or VERIFIED of %zu bytes, expected a status and at most %zu of text",
                         size, sizeof out->text - 1);
    out->status = (enum bell_status)bell_load_be32(body);
    for (size_t i = 4; i < size; i++)
        out->text[i - 4] = (char)(body[i] >= ' ' && body[i] <= '~' ? body[i] : '?');
    out->text[size - 4] = '\0';
    return BELL_OK;
}
