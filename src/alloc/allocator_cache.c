/* SPDX-License-Identifier: MIT
 *
 * What callers ask of the public allocator beyond single requests: memory ahead of time, memory
 * back, addresses that stay. Guarded by the allocator's lock. */
#include "alloc/allocator_parts.h"

#include <inttypes.h>

#include "alloc/rounding.h"
#include "alloc/take.h"
#include "alloc/trim.h"
#include "base/error.h"
#include "base/size.h"

typedef struct size_text {
    char text[UF_SIZE_TEXT_CAPACITY];
} size_text;

static const char *size(size_text *text, uint64_t bytes)
{
    return uf__size_format(text->text, sizeof text->text, bytes);
}

/* Under the torch policy what a program does by hand: a block is had and given back. */
static uf_status reserve_locked(uf_allocator *allocator, uint64_t bytes, uint64_t stream_handle,
                                uf_error *error)
{
    uf_core *core = &allocator->core;
    uint32_t stream = 0, block = UF_NO_BLOCK, pool;
    pool = uf__scope_pool_locked(allocator, stream_handle);
    uint64_t block_bytes = bytes + allocator->guard_bytes;
    uf_status status = uf__core_process(core);
    if (status == UF_OK) {
        status = uf__core_stream(core, stream_handle, &stream);
    }
    if (status == UF_OK && uf__core_is_paged(core, pool)) {
        status = uf__core_reserve(core, block_bytes, stream, pool);
    } else if (status == UF_OK) {
        status = uf__core_alloc(core, block_bytes, stream, pool, &block);
        if (status == UF_OK) {
            status = uf__core_free(core, block);
        }
    }
    if (status == UF_ERROR_OUT_OF_MEMORY) {
        size_text text[4];
        bool is_limited = core->limit_bytes != UF_UNLIMITED;
        return uf__error_set(
            error, status,
            "out of memory: %" PRIu64 " bytes (%s) cannot be reserved on stream 0x%" PRIx64
            "; limit %s, held %s, free on the device %s; reserve less, or free something",
            bytes, size(&text[0], bytes), stream_handle,
            is_limited ? size(&text[1], core->limit_bytes) : "none",
            size(&text[2], core->total_bytes), size(&text[3], uf__core_device_free_bytes(core)));
    }
    return uf__explain(error, status, "reserving memory");
}

uf_status uf_reserve(uf_allocator *allocator, uint64_t bytes, uint64_t stream, uf_error *error)
{
    if (bytes >= UF_REQUEST_LIMIT_BYTES) {
        return uf__error_set(error, UF_ERROR_REQUEST_TOO_LARGE,
                             "%" PRIu64 " bytes were to be reserved, and no request may reach 2^60",
                             bytes);
    }
    uf_status status = uf__allocator_enter(allocator, error);
    if (status == UF_OK) {
        status = bytes == 0 ? UF_OK : reserve_locked(allocator, bytes, stream, error);
        uf__allocator_leave(allocator);
    }
    return status;
}

uf_status uf_trim(uf_allocator *allocator, uint64_t keep_bytes, uint64_t *released_bytes,
                  uf_error *error)
{
    uf_status status = uf__allocator_enter(allocator, error);
    if (status == UF_OK) {
        uint64_t bytes;
        status = uf__trim(&allocator->core, keep_bytes, &bytes);
        if (status == UF_OK && released_bytes != NULL) {
            *released_bytes = bytes;
        }
        status = uf__explain(error, status, "giving cached memory back");
        uf__allocator_leave(allocator);
    }
    return status;
}

/* The pin of an address; UINT32_MAX if it has none. */
static uint32_t pin_find_locked(const uf_allocator *allocator, uint64_t addr)
{
    uint32_t i = 0;
    while (i < allocator->pin_count && allocator->pins[i].addr != addr) {
        i++;
    }
    return i < allocator->pin_count ? i : UINT32_MAX;
}

static uf_status pin_locked(uf_allocator *allocator, uint64_t addr, uf_error *error)
{
    const uint32_t *found = uf__addrmap_find(&allocator->blocks, addr);
    if (found == NULL) {
        return uf__error_set(error, UF_ERROR_FOREIGN_POINTER,
                             "address 0x%" PRIx64 " cannot be pinned: it is not one that this "
                             "allocator handed out, or it was given back before",
                             addr);
    }
    uint32_t at = pin_find_locked(allocator, addr);
    if (at != UINT32_MAX) {
        allocator->pins[at].count++;
        return UF_OK;
    }
    if (!uf__list_reserve((void **)&allocator->pins, &allocator->pin_capacity,
                          sizeof *allocator->pins, allocator->pin_count + 1)) {
        return uf__explain_host_memory(error, "pinning memory");
    }
    allocator->pins[allocator->pin_count++] =
        (uf_pin_record){.addr = addr, .block = *found, .count = 1};
    return UF_OK;
}

uf_status uf_pin(uf_allocator *allocator, uint64_t addr, uf_error *error)
{
    uf_status status = uf__allocator_enter(allocator, error);
    if (status == UF_OK) {
        status = pin_locked(allocator, addr, error);
        uf__allocator_leave(allocator);
    }
    return status;
}

static uf_status unpin_locked(uf_allocator *allocator, uint64_t addr, uf_error *error)
{
    uint32_t at = pin_find_locked(allocator, addr);
    if (at == UINT32_MAX) {
        return uf__error_set(error, UF_ERROR_NOT_FOUND,
                             "address 0x%" PRIx64 " is not pinned; %" PRIu32 " addresses are", addr,
                             allocator->pin_count);
    }
    uf_pin_record *pin = &allocator->pins[at];
    if (--pin->count != 0) {
        return UF_OK;
    }
    const uf_pin_record last = *pin;
    *pin = allocator->pins[--allocator->pin_count];
    if (!last.is_freed) {
        return UF_OK;
    }
    allocator->freed_pin_count--;
    uint64_t damage_count = allocator->debug != NULL ? uf__debug_damage_count(allocator->debug) : 0;
    uf_status status = uf__core_free(&allocator->core, last.block);
    return status == UF_OK && allocator->debug != NULL
               ? uf__debug_tell(allocator->debug, damage_count, error)
               : uf__explain(error, status, "giving back memory that was pinned");
}

uf_status uf_unpin(uf_allocator *allocator, uint64_t addr, uf_error *error)
{
    uf_status status = uf__allocator_enter(allocator, error);
    if (status == UF_OK) {
        status = unpin_locked(allocator, addr, error);
        uf__allocator_leave(allocator);
    }
    return status;
}

bool uf__pin_keeps_locked(uf_allocator *allocator, uint64_t addr)
{
    uint32_t at = pin_find_locked(allocator, addr);
    if (at == UINT32_MAX || allocator->pins[at].is_freed) {
        return false;
    }
    allocator->pins[at].is_freed = true;
    allocator->freed_pin_count++;
    return true;
}

bool uf__pin_is_freed_locked(const uf_allocator *allocator, uint32_t block)
{
    uint32_t i = 0;
    while (i < allocator->pin_count &&
           (allocator->pins[i].block != block || !allocator->pins[i].is_freed)) {
        i++;
    }
    return i < allocator->pin_count;
}

static const uf_shelf *shelf_of(const uf_allocator *allocator, const uf_pin_record *pin)
{
    const uf_core *core = &allocator->core;
    return core->shelves[uf__core_block(core, pin->block)->shelf];
}

bool uf__pin_is_in_locked(const uf_allocator *allocator, uint32_t pool)
{
    uint32_t i = 0;
    while (i < allocator->pin_count && shelf_of(allocator, &allocator->pins[i])->pool != pool) {
        i++;
    }
    return i < allocator->pin_count;
}

uint64_t uf__pin_freed_bytes_locked(const uf_allocator *allocator)
{
    const uf_core *core = &allocator->core;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < allocator->pin_count; i++) {
        const uf_pin_record *pin = &allocator->pins[i];
        uint32_t pool = shelf_of(allocator, pin)->pool;
        bool is_frozen_anyway =
            core->paging != NULL && pool != UF_DEFAULT_POOL && core->pools[pool].use_count > 0;
        bool is_counted = pin->is_freed && !is_frozen_anyway;
        bytes += is_counted ? uf__core_block(core, pin->block)->size_bytes : 0;
    }
    return bytes;
}

uf_status uf_usage_get(uf_allocator *allocator, uf_usage *usage, uf_error *error)
{
    if (usage == NULL) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT, "uf_usage_get: usage is NULL");
    }
    uf_status status = uf__allocator_enter(allocator, error);
    if (status != UF_OK) {
        return status;
    }
    const uf_core *core = &allocator->core;
    uint64_t pool_bytes = core->paging == NULL ? 0 : uf__paging_frozen_bytes(core);
    uint64_t pinned_bytes = uf__pin_freed_bytes_locked(allocator);
    uint64_t cached_bytes = uf__trim_cached_bytes(core);
    uint64_t free_bytes = 0, total_bytes = 0;
    status = core->device->memory_info(core->device->context, &free_bytes, &total_bytes);
    if (status == UF_OK) {
        uint64_t used_bytes = free_bytes < total_bytes ? total_bytes - free_bytes : 0;
        *usage = (uf_usage){
            .reserved_bytes = core->total_bytes,
            .active_bytes = core->total_bytes - cached_bytes - pool_bytes - pinned_bytes,
            .cached_bytes = cached_bytes,
            .frozen_bytes = pool_bytes + pinned_bytes,
            .pinned_bytes = pinned_bytes,
            .limit_bytes = core->limit_bytes == UF_UNLIMITED ? 0 : core->limit_bytes,
            .headroom_bytes = core->paging == NULL ? 0 : core->paging->headroom_bytes,
            .device_free_bytes = free_bytes,
            .outside_bytes = used_bytes > core->total_bytes ? used_bytes - core->total_bytes : 0};
    }
    uf__allocator_leave(allocator);
    return uf__explain(error, status, "looking at the device's memory");
}
