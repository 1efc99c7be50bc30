/* SPDX-License-Identifier: MIT
 *
 * A core under the unfrag policy on a simulated device, for tests of its parts: calls are counted
 * and some can be made to fail, and work is done when told. Single-threaded. */
#ifndef UF_TESTS_PAGING_BENCH_H
#define UF_TESTS_PAGING_BENCH_H

#include "alloc/hole.h"
#include "alloc/paging.h"
#include "device/sim.h"
#include "unit/suite.h"

#define MIB (UINT64_C(1) << 20)
#define GRANULE (2 * MIB)
#define LARGE (16 * MIB)

/* Calls of one function: the next so many fail. */
typedef struct paging_calls {
    uint64_t count, failing_count;
} paging_calls;

typedef struct paging_bench {
    uf_sim sim;
    uf_device device; /* the sim's, with these between */
    uf_core core;
    paging_calls records, waits, queries, accesses, unmaps, releases;
} paging_bench;

static paging_bench *paging_now; /* device functions get the sim */

static inline uf_status paging_pass(paging_calls *calls)
{
    calls->count++;
    bool is_failing = calls->failing_count != 0;
    calls->failing_count -= is_failing;
    return is_failing ? UF_ERROR_DEVICE : UF_OK;
}

static inline uf_status paging_record(void *context, uint64_t stream, uint64_t *event)
{
    uf_status status = paging_pass(&paging_now->records);
    return status == UF_OK ? paging_now->sim.device.event_record(context, stream, event) : status;
}

static inline uf_status paging_wait(void *context, uint64_t event)
{
    uf_status status = paging_pass(&paging_now->waits);
    return status == UF_OK ? paging_now->sim.device.event_wait(context, event) : status;
}

static inline uf_status paging_query(void *context, uint64_t event, bool *is_done)
{
    uf_status status = paging_pass(&paging_now->queries);
    return status == UF_OK ? paging_now->sim.device.event_query(context, event, is_done) : status;
}

static inline uf_status paging_access(void *context, uint64_t addr, uint64_t bytes, uint64_t count)
{
    uf_status status = paging_pass(&paging_now->accesses);
    return status == UF_OK ? paging_now->sim.device.range_access(context, addr, bytes, count)
                           : status;
}

static inline uf_status paging_unmap(void *context, uint64_t addr, uint64_t bytes, uint64_t count)
{
    uf_status status = paging_pass(&paging_now->unmaps);
    return status == UF_OK ? paging_now->sim.device.range_unmap(context, addr, bytes, count)
                           : status;
}

static inline uf_status paging_release(void *context, uint64_t handle, uint64_t bytes)
{
    uf_status status = paging_pass(&paging_now->releases);
    return status == UF_OK ? paging_now->sim.device.handle_release(context, handle, bytes) : status;
}

static inline void paging_check(const paging_bench *b)
{
    uf_error error;
    if (uf__core_check(&b->core, &error) != UF_OK) {
        ck_abort_msg("%s", error.text);
    }
}

/* Two streams, with the indices 0 and 1. limit_bytes 0 = none. */
static inline void paging_init(paging_bench *b, uint64_t limit_bytes)
{
    uint32_t stream;
    *b = (paging_bench){.records = {0, 0}};
    paging_now = b;
    uf__sim_init(&b->sim, 1024 * MIB, 0);
    b->device = b->sim.device;
    b->device.event_record = paging_record;
    b->device.event_wait = paging_wait;
    b->device.event_query = paging_query;
    b->device.range_access = paging_access;
    b->device.range_unmap = paging_unmap;
    b->device.handle_release = paging_release;
    const uf_core_config config = {.device = &b->device,
                                   .is_paged = true,
                                   .granule_bytes = GRANULE,
                                   .large_page_bytes = LARGE,
                                   .limit_bytes = limit_bytes};
    ck_assert_int_eq(uf__core_init(&b->core, &config), UF_OK);
    ck_assert_int_eq(uf__core_stream(&b->core, 0, &stream), UF_OK);
    ck_assert_uint_eq(stream, 0);
    ck_assert_int_eq(uf__core_stream(&b->core, 64, &stream), UF_OK);
    ck_assert_uint_eq(stream, 1);
}

/* Nothing is left on the device. */
static inline void paging_fini(paging_bench *b)
{
    paging_check(b);
    uf__core_fini(&b->core);
    ck_assert_uint_eq(b->sim.in_use_bytes, 0);
}

static inline uint32_t paging_take(paging_bench *b, uint64_t bytes, uint32_t stream)
{
    uint32_t block = UF_NO_BLOCK;
    uf_status status = uf__core_alloc(&b->core, bytes, stream, UF_DEFAULT_POOL, &block);
    ck_assert_msg(status == UF_OK, "%s", uf_status_name(status));
    paging_check(b);
    return block;
}

static inline void paging_give(paging_bench *b, uint32_t block)
{
    ck_assert_int_eq(uf__core_free(&b->core, block), UF_OK);
    paging_check(b);
}

/* A hole between two blocks that stay: [hole, addr + bytes), with pages. */
static inline uint32_t paging_hole(paging_bench *b, uint64_t bytes, uint32_t stream)
{
    (void)paging_take(b, GRANULE, stream);
    uint32_t block = paging_take(b, bytes, stream);
    (void)paging_take(b, GRANULE, stream);
    paging_give(b, block);
    return block;
}

static inline uf_shelf *paging_shelf(const paging_bench *b, uint32_t block)
{
    return b->core.shelves[b->core.blocks.items[block].shelf];
}

#endif
