/* SPDX-License-Identifier: Apache-2.0
 * Does a trace keep the queue protocol?  A streaming checker: memory is bounded by queues and their depth, not by the
 * length of the trace.  Events must come in the order of seq, which is taken as a valid order of what happened.
 *
 * rule                    what holds
 * seq-order               seq counts 1, 2, 3, ...
 * time-range              start + duration fits 64 bits
 * cause-earlier           cause < seq
 * reserve-contiguous      a reservation starts where the one before it in this queue ended
 * build-reserved          only reserved slots are built
 * build-once              no slot is built twice in one lap
 * slot-reuse              no slot is built before the completion of its last use was polled
 * fence-before-dbrec      a fence between the builds and the doorbell record, or the record is a release
 * fence-before-doorbell   a fence between the builds and the doorbell, or the doorbell is a release
 * dbrec-covers-built      every slot before a doorbell record's index was built
 * doorbell-covers-built   every slot before a doorbell's index was built
 * doorbell-monotonic      neither doorbell nor doorbell record goes back
 * dbrec-before-doorbell   the doorbell record is at least the doorbell's index
 * deliver-after-doorbell  a payload arrives only after its WQE was rung for
 * deliver-once            and only once
 * bytes-conserved         and with the bytes that were built; sums agree at the end
 * cqe-order               CQE indices of a queue increase
 * cqe-after-deliver       everything before a CQE was rung for and delivered
 * cqe-error               no completion has a syndrome (status BELL_CQE_ERROR)
 * poll-after-cqe          a lane sees only what was completed
 * poll-monotonic          the index that one lane sees in one queue does not go back
 * enqueue-contiguous      proxy entries are written once each, without a gap
 * dequeue-after-enqueue   a worker takes only what was written
 * dequeue-order           in order, once
 * progress-after-dequeue  progress covers only what was taken
 * progress-monotonic      and does not go back
 * unrung                  at the end every built slot was rung for
 * incomplete              at the end nothing is reserved but not built, rung but not delivered, enqueued but not done
 *
 * The index of an SQ starts at the header's first_index, that of a proxy ring at 0.
 *
 * DELIVER and CQE events of a queue carry rank and queue of the sender.  Executors named "verbs" and "mlx5" cannot see
 * what the NIC does: for them the rules on DELIVER and CQE apply only to the events that are there.  Nor does "verbs"
 * see the doorbell record, which the provider writes: its doorbells need none before them. */
#ifndef BELL_TRACES_CHECK_H
#define BELL_TRACES_CHECK_H

#include "traces/trace.h"

BELL_EXTERN_C_BEGIN

struct bell_check;

/* header: depth (0: at most 65536), first_index, ordering and executor are used.  On BELL_OK the caller calls
 * bell_check_free. */
enum bell_status bell_check_begin(const struct bell_trace_header *header, struct bell_check **out,
                                  struct bell_error *err) BELL_MUST_USE;

/* BELL_CORRUPT or BELL_CQE_ERROR: a rule is broken, "event SEQ: RULE: ...".  After a failure only free is allowed. */
enum bell_status bell_check_event(struct bell_check *c, const struct bell_event *event,
                                  struct bell_error *err) BELL_MUST_USE;

/* whole: the trace holds the run to its end (bell_trace_is_whole); otherwise the rules of the end are left out. */
enum bell_status bell_check_end(struct bell_check *c, bool whole, struct bell_error *err) BELL_MUST_USE;

/* The rule of the last failure, "" when there was none. */
const char *bell_check_rule(const struct bell_check *c);
uint64_t bell_check_seq(const struct bell_check *c);

void bell_check_free(struct bell_check *c);

/* Open, check, close. */
enum bell_status bell_check_file(const char *path, struct bell_error *err) BELL_MUST_USE;

BELL_EXTERN_C_END

#endif
