/* SPDX-License-Identifier: Apache-2.0
 * A send queue that a library keeps: chains of writes go in, completions come out.
 *
 * The seam is struct bell_verbs_backend: build, post, poll.  Indices, room, lock and events are kept here, over the
 * words of a struct bell_sq, so that a lane or worker counts as it does on the other executors; a slot is one work
 * request.
 *
 * What a trace of such a queue cannot see: how many 64 B blocks a WQE took, the doorbell record, fences, BlueFlame,
 * when the NIC delivered and when it wrote the CQE.  BUILD is the filling of one ibv_send_wr, DOORBELL the whole call
 * of ibv_post_send, which writes WQEs, orders them and rings (a release at system scope, by its contract); POLL is the
 * CQE as ibv_poll_cq returned it.  There is no DBREC, DELIVER or CQE event. */
#ifndef BELL_HW_VERBS_QUEUE_H
#define BELL_HW_VERBS_QUEUE_H

#include "core/client.h"

/* One completion as the library tells it. */
struct bell_verbs_done {
    uint64_t index;  /* of the work request */
    uint32_t status; /* 0, or the library's code */
    uint32_t vendor;
    const char *text; /* constant; of the status */
};

/* Functions get the backend's own queue.  One thread at a time builds and posts; any may poll meanwhile. */
struct bell_verbs_backend {
    /* Make place `at` of the chain a write with this index; the last of a chain is signaled. */
    void (*build)(void *queue, uint32_t at, const struct bell_wqe_request *request, uint64_t index, bool is_last);
    /* Hand over the first `count` places as one chain.  0, or an errno value and *bad, the place that was refused. */
    int (*post)(void *queue, uint32_t count, uint32_t *bad);
    /* 1: *out is the next completion.  0: none there.  Otherwise the queue is broken. */
    int (*poll)(void *queue, struct bell_verbs_done *out);
};

enum bell_verbs_fault { BELL_VERBS_FINE, BELL_VERBS_POST, BELL_VERBS_POLL, BELL_VERBS_CQE, BELL_VERBS_STRAY };

/* Storage is the caller's; zero but for backend, queue, sq and chain_max. */
struct bell_verbs_queue {
    const struct bell_verbs_backend *backend;
    void *queue;
    struct bell_sq *sq; /* words, span (here the end of a chain, at the slot of its last write), depth, number */
    uint64_t chains, completions; /* posted; polled without an error */
    /* The first that went wrong. */
    uint32_t is_faulty;
    enum bell_verbs_fault fault;
    int code; /* errno value */
    uint32_t count;
    struct bell_verbs_done done;
};

/* Post `count` writes as one chain, the last one signaled.  *end becomes the index after the last.  Waits for room,
 * polling, unless the stack's flow says that a full queue is an error (BELL_OVERFLOW).  OWNER, or under the lock.
 * BELL_IO, BELL_CQE_ERROR, BELL_CORRUPT: see bell_verbs_explain. */
enum bell_status bell_verbs_put(struct bell_lane *lane, struct bell_verbs_queue *q, const struct bell_stack *stack,
                                bell_request_of *request_of, void *context, uint32_t count,
                                uint64_t *end) BELL_MUST_USE;

/* Take one completion, which must be that of a chain's last write and not have come before, and retire its chain.
 * BELL_EMPTY: none there.  *index becomes that of the write.  alone: no other lane polls this queue. */
enum bell_status bell_verbs_poll(struct bell_lane *lane, struct bell_verbs_queue *q, bool alone,
                                 uint64_t *index) BELL_MUST_USE;

/* Until everything before `until` has completed.  Bounded by the port. */
enum bell_status bell_verbs_quiet(struct bell_lane *lane, struct bell_verbs_queue *q, bool alone,
                                  uint64_t until) BELL_MUST_USE;

/* With all threads gone: as many completions as chains, and none left over.  BELL_CORRUPT names the queue. */
enum bell_status bell_verbs_settle(struct bell_verbs_queue *q, uint32_t rank, struct bell_error *err) BELL_MUST_USE;

/* One line about a queue whose post or poll failed.  False: nothing failed there. */
bool bell_verbs_explain(const struct bell_verbs_queue *q, uint32_t rank, enum bell_status status,
                        struct bell_error *err);

#endif
