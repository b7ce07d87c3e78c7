/* SPDX-License-Identifier: Apache-2.0
 * An mlx5 device in software behind struct bell_mlx5_calls: it decodes DevX commands, refuses what a device would
 * refuse, and serves the queues that were made by the software NIC (core/nic.h) on a thread. */
#ifndef BELL_TESTS_MLX5_FAKE_H
#define BELL_TESTS_MLX5_FAKE_H

#include "core/nic.h"
#include "hw/mlx5/ground.h"
#include "hw/mlx5/prm.h"

#include <pthread.h>

#define FAKE_THINGS 64
#define FAKE_WQES 64
#define FAKE_PAGE 4096u

enum fake_state { FAKE_RESET, FAKE_INIT, FAKE_RTR, FAKE_RTS };

struct fake;

/* What the device hands out: all kinds have the same first words. */
struct fake_thing {
    struct fake *fake;
    bool is_live;
    uint32_t number;
};

struct fake_umem {
    struct fake_thing thing;
    uint8_t *at; /* as the NIC sees it */
    size_t bytes;
    bool is_mapped; /* through a dma-buf of its own */
};

struct fake_uar {
    struct fake_thing thing;
    uint8_t *page;
    enum bell_mlx5_uar_kind kind;
};

struct fake_mr {
    struct fake_thing thing;
    struct bell_region local, remote;
};

struct fake_cq {
    struct fake_thing thing;
    struct bell_cqe *cqe;
    uint32_t entries;
    bool is_collapsed;
};

struct fake_qp {
    struct fake_thing thing;
    enum fake_state state;
    struct fake_cq *cq;
    struct bell_sq sq; /* as the NIC sees it */
    struct bell_nicq nicq;
    uint32_t remote;
};

struct fake_dct {
    struct fake_thing thing;
    uint64_t key;
};

/* Knobs first, all of them zero by default but for those that fake_start sets. */
struct fake {
    const char *name;
    uint32_t cqe_version;  /* 1 */
    bool has_dc, has_oi;   /* true */
    bool is_ethernet;
    bool refuse_dmabuf;    /* umems and MRs of a dma-buf */
    bool refuse_uar[BELL_MLX5_UAR_KINDS];
    enum bell_nic_start start;
    bool is_deaf;     /* never looks at the memory of a queue, which somebody else serves */
    uint32_t fail_at; /* the call of this number, from 1, fails; 0: none */

    uint32_t calls; /* of those that can fail */
    uint32_t commands[BELL_PRM_RTR2RTS_QP + 1];
    uint32_t by_dmabuf, by_address; /* umems */
    uint32_t mr_by_dmabuf;
    char broken[200];               /* the first rule that a caller broke; "" */
    struct fake_umem umem[FAKE_THINGS];
    struct fake_uar uar[FAKE_THINGS];
    struct fake_mr mr[FAKE_THINGS];
    struct fake_cq cq[FAKE_THINGS];
    struct fake_qp qp[FAKE_THINGS];
    struct fake_dct dct[FAKE_THINGS];
    struct fake_thing device, pd;
    pthread_mutex_t lock; /* between calls and the NIC */
    pthread_t nic;
    bool stop;
    struct bell_soft soft;
    struct bell_lane lane;
    uint8_t wqe[FAKE_WQES][BELL_WQE_BYTES_MAX]; /* the first ones that the NIC fetched */
    bool wqe_is_dc[FAKE_WQES];
    uint32_t wqes;
    uint8_t rung[64]; /* what the first register held in the end */
    struct bell_mlx5_calls table;
};

/* Ready to be opened through f->table. */
void fake_start(struct fake *f);

/* Things handed out and not given back. */
uint32_t fake_left(const struct fake *f);

/* fake_command.c */
int fake_do_create(struct fake *f, const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes, void **object);
int fake_do_modify(struct fake_qp *qp, const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes);
int fake_do_command(struct fake *f, const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes);
void fake_break(struct fake *f, const char *format, ...) BELL_FORMAT(2, 3);
int fake_refuse(uint8_t *out);

/* A free element of an array of things, numbered from `base`. */
#define FAKE_TAKE(f, array, base) fake_take((f), (f)->array, sizeof(f)->array[0], (base))
void *fake_take(struct fake *f, void *array, size_t size, uint32_t base);

/* fake_memory.c: memory of kind GPU that a CPU can store to and whose dma-buf is a memfd. */
struct fake_memory {
    struct bell_mlx5_memory table;
    uint32_t blocks, registers;  /* handed out and not given back */
    uint32_t mapped;             /* registers that were ever mapped */
    bool refuse_register, refuse_dmabuf, refuse_alloc;
};

void fake_memory_start(struct fake_memory *m, enum bell_memory kind);

/* fake_lanes.c: lanes that hw/mlx5 does not run itself, one thread each.  They do not cooperate. */
struct fake_lanes {
    struct bell_mlx5_lanes table;
    bool refuse_place, refuse_run;
    uint32_t checked, placed, ran, left; /* how often each was called, and did not refuse */
    struct bell_soft soft;
    struct bell_world *world;
    struct fake_lane *lane;
    uint64_t *issue_ps, *total_ps;
    size_t samples;
};

void fake_lanes_start(struct fake_lanes *l);

#endif
