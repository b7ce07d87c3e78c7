/* SPDX-License-Identifier: Apache-2.0
 * How a run in real time uses the machine it is on, as data: threads and cores, GPUs, the RDMA device, the other
 * process.  Runs in virtual time use none of it. */
#ifndef BELL_CORE_MACHINE_H
#define BELL_CORE_MACHINE_H

#include "core/field.h"

BELL_EXTERN_C_BEGIN

/* Where the software NIC runs: on CPU threads, or on an SM of its own.  AUTO: where it can reach the queues. */
enum bell_nic_place { BELL_NIC_AUTO, BELL_NIC_ON_CPU, BELL_NIC_ON_GPU };

/* Who runs the lanes where an executor has both.  AUTO: a GPU where there is one. */
enum bell_poster { BELL_POSTER_AUTO, BELL_POSTER_ON_CPU, BELL_POSTER_ON_GPU };

#define BELL_GID_ANY 0xffffu /* pick one: RoCE, the first IPv4-mapped GID; InfiniBand, 0 */

struct bell_machine {
    char name[8];         /* "machine" */
    uint32_t nic_threads; /* of each rank; queue q is served by thread q % nic_threads */
    uint32_t nic_patience; /* how often it reads a WQE again that has not arrived; 0: such a WQE fails at once */
    bool pin;             /* give each NIC thread, worker and CPU lane a core of its own */
    uint32_t first_core;  /* the first of those cores */
    int32_t nic;          /* enum bell_nic_place */
    int32_t poster;       /* enum bell_poster */
    uint32_t gpu;         /* CUDA device of rank 0 */
    uint32_t peer_gpu;    /* CUDA device of rank 1 */
    uint32_t lanes_per_cta; /* GPU lanes that share a CTA; a cooperative group is never split */
    char device[32];      /* RDMA device, such as mlx5_0; "": the first one that is usable */
    uint32_t port;        /* of that device */
    uint32_t gid;         /* index, or BELL_GID_ANY */
    char peer[64];        /* HOST:PORT of the process that is the other rank; "": this process is both */
    uint32_t rank;        /* of this process, with a peer: 0 listens on PORT, 1 connects to HOST */
};

extern const struct bell_field bell_machine_fields[];

/* *given, or the initial values of all fields when it is NULL. */
void bell_machine_read(const struct bell_machine *given, struct bell_machine *out);

BELL_EXTERN_C_END

#endif
