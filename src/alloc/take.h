/* SPDX-License-Identifier: MIT
 *
 * Getting loose pages for a request: new ones while the limit and the driver allow it, else pages
 * of holes. Decides which holes give theirs; not where they go. Guarded by whoever guards the
 * core. */
#ifndef UF_ALLOC_TAKE_H
#define UF_ALLOC_TAKE_H

#include "alloc/paging.h"

/* Makes at least so many pages loose for a stream; a large page may be replaced by small ones of as
 * many bytes. Pages in holes that are in no free set are left alone. Returns UF_OK;
 * UF_ERROR_OUT_OF_MEMORY (every page that is not in use was taken, and it is not enough; what was
 * taken stays loose); UF_ERROR_DEVICE; UF_ERROR_HOST_MEMORY. */
uf_status uf__take_pages(uf_core *core, uint32_t stream, uint64_t large_count,
                         uint64_t small_count) UF_MUST_USE;

/* Bytes of pages that a request can have at most: those of holes and loose ones, and room to grow
 * below the limit (not what the driver may refuse). */
uint64_t uf__take_available_bytes(const uf_core *core);

/* Bytes of pages that may be created before any are taken from holes. */
uint64_t uf__take_room(const uf_core *core);

/* Bytes of pages of holes, and loose ones: what is cached and not frozen. */
uint64_t uf__take_cached_bytes(const uf_core *core);

/* Makes up to `count` pages of one size loose, of holes that were freed up to that free, the
 * longest unused first; only idle ones, or after waiting. *taken receives how many. */
uf_status uf__take_from_cache(uf_core *core, uf_page_size size, uint64_t count, uint64_t freed_by,
                              bool can_wait, uint64_t *taken) UF_MUST_USE;

/* Gives all loose pages back to the driver. */
uf_status uf__take_undo(uf_core *core) UF_MUST_USE;

#endif
