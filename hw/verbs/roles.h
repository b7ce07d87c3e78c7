/* SPDX-License-Identifier: Apache-2.0
 * What lanes and workers do over queues that a library keeps: core/client.h and core/proxy.h, with chains of
 * ibv_send_wr in the place of WQEs.
 *
 * A waiting partner polls the payload in memory: the tag in its last 8 bytes, then the bytes before it.  InfiniBand
 * does not promise that the last byte of a write lands last, nor that a write's data is visible before its CQE at the
 * sender.  It holds on ConnectX with strict PCIe ordering, as long as the region is not registered with
 * IBV_ACCESS_RELAXED_ORDERING (it is not), and it holds on rdma_rxe, which copies packets one after the other on a CPU;
 * NVSHMEM, NCCL and DeepEP rely on the same.  Where it does not hold the run ends with "data differs from what was
 * sent"; signal separate then orders the flag behind the payload by RC's order of writes. */
#ifndef BELL_HW_VERBS_ROLES_H
#define BELL_HW_VERBS_ROLES_H

#include "core/serve.h"
#include "hw/verbs/queue.h"

struct bell_soft_member;

/* All operations of a lane that posts itself: core's bell_client_run over a library's queue.  The calling thread is
 * that lane from then on. */
enum bell_status bell_verbs_client_run(struct bell_soft_member *member, struct bell_client *client,
                                       struct bell_verbs_queue *queue) BELL_MUST_USE;

/* The port's idle function: a lane that waits long for its partner looks at its own queue now and then, because a put
 * that failed is why no answer comes. */
void bell_verbs_idle(void *context);

/* Serve a share of the proxy rings until all their descriptors have completed: core's bell_serve, where
 * share->worker[i] posts to queue[i]. */
enum bell_status bell_verbs_serve(struct bell_lane *lane, const struct bell_share *share,
                                  struct bell_verbs_queue *queue) BELL_MUST_USE;

#endif
