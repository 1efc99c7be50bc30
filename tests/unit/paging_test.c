/* SPDX-License-Identifier: MIT
 *
 * Pages when the driver refuses: what was mapped and can neither be used nor unmapped. */
#include "unit/paging_bench.h"

START_TEST(what_was_mapped_without_access_is_unmapped_again)
{
    paging_bench b;
    uint32_t block = UF_NO_BLOCK;
    paging_init(&b, 64 * MIB);
    b.accesses.failing_count = 1;
    ck_assert_int_eq(uf__core_alloc(&b.core, 4 * GRANULE, 0, UF_DEFAULT_POOL, &block),
                     UF_ERROR_DEVICE);
    paging_check(&b);
    ck_assert_uint_eq(b.unmaps.count, 1);
    ck_assert_uint_eq(b.core.paging->closed_count, 0);
    ck_assert_uint_eq(block, UF_NO_BLOCK);
    ck_assert_uint_eq(b.core.total_bytes, b.core.paging->loose_bytes);
    paging_give(&b, paging_take(&b, 4 * GRANULE, 0));
    paging_fini(&b);
}
END_TEST

/* Neither access nor unmapping. */
static void close_pages(paging_bench *b)
{
    uint32_t block = UF_NO_BLOCK;
    b->accesses.failing_count = 1;
    b->unmaps.failing_count = 1;
    ck_assert_int_eq(uf__core_alloc(&b->core, 4 * GRANULE, 0, UF_DEFAULT_POOL, &block),
                     UF_ERROR_DEVICE);
    paging_check(b);
    ck_assert_uint_eq(block, UF_NO_BLOCK);
    ck_assert_uint_eq(b->core.paging->closed_count, 4);
    ck_assert_uint_eq(b->core.paging->loose_bytes, 0); /* they are where they are */
    ck_assert_uint_eq(b->core.total_bytes, 4 * GRANULE);
}

START_TEST(closed_pages_are_opened_before_a_block_gets_them)
{
    paging_bench b;
    paging_init(&b, 64 * MIB);
    close_pages(&b);
    /* No hole may be handed out without a look at the pages in it. */
    uint32_t index = uf__freeset_at_least(&b.core.shelves[1]->cached, b.core.blocks.items, 0, 0);
    ck_assert_uint_eq(b.core.blocks.items[index].requested_bytes, b.core.blocks.items[index].addr);
    uint64_t accesses = b.accesses.count;
    uint32_t block = paging_take(&b, 3 * GRANULE, 0);
    ck_assert_uint_eq(b.accesses.count, accesses + 3);
    ck_assert_uint_eq(b.core.paging->closed_count, 1);
    ck_assert_uint_eq(b.core.total_bytes, 4 * GRANULE);
    paging_give(&b, block);
    /* The fourth is opened when it is wanted, and the others are not asked for again. */
    block = paging_take(&b, 4 * GRANULE, 0);
    ck_assert_uint_eq(b.accesses.count, accesses + 4);
    ck_assert_uint_eq(b.core.paging->closed_count, 0);
    paging_give(&b, block);
    paging_fini(&b);
}
END_TEST

START_TEST(a_page_that_cannot_be_opened_fails_the_request_and_stays_closed)
{
    paging_bench b;
    uint32_t block = UF_NO_BLOCK;
    paging_init(&b, 64 * MIB);
    close_pages(&b);
    b.accesses.failing_count = 1;
    ck_assert_int_eq(uf__core_alloc(&b.core, 2 * GRANULE, 0, UF_DEFAULT_POOL, &block),
                     UF_ERROR_DEVICE);
    paging_check(&b);
    ck_assert_uint_eq(b.core.paging->closed_count, 4);
    paging_give(&b, paging_take(&b, 2 * GRANULE, 0));
    ck_assert_uint_eq(b.core.paging->closed_count, 2);
    paging_fini(&b);
}
END_TEST

START_TEST(closed_pages_serve_elsewhere_like_any_others)
{
    paging_bench b;
    paging_init(&b, 4 * GRANULE);
    close_pages(&b);
    uint32_t block = paging_take(&b, 4 * GRANULE, 1); /* another stream: another region */
    ck_assert_uint_eq(b.core.paging->closed_count, 0);
    ck_assert_uint_eq(b.core.total_bytes, 4 * GRANULE);
    paging_give(&b, block);
    paging_fini(&b);
}
END_TEST

START_TEST(closed_pages_are_given_back)
{
    paging_bench b;
    paging_init(&b, 64 * MIB);
    close_pages(&b);
    ck_assert_int_eq(uf__core_empty_cache(&b.core), UF_OK);
    paging_check(&b);
    ck_assert_uint_eq(b.core.total_bytes, 0);
    ck_assert_uint_eq(b.sim.in_use_bytes, 0);
    ck_assert_uint_eq(b.core.paging->closed_count, 0);
    paging_fini(&b);
}
END_TEST

int main(void)
{
    return suite_run("paging", (const TTest *const[]){
                                   what_was_mapped_without_access_is_unmapped_again,
                                   closed_pages_are_opened_before_a_block_gets_them,
                                   a_page_that_cannot_be_opened_fails_the_request_and_stays_closed,
                                   closed_pages_serve_elsewhere_like_any_others,
                                   closed_pages_are_given_back,
                                   NULL,
                               });
}
