/* SPDX-License-Identifier: MIT
 *
 * Counts what contradicts itself in segments and blocks. Pure arithmetic on a finished trace; sums
 * wrap around instead of overflowing, since the numbers come from a file. */
#include "trace/oddities.h"

#include <stdlib.h>

#include "trace/array.h"

#define ALIGNMENT_BYTES 512u

/* Blocks in address order must cover a segment from its first byte to its last. */
static bool has_gap(const uf_trace *trace, const uf_trace_segment *segment)
{
    uint64_t expected_addr = segment->addr;
    for (uint64_t i = 0; i < segment->block_count; i++) {
        const uf_trace_block *block = &trace->blocks[segment->first_block + i];
        if (block->addr != expected_addr)
            return true;
        expected_addr += block->size_bytes;
    }
    return expected_addr != segment->addr + segment->total_bytes;
}

static bool has_wrong_sum(const uf_trace *trace, const uf_trace_segment *segment)
{
    uint64_t allocated_bytes = 0, active_bytes = 0, requested_bytes = 0;
    for (uint64_t i = 0; i < segment->block_count; i++) {
        const uf_trace_block *block = &trace->blocks[segment->first_block + i];
        bool is_allocated = block->state == UF_BLOCK_ACTIVE_ALLOCATED;
        bool is_active = is_allocated || block->state == UF_BLOCK_ACTIVE_PENDING_FREE;
        if (is_allocated)
            allocated_bytes += block->size_bytes;
        if (is_active)
            active_bytes += block->size_bytes;
        if (is_active && block->has_requested)
            requested_bytes += block->requested_bytes;
    }
    return allocated_bytes != segment->allocated_bytes || active_bytes != segment->active_bytes ||
           (segment->has_requested && requested_bytes != segment->requested_bytes);
}

/* The address of the last segment seen on each device; device ids are any number, so that a hash
 * index finds them. */
typedef struct last_addr {
    int32_t device;
    uint64_t addr;
} last_addr;

typedef struct device_table {
    last_addr *entries;
    uint64_t capacity;
    uint32_t count;
    uf__index index;
} device_table;

/* Returns the device's entry, NULL when the host has no memory left. *is_new tells a first
 * meeting. */
static last_addr *device_entry(device_table *table, int32_t device, bool *is_new)
{
    uint32_t hash = (uint32_t)uf__hash_mix((uint32_t)device);
    uint64_t place = uf__index_begin(&table->index, hash);
    uint32_t found;
    *is_new = false;
    while ((found = uf__index_next(&table->index, hash, &place)) != UF_NONE)
        if (table->entries[found].device == device)
            return &table->entries[found];
    if (table->count >= table->capacity) {
        last_addr *entries = uf__array_grow(table->entries, &table->capacity,
                                            table->count + UINT64_C(1), sizeof *entries);
        if (entries == NULL)
            return NULL;
        table->entries = entries;
    }
    if (!uf__index_add(&table->index, hash, table->count))
        return NULL;
    *is_new = true;
    table->entries[table->count] = (last_addr){.device = device};
    return &table->entries[table->count++];
}

bool uf__oddities_count(uf_trace *trace)
{
    uf_trace_oddities *oddities = &trace->oddities;
    oddities->gap_count = oddities->unsorted_count = 0;
    oddities->unaligned_count = oddities->sum_mismatch_count = 0;
    device_table table = {0};
    bool is_ok = true;
    for (uint32_t i = 0; i < trace->segment_count; i++) {
        const uf_trace_segment *segment = &trace->segments[i];
        bool is_new;
        last_addr *last = device_entry(&table, segment->device, &is_new);
        if (last == NULL) {
            is_ok = false;
            break;
        }
        if (!is_new && segment->addr < last->addr)
            oddities->unsorted_count++;
        last->addr = segment->addr;
        if (has_gap(trace, segment))
            oddities->gap_count++;
        if (has_wrong_sum(trace, segment))
            oddities->sum_mismatch_count++;
    }
    for (uint64_t i = 0; i < trace->block_count; i++) {
        const uf_trace_block *block = &trace->blocks[i];
        if (block->addr % ALIGNMENT_BYTES != 0 || block->size_bytes % ALIGNMENT_BYTES != 0)
            oddities->unaligned_count++;
    }
    free(table.entries);
    uf__index_fini(&table.index);
    return is_ok;
}
