/* SPDX-License-Identifier: Apache-2.0
 * Memory that GPU lanes post to, for executor mlx5. */
#ifndef BELL_HW_CUDA_MEMORY_H
#define BELL_HW_CUDA_MEMORY_H

#include "hw/cuda/gpu.h"
#include "hw/mlx5/calls.h"

/* GPU memory: blocks on 64 KiB, exported as dma-bufs where driver and GPU can (cuMemGetHandleForAddressRange), and in
 * step with the NIC (CU_POINTER_ATTRIBUTE_SYNC_MEMOPS), as GPUDirect RDMA asks.  Registers are mapped as I/O memory.
 * *gpu outlives the table. */
void bell_gpu_memory(struct bell_gpu *gpu, struct bell_mlx5_memory *table);

/* Pinned host memory that the GPU stores to; registers as above. */
void bell_gpu_pinned_memory(struct bell_gpu *gpu, struct bell_mlx5_memory *table);

#endif
