/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/cuda/memory.h"

#include <cuda.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define GPU_PAGE_BYTES 65536u /* what dma-bufs and nvidia-peermem count in */
#define HOST_PAGE_BYTES 4096u

static int errno_of(cudaError_t e)
{
    (void)cudaGetLastError(); /* it was told */
    switch (e) {
    case cudaSuccess:
        return 0;
    case cudaErrorMemoryAllocation:
        return ENOMEM;
    case cudaErrorNotSupported:
        return EOPNOTSUPP;
    case cudaErrorNotPermitted:
        return EPERM;
    default:
        return EIO;
    }
}

/* A function of the driver's own interface, which is not linked; NULL: it has none of that name. */
static void *driver_call(const char *name)
{
    void *call = NULL;
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
    cudaError_t e = cudaGetDriverEntryPointByVersion(name, &call, 12000, cudaEnableDefault, &found);
#else
    cudaError_t e = cudaGetDriverEntryPoint(name, &call, cudaEnableDefault, &found);
#endif
    return errno_of(e) == 0 && found == cudaDriverEntryPointSuccess ? call : NULL;
}

static int select_gpu(const struct bell_gpu *gpu)
{
    return errno_of(cudaSetDevice(gpu->number));
}

/* Copies by this process end before they return, also those that the driver would let run on.  A GPU that cannot be
 * told has nothing to tell a NIC either. */
static int keep_in_step(uint64_t address)
{
    union {
        void *raw;
        CUresult (*call)(const void *, CUpointer_attribute, CUdeviceptr);
    } set = { driver_call("cuPointerSetAttribute") };
    unsigned yes = 1;
    if (!set.raw) return EOPNOTSUPP;
    return set.call(&yes, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (CUdeviceptr)address) == CUDA_SUCCESS ? 0 : EOPNOTSUPP;
}

static int alloc_block(void *context, size_t bytes, struct bell_mlx5_block *block)
{
    struct bell_gpu *gpu = context;
    void *at = NULL;
    int failure = select_gpu(gpu);
    if (!failure) failure = errno_of(cudaMalloc(&at, bytes + GPU_PAGE_BYTES)); /* which aligns to less than a page */
    if (failure) return failure;
    block->handle = at;
    block->address = ((uint64_t)(uintptr_t)at + GPU_PAGE_BYTES - 1) / GPU_PAGE_BYTES * GPU_PAGE_BYTES;
    block->host = NULL;
    block->bytes = bytes;
    failure = errno_of(cudaMemset((void *)(uintptr_t)block->address, 0, bytes));
    if (!failure) failure = keep_in_step(block->address);
    if (failure) (void)cudaFree(at);
    return failure;
}

static void free_block(void *context, const struct bell_mlx5_block *block)
{
    (void)select_gpu(context);
    (void)cudaFree(block->handle);
}

static int export_block(void *context, const struct bell_mlx5_block *block, int *fd)
{
    union {
        void *raw;
        CUresult (*call)(void *, CUdeviceptr, size_t, CUmemRangeHandleType, unsigned long long);
    } get = { driver_call("cuMemGetHandleForAddressRange") };
    int failure = select_gpu(context);
    if (failure || !get.raw) return EOPNOTSUPP;
    return get.call(fd, (CUdeviceptr)block->address, block->bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0) ==
                   CUDA_SUCCESS
               ? 0
               : EOPNOTSUPP;
}

static int copy_block(void *context, void *to, const void *from, size_t bytes)
{
    int failure = select_gpu(context);
    if (!failure) failure = errno_of(cudaMemcpy(to, from, bytes, cudaMemcpyDefault));
    return failure ? failure : errno_of(cudaStreamSynchronize(NULL));
}

static int write_block(void *context, const struct bell_mlx5_block *block, size_t offset, const void *from,
                       size_t bytes)
{
    return copy_block(context, (void *)(uintptr_t)(block->address + offset), from, bytes);
}

static int read_block(void *context, const struct bell_mlx5_block *block, size_t offset, void *to, size_t bytes)
{
    return copy_block(context, to, (const void *)(uintptr_t)(block->address + offset), bytes);
}

static int alloc_pinned(void *context, size_t bytes, struct bell_mlx5_block *block)
{
    void *at = NULL;
    int failure = select_gpu(context);
    if (!failure) failure = errno_of(cudaHostAlloc(&at, bytes, cudaHostAllocMapped | cudaHostAllocPortable));
    if (failure) return failure;
    memset(at, 0, bytes);
    block->handle = block->host = at;
    block->address = (uint64_t)(uintptr_t)at;
    block->bytes = bytes;
    return 0;
}

static void free_pinned(void *context, const struct bell_mlx5_block *block)
{
    (void)select_gpu(context);
    (void)cudaFreeHost(block->handle);
}

/* cudaHostRegisterIoMemory is cuMemHostRegister's IOMEMORY.  Whole pages are registered; a page that two queues share
 * is refused the second time, and then the host rings for all. */
static int map_register(void *context, uint64_t *reg, size_t bytes, uint64_t *address)
{
    void *at = NULL;
    int failure = select_gpu(context);
    unsigned flags = cudaHostRegisterIoMemory | cudaHostRegisterMapped | cudaHostRegisterPortable;
    if (!failure) failure = errno_of(cudaHostRegister(reg, bytes, flags));
    if (failure) return failure;
    failure = errno_of(cudaHostGetDevicePointer(&at, reg, 0));
    if (failure) (void)cudaHostUnregister(reg);
    *address = (uint64_t)(uintptr_t)at;
    return failure;
}

static void unmap_register(void *context, uint64_t *reg)
{
    (void)select_gpu(context);
    (void)cudaHostUnregister(reg);
}

void bell_gpu_memory(struct bell_gpu *gpu, struct bell_mlx5_memory *table)
{
    *table = (struct bell_mlx5_memory){
        .context = gpu,
        .kind = BELL_MEMORY_GPU,
        .page_bytes = GPU_PAGE_BYTES,
        .alloc = alloc_block,
        .free = free_block,
        .dmabuf = export_block,
        .write = write_block,
        .read = read_block,
        .map_register = map_register,
        .unmap_register = unmap_register,
    };
}

void bell_gpu_pinned_memory(struct bell_gpu *gpu, struct bell_mlx5_memory *table)
{
    *table = (struct bell_mlx5_memory){
        .context = gpu,
        .kind = BELL_MEMORY_HOST,
        .page_bytes = HOST_PAGE_BYTES,
        .alloc = alloc_pinned,
        .free = free_pinned,
        .write = write_block,
        .read = read_block,
        .map_register = map_register,
        .unmap_register = unmap_register,
    };
}
