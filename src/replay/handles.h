/* SPDX-License-Identifier: MIT
 *
 * Which block of the core each allocation has. Owns pages of entries, made when first written;
 * copies share pages until one of them writes. Not thread-safe, copies included. */
#ifndef UF_REPLAY_HANDLES_H
#define UF_REPLAY_HANDLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alloc/block.h"

enum { UF_HANDLE_PAGE_BITS = 10, UF_HANDLE_PAGE_COUNT = 1 << UF_HANDLE_PAGE_BITS };

typedef struct uf_handle_page {
    uint32_t user_count; /* tables that hold it */
    uint32_t blocks[UF_HANDLE_PAGE_COUNT];
} uf_handle_page;

typedef struct uf_handles {
    uf_handle_page **pages; /* NULL: UF_NO_BLOCK throughout */
    uint32_t page_count;
} uf_handles;

/* All three return false if the host has no memory left; fini in any case. */
bool uf__handles_init(uf_handles *handles, uint32_t alloc_count);
bool uf__handles_copy(uf_handles *to, const uf_handles *from);
bool uf__handles_set_slowly(uf_handles *handles, uint32_t alloc, uint32_t block);
void uf__handles_fini(uf_handles *handles);

static inline uint32_t uf__handles_get(const uf_handles *handles, uint32_t alloc)
{
    const uf_handle_page *page = handles->pages[alloc >> UF_HANDLE_PAGE_BITS];
    return page == NULL ? UF_NO_BLOCK : page->blocks[alloc & (UF_HANDLE_PAGE_COUNT - 1)];
}

static inline bool uf__handles_set(uf_handles *handles, uint32_t alloc, uint32_t block)
{
    uf_handle_page *page = handles->pages[alloc >> UF_HANDLE_PAGE_BITS];
    if (__builtin_expect(page == NULL || page->user_count > 1, 0)) {
        return uf__handles_set_slowly(handles, alloc, block);
    }
    page->blocks[alloc & (UF_HANDLE_PAGE_COUNT - 1)] = block;
    return true;
}

#endif
