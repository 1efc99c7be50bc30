/* SPDX-License-Identifier: MIT
 *
 * Debug mode: what is known of blocks, and what is made of it. A device call that fails makes it
 * see less and nothing else: what could not be set is not expected, what could not be read is not
 * judged. */
#include "alloc/debug.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/parts.h"
#include "alloc/poison.h"
#include "base/error.h"

static const uint64_t GUARD_BYTES = 512, GUARD_BYTES_MOST = UINT64_C(1) << 20;
enum { HISTORY_COUNT = 1024 };

/* A block that was given back. */
typedef struct freed_block {
    uint64_t addr, requested_bytes, stream;
} freed_block;

struct uf_debug {
    const uf_device *device;
    uf_damage_callback report;
    void *context;
    bool can_fill;
    uf_debug_block *blocks; /* handed out or waiting, by address */
    uint32_t block_count, block_capacity;
    uf_poison_map poison;
    freed_block history[HISTORY_COUNT]; /* the newest, number n at n % HISTORY_COUNT */
    uint64_t free_count;
    uint64_t damage_count, untold_at; /* the count when `untold` was found, 0 = none */
    uf_error newest, untold;
};

uf_debug *uf__debug_create(const uf_device *device, uf_damage_callback report, void *context)
{
    uf_debug *debug = calloc(1, sizeof *debug);
    if (debug != NULL) {
        debug->device = device;
        debug->report = report;
        debug->context = context;
        debug->can_fill = device->bytes_set != NULL && device->bytes_compare != NULL;
    }
    return debug;
}

void uf__debug_destroy(uf_debug *debug)
{
    if (debug != NULL) {
        uf__poison_fini(&debug->poison);
        free(debug->blocks);
        free(debug);
    }
}

uint64_t uf__debug_guard_bytes(const uf_debug *debug)
{
    return debug->can_fill ? GUARD_BYTES : 0;
}

uint64_t uf__debug_damage_count(const uf_debug *debug)
{
    return debug->damage_count;
}

uf_status uf__debug_tell(uf_debug *debug, uint64_t since, uf_error *error)
{
    if (debug->damage_count == since) {
        return UF_OK;
    }
    if (debug->untold_at > since) {
        debug->untold_at = 0;
    }
    return uf__error_set(error, UF_ERROR_DAMAGED, "%s", debug->newest.text);
}

uf_status uf__debug_tell_first(uf_debug *debug, uf_error *error)
{
    if (debug->untold_at == 0) {
        return UF_OK;
    }
    debug->untold_at = 0;
    return uf__error_set(error, UF_ERROR_DAMAGED, "%s", debug->untold.text);
}

static void report(const uf_debug *debug, uf_damage *damage, const uf_error *text)
{
    damage->text = text->text;
    if (debug->report != NULL) {
        debug->report(debug->context, damage);
    }
}

/* Damage is kept until a status tells it: it may be found in a call that does something else. */
static void report_damage(uf_debug *debug, uf_damage *damage)
{
    debug->damage_count++;
    if (debug->untold_at == 0) {
        debug->untold_at = debug->damage_count;
        debug->untold = debug->newest;
    }
    report(debug, damage, &debug->newest);
}

/* The first block that ends behind addr; block_count if there is none. */
static uint32_t find(const uf_debug *debug, uint64_t addr)
{
    uint32_t low = 0, high = debug->block_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const uf_debug_block *block = &debug->blocks[middle];
        if (block->addr + block->size_bytes > addr) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

/* The block at addr; NULL if none begins there. */
static uf_debug_block *find_exact(const uf_debug *debug, uint64_t addr)
{
    uint32_t at = find(debug, addr);
    return at < debug->block_count && debug->blocks[at].addr == addr ? &debug->blocks[at] : NULL;
}

static void insert(uf_debug *debug, const uf_debug_block *block)
{
    uint32_t at = find(debug, block->addr);
    if (uf__list_reserve((void **)&debug->blocks, &debug->block_capacity, sizeof *debug->blocks,
                         debug->block_count + 1)) {
        memmove(&debug->blocks[at + 1], &debug->blocks[at],
                (debug->block_count - at) * sizeof *debug->blocks);
        debug->blocks[at] = *block;
        debug->block_count++;
    }
}

/* Whether a stretch holds one value, as far as can be seen; *count and *first are of what does not.
 */
static bool is_whole(const uf_debug *debug, uint64_t addr, uint64_t size_bytes, uint8_t value,
                     uint64_t stream, uint64_t *count, uint64_t *first)
{
    const uf_device *device = debug->device;
    *count = *first = 0;
    return device->bytes_compare(device->context, addr, size_bytes, value, stream, count, first) !=
               UF_OK ||
           *count == 0;
}

static uint64_t guard_bytes_of(const uf_debug_block *block)
{
    uint64_t bytes = block->size_bytes - block->requested_bytes;
    return bytes < GUARD_BYTES_MOST ? bytes : GUARD_BYTES_MOST;
}

static void look_at_guard(uf_debug *debug, const uf_debug_block *block)
{
    uint64_t count, first, from = block->addr + block->requested_bytes;
    if (is_whole(debug, from, guard_bytes_of(block), UF_DEBUG_GUARD_BYTE, block->stream, &count,
                 &first)) {
        return;
    }
    (void)uf__error_set(&debug->newest, UF_ERROR_DAMAGED,
                        "memory was written behind the end of a block: the one at 0x%" PRIx64
                        " has %" PRIu64 " bytes (stream 0x%" PRIx64 "), and %" PRIu64
                        " of the %" PRIu64
                        " bytes behind it were changed, the first at offset %" PRIu64
                        "; look at the kernels that write to this block",
                        block->addr, block->requested_bytes, block->stream, count,
                        guard_bytes_of(block), block->requested_bytes + first);
    report_damage(debug, &(uf_damage){.kind = UF_DAMAGE_OVERRUN,
                                      .addr = block->addr,
                                      .size_bytes = block->requested_bytes,
                                      .stream = block->stream,
                                      .offset_bytes = block->requested_bytes + first,
                                      .damaged_bytes = count});
}

static void look_at_filling(uf_debug *debug, uint64_t addr, uint64_t end, const uf_poison *poison)
{
    uint64_t count, first;
    if (is_whole(debug, addr, end - addr, UF_DEBUG_FREED_BYTE, poison->stream, &count, &first)) {
        return;
    }
    uint64_t offset = addr + first - poison->origin_addr;
    (void)uf__error_set(&debug->newest, UF_ERROR_DAMAGED,
                        "memory was written after it was given back: the block at 0x%" PRIx64
                        " had %" PRIu64 " bytes (stream 0x%" PRIx64 "), and %" PRIu64
                        " bytes of it were changed, the first at offset %" PRIu64
                        "; either it was freed too early, or another stream that uses it was not "
                        "named (uf_use_on_stream)",
                        poison->origin_addr, poison->origin_bytes, poison->stream, count, offset);
    report_damage(debug, &(uf_damage){.kind = UF_DAMAGE_USE_AFTER_FREE,
                                      .addr = poison->origin_addr,
                                      .size_bytes = poison->origin_bytes,
                                      .stream = poison->stream,
                                      .offset_bytes = offset,
                                      .damaged_bytes = count});
}

static void look_at_range(uf_debug *debug, uint64_t addr, uint64_t end)
{
    for (uint32_t i = uf__poison_find(&debug->poison, addr);
         i < debug->poison.count && debug->poison.items[i].addr < end; i++) {
        const uf_poison *poison = &debug->poison.items[i];
        uint64_t poison_end = poison->addr + poison->size_bytes;
        look_at_filling(debug, poison->addr > addr ? poison->addr : addr,
                        poison_end < end ? poison_end : end, poison);
    }
}

static uf_status refuse_overlap(uf_debug *debug, const uf_debug_block *block,
                                const uf_debug_block *other, uf_error *error)
{
    uf_error text;
    (void)uf__error_set(
        &text, UF_ERROR_INTERNAL,
        "memory that is in use was to be handed out again: %" PRIu64 " bytes at 0x%" PRIx64
        " overlap the block of %" PRIu64 " bytes at 0x%" PRIx64 " (stream 0x%" PRIx64
        "); the device gave the same memory twice, or this is an error of unfrag's "
        "that should be reported",
        block->size_bytes, block->addr, other->size_bytes, other->addr, other->stream);
    report(debug,
           &(uf_damage){
               .kind = UF_DAMAGE_OVERLAP,
               .addr = other->addr,
               .size_bytes = other->requested_bytes,
               .stream = other->stream,
               .offset_bytes = block->addr > other->addr ? block->addr - other->addr : 0,
           },
           &text);
    return uf__error_set(error, UF_ERROR_INTERNAL, "%s", text.text);
}

uf_status uf__debug_hand_out(uf_debug *debug, const uf_debug_block *block, bool can_wait,
                             uf_error *error)
{
    const uf_device *device = debug->device;
    uint64_t end = block->addr + block->size_bytes;
    uint32_t at = find(debug, block->addr);
    if (at < debug->block_count && debug->blocks[at].addr < end) {
        return refuse_overlap(debug, block, &debug->blocks[at], error);
    }
    if (can_wait) {
        look_at_range(debug, block->addr, end);
    }
    uf__poison_drop(&debug->poison, block->addr, block->size_bytes);
    uf_debug_block noted = *block;
    noted.is_guarded =
        debug->can_fill &&
        device->bytes_set(device->context, block->addr + block->requested_bytes,
                          guard_bytes_of(block), UF_DEBUG_GUARD_BYTE, block->stream) == UF_OK;
    insert(debug, &noted);
    return UF_OK;
}

void uf__debug_adopt(uf_debug *debug, const uf_debug_block *block)
{
    uf__poison_drop(&debug->poison, block->addr, block->size_bytes);
    insert(debug, block);
}

void uf__debug_give_back(uf_debug *debug, uint64_t addr)
{
    uf_debug_block *block = find_exact(debug, addr);
    if (block != NULL) {
        block->is_given_back = true;
        debug->history[debug->free_count++ % HISTORY_COUNT] =
            (freed_block){block->addr, block->requested_bytes, block->stream};
    }
}

void uf__debug_complete(uf_debug *debug, uint64_t addr, bool can_wait)
{
    const uf_device *device = debug->device;
    const uf_debug_block *found = find_exact(debug, addr);
    if (found == NULL) {
        return;
    }
    const uf_debug_block block = *found;
    uint32_t at = (uint32_t)(found - debug->blocks);
    memmove(&debug->blocks[at], &debug->blocks[at + 1],
            (debug->block_count - at - 1) * sizeof *debug->blocks);
    debug->block_count--;
    if (block.is_guarded && can_wait) {
        look_at_guard(debug, &block);
    }
    if (block.is_filled && debug->can_fill &&
        device->bytes_set(device->context, block.addr, block.size_bytes, UF_DEBUG_FREED_BYTE,
                          block.stream) == UF_OK) {
        (void)uf__poison_add(&debug->poison, &(uf_poison){.addr = block.addr,
                                                          .size_bytes = block.size_bytes,
                                                          .origin_addr = block.addr,
                                                          .origin_bytes = block.requested_bytes,
                                                          .stream = block.stream});
    }
}

void uf__debug_forget(uf_debug *debug, uint64_t addr, uint64_t size_bytes)
{
    uf__poison_drop(&debug->poison, addr, size_bytes);
}

/* The newest of those that were given back and in which the address lies; their number from the
 * newest on goes to *ago. NULL if none is remembered. */
static const freed_block *find_freed(const uf_debug *debug, uint64_t addr, uint64_t *ago)
{
    for (*ago = 0; *ago < debug->free_count && *ago < HISTORY_COUNT; ++*ago) {
        const freed_block *freed = &debug->history[(debug->free_count - 1 - *ago) % HISTORY_COUNT];
        if (addr - freed->addr < freed->requested_bytes) {
            return freed;
        }
    }
    return NULL;
}

uf_status uf__debug_foreign(uf_debug *debug, uint64_t addr, uf_error *error)
{
    uint32_t at = find(debug, addr);
    const uf_debug_block *block =
        at < debug->block_count && debug->blocks[at].addr <= addr ? &debug->blocks[at] : NULL;
    uint64_t ago;
    const freed_block *freed = find_freed(debug, addr, &ago);
    uf_damage damage = {.kind = UF_DAMAGE_FOREIGN_POINTER, .addr = addr};
    uf_error text;
    if (block != NULL && !block->is_given_back) {
        damage = (uf_damage){.kind = UF_DAMAGE_INSIDE_POINTER,
                             .addr = block->addr,
                             .size_bytes = block->requested_bytes,
                             .stream = block->stream,
                             .offset_bytes = addr - block->addr};
        (void)uf__error_set(
            &text, UF_ERROR_FOREIGN_POINTER,
            "address 0x%" PRIx64 " lies %" PRIu64 " bytes into the block of %" PRIu64
            " bytes at 0x%" PRIx64 " (stream 0x%" PRIx64 "); give the block's own address",
            addr, damage.offset_bytes, damage.size_bytes, damage.addr, damage.stream);
    } else if (freed != NULL) {
        damage = (uf_damage){.kind = UF_DAMAGE_DOUBLE_FREE,
                             .addr = freed->addr,
                             .size_bytes = freed->requested_bytes,
                             .stream = freed->stream,
                             .offset_bytes = addr - freed->addr};
        (void)uf__error_set(&text, UF_ERROR_FOREIGN_POINTER,
                            "address 0x%" PRIx64 " was given back before: the block of %" PRIu64
                            " bytes at 0x%" PRIx64 " (stream 0x%" PRIx64 "), %" PRIu64
                            " frees ago%s",
                            addr, damage.size_bytes, damage.addr, damage.stream, ago,
                            block != NULL ? "; it still waits for a stream or a pin" : "");
    } else {
        (void)uf__error_set(&text, UF_ERROR_FOREIGN_POINTER,
                            "address 0x%" PRIx64 " was not handed out by this allocator, as far as "
                            "the newest %d frees tell; %" PRIu32 " blocks are handed out now",
                            addr, HISTORY_COUNT, debug->block_count);
    }
    report(debug, &damage, &text);
    return uf__error_set(error, UF_ERROR_FOREIGN_POINTER, "%s", text.text);
}

void uf__debug_check(uf_debug *debug)
{
    for (uint32_t i = 0; i < debug->block_count; i++) {
        uint64_t before = debug->damage_count;
        if (debug->blocks[i].is_guarded) {
            look_at_guard(debug, &debug->blocks[i]);
        }
        debug->blocks[i].is_guarded &= debug->damage_count == before;
    }
    for (uint32_t i = 0; i < debug->poison.count;) {
        const uf_poison poison = debug->poison.items[i];
        uint64_t before = debug->damage_count;
        look_at_filling(debug, poison.addr, poison.addr + poison.size_bytes, &poison);
        if (debug->damage_count == before) {
            i++;
        } else {
            uf__poison_drop(&debug->poison, poison.addr, poison.size_bytes);
        }
    }
}
