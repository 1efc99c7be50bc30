/* SPDX-License-Identifier: MIT
 *
 * How large a request the cache can serve as it is, without the driver. Read-only on the core. */
#ifndef UF_ALLOC_LARGEST_H
#define UF_ALLOC_LARGEST_H

#include "alloc/core.h"

/* The largest cached block of one pool, class and stream, usable or not; 0 = none. */
uint64_t uf__largest_block_bytes(const uf_core *core, uint32_t pool, int pool_class,
                                 uint32_t stream);

/* The largest request, of any stream and pool, that uf__core_alloc would serve from the free sets
 * under the settings in force; 0 = none. */
uint64_t uf__largest_request_bytes(const uf_core *core);

#endif
