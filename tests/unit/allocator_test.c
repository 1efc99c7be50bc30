/* SPDX-License-Identifier: MIT
 *
 * The public allocator: creation, requests and their failures, streams, limits, settings. */
#include <unfrag/unfrag.h>

#include "unit/allocator_fixture.h"

START_TEST(memory_is_handed_out_and_taken_back)
{
    fixture f;
    fixture_init(&f, NULL, 0);
    uint64_t a = take(&f, 100, 0), b = take(&f, 3 * MIB, 0);
    ck_assert_uint_ne(a, b);
    ck_assert_uint_eq(a % 512, 0);
    uf_stats stats = stats_of(&f);
    ck_assert_int_eq(stats.requested_bytes.all.current, 100 + 3 * (int64_t)MIB);
    ck_assert_int_eq(stats.allocated_bytes.all.current, 512 + 3 * (int64_t)MIB);
    ck_assert_int_eq(stats.reserved_bytes.all.current, 22 * (int64_t)MIB);
    ck_assert_uint_eq(f.sim.in_use_bytes, 22 * MIB);
    give(&f, a);
    ck_assert_uint_eq(take(&f, 512, 0), a);
    give(&f, a);
    give(&f, b);
    ck_assert_int_eq(stats_of(&f).allocated_bytes.all.current, 0);
    ck_assert_int_eq(uf_empty_cache(f.allocator, &f.error), UF_OK);
    ck_assert_int_eq(reserved_of(&f), 0);
    fixture_fini(&f);
}
END_TEST

START_TEST(zero_bytes_give_address_zero_and_count_nothing)
{
    fixture f;
    fixture_init(&f, NULL, 0);
    uf_stats zero = stats_of(&f), after;
    uint64_t addr = 77;
    ck_assert_int_eq(uf_alloc(f.allocator, 0, 5, &addr, &f.error), UF_OK);
    ck_assert_uint_eq(addr, 0);
    ck_assert_int_eq(uf_use_on_stream(f.allocator, 0, 9, &f.error), UF_OK);
    give(&f, 0);
    give(&f, 0);
    after = stats_of(&f);
    ck_assert(memcmp(&zero, &after, sizeof zero) == 0);
    ck_assert_uint_eq(f.sim.call_count, 0);
    fixture_fini(&f);
}
END_TEST

START_TEST(a_request_of_2_to_the_60_is_too_large_and_counts_nothing)
{
    fixture f;
    fixture_init(&f, NULL, 0);
    uf_stats zero = stats_of(&f), after;
    uint64_t addr = 77;
    refuses(&f, UF_ERROR_REQUEST_TOO_LARGE,
            uf_alloc(f.allocator, UINT64_C(1) << 60, 0, &addr, &f.error), "1152921504606846976");
    refuses(&f, UF_ERROR_REQUEST_TOO_LARGE, uf_alloc(f.allocator, UINT64_MAX, 0, &addr, &f.error),
            "18446744073709551615");
    after = stats_of(&f);
    ck_assert(memcmp(&zero, &after, sizeof zero) == 0);
    refuses(&f, UF_ERROR_OUT_OF_MEMORY,
            uf_alloc(f.allocator, (UINT64_C(1) << 60) - 1, 0, &addr, &f.error), "out of memory");
    ck_assert_int_eq(stats_of(&f).num_ooms, 1);
    ck_assert_uint_eq(addr, 77);
    fixture_fini(&f);
}
END_TEST

START_TEST(foreign_and_repeated_addresses_are_refused)
{
    fixture f;
    fixture_init(&f, NULL, 0);
    uint64_t a = take(&f, 1024, 0), b = take(&f, 1024, 0);
    refuses(&f, UF_ERROR_FOREIGN_POINTER, uf_free(f.allocator, a + 512, &f.error),
            "2 addresses are handed out");
    refuses(&f, UF_ERROR_FOREIGN_POINTER, uf_free(f.allocator, 0xdead, &f.error), "0xdead");
    refuses(&f, UF_ERROR_FOREIGN_POINTER, uf_use_on_stream(f.allocator, 0xdead, 1, &f.error),
            "0xdead");
    give(&f, a);
    refuses(&f, UF_ERROR_FOREIGN_POINTER, uf_free(f.allocator, a, &f.error),
            "1 addresses are handed out");
    refuses(&f, UF_ERROR_FOREIGN_POINTER, uf_use_on_stream(f.allocator, a, 1, &f.error),
            "given back before");
    give(&f, b);
    fixture_fini(&f);
}
END_TEST

START_TEST(out_of_memory_names_the_numbers)
{
    fixture f;
    fixture_init(&f, NULL, 100 * MIB);
    uint64_t a = take(&f, 60 * MIB, 0), b = take(&f, 20 * MIB, 0), addr = 77;
    give(&f, b);
    ck_assert_uint_eq(take(&f, 8 * MIB, 0), b); /* splits: 8 allocated, 12 cached */
    refuses(&f, UF_ERROR_OUT_OF_MEMORY, uf_alloc(f.allocator, 50 * MIB + 1, 0, &addr, &f.error),
            "requested 52428801 bytes (50.00 MiB) on stream 0x0, which needs a segment of 52.00 "
            "MiB; limit 100.00 MiB, reserved 80.00 MiB, allocated 68.00 MiB, waiting for streams "
            "0 B, cached 12.00 MiB (largest free block for this stream and pool 12.00 MiB), free "
            "on the device 23.92 GiB; free something, or raise the limit");
    ck_assert_uint_eq(addr, 77);
    uf_stats stats = stats_of(&f);
    ck_assert_int_eq(stats.num_ooms, 1);
    ck_assert_int_eq(stats.num_alloc_retries, 1);
    /* On a full card there is no limit to raise. */
    ck_assert_int_eq(uf_limit_set(f.allocator, 0, &f.error), UF_OK);
    refuses(&f, UF_ERROR_OUT_OF_MEMORY, uf_alloc(f.allocator, 24 * GIB, 0, &addr, &f.error),
            "limit none");
    give(&f, a);
    give(&f, b);
    fixture_fini(&f);
}
END_TEST

START_TEST(free_on_other_stream_waits_for_its_event)
{
    fixture f;
    fixture_init(&f, NULL, 0);
    uint64_t a = take(&f, 4 * MIB, 1);
    ck_assert_int_eq(uf_use_on_stream(f.allocator, a, 2, &f.error), UF_OK);
    ck_assert_int_eq(uf_use_on_stream(f.allocator, a, 2, &f.error), UF_OK);
    ck_assert_int_eq(uf_use_on_stream(f.allocator, a, 1, &f.error), UF_OK);
    give(&f, a);
    ck_assert_uint_eq(f.sim.event_count, 1);
    uf_stats stats = stats_of(&f);
    ck_assert_int_eq(stats.allocated_bytes.all.current, 0);
    ck_assert_int_eq(stats.active_bytes.all.current, 4 * (int64_t)MIB);
    uint64_t b = take(&f, 4 * MIB, 1);
    ck_assert_uint_ne(a, b);
    uf__sim_synchronize(&f.sim);
    ck_assert_int_eq(stats_of(&f).active_bytes.all.current, 8 * (int64_t)MIB);
    /* Processed before the next request is served, which therefore gets the block. */
    ck_assert_uint_eq(take(&f, 4 * MIB, 1), a);
    fixture_fini(&f);
}
END_TEST

START_TEST(emptying_the_cache_waits_for_other_streams)
{
    fixture f;
    fixture_init(&f, NULL, 0);
    uint64_t a = take(&f, 40 * MIB, 0);
    ck_assert_int_eq(uf_use_on_stream(f.allocator, a, 7, &f.error), UF_OK);
    give(&f, a);
    ck_assert_int_eq(uf_empty_cache(f.allocator, &f.error), UF_OK);
    fixture_check(&f);
    ck_assert_int_eq(reserved_of(&f), 0);
    ck_assert_int_eq(stats_of(&f).num_sync_all_streams, 1);
    fixture_fini(&f);
}
END_TEST

START_TEST(destroying_gives_back_what_is_still_handed_out)
{
    fixture f;
    fixture_init(&f, "expandable_segments:True", 0);
    uint64_t a = take(&f, 40 * MIB, 0);
    (void)take(&f, 100, 3);
    ck_assert_int_eq(uf_use_on_stream(f.allocator, a, 7, &f.error), UF_OK);
    uint64_t pool;
    ck_assert_int_eq(uf_pool_create(f.allocator, NULL, &pool, &f.error), UF_OK);
    ck_assert_int_eq(uf_pool_begin(f.allocator, pool, &f.error), UF_OK);
    (void)take(&f, 30 * MIB, 0);
    give(&f, a); /* deferred: a scope is open */
    fixture_fini(&f);
    uf_allocator_destroy(NULL);
}
END_TEST

START_TEST(a_limit_is_tested_with_the_segment_size)
{
    fixture f;
    fixture_init(&f, NULL, 22 * MIB);
    uint64_t a = take(&f, 2 * MIB, 0), addr = 77;
    refuses(&f, UF_ERROR_OUT_OF_MEMORY, uf_alloc(f.allocator, 11 * MIB, 1, &addr, &f.error),
            "limit 22.00 MiB");
    ck_assert_int_eq(uf_limit_set(f.allocator, 32 * MIB, &f.error), UF_OK);
    uint64_t b = take(&f, 11 * MIB, 1);
    ck_assert_int_eq(uf_limit_set(f.allocator, 1, &f.error), UF_OK); /* releases nothing */
    ck_assert_int_eq(reserved_of(&f), 32 * (int64_t)MIB);
    give(&f, a);
    give(&f, b);
    fixture_fini(&f);
}
END_TEST

START_TEST(a_fraction_is_a_share_of_the_total)
{
    fixture f;
    uf_allocator_options options = fixture_options(&f, "per_process_memory_fraction:0.5");
    fixture_make(&f, &options);
    uint64_t addr = 0;
    refuses(&f, UF_ERROR_OUT_OF_MEMORY, uf_alloc(f.allocator, 12 * GIB + MIB, 0, &addr, &f.error),
            "limit 12.00 GiB");
    ck_assert_int_eq(uf_fraction_set(f.allocator, 0.25, &f.error), UF_OK);
    refuses(&f, UF_ERROR_OUT_OF_MEMORY, uf_alloc(f.allocator, 7 * GIB, 0, &addr, &f.error),
            "limit 6.00 GiB");
    ck_assert_int_eq(uf_fraction_set(f.allocator, 0.0, &f.error), UF_OK);
    refuses(&f, UF_ERROR_OUT_OF_MEMORY, uf_alloc(f.allocator, 1, 0, &addr, &f.error), "limit 0 B");
    static const double BAD[] = {-0.1, 1.5, 0.0 / 0.0};
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        refuses(&f, UF_ERROR_INVALID_ARGUMENT, uf_fraction_set(f.allocator, BAD[i], &f.error),
                "from 0 to 1");
    }
    ck_assert_int_eq(uf_fraction_set(f.allocator, 1.0, &f.error), UF_OK);
    give(&f, take(&f, 20 * GIB, 0));
    fixture_fini(&f);
    options = fixture_options(&f, "per_process_memory_fraction:0.5");
    options.fraction = 0.125; /* wins over the string's */
    fixture_make(&f, &options);
    refuses(&f, UF_ERROR_OUT_OF_MEMORY, uf_alloc(f.allocator, 4 * GIB, 0, &addr, &f.error),
            "limit 3.00 GiB");
    fixture_fini(&f);
}
END_TEST

START_TEST(options_that_cannot_be_are_refused)
{
    fixture f;
    uf_allocator *made = NULL;
    uf_allocator_options good = fixture_options(&f, NULL), bad;
    ck_assert_int_eq(uf_allocator_create(NULL, &made, &f.error), UF_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(uf_allocator_create(&good, NULL, &f.error), UF_ERROR_INVALID_ARGUMENT);
    static const struct {
        uf_status status;
        int policy;
        double fraction;
        uint64_t limit_bytes;
        const char *conf, *part;
        int32_t device_index;
    } CASES[] = {
        {UF_ERROR_UNSUPPORTED, 9, 0, 0, NULL, "no policy 9", 0},
        {UF_ERROR_INVALID_ARGUMENT, 0, 1.01, 0, NULL, "1.01", 0},
        {UF_ERROR_INVALID_ARGUMENT, 0, -1, 0, NULL, "-1", 0},
        {UF_ERROR_INVALID_ARGUMENT, 0, 0.5, 5, NULL, "give one", 0},
        {UF_ERROR_INVALID_ARGUMENT, 0, 0, 0, NULL, "device_index", -1},
        {UF_ERROR_INVALID_ARGUMENT, 0, 0, 0, NULL, "1024", 1024},
        {UF_ERROR_CONF, 0, 0, 0, "max_split_size_mb:10", "max_split_size_mb", 0},
        {UF_ERROR_CONF, 0, 0, 0, "max_split_size:128", "max_split_size_mb", 0},
        {UF_ERROR_UNSUPPORTED, 0, 0, 0, "backend:cudaMallocAsync", "cudaMallocAsync", 0},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        bad = good;
        bad.policy = (uf_policy)CASES[i].policy;
        bad.fraction = CASES[i].fraction;
        bad.limit_bytes = CASES[i].limit_bytes;
        bad.conf = CASES[i].conf;
        bad.device_index = CASES[i].device_index;
        ck_assert_int_eq(uf_allocator_create(&bad, &made, &f.error), CASES[i].status);
        ck_assert_msg(strstr(f.error.text, CASES[i].part) != NULL, "%s", f.error.text);
        ck_assert_ptr_null(made);
    }
}
END_TEST

START_TEST(structs_of_callers_may_be_older_but_not_unknown)
{
    fixture f;
    uf_allocator *made = NULL;
    uf_allocator_options options = fixture_options(&f, NULL);
    options.on_event = NULL;
    options.struct_size_bytes = offsetof(uf_allocator_options, can_lower_split_size);
    fixture_make(&f, &options);
    fixture_fini(&f);
    options.struct_size_bytes = 0;
    ck_assert_int_eq(uf_allocator_create(&options, &made, &f.error), UF_ERROR_INVALID_ARGUMENT);
    struct {
        uf_allocator_options known;
        uint64_t news;
    } newer = {fixture_options(&f, NULL), 0};
    newer.known.struct_size_bytes = sizeof newer;
    fixture_make(&f, &newer.known);
    fixture_fini(&f);
    newer.news = 1;
    ck_assert_int_eq(uf_allocator_create(&newer.known, &made, &f.error), UF_ERROR_INVALID_ARGUMENT);
}
END_TEST

START_TEST(a_device_without_what_it_needs_is_refused)
{
    fixture f;
    uf_allocator *made = NULL;
    uf_allocator_options options = fixture_options(&f, NULL);
    uf_device device = f.sim.device;
    options.device = &device;
    device.event_query = NULL;
    ck_assert_int_eq(uf_allocator_create(&options, &made, &f.error), UF_ERROR_INVALID_ARGUMENT);
    device = f.sim.device;
    device.struct_size_bytes = 8;
    ck_assert_int_eq(uf_allocator_create(&options, &made, &f.error), UF_ERROR_INVALID_ARGUMENT);
    device = f.sim.device;
    device.pages_map = NULL; /* fine as long as nothing is to be mapped */
    options.conf = "expandable_segments:True";
    ck_assert_int_eq(uf_allocator_create(&options, &made, &f.error), UF_ERROR_UNSUPPORTED);
    options.conf = "";
    fixture_make(&f, &options);
    refuses(&f, UF_ERROR_UNSUPPORTED,
            uf_conf_set(f.allocator, "expandable_segments:True", &f.error), "pages_map");
    give(&f, take(&f, 5 * MIB, 0));
    fixture_fini(&f);
}
END_TEST

START_TEST(a_failing_device_leaves_the_allocator_usable)
{
    fixture f;
    fixture_init(&f, NULL, 0);
    uint64_t addr = 77;
    f.sim.fail_after_count = 1;
    refuses(&f, UF_ERROR_DEVICE, uf_alloc(f.allocator, 5 * MIB, 0, &addr, &f.error),
            "allocating 5.00 MiB: a device call failed");
    ck_assert_uint_eq(addr, 77);
    give(&f, take(&f, 5 * MIB, 0));
    f.sim.fail_after_count = 1;
    refuses(&f, UF_ERROR_DEVICE, uf_empty_cache(f.allocator, &f.error), "emptying the cache");
    ck_assert_int_eq(reserved_of(&f), 20 * (int64_t)MIB);
    ck_assert_int_eq(uf_empty_cache(f.allocator, &f.error), UF_OK);
    fixture_fini(&f);
}
END_TEST

START_TEST(settings_change_while_it_runs_all_or_nothing)
{
    fixture f;
    fixture_init(&f, NULL, 0);
    ck_assert_int_eq(uf_conf_set(f.allocator, "roundup_power2_divisions:4", &f.error), UF_OK);
    give(&f, take(&f, 2049, 0));
    uint64_t a = take(&f, 3 * MIB + 1, 0);
    ck_assert_int_eq(stats_of(&f).allocated_bytes.all.current, (int64_t)(3 * MIB + MIB / 2));
    /* The first item is good, and still nothing of the string is taken over. */
    refuses(&f, UF_ERROR_CONF,
            uf_conf_set(f.allocator, "roundup_power2_divisions:8,max_split:5", &f.error),
            "max_split");
    refuses(&f, UF_ERROR_CONF, uf_conf_set(f.allocator, "backend:cudaMallocAsync", &f.error),
            "backend");
    give(&f, a);
    a = take(&f, 2 * MIB + 1, 0);
    ck_assert_int_eq(stats_of(&f).allocated_bytes.all.current, (int64_t)(2 * MIB + MIB / 2));
    ck_assert_int_eq(uf_conf_set(f.allocator, NULL, &f.error), UF_ERROR_INVALID_ARGUMENT);
    give(&f, a);
    fixture_fini(&f);
}
END_TEST

START_TEST(null_is_refused_everywhere)
{
    fixture f;
    fixture_init(&f, NULL, 0);
    uf_stats stats;
    uf_fragmentation fragmentation;
    uint64_t number;
    char text[8];
    const uf_status statuses[] = {
        uf_alloc(NULL, 1, 0, &number, NULL),
        uf_alloc(f.allocator, 1, 0, NULL, NULL),
        uf_free(NULL, 1, NULL),
        uf_use_on_stream(NULL, 1, 1, NULL),
        uf_empty_cache(NULL, NULL),
        uf_limit_set(NULL, 1, NULL),
        uf_fraction_set(NULL, 1.0, NULL),
        uf_conf_set(NULL, "", NULL),
        uf_pool_create(NULL, NULL, &number, NULL),
        uf_pool_create(f.allocator, NULL, NULL, NULL),
        uf_pool_destroy(NULL, 1, NULL),
        uf_pool_begin(NULL, 1, NULL),
        uf_pool_end(NULL, 1, NULL),
        uf_stats_get(NULL, &stats, NULL),
        uf_stats_get(f.allocator, NULL, NULL),
        uf_stats_reset_peak(NULL, NULL),
        uf_stats_reset_accumulated(NULL, NULL),
        uf_summary(NULL, false, text, sizeof text, NULL, NULL),
        uf_summary(f.allocator, false, NULL, 8, NULL, NULL),
        uf_fragmentation_get(NULL, 0, &fragmentation, NULL),
        uf_fragmentation_get(f.allocator, 0, NULL, NULL),
        uf_check(NULL, NULL),
        uf_walk(NULL, NULL, NULL, NULL),
        uf_walk(f.allocator, NULL, NULL, NULL),
    };
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        ck_assert_msg(statuses[i] == UF_ERROR_INVALID_ARGUMENT, "call %zu: %s", i,
                      uf_status_name(statuses[i]));
    }
    fixture_fini(&f);
}
END_TEST

typedef struct witness {
    uf_allocator *allocator;
    uint64_t count;
    uf_allocator_event events[16];
    uf_status inner;
} witness;

static void see(void *context, const uf_allocator_event *event)
{
    witness *w = context;
    if (w->count < 16) {
        w->events[w->count] = *event;
    }
    w->count++;
    if (w->allocator != NULL) {
        uf_stats stats;
        w->inner = uf_stats_get(w->allocator, &stats, NULL);
    }
}

START_TEST(events_come_in_order_and_may_not_call_back)
{
    fixture f;
    witness w = {0};
    uf_allocator_options options = fixture_options(&f, NULL);
    options.on_event = see;
    options.event_context = &w;
    options.limit_bytes = 30 * MIB;
    fixture_make(&f, &options);
    w.allocator = f.allocator;
    uint64_t a = take(&f, 1000, 5), addr;
    ck_assert_int_eq(w.inner, UF_ERROR_BUSY);
    give(&f, a);
    refuses(&f, UF_ERROR_OUT_OF_MEMORY, uf_alloc(f.allocator, 31 * MIB + 1, 5, &addr, &f.error),
            "limit");
    static const uf_action EXPECTED[] = {UF_ACTION_SEGMENT_ALLOC,  UF_ACTION_ALLOC,
                                         UF_ACTION_FREE_REQUESTED, UF_ACTION_FREE_COMPLETED,
                                         UF_ACTION_SEGMENT_FREE,   UF_ACTION_OOM};
    ck_assert_uint_eq(w.count, 6);
    for (size_t i = 0; i < 6; i++) {
        ck_assert_int_eq(w.events[i].action, EXPECTED[i]);
        ck_assert_uint_eq(w.events[i].stream, 5);
        ck_assert_uint_eq(w.events[i].addr, i == 5 ? 24 * GIB : a);
    }
    ck_assert_uint_eq(w.events[0].size_bytes, 2 * MIB);
    ck_assert_uint_eq(w.events[1].size_bytes, 1000);
    ck_assert_uint_eq(w.events[5].size_bytes, 31 * MIB + 512);
    fixture_fini(&f);
}
END_TEST

int main(void)
{
    TCase *requests = tcase_create("requests");
    tcase_add_test(requests, memory_is_handed_out_and_taken_back);
    tcase_add_test(requests, zero_bytes_give_address_zero_and_count_nothing);
    tcase_add_test(requests, a_request_of_2_to_the_60_is_too_large_and_counts_nothing);
    tcase_add_test(requests, foreign_and_repeated_addresses_are_refused);
    tcase_add_test(requests, out_of_memory_names_the_numbers);
    tcase_add_test(requests, free_on_other_stream_waits_for_its_event);
    tcase_add_test(requests, emptying_the_cache_waits_for_other_streams);
    tcase_add_test(requests, destroying_gives_back_what_is_still_handed_out);
    tcase_add_test(requests, a_failing_device_leaves_the_allocator_usable);
    tcase_add_test(requests, events_come_in_order_and_may_not_call_back);
    TCase *options = tcase_create("options");
    tcase_add_test(options, a_limit_is_tested_with_the_segment_size);
    tcase_add_test(options, a_fraction_is_a_share_of_the_total);
    tcase_add_test(options, options_that_cannot_be_are_refused);
    tcase_add_test(options, structs_of_callers_may_be_older_but_not_unknown);
    tcase_add_test(options, a_device_without_what_it_needs_is_refused);
    tcase_add_test(options, settings_change_while_it_runs_all_or_nothing);
    tcase_add_test(options, null_is_refused_everywhere);
    Suite *suite = suite_create("allocator");
    suite_add_tcase(suite, requests);
    suite_add_tcase(suite, options);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
