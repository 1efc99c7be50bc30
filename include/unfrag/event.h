/* SPDX-License-Identifier: MIT
 *
 * The events of an allocator's life and the states of its blocks, under the names that PyTorch's
 * snapshots use. Names only: nothing here owns anything or takes a lock. */
#ifndef UNFRAG_EVENT_H
#define UNFRAG_EVENT_H

/* The nine actions that PyTorch 2.11 writes, and UF_ACTION_OTHER for any other name. */
#define UF_ACTION_LIST(X)                         \
    X(UF_ACTION_ALLOC, "alloc")                   \
    X(UF_ACTION_FREE_REQUESTED, "free_requested") \
    X(UF_ACTION_FREE_COMPLETED, "free_completed") \
    X(UF_ACTION_SEGMENT_ALLOC, "segment_alloc")   \
    X(UF_ACTION_SEGMENT_FREE, "segment_free")     \
    X(UF_ACTION_SEGMENT_MAP, "segment_map")       \
    X(UF_ACTION_SEGMENT_UNMAP, "segment_unmap")   \
    X(UF_ACTION_SNAPSHOT, "snapshot")             \
    X(UF_ACTION_OOM, "oom")                       \
    X(UF_ACTION_OTHER, "other")

typedef enum uf_action {
#define UF_ACTION_ENUM(name, text) name,
    UF_ACTION_LIST(UF_ACTION_ENUM)
#undef UF_ACTION_ENUM
        UF_ACTION_COUNT
} uf_action;

/* The states of a block: active_allocated, active_pending_free (waits for another stream) and
 * inactive (cached), and UF_BLOCK_OTHER for any other name. */
typedef enum uf_block_state {
    UF_BLOCK_ACTIVE_ALLOCATED,
    UF_BLOCK_ACTIVE_PENDING_FREE,
    UF_BLOCK_INACTIVE,
    UF_BLOCK_OTHER
} uf_block_state;

#endif
