/* SPDX-License-Identifier: Apache-2.0
 * An mlx5 device that is ready to make queues: opened, its capabilities read and found sufficient, a protection domain,
 * a port. */
#ifndef BELL_HW_MLX5_DEVICE_H
#define BELL_HW_MLX5_DEVICE_H

#include "hw/mlx5/calls.h"
#include "hw/mlx5/prm.h"

BELL_EXTERN_C_BEGIN

struct bell_mlx5_device {
    const struct bell_mlx5_calls *calls;
    void *handle, *pd;
    const char *name;
    uint32_t pd_number, eqn;
    struct bell_mlx5_port port;
    uint32_t log_max_sq, log_max_cq; /* of basic blocks, of CQEs */
    uint32_t blueflame_bytes;        /* of one register, a half of it; 0: none */
    bool has_dc;
};

/* What is wanted of machine: device, port, gid.  On BELL_OK the caller calls bell_mlx5_device_close.  BELL_UNSUPPORTED
 * and one sentence: no such device, or it lacks what the queues need. */
enum bell_status bell_mlx5_device_open(struct bell_mlx5_device *device, const struct bell_mlx5_calls *calls,
                                       const char *name, uint32_t port, uint32_t gid,
                                       struct bell_error *err) BELL_MUST_USE;

void bell_mlx5_device_close(struct bell_mlx5_device *device);

/* Fill *err after a DevX command failed with `failure` (errno) and `out`, its answer. */
enum bell_status bell_mlx5_command_failed(const struct bell_mlx5_device *device, const uint8_t *in, const uint8_t *out,
                                          int failure, struct bell_error *err);

/* The same after a call that is no command. */
enum bell_status bell_mlx5_call_failed(const struct bell_mlx5_device *device, const char *what, int failure,
                                       struct bell_error *err);

BELL_EXTERN_C_END

#endif
