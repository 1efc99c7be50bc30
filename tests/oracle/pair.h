/* SPDX-License-Identifier: MIT
 *
 * Two models side by side: each operation runs on the first, which is given addresses and orders by
 * a seeded policy, then on the second, which must do the same to the event, the statistic and the
 * block. Single-threaded. */
#ifndef ORACLE_PAIR_H
#define ORACLE_PAIR_H

#include "oplog/driver.h"
#include "oracle/rng.h"

#define PAIR_POOL_MAX 64

/* Where new segments are placed. */
typedef enum pair_placement {
    PAIR_LOWEST_GAP, /* side by side, addresses are used again */
    PAIR_DOWNWARDS,  /* side by side, each below the last */
    PAIR_SCATTERED,  /* in no order, never side by side */
    PAIR_PLACEMENT_COUNT
} pair_placement;

typedef struct pair_config {
    const model_vtable *first, *second;
    uint64_t total_bytes, capacity_bytes;
    const char *conf;
    uint64_t seed;
    uint64_t id_count; /* allocations' ids are below it */
} pair_config;

typedef struct pair {
    pair_config config;
    void *first, *second;
    expect e;
    uint64_t *first_addrs, *second_addrs;
    rng choices;
    pair_placement placement;
    expect_addr *segments; /* plain segments that exist now */
    size_t segment_count, segment_capacity;
    uint64_t placed_count, reserved_count, low_addr;
    uint64_t pools[PAIR_POOL_MAX][2]; /* created and not destroyed */
    size_t pool_count;
    uint64_t redirections[PAIR_POOL_MAX][2];
    size_t redirection_count;
    size_t event_count;          /* compared so far */
    uint64_t status_counts[128]; /* how often each status came back */
} pair;

/* Leaves the program if a model cannot be created. */
void pair_init(pair *p, const pair_config *config);
void pair_fini(pair *p);

/* Runs one operation on both; one that makes no sense now (a pool or an allocation that is not
 * there) is skipped. false on a difference, told by p->e.text. *status is the first model's. */
bool pair_step(pair *p, const oplog_op *op, uf_status *status);

/* Compares the whole layout; false on a difference, told by p->e.text. */
bool pair_layout_equal(pair *p);

#endif
