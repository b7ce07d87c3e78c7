/* SPDX-License-Identifier: Apache-2.0
 * A stand-in for libibverbs in one process: the functions that hw/verbs calls, over plain memory.  A write is carried
 * out when it is posted; its completion comes after a few empty polls.  It can be told to misbehave, to refuse its n-th
 * call, and it counts what was made and not given back. */
#ifndef BELL_TESTS_VERBS_FAKE_H
#define BELL_TESTS_VERBS_FAKE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#define FAKE_CHAINS 4096
#define FAKE_GIDS 6

struct fake_gid {
    uint8_t raw[16];
    uint32_t type;
};

struct fake {
    /* what it is */
    int devices;
    uint32_t vendor_id;
    enum ibv_port_state state;
    uint8_t link_layer;
    uint32_t max_inline; /* more is EINVAL */
    int max_qp_wr, max_cqe;
    struct fake_gid gid[FAKE_GIDS];
    /* how it misbehaves; -1 or 0: not */
    int refuse_call;      /* the call that fails, from 1 on */
    int refuse_place;     /* ibv_post_send returns ENOMEM for this work request of a chain */
    int corrupt_chain;    /* number of the chain, from 0, whose payloads are damaged */
    int lose_chain;       /* whose completion does not come */
    int double_chain;     /* whose completion comes twice */
    int signal_all_chain; /* which completes each of its writes */
    bool poll_fails;
    int empty_polls; /* before each completion */
    /* what it saw */
    int calls, live; /* objects that are there */
    uint32_t chains, writes;
    uint32_t chain_length[FAKE_CHAINS];
    uint32_t signaled, inlined;
    struct ibv_send_wr last[256]; /* the chain posted last */
    struct ibv_sge last_sge[256];
    uint32_t last_path_mtu, last_sgid_index, last_dlid, last_is_global;
};

extern struct fake fake;

/* A well-behaved RoCE device. */
void fake_reset(void);

#endif
