/* SPDX-License-Identifier: Apache-2.0
 * An RDMA device through libibverbs: which one, which port and GID, its memory regions, and RC queue pairs that write.
 * Names and limits are those of rdma-core's <infiniband/verbs.h>; man ibv_create_qp, ibv_modify_qp, ibv_post_send. */
#ifndef BELL_HW_VERBS_DEVICE_H
#define BELL_HW_VERBS_DEVICE_H

#include "core/machine.h"
#include "hw/verbs/queue.h"

#include <infiniband/verbs.h>

/* What the other end of a connection must know of this device and port. */
struct bell_verbs_address {
    uint8_t gid[16];
    uint16_t lid;
    uint8_t mtu; /* enum ibv_mtu */
    bool is_roce;
    bool has_global; /* packets carry a GRH: RoCE, or a GID was asked for */
};

/* An RC queue pair with a CQ of its own, and room to write one chain down. */
struct bell_verbs_qp {
    struct ibv_qp *qp;
    struct ibv_cq *cq;
    struct ibv_send_wr *wr;
    struct ibv_sge *sge;
    uint32_t psn;           /* the first that it sends, 24 bits */
    uint64_t remote_offset; /* from an address in this process's world to the same place at the peer, modulo 2^64 */
};

struct bell_verbs_shape {
    uint32_t depth;        /* work requests under way */
    uint32_t chain_max;    /* of them behind one doorbell */
    uint32_t inline_bytes; /* 0: none */
};

struct bell_verbs_device {
    struct ibv_device **list;
    struct ibv_context *context;
    struct ibv_pd *pd;
    char name[64];
    char driver[32];  /* of the kernel: mlx5_core, rdma_rxe; "" when it can't be told */
    bool is_software; /* Soft-RoCE or Soft-iWARP: its times are the kernel's, not a NIC's */
    int numa_node;    /* -1: not told */
    uint32_t port, gid_index;
    struct bell_verbs_address address;
};

extern const struct bell_verbs_backend bell_verbs_qp_backend;

/* Is any device there?  BELL_UNSUPPORTED: "no RDMA device: ..." */
enum bell_status bell_verbs_probe(struct bell_error *err) BELL_MUST_USE;

/* Open the device, port and GID that the machine names, or the first with an active port.  *device is zeroed first.
 * BELL_UNSUPPORTED: none there.  BELL_INVALID: there are devices, but not that device, port or GID.  On BELL_OK the
 * caller calls bell_verbs_close, when everything made from it is gone. */
enum bell_status bell_verbs_open(struct bell_verbs_device *device, const struct bell_machine *machine,
                                 struct bell_error *err) BELL_MUST_USE;
void bell_verbs_close(struct bell_verbs_device *device);

/* Register memory; access: IBV_ACCESS_*.  what: for the message, such as "the payloads of rank 0". */
enum bell_status bell_verbs_register(struct bell_verbs_device *device, void *at, size_t size_bytes, int access,
                                     const char *what, struct ibv_mr **out, struct bell_error *err) BELL_MUST_USE;

/* Make a queue pair, in state RESET.  *qp is zeroed first.  BELL_UNSUPPORTED names the limit of the device.  After
 * BELL_OK, and only then, the caller calls bell_verbs_qp_free. */
enum bell_status bell_verbs_qp_make(struct bell_verbs_qp *qp, struct bell_verbs_device *device,
                                    const struct bell_verbs_shape *shape, uint32_t psn,
                                    struct bell_error *err) BELL_MUST_USE;
void bell_verbs_qp_free(struct bell_verbs_qp *qp);

/* From RESET to RTS: it sends to, and takes from, queue pair qpn at `peer`, whose first PSN is psn. */
enum bell_status bell_verbs_qp_connect(struct bell_verbs_qp *qp, const struct bell_verbs_device *device,
                                       const struct bell_verbs_address *peer, uint32_t qpn, uint32_t psn,
                                       struct bell_error *err) BELL_MUST_USE;

#endif
