/* SPDX-License-Identifier: MIT
 *
 * The largest request that the cache serves, against the allocator's own search. */
#include "alloc/largest.h"

#include <stdio.h>

#include "alloc/allocator.h"
#include "unit/allocator_fixture.h"

typedef struct probe {
    uint64_t largest_bytes;
    bool is_served;      /* a request of that size is */
    uint64_t more_bytes; /* a larger one that is served too; 0 = none found */
} probe;

static bool is_served(const uf_core *core, uint64_t bytes)
{
    for (uint32_t pool = 0; pool < core->pool_count; pool++) {
        for (uint32_t stream = 0; stream < core->stream_count; stream++) {
            if (uf__core_peek(core, bytes, stream, pool) != UF_NO_BLOCK) {
                return true;
            }
        }
    }
    return false;
}

static uf_status look(void *context, const uf_allocator_view *view)
{
    probe *p = context;
    p->largest_bytes = uf__largest_request_bytes(view->core);
    p->is_served = p->largest_bytes == 0 || is_served(view->core, p->largest_bytes);
    for (uint64_t bytes = p->largest_bytes + 1; bytes < 130 * MIB; bytes += 40961) {
        if (is_served(view->core, bytes)) {
            p->more_bytes = bytes;
            return UF_OK;
        }
    }
    for (uint64_t i = 1; i <= 1024 && p->more_bytes == 0; i++) {
        p->more_bytes = is_served(view->core, p->largest_bytes + i) ? p->largest_bytes + i : 0;
    }
    return UF_OK;
}

static uint64_t largest_of(fixture *f)
{
    probe p = {0};
    ck_assert_int_eq(uf__allocator_look(f->allocator, look, &p, &f->error), UF_OK);
    ck_assert_msg(p.is_served, "%llu bytes are not served", (unsigned long long)p.largest_bytes);
    ck_assert_msg(p.more_bytes == 0, "%llu bytes are served, not only %llu",
                  (unsigned long long)p.more_bytes, (unsigned long long)p.largest_bytes);
    uf_fragmentation result;
    ck_assert_int_eq(uf_fragmentation_get(f->allocator, 0, &result, &f->error), UF_OK);
    ck_assert_uint_eq(result.largest_request_bytes, p.largest_bytes);
    return p.largest_bytes;
}

START_TEST(an_empty_cache_serves_nothing)
{
    fixture f;
    fixture_init(&f, NULL, 0);
    ck_assert_uint_eq(largest_of(&f), 0);
    (void)take(&f, 10 * MIB, 0);
    ck_assert_uint_eq(largest_of(&f), 0);
    fixture_fini(&f);
}
END_TEST

START_TEST(a_small_segment_serves_up_to_one_mib)
{
    fixture f;
    fixture_init(&f, NULL, 0);
    (void)take(&f, 512, 0);
    ck_assert_uint_eq(largest_of(&f), MIB);
    (void)take(&f, MIB - 1024, 0);
    ck_assert_uint_eq(largest_of(&f), MIB);
    (void)take(&f, MIB / 2, 0);
    ck_assert_uint_eq(largest_of(&f), MIB / 2 + 512);
    fixture_fini(&f);
}
END_TEST

START_TEST(the_largest_of_all_streams_and_pools_counts)
{
    fixture f;
    fixture_init(&f, NULL, 0);
    give(&f, take(&f, 30 * MIB, 0));
    give(&f, take(&f, 50 * MIB, 9));
    ck_assert_uint_eq(largest_of(&f), 50 * MIB);
    uint64_t pool;
    ck_assert_int_eq(uf_pool_create(f.allocator, NULL, &pool, &f.error), UF_OK);
    ck_assert_int_eq(uf_pool_begin(f.allocator, pool, &f.error), UF_OK);
    give(&f, take(&f, 70 * MIB, 9));
    ck_assert_int_eq(uf_pool_end(f.allocator, pool, &f.error), UF_OK);
    ck_assert_uint_eq(largest_of(&f), 70 * MIB);
    fixture_fini(&f);
}
END_TEST

START_TEST(divisions_lower_the_largest_request)
{
    fixture f;
    fixture_init(&f, NULL, 0);
    give(&f, take(&f, 30 * MIB, 0));
    ck_assert_int_eq(uf_conf_set(f.allocator, "roundup_power2_divisions:4", &f.error), UF_OK);
    ck_assert_uint_eq(largest_of(&f), 28 * MIB);
    fixture_fini(&f);
}
END_TEST

START_TEST(blocks_that_the_search_refuses_do_not_count)
{
    fixture f;
    fixture_init(&f, "expandable_segments:True", 0);
    give(&f, take(&f, 100 * MIB, 0));
    ck_assert_uint_eq(largest_of(&f), 100 * MIB);
    ck_assert_int_eq(uf_conf_set(f.allocator, "expandable_segments:False", &f.error), UF_OK);
    ck_assert_uint_eq(largest_of(&f), 0); /* expandable blocks are skipped now */
    give(&f, take(&f, 24 * MIB, 0));
    ck_assert_uint_eq(largest_of(&f), 24 * MIB);
    fixture_fini(&f);
}
END_TEST

START_TEST(what_is_left_of_a_large_page_below_a_mib_serves_nothing)
{
    fixture f;
    fixture_init(&f, "expandable_segments:True", 0);
    (void)take(&f, 19 * MIB + MIB / 2, 0);
    ck_assert_int_eq(reserved_of(&f), 20 * (int64_t)MIB);
    ck_assert_uint_eq(largest_of(&f), 0);
    fixture_fini(&f);
}
END_TEST

START_TEST(the_answer_is_the_searchs_own_in_random_states)
{
    static const char MIXED[] = "expandable_segments:True,max_split_size_mb:20,"
                                "roundup_power2_divisions:[1:2,>:4]";
    static const char *const CONFS[] = {"", "roundup_power2_divisions:8", "max_split_size_mb:32",
                                        "expandable_segments:True", MIXED};
    for (size_t c = 0; c < sizeof CONFS / sizeof CONFS[0]; c++) {
        uint64_t state = 88172645463325252u + c, live[40] = {0};
        fixture f;
        fixture_init(&f, CONFS[c], 0);
        for (int i = 0; i < 400; i++) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            size_t at = state % 40;
            if (live[at] != 0) {
                give(&f, live[at]);
                live[at] = 0;
            } else {
                uint64_t shift = 9 + (state >> 8) % 18;
                live[at] = take(&f, 1 + (state >> 20) % (UINT64_C(1) << shift), (state >> 16) % 2);
            }
            if (i % 8 == 0) {
                (void)largest_of(&f);
            }
        }
        fixture_fini(&f);
    }
}
END_TEST

int main(void)
{
    TCase *largest = tcase_create("largest");
    tcase_set_timeout(largest, 60);
    tcase_add_test(largest, an_empty_cache_serves_nothing);
    tcase_add_test(largest, a_small_segment_serves_up_to_one_mib);
    tcase_add_test(largest, the_largest_of_all_streams_and_pools_counts);
    tcase_add_test(largest, divisions_lower_the_largest_request);
    tcase_add_test(largest, blocks_that_the_search_refuses_do_not_count);
    tcase_add_test(largest, what_is_left_of_a_large_page_below_a_mib_serves_nothing);
    tcase_add_test(largest, the_answer_is_the_searchs_own_in_random_states);
    Suite *suite = suite_create("largest");
    suite_add_tcase(suite, largest);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
