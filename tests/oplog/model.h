/* SPDX-License-Identifier: MIT
 *
 * What a model of PyTorch's caching allocator can be asked in tests: one table of functions, filled
 * by the oracle and by the real core, so that every check runs on both. Owns the names of the 122
 * statistics and the layout list; must not know any model. Single-threaded. */
#ifndef OPLOG_MODEL_H
#define OPLOG_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <unfrag/status.h>
#include <unfrag/trace.h>

/* Statistics, in this order: nine groups x {all, small_pool, large_pool} x {current, peak,
 * allocated, freed}, two oversize groups x the same four, six plain counters. */
#define MODEL_STAT_COUNT 122

typedef enum model_stat_group {
    STAT_ALLOCATION,
    STAT_SEGMENT,
    STAT_ACTIVE,
    STAT_INACTIVE_SPLIT,
    STAT_ALLOCATED_BYTES,
    STAT_RESERVED_BYTES,
    STAT_ACTIVE_BYTES,
    STAT_INACTIVE_SPLIT_BYTES,
    STAT_REQUESTED_BYTES,
    STAT_GROUP_COUNT
} model_stat_group;

enum { STAT_ALL, STAT_SMALL_POOL, STAT_LARGE_POOL };
enum { STAT_CURRENT, STAT_PEAK, STAT_ALLOCATED, STAT_FREED };
enum {
    STAT_OVERSIZE_ALLOCATIONS = 108,
    STAT_OVERSIZE_SEGMENTS = 112,
    STAT_NUM_ALLOC_RETRIES = 116,
    STAT_NUM_OOMS,
    STAT_NUM_SYNC_ALL_STREAMS,
    STAT_NUM_DEVICE_ALLOC,
    STAT_NUM_DEVICE_FREE,
    STAT_MAX_SPLIT_SIZE
};

/* The index of one number of a group. */
size_t model_stat_index(model_stat_group group, int pool, int part);

/* The key PyTorch gives statistic number index, such as "active_bytes.all.peak". text holds 64
 * bytes. */
void model_stat_name(size_t index, char *text);

typedef struct model_block {
    uint64_t addr, size_bytes, requested_bytes;
    uf_block_state state;
} model_block;

typedef struct model_segment {
    uint64_t addr, total_bytes, allocated_bytes, active_bytes, requested_bytes;
    uint64_t stream, pool_id[2];
    size_t first_block, block_count;
    bool is_large, is_expandable;
} model_segment;

/* A snapshot's segments by ascending address, one per maximal mapped run. */
typedef struct model_layout {
    model_segment *segments;
    size_t segment_count, segment_capacity;
    model_block *blocks;
    size_t block_count, block_capacity;
} model_layout;

/* Opens a segment; the blocks appended next belong to it and are added to its sums. */
void model_layout_segment(model_layout *layout, const model_segment *segment);
void model_layout_block(model_layout *layout, const model_block *block);
void model_layout_clear(model_layout *layout); /* empties, keeps the memory */
void model_layout_fini(model_layout *layout);
/* Compares; false stores one line on the first difference in text (size bytes). */
bool model_layout_equal(const model_layout *expected, const model_layout *got, char *text,
                        size_t size);

/* Grows a test's array to hold one more item; leaves the program when the host has no memory. */
void *model_grow(void *items, size_t count, size_t *capacity, size_t item_size);

/* What a model calls. Entries may be NULL except the two addresses. */
typedef struct model_host {
    void *context;
    /* An event took effect. For UF_ACTION_OOM addr is the driver's free bytes. */
    void (*event)(void *context, uf_action action, uint64_t addr, uint64_t size_bytes,
                  uint64_t stream);
    /* The address of a new segment, and of a new expandable reservation; false = the driver is out
     * of memory. */
    bool (*segment_addr)(void *context, uint64_t size_bytes, uint64_t stream, uint64_t *addr);
    bool (*reservation_addr)(void *context, uint64_t size_bytes, uint64_t *addr);
    /* Several waiting blocks may complete: the address of the one to complete next. A model that
     * cannot list its candidates passes count 0. An address that is no candidate, or false, leaves
     * the choice to the model. */
    bool (*completion)(void *context, const uint64_t *candidates, size_t count, uint64_t *addr);
    /* Several private pools may be emptied: the index of the one to go first. */
    size_t (*pool)(void *context, const uint64_t (*ids)[2], size_t count);
} model_host;

typedef struct model_config {
    uint64_t total_bytes;    /* the device's nominal memory */
    uint64_t capacity_bytes; /* what the driver hands out at most; 0 = no bound */
    const char *conf;        /* settings at creation; NULL = defaults */
    model_host host;
} model_config;

typedef struct model_pool_options {
    bool is_use_on_oom, is_no_split;
    bool is_never_expandable; /* as a pool that an allocator of its own supplies */
} model_pool_options;

/* Each entry that returns a uf_status fills *error (may be NULL) on failure where it has more to
 * say. Entries marked (optional) may be NULL. */
typedef struct model_vtable {
    const char *name;
    uf_status (*create)(const model_config *config, void **model, uf_error *error);
    void (*destroy)(void *model);
    uf_status (*alloc)(void *model, uint64_t bytes, uint64_t stream, uint64_t *addr,
                       uf_error *error);
    uf_status (*free_block)(void *model, uint64_t addr, uf_error *error);
    uf_status (*record_stream)(void *model, uint64_t addr, uint64_t stream, uf_error *error);
    /* All events recorded so far are complete; is_all false: those of one stream. */
    uf_status (*synchronize)(void *model, bool is_all, uint64_t stream);
    uf_status (*empty_cache)(void *model, uf_error *error);
    uf_status (*set_fraction)(void *model, double fraction, uf_error *error);
    uf_status (*set_conf)(void *model, const char *conf, uf_error *error);
    uf_status (*pool_create)(void *model, const uint64_t id[2], const model_pool_options *options,
                             uf_error *error);
    uf_status (*pool_begin)(void *model, const uint64_t id[2], uf_error *error);
    uf_status (*pool_end)(void *model, const uint64_t id[2], uf_error *error);
    uf_status (*pool_destroy)(void *model, const uint64_t id[2], uf_error *error);
    void (*stats)(void *model, int64_t values[MODEL_STAT_COUNT]);
    /* Appends to an empty layout. */
    void (*walk)(void *model, model_layout *layout);
    uf_status (*check)(void *model, uf_error *error); /* (optional) its own invariants */
} model_vtable;

#endif
