/* SPDX-License-Identifier: MIT
 *
 * Shadows: pages go at once, their old mapping goes when the work is done. */
#include "alloc/shadow.h"

#include "alloc/epoch.h"
#include "unit/paging_bench.h"

/* The middle two of a hole's six pages become loose. */
static uf_stretch cast(paging_bench *b, uint32_t hole)
{
    const uf_block *block = &b->core.blocks.items[hole];
    const uf_stretch middle = {block->region, block->addr + 2 * GRANULE, block->addr + 4 * GRANULE};
    ck_assert_int_eq(uf__shadow_cast(&b->core, hole, &middle), UF_OK);
    paging_check(b);
    return middle;
}

/* What a request would do with loose pages if it ended here. */
static void end(paging_bench *b)
{
    uf__sim_synchronize(&b->sim);
    ck_assert_int_eq(uf__shadow_settle_loose(&b->core), UF_OK);
    paging_fini(b);
}

START_TEST(pages_are_loose_at_once_and_stay_mapped)
{
    paging_bench b;
    paging_init(&b, 64 * MIB);
    uint32_t hole = paging_hole(&b, 6 * GRANULE, 0);
    uint64_t addr = b.core.blocks.items[hole].addr;
    uint32_t count = paging_shelf(&b, hole)->cached.count;
    uint32_t page = uf__page_at(&b.core, b.core.blocks.items[hole].region, addr + 2 * GRANULE);
    uf_stretch middle = cast(&b, hole);
    ck_assert_uint_eq(b.unmaps.count, 0);
    ck_assert_uint_eq(b.core.paging->loose_count[UF_PAGE_SMALL], 2);
    ck_assert(b.core.paging->pages[page].is_loose);
    ck_assert_uint_eq(b.core.paging->pages[page].shadow_count, 1);
    ck_assert(uf__paging_has_shadowed_loose(&b.core));
    ck_assert_uint_eq(uf__page_at(&b.core, middle.region, middle.from), UF_NO_PAGE);
    /* A hole on either side, and nothing goes between them. */
    ck_assert_uint_eq(paging_shelf(&b, hole)->cached.count, count + 1);
    const uf_block *shadow = &b.core.blocks.items[b.core.blocks.items[hole].next];
    ck_assert_int_eq(shadow->life, UF_LIFE_SHADOW);
    ck_assert_uint_eq(shadow->addr, middle.from);
    ck_assert_uint_eq(shadow->size_bytes, 2 * GRANULE);
    end(&b);
}
END_TEST

START_TEST(the_mapping_goes_when_the_work_is_known_to_be_done)
{
    paging_bench b;
    paging_init(&b, 64 * MIB);
    uint32_t hole = paging_hole(&b, 6 * GRANULE, 0);
    uint64_t addr = b.core.blocks.items[hole].addr;
    uint32_t count = paging_shelf(&b, hole)->cached.count;
    uint32_t page = uf__page_at(&b.core, b.core.blocks.items[hole].region, addr + 2 * GRANULE);
    (void)cast(&b, hole);
    ck_assert_int_eq(uf__epoch_close(&b.core), UF_OK);
    ck_assert_int_eq(uf__shadow_clear(&b.core), UF_OK);
    ck_assert_uint_eq(b.core.paging->shadow_count, 1);
    uf__sim_synchronize(&b.sim);
    ck_assert_int_eq(uf__epoch_poll(&b.core), UF_OK);
    ck_assert_int_eq(uf__shadow_clear(&b.core), UF_OK);
    ck_assert_uint_eq(b.core.paging->shadow_count, 0);
    ck_assert_uint_eq(b.unmaps.count, 1);
    ck_assert_uint_eq(b.waits.count, 0);
    ck_assert_uint_eq(b.core.paging->pages[page].shadow_count, 0);
    /* The three are one hole again. */
    ck_assert_uint_eq(paging_shelf(&b, hole)->cached.count, count);
    uint32_t whole =
        uf__freeset_at_least(&paging_shelf(&b, hole)->cached, b.core.blocks.items, 6 * GRANULE, 0);
    ck_assert_uint_eq(b.core.blocks.items[whole].addr, addr);
    ck_assert_uint_eq(b.core.blocks.items[whole].requested_bytes, addr + 2 * GRANULE);
    end(&b);
}
END_TEST

START_TEST(a_loose_page_with_an_old_mapping_is_waited_for_before_it_goes)
{
    paging_bench b;
    paging_init(&b, 64 * MIB);
    (void)cast(&b, paging_hole(&b, 6 * GRANULE, 0));
    ck_assert_int_eq(uf__page_destroy(&b.core, UF_PAGE_SMALL), UF_OK);
    ck_assert_uint_eq(b.waits.count, 1);
    ck_assert_uint_eq(b.unmaps.count, 1); /* first unmapped, or the driver would keep it */
    ck_assert_uint_eq(b.releases.count, 1);
    ck_assert_uint_eq(b.core.paging->shadow_count, 0);
    end(&b);
}
END_TEST

START_TEST(waiting_for_all_takes_every_shadow_away)
{
    paging_bench b;
    paging_init(&b, 64 * MIB);
    uint32_t first = paging_hole(&b, 6 * GRANULE, 0), second = paging_hole(&b, 6 * GRANULE, 1);
    (void)cast(&b, first);
    (void)cast(&b, second);
    ck_assert_uint_eq(b.core.paging->shadow_count, 2);
    ck_assert_int_eq(uf__shadow_wait(&b.core), UF_OK);
    ck_assert_uint_eq(b.core.paging->shadow_count, 0);
    ck_assert_uint_eq(b.waits.count, 2);
    end(&b);
}
END_TEST

START_TEST(a_mapping_that_cannot_be_taken_away_stays_a_shadow)
{
    paging_bench b;
    paging_init(&b, 64 * MIB);
    (void)cast(&b, paging_hole(&b, 6 * GRANULE, 0));
    b.unmaps.failing_count = 1;
    ck_assert_int_eq(uf__shadow_wait(&b.core), UF_ERROR_DEVICE);
    paging_check(&b);
    ck_assert_uint_eq(b.core.paging->shadow_count, 1);
    ck_assert(uf__paging_has_shadowed_loose(&b.core));
    ck_assert_int_eq(uf__shadow_clear(&b.core), UF_OK);
    ck_assert_uint_eq(b.core.paging->shadow_count, 0);
    end(&b);
}
END_TEST

int main(void)
{
    return suite_run("shadow", (const TTest *const[]){
                                   pages_are_loose_at_once_and_stay_mapped,
                                   the_mapping_goes_when_the_work_is_known_to_be_done,
                                   a_loose_page_with_an_old_mapping_is_waited_for_before_it_goes,
                                   waiting_for_all_takes_every_shadow_away,
                                   a_mapping_that_cannot_be_taken_away_stays_a_shadow,
                                   NULL,
                               });
}
