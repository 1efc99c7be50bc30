/* SPDX-License-Identifier: MIT
 *
 * Growing arrays and hash indexes; see array.h. */
#include "trace/array.h"

#include <stdlib.h>

void *uf__array_grow(void *items, uint64_t *capacity, uint64_t need_count, size_t item_bytes)
{
    uint64_t count = *capacity < 16 ? 16 : *capacity;
    while (count < need_count) {
        if (count > UINT64_MAX / 2)
            return NULL;
        count *= 2;
    }
    if (count > (uint64_t)(PTRDIFF_MAX / 2) / item_bytes)
        return NULL;
    void *moved = realloc(items, (size_t)count * item_bytes);
    if (moved != NULL)
        *capacity = count;
    return moved;
}

void *uf__array_trim(void *items, uint64_t count, size_t item_bytes)
{
    if (count == 0) {
        free(items);
        return NULL;
    }
    void *moved = realloc(items, (size_t)count * item_bytes);
    return moved != NULL ? moved : items;
}

void uf__index_fini(uf__index *index)
{
    free(index->slots);
    memset(index, 0, sizeof *index);
}

static void index_place(uint64_t *slots, uint64_t mask, uint64_t slot)
{
    uint64_t place = (slot >> 32) & mask;
    while ((uint32_t)slots[place] != UF_NONE)
        place = (place + 1) & mask;
    slots[place] = slot;
}

static bool index_grow(uf__index *index)
{
    uint64_t count = index->slots == NULL ? 64 : (index->slot_mask + 1) * 2;
    if (count > SIZE_MAX / sizeof *index->slots / 2)
        return false;
    uint64_t *slots = malloc((size_t)count * sizeof *slots);
    if (slots == NULL)
        return false;
    memset(slots, 0xff, (size_t)count * sizeof *slots);
    for (uint64_t i = 0; index->slots != NULL && i <= index->slot_mask; i++)
        if ((uint32_t)index->slots[i] != UF_NONE)
            index_place(slots, count - 1, index->slots[i]);
    free(index->slots);
    index->slots = slots;
    index->slot_mask = count - 1;
    return true;
}

bool uf__index_add(uf__index *index, uint32_t hash, uint32_t id)
{
    if (index->slots == NULL || index->id_count >= (index->slot_mask + 1) / 2) {
        if (!index_grow(index))
            return false;
    }
    index_place(index->slots, index->slot_mask, (uint64_t)hash << 32 | id);
    index->id_count++;
    return true;
}
