/* SPDX-License-Identifier: MIT
 *
 * Holes: what is left where a piece is cut out, what becomes one, and what is known of pages. */
#include "unit/paging_bench.h"

static const uf_block *block_of(const paging_bench *b, uint32_t index)
{
    return &b->core.blocks.items[index];
}

START_TEST(a_piece_cut_out_leaves_a_hole_on_either_side)
{
    paging_bench b;
    paging_init(&b, 0);
    uint32_t hole = paging_hole(&b, 8 * GRANULE, 0);
    uint64_t addr = block_of(&b, hole)->addr;
    uint32_t count = paging_shelf(&b, hole)->cached.count;
    ck_assert(uf__block_reserve(&b.core.blocks, 2));
    uint32_t piece = uf__hole_cut_out(&b.core, hole, addr + 3 * GRANULE, addr + 5 * GRANULE);
    ck_assert_uint_ne(piece, hole); /* the one before keeps its name */
    ck_assert_uint_eq(paging_shelf(&b, hole)->cached.count, count + 1);
    ck_assert_uint_eq(block_of(&b, hole)->addr, addr);
    ck_assert_uint_eq(block_of(&b, hole)->size_bytes, 3 * GRANULE);
    ck_assert_uint_eq(block_of(&b, piece)->addr, addr + 3 * GRANULE);
    ck_assert_uint_eq(block_of(&b, piece)->size_bytes, 2 * GRANULE);
    const uf_block *rear = block_of(&b, block_of(&b, piece)->next);
    ck_assert_uint_eq(rear->addr, addr + 5 * GRANULE);
    ck_assert_uint_eq(rear->size_bytes, 3 * GRANULE);
    ck_assert_int_eq(rear->life, UF_LIFE_FREE);
    ck_assert_uint_eq(rear->requested_bytes, addr + 8 * GRANULE); /* its pages are known */
    ck_assert_uint_eq(block_of(&b, hole)->requested_bytes, addr + 3 * GRANULE);
    uf__hole_put(&b.core, piece);
    ck_assert_uint_eq(paging_shelf(&b, piece)->cached.count, count);
    paging_fini(&b);
}
END_TEST

START_TEST(a_piece_at_an_end_leaves_one_hole_and_a_whole_one_none)
{
    static const uint64_t from[] = {0, 5, 0}, to[] = {3, 8, 8}, more[] = {0, 0, UINT64_MAX};
    for (int i = 0; i < 3; i++) {
        paging_bench b;
        paging_init(&b, 0);
        uint32_t hole = paging_hole(&b, 8 * GRANULE, 0);
        uint64_t addr = block_of(&b, hole)->addr, count = paging_shelf(&b, hole)->cached.count;
        ck_assert(uf__block_reserve(&b.core.blocks, 2));
        uint32_t piece =
            uf__hole_cut_out(&b.core, hole, addr + from[i] * GRANULE, addr + to[i] * GRANULE);
        ck_assert_uint_eq(block_of(&b, piece)->addr, addr + from[i] * GRANULE);
        ck_assert_uint_eq(block_of(&b, piece)->size_bytes, (to[i] - from[i]) * GRANULE);
        ck_assert_uint_eq(paging_shelf(&b, piece)->cached.count, count + more[i]);
        uf__hole_put(&b.core, piece);
        paging_fini(&b);
    }
}
END_TEST

START_TEST(holes_that_touch_are_one_and_the_youngest_counts)
{
    paging_bench b;
    paging_init(&b, 0);
    uint32_t blocks[5];
    for (int i = 0; i < 5; i++) {
        blocks[i] = paging_take(&b, 2 * GRANULE, 0);
    }
    uint64_t addr = block_of(&b, blocks[1])->addr;
    paging_give(&b, blocks[3]);
    paging_give(&b, blocks[1]);
    uint64_t youngest = b.core.paging->free_sequence;
    ck_assert_uint_eq(block_of(&b, blocks[1])->age_base, youngest);
    /* A block that was never freed itself joins them. */
    b.core.blocks.items[blocks[2]].age_base = 0;
    uf__counter_decrease(&b.core.counters, UF_COUNTER_ACTIVE, UF_CLASS_LARGE, 1);
    uf__hole_put(&b.core, blocks[2]);
    const uf_block *whole = block_of(&b, blocks[2]);
    ck_assert_uint_eq(whole->addr, addr);
    ck_assert_uint_eq(whole->size_bytes, 6 * GRANULE);
    ck_assert_uint_eq(whole->age_base, youngest);
    ck_assert_uint_eq(whole->requested_bytes, addr + 6 * GRANULE);
    uf__core_fini(&b.core);
}
END_TEST

START_TEST(known_pages_end_at_the_first_gap_and_at_a_closed_page)
{
    paging_bench b;
    paging_init(&b, 64 * MIB);
    uint32_t index = paging_hole(&b, 8 * GRANULE, 0);
    uf_block *hole = &b.core.blocks.items[index];
    uint64_t addr = hole->addr, end = addr + 8 * GRANULE;
    uf__hole_renew(&b.core, hole);
    ck_assert_uint_eq(hole->requested_bytes, end);
    uint32_t page = uf__page_at(&b.core, hole->region, addr + 5 * GRANULE);
    b.core.paging->pages[page].is_closed = true;
    uf__hole_renew(&b.core, hole);
    ck_assert_uint_eq(hole->requested_bytes, addr + 5 * GRANULE);
    b.core.paging->pages[page].is_closed = false;
    const uf_stretch gap = {hole->region, addr + 2 * GRANULE, addr + 3 * GRANULE};
    ck_assert_int_eq(uf__pages_unmap(&b.core, &gap), UF_OK);
    uf__hole_renew(&b.core, hole);
    ck_assert_uint_eq(hole->requested_bytes, addr + 2 * GRANULE);
    const uf_stretch first = {hole->region, addr, addr + GRANULE};
    ck_assert_int_eq(uf__pages_unmap(&b.core, &first), UF_OK);
    uf__hole_renew(&b.core, hole);
    ck_assert_uint_eq(hole->requested_bytes, addr); /* never in front of it */
    paging_fini(&b);
}
END_TEST

START_TEST(known_pages_end_with_the_hole_also_inside_a_granule)
{
    paging_bench b;
    paging_init(&b, 0);
    uint32_t index = paging_hole(&b, 4 * GRANULE + 512, 0);
    uf_block *hole = &b.core.blocks.items[index];
    ck_assert_uint_ne(uf__block_end(hole) % GRANULE, 0);
    uf__hole_renew(&b.core, hole);
    ck_assert_uint_eq(hole->requested_bytes, uf__block_end(hole));
    paging_fini(&b);
}
END_TEST

START_TEST(only_granules_that_lie_wholly_in_a_hole_are_its_own)
{
    paging_bench b;
    paging_init(&b, 0);
    (void)paging_take(&b, GRANULE + 512, 0);
    uint32_t hole = paging_take(&b, 4 * GRANULE, 0);
    (void)paging_take(&b, GRANULE, 0);
    paging_give(&b, hole);
    const uf_block *block = block_of(&b, hole);
    uf_stretch whole = uf__hole_granules(&b.core, block);
    ck_assert_uint_eq(whole.from, block->addr - 512 + GRANULE);
    ck_assert_uint_eq(whole.to, block->addr - 512 + 4 * GRANULE);
    paging_fini(&b);
}
END_TEST

int main(void)
{
    return suite_run("hole", (const TTest *const[]){
                                 a_piece_cut_out_leaves_a_hole_on_either_side,
                                 a_piece_at_an_end_leaves_one_hole_and_a_whole_one_none,
                                 holes_that_touch_are_one_and_the_youngest_counts,
                                 known_pages_end_at_the_first_gap_and_at_a_closed_page,
                                 known_pages_end_with_the_hole_also_inside_a_granule,
                                 only_granules_that_lie_wholly_in_a_hole_are_its_own,
                                 NULL,
                             });
}
