/* SPDX-License-Identifier: MIT
 *
 * Lowering max_split_size_mb while larger pieces of split segments exist: refused, and where that
 * was allowed, the release is. */
#include "alloc/hazard.h"

#include "unit/allocator_fixture.h"

/* A segment of 100 MiB: the first 40 cached, the other 60 handed out. */
static uint64_t split_40_60(fixture *f, uint64_t *live)
{
    uint64_t whole = take(f, 100 * MIB, 0);
    give(f, whole);
    uint64_t front = take(f, 40 * MIB, 0);
    *live = take(f, 60 * MIB, 0);
    ck_assert_uint_eq(front, whole);
    ck_assert_uint_eq(*live, whole + 40 * MIB);
    give(f, front);
    return front;
}

START_TEST(lowering_below_a_split_piece_is_refused_and_nothing_changes)
{
    fixture f;
    uint64_t live;
    fixture_init(&f, NULL, 120 * MIB);
    uint64_t front = split_40_60(&f, &live);
    refuses(&f, UF_ERROR_HAZARD, uf_conf_set(f.allocator, "max_split_size_mb:32", &f.error),
            "max_split_size_mb cannot become 32 now: 60.00 MiB (62914560 bytes)");
    refuses(&f, UF_ERROR_HAZARD, uf_conf_set(f.allocator, "max_split_size_mb:60", &f.error),
            "a piece of a split segment of 100.00 MiB");
    /* The old setting is in force: the cached 40 MiB are split for a smaller request. */
    ck_assert_uint_eq(take(&f, 10 * MIB, 0), front);
    ck_assert_int_eq(uf_conf_set(f.allocator, "max_split_size_mb:61", &f.error), UF_OK);
    fixture_fini(&f);
}
END_TEST

START_TEST(a_cached_piece_is_a_hazard_too)
{
    fixture f;
    uint64_t live;
    fixture_init(&f, NULL, 0);
    (void)split_40_60(&f, &live);
    give(&f, take(&f, 300 * MIB, 0)); /* whole segments are none, however large */
    ck_assert_int_eq(uf_conf_set(f.allocator, "max_split_size_mb:64", &f.error), UF_OK);
    fixture_fini(&f);
    fixture_init(&f, NULL, 0);
    uint64_t whole = take(&f, 100 * MIB, 0);
    give(&f, whole);
    (void)take(&f, 10 * MIB, 0);
    refuses(&f, UF_ERROR_HAZARD, uf_conf_set(f.allocator, "max_split_size_mb:90", &f.error),
            "90.00 MiB (94371840 bytes)");
    fixture_fini(&f);
}
END_TEST

START_TEST(raising_or_dropping_the_setting_is_never_a_hazard)
{
    fixture f;
    uint64_t live;
    fixture_init(&f, "max_split_size_mb:128", 0);
    (void)split_40_60(&f, &live);
    ck_assert_int_eq(uf_conf_set(f.allocator, "max_split_size_mb:256", &f.error), UF_OK);
    ck_assert_int_eq(uf_conf_set(f.allocator, "", &f.error), UF_OK);
    refuses(&f, UF_ERROR_HAZARD, uf_conf_set(f.allocator, "max_split_size_mb:20", &f.error), "60");
    fixture_fini(&f);
}
END_TEST

START_TEST(after_the_segment_is_free_and_gone_the_setting_may_fall)
{
    fixture f;
    uint64_t live;
    fixture_init(&f, NULL, 0);
    (void)split_40_60(&f, &live);
    give(&f, live);
    ck_assert_int_eq(uf_empty_cache(f.allocator, &f.error), UF_OK);
    ck_assert_int_eq(uf_conf_set(f.allocator, "max_split_size_mb:32", &f.error), UF_OK);
    fixture_fini(&f);
}
END_TEST

START_TEST(expandable_blocks_are_no_hazard)
{
    fixture f;
    uint64_t live;
    fixture_init(&f, "expandable_segments:True", 0);
    (void)split_40_60(&f, &live);
    ck_assert_int_eq(uf_conf_set(f.allocator, "max_split_size_mb:32", &f.error), UF_OK);
    fixture_fini(&f);
}
END_TEST

START_TEST(where_lowering_is_allowed_the_release_is_refused)
{
    fixture f;
    uint64_t live, addr = 77;
    uf_allocator_options options = fixture_options(&f, NULL);
    options.limit_bytes = 120 * MIB;
    options.can_lower_split_size = true;
    fixture_make(&f, &options);
    uint64_t front = split_40_60(&f, &live);
    ck_assert_int_eq(uf_conf_set(f.allocator, "max_split_size_mb:32", &f.error), UF_OK);
    refuses(&f, UF_ERROR_HAZARD, uf_alloc(f.allocator, 50 * MIB, 0, &addr, &f.error),
            "max_split_size_mb was lowered to 32.00 MiB");
    ck_assert_uint_eq(addr, 77);
    ck_assert_int_eq(reserved_of(&f), 100 * (int64_t)MIB); /* nothing was released */
    ck_assert_int_eq(uf_conf_set(f.allocator, "", &f.error), UF_OK);
    ck_assert_uint_eq(take(&f, 40 * MIB, 0), front);
    give(&f, live);
    fixture_fini(&f);
}
END_TEST

/* No piece is too large when the setting falls; two merge into such a one later. */
START_TEST(pieces_that_merge_later_are_caught_at_the_release)
{
    fixture f;
    uint64_t addr;
    fixture_init(&f, NULL, 120 * MIB);
    give(&f, take(&f, 100 * MIB, 0));
    (void)take(&f, 30 * MIB, 0);
    uint64_t second = take(&f, 30 * MIB, 0);
    ck_assert_int_eq(uf_conf_set(f.allocator, "max_split_size_mb:64", &f.error), UF_OK);
    give(&f, second); /* 70 MiB are cached at the segment's end now */
    refuses(&f, UF_ERROR_HAZARD, uf_alloc(f.allocator, 95 * MIB, 0, &addr, &f.error), "64.00 MiB");
    ck_assert_int_eq(reserved_of(&f), 100 * (int64_t)MIB);
    fixture_fini(&f);
}
END_TEST

int main(void)
{
    TCase *hazard = tcase_create("hazard");
    tcase_add_test(hazard, lowering_below_a_split_piece_is_refused_and_nothing_changes);
    tcase_add_test(hazard, a_cached_piece_is_a_hazard_too);
    tcase_add_test(hazard, raising_or_dropping_the_setting_is_never_a_hazard);
    tcase_add_test(hazard, after_the_segment_is_free_and_gone_the_setting_may_fall);
    tcase_add_test(hazard, expandable_blocks_are_no_hazard);
    tcase_add_test(hazard, where_lowering_is_allowed_the_release_is_refused);
    tcase_add_test(hazard, pieces_that_merge_later_are_caught_at_the_release);
    Suite *suite = suite_create("hazard");
    suite_add_tcase(suite, hazard);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
