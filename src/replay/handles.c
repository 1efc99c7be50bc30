/* SPDX-License-Identifier: MIT
 *
 * Pages of handles. */
#include "replay/handles.h"

#include <stdlib.h>
#include <string.h>

bool uf__handles_init(uf_handles *handles, uint32_t alloc_count)
{
    handles->page_count = (alloc_count >> UF_HANDLE_PAGE_BITS) + 1;
    handles->pages = calloc(handles->page_count, sizeof *handles->pages);
    return handles->pages != NULL;
}

bool uf__handles_copy(uf_handles *to, const uf_handles *from)
{
    *to = (uf_handles){malloc(from->page_count * sizeof *to->pages), from->page_count};
    if (to->pages == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < from->page_count; i++) {
        to->pages[i] = from->pages[i];
        if (to->pages[i] != NULL) {
            to->pages[i]->user_count++;
        }
    }
    return true;
}

bool uf__handles_set_slowly(uf_handles *handles, uint32_t alloc, uint32_t block)
{
    uf_handle_page **place = &handles->pages[alloc >> UF_HANDLE_PAGE_BITS];
    uf_handle_page *page = *place == NULL ? calloc(1, sizeof *page) : malloc(sizeof *page);
    if (page == NULL) {
        return false;
    }
    if (*place != NULL) {
        *page = **place;
        (*place)->user_count--;
    }
    page->user_count = 1;
    page->blocks[alloc & (UF_HANDLE_PAGE_COUNT - 1)] = block;
    *place = page;
    return true;
}

void uf__handles_fini(uf_handles *handles)
{
    for (uint32_t i = 0; handles->pages != NULL && i < handles->page_count; i++) {
        if (handles->pages[i] != NULL && --handles->pages[i]->user_count == 0) {
            free(handles->pages[i]);
        }
    }
    free(handles->pages);
    memset(handles, 0, sizeof *handles);
}
