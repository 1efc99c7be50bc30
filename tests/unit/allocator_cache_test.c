/* SPDX-License-Identifier: MIT
 *
 * Memory ahead of time (uf_reserve), memory back (uf_trim, collection by age), addresses that stay
 * (uf_pin), room left to others (headroom), and where the memory is (uf_usage_get). */
#include <unfrag/host.h>
#include <unfrag/unfrag.h>

#include "unit/allocator_fixture.h"
#include "unit/suite.h"

static void make(fixture *f, uf_policy policy, uint64_t limit_bytes)
{
    uf_allocator_options options = fixture_options(f, NULL);
    options.policy = policy;
    options.limit_bytes = limit_bytes;
    fixture_make(f, &options);
}

/* The parts add up, as the picture in the header says. */
static uf_usage usage_of(fixture *f)
{
    uf_usage usage;
    ck_assert_int_eq(uf_usage_get(f->allocator, &usage, &f->error), UF_OK);
    ck_assert_uint_eq(usage.active_bytes + usage.frozen_bytes + usage.cached_bytes,
                      usage.reserved_bytes);
    ck_assert_int_eq((int64_t)usage.reserved_bytes, reserved_of(f));
    ck_assert_uint_eq(usage.device_free_bytes + usage.outside_bytes + usage.reserved_bytes,
                      f->sim.total_bytes);
    return usage;
}

static void reserve(fixture *f, uint64_t bytes, uint64_t stream)
{
    uf_status status = uf_reserve(f->allocator, bytes, stream, &f->error);
    ck_assert_msg(status == UF_OK, "%s", f->error.text);
    fixture_check(f);
}

static uint64_t trim(fixture *f, uint64_t keep_bytes)
{
    uint64_t released_bytes = 0;
    int64_t before_bytes = reserved_of(f);
    uf_status status = uf_trim(f->allocator, keep_bytes, &released_bytes, &f->error);
    ck_assert_msg(status == UF_OK, "%s", f->error.text);
    fixture_check(f);
    ck_assert_int_eq(before_bytes - reserved_of(f), (int64_t)released_bytes);
    return released_bytes;
}

START_TEST(what_was_reserved_serves_requests_without_the_driver)
{
    static const uf_policy policies[] = {UF_POLICY_UNFRAG, UF_POLICY_TORCH};
    for (int i = 0; i < 2; i++) {
        fixture f;
        make(&f, policies[i], 0);
        reserve(&f, 100 * MIB, 7);
        ck_assert_int_eq(reserved_of(&f), 100 * MIB);
        ck_assert_int_eq(stats_of(&f).allocation.all.allocated,
                         policies[i] == UF_POLICY_TORCH ? 1 : 0);
        uint64_t calls = f.sim.call_count;
        reserve(&f, 100 * MIB, 7);
        (void)take(&f, 100 * MIB, 7);
        ck_assert_uint_eq(f.sim.call_count, calls);
        (void)take(&f, 30 * MIB, 7);
        ck_assert_uint_gt(f.sim.call_count, calls);
        reserve(&f, 60 * MIB, 7);
        calls = f.sim.call_count;
        (void)take(&f, 20 * MIB, 7);
        (void)take(&f, 30 * MIB, 7);
        ck_assert_uint_eq(f.sim.call_count, calls);
        fixture_fini(&f);
    }
}
END_TEST

START_TEST(reserving_nothing_does_nothing_and_too_much_is_refused)
{
    fixture f;
    make(&f, UF_POLICY_UNFRAG, 64 * MIB);
    reserve(&f, 0, 0);
    uint64_t addr = take(&f, 30 * MIB, 0);
    refuses(&f, UF_ERROR_REQUEST_TOO_LARGE, uf_reserve(f.allocator, UINT64_C(1) << 60, 0, &f.error),
            "2^60");
    refuses(&f, UF_ERROR_OUT_OF_MEMORY, uf_reserve(f.allocator, 40 * MIB, 0, &f.error),
            "41943040 bytes (40.00 MiB) cannot be reserved on stream 0x0; limit 64.00 MiB, held "
            "30.00 MiB");
    ck_assert_int_eq(reserved_of(&f), 30 * MIB);
    ck_assert_int_eq(stats_of(&f).num_ooms, 0);
    give(&f, addr);
    fixture_fini(&f);
}
END_TEST

START_TEST(reserving_at_the_limit_moves_what_other_streams_have_cached)
{
    fixture f;
    make(&f, UF_POLICY_UNFRAG, 64 * MIB);
    uint64_t addr = take(&f, 60 * MIB, 1);
    give(&f, addr);
    uf__sim_synchronize(&f.sim);
    reserve(&f, 50 * MIB, 2);
    ck_assert_int_le(reserved_of(&f), 64 * MIB);
    uint64_t calls = f.sim.call_count;
    (void)take(&f, 50 * MIB, 2);
    ck_assert_uint_eq(f.sim.call_count, calls);
    fixture_fini(&f);
}
END_TEST

/* The pages of a kernel that is still to come are not handed to another stream. */
START_TEST(what_was_reserved_may_be_in_use_by_its_own_stream_still)
{
    fixture f;
    make(&f, UF_POLICY_UNFRAG, 64 * MIB);
    uint64_t first = take(&f, 40 * MIB, 1), second = take(&f, 2 * MIB, 1);
    give(&f, first);
    reserve(&f, 60 * MIB, 1); /* of pages that stream 1 may still be at work on */
    uint64_t waits = f.sim.sync_count;
    (void)take(&f, 60 * MIB, 2);
    ck_assert_uint_gt(f.sim.sync_count, waits);
    give(&f, second);
    fixture_fini(&f);
}
END_TEST

START_TEST(a_failing_driver_reserves_nothing)
{
    for (uint64_t at = 1; at <= 7; at++) {
        fixture f;
        make(&f, UF_POLICY_UNFRAG, 0);
        (void)take(&f, 4 * MIB, 0);
        f.sim.fail_after_count = at;
        refuses(&f, UF_ERROR_DEVICE, uf_reserve(f.allocator, 6 * MIB, 0, &f.error),
                "reserving memory");
        ck_assert_uint_eq(usage_of(&f).active_bytes, 4 * MIB);
        reserve(&f, 6 * MIB, 0);
        ck_assert_uint_ge(usage_of(&f).cached_bytes, 6 * MIB);
        fixture_fini(&f);
    }
}
END_TEST

START_TEST(trimming_keeps_as_much_as_is_wanted_and_no_page_more)
{
    fixture f;
    make(&f, UF_POLICY_UNFRAG, 0);
    uint64_t large = take(&f, 128 * MIB, 0), held = take(&f, 10 * MIB, 0);
    uint64_t other = take(&f, 20 * MIB, 3);
    give(&f, large);
    give(&f, other);
    uf__sim_synchronize(&f.sim);
    ck_assert_uint_eq(usage_of(&f).cached_bytes, 148 * MIB);
    ck_assert_uint_eq(trim(&f, 200 * MIB), 0);
    ck_assert_uint_eq(trim(&f, 147 * MIB), 2 * MIB);
    ck_assert_uint_eq(trim(&f, 100 * MIB), 46 * MIB);
    ck_assert_uint_eq(usage_of(&f).cached_bytes, 100 * MIB);
    ck_assert_uint_eq(trim(&f, 0), 100 * MIB);
    ck_assert_uint_eq(usage_of(&f).cached_bytes, 0);
    ck_assert_int_eq(reserved_of(&f), 10 * MIB);
    give(&f, held);
    fixture_fini(&f);
}
END_TEST

START_TEST(under_the_torch_policy_whole_segments_go_the_largest_first)
{
    fixture f;
    make(&f, UF_POLICY_TORCH, 0);
    uint64_t a = take(&f, 30 * MIB, 0), b = take(&f, 50 * MIB, 0), c = take(&f, 40 * MIB, 0);
    uint64_t split = take(&f, 5 * MIB, 0);
    give(&f, a);
    give(&f, b);
    give(&f, c);
    ck_assert_uint_eq(usage_of(&f).cached_bytes, 135 * MIB);
    ck_assert_uint_eq(trim(&f, 100 * MIB), 50 * MIB);
    ck_assert_uint_eq(trim(&f, 0), 70 * MIB);
    ck_assert_uint_eq(usage_of(&f).cached_bytes, 15 * MIB); /* a block lies in their segment */
    give(&f, split);
    fixture_fini(&f);
}
END_TEST

START_TEST(trimming_does_not_wait_for_other_streams)
{
    static const uf_policy policies[] = {UF_POLICY_UNFRAG, UF_POLICY_TORCH};
    for (int i = 0; i < 2; i++) {
        fixture f;
        make(&f, policies[i], 0);
        uint64_t small = take(&f, 512, 0), addr = take(&f, 30 * MIB, 0), released = 77;
        ck_assert_int_eq(uf_use_on_stream(f.allocator, addr, 5, &f.error), UF_OK);
        give(&f, addr);
        ck_assert_uint_eq(trim(&f, 0), 0);
        ck_assert_int_eq(reserved_of(&f), 32 * MIB);
        uf__sim_synchronize(&f.sim);
        (void)take(&f, 512, 0); /* completes the free */
        ck_assert_uint_eq(trim(&f, 0), 30 * MIB);
        give(&f, small);
        ck_assert_int_eq(uf_trim(NULL, 0, &released, NULL), UF_ERROR_INVALID_ARGUMENT);
        ck_assert_uint_eq(released, 77);
        fixture_fini(&f);
    }
}
END_TEST

START_TEST(a_pinned_block_keeps_its_pages_after_it_was_freed)
{
    static const uf_policy policies[] = {UF_POLICY_UNFRAG, UF_POLICY_TORCH};
    for (int i = 0; i < 2; i++) {
        uf_host *host;
        uf_allocator *allocator;
        uf_error error;
        uf_host_options card = {.struct_size_bytes = sizeof card, .total_bytes = 64 * MIB};
        ck_assert_int_eq(uf_host_create(&card, &host, &error), UF_OK);
        const uf_allocator_options options = {.struct_size_bytes = sizeof options,
                                              .device = uf_host_device(host),
                                              .policy = policies[i],
                                              .limit_bytes = 40 * MIB};
        ck_assert_int_eq(uf_allocator_create(&options, &allocator, &error), UF_OK);
        uint64_t pinned, addr = 0, others[8], count = 0;
        ck_assert_int_eq(uf_alloc(allocator, 10 * MIB, 0, &pinned, &error), UF_OK);
        memset((void *)(uintptr_t)pinned, 0x5a, 10 * MIB);
        ck_assert_int_eq(uf_pin(allocator, pinned, &error), UF_OK);
        ck_assert_int_eq(uf_pin(allocator, pinned, &error), UF_OK);
        ck_assert_int_eq(uf_free(allocator, pinned, &error), UF_OK);
        ck_assert_int_eq(uf_free(allocator, pinned, &error), UF_ERROR_FOREIGN_POINTER);
        ck_assert_int_eq(uf_pin(allocator, pinned, &error), UF_ERROR_FOREIGN_POINTER);
        ck_assert_int_eq(uf_empty_cache(allocator, &error), UF_OK);
        while (count < 8 && uf_alloc(allocator, 12 * MIB, 0, &others[count], &error) == UF_OK) {
            memset((void *)(uintptr_t)others[count], 0xff, 12 * MIB);
            count++;
            ck_assert_msg(uf_check(allocator, &error) == UF_OK, "%s", error.text);
        }
        ck_assert_uint_eq(count, 2);
        if (policies[i] == UF_POLICY_UNFRAG) {
            ck_assert_msg(strstr(error.text, "or unpin what was freed") != NULL, "%s", error.text);
        }
        uf_usage usage;
        ck_assert_int_eq(uf_usage_get(allocator, &usage, &error), UF_OK);
        ck_assert_uint_eq(usage.pinned_bytes, 10 * MIB);
        ck_assert_uint_eq(usage.frozen_bytes, 10 * MIB);
        uint64_t wrong_count = 0;
        for (uint64_t at = 0; at < 10 * MIB; at++) {
            wrong_count += ((const uint8_t *)(uintptr_t)pinned)[at] != 0x5a;
        }
        ck_assert_uint_eq(wrong_count, 0);
        ck_assert_int_eq(uf_unpin(allocator, pinned, &error), UF_OK);
        ck_assert_int_eq(uf_alloc(allocator, 12 * MIB, 0, &addr, &error), UF_ERROR_OUT_OF_MEMORY);
        ck_assert_int_eq(uf_unpin(allocator, pinned, &error), UF_OK);
        ck_assert_int_eq(uf_unpin(allocator, pinned, &error), UF_ERROR_NOT_FOUND);
        ck_assert_int_eq(uf_alloc(allocator, 12 * MIB, 0, &addr, &error), UF_OK);
        ck_assert_msg(uf_check(allocator, &error) == UF_OK, "%s", error.text);
        uf_allocator_destroy(allocator);
        ck_assert_uint_eq(uf_host_faults(host, &error), 0);
        uf_host_destroy(host);
    }
}
END_TEST

START_TEST(a_pin_that_goes_before_the_free_changes_nothing)
{
    fixture f;
    make(&f, UF_POLICY_UNFRAG, 0);
    uint64_t addr = take(&f, 10 * MIB, 0);
    ck_assert_int_eq(uf_pin(f.allocator, addr, &f.error), UF_OK);
    refuses(&f, UF_ERROR_FOREIGN_POINTER, uf_pin(f.allocator, addr + 512, &f.error),
            "cannot be pinned");
    ck_assert_int_eq(uf_unpin(f.allocator, addr, &f.error), UF_OK);
    give(&f, addr);
    ck_assert_uint_eq(usage_of(&f).frozen_bytes, 0);
    ck_assert_uint_eq(usage_of(&f).cached_bytes, 10 * MIB);
    (void)take(&f, 10 * MIB, 0);
    ck_assert_uint_eq(usage_of(&f).cached_bytes, 0);
    fixture_fini(&f);
}
END_TEST

START_TEST(a_pool_with_a_pinned_block_does_not_go_back_to_a_checkpoint)
{
    fixture f;
    uint64_t pool;
    uf_pool_checkpoint *checkpoint;
    make(&f, UF_POLICY_UNFRAG, 0);
    ck_assert_int_eq(uf_pool_create(f.allocator, NULL, &pool, &f.error), UF_OK);
    ck_assert_int_eq(uf_pool_checkpoint_create(f.allocator, pool, &checkpoint, &f.error), UF_OK);
    ck_assert_int_eq(uf_pool_begin(f.allocator, pool, &f.error), UF_OK);
    uint64_t addr = take(&f, 4 * MIB, 0);
    ck_assert_int_eq(uf_pool_end(f.allocator, pool, &f.error), UF_OK);
    ck_assert_uint_eq(usage_of(&f).frozen_bytes, 4 * MIB);
    ck_assert_int_eq(uf_pin(f.allocator, addr, &f.error), UF_OK);
    refuses(&f, UF_ERROR_BUSY,
            uf_pool_checkpoint_restore(f.allocator, checkpoint, NULL, NULL, &f.error), "pinned");
    give(&f, addr);
    ck_assert_uint_eq(usage_of(&f).frozen_bytes, 4 * MIB);
    ck_assert_int_eq(uf_unpin(f.allocator, addr, &f.error), UF_OK);
    uf_status status = uf_pool_checkpoint_restore(f.allocator, checkpoint, NULL, NULL, &f.error);
    ck_assert_msg(status == UF_OK, "%s", f.error.text);
    uf_pool_checkpoint_destroy(checkpoint);
    fixture_fini(&f);
}
END_TEST

static void make_with_headroom(fixture *f, uint64_t headroom_bytes, bool is_shared)
{
    uf_allocator_options options = fixture_options(f, NULL);
    uf__sim_init(&f->sim, GIB, 0);
    f->sim.device.is_shared = is_shared;
    options.policy = UF_POLICY_UNFRAG;
    options.headroom_bytes = headroom_bytes;
    fixture_make(f, &options);
}

START_TEST(growth_leaves_the_headroom_to_others)
{
    fixture f;
    uint64_t addr;
    make_with_headroom(&f, 256 * MIB, false);
    uint64_t first = take(&f, 400 * MIB, 0), second = take(&f, 368 * MIB, 0);
    refuses(&f, UF_ERROR_OUT_OF_MEMORY, uf_alloc(f.allocator, 2 * MIB, 0, &addr, &f.error),
            "free on the device 256.00 MiB (256.00 MiB left to others), held outside 0 B");
    give(&f, first);
    (void)take(&f, 200 * MIB, 0);
    give(&f, second);
    uf__sim_synchronize(&f.sim);
    (void)take(&f, 568 * MIB, 1); /* from its own cache, where growth is refused */
    ck_assert_int_eq(reserved_of(&f), 768 * MIB);
    f.sim.in_use_bytes += 200 * MIB; /* others take of the headroom: what is held stays usable */
    refuses(&f, UF_ERROR_OUT_OF_MEMORY, uf_alloc(f.allocator, 2 * MIB, 0, &addr, &f.error),
            "held outside 200.00 MiB");
    ck_assert_uint_eq(usage_of(&f).outside_bytes, 200 * MIB);
    f.sim.in_use_bytes -= 200 * MIB;
    fixture_fini(&f);
}
END_TEST

START_TEST(the_default_headroom_is_for_shared_devices_alone)
{
    static const struct {
        uint64_t given_bytes;
        bool is_shared;
        uint64_t expected_bytes;
    } cases[] = {{0, false, 0},
                 {0, true, 128 * MIB}, /* an eighth of 1 GiB */
                 {UF_HEADROOM_NONE, true, 0},
                 {5 * MIB, true, 5 * MIB},
                 {5 * MIB, false, 5 * MIB}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fixture f;
        make_with_headroom(&f, cases[i].given_bytes, cases[i].is_shared);
        ck_assert_uint_eq(usage_of(&f).headroom_bytes, cases[i].expected_bytes);
        fixture_fini(&f);
    }
}
END_TEST

START_TEST(the_soft_bound_can_be_raised)
{
    static const uint32_t percents[] = {0, 10000};
    for (int i = 0; i < 2; i++) {
        fixture f;
        uf_allocator_options options = fixture_options(&f, NULL);
        options.policy = UF_POLICY_UNFRAG;
        options.soft_percent = percents[i];
        fixture_make(&f, &options);
        uint64_t addr = take(&f, 100 * MIB, 0);
        give(&f, addr);
        f.sim.is_caught_up = true;
        (void)take(&f, 4 * MIB, 2); /* asks how far stream 0 is */
        (void)take(&f, 100 * MIB, 1);
        int64_t reserved_bytes = reserved_of(&f);
        ck_assert_int_le(reserved_bytes, i == 0 ? 106 * (int64_t)MIB : 204 * (int64_t)MIB);
        ck_assert_int_ge(reserved_bytes, i == 0 ? 104 * (int64_t)MIB : 204 * (int64_t)MIB);
        fixture_fini(&f);
    }
}
END_TEST

START_TEST(settings_outside_their_range_are_refused)
{
    fixture f;
    uf_allocator *made = NULL;
    uf_allocator_options options = fixture_options(&f, NULL);
    options.policy = UF_POLICY_UNFRAG;
    options.soft_percent = 99;
    ck_assert_int_eq(uf_allocator_create(&options, &made, &f.error), UF_ERROR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(f.error.text, "a soft_percent of 99 was given"));
    options.soft_percent = 10001;
    ck_assert_int_eq(uf_allocator_create(&options, &made, &f.error), UF_ERROR_INVALID_ARGUMENT);
    options.soft_percent = 0;
    options.collect_after_ms = 10;
    f.sim.device.clock_ns = NULL;
    ck_assert_int_eq(uf_allocator_create(&options, &made, &f.error), UF_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(f.error.text, "collect_after_frees does not"));
}
END_TEST

START_TEST(pages_go_back_after_so_many_frees)
{
    fixture f;
    uf_allocator_options options = fixture_options(&f, NULL);
    options.policy = UF_POLICY_UNFRAG;
    options.collect_after_frees = 16;
    fixture_make(&f, &options);
    uint64_t idle = take(&f, 100 * MIB, 1);
    give(&f, idle);
    f.sim.is_caught_up = true;
    int i = 0;
    for (; i < 40 && reserved_of(&f) > 50 * (int64_t)MIB; i++) {
        give(&f, take(&f, 10 * MIB, 0));
    }
    ck_assert_int_ge(i, 16);
    ck_assert_int_le(i, 16 + 3); /* at most an eighth more, and the request that looks */
    ck_assert_int_eq(reserved_of(&f), 10 * MIB);
    fixture_fini(&f);
}
END_TEST

START_TEST(pages_go_back_after_some_time)
{
    fixture f;
    uf_allocator_options options = fixture_options(&f, NULL);
    options.policy = UF_POLICY_UNFRAG;
    options.collect_after_ms = 80;
    fixture_make(&f, &options);
    f.sim.is_caught_up = true;
    f.sim.now_ns = 1000000000;
    uint64_t idle = take(&f, 100 * MIB, 1);
    give(&f, idle);
    int ms = 0;
    for (; ms < 200 && reserved_of(&f) > 50 * (int64_t)MIB; ms++) {
        f.sim.now_ns += 1000000;
        give(&f, take(&f, 10 * MIB, 0));
    }
    ck_assert_int_ge(ms, 80);
    ck_assert_int_le(ms, 80 + 2 * 10 + 1);
    ck_assert_int_eq(reserved_of(&f), 10 * MIB);
    fixture_fini(&f);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        what_was_reserved_serves_requests_without_the_driver,
        reserving_nothing_does_nothing_and_too_much_is_refused,
        reserving_at_the_limit_moves_what_other_streams_have_cached,
        what_was_reserved_may_be_in_use_by_its_own_stream_still,
        a_failing_driver_reserves_nothing,
        trimming_keeps_as_much_as_is_wanted_and_no_page_more,
        under_the_torch_policy_whole_segments_go_the_largest_first,
        trimming_does_not_wait_for_other_streams,
        a_pinned_block_keeps_its_pages_after_it_was_freed,
        a_pin_that_goes_before_the_free_changes_nothing,
        a_pool_with_a_pinned_block_does_not_go_back_to_a_checkpoint,
        growth_leaves_the_headroom_to_others,
        the_default_headroom_is_for_shared_devices_alone,
        the_soft_bound_can_be_raised,
        settings_outside_their_range_are_refused,
        pages_go_back_after_so_many_frees,
        pages_go_back_after_some_time,
        NULL,
    };
    return suite_run("allocator_cache", tests);
}
