/* SPDX-License-Identifier: MIT
 *
 * The inside of the snapshot reader, shared by snapshot_record.c (what happens while the pickle is
 * being read: dictionaries become records) and snapshot.c (what is done with the result).
 *
 *     pickle bytes -> machine -> dict {"action": ...}   -> uf_event        record EVENT n
 *                                dict {"filename": ...} -> interned frame  record FRAME n
 *                                list of frames         -> interned stack  record STACK n
 *                                dict {"state": ...}    -> uf_trace_block  record BLOCK n
 *                                dict {"stage": ...}    -> uf_annotation   record ANNOTATION n
 *                                others stay as they are until the end */
#ifndef UF_TRACE_SNAPSHOT_RECORD_H
#define UF_TRACE_SNAPSHOT_RECORD_H

#include "trace/builder.h"
#include "trace/pickle.h"

/* The keys of a snapshot's dictionaries. Their strings are the first in the store, so that a key's
 * string id is its number here. */
#define UF__KEY_LIST(X)                                      \
    X(ACTION, "action")                                      \
    X(ADDR, "addr")                                          \
    X(SIZE, "size")                                          \
    X(STREAM, "stream")                                      \
    X(TIME_US, "time_us")                                    \
    X(COMPILE_CONTEXT, "compile_context")                    \
    X(USER_METADATA, "user_metadata")                        \
    X(FRAMES, "frames")                                      \
    X(DEVICE_FREE, "device_free")                            \
    X(POOL_ID, "pool_id")                                    \
    X(FILENAME, "filename")                                  \
    X(NAME, "name")                                          \
    X(LINE, "line")                                          \
    X(STATE, "state")                                        \
    X(ADDRESS, "address")                                    \
    X(REQUESTED_SIZE, "requested_size")                      \
    X(HISTORY, "history")                                    \
    X(REAL_SIZE, "real_size")                                \
    X(DEVICE, "device")                                      \
    X(TOTAL_SIZE, "total_size")                              \
    X(ALLOCATED_SIZE, "allocated_size")                      \
    X(ACTIVE_SIZE, "active_size")                            \
    X(SEGMENT_TYPE, "segment_type")                          \
    X(SEGMENT_POOL_ID, "segment_pool_id")                    \
    X(IS_EXPANDABLE, "is_expandable")                        \
    X(BLOCKS, "blocks")                                      \
    X(STAGE, "stage")                                        \
    X(SEGMENTS, "segments")                                  \
    X(DEVICE_TRACES, "device_traces")                        \
    X(ALLOCATOR_SETTINGS, "allocator_settings")              \
    X(EXTERNAL_ANNOTATIONS, "external_annotations")          \
    X(CONF, "PYTORCH_CUDA_ALLOC_CONF")                       \
    X(MAX_SPLIT_SIZE, "max_split_size")                      \
    X(GC_THRESHOLD, "garbage_collection_threshold")          \
    X(EXPANDABLE_SEGMENTS, "expandable_segments")            \
    X(DIVISIONS, "roundup_power2_divisions")                 \
    X(PINNED_THREADS, "pinned_num_register_threads")         \
    X(RELEASE_LOCK, "release_lock_on_cudamalloc")            \
    X(PINNED_HOST_REGISTER, "pinned_use_cuda_host_register") \
    X(RECORD_STREAM_REUSE, "graph_capture_record_stream_reuse")

typedef enum uf__key {
#define UF__KEY_ENUM(name, text) UF__KEY_##name,
    UF__KEY_LIST(UF__KEY_ENUM)
#undef UF__KEY_ENUM
        UF__KEY_COUNT
} uf__key;

#define UF__KEY_BIT(name) (UINT64_C(1) << UF__KEY_##name)

/* Behind the keys come the names of the actions, in the order of uf_action. */
#define UF__FIRST_ACTION_ID ((uint32_t)UF__KEY_COUNT)

enum {
    UF__RECORD_EVENT,
    UF__RECORD_FRAME,
    UF__RECORD_STACK,
    UF__RECORD_BLOCK,
    UF__RECORD_ANNOTATION
};

/* Bits in uf_event.reserved[0] and uf_trace_block.reserved[0] while reading; 0 in the end. */
#define UF__EVENT_HAS_SIZE 1u
#define UF__EVENT_HAS_ADDR 2u
#define UF__EVENT_HAS_DEVICE_FREE 4u
#define UF__BLOCK_HAS_ADDR 1u

/* A dictionary's values by key. value[k] means something only where bit k of seen is set. */
typedef struct uf__fields {
    uint64_t seen;
    uint64_t unknown_count;             /* entries whose key is none of the list */
    uf__value first_unknown;            /* the first such key */
    uf__value value[UF__KEY_COUNT + 1]; /* the last: of a key that is none of the list */
} uf__fields;

/* What a site was made from, so that events like an earlier one need no interning. */
typedef struct uf__site_cache {
    uf__value stream, context, metadata, pool, stack;
    uint32_t site; /* UF_NONE: empty */
} uf__site_cache;

#define UF__SITE_CACHE_BITS 6

/* What a frame was made from, and the one that came after it last: a stack that is written out
 * again has its frames in the same order, and needs no interning then. */
typedef struct uf__known_frame {
    uint64_t names; /* the store's ids of file name and function */
    uf__value line; /* UF__VALUE_NOTHING: not known */
    uint32_t next;
} uf__known_frame;

typedef struct uf__snapshot {
    uf__input *input;
    uf_builder *builder;
    const char *form_name; /* "a pickle" */
    bool skip_stacks;
    uf__store store;
    uf__fields fields;  /* of the dictionary at hand */
    uf__fields history; /* of a dictionary inside it */
    uf_event *events;   /* in the order of the file */
    uint64_t event_count, event_capacity;
    uint64_t event_number; /* of the event at hand, for messages */
    uf_trace_block *blocks;
    uint64_t block_count, block_capacity;
    uf_annotation *annotations;
    uint64_t annotation_count, annotation_capacity;
    uint32_t *string_ids; /* from store string to trace string, UF_NONE where not yet known */
    uint64_t string_id_count, string_id_capacity;
    uint32_t *frame_ids; /* of the stack at hand */
    uint64_t frame_id_capacity;
    uf__known_frame *known_frames; /* by frame */
    uint64_t known_frame_count, known_frame_capacity;
    uint32_t last_frame;
    uf__site_cache cache[1 << UF__SITE_CACHE_BITS];
} uf__snapshot;

/* Prepares the store's first strings and the reducer. Returns false when the host has no memory
 * left. */
bool uf__snapshot_init(uf__snapshot *snapshot, uf__reducer *reducer);
void uf__snapshot_fini(uf__snapshot *snapshot);

/* Sorts the pairs of a dictionary by key. */
void uf__fields_take(uf__fields *fields, const uf__value *pairs, uint64_t pair_count);

/* Sorts the pairs of a dictionary value. Returns false when it is none. */
bool uf__fields_take_dict(uf__fields *fields, const uf__store *store, uf__value dict);

/* Returns the value of a key; UF__VALUE_NOTHING where it is missing or None. */
static inline uf__value uf__fields_get(const uf__fields *fields, uf__key key)
{
    if (!(fields->seen >> key & 1) || fields->value[key] == UF__VALUE_NONE)
        return UF__VALUE_NOTHING;
    return fields->value[key];
}

/* Counts the entries whose key is not among the known bits. */
uf_status uf__snapshot_count_unknown(uf__snapshot *snapshot, const uf__fields *fields,
                                     uint64_t known, uf_error *error) UF_MUST_USE;

/* The trace's id of a string value; UF_NONE for anything else. */
uf_status uf__snapshot_string(uf__snapshot *snapshot, uf__value value, uint32_t *id,
                              uf_error *error) UF_MUST_USE;

/* The stack of a list of frames; UF_NONE where it is missing or empty. The list may be given up
 * (can_replace) only by whoever forgets the word afterwards. */
uf_status uf__snapshot_stack(uf__snapshot *snapshot, uf__value frames, bool can_replace,
                             uint32_t *stack, uf_error *error) UF_MUST_USE;

/* Two whole numbers. Returns false where the value is no such pair. */
bool uf__snapshot_pool_id(const uf__snapshot *snapshot, uf__value value, uint64_t pool_id[2]);

/* A stream handle: any 64-bit number, signed or not. */
bool uf__snapshot_stream(const uf__snapshot *snapshot, uf__value value, uint64_t *stream);

/* A size: 0 .. 2^60 - 1. */
bool uf__snapshot_size(const uf__snapshot *snapshot, uf__value value, uint64_t *size_bytes);

/* Fails with "WHAT NUMBER: its KEY is VALUE, which cannot be". */
uf_status uf__snapshot_bad(const uf__snapshot *snapshot, const char *what, uint64_t number,
                           const char *key, uf__value value, uf_error *error) UF_MUST_USE;
uf_status uf__snapshot_no_memory(uf_error *error) UF_MUST_USE;

#endif
