/* SPDX-License-Identifier: MIT
 *
 * Conformance: private pools and redirections (section 7, 4.5 and 4.6). */
#include "oracle/bench.h"
#include "oracle/conformance.h"

#include <check.h>

static uint64_t alloc_in_pool(bench *b, uint64_t number, uint64_t bytes)
{
    bench_pool_begin(b, number);
    uint64_t addr = bench_alloc(b, bytes);
    bench_pool_end(b, number);
    return addr;
}

static void pool_keeps_its_cache(const model_vtable *vtable)
{
    bench b;
    bench_init(&b, vtable, "");
    bench_limit(&b, 60 * BENCH_MIB);
    bench_pool_create(&b, 1, false, false);
    uint64_t addr = alloc_in_pool(&b, 1, 30 * BENCH_MIB);
    ck_assert_uint_eq(bench_segment(&b, addr).pool_id[1], 1);
    bench_free(&b, addr);
    bench_empty_cache(&b);
    ck_assert_int_eq(bench_refuse(&b, 40 * BENCH_MIB), UF_ERROR_OUT_OF_MEMORY);
    ck_assert_uint_eq(bench_count(&b, UF_ACTION_SEGMENT_FREE), 0);
    ck_assert_uint_eq(alloc_in_pool(&b, 1, 30 * BENCH_MIB), addr);
    bench_fini(&b);
}

static void destroying_frees_at_once(const model_vtable *vtable)
{
    bench b;
    bench_init(&b, vtable, "");
    bench_pool_create(&b, 1, false, false);
    bench_free(&b, alloc_in_pool(&b, 1, 30 * BENCH_MIB));
    bench_free(&b, alloc_in_pool(&b, 1, 100));
    bench_pool_destroy(&b, 1);
    ck_assert_uint_eq(bench_count(&b, UF_ACTION_SEGMENT_FREE), 2);
    ck_assert_uint_eq(bench_last(&b, UF_ACTION_SEGMENT_FREE)->size_bytes, 30 * BENCH_MIB);
    ck_assert_int_eq(bench_current(&b, STAT_RESERVED_BYTES), 0);
    ck_assert_int_eq(bench_stat(&b, STAT_NUM_SYNC_ALL_STREAMS), 1);
    bench_fini(&b);
}

static void tensors_outlive_their_pool(const model_vtable *vtable)
{
    bench b;
    bench_init(&b, vtable, "");
    bench_pool_create(&b, 1, false, false);
    uint64_t addr = alloc_in_pool(&b, 1, 30 * BENCH_MIB);
    bench_pool_destroy(&b, 1);
    ck_assert_uint_eq(bench_count(&b, UF_ACTION_SEGMENT_FREE), 0);
    bench_free(&b, addr);
    ck_assert_uint_eq(bench_count(&b, UF_ACTION_SEGMENT_FREE), 0);
    bench_empty_cache(&b);
    ck_assert_uint_eq(bench_count(&b, UF_ACTION_SEGMENT_FREE), 1);
    bench_fini(&b);
}

static void beginning_twice_is_refused(const model_vtable *vtable)
{
    bench b;
    uf_error error;
    bench_init(&b, vtable, "");
    bench_pool_create(&b, 1, false, false);
    bench_pool_begin(&b, 1);
    ck_assert_int_eq(b.vtable->pool_begin(b.model, (const uint64_t[2]){0, 1}, &error),
                     UF_ERROR_BUSY);
    bench_pool_end(&b, 1);
    bench_pool_begin(&b, 1);
    bench_pool_end(&b, 1);
    bench_fini(&b);
}

static void destroying_in_a_redirection_is_refused(const model_vtable *vtable)
{
    bench b;
    uf_error error;
    bench_init(&b, vtable, "");
    bench_pool_create(&b, 1, false, false);
    bench_pool_create(&b, 2, false, false);
    bench_pool_begin(&b, 1);
    ck_assert_int_eq(b.vtable->pool_destroy(b.model, (const uint64_t[2]){0, 2}, &error),
                     UF_ERROR_BUSY);
    bench_pool_end(&b, 1);
    bench_pool_destroy(&b, 2);
    bench_fini(&b);
}

static void redirection_shields_the_default_pool(const model_vtable *vtable)
{
    bench b;
    bench_init(&b, vtable, "");
    bench_free(&b, bench_alloc(&b, 30 * BENCH_MIB));
    bench_pool_create(&b, 1, false, false);
    bench_pool_begin(&b, 1);
    bench_empty_cache(&b);
    ck_assert_uint_eq(bench_count(&b, UF_ACTION_SEGMENT_FREE), 0);
    ck_assert_int_eq(bench_stat(&b, STAT_NUM_SYNC_ALL_STREAMS), 0);
    bench_pool_end(&b, 1);
    bench_empty_cache(&b);
    ck_assert_uint_eq(bench_count(&b, UF_ACTION_SEGMENT_FREE), 1);
    bench_fini(&b);
}

static void redirection_defers_frees(const model_vtable *vtable)
{
    bench b;
    bench_init(&b, vtable, "");
    bench_pool_create(&b, 1, false, false);
    uint64_t before = bench_alloc(&b, 1000); /* used elsewhere before the redirection */
    uint64_t inside = bench_alloc(&b, 1000); /* used elsewhere during it only */
    bench_use(&b, before, 7);
    bench_pool_begin(&b, 1);
    bench_use(&b, inside, 7);
    bench_free(&b, before);
    bench_free(&b, inside);
    bench_synchronize(&b);
    (void)bench_alloc(&b, 1000);
    ck_assert_uint_eq(bench_count(&b, UF_ACTION_FREE_COMPLETED), 0);
    bench_pool_end(&b, 1);
    ck_assert_uint_eq(bench_alloc(&b, 1000), inside); /* completes at once, without an event */
    ck_assert_uint_eq(bench_count(&b, UF_ACTION_FREE_COMPLETED), 1);
    bench_synchronize(&b); /* the event of the other was recorded just now */
    ck_assert_uint_eq(bench_alloc(&b, 1000), before);
    bench_fini(&b);
}

static void use_again_in_a_redirection_counts_as_inside(const model_vtable *vtable)
{
    bench b;
    bench_init(&b, vtable, "");
    bench_pool_create(&b, 1, false, false);
    uint64_t addr = bench_alloc(&b, 1000);
    bench_use(&b, addr, 7);
    bench_pool_begin(&b, 1);
    bench_use(&b, addr, 7);
    bench_free(&b, addr);
    bench_pool_end(&b, 1);
    ck_assert_uint_eq(bench_alloc(&b, 1000), addr);
    bench_fini(&b);
}

static void private_pool_expands(const model_vtable *vtable)
{
    bench b;
    bench_init(&b, vtable, "expandable_segments:True");
    bench_pool_create(&b, 1, false, false);
    uint64_t addr = alloc_in_pool(&b, 1, 30 * BENCH_MIB);
    ck_assert(bench_segment(&b, addr).is_expandable);
    ck_assert_uint_eq(bench_segment(&b, addr).pool_id[1], 1);
    ck_assert_uint_ne(bench_alloc(&b, 3 * BENCH_MIB), addr + 30 * BENCH_MIB);
    bench_fini(&b);
}

static void pool_of_its_own_allocator_does_not_expand(const model_vtable *vtable)
{
    bench b;
    uf_error error;
    const model_pool_options options = {.is_never_expandable = true};
    bench_init(&b, vtable, "expandable_segments:True");
    ck_assert_int_eq(b.vtable->pool_create(b.model, (const uint64_t[2]){0, 1}, &options, &error),
                     UF_OK);
    /* Asked of that allocator: whole segments, 20 MiB for 3 MiB and 2 MiB for 400 bytes. */
    uint64_t large = alloc_in_pool(&b, 1, 3 * BENCH_MIB);
    uint64_t small = alloc_in_pool(&b, 1, 400);
    ck_assert_uint_eq(bench_count(&b, UF_ACTION_SEGMENT_MAP), 0);
    ck_assert_uint_eq(bench_count(&b, UF_ACTION_SEGMENT_ALLOC), 2);
    ck_assert(!bench_segment(&b, large).is_expandable);
    ck_assert_uint_eq(bench_segment(&b, large).total_bytes, 20 * BENCH_MIB);
    ck_assert_uint_eq(bench_segment(&b, small).total_bytes, 2 * BENCH_MIB);
    ck_assert_int_eq(bench_current(&b, STAT_SEGMENT), 2);
    /* Split by the rule of ordinary segments: 1 MiB stays in the block. */
    ck_assert_uint_eq(alloc_in_pool(&b, 1, 16 * BENCH_MIB), large + 3 * BENCH_MIB);
    ck_assert_uint_eq(bench_block_bytes(&b, large + 3 * BENCH_MIB), 17 * BENCH_MIB);
    ck_assert(bench_segment(&b, bench_alloc(&b, 3 * BENCH_MIB)).is_expandable);
    bench_fini(&b);
}

static void hand_made_and_captured_ids_are_apart(const model_vtable *vtable)
{
    bench b;
    uf_error error;
    static const uint64_t ids[2][2] = {{0, 1}, {1, 0}}; /* MemPool; a capture's own pool */
    uint64_t addrs[2];
    bench_init(&b, vtable, "");
    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(b.vtable->pool_create(b.model, ids[i], NULL, &error), UF_OK);
        ck_assert_int_eq(b.vtable->pool_begin(b.model, ids[i], &error), UF_OK);
        addrs[i] = bench_alloc(&b, 3 * BENCH_MIB);
        ck_assert_int_eq(b.vtable->pool_end(b.model, ids[i], &error), UF_OK);
    }
    ck_assert_uint_eq(bench_count(&b, UF_ACTION_SEGMENT_ALLOC), 2); /* no memory in common */
    for (size_t i = 0; i < 2; i++) {
        model_segment segment = bench_segment(&b, addrs[i]);
        ck_assert_uint_eq(segment.pool_id[0], ids[i][0]);
        ck_assert_uint_eq(segment.pool_id[1], ids[i][1]);
    }
    bench_fini(&b);
}

/* A pool's scope counts as a use beside its creation, and its end takes that use back. */
static void scope_is_one_more_use(const model_vtable *vtable)
{
    bench b;
    bench_init(&b, vtable, "");
    bench_pool_create(&b, 1, false, false);
    for (int i = 0; i < 2; i++) {
        bench_free(&b, alloc_in_pool(&b, 1, 30 * BENCH_MIB));
        bench_empty_cache(&b); /* still one use: nothing is freed */
        ck_assert_uint_eq(bench_count(&b, UF_ACTION_SEGMENT_FREE), 0);
        ck_assert_uint_eq(bench_count(&b, UF_ACTION_SEGMENT_ALLOC), 1);
    }
    bench_pool_destroy(&b, 1); /* now none */
    ck_assert_uint_eq(bench_count(&b, UF_ACTION_SEGMENT_FREE), 1);
    bench_fini(&b);
}

static void redirection_acts_on_everybody(const model_vtable *vtable)
{
    bench b;
    bench_init(&b, vtable, "");
    bench_limit(&b, 100 * BENCH_MIB);
    uint64_t other = bench_alloc_on(&b, 1000, 9); /* another stream, from before */
    bench_use(&b, other, 7);
    bench_free(&b, other);
    bench_free(&b, bench_alloc_on(&b, 30 * BENCH_MIB, 9));
    bench_pool_create(&b, 1, false, false);
    bench_pool_begin(&b, 1);
    bench_synchronize(&b);
    bench_forget(&b);
    (void)bench_alloc(&b, 1000);
    ck_assert_uint_eq(bench_count(&b, UF_ACTION_FREE_COMPLETED), 0); /* no event is looked at */
    ck_assert_int_eq(bench_refuse(&b, 80 * BENCH_MIB), UF_ERROR_OUT_OF_MEMORY);
    bench_empty_cache(&b);
    ck_assert_uint_eq(bench_count(&b, UF_ACTION_SEGMENT_FREE), 0); /* neither by F nor by hand */
    ck_assert_int_eq(bench_stat(&b, STAT_NUM_ALLOC_RETRIES), 0);
    bench_pool_end(&b, 1);
    bench_empty_cache(&b);
    ck_assert_uint_eq(bench_count(&b, UF_ACTION_FREE_COMPLETED), 1);
    ck_assert_uint_eq(bench_count(&b, UF_ACTION_SEGMENT_FREE), 2);
    bench_fini(&b);
}

static void fallback_serves_without_a_flush(const model_vtable *vtable)
{
    bench b;
    bench_init(&b, vtable, "");
    bench_limit(&b, 100 * BENCH_MIB);
    bench_pool_create(&b, 1, true, false);
    uint64_t addr = alloc_in_pool(&b, 1, 60 * BENCH_MIB);
    bench_free(&b, addr);
    ck_assert_uint_eq(bench_alloc(&b, 58 * BENCH_MIB), addr);
    ck_assert_int_eq(bench_stat(&b, STAT_NUM_ALLOC_RETRIES), 0);
    ck_assert_uint_eq(bench_block_bytes(&b, addr), 58 * BENCH_MIB); /* 2 MiB left: split */
    ck_assert_uint_eq(bench_segment(&b, addr).pool_id[1], 1);
    bench_fini(&b);
}

static void fallback_comes_after_the_driver(const model_vtable *vtable)
{
    bench b;
    bench_init(&b, vtable, "");
    bench_pool_create(&b, 1, true, false);
    uint64_t addr = alloc_in_pool(&b, 1, 60 * BENCH_MIB);
    bench_free(&b, addr);
    ck_assert_uint_ne(bench_alloc(&b, 58 * BENCH_MIB), addr);
    ck_assert_uint_eq(bench_count(&b, UF_ACTION_SEGMENT_ALLOC), 2);
    bench_fini(&b);
}

static void fallback_splits_as_without_expandable(const model_vtable *vtable)
{
    bench b;
    bench_init(&b, vtable, "");
    bench_pool_create(&b, 1, true, false);
    uint64_t addr = alloc_in_pool(&b, 1, 60 * BENCH_MIB);
    bench_free(&b, addr);
    bench_conf(&b, "expandable_segments:True");
    bench_limit(&b, 100 * BENCH_MIB);
    ck_assert_uint_eq(bench_alloc(&b, 60 * BENCH_MIB - 4096), addr);
    ck_assert_uint_eq(bench_block_bytes(&b, addr), 60 * BENCH_MIB);
    bench_fini(&b);
}

static void oversize_is_released_in_a_redirection(const model_vtable *vtable)
{
    bench b;
    bench_init(&b, vtable, "max_split_size_mb:64");
    bench_limit(&b, 150 * BENCH_MIB);
    bench_pool_create(&b, 1, false, false);
    bench_pool_begin(&b, 1);
    uint64_t one = bench_alloc(&b, 68 * BENCH_MIB);
    uint64_t two = bench_alloc(&b, 72 * BENCH_MIB);
    bench_free(&b, one);
    bench_free(&b, two);
    ck_assert_int_eq(bench_refuse(&b, 142 * BENCH_MIB), UF_ERROR_OUT_OF_MEMORY);
    ck_assert_uint_eq(bench_count(&b, UF_ACTION_SEGMENT_FREE), 2); /* 140 of 142 MiB */
    one = bench_alloc(&b, 68 * BENCH_MIB);
    two = bench_alloc(&b, 72 * BENCH_MIB);
    bench_free(&b, one);
    bench_free(&b, two);
    (void)bench_alloc(&b, 130 * BENCH_MIB);
    ck_assert_uint_eq(bench_count(&b, UF_ACTION_SEGMENT_FREE), 4);
    ck_assert_uint_eq(bench_last(&b, UF_ACTION_SEGMENT_FREE)->addr, one); /* the largest first */
    ck_assert_int_eq(bench_stat(&b, STAT_NUM_ALLOC_RETRIES), 0);
    bench_pool_end(&b, 1);
    bench_fini(&b);
}

static void unsplit_pool_hands_out_whole_segments(const model_vtable *vtable)
{
    bench b;
    bench_init(&b, vtable, "");
    bench_pool_create(&b, 1, false, true);
    bench_pool_begin(&b, 1);
    uint64_t small = bench_alloc(&b, 100);
    uint64_t large = bench_alloc(&b, 3 * BENCH_MIB);
    bench_pool_end(&b, 1);
    ck_assert_uint_eq(bench_block_bytes(&b, small), 2 * BENCH_MIB);
    ck_assert_uint_eq(bench_block_bytes(&b, large), 20 * BENCH_MIB);
    ck_assert_int_eq(bench_current(&b, STAT_ALLOCATED_BYTES), (int64_t)(22 * BENCH_MIB));
    bench_fini(&b);
}

static void newest_redirection_decides(const model_vtable *vtable)
{
    bench b;
    bench_init(&b, vtable, "");
    bench_pool_create(&b, 1, false, false);
    bench_pool_create(&b, 2, false, false);
    bench_pool_begin(&b, 1);
    bench_pool_begin(&b, 2);
    ck_assert_uint_eq(bench_segment(&b, bench_alloc(&b, 100)).pool_id[1], 2);
    bench_pool_end(&b, 1);
    ck_assert_uint_eq(bench_segment(&b, bench_alloc(&b, 100)).pool_id[1], 2);
    bench_pool_end(&b, 2);
    ck_assert_uint_eq(bench_segment(&b, bench_alloc(&b, 100)).pool_id[1], 0);
    bench_fini(&b);
}

const conformance_case conformance_pools[] = {
    {"pool_in_use_keeps_its_cache_through_flushes", pool_keeps_its_cache},
    {"destroying_a_pool_frees_its_whole_segments_small_first", destroying_frees_at_once},
    {"tensors_outlive_their_pool_until_the_next_flush", tensors_outlive_their_pool},
    {"beginning_a_pool_twice_is_refused", beginning_twice_is_refused},
    {"destroying_a_pool_inside_a_redirection_is_refused", destroying_in_a_redirection_is_refused},
    {"redirection_shields_the_default_pool_from_empty_cache", redirection_shields_the_default_pool},
    {"redirection_defers_frees_used_by_other_streams", redirection_defers_frees},
    {"stream_used_again_in_a_redirection_needs_no_event",
     use_again_in_a_redirection_counts_as_inside},
    {"private_pool_uses_expandable_segments", private_pool_expands},
    {"pool_with_its_own_allocator_never_expands", pool_of_its_own_allocator_does_not_expand},
    {"pool_0_1_made_by_hand_and_pool_1_0_of_a_capture_are_apart",
     hand_made_and_captured_ids_are_apart},
    {"scope_is_one_more_use_of_its_pool_until_it_ends", scope_is_one_more_use},
    {"redirection_has_effects_on_all_streams_and_pools", redirection_acts_on_everybody},
    {"pool_with_use_on_oom_serves_58_of_60_mib_without_a_flush", fallback_serves_without_a_flush},
    {"pool_with_use_on_oom_comes_after_the_driver", fallback_comes_after_the_driver},
    {"pool_with_use_on_oom_splits_as_without_expandable_segments",
     fallback_splits_as_without_expandable},
    {"oversize_block_is_released_inside_a_redirection", oversize_is_released_in_a_redirection},
    {"pool_with_no_split_hands_out_whole_segments", unsplit_pool_hands_out_whole_segments},
    {"newest_redirection_decides_the_pool", newest_redirection_decides},
    {NULL, NULL},
};
