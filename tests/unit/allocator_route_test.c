/* SPDX-License-Identifier: MIT
 *
 * Routes, captures and use counts of pools, through the public allocator. */
#include <unfrag/unfrag.h>

#include "unit/allocator_fixture.h"
#include "unit/suite.h"

static uint64_t new_pool(fixture *f)
{
    uint64_t pool = 0;
    ck_assert_int_eq(uf_pool_create(f->allocator, NULL, &pool, &f->error), UF_OK);
    return pool;
}

static uint64_t pool_of(fixture *f, uint64_t addr)
{
    uf_block_place place;
    ck_assert_int_eq(uf_block_get(f->allocator, addr, &place, &f->error), UF_OK);
    return place.pool_id;
}

static bool is_above(void *context, uint64_t stream)
{
    return stream > *(const uint64_t *)context;
}

START_TEST(a_route_takes_what_its_filter_accepts_and_the_newest_is_asked_first)
{
    fixture f;
    fixture_init(&f, NULL, 0);
    uint64_t low = 10, high = 20, first = new_pool(&f), second = new_pool(&f);
    ck_assert_int_eq(uf_route_begin(f.allocator, first, is_above, &low, &f.error), UF_OK);
    ck_assert_int_eq(uf_route_begin(f.allocator, second, is_above, &high, &f.error), UF_OK);
    uint64_t a = take(&f, MIB, 5), b = take(&f, MIB, 15), c = take(&f, MIB, 25);
    ck_assert_uint_eq(pool_of(&f, a), 0);
    ck_assert_uint_eq(pool_of(&f, b), first);
    ck_assert_uint_eq(pool_of(&f, c), second);
    refuses(&f, UF_ERROR_BUSY, uf_route_begin(f.allocator, first, is_above, &low, &f.error),
            "open already");
    refuses(&f, UF_ERROR_NOT_FOUND, uf_pool_end(f.allocator, first, &f.error), "no scope");
    ck_assert_int_eq(uf_route_end(f.allocator, second, &f.error), UF_OK);
    refuses(&f, UF_ERROR_NOT_FOUND, uf_route_end(f.allocator, second, &f.error), "no route");
    uint64_t d = take(&f, MIB, 25);
    ck_assert_uint_eq(pool_of(&f, d), first);
    ck_assert_int_eq(uf_route_end(f.allocator, first, &f.error), UF_OK);
    fixture_fini(&f);
}
END_TEST

START_TEST(a_route_keeps_its_pool_alive_after_it_ended)
{
    fixture f;
    fixture_init(&f, NULL, 0);
    uint64_t from = 0, pool = new_pool(&f);
    ck_assert_int_eq(uf_route_begin(f.allocator, pool, is_above, &from, &f.error), UF_OK);
    give(&f, take(&f, 5 * MIB, 64));
    ck_assert_int_eq(uf_pool_release(f.allocator, pool, &f.error), UF_OK);
    refuses(&f, UF_ERROR_BUSY, uf_pool_release(f.allocator, pool, &f.error), "last use");
    ck_assert_int_eq(uf_route_end(f.allocator, pool, &f.error), UF_OK);
    ck_assert_int_eq(uf_empty_cache(f.allocator, &f.error), UF_OK);
    ck_assert_uint_eq(f.sim.in_use_bytes, 20 * MIB);
    ck_assert_int_eq(uf_pool_release(f.allocator, pool, &f.error), UF_OK);
    refuses(&f, UF_ERROR_NOT_FOUND, uf_pool_retain(f.allocator, pool, &f.error), "no pool");
    ck_assert_int_eq(uf_empty_cache(f.allocator, &f.error), UF_OK);
    ck_assert_uint_eq(f.sim.in_use_bytes, 0);
    fixture_fini(&f);
}
END_TEST

START_TEST(a_capture_takes_the_requests_of_its_stream_alone)
{
    fixture f;
    fixture_init(&f, NULL, 0);
    uint64_t pool = 0;
    ck_assert_int_eq(uf_capture_begin(f.allocator, 64, &pool, &f.error), UF_OK);
    uint64_t inside = take(&f, MIB, 64), outside = take(&f, MIB, 0);
    ck_assert_uint_eq(pool_of(&f, inside), pool);
    ck_assert_uint_eq(pool_of(&f, outside), 0);
    ck_assert_int_eq(uf_capture_end(f.allocator, pool, &f.error), UF_OK);
    refuses(&f, UF_ERROR_NOT_FOUND, uf_capture_end(f.allocator, pool, &f.error), "no capture");
    give(&f, inside);
    ck_assert_int_eq(uf_pool_destroy(f.allocator, pool, &f.error), UF_OK);
    give(&f, outside);
    fixture_fini(&f);
}
END_TEST

START_TEST(a_pool_may_be_shown_under_a_name_of_the_callers)
{
    fixture f;
    fixture_init(&f, NULL, 0);
    const uf_pool_options options = {.struct_size_bytes = sizeof options, .id = {7, 0}};
    uint64_t pool = 0, again = 0;
    ck_assert_int_eq(uf_pool_create(f.allocator, &options, &pool, &f.error), UF_OK);
    refuses(&f, UF_ERROR_BUSY, uf_pool_create(f.allocator, &options, &again, &f.error), "(7, 0)");
    ck_assert_int_eq(uf_pool_change(f.allocator, pool, true, false, &f.error), UF_OK);
    ck_assert_int_eq(uf_pool_begin(f.allocator, pool, &f.error), UF_OK);
    uint64_t addr = take(&f, 100, 0);
    ck_assert_int_eq(uf_pool_end(f.allocator, pool, &f.error), UF_OK);
    uf_block_place place;
    ck_assert_int_eq(uf_block_get(f.allocator, addr, &place, &f.error), UF_OK);
    ck_assert_uint_eq(place.size_bytes, 2 * MIB); /* a whole segment: is_no_split */
    refuses(&f, UF_ERROR_FOREIGN_POINTER, uf_block_get(f.allocator, addr + 512, &place, &f.error),
            "handed out");
    give(&f, addr);
    fixture_fini(&f);
}
END_TEST

static void count_unmapped(void *context, const uf_allocator_event *event)
{
    *(uint64_t *)context += event->action == UF_ACTION_SEGMENT_UNMAP ? event->size_bytes : 0;
}

/* A captured graph may write wherever its pool ever had a page. */
START_TEST(no_address_of_a_living_pool_loses_its_page_under_the_unfrag_policy)
{
    fixture f;
    uint64_t unmapped_bytes = 0, random = 3, pool = 0, live[64];
    uint32_t count = 0;
    uf_allocator_options options = fixture_options(&f, NULL);
    options.policy = UF_POLICY_UNFRAG;
    options.on_event = count_unmapped;
    options.event_context = &unmapped_bytes;
    fixture_make(&f, &options);
    ck_assert_int_eq(uf_capture_begin(f.allocator, 0, &pool, &f.error), UF_OK);
    ck_assert_int_eq(uf_capture_end(f.allocator, pool, &f.error), UF_OK);
    for (int i = 0; i < 3000; i++) {
        uf__sim_synchronize(&f.sim);
        if (count == 64 || (count > 0 && suite_random(&random) % 2 == 0)) {
            uint32_t at = (uint32_t)(suite_random(&random) % count);
            ck_assert_int_eq(uf_free(f.allocator, live[at], &f.error), UF_OK);
            live[at] = live[--count];
            continue;
        }
        uint64_t bytes = suite_random(&random) % (i % 3 == 0 ? 200 * MIB : 3 * MIB) + 1;
        ck_assert_int_eq(uf_pool_begin(f.allocator, pool, &f.error), UF_OK);
        ck_assert_int_eq(uf_alloc(f.allocator, bytes, 0, &live[count++], &f.error), UF_OK);
        ck_assert_int_eq(uf_pool_end(f.allocator, pool, &f.error), UF_OK);
    }
    ck_assert_uint_eq(unmapped_bytes, 0);
    fixture_fini(&f);
}
END_TEST

int main(void)
{
    return suite_run("allocator_route",
                     (const TTest *const[]){
                         a_route_takes_what_its_filter_accepts_and_the_newest_is_asked_first,
                         a_route_keeps_its_pool_alive_after_it_ended,
                         a_capture_takes_the_requests_of_its_stream_alone,
                         a_pool_may_be_shown_under_a_name_of_the_callers,
                         no_address_of_a_living_pool_loses_its_page_under_the_unfrag_policy,
                         NULL,
                     });
}
