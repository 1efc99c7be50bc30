/* SPDX-License-Identifier: MIT
 *
 * The free set against a sorted array. */
#include "alloc/freeset.h"

#include <inttypes.h>
#include <string.h>

#include "unit/suite.h"

enum { BLOCK_COUNT = 4000, EQUAL_COUNT = 20000 };

/* The sorted array: indices of blocks in order. */
typedef struct oracle {
    uint32_t items[EQUAL_COUNT + 1];
    uint32_t count;
} oracle;

static uf_freeset set;
static oracle sorted;
static uf_block blocks[EQUAL_COUNT + 1];
static uint32_t listed[EQUAL_COUNT + 1];

static bool is_less(uint64_t size_a, uint64_t addr_a, uint64_t size_b, uint64_t addr_b)
{
    return size_a < size_b || (size_a == size_b && addr_a < addr_b);
}

/* How many blocks of the array are less than (size, addr). */
static uint32_t rank_of(uint64_t size_bytes, uint64_t addr)
{
    uint32_t low = 0, high = sorted.count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        const uf_block *block = &blocks[sorted.items[middle]];
        if (is_less(block->size_bytes, block->addr, size_bytes, addr)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void insert(uint32_t index)
{
    uint32_t at = rank_of(blocks[index].size_bytes, blocks[index].addr);
    memmove(&sorted.items[at + 1], &sorted.items[at], (sorted.count - at) * sizeof(uint32_t));
    sorted.items[at] = index;
    sorted.count++;
    uf__freeset_insert(&set, blocks, index);
}

static void take_out(uint32_t index)
{
    uint32_t at = rank_of(blocks[index].size_bytes, blocks[index].addr);
    sorted.count--;
    memmove(&sorted.items[at], &sorted.items[at + 1], (sorted.count - at) * sizeof(uint32_t));
    uf__freeset_remove(&set, blocks, index);
}

static uint32_t nth(uint32_t at)
{
    return at < sorted.count ? sorted.items[at] : UF_NO_BLOCK;
}

/* What an allocation does: the first block of a size, and out with it. */
static void find_and_put_back(uint64_t size_bytes)
{
    uint32_t rank = rank_of(size_bytes, 0);
    uf_freeset_spot spot;
    uint32_t found = uf__freeset_find(&set, blocks, size_bytes, &spot);
    ck_assert_uint_eq(found, nth(rank));
    if (found != UF_NO_BLOCK) {
        uf__freeset_remove_at(&set, blocks, spot);
        ck_assert_uint_eq(uf__freeset_at_least(&set, blocks, size_bytes, 0), nth(rank + 1));
        uf__freeset_insert(&set, blocks, found);
    }
}

/* Every question about one key. */
static void ask(uint64_t size_bytes, uint64_t addr)
{
    uint32_t rank = rank_of(size_bytes, addr);
    uint32_t found = uf__freeset_at_least(&set, blocks, size_bytes, addr);
    uint32_t before = uf__freeset_before(&set, blocks, size_bytes, addr);
    bool is_right = found == nth(rank) && before == (rank == 0 ? UF_NO_BLOCK : nth(rank - 1));
    if (is_right && found != UF_NO_BLOCK) {
        is_right = uf__freeset_after(&set, blocks, found) == nth(rank + 1);
    }
    if (!is_right) {
        ck_abort_msg("wrong around (%" PRIu64 ", %" PRIu64 ") with %" PRIu32 " blocks", size_bytes,
                     addr, sorted.count);
    }
}

static void compare_lists(void)
{
    ck_assert_uint_eq(set.count, sorted.count);
    uf__freeset_list(&set, blocks, listed);
    ck_assert_mem_eq(listed, sorted.items, sorted.count * sizeof(uint32_t));
}

/* kind 0: a few sizes; 1: small ones; 2: all magnitudes; 3: one size. */
static uint64_t size_of(unsigned kind, uint64_t *random)
{
    uint64_t number = suite_random(random);
    switch (kind) {
    case 0:
        return UINT64_C(512) << number % 8;
    case 1:
        return 512 * (1 + number % 64);
    case 2:
        return (512 + number % 512 * 512) << (number >> 32) % 30;
    default:
        return 2097152;
    }
}

static void drive(unsigned kind, unsigned step_count)
{
    static bool is_in[BLOCK_COUNT + 1];
    uint64_t random = 4711 + kind;
    for (unsigned step = 0; step < step_count; step++) {
        uint32_t index = (uint32_t)(1 + suite_random(&random) % BLOCK_COUNT);
        bool is_filling = step / 8000 % 2 == 0;
        if (is_in[index] && suite_random(&random) % 4 >= (is_filling ? 3u : 0u)) {
            take_out(index);
            is_in[index] = false;
        } else if (!is_in[index] && suite_random(&random) % 4 >= (is_filling ? 0u : 3u)) {
            blocks[index] = (uf_block){.addr = suite_random(&random) % 100000000 * 512 + 512,
                                       .size_bytes = size_of(kind, &random)};
            insert(index);
            is_in[index] = true;
        }
        ask(size_of(kind, &random), suite_random(&random) % 2 == 0 ? 0 : blocks[index].addr);
        ask(blocks[index].size_bytes, blocks[index].addr);
        find_and_put_back(size_of(kind, &random));
        if (step % 1000 == 0) {
            compare_lists();
        }
    }
    compare_lists();
    while (sorted.count > 0) {
        take_out(sorted.items[suite_random(&random) % sorted.count]);
    }
    compare_lists();
    ck_assert_uint_eq(set.summary, 0);
}

START_TEST(a_few_sizes_keep_the_order)
{
    drive(0, 40000);
}
END_TEST

START_TEST(small_sizes_keep_the_order)
{
    drive(1, 40000);
}
END_TEST

START_TEST(all_magnitudes_keep_the_order)
{
    drive(2, 40000);
}
END_TEST

START_TEST(one_size_keeps_the_order_of_addresses)
{
    drive(3, 40000);
}
END_TEST

static uint32_t depth_of(uint32_t node)
{
    if (node == UF_NO_BLOCK) {
        return 0;
    }
    uint32_t left = depth_of(blocks[node].child[0]), right = depth_of(blocks[node].child[1]);
    return 1 + (left > right ? left : right);
}

/* downwards: the highest address first. */
static void fill_one_bin(bool is_downwards)
{
    for (uint32_t i = 1; i <= EQUAL_COUNT; i++) {
        uint32_t place = is_downwards ? EQUAL_COUNT + 1 - i : i;
        blocks[i] = (uf_block){.addr = place * UINT64_C(1048576), .size_bytes = 1048576};
        insert(i);
    }
    ck_assert_uint_le(depth_of(set.roots[uf__freeset_bin(1048576)]), 64);
    compare_lists();
    uint64_t random = 1;
    for (uint32_t i = 0; i < EQUAL_COUNT / 2; i++) {
        take_out(sorted.items[suite_random(&random) % sorted.count]);
    }
    compare_lists();
    ck_assert_uint_le(depth_of(set.roots[uf__freeset_bin(1048576)]), 64);
    for (uint32_t i = 0; i < 1000; i++) {
        ask(1048576, suite_random(&random) % (EQUAL_COUNT * UINT64_C(1048576)));
    }
}

START_TEST(twenty_thousand_equal_blocks_by_rising_address_stay_shallow)
{
    fill_one_bin(false);
}
END_TEST

START_TEST(twenty_thousand_equal_blocks_by_falling_address_stay_shallow)
{
    fill_one_bin(true);
}
END_TEST

START_TEST(bins_rise_with_the_size_and_stay_in_range)
{
    uint32_t last = 0;
    for (uint64_t size_bytes = 512; size_bytes < 131072; size_bytes += 512) {
        ck_assert_uint_eq(uf__freeset_bin(size_bytes), last + 1);
        last++;
    }
    ck_assert_uint_eq(last + 1, UF_FREESET_EXACT_BIN_COUNT);
    for (unsigned log2 = 17; log2 < 47; log2++) {
        for (uint64_t part = 0; part < 128; part++) {
            uint64_t width_bytes = UINT64_C(1) << (log2 - 7);
            uint64_t size_bytes = (UINT64_C(1) << log2) + part * width_bytes;
            uint32_t bin = uf__freeset_bin(size_bytes);
            ck_assert_uint_eq(bin, last + 1);
            ck_assert_uint_eq(uf__freeset_bin(size_bytes + width_bytes - 1), bin);
            last = bin;
        }
    }
    ck_assert_uint_eq(last, UF_FREESET_BIN_COUNT - 1);
    ck_assert_uint_eq(uf__freeset_bin(UINT64_C(1) << 60), UF_FREESET_BIN_COUNT - 1);
    ck_assert_uint_eq(uf__freeset_bin(UINT64_MAX), UF_FREESET_BIN_COUNT - 1);
}
END_TEST

START_TEST(the_largest_sizes_share_a_bin)
{
    blocks[1] = (uf_block){.addr = 512, .size_bytes = UINT64_C(1) << 60};
    blocks[2] = (uf_block){.addr = 1024, .size_bytes = UINT64_MAX - 511};
    insert(1);
    insert(2);
    ask(0, 0);
    ask(UINT64_C(1) << 60, 513);
    find_and_put_back(512);
    find_and_put_back((UINT64_C(1) << 60) + 512);
    find_and_put_back(UINT64_MAX);
    ask(UINT64_MAX, UINT64_MAX);
    compare_lists();
}
END_TEST

START_TEST(an_empty_set_answers_none)
{
    ask(0, 0);
    ask(UINT64_MAX, UINT64_MAX);
    find_and_put_back(512);
    find_and_put_back(UINT64_MAX);
    listed[0] = 77;
    uf__freeset_list(&set, blocks, listed);
    ck_assert_uint_eq(listed[0], 77);
}
END_TEST

int main(void)
{
    return suite_run("freeset", (const TTest *const[]){
                                    a_few_sizes_keep_the_order,
                                    small_sizes_keep_the_order,
                                    all_magnitudes_keep_the_order,
                                    one_size_keeps_the_order_of_addresses,
                                    twenty_thousand_equal_blocks_by_rising_address_stay_shallow,
                                    twenty_thousand_equal_blocks_by_falling_address_stay_shallow,
                                    bins_rise_with_the_size_and_stay_in_range,
                                    the_largest_sizes_share_a_bin,
                                    an_empty_set_answers_none,
                                    NULL,
                                });
}
