/* SPDX-License-Identifier: MIT
 *
 * Pages under the `unfrag` policy: physical handles of two sizes and where they are mapped. Knows
 * nothing of why pages move (paged.c and take.c decide that). Guarded by whoever guards the core.
 *
 *   region    |<--------------------------- reserved address space --------------------------->|
 *   granules  |   |   |   |   |   |   |   |   |   |   |   |   |   |   |   |   |   |   |   |   |
 *   pages     |[s]|[s]|[      large page      ]|[s]|           |[s]|[s]|[      large page     ]
 *   blocks    [ active ][        active         ][            hole: free, with pages or without
 *
 * Under this policy a free block is a hole in address space, whatever is mapped there, and holes
 * that touch are one. What always holds, and what the promise of the policy rests on:
 *   - an active block has a page at each granule that it touches
 *   - a large page lies wholly inside one active block, or wholly inside one hole
 * So a page that touches no active block can always be moved, and what cannot be used is bounded by
 * the small pages at the edges of blocks.
 *
 * Pages that are mapped nowhere are loose: on their way to a block, or, under a limit, kept for the
 * next request that moves pages. They count as reserved by the large class. Accounting:
 *   core.total_bytes = bytes of all pages and plain segments = reserved_bytes (small + large) */
#ifndef UF_ALLOC_PAGING_H
#define UF_ALLOC_PAGING_H

#include "alloc/epoch.h"
#include "alloc/parts.h"

#define UF_NO_PAGE 0u

typedef enum uf_page_size { UF_PAGE_SMALL, UF_PAGE_LARGE, UF_PAGE_SIZE_COUNT } uf_page_size;

typedef struct uf_page {
    uint64_t handle;      /* the device's name for it */
    uint64_t addr;        /* where it is mapped */
    uint32_t next;        /* in the loose or the vacant list */
    uint8_t size;         /* a uf_page_size */
    uint8_t shadow_count; /* old mappings of it that are still there (shadow.h) */
    bool is_there, is_loose;
    bool is_closed; /* mapped without access: neither that nor unmapping it succeeded */
} uf_page;

typedef struct uf_paging {
    uint64_t bytes_of[UF_PAGE_SIZE_COUNT];  /* the small size is the granule */
    uf_page_cost costs[UF_PAGE_SIZE_COUNT]; /* as the device says, or as measured on an H200 */
    uf_page *pages;                         /* [0] unused */
    uint32_t page_count, page_capacity, page_vacant;
    uint32_t loose[UF_PAGE_SIZE_COUNT], loose_count[UF_PAGE_SIZE_COUNT];
    uint64_t loose_bytes;
    uint64_t closed_count;                /* pages with is_closed */
    uint64_t free_sequence;               /* frees so far: the age of holes */
    uint64_t peak_frozen_bytes;           /* most at once */
    uint64_t moved_count;                 /* pages taken from holes for others, so far */
    uint64_t peak_active_bytes;           /* most at once, the request under way included */
    int64_t start_ns;                     /* when the first pages were wanted */
    int64_t move_ns;                      /* what moving a page is reckoned with */
    uint32_t tight_percent, soft_percent; /* soft bounds, of peak_active_bytes */
    uint64_t bound_bytes;                 /* what the request under way may grow to (take.c) */
    bool is_reserving;       /* pages are wanted ahead of time: the soft bound does not count */
    uint64_t headroom_bytes; /* of the device that growth leaves to others */
    uint64_t growable_bytes; /* what could be held, by the last look at the device */
    bool is_looked_up;       /* in the request under way */
    bool is_every_stream_watched; /* epoch.h */
    bool is_limit_spared;         /* take.c */
    uint64_t done_sequence;       /* frees up to it are idle on every stream, if that is so */
    uf_epochs *epochs;            /* by stream, as the next */
    uint64_t *last_free;          /* number of the stream's last free */
    uint32_t stream_count, epochs_capacity, last_free_capacity;
    struct uf_shadow *shadows;
    uint32_t shadow_count, shadow_capacity;
} uf_paging;

/* A stretch of whole granules in one region. */
typedef struct uf_stretch {
    uint32_t region;
    uint64_t from, to;
} uf_stretch;

/* granule_bytes: a power of two; large_bytes: a multiple of it. */
uf_status uf__paging_init(uf_core *core, uint64_t granule_bytes, uint64_t large_bytes) UF_MUST_USE;
/* Takes over the settings of pages, or their defaults. */
void uf__paging_settings(uf_core *core, const uf_core_config *config);
/* Unmaps and releases every page, mapped or loose; failures are ignored. */
void uf__paging_fini(uf_core *core);

/* Makes room to keep track of a stream; false if the host has no memory. */
bool uf__paging_stream(uf_core *core, uint32_t stream);

/* Bytes of pages and plain segments in private pools that live: nothing is taken from them. */
uint64_t uf__paging_frozen_bytes(const uf_core *core);
/* After a private pool's mapped_bytes grew. */
void uf__paging_note_frozen(uf_core *core);

/* Creates a loose page. UF_ERROR_OUT_OF_MEMORY: the driver has none. */
uf_status uf__page_create(uf_core *core, uf_page_size size) UF_MUST_USE;
/* Gives one loose page of that size back to the driver. */
uf_status uf__page_destroy(uf_core *core, uf_page_size size) UF_MUST_USE;

/* Whether an old mapping of a loose page is left (shadow.h). */
bool uf__paging_has_shadowed_loose(const uf_core *core);

/* The page at addr of a region, UF_NO_PAGE if nothing is mapped there. */
static inline uint32_t uf__page_at(const uf_core *core, uint32_t region_index, uint64_t addr)
{
    const uf_region *region = &core->regions[region_index];
    uint64_t granule = (addr - region->addr) >> __builtin_ctzll(region->page_bytes);
    return granule < region->page_capacity ? region->pages[granule] : UF_NO_PAGE;
}

static inline uint64_t uf__page_bytes(const uf_core *core, uint32_t page)
{
    return core->paging->bytes_of[core->paging->pages[page].size];
}

/* The large page that a block's edge at addr would cut in two, UF_NO_PAGE if none. */
static inline uint32_t uf__page_cut(const uf_core *core, uint32_t region, uint64_t addr)
{
    uint32_t page = uf__page_at(core, region, addr);
    if (page == UF_NO_PAGE || core->paging->pages[page].size != UF_PAGE_LARGE) {
        return UF_NO_PAGE;
    }
    return core->paging->pages[page].addr < addr ? page : UF_NO_PAGE;
}

static inline uint64_t uf__granule_floor(const uf_core *core, uint64_t addr)
{
    return addr & ~(core->paging->bytes_of[UF_PAGE_SMALL] - 1);
}

static inline uint64_t uf__granule_ceil(const uf_core *core, uint64_t addr)
{
    return uf__granule_floor(core, addr + core->paging->bytes_of[UF_PAGE_SMALL] - 1);
}

/* Where large pages may lie under a block of [addr, end): its whole granules, or nothing if it is
 * not worth it. */
uf_stretch uf__pages_inner(const uf_core *core, uint32_t region, uint64_t addr, uint64_t end);

/* Adds how many pages of each size a stretch takes. */
void uf__pages_count(const uf_core *core, const uf_stretch *stretch, const uf_stretch *inner,
                     uint64_t count[UF_PAGE_SIZE_COUNT]);

/* Maps loose pages over a stretch where nothing is mapped: large ones for what lies in inner as far
 * as there are loose ones, small ones for the rest. All or nothing. There must be enough loose
 * pages. */
uf_status uf__pages_map(uf_core *core, const uf_stretch *stretch,
                        const uf_stretch *inner) UF_MUST_USE;

/* Sees to it that no page in a stretch is closed. */
uf_status uf__pages_open(uf_core *core, const uf_stretch *stretch) UF_MUST_USE;

/* Makes the pages of a stretch loose without asking the driver: their mapping stays (shadow.h). */
void uf__pages_lift(uf_core *core, const uf_stretch *stretch);

/* The next run of granules with pages in [run->to, end), cut to it; false if there is none. */
bool uf__paging_next_run(const uf_core *core, uf_stretch *run, uint64_t end);

/* Unmaps a stretch that consists of whole pages; they become loose. All or nothing. */
uf_status uf__pages_unmap(uf_core *core, const uf_stretch *stretch) UF_MUST_USE;

#endif
