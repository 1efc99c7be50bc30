/* SPDX-License-Identifier: MIT
 *
 * The address map against a plain table of what it should hold. */
#include "base/addrmap.h"

#include <inttypes.h>

#include "unit/suite.h"

enum { ADDR_COUNT = 3000, STEP_COUNT = 200000 };

START_TEST(an_empty_map_finds_and_removes_nothing)
{
    uf_addrmap map = {0};
    ck_assert_ptr_null(uf__addrmap_find(&map, 0));
    ck_assert(!uf__addrmap_remove(&map, 0));
    ck_assert_uint_eq(map.count, 0);
    uf__addrmap_fini(&map);
}
END_TEST

START_TEST(address_zero_and_the_highest_address_are_addresses)
{
    uf_addrmap map = {0};
    ck_assert(uf__addrmap_set(&map, 0, 7));
    ck_assert(uf__addrmap_set(&map, UINT64_MAX, 8));
    ck_assert_uint_eq(*uf__addrmap_find(&map, 0), 7);
    ck_assert_uint_eq(*uf__addrmap_find(&map, UINT64_MAX), 8);
    ck_assert_ptr_null(uf__addrmap_find(&map, 1));
    ck_assert(uf__addrmap_remove(&map, 0));
    ck_assert_ptr_null(uf__addrmap_find(&map, 0));
    ck_assert_uint_eq(map.count, 1);
    uf__addrmap_fini(&map);
    ck_assert_uint_eq(map.capacity, 0);
}
END_TEST

START_TEST(setting_twice_keeps_the_last_value_and_one_entry)
{
    uf_addrmap map = {0};
    ck_assert(uf__addrmap_set(&map, 4096, 1));
    ck_assert(uf__addrmap_set(&map, 4096, 2));
    ck_assert_uint_eq(map.count, 1);
    ck_assert_uint_eq(*uf__addrmap_find(&map, 4096), 2);
    uf__addrmap_fini(&map);
}
END_TEST

START_TEST(at_least_half_of_the_table_stays_empty)
{
    uf_addrmap map = {0};
    for (uint32_t i = 0; i < 10000; i++) {
        ck_assert(uf__addrmap_set(&map, (uint64_t)i << 21, i));
        ck_assert_uint_le(map.count * 2, map.capacity + 1);
    }
    for (uint32_t i = 0; i < 10000; i++) {
        ck_assert_uint_eq(*uf__addrmap_find(&map, (uint64_t)i << 21), i);
    }
    uf__addrmap_fini(&map);
}
END_TEST

/* kind 0: blocks of a segment; 1: segments; 2: anything, so that homes collide at random. */
static uint64_t nth_addr(unsigned kind, uint64_t n)
{
    uint64_t state = n;
    return kind == 0   ? UINT64_C(0x7f0000000000) + n * 512
           : kind == 1 ? UINT64_C(0x7f0000000000) + (n << 21)
                       : suite_random(&state);
}

/* present[n]: value + 1 of the n-th address. */
static void compare_all(const uf_addrmap *map, unsigned kind, const uint32_t *present,
                        uint64_t step)
{
    size_t count = 0;
    for (uint64_t n = 0; n < ADDR_COUNT; n++) {
        const uint32_t *found = uf__addrmap_find(map, nth_addr(kind, n));
        count += present[n] != 0;
        if ((found == NULL) != (present[n] == 0) || (found != NULL && *found != present[n] - 1)) {
            ck_abort_msg("kind %u, step %" PRIu64 ": address %" PRIu64 " is wrong", kind, step, n);
        }
    }
    ck_assert_uint_eq(map->count, count);
}

static void drive(unsigned kind)
{
    static uint32_t present[ADDR_COUNT];
    uf_addrmap map = {0};
    uint64_t random = 99 + kind;
    for (uint64_t step = 0; step < STEP_COUNT; step++) {
        uint64_t n = suite_random(&random) % ADDR_COUNT, addr = nth_addr(kind, n);
        bool is_growing = step / 20000 % 2 == 0;
        bool is_set = suite_random(&random) % 10 < (is_growing ? 7 : 3);
        if (is_set) {
            uint32_t value = (uint32_t)(step & 0xffffff);
            if (!uf__addrmap_set(&map, addr, value)) {
                ck_abort_msg("no host memory at step %" PRIu64, step);
            }
            present[n] = value + 1;
        } else {
            uint32_t value = 0;
            bool was_there = step % 2 == 0 ? uf__addrmap_remove(&map, addr)
                                           : uf__addrmap_take(&map, addr, &value);
            if (was_there != (present[n] != 0) ||
                (was_there && step % 2 != 0 && value != present[n] - 1)) {
                ck_abort_msg("kind %u, step %" PRIu64 ": a removal is wrong", kind, step);
            }
            present[n] = 0;
        }
        if (step % 5000 == 0) {
            compare_all(&map, kind, present, step);
        }
    }
    compare_all(&map, kind, present, STEP_COUNT);
    uf__addrmap_fini(&map);
}

START_TEST(blocks_of_a_segment_come_and_go)
{
    drive(0);
}
END_TEST

START_TEST(segments_come_and_go)
{
    drive(1);
}
END_TEST

START_TEST(addresses_at_random_come_and_go)
{
    drive(2);
}
END_TEST

int main(void)
{
    return suite_run("addrmap", (const TTest *const[]){
                                    an_empty_map_finds_and_removes_nothing,
                                    address_zero_and_the_highest_address_are_addresses,
                                    setting_twice_keeps_the_last_value_and_one_entry,
                                    at_least_half_of_the_table_stays_empty,
                                    blocks_of_a_segment_come_and_go,
                                    segments_come_and_go,
                                    addresses_at_random_come_and_go,
                                    NULL,
                                });
}
