/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/mlx5/calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_BYTES 4096u /* what log_page_size counts from; a larger page of the machine is a multiple of it */

static int alloc_block(void *context, size_t bytes, struct bell_mlx5_block *block)
{
    (void)context;
    size_t whole = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    void *at = aligned_alloc(PAGE_BYTES, whole);
    if (!at)
        return ENOMEM;
    memset(at, 0, whole);
    block->handle = block->host = at;
    block->address = (uint64_t)(uintptr_t)at;
    block->bytes = whole;
    return 0;
}

static void free_block(void *context, const struct bell_mlx5_block *block)
{
    (void)context;
    free(block->handle);
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

const struct bell_mlx5_memory bell_mlx5_host_memory = {
    .kind = BELL_MEMORY_HOST,
    .page_bytes = PAGE_BYTES,
    .alloc = alloc_block,
    .free = free_block,
    .write = write_block,
    .read = read_block,
};
