/* SPDX-License-Identifier: MIT
 *
 * Debug mode finds each kind of damage, says where it is, and finds none where there is none. Each
 * test runs under both policies. */
#include "unit/debug_fixture.h"

#include <unfrag/sim.h>

static const uf_policy policies[] = {UF_POLICY_TORCH, UF_POLICY_UNFRAG};
enum { POLICY_COUNT = sizeof policies / sizeof *policies };

START_TEST(a_write_behind_the_end_is_told_by_the_free)
{
    for (int i = 0; i < POLICY_COUNT; i++) {
        debug_fixture f;
        debug_init(&f, policies[i]);
        uint64_t addr = debug_take(&f, 1000, 7);
        debug_write(&f, 7, addr, 1000);
        debug_write(&f, 7, addr + 1002, 3); /* late: it has not run when the block is given back */
        debug_expect(&f, UF_ERROR_DAMAGED, uf_free(f.allocator, addr, &f.error),
                     "behind the end of a block");
        ck_assert_uint_eq(f.report_count, 1);
        debug_expect_damage(&f, &(uf_damage){UF_DAMAGE_OVERRUN, addr, 1000, 7, 1002, 3, NULL});
        ck_assert_str_eq(f.text, f.error.text);
        ck_assert_int_eq(uf_check(f.allocator, &f.error), UF_OK); /* it was told */
        ck_assert_uint_eq(debug_take(&f, 1000, 7), addr);         /* and given back */
        debug_fini(&f);
        ck_assert_uint_eq(f.report_count, 1);
    }
}
END_TEST

START_TEST(the_last_byte_of_a_guard_is_watched_and_none_of_the_block)
{
    for (int i = 0; i < POLICY_COUNT; i++) {
        debug_fixture f;
        debug_init(&f, policies[i]);
        for (uint64_t bytes = 1; bytes < 70 * KIB; bytes = bytes * 3 + 1) {
            uint64_t addr = debug_take(&f, bytes, 0);
            uf_block_place place;
            ck_assert_int_eq(uf_block_get(f.allocator, addr, &place, &f.error), UF_OK);
            ck_assert_uint_eq(place.requested_bytes, bytes);
            ck_assert_uint_ge(place.size_bytes - bytes, 512);
            debug_write(&f, 0, addr, bytes);
            ck_assert_int_eq(uf_free(f.allocator, addr, &f.error), UF_OK);
            addr = debug_take(&f, bytes, 0);
            debug_write(&f, 0, addr + place.size_bytes - 1, 1);
            ck_assert_int_eq(uf_free(f.allocator, addr, &f.error), UF_ERROR_DAMAGED);
            ck_assert_uint_eq(f.last.offset_bytes, place.size_bytes - 1);
        }
        debug_fini(&f);
    }
}
END_TEST

START_TEST(a_write_after_the_free_is_found_when_the_memory_is_handed_out_again)
{
    for (int i = 0; i < POLICY_COUNT; i++) {
        debug_fixture f;
        debug_init(&f, policies[i]);
        uint64_t addr = debug_take(&f, 3000, 7);
        debug_write(&f, 7, addr, 3000); /* runs after the free, but was queued before it */
        ck_assert_int_eq(uf_free(f.allocator, addr, &f.error), UF_OK);
        debug_write(&f, 7, addr + 2999, 1);
        ck_assert_uint_eq(debug_take(&f, 2000, 7), addr); /* not the part that was written to */
        ck_assert_uint_eq(f.report_count, 0);
        ck_assert_uint_eq(debug_take(&f, 100, 7), addr + 2560); /* and it is handed out */
        ck_assert_uint_eq(f.report_count, 1);
        debug_expect_damage(&f,
                            &(uf_damage){UF_DAMAGE_USE_AFTER_FREE, addr, 3000, 7, 2999, 1, NULL});
        debug_expect(&f, UF_ERROR_DAMAGED, uf_check(f.allocator, &f.error),
                     "after it was given back"); /* no status had told it */
        ck_assert_int_eq(uf_check(f.allocator, &f.error), UF_OK);
        debug_fini(&f);
        ck_assert_uint_eq(f.report_count, 1);
    }
}
END_TEST

START_TEST(a_check_finds_all_damage_and_each_once)
{
    for (int i = 0; i < POLICY_COUNT; i++) {
        debug_fixture f;
        debug_init(&f, policies[i]);
        uint64_t kept = debug_take(&f, 100 * KIB, 0), other = debug_take(&f, 2 * MIB, 64);
        ck_assert_int_eq(uf_free(f.allocator, other, &f.error), UF_OK);
        debug_write(&f, 0, kept + 100 * KIB, 512);
        debug_write(&f, 64, other + 1 * MIB, 4096);
        ck_assert_int_eq(uf_check(f.allocator, &f.error), UF_ERROR_DAMAGED);
        ck_assert_uint_eq(f.report_count, 2);
        debug_expect_damage(
            &f, &(uf_damage){UF_DAMAGE_USE_AFTER_FREE, other, 2 * MIB, 64, 1 * MIB, 4096, NULL});
        ck_assert_int_eq(uf_check(f.allocator, &f.error), UF_OK);
        ck_assert_int_eq(uf_free(f.allocator, kept, &f.error), UF_OK);
        debug_fini(&f);
        ck_assert_uint_eq(f.report_count, 2);
    }
}
END_TEST

START_TEST(damage_is_found_before_memory_goes)
{
    for (int i = 0; i < 2 * POLICY_COUNT; i++) {
        debug_fixture f;
        debug_init(&f, policies[i / 2]);
        uint64_t addr = debug_take(&f, 2 * MIB, 0);
        ck_assert_int_eq(uf_free(f.allocator, addr, &f.error), UF_OK);
        debug_write(&f, 0, addr, 1);
        if (i % 2 == 0) {
            ck_assert_int_eq(uf_empty_cache(f.allocator, &f.error), UF_OK);
            ck_assert_uint_eq(f.report_count, 1);
            ck_assert_int_eq(uf_check(f.allocator, &f.error), UF_ERROR_DAMAGED);
        }
        debug_fini(&f);
        ck_assert_uint_eq(f.report_count, 1);
    }
}
END_TEST

START_TEST(a_wrong_address_is_told_apart)
{
    for (int i = 0; i < POLICY_COUNT; i++) {
        debug_fixture f;
        debug_init(&f, policies[i]);
        uint64_t addr = debug_take(&f, 5000, 9), kept = debug_take(&f, 300, 9);
        debug_expect(&f, UF_ERROR_FOREIGN_POINTER, uf_free(f.allocator, addr + 16, &f.error),
                     "lies 16 bytes into the block of 5000 bytes");
        debug_expect_damage(&f, &(uf_damage){UF_DAMAGE_INSIDE_POINTER, addr, 5000, 9, 16, 0, NULL});
        ck_assert_int_eq(uf_free(f.allocator, addr, &f.error), UF_OK);
        debug_expect(&f, UF_ERROR_FOREIGN_POINTER, uf_free(f.allocator, addr, &f.error),
                     "was given back before: the block of 5000 bytes");
        debug_expect_damage(&f, &(uf_damage){UF_DAMAGE_DOUBLE_FREE, addr, 5000, 9, 0, 0, NULL});
        debug_expect(&f, UF_ERROR_FOREIGN_POINTER,
                     uf_use_on_stream(f.allocator, addr + 8, 3, &f.error), "0 frees ago");
        debug_expect(&f, UF_ERROR_FOREIGN_POINTER, uf_free(f.allocator, 4096, &f.error),
                     "was not handed out");
        debug_expect_damage(&f, &(uf_damage){UF_DAMAGE_FOREIGN_POINTER, 4096, 0, 0, 0, 0, NULL});
        ck_assert_uint_eq(f.report_count, 4);
        /* The address of a new block is right again. */
        ck_assert_uint_eq(debug_take(&f, 5000, 9), addr);
        ck_assert_int_eq(uf_free(f.allocator, addr, &f.error), UF_OK);
        ck_assert_int_eq(uf_free(f.allocator, kept, &f.error), UF_OK);
        ck_assert_int_eq(uf_check(f.allocator, &f.error), UF_OK);
        debug_fini(&f);
    }
}
END_TEST

START_TEST(another_stream_that_was_named_may_write_until_it_is_done)
{
    for (int i = 0; i < POLICY_COUNT; i++) {
        debug_fixture f;
        debug_init(&f, policies[i]);
        uint64_t addr = debug_take(&f, 4000, 1), bad = debug_take(&f, 4000, 1);
        debug_write(&f, 2, addr, 4000);
        debug_write(&f, 2, bad + 4000, 1); /* behind the end, and not done at the free */
        ck_assert_int_eq(uf_use_on_stream(f.allocator, addr, 2, &f.error), UF_OK);
        ck_assert_int_eq(uf_use_on_stream(f.allocator, bad, 2, &f.error), UF_OK);
        ck_assert_int_eq(uf_free(f.allocator, addr, &f.error), UF_OK);
        ck_assert_int_eq(uf_free(f.allocator, bad, &f.error), UF_OK);
        debug_expect(&f, UF_ERROR_FOREIGN_POINTER, uf_free(f.allocator, addr, &f.error),
                     "still waits");
        ck_assert_uint_eq(f.report_count, 1);
        uf_host_synchronize(f.host);
        (void)debug_take(&f, 100, 1); /* completes the frees */
        ck_assert_uint_eq(f.report_count, 2);
        debug_expect_damage(&f, &(uf_damage){UF_DAMAGE_OVERRUN, bad, 4000, 1, 4000, 1, NULL});
        debug_fini(&f);
        ck_assert_uint_eq(f.report_count, 2);
    }
}
END_TEST

START_TEST(a_stream_that_was_not_named_is_found)
{
    for (int i = 0; i < POLICY_COUNT; i++) {
        debug_fixture f;
        debug_init(&f, policies[i]);
        uint64_t addr = debug_take(&f, 4000, 1);
        debug_write(&f, 2, addr, 4000);
        ck_assert_int_eq(uf_free(f.allocator, addr, &f.error), UF_OK);
        uf_host_run(f.host, 1, 100);
        uf_host_run(f.host, 2, 100);
        ck_assert_uint_eq(debug_take(&f, 4000, 1), addr);
        debug_expect_damage(&f,
                            &(uf_damage){UF_DAMAGE_USE_AFTER_FREE, addr, 4000, 1, 0, 4000, NULL});
        debug_fini(&f);
    }
}
END_TEST

START_TEST(a_pinned_block_may_be_written_until_its_pin_goes)
{
    for (int i = 0; i < POLICY_COUNT; i++) {
        debug_fixture f;
        debug_init(&f, policies[i]);
        uint64_t addr = debug_take(&f, 4000, 1);
        ck_assert_int_eq(uf_pin(f.allocator, addr, &f.error), UF_OK);
        ck_assert_int_eq(uf_free(f.allocator, addr, &f.error), UF_OK);
        debug_write(&f, 2, addr, 4000);
        uf_host_synchronize(f.host);
        ck_assert_int_eq(uf_check(f.allocator, &f.error), UF_OK);
        debug_write(&f, 2, addr + 4001, 1);
        uf_host_synchronize(f.host);
        debug_expect(&f, UF_ERROR_DAMAGED, uf_unpin(f.allocator, addr, &f.error), "offset 4001");
        debug_write(&f, 1, addr + 2, 1);
        (void)debug_take(&f, 4000, 1);
        debug_expect_damage(&f, &(uf_damage){UF_DAMAGE_USE_AFTER_FREE, addr, 4000, 1, 2, 1, NULL});
        debug_fini(&f);
    }
}
END_TEST

START_TEST(pools_have_guards_and_their_free_memory_may_be_written)
{
    for (int i = 0; i < POLICY_COUNT; i++) {
        debug_fixture f;
        uint64_t pool;
        debug_init(&f, policies[i]);
        ck_assert_int_eq(uf_pool_create(f.allocator, NULL, &pool, &f.error), UF_OK);
        ck_assert_int_eq(uf_pool_begin(f.allocator, pool, &f.error), UF_OK);
        uint64_t graph = debug_take(&f, 4000, 1), late = debug_take(&f, 4000, 1);
        uint64_t kept = debug_take(&f, 4000, 1);
        uf_host_counts before, after;
        uf_host_counts_get(f.host, &before);
        debug_write(&f, 1, late + 4000, 1);
        ck_assert_int_eq(uf_free(f.allocator, late, &f.error), UF_OK);
        uf_host_counts_get(f.host, &after);
        ck_assert_uint_eq(before.wait_count, after.wait_count); /* nothing in an open scope */
        ck_assert_int_eq(uf_pool_end(f.allocator, pool, &f.error), UF_OK);
        ck_assert_int_eq(uf_free(f.allocator, graph, &f.error), UF_OK);
        debug_write(&f, 1, graph, 4000); /* a graph that is run again */
        ck_assert_int_eq(uf_check(f.allocator, &f.error), UF_OK);
        debug_write(&f, 1, kept + 4100, 1);
        debug_expect(&f, UF_ERROR_DAMAGED, uf_free(f.allocator, kept, &f.error), "offset 4100");
        ck_assert_int_eq(uf_pool_begin(f.allocator, pool, &f.error), UF_OK);
        (void)debug_take(&f, 4000, 1);
        ck_assert_int_eq(uf_pool_end(f.allocator, pool, &f.error), UF_OK);
        ck_assert_int_eq(uf_check(f.allocator, &f.error), UF_OK);
        ck_assert_uint_eq(f.report_count, 1);
        debug_fini(&f);
    }
}
END_TEST

typedef struct restored {
    uint64_t addr, bytes;
} restored;

static void note_restored(void *context, uint64_t addr, uint64_t bytes, bool is_allocated)
{
    if (is_allocated) {
        *(restored *)context = (restored){addr, bytes};
    }
}

START_TEST(a_pool_that_goes_back_to_a_checkpoint_is_not_damage)
{
    for (int i = 0; i < POLICY_COUNT; i++) {
        debug_fixture f;
        uint64_t pool;
        uf_pool_checkpoint *checkpoint;
        restored r = {0, 0};
        debug_init(&f, policies[i]);
        ck_assert_int_eq(uf_pool_create(f.allocator, NULL, &pool, &f.error), UF_OK);
        ck_assert_int_eq(uf_pool_begin(f.allocator, pool, &f.error), UF_OK);
        uint64_t addr = debug_take(&f, 4000, 1);
        ck_assert_int_eq(uf_pool_end(f.allocator, pool, &f.error), UF_OK);
        ck_assert_int_eq(uf_pool_checkpoint_create(f.allocator, pool, &checkpoint, &f.error),
                         UF_OK);
        ck_assert_int_eq(uf_free(f.allocator, addr, &f.error), UF_OK);
        debug_write(&f, 1, addr, 4500);
        ck_assert_int_eq(
            uf_pool_checkpoint_restore(f.allocator, checkpoint, note_restored, &r, &f.error),
            UF_OK);
        ck_assert_uint_eq(r.addr, addr);
        ck_assert_uint_eq(r.bytes, 4000);
        debug_expect(&f, UF_ERROR_FOREIGN_POINTER, uf_free(f.allocator, addr + 1, &f.error),
                     "lies 1 bytes into the block of 4000 bytes");
        ck_assert_int_eq(uf_free(f.allocator, addr, &f.error), UF_OK);
        ck_assert_int_eq(uf_check(f.allocator, &f.error), UF_OK);
        uf_pool_checkpoint_destroy(checkpoint);
        debug_fini(&f);
        ck_assert_uint_eq(f.report_count, 1);
    }
}
END_TEST

START_TEST(a_device_without_bytes_has_no_guards_and_knows_addresses)
{
    debug_fixture f = {.host = NULL};
    uf_sim *sim;
    uf_stats stats;
    ck_assert_int_eq(uf_sim_create(NULL, &sim, &f.error), UF_OK);
    const uf_allocator_options options = {
        .struct_size_bytes = sizeof options, .device = uf_sim_device(sim), .is_debug = true};
    debug_make(&f, &options);
    uint64_t addr = debug_take(&f, 1024, 0);
    ck_assert_int_eq(uf_stats_get(f.allocator, &stats, &f.error), UF_OK);
    ck_assert_int_eq(stats.requested_bytes.all.current, 1024);
    ck_assert_int_eq(stats.allocated_bytes.all.current, 1024);
    ck_assert_int_eq(uf_free(f.allocator, addr, &f.error), UF_OK);
    debug_expect(&f, UF_ERROR_FOREIGN_POINTER, uf_free(f.allocator, addr, &f.error),
                 "was given back before");
    ck_assert_int_eq(uf_check(f.allocator, &f.error), UF_OK);
    uf_allocator_destroy(f.allocator);
    uf_sim_destroy(sim);
}
END_TEST

START_TEST(without_debug_mode_the_device_sets_and_compares_nothing)
{
    for (int i = 0; i < POLICY_COUNT; i++) {
        debug_fixture f;
        uf_host_counts counts;
        uf_allocator_options options = debug_options(&f, policies[i]);
        options.is_debug = false;
        debug_make(&f, &options);
        uint64_t addr = debug_take(&f, 1024, 0);
        uf_block_place place;
        ck_assert_int_eq(uf_block_get(f.allocator, addr, &place, &f.error), UF_OK);
        ck_assert_uint_eq(place.size_bytes, 1024);
        debug_write(&f, 0, addr + 1024, 100);
        ck_assert_int_eq(uf_free(f.allocator, addr, &f.error), UF_OK);
        ck_assert_int_eq(uf_check(f.allocator, &f.error), UF_OK);
        uf_host_counts_get(f.host, &counts);
        ck_assert_uint_eq(counts.call_counts[UF_HOST_BYTES_SET], 0);
        ck_assert_uint_eq(counts.call_counts[UF_HOST_BYTES_COMPARE], 0);
        debug_fini(&f);
        ck_assert_uint_eq(f.report_count, 0);
    }
}
END_TEST

static uint64_t first_segment; /* of a device that hands the same memory out twice */

static uf_status create_again(void *context, uint64_t size_bytes, uint64_t stream, uint64_t *addr)
{
    (void)context;
    (void)size_bytes;
    (void)stream;
    *addr = first_segment;
    return UF_OK;
}

static uf_status destroy_nothing(void *context, uint64_t addr, uint64_t size_bytes)
{
    (void)context;
    (void)addr;
    (void)size_bytes;
    return UF_OK;
}

START_TEST(memory_that_is_in_use_is_not_handed_out_again)
{
    debug_fixture f;
    static unsigned char memory[64];
    uf_allocator_options options = debug_options(&f, UF_POLICY_TORCH);
    uf_device twice = *options.device;
    first_segment = (uint64_t)(uintptr_t)memory / 512 * 512 + (UINT64_C(1) << 40);
    twice.segment_create = create_again;
    twice.segment_destroy = destroy_nothing;
    twice.bytes_set = NULL;
    options.device = &twice;
    debug_make(&f, &options);
    uint64_t addr = debug_take(&f, 3 * MIB, 0), none = 5;
    debug_expect(&f, UF_ERROR_INTERNAL, uf_alloc(f.allocator, 20 * MIB, 0, &none, &f.error),
                 "memory that is in use was to be handed out again");
    ck_assert_uint_eq(none, 5);
    debug_expect_damage(&f, &(uf_damage){UF_DAMAGE_OVERLAP, addr, 3 * MIB, 0, 0, 0, NULL});
    ck_assert_int_eq(uf_free(f.allocator, addr, &f.error), UF_OK);
    uf_allocator_destroy(f.allocator);
    uf_host_destroy(f.host);
}
END_TEST

int main(void)
{
    return suite_run("debug",
                     (const TTest *const[]){
                         a_write_behind_the_end_is_told_by_the_free,
                         the_last_byte_of_a_guard_is_watched_and_none_of_the_block,
                         a_write_after_the_free_is_found_when_the_memory_is_handed_out_again,
                         a_check_finds_all_damage_and_each_once,
                         damage_is_found_before_memory_goes,
                         a_wrong_address_is_told_apart,
                         another_stream_that_was_named_may_write_until_it_is_done,
                         a_stream_that_was_not_named_is_found,
                         a_pinned_block_may_be_written_until_its_pin_goes,
                         pools_have_guards_and_their_free_memory_may_be_written,
                         a_pool_that_goes_back_to_a_checkpoint_is_not_damage,
                         a_device_without_bytes_has_no_guards_and_knows_addresses,
                         without_debug_mode_the_device_sets_and_compares_nothing,
                         memory_that_is_in_use_is_not_handed_out_again,
                         NULL,
                     });
}
