/* SPDX-License-Identifier: MIT
 *
 * Sorted address ranges. */
#include "replay/ranges.h"

#include <stdlib.h>
#include <string.h>

void uf__ranges_fini(uf_ranges *ranges)
{
    free(ranges->items);
    memset(ranges, 0, sizeof *ranges);
}

bool uf__ranges_copy(uf_ranges *to, const uf_ranges *from)
{
    memset(to, 0, sizeof *to);
    if (from->count == 0) {
        return true;
    }
    to->items = malloc(from->count * sizeof *to->items);
    if (to->items == NULL) {
        return false;
    }
    memcpy(to->items, from->items, from->count * sizeof *to->items);
    to->count = to->capacity = from->count;
    return true;
}

size_t uf__ranges_position(const uf_ranges *ranges, uint64_t addr)
{
    size_t low = 0, high = ranges->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ranges->items[middle].end <= addr) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool insert_at(uf_ranges *ranges, size_t at, uf_range range)
{
    if (ranges->count == ranges->capacity) {
        size_t capacity = ranges->capacity == 0 ? 64 : ranges->capacity * 2;
        uf_range *grown = realloc(ranges->items, capacity * sizeof *grown);
        if (grown == NULL) {
            return false;
        }
        ranges->items = grown;
        ranges->capacity = capacity;
    }
    memmove(&ranges->items[at + 1], &ranges->items[at],
            (ranges->count - at) * sizeof *ranges->items);
    ranges->items[at] = range;
    ranges->count++;
    return true;
}

static void erase_at(uf_ranges *ranges, size_t at)
{
    ranges->count--;
    memmove(&ranges->items[at], &ranges->items[at + 1],
            (ranges->count - at) * sizeof *ranges->items);
}

bool uf__ranges_add(uf_ranges *ranges, uint64_t addr, uint64_t size_bytes, uint64_t creator)
{
    uint64_t ignored;
    uint64_t end = addr + size_bytes < addr ? UINT64_MAX : addr + size_bytes;
    if (end <= addr) {
        return true;
    }
    return uf__ranges_remove(ranges, addr, end - addr, &ignored) &&
           insert_at(ranges, uf__ranges_position(ranges, addr), (uf_range){addr, end, creator});
}

bool uf__ranges_remove(uf_ranges *ranges, uint64_t addr, uint64_t size_bytes,
                       uint64_t *removed_bytes)
{
    uint64_t end = addr + size_bytes < addr ? UINT64_MAX : addr + size_bytes;
    *removed_bytes = 0;
    size_t at = uf__ranges_position(ranges, addr);
    while (at < ranges->count && ranges->items[at].addr < end) {
        uf_range *range = &ranges->items[at];
        uint64_t from = range->addr > addr ? range->addr : addr;
        uint64_t to = range->end < end ? range->end : end;
        *removed_bytes += to - from;
        if (range->addr < from && to < range->end) {
            uf_range upper = {to, range->end, range->creator};
            range->end = from;
            return insert_at(ranges, at + 1, upper);
        }
        if (range->addr < from) {
            range->end = from;
            at++;
        } else if (to < range->end) {
            range->addr = to;
            at++;
        } else {
            erase_at(ranges, at);
        }
    }
    return true;
}

const uf_range *uf__ranges_find(const uf_ranges *ranges, uint64_t addr)
{
    size_t at = uf__ranges_position(ranges, addr);
    return at < ranges->count && ranges->items[at].addr <= addr ? &ranges->items[at] : NULL;
}

bool uf__ranges_is_clear(const uf_ranges *ranges, uint64_t addr, uint64_t size_bytes)
{
    size_t at = uf__ranges_position(ranges, addr);
    return addr + size_bytes > addr &&
           (at == ranges->count || ranges->items[at].addr >= addr + size_bytes);
}

const uf_range *uf__ranges_adjacent(const uf_ranges *ranges, uint64_t addr, uint64_t end)
{
    size_t at = uf__ranges_position(ranges, addr);
    if (at > 0 && ranges->items[at - 1].end == addr) {
        return &ranges->items[at - 1];
    }
    return at < ranges->count && ranges->items[at].addr == end ? &ranges->items[at] : NULL;
}
