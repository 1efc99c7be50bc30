/* SPDX-License-Identifier: MIT
 *
 * The invariant checker: walks every block, set, region and list, and proves that they agree with
 * each other and with the counters. Changes nothing. */
#include "alloc/core.h"

#include <inttypes.h>
#include <stdlib.h>

#include "alloc/paging_check.h"
#include "base/error.h"

typedef struct uf_tally {
    uint64_t mapped_bytes, region_bytes;
    int64_t counters[UF_COUNTER_COUNT][UF_CLASS_COUNT];
    uint64_t free_count, unmapped_count, waiting_count;
} uf_tally;

static uf_status broken(uf_error *error, const char *what, uint64_t index)
{
    return uf__error_set(error, UF_ERROR_INTERNAL,
                         "allocator check: %s (block or slot %" PRIu64 ")", what, index);
}

static uf_status check_links(const uf_core *core, uint32_t index, uf_error *error)
{
    const uf_block *blocks = core->blocks.items, *block = &blocks[index];
    if (block->size_bytes == 0 || block->shelf == 0 || block->shelf >= core->shelf_count ||
        core->shelves[block->shelf] == NULL) {
        return broken(error, "a block has no size or no shelf", index);
    }
    if (block->prev >= core->blocks.count || block->next >= core->blocks.count ||
        block->uses >= (core->uses_count == 0 ? 1 : core->uses_count) ||
        block->region >= (core->region_count == 0 ? 1 : core->region_count)) {
        return broken(error, "a block's neighbour, region or use is out of range", index);
    }
    if (block->next != UF_NO_BLOCK) {
        const uf_block *next = &blocks[block->next];
        if (next->life == UF_LIFE_UNUSED || next->prev != index) {
            return broken(error, "neighbour links disagree", index);
        }
        if (next->addr != block->addr + block->size_bytes || next->shelf != block->shelf ||
            next->region != block->region) {
            return broken(error, "neighbours do not touch or differ in shelf or segment", index);
        }
        if (next->life == UF_LIFE_FREE && block->life == UF_LIFE_FREE &&
            next->is_mapped == block->is_mapped) {
            return broken(error, "two free neighbours were not merged", index);
        }
    }
    if (block->prev != UF_NO_BLOCK && blocks[block->prev].next != index) {
        return broken(error, "neighbour links disagree", index);
    }
    if (!block->is_mapped && (block->region == 0 || block->life != UF_LIFE_FREE)) {
        return broken(error, "an unmapped block outside a region, or in use", index);
    }
    if ((block->life == UF_LIFE_PENDING || block->life == UF_LIFE_DEFERRED) && block->uses == 0) {
        return broken(error, "a waiting block has nothing to wait for", index);
    }
    return UF_OK;
}

static void add_block(uf_tally *sums, const uf_core *core, const uf_block *block)
{
    int c = core->shelves[block->shelf]->pool_class;
    int64_t size_bytes = (int64_t)block->size_bytes;
    bool is_split = uf__block_is_split(block);
    if (block->life == UF_LIFE_SHADOW) {
        return;
    }
    if (!block->is_mapped) {
        sums->unmapped_count++;
        return;
    }
    if (core->paging == NULL || block->region == 0) {
        sums->mapped_bytes += block->size_bytes;
        sums->counters[UF_COUNTER_RESERVED_BYTES][c] += size_bytes;
    }
    if (block->region == 0 && block->prev == UF_NO_BLOCK) {
        sums->counters[UF_COUNTER_SEGMENT][c] += 1;
    }
    if (block->life == UF_LIFE_FREE) {
        sums->free_count++;
        if (is_split && block->region == 0) {
            sums->counters[UF_COUNTER_INACTIVE_SPLIT][c] += 1;
            sums->counters[UF_COUNTER_INACTIVE_SPLIT_BYTES][c] += size_bytes;
        }
        return;
    }
    sums->counters[UF_COUNTER_ACTIVE][c] += 1;
    sums->counters[UF_COUNTER_ACTIVE_BYTES][c] += size_bytes;
    sums->counters[UF_COUNTER_REQUESTED_BYTES][c] += (int64_t)block->requested_bytes;
    sums->waiting_count += block->life != UF_LIFE_ALLOCATED;
    if (block->life == UF_LIFE_ALLOCATED) {
        sums->counters[UF_COUNTER_ALLOCATION][c] += 1;
        sums->counters[UF_COUNTER_ALLOCATED_BYTES][c] += size_bytes;
    }
}

static uf_status check_shelf(const uf_core *core, uint32_t shelf_index, uf_tally *sums,
                             uf_error *error)
{
    const uf_shelf *shelf = core->shelves[shelf_index];
    const uf_block *blocks = core->blocks.items;
    uint32_t count = 0;
    uint32_t index =
        shelf->cached.count == 0 ? UF_NO_BLOCK : uf__freeset_at_least(&shelf->cached, blocks, 0, 0);
    while (index != UF_NO_BLOCK) {
        if (blocks[index].life != UF_LIFE_FREE || !blocks[index].is_mapped ||
            blocks[index].shelf != shelf_index) {
            return broken(error, "a free set holds a block that is not free there", index);
        }
        uint32_t after = uf__freeset_after(&shelf->cached, blocks, index);
        if (after != UF_NO_BLOCK &&
            !uf__freeset_less(&blocks[index], blocks[after].size_bytes, blocks[after].addr)) {
            return broken(error, "a free set is out of order", index);
        }
        index = after;
        count++;
    }
    if (count != shelf->cached.count) {
        return broken(error, "a free set's count is wrong", shelf_index);
    }
    sums->free_count -= count;
    for (uint32_t i = 0; i < shelf->unmapped.count; i++) {
        uint32_t at = shelf->unmapped.items[i];
        if (blocks[at].is_mapped || blocks[at].life != UF_LIFE_FREE ||
            (i > 0 && blocks[shelf->unmapped.items[i - 1]].addr >= blocks[at].addr)) {
            return broken(error, "an unmapped list is wrong", at);
        }
    }
    sums->unmapped_count -= shelf->unmapped.count;
    return UF_OK;
}

static uf_status check_regions(const uf_core *core, uf_error *error)
{
    for (uint32_t i = 1; i < core->blocks.count; i++) {
        const uf_block *head = &core->blocks.items[i];
        if (head->life == UF_LIFE_UNUSED || head->prev != UF_NO_BLOCK || head->region == 0) {
            continue;
        }
        const uf_region *region = &core->regions[head->region];
        uint64_t sum_bytes = 0;
        for (uint32_t at = i; at != UF_NO_BLOCK; at = core->blocks.items[at].next) {
            const uf_block *block = &core->blocks.items[at];
            bool is_page_wise = (block->addr - region->addr) % region->page_bytes == 0 &&
                                block->size_bytes % region->page_bytes == 0;
            if (!block->is_mapped && !is_page_wise) {
                return broken(error, "an unmapped block is not made of whole pages", at);
            }
            sum_bytes += block->size_bytes;
        }
        if (head->addr != region->addr || sum_bytes != region->size_bytes) {
            return broken(error, "blocks do not fill their region", i);
        }
    }
    return UF_OK;
}

static uf_status check_waiting(const uf_core *core, const uf_uses_list *list, uf_life life,
                               uf_tally *sums, uf_error *error)
{
    uint32_t previous = 0;
    for (uint32_t record = list->first; record != 0; record = core->uses[record].next) {
        uint32_t index = core->uses[record].block;
        if (core->uses[record].prev != previous || core->blocks.items[index].uses != record ||
            core->blocks.items[index].life != life) {
            return broken(error, "a list of waiting blocks is wrong", index);
        }
        previous = record;
        sums->waiting_count--;
    }
    return list->last == previous ? UF_OK
                                  : broken(error, "a waiting list's end is wrong", previous);
}

static uf_status check_sums(const uf_core *core, const uf_tally *sums, uf_error *error)
{
    for (uint32_t id = 0; id < UF_COUNTER_COUNT; id++) {
        for (int c = 0; c < UF_CLASS_COUNT; c++) {
            int64_t current = uf__counter_current(&core->counters, (uf_counter_id)id, c);
            if (sums->counters[id][c] != current) {
                return uf__error_set(error, UF_ERROR_INTERNAL,
                                     "allocator check: counter %" PRIu32 " of class %d is %" PRId64
                                     ", the blocks say %" PRId64,
                                     id, c, current, sums->counters[id][c]);
            }
        }
        int64_t all = sums->counters[id][UF_CLASS_SMALL] + sums->counters[id][UF_CLASS_LARGE];
        if (all != uf__counter_all(&core->counters, (uf_counter_id)id)) {
            return broken(error, "a counter of both classes is not the sum of them", id);
        }
    }
    if (core->paging == NULL && sums->mapped_bytes != core->total_bytes) {
        return broken(error, "total_bytes is not the sum of mapped blocks", core->total_bytes);
    }
    if (sums->waiting_count != 0) {
        return broken(error, "waiting blocks outside both lists", sums->waiting_count);
    }
    return sums->free_count == 0 && sums->unmapped_count == 0
               ? UF_OK
               : broken(error, "free blocks outside every set", sums->free_count);
}

typedef struct span {
    uint64_t addr, end;
} span;

static int compare_spans(const void *left, const void *right)
{
    const span *a = left, *b = right;
    return (a->addr > b->addr) - (a->addr < b->addr);
}

/* No two segments share an address. */
static uf_status check_overlap(const uf_core *core, uf_error *error)
{
    span *spans = malloc(core->blocks.count * sizeof *spans);
    if (spans == NULL) {
        return UF_ERROR_HOST_MEMORY;
    }
    size_t count = 0;
    for (uint32_t i = 1; i < core->blocks.count; i++) {
        const uf_block *block = &core->blocks.items[i];
        if (block->life != UF_LIFE_UNUSED) {
            spans[count++] = (span){block->addr, block->addr + block->size_bytes};
        }
    }
    qsort(spans, count, sizeof *spans, compare_spans);
    uf_status status = UF_OK;
    for (size_t i = 1; i < count && status == UF_OK; i++) {
        if (spans[i].addr < spans[i - 1].end) {
            status = broken(error, "two blocks overlap", spans[i].addr);
        }
    }
    free(spans);
    return status;
}

uf_status uf__core_check(const uf_core *core, uf_error *error)
{
    uf_tally sums = {0};
    uf_status status = UF_OK;
    for (uint32_t i = 1; i < core->blocks.count && status == UF_OK; i++) {
        if (core->blocks.items[i].life != UF_LIFE_UNUSED) {
            status = check_links(core, i, error);
            if (status == UF_OK) {
                add_block(&sums, core, &core->blocks.items[i]);
            }
        }
    }
    for (uint32_t i = 1; i < core->shelf_count && status == UF_OK; i++) {
        if (core->shelves[i] != NULL) {
            status = check_shelf(core, i, &sums, error);
        }
    }
    if (status == UF_OK) {
        status = check_regions(core, error);
    }
    if (status == UF_OK) {
        status = check_waiting(core, &core->pending, UF_LIFE_PENDING, &sums, error);
    }
    if (status == UF_OK) {
        status = check_waiting(core, &core->deferred, UF_LIFE_DEFERRED, &sums, error);
    }
    if (status == UF_OK && core->paging != NULL) {
        status = uf__paging_check(core, sums.mapped_bytes, sums.counters[UF_COUNTER_RESERVED_BYTES],
                                  error);
    }
    if (status == UF_OK) {
        status = check_sums(core, &sums, error);
    }
    return status == UF_OK ? check_overlap(core, error) : status;
}
