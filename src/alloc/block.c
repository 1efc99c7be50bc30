/* SPDX-License-Identifier: MIT
 *
 * Growth of the block table. */
#include "alloc/block.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 256 };

bool uf__block_table_init(uf_block_table *table)
{
    memset(table, 0, sizeof *table);
    table->count = 1; /* slot 0 is "none" */
    return uf__block_table_grow(table);
}

bool uf__block_table_grow(uf_block_table *table)
{
    if (table->capacity > UINT32_MAX / 2) {
        return false;
    }
    uint32_t capacity = table->capacity == 0 ? FIRST_CAPACITY : table->capacity * 2;
    uf_block *items = realloc(table->items, (size_t)capacity * sizeof *items);
    if (items == NULL) {
        return false;
    }
    if (table->capacity == 0) {
        memset(items, 0, sizeof *items);
    }
    table->items = items;
    table->capacity = capacity;
    return true;
}

void uf__block_table_fini(uf_block_table *table)
{
    free(table->items);
    memset(table, 0, sizeof *table);
}
