/* SPDX-License-Identifier: MIT
 *
 * The unfrag policy through the public allocator: what it promises, to the page. */
#include <unfrag/host.h>

#include "unit/suite.h"
#include "unit/allocator_fixture.h"

static void paged_init(fixture *f, uint64_t limit_bytes)
{
    uf_allocator_options options = fixture_options(f, NULL);
    options.policy = UF_POLICY_UNFRAG;
    options.limit_bytes = limit_bytes;
    fixture_make(f, &options);
}

/* 16 blocks of 64 MiB fill the limit; every other one is given back. */
static void make_holes(fixture *f, uint64_t addrs[16])
{
    for (int i = 0; i < 16; i++) {
        addrs[i] = take(f, 64 * MIB, 0);
    }
    for (int i = 0; i < 16; i += 2) {
        give(f, addrs[i]);
    }
}

START_TEST(holes_that_are_apart_serve_one_request)
{
    fixture f;
    uint64_t addrs[16];
    paged_init(&f, 1 * GIB);
    make_holes(&f, addrs);
    uint64_t addr = take(&f, 512 * MIB, 0);
    ck_assert_int_eq(reserved_of(&f), (int64_t)GIB);
    ck_assert_uint_eq(f.sim.in_use_bytes, GIB);
    give(&f, addr);
    fixture_fini(&f);
}
END_TEST

START_TEST(a_request_fails_exactly_where_its_pages_pass_the_limit)
{
    fixture f;
    uint64_t addrs[16], addr = 77;
    paged_init(&f, 1 * GIB);
    make_holes(&f, addrs);
    refuses(&f, UF_ERROR_OUT_OF_MEMORY, uf_alloc(f.allocator, 512 * MIB + 1, 0, &addr, &f.error),
            "needs pages of up to 514.00 MiB; limit 1.00 GiB, held ");
    ck_assert_ptr_nonnull(strstr(f.error.text, "under active blocks 512.00 MiB"));
    ck_assert_uint_eq(addr, 77);
    give(&f, take(&f, 512 * MIB, 0));
    fixture_fini(&f);
}
END_TEST

START_TEST(the_same_holes_fail_under_the_torch_policy)
{
    fixture f;
    uint64_t addrs[16], addr;
    fixture_init(&f, "expandable_segments:True", 1 * GIB);
    make_holes(&f, addrs);
    refuses(&f, UF_ERROR_OUT_OF_MEMORY, uf_alloc(f.allocator, 512 * MIB, 0, &addr, &f.error),
            "512.00 MiB");
    fixture_fini(&f);
}
END_TEST

START_TEST(pages_of_a_private_pool_stay_until_it_dies)
{
    fixture f;
    uint64_t pool, addr;
    paged_init(&f, 256 * MIB);
    ck_assert_int_eq(uf_pool_create(f.allocator, NULL, &pool, &f.error), UF_OK);
    ck_assert_int_eq(uf_pool_begin(f.allocator, pool, &f.error), UF_OK);
    uint64_t inside = take(&f, 128 * MIB, 0);
    ck_assert_int_eq(uf_pool_end(f.allocator, pool, &f.error), UF_OK);
    give(&f, inside);
    refuses(&f, UF_ERROR_OUT_OF_MEMORY, uf_alloc(f.allocator, 192 * MIB, 0, &addr, &f.error),
            "frozen in private pools 128.00 MiB");
    ck_assert_int_eq(uf_pool_destroy(f.allocator, pool, &f.error), UF_OK);
    give(&f, take(&f, 192 * MIB, 0));
    fixture_fini(&f);
}
END_TEST

START_TEST(empty_cache_gives_everything_back)
{
    fixture f;
    uint64_t addrs[16];
    paged_init(&f, 0);
    make_holes(&f, addrs);
    ck_assert_int_eq(uf_empty_cache(f.allocator, &f.error), UF_OK);
    fixture_check(&f);
    ck_assert_int_eq(reserved_of(&f), 512 * (int64_t)MIB);
    for (int i = 1; i < 16; i += 2) {
        give(&f, addrs[i]);
    }
    ck_assert_int_eq(uf_empty_cache(f.allocator, &f.error), UF_OK);
    ck_assert_int_eq(reserved_of(&f), 0);
    ck_assert_uint_eq(f.sim.in_use_bytes, 0);
    fixture_fini(&f);
}
END_TEST

START_TEST(a_device_that_cannot_map_handles_is_refused)
{
    fixture f;
    uf_allocator_options options = fixture_options(&f, NULL);
    options.policy = UF_POLICY_UNFRAG;
    f.sim.device.handle_map = NULL;
    f.allocator = NULL;
    ck_assert_int_eq(uf_allocator_create(&options, &f.allocator, &f.error), UF_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(f.error.text, "handle_map"));
    options = fixture_options(&f, NULL);
    options.policy = UF_POLICY_UNFRAG;
    options.page_bytes = 3 * MIB;
    ck_assert_int_eq(uf_allocator_create(&options, &f.allocator, &f.error),
                     UF_ERROR_INVALID_ARGUMENT);
    ck_assert_ptr_null(f.allocator);
}
END_TEST

/* A scenario in which every kind of driver call occurs. Failures of requests are its business. */
static void scenario(fixture *f)
{
    uint64_t addrs[24] = {0};
    for (int i = 0; i < 16; i++) {
        (void)!uf_alloc(f->allocator, (uint64_t)(i % 3 == 0 ? 96 : 5) * MIB + 512, (uint64_t)i % 2,
                        &addrs[i], &f->error);
        fixture_check(f);
    }
    for (int i = 0; i < 16; i += 2) {
        (void)!uf_free(f->allocator, addrs[i], &f->error);
        addrs[i] = 0;
        fixture_check(f);
    }
    for (int i = 16; i < 24; i++) {
        (void)!uf_alloc(f->allocator, (uint64_t)(i % 2 == 0 ? 150 : 33) * MIB, 0, &addrs[i],
                        &f->error);
        fixture_check(f);
    }
    (void)!uf_empty_cache(f->allocator, &f->error);
    fixture_check(f);
    for (int i = 0; i < 24; i++) {
        (void)!uf_free(f->allocator, addrs[i], &f->error);
        fixture_check(f);
    }
}

START_TEST(each_driver_call_may_fail_once_and_nothing_is_lost)
{
    uint64_t call = 1;
    bool has_failed = true;
    for (; has_failed; call++) {
        fixture f;
        paged_init(&f, 700 * MIB);
        f.sim.fail_after_count = call;
        scenario(&f);
        has_failed = f.sim.fail_after_count == 0;
        f.sim.fail_after_count = 0;
        give(&f, take(&f, 600 * MIB, 0)); /* as usable as ever */
        ck_assert_int_eq(uf_empty_cache(f.allocator, &f.error), UF_OK);
        ck_assert_int_eq(reserved_of(&f), 0);
        fixture_fini(&f);
    }
    ck_assert_uint_gt(call, 100);
}
END_TEST

/* Bytes are where they should be on memory that is real. */
START_TEST(bytes_stay_while_pages_move)
{
    fixture f;
    uf_host *host;
    uf_host_options made = {.struct_size_bytes = sizeof made, .total_bytes = 64 * MIB};
    ck_assert_int_eq(uf_host_create(&made, &host, &f.error), UF_OK);
    uf_allocator_options options = {.struct_size_bytes = sizeof options,
                                    .device = uf_host_device(host),
                                    .policy = UF_POLICY_UNFRAG,
                                    .limit_bytes = 32 * MIB};
    fixture_make(&f, &options);
    uint64_t addrs[16];
    for (int i = 0; i < 16; i++) {
        addrs[i] = take(&f, 2 * MIB, 0);
        memset((void *)(uintptr_t)addrs[i], i, 2 * MIB);
    }
    for (int i = 0; i < 16; i += 2) {
        give(&f, addrs[i]);
    }
    uint64_t large = take(&f, 16 * MIB, 0);
    memset((void *)(uintptr_t)large, 99, 16 * MIB);
    for (int i = 1; i < 16; i += 2) {
        const unsigned char *bytes = (const unsigned char *)(uintptr_t)addrs[i];
        ck_assert_int_eq(bytes[0], i);
        ck_assert_int_eq(bytes[2 * MIB - 1], i);
        give(&f, addrs[i]);
    }
    give(&f, large);
    fixture_check(&f);
    uf_allocator_destroy(f.allocator);
    uf_host_destroy(host);
}
END_TEST

static void write_late(void *context, uint64_t addr, uint64_t size_bytes)
{
    (void)context;
    memset((void *)(uintptr_t)addr, 7, size_bytes);
}

/* Memory of stream 1 that a kernel on stream 2 uses, which nobody was told of; it was queued before
 * the free. Stream 3 needs the pages. Returns how many rules of the device were broken. */
static uint64_t use_untold(bool is_every_stream_watched, uint64_t wanted_bytes)
{
    fixture f;
    uf_host *host;
    uf_host_options made = {.struct_size_bytes = sizeof made, .total_bytes = 64 * MIB};
    ck_assert_int_eq(uf_host_create(&made, &host, &f.error), UF_OK);
    uf_allocator_options options = {.struct_size_bytes = sizeof options,
                                    .device = uf_host_device(host),
                                    .policy = UF_POLICY_UNFRAG,
                                    .limit_bytes = 32 * MIB,
                                    .is_every_stream_watched = is_every_stream_watched};
    fixture_make(&f, &options);
    uint64_t mine = take(&f, 16 * MIB, 1), other = take(&f, 2 * MIB, 2);
    ck_assert_int_eq(uf_host_launch(host, 2, write_late, NULL, mine, 16 * MIB), UF_OK);
    give(&f, mine);
    uint64_t taken = 0;
    if (uf_alloc(f.allocator, wanted_bytes, 3, &taken, &f.error) == UF_OK) {
        memset((void *)(uintptr_t)taken, 1, wanted_bytes);
    }
    uf_host_synchronize(host);
    for (uint64_t i = 0; taken != 0 && i < wanted_bytes; i += MIB) {
        ck_assert_int_eq(((const unsigned char *)(uintptr_t)taken)[i], 1);
    }
    ck_assert(taken != 0 || !is_every_stream_watched);
    give(&f, taken);
    give(&f, other);
    fixture_check(&f);
    uf_allocator_destroy(f.allocator);
    uint64_t fault_count = uf_host_faults(host, NULL);
    uf_host_destroy(host);
    return fault_count;
}

START_TEST(work_on_streams_that_were_not_named_is_waited_for_where_all_are_watched)
{
    ck_assert_uint_eq(use_untold(true, 24 * MIB), 0);  /* some pages have to move */
    ck_assert_uint_eq(use_untold(true, 30 * MIB), 0);  /* all of them */
    ck_assert_uint_gt(use_untold(false, 24 * MIB), 0); /* or this would show nothing */
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        holes_that_are_apart_serve_one_request,
        a_request_fails_exactly_where_its_pages_pass_the_limit,
        the_same_holes_fail_under_the_torch_policy,
        pages_of_a_private_pool_stay_until_it_dies,
        empty_cache_gives_everything_back,
        a_device_that_cannot_map_handles_is_refused,
        each_driver_call_may_fail_once_and_nothing_is_lost,
        bytes_stay_while_pages_move,
        work_on_streams_that_were_not_named_is_waited_for_where_all_are_watched,
        NULL,
    };
    return suite_run("paged", tests);
}
