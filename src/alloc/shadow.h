/* SPDX-License-Identifier: MIT
 *
 * Shadows: addresses whose pages have gone elsewhere, but whose mapping stays until the work that
 * was queued before is done. Within one stream a page may be used at its new address at once: the
 * order of the stream protects the data, and the old address still leads there.
 *
 *   before   [ active ][               hole with pages                ][ active ]
 *   after    [ active ][  hole  ][ shadow: nothing goes here yet ][ h ][ active ]
 *
 * Guarded by whoever guards the core. */
#ifndef UF_ALLOC_SHADOW_H
#define UF_ALLOC_SHADOW_H

#include "alloc/paging.h"

typedef struct uf_shadow {
    uint32_t block;
    uint32_t stream;
    uint64_t sequence;   /* done with this free, the mapping can go */
    uint32_t page_count; /* pages that lie there, and their names */
    uint32_t *pages;
} uf_shadow;

/* Makes the pages of a stretch of a hole loose and leaves its mapping as a shadow. The hole is in
 * its set; stretch consists of whole pages inside it. *rest receives the hole behind the shadow,
 * UF_NO_BLOCK if none; what is before it keeps the hole's index, if anything is. Returns UF_OK or
 * UF_ERROR_HOST_MEMORY; nothing changes then. */
uf_status uf__shadow_cast(uf_core *core, uint32_t hole, const uf_stretch *stretch) UF_MUST_USE;

/* Takes away the shadows whose work is known to be done. */
uf_status uf__shadow_clear(uf_core *core) UF_MUST_USE;

/* Waits for the work behind every shadow and takes them away. */
uf_status uf__shadow_wait(uf_core *core) UF_MUST_USE;

/* Waits, if need be, until no old mapping of a loose page is left. */
uf_status uf__shadow_settle_loose(uf_core *core) UF_MUST_USE;

#endif
