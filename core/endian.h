/* SPDX-License-Identifier: Apache-2.0
 * Big-endian words, as the NIC reads and writes them.  bell_be* turns a host value into the value whose bytes in memory
 * are big-endian, and back; bell_store_be* and bell_load_be* work at any alignment. */
#ifndef BELL_CORE_ENDIAN_H
#define BELL_CORE_ENDIAN_H

#include "core/compiler.h"

#include <string.h>

#if defined(__BYTE_ORDER__) && defined(__ORDER_BIG_ENDIAN__)
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define BELL_HOST_IS_BIG_ENDIAN 1
#endif
#endif

BELL_PURE uint16_t bell_be16(uint16_t v)
{
#ifdef BELL_HOST_IS_BIG_ENDIAN
    return v;
#else
    return (uint16_t)(v << 8 | v >> 8);
#endif
}

BELL_PURE uint32_t bell_be32(uint32_t v)
{
#ifdef BELL_HOST_IS_BIG_ENDIAN
    return v;
#else
    return BELL_SWAP32(v);
#endif
}

BELL_PURE uint64_t bell_be64(uint64_t v)
{
#ifdef BELL_HOST_IS_BIG_ENDIAN
    return v;
#else
    return (uint64_t)bell_be32((uint32_t)v) << 32 | bell_be32((uint32_t)(v >> 32));
#endif
}

/* Little-endian, where that is what another library stores. */
BELL_PURE uint64_t bell_le64(uint64_t v)
{
#ifdef BELL_HOST_IS_BIG_ENDIAN
    return v << 56 | (v & 0xff00) << 40 | (v & 0xff0000) << 24 | (v & 0xff000000) << 8 | (v >> 8 & 0xff000000) |
           (v >> 24 & 0xff0000) | (v >> 40 & 0xff00) | v >> 56;
#else
    return v;
#endif
}

BELL_PURE void bell_store_be16(uint8_t *at, uint16_t v)
{
    uint16_t be = bell_be16(v);
    memcpy(at, &be, sizeof be);
}

BELL_PURE void bell_store_be32(uint8_t *at, uint32_t v)
{
    uint32_t be = bell_be32(v);
    memcpy(at, &be, sizeof be);
}

BELL_PURE void bell_store_be64(uint8_t *at, uint64_t v)
{
    uint64_t be = bell_be64(v);
    memcpy(at, &be, sizeof be);
}

BELL_PURE uint16_t bell_load_be16(const uint8_t *at)
{
    uint16_t be;
    memcpy(&be, at, sizeof be);
    return bell_be16(be);
}

BELL_PURE uint32_t bell_load_be32(const uint8_t *at)
{
    uint32_t be;
    memcpy(&be, at, sizeof be);
    return bell_be32(be);
}

BELL_PURE uint64_t bell_load_be64(const uint8_t *at)
{
    uint64_t be;
    memcpy(&be, at, sizeof be);
    return bell_be64(be);
}

#endif
