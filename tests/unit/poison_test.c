/* SPDX-License-Identifier: MIT
 *
 * Which freed memory is filled, against an array that has an entry for each byte. */
#include "alloc/poison.h"

#include "unit/suite.h"

enum { SPACE = 200, STEPS = 3000, BASE = 1000 };

/* The map says of each byte what the array says, and its stretches are in order. */
static void compare(const uf_poison_map *map, const uint64_t *owner)
{
    uint64_t end = 0;
    for (uint32_t i = 0; i < map->count; i++) {
        ck_assert_uint_ge(map->items[i].addr, end);
        ck_assert_uint_gt(map->items[i].size_bytes, 0);
        end = map->items[i].addr + map->items[i].size_bytes;
    }
    uint64_t wrong_count = 0;
    for (uint64_t at = 0; at < SPACE; at++) {
        uint32_t found = uf__poison_find(map, BASE + at);
        bool is_in = found < map->count && map->items[found].addr <= BASE + at;
        wrong_count += (is_in ? map->items[found].origin_addr : 0) != owner[at];
    }
    ck_assert_uint_eq(wrong_count, 0);
}

START_TEST(each_byte_belongs_to_the_block_that_was_freed_last)
{
    uint64_t owner[SPACE] = {0}, random = 1;
    uf_poison_map map = {0};
    for (uint64_t step = 1; step <= STEPS; step++) {
        uint64_t n = suite_random(&random), from = n % SPACE;
        uint64_t bytes = 1 + n / SPACE % (SPACE - from);
        bool is_added = n / SPACE / SPACE % 2 == 0;
        if (is_added) {
            ck_assert(uf__poison_add(
                &map, &(uf_poison){.addr = BASE + from, .size_bytes = bytes, .origin_addr = step}));
        } else {
            uf__poison_drop(&map, BASE + from, bytes);
        }
        for (uint64_t at = from; at < from + bytes; at++) {
            owner[at] = is_added ? step : 0;
        }
        compare(&map, owner);
    }
    uf__poison_fini(&map);
}
END_TEST

START_TEST(what_is_too_much_is_not_kept)
{
    uf_poison_map map = {0};
    for (uint64_t i = 0; i < UF_POISON_MOST; i++) {
        ck_assert(
            uf__poison_add(&map, &(uf_poison){.addr = 4 * i, .size_bytes = 3, .origin_addr = i}));
    }
    ck_assert(!uf__poison_add(&map, &(uf_poison){.addr = 3, .size_bytes = 1}));
    /* A cut in the middle has no room for its rear. */
    uf__poison_drop(&map, 1, 1);
    ck_assert_uint_eq(map.count, UF_POISON_MOST);
    ck_assert_uint_eq(map.items[0].size_bytes, 1);
    ck_assert_uint_eq(map.items[1].addr, 4);
    uf__poison_fini(&map);
}
END_TEST

int main(void)
{
    return suite_run("poison", (const TTest *const[]){
                                   each_byte_belongs_to_the_block_that_was_freed_last,
                                   what_is_too_much_is_not_kept,
                                   NULL,
                               });
}
