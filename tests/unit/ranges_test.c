/* SPDX-License-Identifier: MIT
 *
 * Address ranges against a table of bytes. */
#include "replay/ranges.h"

#include <inttypes.h>
#include <string.h>

#include "unit/suite.h"

enum { SPACE = 200 };

static uf_ranges ranges;
static uint32_t owner[SPACE]; /* creator + 1, 0 = nobody */

static uint32_t owner_at(uint64_t addr)
{
    const uf_range *range = uf__ranges_find(&ranges, addr);
    return range == NULL ? 0 : (uint32_t)range->creator + 1;
}

static void compare(uint64_t step)
{
    for (uint64_t addr = 0; addr < SPACE; addr++) {
        if (owner_at(addr) != owner[addr]) {
            ck_abort_msg("step %" PRIu64 ": byte %" PRIu64 " belongs to %u, not %u", step, addr,
                         owner_at(addr), owner[addr]);
        }
    }
    for (size_t i = 1; i < ranges.count; i++) {
        ck_assert_uint_le(ranges.items[i - 1].end, ranges.items[i].addr);
    }
}

static bool is_clear(uint64_t addr, uint64_t size_bytes)
{
    for (uint64_t at = addr; at < addr + size_bytes; at++) {
        if (owner[at] != 0) {
            return false;
        }
    }
    return true;
}

START_TEST(random_ranges_agree_with_a_table_of_bytes)
{
    uint64_t random = 3;
    for (uint64_t step = 0; step < 20000; step++) {
        uint64_t addr = suite_random(&random) % (SPACE - 20);
        uint64_t size_bytes = 1 + suite_random(&random) % 20, removed_bytes, expected = 0;
        ck_assert(uf__ranges_is_clear(&ranges, addr, size_bytes) == is_clear(addr, size_bytes));
        bool is_added = suite_random(&random) % 2 == 0;
        for (uint64_t at = addr; at < addr + size_bytes; at++) {
            expected += owner[at] != 0;
            owner[at] = is_added ? (uint32_t)step + 1 : 0;
        }
        if (is_added) {
            ck_assert(uf__ranges_add(&ranges, addr, size_bytes, step));
        } else {
            ck_assert(uf__ranges_remove(&ranges, addr, size_bytes, &removed_bytes));
            ck_assert_uint_eq(removed_bytes, expected);
        }
        compare(step);
    }
    uf__ranges_fini(&ranges);
}
END_TEST

START_TEST(a_hole_cuts_a_range_in_two)
{
    uint64_t removed_bytes;
    ck_assert(uf__ranges_add(&ranges, 100, 100, 7));
    ck_assert(uf__ranges_remove(&ranges, 120, 10, &removed_bytes));
    ck_assert_uint_eq(removed_bytes, 10);
    ck_assert_uint_eq(ranges.count, 2);
    ck_assert_uint_eq(ranges.items[0].end, 120);
    ck_assert_uint_eq(ranges.items[1].addr, 130);
    ck_assert_uint_eq(ranges.items[1].creator, 7);
    uf__ranges_fini(&ranges);
}
END_TEST

START_TEST(what_a_mapping_extends_ends_or_starts_at_it)
{
    ck_assert(uf__ranges_add(&ranges, 100, 50, 1));
    ck_assert(uf__ranges_add(&ranges, 200, 50, 2));
    ck_assert_uint_eq(uf__ranges_adjacent(&ranges, 150, 200)->creator, 1);
    ck_assert_uint_eq(uf__ranges_adjacent(&ranges, 160, 200)->creator, 2);
    ck_assert_uint_eq(uf__ranges_adjacent(&ranges, 250, 300)->creator, 2);
    ck_assert_ptr_null(uf__ranges_adjacent(&ranges, 160, 190));
    ck_assert_ptr_null(uf__ranges_adjacent(&ranges, 10, 20));
    uf__ranges_fini(&ranges);
}
END_TEST

START_TEST(a_range_that_wraps_ends_at_the_last_address)
{
    ck_assert(uf__ranges_add(&ranges, UINT64_MAX - 10, 100, 1));
    ck_assert_uint_eq(ranges.items[0].end, UINT64_MAX);
    ck_assert(!uf__ranges_is_clear(&ranges, UINT64_MAX - 5, 100));
    ck_assert(uf__ranges_add(&ranges, 5, 0, 1));
    ck_assert_uint_eq(ranges.count, 1);
    uf__ranges_fini(&ranges);
}
END_TEST

int main(void)
{
    return suite_run("ranges", (const TTest *const[]){
                                   random_ranges_agree_with_a_table_of_bytes,
                                   a_hole_cuts_a_range_in_two,
                                   what_a_mapping_extends_ends_or_starts_at_it,
                                   a_range_that_wraps_ends_at_the_last_address,
                                   NULL,
                               });
}
