/* SPDX-License-Identifier: MIT
 *
 * What the public allocator tells about itself: statistics and their resets, summary,
 * fragmentation, walk. */
#include <unfrag/unfrag.h>

#include "unit/allocator_fixture.h"

START_TEST(statistics_are_reset_as_pytorch_resets_them)
{
    fixture f;
    fixture_init(&f, "max_split_size_mb:64", 0);
    uint64_t a = take(&f, 30 * MIB, 0), b = take(&f, 100 * MIB, 0);
    give(&f, b);
    ck_assert_int_eq(uf_empty_cache(f.allocator, &f.error), UF_OK);
    uf_stats stats = stats_of(&f);
    ck_assert_int_eq(stats.reserved_bytes.all.peak, 130 * (int64_t)MIB);
    ck_assert_int_eq(stats.oversize_segments.peak, 1);
    ck_assert_int_eq(stats.num_device_alloc, 2);
    ck_assert_int_eq(uf_stats_reset_peak(f.allocator, &f.error), UF_OK);
    stats = stats_of(&f);
    ck_assert_int_eq(stats.reserved_bytes.all.peak, 30 * (int64_t)MIB);
    ck_assert_int_eq(stats.oversize_segments.peak, 0);
    ck_assert_int_eq(stats.reserved_bytes.all.allocated, 130 * (int64_t)MIB);
    ck_assert_int_eq(stats.num_device_alloc, 2);
    ck_assert_int_eq(uf_stats_reset_accumulated(f.allocator, &f.error), UF_OK);
    stats = stats_of(&f);
    ck_assert_int_eq(stats.reserved_bytes.all.allocated, 0);
    ck_assert_int_eq(stats.reserved_bytes.all.freed, 0);
    ck_assert_int_eq(stats.reserved_bytes.all.current, 30 * (int64_t)MIB);
    ck_assert_int_eq(stats.num_device_alloc, 0);
    ck_assert_int_eq(stats.num_device_free, 0);
    ck_assert_int_eq(stats.max_split_size, 64 * (int64_t)MIB);
    ck_assert_int_eq(uf_conf_set(f.allocator, "", &f.error), UF_OK);
    ck_assert_int_eq(stats_of(&f).max_split_size,
                     64 * (int64_t)MIB); /* as at the start, for ever */
    give(&f, a);
    fixture_fini(&f);
}
END_TEST

START_TEST(the_summary_is_pytorchs_with_the_devices_index)
{
    fixture f;
    uf_allocator_options options = fixture_options(&f, NULL);
    options.device_index = 3;
    fixture_make(&f, &options);
    (void)take(&f, 30 * MIB, 0);
    char text[UF_SUMMARY_CAPACITY];
    size_t length = 0;
    ck_assert_int_eq(uf_summary(f.allocator, true, text, sizeof text, &length, &f.error), UF_OK);
    ck_assert_uint_eq(length, strlen(text));
    ck_assert_ptr_nonnull(strstr(text, "device ID 3 "));
    ck_assert_ptr_nonnull(strstr(
        text, "| GPU reserved memory   |  30720 KiB |  30720 KiB |  30720 KiB |      0 B   |"));
    refuses(&f, UF_ERROR_INVALID_ARGUMENT,
            uf_summary(f.allocator, true, text, 10, &length, &f.error), "the buffer has 10");
    ck_assert_str_eq(text, "");
    fixture_fini(&f);
}
END_TEST

START_TEST(fragmentation_knows_the_largest_request_and_the_callers_alarm)
{
    fixture f;
    uf_fragmentation result;
    fixture_init(&f, NULL, 0);
    uint64_t blocks[8];
    for (int i = 0; i < 8; i++) {
        blocks[i] = take(&f, 5 * MIB, 0);
    }
    for (int i = 0; i < 8; i += 2) {
        give(&f, blocks[i]);
    }
    ck_assert_int_eq(uf_fragmentation_get(f.allocator, 0, &result, &f.error), UF_OK);
    ck_assert_int_eq(result.reserved_bytes, 40 * (int64_t)MIB);
    ck_assert_int_eq(result.stuck_bytes, 20 * (int64_t)MIB);
    ck_assert_uint_eq(result.largest_request_bytes, 5 * MIB);
    ck_assert_int_eq(result.fragmented_bytes, 15 * (int64_t)MIB);
    ck_assert(result.is_alarm); /* 37.5 % of reserved, 30 % by default */
    ck_assert_int_eq(uf_fragmentation_get(f.allocator, 0.4, &result, &f.error), UF_OK);
    ck_assert(!result.is_alarm);
    refuses(&f, UF_ERROR_INVALID_ARGUMENT,
            uf_fragmentation_get(f.allocator, 1.5, &result, &f.error), "1.5");
    fixture_fini(&f);
}
END_TEST

typedef struct tour {
    fixture *f;
    uint64_t stop_after, segment_count, block_count, bytes, last_addr;
    uint64_t counts[UF_BLOCK_OTHER];
} tour;

static bool visit(void *context, const uf_segment_info *segment, const uf_block_info *blocks)
{
    tour *t = context;
    uint64_t at = segment->addr, allocated = 0, active = 0, requested = 0;
    ck_assert_uint_gt(segment->addr, t->last_addr);
    for (uint32_t i = 0; i < segment->block_count; i++) {
        ck_assert_uint_eq(blocks[i].addr, at);
        at += blocks[i].size_bytes;
        t->counts[blocks[i].state]++;
        allocated += blocks[i].state == UF_BLOCK_ACTIVE_ALLOCATED ? blocks[i].size_bytes : 0;
        active += blocks[i].state != UF_BLOCK_INACTIVE ? blocks[i].size_bytes : 0;
        requested += blocks[i].state != UF_BLOCK_INACTIVE ? blocks[i].requested_bytes : 0;
    }
    ck_assert_uint_eq(at, segment->addr + segment->total_bytes);
    ck_assert_uint_eq(allocated, segment->allocated_bytes);
    ck_assert_uint_eq(active, segment->active_bytes);
    ck_assert_uint_eq(requested, segment->requested_bytes);
    t->last_addr = segment->addr;
    t->block_count += segment->block_count;
    t->bytes += segment->total_bytes;
    /* The walk is of a copy: the allocator may be used meanwhile. */
    ck_assert_int_eq(uf_check(t->f->allocator, &t->f->error), UF_OK);
    return ++t->segment_count != t->stop_after;
}

START_TEST(the_walk_shows_every_byte_once_in_order)
{
    static const char *const CONFS[] = {"", "expandable_segments:True"};
    for (size_t c = 0; c < 2; c++) {
        fixture f;
        fixture_init(&f, CONFS[c], 0);
        uint64_t a = take(&f, 1000, 0), b = take(&f, 5 * MIB, 0), d = take(&f, 45 * MIB, 1);
        (void)take(&f, 3 * MIB, 0);
        (void)take(&f, 3 * MIB, 1);
        ck_assert_int_eq(uf_use_on_stream(f.allocator, d, 0, &f.error), UF_OK);
        give(&f, b);
        give(&f, d);
        tour t = {.f = &f};
        ck_assert_int_eq(uf_walk(f.allocator, visit, &t, &f.error), UF_OK);
        ck_assert_uint_eq(t.bytes, (uint64_t)reserved_of(&f));
        ck_assert_uint_eq(t.counts[UF_BLOCK_ACTIVE_ALLOCATED], 3);
        ck_assert_uint_eq(t.counts[UF_BLOCK_ACTIVE_PENDING_FREE], 1);
        ck_assert_uint_gt(t.segment_count, 2);
        tour stopped = {.f = &f, .stop_after = 1};
        ck_assert_int_eq(uf_walk(f.allocator, visit, &stopped, &f.error), UF_OK);
        ck_assert_uint_eq(stopped.segment_count, 1);
        give(&f, a);
        fixture_fini(&f);
    }
}
END_TEST

int main(void)
{
    TCase *report = tcase_create("report");
    tcase_add_test(report, statistics_are_reset_as_pytorch_resets_them);
    tcase_add_test(report, the_summary_is_pytorchs_with_the_devices_index);
    tcase_add_test(report, fragmentation_knows_the_largest_request_and_the_callers_alarm);
    tcase_add_test(report, the_walk_shows_every_byte_once_in_order);
    Suite *suite = suite_create("allocator_report");
    suite_add_tcase(suite, report);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
