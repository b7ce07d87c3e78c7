/* SPDX-License-Identifier: Apache-2.0
 * The port: the machine under the queue logic, about twenty inline primitives, each named for its purpose.  One port a
 * translation unit, chosen by include path; the header bell_port_impl.h of that folder supplies the bodies and
 *
 *   struct bell_lane { struct bell_lane_id id; ... };      the execution context: a GPU thread, CPU thread or actor
 *
 * Shared index words (uint64_t, touched by port primitives only):
 *   load            relaxed.
 *   load_acquire    pairs with store_release, or with a fence followed by a store.
 *   store           relaxed; for words that one lane writes.
 *   store_release   everything the lane did before is seen by whoever acquires the value; wakes the word's address.
 *   cas             acquire and release on success; true when the swap happened; wakes the word's address.
 *   fetch_add       relaxed; returns the old value.
 * To the NIC:
 *   store_wqe       plain 16 B stores of one 64 B block (or less); ordered by nothing.
 *   fence           stores before it are ordered before stores after it, at `scope`.
 *   store_dbrec     4 B big-endian producer index; a release store when scope is not NONE.
 *   store_doorbell  8 B MMIO store; a release store when scope is not NONE; blueflame: the WQE travels with it.
 *   load_cqe_tail   the last 4 bytes of a CQE, acquire: the rest of the CQE and what the NIC placed before is visible.
 * Proxy ring (entries live in host memory):
 *   store_entry     one 16 B posted store that carries its own validity; released at `scope`; wakes `key`.
 *   load_entry      true when the entry is valid for lap `parity`; acquire.
 * From the NIC side (software NIC and simulated NIC):
 *   load_doorbell, load_dbrec   acquire.
 *   store_cqe       the body, then the last 4 bytes as a release store; wakes `key`.
 *   read_bytes, write_bytes     WQE fetch, payload read and placement; write_bytes releases the last 8 bytes (or the
 *                   last bytes of a shorter or unaligned end) and wakes their address.
 * Waiting, time, observation:
 *   wait            until done(lane, context) is true, the port's bound is reached (BELL_TIMEOUT) or another lane
 *                   failed (BELL_STOPPED).  `key` names the memory whose change can make it true; done only loads.
 *                   There is no other spin in the project; on failure lane->id.waited_for says what for.
 *   work            what the processor computes between memory operations: nothing on hardware, where it happens by
 *                   itself; cycles in the simulator.
 *   now             picoseconds in the port's clock domain.
 *   note            closes the step that began at the previous note: emits one event; compiles out of timed runs.
 *   is_leader, broadcast, group_sync   a group of lanes that act together; a single lane is a group of one.  They wait
 *                   for each other, and so fail like wait. */
#ifndef BELL_CORE_PORT_H
#define BELL_CORE_PORT_H

#include "core/cqe.h"
#include "core/lane.h"
#include "core/stack.h"
#include "core/wqe.h"

struct bell_lane;

/* One proxy descriptor.  hi: bit 63 validity (lap parity), bit 62 inline value, 61..40 bytes, 39..0 destination offset.
 * lo: the value itself, or the source offset. */
struct bell_entry {
    uint64_t lo, hi;
};

struct bell_note {
    enum bell_event_kind kind;
    uint16_t queue;
    uint64_t index;
    uint32_t count;
    uint32_t bytes;
    enum bell_scope scope;
};

enum bell_work { BELL_WORK_POST, BELL_WORK_ENQUEUE, BELL_WORK_COMPLETE, BELL_WORKS };

#include "bell_port_impl.h"

BELL_STEP void bell_note(struct bell_lane *lane, enum bell_event_kind kind, uint16_t queue, uint64_t index,
                         uint32_t count, uint32_t bytes, enum bell_scope scope)
{
    struct bell_note n = { kind, queue, index, count, bytes, scope };
    bell_port_note(lane, &n);
}

#endif
