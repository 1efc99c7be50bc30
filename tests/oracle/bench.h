/* SPDX-License-Identifier: MIT
 *
 * One model on a workbench: the fixture of the conformance tests. Addresses count upwards; all
 * events are kept. A failure of anything that a test takes for granted fails the test. */
#ifndef ORACLE_BENCH_H
#define ORACLE_BENCH_H

#include "oplog/expect.h"

#define BENCH_MIB (UINT64_C(1) << 20)
#define BENCH_TOTAL_BYTES (UINT64_C(16) << 30)
#define BENCH_STREAM UINT64_C(0) /* the stream of all requests but those that name another */

typedef struct bench {
    const model_vtable *vtable;
    void *model;
    expect seen; /* all events */
    uint64_t next_addr, next_reservation;
} bench;

void bench_init(bench *b, const model_vtable *vtable, const char *conf);
void bench_fini(bench *b); /* with a last invariant check */

uint64_t bench_alloc(bench *b, uint64_t bytes);
uint64_t bench_alloc_on(bench *b, uint64_t bytes, uint64_t stream);
/* The status of a request that is expected to fail. */
uf_status bench_refuse(bench *b, uint64_t bytes);
void bench_free(bench *b, uint64_t addr);
void bench_use(bench *b, uint64_t addr, uint64_t stream);
void bench_synchronize(bench *b);
void bench_empty_cache(bench *b);
void bench_conf(bench *b, const char *conf);
void bench_limit(bench *b, uint64_t limit_bytes);
void bench_pool_create(bench *b, uint64_t number, bool is_use_on_oom, bool is_no_split);
void bench_pool_begin(bench *b, uint64_t number);
void bench_pool_end(bench *b, uint64_t number);
void bench_pool_destroy(bench *b, uint64_t number);

/* A group's current value over both pools. */
int64_t bench_current(bench *b, model_stat_group group);
int64_t bench_stat(bench *b, size_t index);
/* How many events of an action were seen, and the last of them. */
size_t bench_count(const bench *b, uf_action action);
const expect_event *bench_last(const bench *b, uf_action action);
/* Forgets the events seen so far. */
void bench_forget(bench *b);
/* The block that starts at addr: its size, 0 if there is none. */
uint64_t bench_block_bytes(bench *b, uint64_t addr);
/* The state of the block that starts at addr. */
uf_block_state bench_block_state(bench *b, uint64_t addr);
/* The segment that holds addr; fails if none does. */
model_segment bench_segment(bench *b, uint64_t addr);

#endif
