/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/verbs/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PAUSE_MS 50 /* between two attempts to connect */

uint64_t bell_wire_now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

/* What is left until a deadline, as poll() takes it. */
static int left_ms(uint64_t deadline_ms)
{
    uint64_t now_ms = bell_wire_now_ms();
    if (now_ms >= deadline_ms) return 0;
    return deadline_ms - now_ms > 60000 ? 60000 : (int)(deadline_ms - now_ms);
}

/* 1: ready.  0: the deadline passed.  -1: errno. */
static int await(int fd, short events, uint64_t deadline_ms)
{
    struct pollfd p = { fd, events, 0 };
    for (;;) {
        int wait_ms = left_ms(deadline_ms), n = poll(&p, 1, wait_ms);
        if (n > 0) return 1;
        if (n < 0 && errno != EINTR) return -1;
        if (n == 0 && left_ms(deadline_ms) == 0) return 0;
    }
}

/* "HOST:PORT" into two strings. */
static enum bell_status split(const char *peer, char *host, size_t size, const char **port, struct bell_error *err)
{
    const char *colon = strrchr(peer, ':');
    size_t n = colon ? (size_t)(colon - peer) : 0;
    bool is_bracketed = n > 2 && peer[0] == '[' && peer[n - 1] == ']';
    long number = colon && strspn(colon + 1, "0123456789") == strlen(colon + 1) ? strtol(colon + 1, NULL, 10) : 0;
    if (n == 0 || n >= size || number < 1 || number > 65535 || (!is_bracketed && memchr(peer, ':', n)))
        return bell_fail(err, BELL_INVALID,
                         "machine.peer: '%.64s', expected HOST:PORT, such as 192.0.2.1:7471 or "
                         "[2001:db8::1]:7471",
                         peer);
    (void)snprintf(host, size, "%.*s", (int)(is_bracketed ? n - 2 : n), peer + is_bracketed);
    *port = colon + 1;
    return BELL_OK;
}

static enum bell_status resolve(const char *peer, bool is_listener, struct addrinfo **list, struct bell_error *err)
{
    char host[64];
    const char *port = "";
    struct addrinfo hints;
    memset(&hints, 0, sizeof hints);
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV | (is_listener ? AI_PASSIVE : 0);
    enum bell_status s = split(peer, host, sizeof host, &port, err);
    if (s != BELL_OK) return s;
    int code = getaddrinfo(host, port, &hints, list);
    if (code == 0) return BELL_OK;
    return bell_fail(err, BELL_INVALID, "machine.peer: '%s': %s", peer, gai_strerror(code));
}

static void set_options(int fd)
{
    int one = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

/* ---- rank 0 ---- */

static int listen_on(const struct addrinfo *list, const char **what)
{
    for (const struct addrinfo *a = list; a; a = a->ai_next) {
        int one = 1, fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
        *what = "socket";
        if (fd < 0) continue;
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        *what = "bind";
        if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, 1) == 0) return fd;
        int code = errno;
        (void)close(fd);
        errno = code;
    }
    return -1;
}

static enum bell_status take_peer(struct bell_wire *w, int listener, struct bell_error *err)
{
    uint64_t deadline_ms = bell_wire_now_ms() + w->bound_ms;
    for (;;) {
        int ready = await(listener, POLLIN, deadline_ms);
        if (ready == 0)
            return bell_fail(err, BELL_TIMEOUT, "rank 0 listened on %s for %" PRIu64 " ms, and rank 1 did not come",
                             w->peer, w->bound_ms);
        if (ready > 0) w->fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (ready > 0 && w->fd >= 0) return BELL_OK;
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            return bell_fail(err, BELL_IO, "rank 0 on %s: accept: %s", w->peer, strerror(errno));
    }
}

static enum bell_status accept_peer(struct bell_wire *w, const struct addrinfo *list, struct bell_error *err)
{
    const char *what = "resolve";
    int listener = listen_on(list, &what);
    if (listener < 0)
        return bell_fail(err, BELL_IO, "rank 0 cannot listen on %s: %s: %s%s", w->peer, what, strerror(errno),
                         errno == EADDRNOTAVAIL ? "; HOST must be an address of rank 0's machine" : "");
    enum bell_status s = take_peer(w, listener, err);
    (void)close(listener);
    return s;
}

/* ---- rank 1 ---- */

/* A connected socket, or -1 and errno. */
static int try_connect(const struct addrinfo *a, uint64_t deadline_ms)
{
    int code = 0, fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
    socklen_t size = sizeof code;
    if (fd < 0) return -1;
    if (connect(fd, a->ai_addr, a->ai_addrlen) == 0) return fd;
    code = errno;
    if (code == EINPROGRESS && await(fd, POLLOUT, deadline_ms) != 1) code = ETIMEDOUT;
    if (code == EINPROGRESS && getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size) != 0) code = errno;
    if (code == 0) return fd;
    (void)close(fd);
    errno = code;
    return -1;
}

static enum bell_status connect_peer(struct bell_wire *w, const struct addrinfo *list, struct bell_error *err)
{
    uint64_t deadline_ms = bell_wire_now_ms() + w->bound_ms;
    int code;
    do {
        for (const struct addrinfo *a = list; a; a = a->ai_next) {
            w->fd = try_connect(a, deadline_ms);
            if (w->fd >= 0) return BELL_OK;
        }
        code = errno;
        struct timespec pause = { 0, PAUSE_MS * 1000000 };
        (void)nanosleep(&pause, NULL);
    } while (left_ms(deadline_ms));
    return bell_fail(err, BELL_TIMEOUT, "rank 1 tried for %" PRIu64 " ms to connect to rank 0 on %s: %s", w->bound_ms,
                     w->peer, strerror(code));
}

enum bell_status bell_wire_open(struct bell_wire *w, const char *peer, uint32_t rank, uint64_t bound_ms,
                                struct bell_error *err)
{
    struct addrinfo *list = NULL;
    memset(w, 0, sizeof *w);
    w->fd = -1;
    w->bound_ms = bound_ms;
    (void)snprintf(w->peer, sizeof w->peer, "%s", peer);
    enum bell_status s = resolve(peer, rank == 0, &list, err);
    if (s != BELL_OK) return s;
    s = rank == 0 ? accept_peer(w, list, err) : connect_peer(w, list, err);
    freeaddrinfo(list);
    if (s == BELL_OK) set_options(w->fd);
    return s;
}

void bell_wire_close(struct bell_wire *w)
{
    if (w->fd >= 0) (void)close(w->fd);
    w->fd = -1;
}

/* ---- messages ---- */

static enum bell_status send_all(struct bell_wire *w, const uint8_t *at, size_t size, const char *name,
                                 struct bell_error *err)
{
    uint64_t deadline_ms = bell_wire_now_ms() + w->bound_ms;
    while (size) {
        ssize_t n = send(w->fd, at, size, MSG_NOSIGNAL);
        if (n > 0) {
            at += n;
            size -= (size_t)n;
        } else if (n < 0 && errno != EAGAIN && errno != EINTR) {
            return bell_fail(err, BELL_IO, "peer on %s: sending %s: %s", w->peer, name, strerror(errno));
        } else if (await(w->fd, POLLOUT, deadline_ms) != 1) {
            return bell_fail(err, BELL_TIMEOUT, "peer on %s: %s could not be sent within %" PRIu64 " ms", w->peer, name,
                             w->bound_ms);
        }
    }
    return BELL_OK;
}

enum bell_status bell_wire_send(struct bell_wire *w, enum bell_message_kind kind, const uint8_t *body, size_t size,
                                struct bell_error *err)
{
    uint8_t header[BELL_MESSAGE_HEADER];
    bell_message_put_header(header, kind, (uint32_t)size);
    enum bell_status s = send_all(w, header, sizeof header, bell_message_name(kind), err);
    return s == BELL_OK && size ? send_all(w, body, size, bell_message_name(kind), err) : s;
}

bool bell_wire_has_news(const struct bell_wire *w, int wait_ms)
{
    struct pollfd p = { w->fd, POLLIN, 0 };
    return poll(&p, 1, wait_ms) > 0;
}

static enum bell_status receive_all(struct bell_wire *w, uint8_t *at, size_t size, const char *name,
                                    struct bell_error *err)
{
    uint64_t deadline_ms = bell_wire_now_ms() + w->bound_ms;
    size_t got = 0;
    while (got < size) {
        ssize_t n = recv(w->fd, at + got, size - got, 0);
        if (n > 0)
            got += (size_t)n;
        else if (n == 0)
            return bell_fail(err, BELL_IO, "peer on %s: it closed the connection after %zu of %zu bytes of %s", w->peer,
                             got, size, name);
        else if (errno != EAGAIN && errno != EINTR)
            return bell_fail(err, BELL_IO, "peer on %s: receiving %s: %s", w->peer, name, strerror(errno));
        else if (await(w->fd, POLLIN, deadline_ms) != 1)
            return bell_fail(err, BELL_TIMEOUT, "peer on %s: %zu of %zu bytes of %s came within %" PRIu64 " ms",
                             w->peer, got, size, name, w->bound_ms);
    }
    return BELL_OK;
}

enum bell_status bell_wire_receive(struct bell_wire *w, enum bell_message_kind *kind, uint8_t *body, size_t *size,
                                   struct bell_error *err)
{
    uint8_t header[BELL_MESSAGE_HEADER];
    struct bell_error inner;
    uint32_t bytes;
    enum bell_status s = receive_all(w, header, sizeof header, "a message", err);
    if (s != BELL_OK) return s;
    s = bell_message_get_header(header, kind, &bytes, &inner);
    if (s != BELL_OK) return bell_fail(err, s, "peer on %s: %s", w->peer, inner.text);
    *size = bytes;
    return receive_all(w, body, bytes, bell_message_name(*kind), err);
}

enum bell_status bell_wire_expect(struct bell_wire *w, enum bell_message_kind kind, uint8_t *body, size_t *size,
                                  struct bell_error *err)
{
    enum bell_message_kind got;
    enum bell_status s;
    do
        s = bell_wire_receive(w, &got, body, size, err);
    while (s == BELL_OK && got == BELL_MESSAGE_BEAT && kind != BELL_MESSAGE_BEAT);
    if (s != BELL_OK || got == kind) return s;
    return bell_fail(err, BELL_CORRUPT, "peer on %s: it sent %s, expected %s", w->peer, bell_message_name(got),
                     bell_message_name(kind));
}
