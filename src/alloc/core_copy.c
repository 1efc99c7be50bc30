/* SPDX-License-Identifier: MIT
 *
 * A copy of a core's whole state. */
#include "alloc/core.h"

#include <stdlib.h>
#include <string.h>

/* *items becomes a copy of `count` of them, with no room to grow. Keeps NULL. */
static bool duplicate(void **items, size_t item_bytes, size_t count)
{
    if (*items == NULL) {
        return true;
    }
    void *copy = malloc(item_bytes * (count == 0 ? 1 : count));
    if (copy != NULL && count > 0) {
        memcpy(copy, *items, item_bytes * count);
    }
    *items = copy;
    return copy != NULL;
}

static bool copy_blocks(uf_block_table *table)
{
    /* The table doubles when it grows, so its capacity stays. */
    uf_block *items = malloc((size_t)table->capacity * sizeof *items);
    if (items != NULL) {
        memcpy(items, table->items, (size_t)table->count * sizeof *items);
    }
    table->items = items;
    return items != NULL;
}

/* The arrays inside of each item are still the original's: on failure those not reached are
 * dropped. */
static bool copy_shelves(uf_core *core)
{
    if (!duplicate((void **)&core->shelves, sizeof(uf_shelf *), core->shelf_capacity)) {
        core->shelf_count = 0;
        return false;
    }
    for (uint32_t i = 1; i < core->shelf_count; i++) {
        if (core->shelves[i] == NULL) {
            continue;
        }
        uf_shelf *shelf = malloc(sizeof *shelf);
        if (shelf != NULL) {
            *shelf = *core->shelves[i];
            core->shelves[i] = shelf;
        }
        if (shelf == NULL || !duplicate((void **)&shelf->unmapped.items,
                                        sizeof *shelf->unmapped.items, shelf->unmapped.capacity)) {
            core->shelf_count = shelf == NULL ? i : i + 1;
            return false;
        }
    }
    return true;
}

static bool copy_pools(uf_core *core)
{
    bool is_good = duplicate((void **)&core->pools, sizeof *core->pools, core->pool_capacity);
    core->pool_count = is_good ? core->pool_count : 0;
    for (uint32_t i = 0; i < core->pool_count; i++) {
        for (int c = 0; c < UF_CLASS_COUNT; c++) {
            uf_pool_class *of = &core->pools[i].classes[c];
            if (!is_good) {
                of->shelf_of_stream = NULL;
            }
            is_good = is_good && duplicate((void **)&of->shelf_of_stream,
                                           sizeof *of->shelf_of_stream, of->stream_capacity);
        }
    }
    return is_good;
}

static bool copy_uses(uf_core *core)
{
    bool is_good = duplicate((void **)&core->uses, sizeof *core->uses, core->uses_capacity);
    core->uses_count = is_good ? core->uses_count : 0;
    for (uint32_t i = 0; i < core->uses_count; i++) {
        uf_uses *uses = &core->uses[i];
        if (!is_good) {
            uses->items = NULL;
        }
        is_good = is_good && duplicate((void **)&uses->items, sizeof *uses->items, uses->capacity);
    }
    return is_good;
}

bool uf__core_copy(uf_core *to, const uf_core *from)
{
    *to = *from;
    to->device = NULL;
    /* Each of these takes its arrays over even if one before it failed. */
    bool is_good = copy_blocks(&to->blocks);
    is_good &= copy_shelves(to);
    is_good &= copy_pools(to);
    is_good &= copy_uses(to);
    is_good &= duplicate((void **)&to->streams, sizeof *to->streams, to->stream_capacity);
    is_good &=
        duplicate((void **)&to->streams_sorted, sizeof *to->streams_sorted, to->stream_capacity);
    is_good &= duplicate((void **)&to->regions, sizeof *to->regions, to->region_capacity);
    is_good &=
        duplicate((void **)&to->redirections, sizeof *to->redirections, to->redirection_capacity);
    if (!is_good) {
        uf__core_fini(to);
    }
    return is_good;
}
