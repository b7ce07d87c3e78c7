/* SPDX-License-Identifier: Apache-2.0
 * What two processes that are one rank each tell each other over TCP, as bytes.  All numbers are big-endian.
 *
 *   header, 12 bytes   "bell", u16 version, u16 kind, u32 bytes of the body
 *   HELLO              u32 rank, u32 queues, u64 target address, u64 target bytes, u32 rkey, u16 LID, u8 MTU code,
 *                      u8 flags (1 RoCE, 2 global routing), 16 bytes GID, then u32 QPN, u32 first PSN of each queue,
 *                      then the terms: the parameters of program and stack, a "key=value" a line
 *   READY              empty: all queue pairs are connected
 *   BEAT               empty: still running
 *   TIMES              u64 issue, u64 total, in ps, of one operation after the other: rank 0's samples
 *   RAN, VERIFIED      u32 enum bell_status, then text without an end mark: how the run, or the check, ended
 *
 * Everything that comes in is checked before it is used. */
#ifndef BELL_HW_VERBS_MESSAGE_H
#define BELL_HW_VERBS_MESSAGE_H

#include "core/program.h"

#define BELL_MESSAGE_VERSION 1u
#define BELL_MESSAGE_HEADER 12u
#define BELL_MESSAGE_MAX 65536u /* bytes of a body */
#define BELL_TIMES_MAX 4096u    /* samples of one TIMES message, at most */
#define BELL_TERMS_MAX 8192u

enum bell_message_kind {
    BELL_MESSAGE_HELLO = 1,
    BELL_MESSAGE_READY,
    BELL_MESSAGE_BEAT,
    BELL_MESSAGE_TIMES,
    BELL_MESSAGE_RAN,
    BELL_MESSAGE_VERIFIED,
    BELL_MESSAGE_KINDS
};

/* Constant text; kind in range. */
const char *bell_message_name(uint32_t kind);

struct bell_hello_end {
    uint32_t qpn, psn;
};

struct bell_hello {
    uint32_t rank, queues;
    uint64_t address, size_bytes; /* of the memory that the peer writes to */
    uint32_t rkey;
    uint16_t lid;
    uint8_t mtu; /* 1 to 5: 256 to 4096 bytes */
    bool is_roce, has_global;
    uint8_t gid[16];
    struct bell_hello_end *end; /* queues of them */
    const char *terms;          /* not NUL-terminated once read */
    uint32_t terms_bytes;
};

/* The header into out[BELL_MESSAGE_HEADER]. */
void bell_message_put_header(uint8_t *out, enum bell_message_kind kind, uint32_t body_bytes);

/* BELL_CORRUPT: not such a header, another version, an unknown kind, or a body that is longer than any. */
enum bell_status bell_message_get_header(const uint8_t *in, enum bell_message_kind *kind, uint32_t *body_bytes,
                                         struct bell_error *err) BELL_MUST_USE;

/* Bytes of the body; at most BELL_MESSAGE_MAX when queues <= 4096 and terms_bytes <= BELL_TERMS_MAX. */
size_t bell_hello_size(const struct bell_hello *hello);
void bell_hello_put(const struct bell_hello *hello, uint8_t *out);

/* From a body.  out->end must have room for `queues` ends; out->terms points into the body.  The terms are compared
 * with `terms` first, because they say best what differs.  BELL_CORRUPT: not a HELLO.  BELL_INVALID: the peer runs
 * something else, or is this rank too. */
enum bell_status bell_hello_get(const uint8_t *body, size_t size, const struct bell_hello *own, struct bell_hello *out,
                                struct bell_error *err) BELL_MUST_USE;

/* Parameters of program and stack into out[BELL_TERMS_MAX]; returns their bytes. */
uint32_t bell_terms_put(const struct bell_program *program, const struct bell_stack *stack, char *out);

/* RAN and VERIFIED.  Returns the bytes of the body, at most 4 + sizeof err->text. */
size_t bell_end_put(const struct bell_error *end, uint8_t *out);
enum bell_status bell_end_get(const uint8_t *body, size_t size, struct bell_error *out,
                              struct bell_error *err) BELL_MUST_USE;

#endif
