/* SPDX-License-Identifier: MIT
 *
 * Conformance: running out of memory, waiting frees, the hazard of max_split_size, garbage
 * collection (sections 3 to 5, and 12 (d) (o) (t)). */
#include "oracle/bench.h"
#include "oracle/conformance.h"

#include <check.h>
#include <math.h>

static void flush_completes_but_does_not_search(const model_vtable *vtable)
{
    bench b;
    bench_init(&b, vtable, "");
    bench_limit(&b, 21 * BENCH_MIB);
    uint64_t waiting = bench_alloc(&b, 9 * BENCH_MIB);
    (void)bench_alloc(&b, 9 * BENCH_MIB); /* keeps the segment split */
    bench_use(&b, waiting, 7);
    bench_free(&b, waiting);
    ck_assert_int_eq(bench_block_state(&b, waiting), UF_BLOCK_ACTIVE_PENDING_FREE);
    bench_forget(&b);
    ck_assert_int_eq(bench_refuse(&b, 9 * BENCH_MIB), UF_ERROR_OUT_OF_MEMORY);
    ck_assert_uint_eq(b.seen.count, 2);
    ck_assert_int_eq(b.seen.events[0].action, UF_ACTION_FREE_COMPLETED);
    ck_assert_int_eq(b.seen.events[1].action, UF_ACTION_OOM);
    ck_assert_uint_eq(b.seen.events[1].size_bytes, 9 * BENCH_MIB);
    ck_assert_uint_eq(bench_alloc(&b, 9 * BENCH_MIB), waiting);
    bench_fini(&b);
}

static void redirection_skips_the_flush(const model_vtable *vtable)
{
    bench b;
    bench_init(&b, vtable, "");
    bench_limit(&b, 102 * BENCH_MIB);
    uint64_t addr = bench_alloc(&b, 60 * BENCH_MIB);
    bench_free(&b, addr);
    bench_pool_create(&b, 1, false, false);
    bench_pool_begin(&b, 1);
    ck_assert_int_eq(bench_refuse(&b, 80 * BENCH_MIB), UF_ERROR_OUT_OF_MEMORY);
    ck_assert_int_eq(bench_stat(&b, STAT_NUM_ALLOC_RETRIES), 0);
    ck_assert_int_eq(bench_current(&b, STAT_RESERVED_BYTES), (int64_t)(60 * BENCH_MIB));
    bench_pool_end(&b, 1);
    (void)bench_alloc(&b, 80 * BENCH_MIB);
    ck_assert_int_eq(bench_stat(&b, STAT_NUM_ALLOC_RETRIES), 1);
    bench_fini(&b);
}

static void lowering_max_split_size_is_a_hazard(const model_vtable *vtable)
{
    bench b;
    bench_init(&b, vtable, "");
    bench_limit(&b, 120 * BENCH_MIB);
    uint64_t front = bench_alloc(&b, 100 * BENCH_MIB);
    bench_free(&b, front);
    front = bench_alloc(&b, 40 * BENCH_MIB);
    uint64_t live = bench_alloc(&b, 60 * BENCH_MIB);
    ck_assert_uint_eq(live, front + 40 * BENCH_MIB);
    bench_free(&b, front);
    bench_conf(&b, "max_split_size_mb:32");
    bench_forget(&b);
    ck_assert_int_eq(bench_refuse(&b, 50 * BENCH_MIB), UF_ERROR_HAZARD);
    ck_assert_uint_eq(bench_count(&b, UF_ACTION_SEGMENT_FREE), 0);
    ck_assert_int_eq(bench_current(&b, STAT_RESERVED_BYTES), (int64_t)(100 * BENCH_MIB));
    bench_fini(&b);
}

/* Without ever lowering the option: expandable mode splits old oversize blocks (2.4 rule 2). */
static void switching_to_expandable_is_a_hazard(const model_vtable *vtable)
{
    bench b;
    bench_init(&b, vtable, "max_split_size_mb:64");
    bench_limit(&b, 120 * BENCH_MIB);
    uint64_t addr = bench_alloc(&b, 80 * BENCH_MIB);
    bench_free(&b, addr);
    bench_conf(&b, "max_split_size_mb:64,expandable_segments:True");
    ck_assert_uint_eq(bench_alloc(&b, 70 * BENCH_MIB), addr);
    ck_assert_uint_eq(bench_alloc(&b, 10 * BENCH_MIB), addr + 70 * BENCH_MIB);
    bench_free(&b, addr);
    ck_assert_int_eq(bench_refuse(&b, 75 * BENCH_MIB), UF_ERROR_HAZARD);
    bench_fini(&b);
}

static void oom_event_has_the_rounded_request(const model_vtable *vtable)
{
    bench b;
    bench_init(&b, vtable, "");
    bench_limit(&b, 100 * BENCH_MIB);
    ck_assert_int_eq(bench_refuse(&b, 400 * BENCH_MIB + 5), UF_ERROR_OUT_OF_MEMORY);
    ck_assert_uint_eq(bench_last(&b, UF_ACTION_OOM)->size_bytes, 400 * BENCH_MIB + 512);
    bench_fini(&b);
}

static void failure_is_told_once(const model_vtable *vtable)
{
    bench b;
    bench_init(&b, vtable, "");
    bench_limit(&b, 100 * BENCH_MIB);
    (void)bench_alloc(&b, 60 * BENCH_MIB);
    bench_forget(&b);
    ck_assert_int_eq(bench_refuse(&b, 400 * BENCH_MIB + 5), UF_ERROR_OUT_OF_MEMORY);
    ck_assert_uint_eq(b.seen.count, 1);
    ck_assert_int_eq(b.seen.events[0].action, UF_ACTION_OOM);
    /* In place of an address: what the driver has left. */
    ck_assert_uint_eq(b.seen.events[0].addr, BENCH_TOTAL_BYTES - 60 * BENCH_MIB);
    ck_assert_int_eq(bench_stat(&b, STAT_NUM_OOMS), 1);
    ck_assert_int_eq(bench_stat(&b, STAT_NUM_ALLOC_RETRIES), 1);
    ck_assert_int_eq(bench_current(&b, STAT_ALLOCATION), 1);
    bench_fini(&b);
}

/* What PyTorch's message calls "allocated in private pools". */
static void free_bytes_of_private_pools(const model_vtable *vtable)
{
    bench b;
    bench_init(&b, vtable, "");
    bench_pool_create(&b, 1, false, false);
    bench_pool_begin(&b, 1);
    (void)bench_alloc(&b, 4 * BENCH_MIB);
    (void)bench_alloc(&b, 512);
    bench_pool_end(&b, 1);
    bench_free(&b, bench_alloc(&b, 30 * BENCH_MIB)); /* not private: not counted */
    model_layout layout = {0};
    uint64_t held_bytes = 0;
    uint64_t free_bytes = 0;
    b.vtable->walk(b.model, &layout);
    for (size_t i = 0; i < layout.segment_count; i++) {
        if (layout.segments[i].pool_id[1] == 1) {
            held_bytes += layout.segments[i].total_bytes;
            free_bytes += layout.segments[i].total_bytes - layout.segments[i].active_bytes;
        }
    }
    model_layout_fini(&layout);
    ck_assert_uint_eq(held_bytes, 22 * BENCH_MIB);
    ck_assert_uint_eq(free_bytes, 18 * BENCH_MIB - 512); /* 18.00 MiB in the message */
    bench_fini(&b);
}

/* The limit is trunc(fraction * total): half a byte below 100 MiB is a byte too little. */
static void fraction_is_truncated(const model_vtable *vtable)
{
    bench b;
    uf_error error;
    const double total = (double)BENCH_TOTAL_BYTES;
    const double bytes = (double)(100 * BENCH_MIB);
    bench_init(&b, vtable, "");
    ck_assert_int_eq(b.vtable->set_fraction(b.model, (bytes - 0.5) / total, &error), UF_OK);
    ck_assert_int_eq(bench_refuse(&b, 100 * BENCH_MIB), UF_ERROR_OUT_OF_MEMORY);
    ck_assert_int_eq(b.vtable->set_fraction(b.model, (bytes + 0.5) / total, &error), UF_OK);
    (void)bench_alloc(&b, 100 * BENCH_MIB);
    ck_assert_int_eq(b.vtable->set_fraction(b.model, 0.0, &error), UF_OK);
    ck_assert_int_eq(bench_current(&b, STAT_RESERVED_BYTES), (int64_t)(100 * BENCH_MIB));
    bench_fini(&b);
}

static void fraction_in_a_later_call_does_nothing(const model_vtable *vtable)
{
    bench b;
    bench_init(&b, vtable, "");
    bench_conf(&b, "per_process_memory_fraction:0.001");
    (void)bench_alloc(&b, 1024 * BENCH_MIB);
    bench_fini(&b);
}

static void fraction_outside_0_to_1_is_refused(const model_vtable *vtable)
{
    bench b;
    uf_error error;
    bench_init(&b, vtable, "");
    ck_assert_int_ne(b.vtable->set_fraction(b.model, -0.1, &error), UF_OK);
    ck_assert_int_ne(b.vtable->set_fraction(b.model, 1.1, &error), UF_OK);
    ck_assert_int_ne(b.vtable->set_fraction(b.model, (double)NAN, &error), UF_OK);
    ck_assert_int_eq(b.vtable->set_fraction(b.model, 0.0, &error), UF_OK);
    ck_assert_int_eq(bench_refuse(&b, 1), UF_ERROR_OUT_OF_MEMORY);
    ck_assert_int_eq(b.vtable->set_fraction(b.model, 1.0, &error), UF_OK);
    (void)bench_alloc(&b, 1);
    bench_fini(&b);
}

static void unknown_address_is_refused(const model_vtable *vtable)
{
    bench b;
    uf_error error;
    bench_init(&b, vtable, "");
    uint64_t addr = bench_alloc(&b, 1000);
    ck_assert_int_eq(b.vtable->free_block(b.model, addr + 512, &error), UF_ERROR_FOREIGN_POINTER);
    bench_free(&b, addr);
    ck_assert_int_eq(b.vtable->free_block(b.model, addr, &error), UF_ERROR_FOREIGN_POINTER);
    bench_fini(&b);
}

static void other_stream_delays_the_free(const model_vtable *vtable)
{
    bench b;
    bench_init(&b, vtable, "");
    uint64_t addr = bench_alloc(&b, 1000);
    bench_use(&b, addr, 7);
    bench_use(&b, addr, BENCH_STREAM); /* its own: nothing happens */
    bench_free(&b, addr);
    ck_assert_int_eq(bench_current(&b, STAT_ALLOCATION), 0);
    ck_assert_int_eq(bench_current(&b, STAT_ACTIVE), 1);
    ck_assert_uint_ne(bench_alloc(&b, 1000), addr);
    bench_synchronize(&b);
    ck_assert_int_eq(bench_current(&b, STAT_ACTIVE), 2); /* completes at the next request only */
    ck_assert_uint_eq(bench_alloc(&b, 1000), addr);
    bench_fini(&b);
}

/* Four cached large segments, and a request that finds none of them. */
static size_t collected(const model_vtable *vtable, const char *conf, double fraction)
{
    bench b;
    uf_error error;
    uint64_t addrs[4];
    bench_init(&b, vtable, conf);
    ck_assert_int_eq(b.vtable->set_fraction(b.model, fraction, &error), UF_OK);
    for (size_t i = 0; i < 4; i++) {
        addrs[i] = bench_alloc(&b, 2048 * BENCH_MIB);
    }
    for (size_t i = 0; i < 4; i++) {
        bench_free(&b, addrs[i]);
    }
    bench_forget(&b);
    (void)bench_alloc(&b, 2050 * BENCH_MIB);
    size_t count = bench_count(&b, UF_ACTION_SEGMENT_FREE);
    bench_fini(&b);
    return count;
}

static void collection_needs_a_limit(const model_vtable *vtable)
{
    const char *conf = "garbage_collection_threshold:0.01";
    ck_assert_uint_eq(collected(vtable, conf, 1.0), 0);
    ck_assert_uint_eq(collected(vtable, "", 0.9999), 0);
    ck_assert_uint_eq(collected(vtable, conf, 0.9999), 4);
    ck_assert_uint_eq(collected(vtable, "garbage_collection_threshold:0.6", 0.9999), 0);
}

static void collection_spares_young_segments(const model_vtable *vtable)
{
    bench b;
    bench_init(&b, vtable, "garbage_collection_threshold:0.5");
    bench_limit(&b, 400 * BENCH_MIB);
    uint64_t old = bench_alloc(&b, 100 * BENCH_MIB);
    uint64_t young = bench_alloc(&b, 150 * BENCH_MIB);
    bench_free(&b, old);
    for (int i = 0; i < 5; i++) {
        bench_free(&b, bench_alloc(&b, 3 * BENCH_MIB)); /* the first obtains 20 MiB of its own */
    }
    bench_free(&b, young);
    bench_forget(&b);
    (void)bench_alloc(&b, 130 * BENCH_MIB + 1); /* served by the young one: no collection */
    ck_assert_uint_eq(bench_count(&b, UF_ACTION_SEGMENT_FREE), 0);
    (void)bench_alloc(&b, 101 * BENCH_MIB);
    ck_assert_uint_eq(bench_count(&b, UF_ACTION_SEGMENT_FREE), 1);
    ck_assert_uint_eq(bench_last(&b, UF_ACTION_SEGMENT_FREE)->addr, old);
    bench_fini(&b);
}

static void empty_cache_keeps_split_segments(const model_vtable *vtable)
{
    bench b;
    bench_init(&b, vtable, "");
    uint64_t one = bench_alloc(&b, 3 * BENCH_MIB);
    (void)bench_alloc(&b, 3 * BENCH_MIB);
    uint64_t whole = bench_alloc(&b, 30 * BENCH_MIB);
    bench_free(&b, one);
    bench_free(&b, whole);
    bench_empty_cache(&b);
    ck_assert_uint_eq(bench_count(&b, UF_ACTION_SEGMENT_FREE), 1);
    ck_assert_int_eq(bench_current(&b, STAT_RESERVED_BYTES), (int64_t)(20 * BENCH_MIB));
    ck_assert_int_eq(bench_stat(&b, STAT_NUM_SYNC_ALL_STREAMS), 1);
    bench_fini(&b);
}

const conformance_case conformance_chain[] = {
    {"flush_completes_a_waiting_block_but_does_not_search_again",
     flush_completes_but_does_not_search},
    {"request_inside_a_redirection_fails_without_a_flush", redirection_skips_the_flush},
    {"lowering_max_split_size_is_reported_as_a_hazard", lowering_max_split_size_is_a_hazard},
    {"switching_to_expandable_with_max_split_size_is_a_hazard",
     switching_to_expandable_is_a_hazard},
    {"oom_event_has_the_rounded_request", oom_event_has_the_rounded_request},
    {"failed_request_writes_one_event_and_counts_once", failure_is_told_once},
    {"free_bytes_of_private_pools_around_4_mib_and_512_bytes_are_18_mib",
     free_bytes_of_private_pools},
    {"fraction_is_truncated_to_whole_bytes_and_releases_nothing", fraction_is_truncated},
    {"fraction_in_a_later_settings_call_does_nothing", fraction_in_a_later_call_does_nothing},
    {"fraction_outside_0_to_1_is_refused", fraction_outside_0_to_1_is_refused},
    {"unknown_address_is_refused", unknown_address_is_refused},
    {"free_on_other_stream_waits_for_event", other_stream_delays_the_free},
    {"collection_needs_a_limit_and_a_threshold", collection_needs_a_limit},
    {"collection_takes_the_segments_of_average_age_and_above", collection_spares_young_segments},
    {"empty_cache_keeps_partly_used_segments", empty_cache_keeps_split_segments},
    {NULL, NULL},
};
