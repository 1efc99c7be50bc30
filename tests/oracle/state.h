/* SPDX-License-Identifier: MIT
 *
 * The oracle's state, shared by its files and nobody else. Numbers in comments are sections of the
 * behavioural description. Single-threaded.
 *
 * There are no sets, trees or links: a block's state says which set PyTorch would keep it in, and
 * neighbours, orders and searches are found by scanning all blocks. */
#ifndef ORACLE_STATE_H
#define ORACLE_STATE_H

#include "alloc/conf.h"
#include "base/error.h"
#include "oplog/model.h"

/* 1.1 */
#define ORACLE_MIB (UINT64_C(1) << 20)
#define ORACLE_MIN_BLOCK UINT64_C(512)
#define ORACLE_SMALL_MAX ORACLE_MIB
#define ORACLE_SMALL_SEGMENT (2 * ORACLE_MIB)
#define ORACLE_MIN_LARGE (10 * ORACLE_MIB)
#define ORACLE_ROUND_LARGE (2 * ORACLE_MIB)
#define ORACLE_REQUEST_MAX (UINT64_C(1) << 60)
#define ORACLE_STREAM_MAX 16

typedef enum oracle_block_state {
    ORACLE_ALLOCATED,
    ORACLE_WAITING,  /* freed, but other streams may still use it (events or deferred) */
    ORACLE_CACHED,   /* in the set of free mapped blocks */
    ORACLE_UNMAPPED, /* in the set of unmapped blocks */
    ORACLE_HELD      /* found for the request under way, in no set */
} oracle_block_state;

typedef struct oracle_pair oracle_pair;

/* One set of cached and unmapped blocks. */
typedef struct oracle_pool {
    oracle_pair *pair;
    bool is_small;
    uint64_t search_count; /* ages count in it, 5 */
} oracle_pool;

/* The small and large pool of the default pool or of a private pool (7). */
struct oracle_pair {
    uint64_t id[2];
    bool is_private, is_use_on_oom, is_no_split, is_never_expandable;
    bool is_known; /* false once a flush forgot it; its blocks may live on */
    int64_t use_count;
    int64_t live_segment_count; /* with the quirk of 7.7 */
    oracle_pool small, large;
};

/* One region from the driver: a cudaMalloc, or an expandable segment's reservation. */
typedef struct oracle_segment {
    uint64_t addr, size_bytes;
    uint64_t page_bytes; /* 0 = not expandable */
    oracle_pool *pool;
    uint64_t stream;
} oracle_segment;

/* A set of streams. */
typedef struct oracle_streams {
    uint64_t items[ORACLE_STREAM_MAX];
    size_t count;
} oracle_streams;

typedef struct oracle_block {
    oracle_segment *segment;
    oracle_pool *pool;
    uint64_t stream, addr, size_bytes, requested_bytes;
    oracle_block_state state;
    oracle_streams users;               /* other streams that used it */
    oracle_streams redirected_users;    /* those of them added while a redirection was under way */
    oracle_streams event_streams;       /* outstanding events: the stream of each */
    uint64_t events[ORACLE_STREAM_MAX]; /* and its number */
    uint64_t freed_number;              /* when it was freed, for the default completion order */
    bool is_deferred;                   /* 4.6 */
    uint64_t age_base;                  /* 5 */
} oracle_block;

typedef struct oracle {
    model_config config;
    uf_conf conf;
    uint64_t total_bytes; /* held from the driver */
    bool has_limit;
    uint64_t limit_bytes;
    int64_t stats[MODEL_STAT_COUNT];
    oracle_block **blocks;
    size_t block_count, block_capacity;
    oracle_segment **segments;
    size_t segment_count, segment_capacity;
    oracle_pair **pairs; /* [0] is the default pool */
    size_t pair_count, pair_capacity;
    oracle_pair *redirections[ORACLE_STREAM_MAX]; /* oldest first */
    size_t redirection_count;
    uint64_t event_number;       /* of the newest event */
    uint64_t done_number;        /* events up to this one are complete on every stream */
    oracle_streams done_streams; /* further complete on single streams: */
    uint64_t done_numbers[ORACLE_STREAM_MAX];
    uint64_t freed_number;
} oracle;

/* A request on its way through the chain of 3.2. */
typedef struct oracle_request {
    uint64_t requested_bytes, rounded_bytes, segment_bytes, stream;
    oracle_pool *pool;
    bool is_expandable;
} oracle_request;

/* A place in the order of 2.2. */
typedef struct oracle_key {
    uint64_t stream, size_bytes, addr;
} oracle_key;

/* blocks.c */
void oracle_event(oracle *o, uf_action action, uint64_t addr, uint64_t size_bytes, uint64_t stream);
void oracle_stat_change(oracle *o, model_stat_group group, const oracle_pool *pool, int64_t change);
void oracle_stat_oversize(oracle *o, size_t first, int64_t change);
oracle_block *oracle_block_create(oracle *o, const oracle_block *like);
void oracle_block_destroy(oracle *o, oracle_block *block);
oracle_block *oracle_block_prev(const oracle *o, const oracle_block *block);
oracle_block *oracle_block_next(const oracle *o, const oracle_block *block);
bool oracle_block_is_split(const oracle *o, const oracle_block *block);
bool oracle_block_is_expandable(const oracle_block *block);
oracle_key oracle_block_key(const oracle_block *block);
/* The first cached block of the pool at or above key; after it; the last one below key. */
oracle_block *oracle_cached_from(const oracle *o, const oracle_pool *pool, oracle_key key);
oracle_block *oracle_cached_after(const oracle *o, const oracle_pool *pool, oracle_key key);
oracle_block *oracle_cached_before(const oracle *o, const oracle_pool *pool, oracle_key key);
/* All cached blocks of a pool in order, as an array the caller frees. */
oracle_block **oracle_cached_list(const oracle *o, const oracle_pool *pool, size_t *count);
uint64_t oracle_merge(oracle *o, oracle_block *block, oracle_block *neighbour);
void oracle_block_cache(oracle_block *block);
bool oracle_streams_has(const oracle_streams *streams, uint64_t stream);
bool oracle_streams_add(oracle_streams *streams, uint64_t stream);

/* search.c */
uint64_t oracle_round(const oracle *o, uint64_t bytes);
uint64_t oracle_segment_bytes(const oracle *o, uint64_t rounded_bytes);
oracle_block *oracle_find(oracle *o, const oracle_request *request);
oracle_block *oracle_hand_out(oracle *o, const oracle_request *request, oracle_block *block);

/* driver.c */
oracle_segment *oracle_segment_create(oracle *o, const oracle_segment *like);
void oracle_segment_destroy(oracle *o, oracle_segment *segment);
oracle_block *oracle_try_new(oracle *o, const oracle_request *request, bool is_retry);
void oracle_release(oracle *o, oracle_block *block);
void oracle_collect_garbage(oracle *o);
uf_status oracle_release_oversize(oracle *o, const oracle_request *request, bool *is_enough,
                                  uf_error *error);
void oracle_release_pool(oracle *o, oracle_pool *pool);
void oracle_flush(oracle *o, const oracle_pair *only);

/* expandable.c */
oracle_block *oracle_expandable_alloc(oracle *o, const oracle_request *request);
void oracle_unmap(oracle *o, oracle_block *block);

/* waiting.c */
uf_status oracle_free(oracle *o, uint64_t addr, uf_error *error);
uf_status oracle_record_stream(oracle *o, uint64_t addr, uint64_t stream, uf_error *error);
void oracle_process_events(oracle *o);
void oracle_wait_for_events(oracle *o, const oracle_pair *only);
uf_status oracle_synchronize(oracle *o, bool is_all, uint64_t stream);

/* pools.c */
oracle_pair *oracle_pair_create(oracle *o, const uint64_t id[2]);
oracle_pair *oracle_pair_find(const oracle *o, const uint64_t id[2]);
oracle_pair *oracle_pair_of_request(const oracle *o);
uf_status oracle_pool_create(oracle *o, const uint64_t id[2], const model_pool_options *options,
                             uf_error *error);
uf_status oracle_pool_begin(oracle *o, const uint64_t id[2], uf_error *error);
uf_status oracle_pool_end(oracle *o, const uint64_t id[2], uf_error *error);
uf_status oracle_pool_destroy(oracle *o, const uint64_t id[2], uf_error *error);

/* check.c */
uf_status oracle_check(const oracle *o, uf_error *error);
void oracle_walk(const oracle *o, model_layout *layout);

#endif
