/* SPDX-License-Identifier: MIT
 *
 * The naive judge of the `unfrag` policy. */
#include "oracle/paged_oracle.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t BLOCK_BYTES = 512; /* sizes are multiples of it */
static const uint64_t SMALL_BYTES = UINT64_C(1) << 20;

void paged_oracle_init(paged_oracle *o, ledger *books)
{
    memset(o, 0, sizeof *o);
    o->books = books;
    o->least_slack_bytes = UINT64_MAX;
}

static uint64_t rounded(uint64_t bytes)
{
    return bytes == 0 ? BLOCK_BYTES : (bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
}

static oracle_block *find(paged_oracle *o, uint64_t addr)
{
    for (uint32_t i = 0; i < o->block_count; i++) {
        if (o->blocks[i].addr == addr) {
            return &o->blocks[i];
        }
    }
    ledger_break(o->books, "there is no block at 0x%" PRIx64, addr);
    return NULL;
}

static uint64_t granule_floor(const paged_oracle *o, uint64_t addr)
{
    return addr / o->books->granule_bytes * o->books->granule_bytes;
}

/* The block lies in one range, of its own pool, stream and class. */
static void check_range(paged_oracle *o, const oracle_block *block)
{
    const ledger_range *range = ledger_range_at(o->books, block->addr);
    if (range == NULL || block->addr + block->size_bytes > range->addr + range->size_bytes) {
        ledger_break(o->books, "the block at 0x%" PRIx64 " is in no range", block->addr);
        return;
    }
    if (range->tag.pool != block->tag.pool || range->tag.stream != block->tag.stream ||
        range->tag.is_large != block->tag.is_large) {
        ledger_break(o->books,
                     "the block at 0x%" PRIx64 " (pool %" PRIu32 ", stream %" PRIu32
                     ") is in a range of pool %" PRIu32 ", stream %" PRIu32,
                     block->addr, block->tag.pool, block->tag.stream, range->tag.pool,
                     range->tag.stream);
    }
}

static uint64_t first_of(const paged_oracle *o, const ledger_range *range, uint64_t at)
{
    while (!ledger_granule_of(o->books, range, at)->is_first) {
        at -= o->books->granule_bytes;
    }
    return at;
}

/* No other stream is at work on a page. */
static void check_idle(paged_oracle *o, const oracle_block *block, uint64_t at,
                       const ledger_handle *handle)
{
    const ledger *books = o->books;
    for (uint32_t s = 0; s < LEDGER_STREAMS; s++) {
        if (s != block->tag.stream && handle->busy_at[s] > books->done_at[s]) {
            ledger_break(o->books,
                         "the page at 0x%" PRIx64 ", of a block of stream %" PRIu32
                         ", may still be in use on stream %" PRIu32,
                         at, block->tag.stream, s);
        }
    }
}

/* A new block: it overlaps no other, and has pages that nobody else uses. */
static void touch(paged_oracle *o, const oracle_block *block)
{
    ledger *books = o->books;
    uint64_t end = block->addr + block->size_bytes, first_addr = 0;
    ledger_range *range = ledger_range_at(books, block->addr);
    check_range(o, block);
    for (uint32_t i = 0; i < o->block_count; i++) {
        const oracle_block *other = &o->blocks[i];
        if (other != block && other->addr < end && block->addr < other->addr + other->size_bytes) {
            ledger_break(books, "the blocks at 0x%" PRIx64 " and 0x%" PRIx64 " overlap",
                         other->addr, block->addr);
        }
    }
    for (uint64_t at = granule_floor(o, block->addr); books->broken[0] == '\0' && at < end;
         at += books->granule_bytes) {
        ledger_granule *granule = ledger_granule_of(books, range, at);
        if (granule->handle == 0 || !granule->has_access) {
            ledger_break(books, "the block at 0x%" PRIx64 " has no page at 0x%" PRIx64, block->addr,
                         at);
            return;
        }
        ledger_handle *handle = &books->handles[granule->handle - 1];
        if (granule->is_first || first_addr == 0) {
            first_addr = first_of(o, range, at);
        }
        if (!handle->is_named ||
            (handle->touched_count != 0 && handle->touched_addr != first_addr)) {
            ledger_break(books, "the page at 0x%" PRIx64 " is released, or in use at 0x%" PRIx64,
                         at, handle->touched_addr);
        }
        check_idle(o, block, at, handle);
        if (granule->touch_count++ == 0) {
            handle->touched_addr = first_addr;
            handle->touched_count++;
            range->touched_count++;
            o->touched_bytes += books->granule_bytes;
        }
    }
}

/* A block that goes: its pages are still where they were. */
static void leave(paged_oracle *o, const oracle_block *block)
{
    ledger *books = o->books;
    uint64_t end = block->addr + block->size_bytes;
    ledger_range *range = ledger_range_at(books, block->addr);
    for (uint64_t at = granule_floor(o, block->addr); range != NULL && at < end;
         at += books->granule_bytes) {
        ledger_granule *granule = ledger_granule_of(books, range, at);
        if (granule->handle == 0 || !granule->has_access || granule->touch_count == 0) {
            ledger_break(books, "the block at 0x%" PRIx64 " has lost its page at 0x%" PRIx64,
                         block->addr, at);
            return;
        }
        if (--granule->touch_count == 0) {
            books->handles[granule->handle - 1].touched_count--;
            range->touched_count--;
            o->touched_bytes -= books->granule_bytes;
        }
    }
}

void paged_oracle_event(void *context, uf_action action, uint64_t addr, uint64_t size_bytes,
                        uint64_t stream)
{
    paged_oracle *o = context;
    oracle_block *block;
    (void)stream;
    switch (action) {
    case UF_ACTION_ALLOC:
        if (o->block_count == ORACLE_BLOCKS) {
            abort();
        }
        o->blocks[o->block_count] =
            (oracle_block){.addr = addr, .size_bytes = rounded(size_bytes), .tag = o->books->tag};
        o->blocks[o->block_count].tag.is_large = rounded(size_bytes) > SMALL_BYTES;
        touch(o, &o->blocks[o->block_count++]);
        break;
    case UF_ACTION_FREE_REQUESTED:
        block = find(o, addr);
        if (block != NULL && block->is_requested) {
            ledger_break(o->books, "0x%" PRIx64 " is freed twice", addr);
        } else if (block != NULL) {
            block->is_requested = true;
            block->requested_at = ++o->books->clock;
        }
        break;
    case UF_ACTION_FREE_COMPLETED:
        block = find(o, addr);
        if (block != NULL) {
            ledger_busy(o->books, addr, block->size_bytes, block->tag.stream, block->requested_at);
            leave(o, block);
            *block = o->blocks[--o->block_count];
        }
        break;
    default:
        break;
    }
}

/* A page under an active block: it is used at one place only, and no other stream is at work on
 * it. */
static void check_page(paged_oracle *o, const oracle_block *block, uint64_t at,
                       const ledger_granule *granule)
{
    ledger *books = o->books;
    ledger_handle *handle = &books->handles[granule->handle - 1];
    uint64_t place_addr = at;
    while (!ledger_at(books, place_addr)->is_first) {
        place_addr -= books->granule_bytes;
    }
    if (!handle->is_named) {
        ledger_break(books, "the page at 0x%" PRIx64 " is released", at);
    }
    if (handle->place_addr != 0 && handle->place_addr != place_addr) {
        ledger_break(books, "one page is under 0x%" PRIx64 " and 0x%" PRIx64, handle->place_addr,
                     place_addr);
    }
    handle->place_addr = place_addr;
    check_idle(o, block, at, handle);
}

/* Touches the pages of a block; counts those that no other block touched. */
static void check_block(paged_oracle *o, const oracle_block *block)
{
    uint64_t end = block->addr + block->size_bytes;
    check_range(o, block);
    for (uint64_t at = granule_floor(o, block->addr); at < end; at += o->books->granule_bytes) {
        ledger_granule *granule = ledger_at(o->books, at);
        if (granule == NULL || granule->handle == 0 || !granule->has_access) {
            ledger_break(o->books, "the block at 0x%" PRIx64 " has no page at 0x%" PRIx64,
                         block->addr, at);
            return;
        }
        if (!granule->is_touched) {
            check_page(o, block, at, granule);
            granule->is_touched = true;
            o->active_bytes += o->books->granule_bytes;
            bool is_frozen = o->is_frozen[block->tag.pool];
            o->frozen_bytes -= is_frozen ? o->books->granule_bytes : 0;
        }
    }
}

static void check_overlap(paged_oracle *o)
{
    for (uint32_t i = 0; i < o->block_count; i++) {
        for (uint32_t j = i + 1; j < o->block_count; j++) {
            const oracle_block *a = &o->blocks[i], *b = &o->blocks[j];
            if (a->addr < b->addr + b->size_bytes && b->addr < a->addr + a->size_bytes) {
                ledger_break(o->books, "the blocks at 0x%" PRIx64 " and 0x%" PRIx64 " overlap",
                             a->addr, b->addr);
            }
        }
    }
}

static void check_sums(paged_oracle *o, uint64_t total_bytes)
{
    const ledger *books = o->books;
    if (books->held_bytes != total_bytes || books->named_bytes != total_bytes) {
        ledger_break(o->books,
                     "held are %" PRIu64 " bytes (%" PRIu64 " under a name), the allocator says "
                     "%" PRIu64,
                     books->held_bytes, books->named_bytes, total_bytes);
    }
    if (o->active_bytes + o->frozen_bytes > books->held_bytes) {
        ledger_break(o->books, "active %" PRIu64 " and frozen %" PRIu64 " bytes exceed %" PRIu64,
                     o->active_bytes, o->frozen_bytes, books->held_bytes);
    }
}

static uint64_t frozen_untouched(const paged_oracle *o)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < o->books->range_count; i++) {
        const ledger_range *range = &o->books->ranges[i];
        if (range->size_bytes != 0 && o->is_frozen[range->tag.pool]) {
            count += range->mapped_count - range->touched_count;
        }
    }
    return count * o->books->granule_bytes;
}

void paged_oracle_check_sums(paged_oracle *o, uint64_t total_bytes)
{
    o->active_bytes = o->touched_bytes;
    o->frozen_bytes = frozen_untouched(o);
    check_sums(o, total_bytes);
}

void paged_oracle_check(paged_oracle *o, uint64_t total_bytes)
{
    ledger *books = o->books;
    o->active_bytes = 0;
    o->frozen_bytes = 0;
    for (uint32_t i = 0; i < books->handle_count; i++) {
        books->handles[i].place_addr = 0;
    }
    for (uint32_t i = 0; i < books->range_count; i++) {
        const ledger_range *range = &books->ranges[i];
        if (range->size_bytes != 0 && o->is_frozen[range->tag.pool]) {
            o->frozen_bytes += range->mapped_count * books->granule_bytes;
        }
    }
    check_overlap(o);
    for (uint32_t i = 0; i < o->block_count; i++) {
        check_block(o, &o->blocks[i]);
    }
    check_sums(o, total_bytes);
    if (o->active_bytes != o->touched_bytes || o->frozen_bytes != frozen_untouched(o)) {
        ledger_break(books,
                     "active are %" PRIu64 " and frozen %" PRIu64 " bytes, kept step by step "
                     "%" PRIu64 " and %" PRIu64,
                     o->active_bytes, o->frozen_bytes, o->touched_bytes, frozen_untouched(o));
    }
    for (uint32_t i = 0; i < o->block_count; i++) {
        const oracle_block *block = &o->blocks[i];
        for (uint64_t at = granule_floor(o, block->addr); at < block->addr + block->size_bytes;
             at += books->granule_bytes) {
            ledger_granule *granule = ledger_at(books, at);
            if (granule != NULL) {
                granule->is_touched = false;
            }
        }
    }
}

void paged_oracle_refused(paged_oracle *o, uint64_t bytes, uint64_t limit_bytes)
{
    uint64_t granule = o->books->granule_bytes;
    uint64_t needed = (rounded(bytes) + granule - 1) / granule * granule;
    uint64_t sum = o->active_bytes + o->frozen_bytes + needed;
    if (sum <= limit_bytes) {
        ledger_break(o->books,
                     "%" PRIu64 " bytes were refused: pages under blocks %" PRIu64
                     ", frozen %" PRIu64 ", needed %" PRIu64 ": %" PRIu64
                     " bytes are within %" PRIu64,
                     bytes, o->active_bytes, o->frozen_bytes, needed, sum, limit_bytes);
    } else if (sum - limit_bytes < o->least_slack_bytes) {
        o->least_slack_bytes = sum - limit_bytes;
    }
}
