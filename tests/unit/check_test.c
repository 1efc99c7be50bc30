/* SPDX-License-Identifier: MIT
 *
 * The invariant checker: each kind of damage is found and named. */
#include "alloc/core.h"

#include <string.h>

#include "unit/core_bench.h"
#include "unit/suite.h"

static bench b;
/* Blocks of the sample. first .. third lie in one small segment in this order, first and third are
 * allocated; large is a segment of its own; waiting waits for a stream; unmapped ends a region. */
static uint32_t first, second, third, large, waiting, unmapped;

/* A core with a bit of everything. */
static void prepare(void)
{
    bench_init(&b, "", 0, 0);
    first = bench_alloc(&b, 1024);
    second = bench_alloc(&b, 2048);
    third = bench_alloc(&b, 4096);
    large = bench_alloc(&b, 12 * BENCH_MIB);
    waiting = bench_alloc(&b, 512);
    bench_free(&b, second);
    ck_assert_int_eq(uf__core_use(&b.core, waiting, bench_stream(&b, 7)), UF_OK);
    bench_free(&b, waiting);
    uf_conf conf = bench_conf("expandable_segments:True");
    uf__core_conf_set(&b.core, &conf);
    uint32_t mapped = bench_alloc(&b, 30 * BENCH_MIB);
    unmapped = uf__core_block(&b.core, uf__core_block(&b.core, mapped)->next)->next;
    ck_assert(!uf__core_block(&b.core, unmapped)->is_mapped);
}

static uf_block *at(uint32_t block)
{
    return &b.core.blocks.items[block];
}

static uf_shelf *shelf_of(uint32_t block)
{
    return b.core.shelves[at(block)->shelf];
}

/* The damage is found and its text contains `what`. */
static void expect(const char *what)
{
    uf_error error = {UF_OK, ""};
    ck_assert_int_eq(uf__core_check(&b.core, &error), UF_ERROR_INTERNAL);
    if (strstr(error.text, what) == NULL) {
        ck_abort_msg("\"%s\" does not say \"%s\"", error.text, what);
    }
}

/* The repaired core is whole again. */
static void finish(void)
{
    bench_fini(&b);
}

#define DAMAGE_TEST(name, field, value, what) \
    START_TEST(name)                          \
    {                                         \
        prepare();                            \
        __typeof__(field) kept = (field);     \
        (field) = (value);                    \
        expect(what);                         \
        (field) = kept;                       \
        finish();                             \
    }                                         \
    END_TEST

START_TEST(a_sound_core_passes_without_an_error_record)
{
    prepare();
    ck_assert_int_eq(uf__core_check(&b.core, NULL), UF_OK);
    finish();
}
END_TEST

DAMAGE_TEST(a_broken_next_link_is_found, at(first)->next, third, "neighbour links disagree")
DAMAGE_TEST(a_broken_prev_link_is_found, at(third)->prev, first, "neighbour links disagree")
DAMAGE_TEST(a_lost_prev_link_is_found, at(second)->prev, UF_NO_BLOCK, "neighbour links disagree")
DAMAGE_TEST(a_hole_between_neighbours_is_found, at(third)->addr, kept + 512, "do not touch")
DAMAGE_TEST(a_wrong_size_is_found, at(first)->size_bytes, kept - 512, "do not touch")
DAMAGE_TEST(an_empty_block_is_found, at(large)->size_bytes, 0, "no size or no shelf")
DAMAGE_TEST(a_block_on_no_shelf_is_found, at(large)->shelf, 99, "no size or no shelf")
DAMAGE_TEST(a_block_of_another_segment_among_neighbours_is_found, at(third)->region, 1,
            "differ in shelf or segment")
DAMAGE_TEST(a_free_block_outside_its_set_is_found, at(large)->life, UF_LIFE_FREE, "counter")
DAMAGE_TEST(an_allocated_block_in_a_free_set_is_found, at(second)->life, UF_LIFE_ALLOCATED,
            "a free set holds a block that is not free")
DAMAGE_TEST(an_unmapped_block_outside_a_region_is_found, at(large)->is_mapped, false,
            "an unmapped block outside a region")
DAMAGE_TEST(a_waiting_block_without_a_use_is_found, at(waiting)->uses, 0, "nothing to wait for")
DAMAGE_TEST(a_wrong_count_of_a_free_set_is_found, shelf_of(second)->cached.count, kept + 1,
            "a free set's count is wrong")
DAMAGE_TEST(a_lost_entry_of_the_unmapped_list_is_found, shelf_of(unmapped)->unmapped.count, 0,
            "free blocks outside every set")
DAMAGE_TEST(a_wrong_entry_of_the_unmapped_list_is_found, shelf_of(unmapped)->unmapped.items[0],
            at(unmapped)->prev, "an unmapped list is wrong")
DAMAGE_TEST(a_region_of_another_size_is_found, b.core.regions[1].size_bytes, kept + 2 * BENCH_MIB,
            "do not fill their region")
DAMAGE_TEST(an_unmapped_part_of_a_page_is_found, b.core.regions[1].page_bytes, 7 * BENCH_MIB,
            "not made of whole pages")
DAMAGE_TEST(a_lost_waiting_list_is_found, b.core.pending, ((uf_uses_list){0, 0}),
            "waiting blocks outside both lists")
DAMAGE_TEST(a_wrong_end_of_the_waiting_list_is_found, b.core.pending.last, 0,
            "a waiting list's end is wrong")
DAMAGE_TEST(a_waiting_block_on_the_wrong_list_is_found, at(waiting)->life, UF_LIFE_DEFERRED,
            "a list of waiting blocks is wrong")
DAMAGE_TEST(wrong_reserved_bytes_are_found,
            b.core.counters.counters[UF_COUNTER_RESERVED_BYTES].room[UF_CLASS_LARGE], kept + 512,
            "counter 5 of class 1")
DAMAGE_TEST(a_wrong_number_of_segments_is_found,
            b.core.counters.counters[UF_COUNTER_SEGMENT].room[UF_CLASS_SMALL], kept - 1,
            "counter 1 of class 0")
DAMAGE_TEST(wrong_inactive_bytes_are_found,
            b.core.counters.counters[UF_COUNTER_INACTIVE_SPLIT_BYTES].room[UF_CLASS_SMALL],
            kept + 1, "counter 7 of class 0")
DAMAGE_TEST(a_wrong_requested_size_is_found, at(first)->requested_bytes, kept + 1,
            "counter 8 of class 0")
DAMAGE_TEST(a_wrong_total_is_found, b.core.total_bytes, kept + 512,
            "total_bytes is not the sum of mapped blocks")

START_TEST(two_free_neighbours_are_found)
{
    prepare();
    at(first)->life = UF_LIFE_FREE;
    expect("two free neighbours were not merged");
    at(first)->life = UF_LIFE_ALLOCATED;
    finish();
}
END_TEST

START_TEST(a_set_out_of_order_is_found)
{
    bench_init(&b, "", 0, 0);
    uint32_t low = bench_alloc(&b, 12 * BENCH_MIB), high = bench_alloc(&b, 12 * BENCH_MIB);
    bench_free(&b, low);
    bench_free(&b, high);
    uint64_t low_addr = at(low)->addr, high_addr = at(high)->addr;
    at(low)->addr = high_addr;
    at(high)->addr = low_addr;
    uf_error error;
    ck_assert_int_eq(uf__core_check(&b.core, &error), UF_ERROR_INTERNAL);
    at(low)->addr = low_addr;
    at(high)->addr = high_addr;
    finish();
}
END_TEST

START_TEST(two_segments_that_overlap_are_found)
{
    prepare();
    uint64_t kept = at(large)->addr;
    at(large)->addr = at(first)->addr + 512;
    expect("two blocks overlap");
    at(large)->addr = kept;
    finish();
}
END_TEST

int main(void)
{
    return suite_run("check", (const TTest *const[]){
                                  a_sound_core_passes_without_an_error_record,
                                  a_broken_next_link_is_found,
                                  a_broken_prev_link_is_found,
                                  a_lost_prev_link_is_found,
                                  a_hole_between_neighbours_is_found,
                                  a_wrong_size_is_found,
                                  an_empty_block_is_found,
                                  a_block_on_no_shelf_is_found,
                                  a_block_of_another_segment_among_neighbours_is_found,
                                  a_free_block_outside_its_set_is_found,
                                  an_allocated_block_in_a_free_set_is_found,
                                  an_unmapped_block_outside_a_region_is_found,
                                  a_waiting_block_without_a_use_is_found,
                                  a_wrong_count_of_a_free_set_is_found,
                                  a_lost_entry_of_the_unmapped_list_is_found,
                                  a_wrong_entry_of_the_unmapped_list_is_found,
                                  a_region_of_another_size_is_found,
                                  an_unmapped_part_of_a_page_is_found,
                                  a_lost_waiting_list_is_found,
                                  a_wrong_end_of_the_waiting_list_is_found,
                                  a_waiting_block_on_the_wrong_list_is_found,
                                  wrong_reserved_bytes_are_found,
                                  a_wrong_number_of_segments_is_found,
                                  wrong_inactive_bytes_are_found,
                                  a_wrong_requested_size_is_found,
                                  a_wrong_total_is_found,
                                  two_free_neighbours_are_found,
                                  a_set_out_of_order_is_found,
                                  two_segments_that_overlap_are_found,
                                  NULL,
                              });
}
