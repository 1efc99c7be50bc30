/* SPDX-License-Identifier: MIT
 *
 * The block table. */
#include "alloc/block.h"

#include "unit/suite.h"

START_TEST(a_new_table_holds_nothing_but_the_block_that_is_none)
{
    uf_block_table table;
    ck_assert(uf__block_table_init(&table));
    ck_assert_uint_eq(table.count, 1);
    ck_assert_uint_eq(table.capacity, 256);
    ck_assert_uint_eq(table.items[UF_NO_BLOCK].life, UF_LIFE_UNUSED);
    uf__block_table_fini(&table);
    ck_assert_ptr_null(table.items);
}
END_TEST

START_TEST(a_block_is_one_cache_line)
{
    ck_assert_uint_eq(sizeof(uf_block), 64);
}
END_TEST

START_TEST(indices_stay_valid_while_the_table_grows)
{
    uf_block_table table;
    ck_assert(uf__block_table_init(&table));
    for (uint32_t i = 1; i <= 5000; i++) {
        ck_assert(uf__block_reserve(&table, 1));
        uint32_t index = uf__block_take(&table);
        ck_assert_uint_eq(index, i);
        table.items[index] = (uf_block){.addr = i * UINT64_C(512), .life = UF_LIFE_FREE};
    }
    ck_assert_uint_eq(table.count, 5001);
    ck_assert_uint_eq(table.capacity, 8192);
    for (uint32_t i = 1; i <= 5000; i++) {
        ck_assert_uint_eq(table.items[i].addr, i * UINT64_C(512));
    }
    uf__block_table_fini(&table);
}
END_TEST

START_TEST(a_reservation_covers_as_many_takes_as_it_says)
{
    uf_block_table table;
    ck_assert(uf__block_table_init(&table));
    ck_assert(uf__block_reserve(&table, 1000));
    ck_assert_uint_ge(table.capacity - table.count, 1000);
    uint32_t capacity = table.capacity;
    for (uint32_t i = 0; i < 1000; i++) {
        (void)uf__block_take(&table);
    }
    ck_assert_uint_eq(table.capacity, capacity);
    ck_assert_uint_le(table.count, table.capacity);
    uf__block_table_fini(&table);
}
END_TEST

START_TEST(what_was_given_back_last_is_taken_first)
{
    uf_block_table table;
    ck_assert(uf__block_table_init(&table));
    uint32_t first = uf__block_take(&table), second = uf__block_take(&table);
    table.items[first].life = table.items[second].life = UF_LIFE_FREE;
    uf__block_give(&table, first);
    uf__block_give(&table, second);
    ck_assert_uint_eq(table.items[first].life, UF_LIFE_UNUSED);
    ck_assert_uint_eq(uf__block_take(&table), second);
    ck_assert_uint_eq(uf__block_take(&table), first);
    ck_assert_uint_eq(uf__block_take(&table), 3);
    uf__block_table_fini(&table);
}
END_TEST

START_TEST(a_block_with_a_neighbour_on_either_side_is_split)
{
    uf_block block = {0};
    ck_assert(!uf__block_is_split(&block));
    block.prev = 5;
    ck_assert(uf__block_is_split(&block));
    block.prev = UF_NO_BLOCK;
    block.next = 6;
    ck_assert(uf__block_is_split(&block));
}
END_TEST

int main(void)
{
    return suite_run("block", (const TTest *const[]){
                                  a_new_table_holds_nothing_but_the_block_that_is_none,
                                  a_block_is_one_cache_line,
                                  indices_stay_valid_while_the_table_grows,
                                  a_reservation_covers_as_many_takes_as_it_says,
                                  what_was_given_back_last_is_taken_first,
                                  a_block_with_a_neighbour_on_either_side_is_split,
                                  NULL,
                              });
}
