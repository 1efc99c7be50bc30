/* SPDX-License-Identifier: MIT
 *
 * Seeded random operations, shaped like those of the recordings. Single-threaded. */
#ifndef ORACLE_GENERATE_H
#define ORACLE_GENERATE_H

#include "oplog/oplog.h"
#include "oracle/rng.h"
#include "oracle/setting.h"

#define GENERATE_POOL_MAX 5

typedef struct generate {
    const setting *from;
    rng numbers;
    uint64_t *live; /* ids of allocations */
    size_t live_count, live_capacity;
    uint64_t next_id, next_pool, step_count;
    size_t forced_free_count; /* frees due after a request ran out of memory */
    bool is_pool_due;         /* one operation on pools, for the same reason */
    uint64_t pools[GENERATE_POOL_MAX];
    size_t pool_count;
    uint64_t fallback_pool; /* the one with use_on_oom, 0 = none */
    uint64_t redirections[GENERATE_POOL_MAX];
    size_t redirection_count;
} generate;

void generate_init(generate *g, const setting *from, uint64_t seed);
void generate_fini(generate *g);

/* The next operation. op->conf is static text. */
void generate_next(generate *g, oplog_op *op);

/* Tells how the last operation went; to be called for each. */
void generate_done(generate *g, const oplog_op *op, uf_status status);

#endif
