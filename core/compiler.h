/* SPDX-License-Identifier: Apache-2.0
 * What the shared headers need from a compiler: they are read by C11, C++17 and CUDA alike. */
#ifndef BELL_CORE_COMPILER_H
#define BELL_CORE_COMPILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#define BELL_PURE static inline __host__ __device__
#define BELL_STEP static __forceinline__ __device__
#define BELL_RARELY __noinline__ /* after BELL_PURE: long, and off the common path */
#else
#define BELL_PURE static inline
#define BELL_STEP static inline
#define BELL_RARELY
#endif

/* Reverse the bytes of a uint32_t. */
#ifdef __CUDA_ARCH__
#define BELL_SWAP32(v) __byte_perm((v), 0, 0x0123)
#else
#define BELL_SWAP32(v) ((v) << 24 | ((v) & 0xff00u) << 8 | ((v) >> 8 & 0xff00u) | (v) >> 24)
#endif

#ifdef __cplusplus
#define BELL_STATIC_ASSERT(claim, text) static_assert(claim, text)
#define BELL_EXTERN_C_BEGIN extern "C" {
#define BELL_EXTERN_C_END }
#else
#define BELL_STATIC_ASSERT(claim, text) _Static_assert(claim, text)
#define BELL_EXTERN_C_BEGIN
#define BELL_EXTERN_C_END
#endif

#if defined(__GNUC__) || defined(__clang__)
#define BELL_MUST_USE __attribute__((warn_unused_result))
#define BELL_FORMAT(fmt, first) __attribute__((format(printf, fmt, first)))
#else
#define BELL_MUST_USE
#define BELL_FORMAT(fmt, first)
#endif

#endif
