/* SPDX-License-Identifier: MIT
 *
 * Blocks that other streams use: recording the use, waiting for their events after the free, and
 * frees put off while a redirection is under way (spec 4.4 to 4.6). Owns the use records; the block
 * itself stays with the core. */
#include "alloc/paging.h"
#include "alloc/parts.h"

#include <stdlib.h>
#include <string.h>

static uf_status uses_get(uf_core *core, uint32_t index, uint32_t *record)
{
    uf_block *block = &core->blocks.items[index];
    if (block->uses != 0) {
        *record = block->uses;
        return UF_OK;
    }
    uint32_t found = core->uses_vacant;
    if (found != 0) {
        core->uses_vacant = core->uses[found].next;
    } else {
        uint32_t needed = core->uses_count == 0 ? 2 : core->uses_count + 1;
        if (!uf__list_reserve((void **)&core->uses, &core->uses_capacity, sizeof *core->uses,
                              needed)) {
            return UF_ERROR_HOST_MEMORY;
        }
        found = needed - 1;
        core->uses_count = needed;
        memset(&core->uses[found], 0, sizeof *core->uses);
    }
    uf_uses *uses = &core->uses[found];
    uses->block = index;
    uses->prev = uses->next = uses->count = 0;
    uses->is_external = false;
    block->uses = found;
    *record = found;
    return UF_OK;
}

void uf__uses_drop(uf_core *core, uint32_t index)
{
    uint32_t record = core->blocks.items[index].uses;
    core->blocks.items[index].uses = 0;
    core->uses[record].block = UF_NO_BLOCK;
    core->uses[record].next = core->uses_vacant;
    core->uses_vacant = record;
}

static void list_append(uf_core *core, uf_uses_list *list, uint32_t record)
{
    core->uses[record].prev = list->last;
    core->uses[record].next = 0;
    if (list->last != 0) {
        core->uses[list->last].next = record;
    } else {
        list->first = record;
    }
    list->last = record;
}

static void list_remove(uf_core *core, uf_uses_list *list, uint32_t record)
{
    const uf_uses *uses = &core->uses[record];
    *(uses->prev != 0 ? &core->uses[uses->prev].next : &list->first) = uses->next;
    *(uses->next != 0 ? &core->uses[uses->next].prev : &list->last) = uses->prev;
}

uf_status uf__core_use(uf_core *core, uint32_t index, uint32_t stream)
{
    if (core->shelves[core->blocks.items[index].shelf]->stream == stream) {
        return UF_OK;
    }
    if (core->paging != NULL && core->paging->is_every_stream_watched &&
        !uf__paging_stream(core, stream)) {
        return UF_ERROR_HOST_MEMORY; /* it may use what it is not named for, too */
    }
    uint32_t record;
    uf_status status = uses_get(core, index, &record);
    if (status != UF_OK) {
        return status;
    }
    uf_uses *uses = &core->uses[record];
    for (uint32_t i = 0; i < uses->count; i++) {
        if (uses->items[i].stream == stream) {
            /* Named again inside a redirection, it counts as named there. */
            uses->items[i].is_from_redirection |= core->redirection_count != 0;
            return UF_OK;
        }
    }
    if (!uf__list_reserve((void **)&uses->items, &uses->capacity, sizeof *uses->items,
                          uses->count + 1)) {
        return UF_ERROR_HOST_MEMORY;
    }
    uses->items[uses->count++] =
        (uf_use){.stream = stream, .is_from_redirection = core->redirection_count != 0};
    return UF_OK;
}

uf_status uf__core_use_external(uf_core *core, uint32_t index, uint32_t tag)
{
    uint32_t record;
    uf_status status = uses_get(core, index, &record);
    if (status == UF_OK) {
        core->uses[record].is_external = true;
        core->uses[record].tag = tag;
    }
    return status;
}

bool uf__core_is_waiting(const uf_core *core, uint32_t index, uint32_t tag)
{
    const uf_block *block = &core->blocks.items[index];
    return block->life == UF_LIFE_PENDING && block->uses != 0 &&
           core->uses[block->uses].is_external && core->uses[block->uses].tag == tag;
}

/* Records the event of a stream, unless it was recorded before. */
static uf_status record_event(uf_core *core, uf_use *use)
{
    if (use->has_event || use->is_done) {
        return UF_OK;
    }
    uf_status status =
        core->device->event_record(core->device->context, core->streams[use->stream], &use->event);
    if (status == UF_ERROR_BUSY) {
        return UF_OK; /* the stream is being captured: the block waits until it can be marked */
    }
    if (status != UF_OK) {
        return uf__core_device_failed(core, status);
    }
    use->has_event = true;
    return UF_OK;
}

/* Records one event per stream. */
static uf_status record_events(uf_core *core, uf_uses *uses)
{
    uf_status status = UF_OK;
    for (uint32_t i = 0; i < uses->count && status == UF_OK; i++) {
        status = record_event(core, &uses->items[i]);
    }
    return status;
}

uf_status uf__pending_free(uf_core *core, uint32_t index)
{
    uint32_t record = core->blocks.items[index].uses;
    if (core->redirection_count != 0 && !core->uses[record].is_external) {
        core->blocks.items[index].life = UF_LIFE_DEFERRED;
        list_append(core, &core->deferred, record);
        return UF_OK;
    }
    core->blocks.items[index].life = UF_LIFE_PENDING;
    list_append(core, &core->pending, record);
    return record_events(core, &core->uses[record]);
}

void uf__core_complete(uf_core *core, uint32_t index)
{
    const uf_block *block = &core->blocks.items[index];
    list_remove(core, block->life == UF_LIFE_DEFERRED ? &core->deferred : &core->pending,
                block->uses);
    uf__uses_drop(core, index);
    uf__core_complete_block(core, index);
}

/* Frees put off during a redirection that is now over: forget the streams it added and wait for the
 * rest as usual. A block with no stream left is done at once. */
static uf_status resume_deferred(uf_core *core)
{
    while (core->deferred.first != 0) {
        uint32_t record = core->deferred.first;
        uf_uses *uses = &core->uses[record];
        uint32_t kept = 0;
        for (uint32_t i = 0; i < uses->count; i++) {
            if (!uses->items[i].is_from_redirection) {
                uses->items[kept++] = uses->items[i];
            }
        }
        uses->count = kept;
        uf_status status = record_events(core, uses);
        if (status != UF_OK) {
            return status;
        }
        list_remove(core, &core->deferred, record);
        core->blocks.items[uses->block].life = UF_LIFE_PENDING;
        list_append(core, &core->pending, record);
    }
    return UF_OK;
}

/* Asks the device about the events of a record that are still out, or waits for them. */
static uf_status settle(uf_core *core, uf_uses *uses, bool is_waiting, bool *is_done)
{
    const uf_device *device = core->device;
    *is_done = !uses->is_external || is_waiting;
    for (uint32_t i = 0; i < uses->count; i++) {
        uf_use *use = &uses->items[i];
        if (use->is_done) {
            continue;
        }
        /* Missing where recording failed at the free: the stream may still be at work. */
        uf_status status = record_event(core, use);
        if (status != UF_OK) {
            return status;
        }
        if (!use->has_event) {
            *is_done = false;
            continue;
        }
        bool is_event_done = true;
        status = is_waiting ? device->event_wait(device->context, use->event)
                            : device->event_query(device->context, use->event, &is_event_done);
        if (status != UF_OK) {
            return uf__core_device_failed(core, status);
        }
        use->has_event = !is_event_done;
        use->is_done = is_event_done;
        *is_done = *is_done && is_event_done;
    }
    return UF_OK;
}

/* The block at addr, if it waits. */
static uint32_t find_waiting(const uf_core *core, uint64_t addr)
{
    for (uint32_t record = core->pending.first; record != 0; record = core->uses[record].next) {
        if (core->blocks.items[core->uses[record].block].addr == addr) {
            return record;
        }
    }
    return 0;
}

static uf_status complete_ordered(uf_core *core, bool is_waiting)
{
    uint64_t addr;
    while (core->order_hook != NULL && core->order_hook(core->order_context, is_waiting, &addr)) {
        uint32_t record = find_waiting(core, addr);
        bool is_done = false;
        if (record != 0) {
            uf_status status = settle(core, &core->uses[record], is_waiting, &is_done);
            if (status != UF_OK) {
                return status;
            }
        }
        if (!is_done) {
            return UF_OK; /* the hook named a block that cannot complete: the list decides */
        }
        uf__core_complete(core, core->uses[record].block);
    }
    return UF_OK;
}

static uf_status complete_listed(uf_core *core, bool is_waiting, uint32_t only_pool)
{
    uint32_t next;
    for (uint32_t record = core->pending.first; record != 0; record = next) {
        next = core->uses[record].next;
        uint32_t index = core->uses[record].block;
        uint32_t pool = core->shelves[core->blocks.items[index].shelf]->pool;
        bool is_done = false;
        if (only_pool != UF_ANY_POOL && pool != only_pool) {
            continue;
        }
        uf_status status = settle(core, &core->uses[record], is_waiting, &is_done);
        if (status != UF_OK) {
            return status;
        }
        if (is_done) {
            uf__core_complete(core, index);
        }
    }
    return UF_OK;
}

uf_status uf__core_process_waiting(uf_core *core)
{
    if (core->redirection_count != 0) {
        return UF_OK;
    }
    uf_status status = resume_deferred(core);
    if (status == UF_OK) {
        status = complete_ordered(core, false);
    }
    return status == UF_OK ? complete_listed(core, false, UF_ANY_POOL) : status;
}

uf_status uf__pending_complete_all(uf_core *core, uint32_t only_pool)
{
    core->counters.num_sync_all_streams++;
    uf_status status = resume_deferred(core);
    if (status == UF_OK) {
        status = complete_ordered(core, true);
    }
    return status == UF_OK ? complete_listed(core, true, only_pool) : status;
}
