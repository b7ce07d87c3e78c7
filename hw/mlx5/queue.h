/* SPDX-License-Identifier: Apache-2.0
 * One send queue on an mlx5 device, made by DevX commands in memory of the caller's choice: CQ, QP, doorbell record,
 * UAR; and the binding by which somebody posts to it. */
#ifndef BELL_HW_MLX5_QUEUE_H
#define BELL_HW_MLX5_QUEUE_H

#include "hw/mlx5/binding.h"
#include "hw/mlx5/device.h"

BELL_EXTERN_C_BEGIN

/* What a queue should be. */
struct bell_mlx5_want {
    const struct bell_mlx5_memory *memory; /* of WQEs and CQEs, and of the record unless the host rings */
    const struct bell_mlx5_memory *host;   /* host memory, of the record when the host rings */
    uint32_t depth;                        /* basic blocks, a power of two */
    bool is_collapsed;
    bool is_dc;
    bool may_blueflame;  /* ask for a write-combining register first */
    bool must_host_ring; /* do not even try to give the poster the register */
};

/* How WQ, CQ and record were registered. */
enum bell_mlx5_way { BELL_MLX5_BY_ADDRESS, BELL_MLX5_BY_DMABUF };

/* A block that the NIC knows. */
struct bell_mlx5_known {
    const struct bell_mlx5_memory *memory; /* NULL: not there */
    struct bell_mlx5_block block;
    void *umem;
    uint32_t id;
    enum bell_mlx5_way way;
};

struct bell_mlx5_queue {
    const struct bell_mlx5_device *device;
    struct bell_mlx5_want want;
    struct bell_mlx5_known wq, cq, record;
    struct bell_mlx5_uar uar;                   /* handle NULL: none */
    enum bell_mlx5_uar_kind uar_kind;
    bool is_mapped; /* the register is mapped for the poster */
    void *cq_object, *qp_object;
    uint32_t cqn;
    struct bell_binding binding; /* source and target are the caller's to fill in; av is set by connect */
};

/* Make CQ and QP, and bring the QP to INIT.  On BELL_OK the caller calls bell_mlx5_queue_close; the device outlives the
 * queue.  BELL_UNSUPPORTED: the device cannot; BELL_NO_MEMORY; BELL_IO: a call or command failed, *err says which. */
enum bell_status bell_mlx5_queue_open(struct bell_mlx5_queue *queue, const struct bell_mlx5_device *device,
                                      const struct bell_mlx5_want *want, struct bell_error *err) BELL_MUST_USE;

/* Bring the QP to RTS.  RC: the queue numbered peer_number behind `peer` answers it.  DC: puts go to the target of that
 * number there, which the key opens. */
enum bell_status bell_mlx5_queue_connect(struct bell_mlx5_queue *queue, const struct bell_mlx5_port *peer,
                                         uint32_t peer_number, uint64_t dc_key, struct bell_error *err) BELL_MUST_USE;

void bell_mlx5_queue_close(struct bell_mlx5_queue *queue);

BELL_EXTERN_C_END

#endif
