/* SPDX-License-Identifier: MIT
 *
 * The public allocator in debug mode: what the witness (debug.h) is told of blocks and events, and
 * when it may look. Guarded by the allocator's lock. */
#include "alloc/allocator_parts.h"

/* While a pool's scope or route is open something may be captured: nothing is waited for then. */
static bool can_wait(const uf_allocator *allocator)
{
    return allocator->core.redirection_count == 0;
}

static void on_damage(void *context, const uf_damage *damage)
{
    uf_allocator *allocator = context;
    uintptr_t thread = atomic_load_explicit(&allocator->callback_thread, memory_order_relaxed);
    atomic_store_explicit(&allocator->callback_thread, (uintptr_t)pthread_self(),
                          memory_order_relaxed);
    allocator->options.on_damage(allocator->options.damage_context, damage);
    atomic_store_explicit(&allocator->callback_thread, thread, memory_order_relaxed);
}

bool uf__debugging_begin(uf_allocator *allocator)
{
    const uf_allocator_options *options = &allocator->options;
    allocator->debug =
        uf__debug_create(options->device, options->on_damage != NULL ? on_damage : NULL, allocator);
    if (allocator->debug == NULL) {
        return false;
    }
    allocator->guard_bytes = uf__debug_guard_bytes(allocator->debug);
    return true;
}

void uf__debugging_end(uf_allocator *allocator)
{
    uf__debug_destroy(allocator->debug);
    allocator->debug = NULL;
}

static uf_debug_block describe(const uf_allocator *allocator, uint32_t index)
{
    const uf_core *core = &allocator->core;
    const uf_block *block = uf__core_block(core, index);
    /* A captured graph writes to free memory of its pool whenever it is run. */
    bool is_shared = core->shelves[block->shelf]->pool != UF_DEFAULT_POOL;
    return (uf_debug_block){.addr = block->addr,
                            .size_bytes = block->size_bytes,
                            .requested_bytes = block->requested_bytes - allocator->guard_bytes,
                            .stream = uf__core_block_stream(core, index),
                            .is_filled = !is_shared};
}

uf_status uf__debugging_hand_out_locked(uf_allocator *allocator, uint32_t index, uf_error *error)
{
    const uf_debug_block block = describe(allocator, index);
    return uf__debug_hand_out(allocator->debug, &block, can_wait(allocator), error);
}

void uf__debugging_adopt_locked(uf_allocator *allocator, uint32_t index)
{
    const uf_debug_block block = describe(allocator, index);
    uf__debug_adopt(allocator->debug, &block);
}

void uf__debugging_event_locked(uf_allocator *allocator, uf_action action, uint64_t addr,
                                uint64_t size_bytes)
{
    switch (action) {
    case UF_ACTION_FREE_COMPLETED:
        uf__debug_complete(allocator->debug, addr, can_wait(allocator));
        break;
    case UF_ACTION_SEGMENT_ALLOC:
    case UF_ACTION_SEGMENT_FREE:
    case UF_ACTION_SEGMENT_MAP:
    case UF_ACTION_SEGMENT_UNMAP:
        uf__debug_forget(allocator->debug, addr, size_bytes);
        break;
    default:
        break;
    }
}

void uf__debugging_look_locked(uf_allocator *allocator)
{
    if (can_wait(allocator)) {
        uf__debug_check(allocator->debug);
    }
}
