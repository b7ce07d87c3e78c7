/* SPDX-License-Identifier: Apache-2.0
 * Everything that is asked of libibverbs and libmlx5, and of whoever owns the memory that queues live in, as two tables
 * of functions.  hw/mlx5/library.c fills the first from the libraries, hw/mlx5/host_memory.c the second with host
 * memory; a GPU's memory comes from hw/cuda, and tests bring their own of both.
 *
 * Calls that return int return 0 or an errno.  Handles are the callee's and never NULL when a call went well.  One
 * thread at a time calls. */
#ifndef BELL_HW_MLX5_CALLS_H
#define BELL_HW_MLX5_CALLS_H

#include "core/machine.h"
#include "core/stack.h"

BELL_EXTERN_C_BEGIN

#define BELL_MLX5_AV_BYTES 48u

enum bell_mlx5_uar_kind {
    BELL_MLX5_UAR_NC_DEDICATED, /* not cached, and nobody else's */
    BELL_MLX5_UAR_NC,           /* not cached; the process has one */
    BELL_MLX5_UAR_BF,           /* BlueFlame: write combining */
    BELL_MLX5_UAR_KINDS
};

struct bell_mlx5_uar {
    void *handle;
    uint64_t *reg; /* the doorbell register, as this process sees it */
    uint32_t page; /* its name in CQ and QP contexts */
};

/* Memory to be registered. */
struct bell_mlx5_extent {
    uint64_t address; /* a CPU pointer, or an address that nvidia-peermem knows */
    size_t bytes;
    int dmabuf_fd; /* register this dma-buf from its start; -1: register the address */
};

struct bell_mlx5_port {
    uint32_t number;
    uint32_t gid_index;
    uint16_t lid;
    uint8_t mtu; /* as verbs and PRM count: 1 is 256 B, 5 is 4096 B */
    uint8_t gid[16];
    bool is_ethernet;
};

struct bell_mlx5_calls {
    void *context; /* first argument of open */
    /* name "": the first device that will do.  BELL_UNSUPPORTED and one sentence: there is none. */
    enum bell_status (*open)(void *context, const char *name, void **device, struct bell_error *err);
    void (*close)(void *device);
    const char *(*name)(void *device);
    int (*command)(void *device, const void *in, size_t in_bytes, void *out, size_t out_bytes);
    int (*create)(void *device, const void *in, size_t in_bytes, void *out, size_t out_bytes, void **object);
    int (*modify)(void *object, const void *in, size_t in_bytes, void *out, size_t out_bytes);
    int (*destroy)(void *object);
    int (*eqn)(void *device, uint32_t vector, uint32_t *eqn);
    int (*uar_alloc)(void *device, enum bell_mlx5_uar_kind kind, struct bell_mlx5_uar *uar);
    void (*uar_free)(const struct bell_mlx5_uar *uar);
    int (*umem_register)(void *device, const struct bell_mlx5_extent *extent, void **umem, uint32_t *id);
    int (*umem_release)(void *umem);
    int (*pd_alloc)(void *device, void **pd, uint32_t *number);
    int (*pd_free)(void *pd);
    int (*mr_register)(void *pd, const struct bell_mlx5_extent *extent, void **mr, uint32_t *lkey, uint32_t *rkey);
    int (*mr_release)(void *mr);
    /* gid: an index, or BELL_GID_ANY. */
    int (*port)(void *device, uint32_t number, uint32_t gid, struct bell_mlx5_port *port);
    /* The address vector that reaches `to` from `from`, as the WQE carries it, without DC key and target. */
    int (*address)(void *pd, const struct bell_mlx5_port *from, const struct bell_mlx5_port *to,
                   uint8_t av[BELL_MLX5_AV_BYTES]);
    int (*dct_create)(void *pd, const struct bell_mlx5_port *port, uint64_t dc_key, void **dct, uint32_t *number);
    int (*dct_destroy)(void *dct);
};

struct bell_mlx5_block {
    void *handle;
    uint64_t address; /* as the poster sees it */
    uint8_t *host;    /* as a CPU sees it, or NULL */
    size_t bytes;
};

/* Where queues live, and how their poster reaches the register. */
struct bell_mlx5_memory {
    void *context;
    enum bell_memory kind;
    size_t page_bytes; /* blocks are whole pages, and start on one: a power of two of at least 4096 */
    int (*alloc)(void *context, size_t bytes, struct bell_mlx5_block *block);
    void (*free)(void *context, const struct bell_mlx5_block *block);
    /* A dma-buf of the whole block, which the caller closes.  NULL, or an errno: register the address. */
    int (*dmabuf)(void *context, const struct bell_mlx5_block *block, int *fd);
    /* From a CPU's memory into the block, done when it returns. */
    int (*write)(void *context, const struct bell_mlx5_block *block, size_t offset, const void *from, size_t bytes);
    /* Back again; what the NIC wrote before its last CQE is in it. */
    int (*read)(void *context, const struct bell_mlx5_block *block, size_t offset, void *to, size_t bytes);
    /* Let the poster store to a register (for a GPU, cuMemHostRegister with IOMEMORY).  NULL: the poster is a thread
     * of this process.  An errno: refused, and the host must ring. */
    int (*map_register)(void *context, uint64_t *reg, size_t bytes, uint64_t *address);
    void (*unmap_register)(void *context, uint64_t *reg);
};

/* Host memory for CPU posters.  Constant. */
extern const struct bell_mlx5_memory bell_mlx5_host_memory;

#ifdef BELL_HAVE_MLX5
/* libmlx5's.  Constant. */
extern const struct bell_mlx5_calls bell_mlx5_library;
#endif

BELL_EXTERN_C_END

#endif
