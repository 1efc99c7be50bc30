/* SPDX-License-Identifier: MIT
 *
 * The two size decisions of PyTorch's allocator: a request to a block size, and a block size to
 * the size of a new segment (PyTorch 2.11 behaviour). The only place where either is rounded.
 * Pure functions of the settings; no lock. */
#ifndef UF_ALLOC_ROUNDING_H
#define UF_ALLOC_ROUNDING_H

#include <stdint.h>

#include "alloc/conf.h"
#include "base/size.h"

#define UF_MIN_BLOCK_BYTES UINT64_C(512)           /* block sizes are multiples of this */
#define UF_SMALL_MAX_BYTES UINT64_C(1048576)       /* up to here: the small pool */
#define UF_SMALL_SEGMENT_BYTES UINT64_C(2097152)   /* a segment of the small pool */
#define UF_LARGE_SEGMENT_BYTES UINT64_C(20971520)  /* uf_conf.large_segment_bytes by default */
#define UF_MIN_LARGE_BYTES UINT64_C(10485760)      /* from here: a segment of its own size */
#define UF_ROUND_LARGE_BYTES UINT64_C(2097152)     /* granularity of those segments */
#define UF_REQUEST_LIMIT_BYTES (UINT64_C(1) << 60) /* a request this large fails at once */

/* Index into uf_conf.roundup_power2_divisions for a request: 0 below 2 MiB, 1 for [2, 4) MiB, ...,
 * 15 from 32 GiB on. */
static inline unsigned uf__division_index(uint64_t bytes)
{
    /* bytes | 1 MiB has its highest bit at 20 or above, which is the clamp at 0. */
    unsigned index = uf__floor_log2(bytes | UF_MIB) - 20u;
    return index < UF_CONF_DIVISION_COUNT ? index : UF_CONF_DIVISION_COUNT - 1u;
}

/* bytes rounded up to a multiple of 2^floor_log2(bytes) / divisions. divisions is a power of two
 * above 1. The step is at least 512 where bytes > 512 * divisions; with more divisions than bytes
 * have (the wrapped case of the caller) the next power of two is the result. */
static inline uint64_t uf__round_to_division(uint64_t bytes, uint64_t divisions)
{
    unsigned bytes_log2 = uf__floor_log2(bytes);
    unsigned divisions_log2 = uf__floor_log2(divisions);
    unsigned step_log2 = divisions_log2 <= bytes_log2 ? bytes_log2 - divisions_log2 : bytes_log2;
    return uf__round_up_power2(bytes, UINT64_C(1) << step_log2);
}

/* The block size for a request of `bytes`, which is below UF_REQUEST_LIMIT_BYTES; 0 reads as 1. */
static inline uint64_t uf__round_request(const uf_conf *conf, uint64_t bytes)
{
    if (bytes < UF_MIN_BLOCK_BYTES) {
        return UF_MIN_BLOCK_BYTES;
    }
    uint64_t divisions = conf->roundup_power2_divisions[uf__division_index(bytes)];
    /* PyTorch's product 512 * divisions wraps to 0 from 2^55 divisions on, and so does this. */
    if (divisions > 1 && bytes > (divisions << 9)) {
        return uf__round_to_division(bytes, divisions);
    }
    return uf__round_up_power2(bytes, UF_MIN_BLOCK_BYTES);
}

/* The size of the segment that PyTorch asks the driver for to serve a block of rounded_bytes. */
static inline uint64_t uf__segment_bytes(const uf_conf *conf, uint64_t rounded_bytes)
{
    if (rounded_bytes <= UF_SMALL_MAX_BYTES) {
        return UF_SMALL_SEGMENT_BYTES;
    }
    if (rounded_bytes < UF_MIN_LARGE_BYTES) {
        return conf->large_segment_bytes;
    }
    return uf__round_up_power2(rounded_bytes, UF_ROUND_LARGE_BYTES);
}

static inline bool uf__is_small(uint64_t rounded_bytes)
{
    return rounded_bytes <= UF_SMALL_MAX_BYTES;
}

#endif
