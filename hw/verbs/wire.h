/* SPDX-License-Identifier: Apache-2.0
 * The TCP connection between two processes that are one rank each.  Rank 0 listens on HOST:PORT and takes one peer;
 * rank 1 connects, again and again while nobody listens, so it does not matter who starts first.  Every wait has a
 * bound and says what it waited for.  One thread at a time. */
#ifndef BELL_HW_VERBS_WIRE_H
#define BELL_HW_VERBS_WIRE_H

#include "hw/verbs/message.h"

struct bell_wire {
    int fd;
    uint64_t bound_ms; /* of each wait */
    char peer[64];     /* for messages */
};

/* peer: "HOST:PORT", an IPv6 address in brackets.  BELL_INVALID: it is not that.  BELL_TIMEOUT, BELL_IO.  On BELL_OK
 * the caller calls bell_wire_close. */
enum bell_status bell_wire_open(struct bell_wire *wire, const char *peer, uint32_t rank, uint64_t bound_ms,
                                struct bell_error *err) BELL_MUST_USE;
void bell_wire_close(struct bell_wire *wire);

enum bell_status bell_wire_send(struct bell_wire *wire, enum bell_message_kind kind, const uint8_t *body, size_t size,
                                struct bell_error *err) BELL_MUST_USE;

/* Is there something to receive, or the connection's end, within wait_ms? */
bool bell_wire_has_news(const struct bell_wire *wire, int wait_ms);

/* The next message, of any kind, into body[BELL_MESSAGE_MAX].  BELL_TIMEOUT: no whole message within the bound.
 * BELL_CORRUPT: not one.  BELL_IO: the connection ended. */
enum bell_status bell_wire_receive(struct bell_wire *wire, enum bell_message_kind *kind, uint8_t *body, size_t *size,
                                   struct bell_error *err) BELL_MUST_USE;

/* The same, which must be of this kind; signs of life before it are passed over. */
enum bell_status bell_wire_expect(struct bell_wire *wire, enum bell_message_kind kind, uint8_t *body, size_t *size,
                                  struct bell_error *err) BELL_MUST_USE;

/* Milliseconds of CLOCK_MONOTONIC. */
uint64_t bell_wire_now_ms(void);

#endif
