/* SPDX-License-Identifier: MIT
 *
 * A core on a simulated device, for tests: every driver call can be made to fail, all events are
 * kept, and the invariants are checked after each step. Single-threaded. */
#ifndef UF_TESTS_CORE_BENCH_H
#define UF_TESTS_CORE_BENCH_H

#include <check.h>
#include <string.h>

#include "alloc/core.h"
#include "device/sim.h"

#define BENCH_KIB (UINT64_C(1) << 10)
#define BENCH_MIB (UINT64_C(1) << 20)
#define BENCH_GIB (UINT64_C(1) << 30)
#define BENCH_EVENTS 512u

typedef struct bench_event {
    uf_action action;
    uint64_t addr, size_bytes, stream;
} bench_event;

typedef struct bench {
    uf_sim sim;
    uf_device device; /* the sim, with failures */
    uf_core core;
    uint64_t call_count; /* driver calls of any kind */
    uint64_t fail_at;    /* the call that fails, 0 = none */
    bool is_lasting;     /* and all calls after it */
    uf_status failure;
    uint64_t range_count; /* reservations held */
    bench_event events[BENCH_EVENTS];
    uint32_t event_count; /* kept up to BENCH_EVENTS, counted beyond */
} bench;

static inline uf_status bench_pass(bench *b)
{
    b->call_count++;
    bool is_due = b->fail_at != 0 &&
                  (b->call_count == b->fail_at || (b->is_lasting && b->call_count > b->fail_at));
    return is_due ? b->failure : UF_OK;
}

static inline uf_status bench_memory_info(void *context, uint64_t *free_bytes,
                                          uint64_t *total_bytes)
{
    bench *b = context;
    uf_status status = bench_pass(b);
    return status != UF_OK ? status : b->sim.device.memory_info(&b->sim, free_bytes, total_bytes);
}

static inline uf_status bench_segment_create(void *context, uint64_t size_bytes, uint64_t stream,
                                             uint64_t *addr)
{
    bench *b = context;
    uf_status status = bench_pass(b);
    return status != UF_OK ? status
                           : b->sim.device.segment_create(&b->sim, size_bytes, stream, addr);
}

static inline uf_status bench_segment_destroy(void *context, uint64_t addr, uint64_t size_bytes)
{
    bench *b = context;
    uf_status status = bench_pass(b);
    return status != UF_OK ? status : b->sim.device.segment_destroy(&b->sim, addr, size_bytes);
}

static inline uf_status bench_range_reserve(void *context, uint64_t size_bytes, uint64_t *addr)
{
    bench *b = context;
    uf_status status = bench_pass(b);
    status = status != UF_OK ? status : b->sim.device.range_reserve(&b->sim, size_bytes, addr);
    b->range_count += status == UF_OK;
    return status;
}

static inline uf_status bench_range_release(void *context, uint64_t addr, uint64_t size_bytes)
{
    bench *b = context;
    uf_status status = bench_pass(b);
    status = status != UF_OK ? status : b->sim.device.range_release(&b->sim, addr, size_bytes);
    b->range_count -= status == UF_OK;
    return status;
}

static inline uf_status bench_pages_map(void *context, uint64_t addr, uint64_t size_bytes,
                                        uint64_t page_bytes)
{
    bench *b = context;
    uf_status status = bench_pass(b);
    return status != UF_OK ? status
                           : b->sim.device.pages_map(&b->sim, addr, size_bytes, page_bytes);
}

static inline uf_status bench_pages_unmap(void *context, uint64_t addr, uint64_t size_bytes,
                                          uint64_t page_bytes)
{
    bench *b = context;
    uf_status status = bench_pass(b);
    return status != UF_OK ? status
                           : b->sim.device.pages_unmap(&b->sim, addr, size_bytes, page_bytes);
}

static inline uf_status bench_stream_wait(void *context, uint64_t stream)
{
    bench *b = context;
    uf_status status = bench_pass(b);
    return status != UF_OK ? status : b->sim.device.stream_wait(&b->sim, stream);
}

static inline uf_status bench_event_record(void *context, uint64_t stream, uint64_t *event)
{
    bench *b = context;
    uf_status status = bench_pass(b);
    return status != UF_OK ? status : b->sim.device.event_record(&b->sim, stream, event);
}

static inline uf_status bench_event_query(void *context, uint64_t event, bool *is_done)
{
    bench *b = context;
    uf_status status = bench_pass(b);
    return status != UF_OK ? status : b->sim.device.event_query(&b->sim, event, is_done);
}

static inline uf_status bench_event_wait(void *context, uint64_t event)
{
    bench *b = context;
    uf_status status = bench_pass(b);
    return status != UF_OK ? status : b->sim.device.event_wait(&b->sim, event);
}

static inline void bench_on_event(void *context, uf_action action, uint64_t addr,
                                  uint64_t size_bytes, uint64_t stream)
{
    bench *b = context;
    if (b->event_count < BENCH_EVENTS) {
        b->events[b->event_count] = (bench_event){action, addr, size_bytes, stream};
    }
    b->event_count++;
}

/* The settings of a string that the caller knows to be right. */
static inline uf_conf bench_conf(const char *text)
{
    uf_conf conf;
    uf_error error;
    uf__conf_init(&conf);
    ck_assert_int_eq(uf__conf_parse(&conf, text, UF_CONF_2_11, &error), UF_OK);
    return conf;
}

/* A card of 16 GiB that is card_bytes large (0 = all of it); limit_bytes 0 = none. */
static inline void bench_init(bench *b, const char *text, uint64_t limit_bytes, uint64_t card_bytes)
{
    memset(b, 0, sizeof *b);
    b->failure = UF_ERROR_DEVICE;
    uf__sim_init(&b->sim, 16 * BENCH_GIB, card_bytes);
    b->device = (uf_device){.struct_size_bytes = sizeof(uf_device),
                            .context = b,
                            .memory_info = bench_memory_info,
                            .segment_create = bench_segment_create,
                            .segment_destroy = bench_segment_destroy,
                            .range_reserve = bench_range_reserve,
                            .range_release = bench_range_release,
                            .pages_map = bench_pages_map,
                            .pages_unmap = bench_pages_unmap,
                            .stream_wait = bench_stream_wait,
                            .event_record = bench_event_record,
                            .event_query = bench_event_query,
                            .event_wait = bench_event_wait};
    uf_conf conf = bench_conf(text);
    uf_core_config config = {.device = &b->device,
                             .conf = &conf,
                             .limit_bytes = limit_bytes,
                             .event_hook = bench_on_event,
                             .event_context = b};
    ck_assert_int_eq(uf__core_init(&b->core, &config), UF_OK);
}

/* The invariants, and that the device and the core agree on what is held. */
static inline void bench_check(const bench *b)
{
    uf_error error = {UF_OK, ""};
    if (uf__core_check(&b->core, &error) != UF_OK) {
        ck_abort_msg("%s", error.text);
    }
    ck_assert_uint_eq(b->sim.in_use_bytes, b->core.total_bytes);
}

/* Ends the core; everything must be back at the device then. */
static inline void bench_fini(bench *b)
{
    bench_check(b);
    b->fail_at = 0;
    uf__core_fini(&b->core);
    ck_assert_uint_eq(b->sim.in_use_bytes, 0);
    ck_assert_uint_eq(b->range_count, 0);
}

static inline uint32_t bench_stream(bench *b, uint64_t handle)
{
    uint32_t stream;
    ck_assert_int_eq(uf__core_stream(&b->core, handle, &stream), UF_OK);
    return stream;
}

static inline uf_status bench_try(bench *b, uint64_t bytes, uint64_t stream, uint32_t pool,
                                  uint32_t *block)
{
    uf_status status = uf__core_alloc(&b->core, bytes, bench_stream(b, stream), pool, block);
    bench_check(b);
    return status;
}

static inline uint32_t bench_alloc_in(bench *b, uint64_t bytes, uint64_t stream, uint32_t pool)
{
    uint32_t block = UF_NO_BLOCK;
    ck_assert_int_eq(bench_try(b, bytes, stream, pool, &block), UF_OK);
    return block;
}

static inline uint32_t bench_alloc(bench *b, uint64_t bytes)
{
    return bench_alloc_in(b, bytes, 0, UF_DEFAULT_POOL);
}

static inline void bench_refuse(bench *b, uint64_t bytes, uf_status expected)
{
    uint32_t block = 12345;
    ck_assert_int_eq(bench_try(b, bytes, 0, UF_DEFAULT_POOL, &block), expected);
    ck_assert_uint_eq(block, 12345);
}

static inline void bench_free(bench *b, uint32_t block)
{
    ck_assert_int_eq(uf__core_free(&b->core, block), UF_OK);
    bench_check(b);
}

static inline void bench_empty(bench *b)
{
    ck_assert_int_eq(uf__core_empty_cache(&b->core), UF_OK);
    bench_check(b);
}

static inline uint64_t bench_addr(const bench *b, uint32_t block)
{
    return uf__core_block(&b->core, block)->addr;
}

static inline uint64_t bench_bytes(const bench *b, uint32_t block)
{
    return uf__core_block(&b->core, block)->size_bytes;
}

static inline int64_t bench_current(const bench *b, uf_counter_id id)
{
    return uf__counter_all(&b->core.counters, id);
}

/* How many events of an action were seen. */
static inline uint32_t bench_seen(const bench *b, uf_action action)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < b->event_count && i < BENCH_EVENTS; i++) {
        count += b->events[i].action == action;
    }
    return count;
}

/* The n-th event of an action, from 0. */
static inline const bench_event *bench_nth(const bench *b, uf_action action, uint32_t n)
{
    for (uint32_t i = 0; i < b->event_count && i < BENCH_EVENTS; i++) {
        if (b->events[i].action == action && n-- == 0) {
            return &b->events[i];
        }
    }
    ck_abort_msg("there are not so many events of %s", "that action");
    return NULL;
}

#endif
