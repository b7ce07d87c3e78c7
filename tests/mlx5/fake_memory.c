/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/mlx5/fake.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define GPU_PAGE 65536u

static int alloc_block(void *context, size_t bytes, struct bell_mlx5_block *block)
{
    struct fake_memory *m = context;
    int *fd = malloc(sizeof *fd);
    if (!fd || m->refuse_alloc) {
        free(fd);
        return ENOMEM;
    }
    *fd = memfd_create("queue", 0);
    if (*fd < 0 || ftruncate(*fd, (off_t)bytes) != 0) {
        free(fd);
        return errno;
    }
    /* Twice the room, so that the block can start on a page of the GPU's size. */
    uint8_t *room = mmap(NULL, bytes + GPU_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint8_t *at = room + (GPU_PAGE - (uintptr_t)room % GPU_PAGE) % GPU_PAGE;
    (void)munmap(room, (size_t)(at - room));
    (void)munmap(at + bytes, GPU_PAGE - (size_t)(at - room));
    at = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, *fd, 0);
    block->handle = fd;
    block->host = at;
    block->address = (uint64_t)(uintptr_t)at;
    block->bytes = bytes;
    m->blocks++;
    return 0;
}

static void free_block(void *context, const struct bell_mlx5_block *block)
{
    struct fake_memory *m = context;
    (void)munmap(block->host, block->bytes);
    (void)close(*(int *)block->handle);
    free(block->handle);
    m->blocks--;
}

static int export_block(void *context, const struct bell_mlx5_block *block, int *fd)
{
    struct fake_memory *m = context;
    if (m->refuse_dmabuf)
        return EOPNOTSUPP;
    *fd = dup(*(int *)block->handle);
    return *fd < 0 ? errno : 0;
}

static int write_block(void *context, const struct bell_mlx5_block *block, size_t offset, const void *from,
                       size_t bytes)
{
    (void)context;
    memcpy(block->host + offset, from, bytes);
    return 0;
}

static int read_block(void *context, const struct bell_mlx5_block *block, size_t offset, void *to, size_t bytes)
{
    (void)context;
    memcpy(to, block->host + offset, bytes);
    return 0;
}

static int map_register(void *context, uint64_t *reg, size_t bytes, uint64_t *address)
{
    struct fake_memory *m = context;
    (void)bytes;
    if (m->refuse_register)
        return EPERM;
    *address = (uint64_t)(uintptr_t)reg;
    m->registers++;
    m->mapped++;
    return 0;
}

static void unmap_register(void *context, uint64_t *reg)
{
    struct fake_memory *m = context;
    (void)reg;
    m->registers--;
}

void fake_memory_start(struct fake_memory *m, enum bell_memory kind)
{
    memset(m, 0, sizeof *m);
    m->table.context = m;
    m->table.kind = kind;
    m->table.page_bytes = GPU_PAGE;
    m->table.alloc = alloc_block;
    m->table.free = free_block;
    m->table.dmabuf = export_block;
    m->table.write = write_block;
    m->table.read = read_block;
    m->table.map_register = map_register;
    m->table.unmap_register = unmap_register;
}
