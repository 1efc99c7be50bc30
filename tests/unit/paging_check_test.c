/* SPDX-License-Identifier: MIT
 *
 * The checker of pages notices each way in which they can be wrong, and says which. */
#include "alloc/paging_check.h"

#include <string.h>

#include "alloc/shadow.h"
#include "unit/paging_bench.h"

/* A block of two large and one small page, a hole of four pages, a loose page, a shadow of two. */
typedef struct scene {
    paging_bench b;
    uint32_t large, active, hole, shadow;
} scene;

static void scene_init(scene *s)
{
    paging_bench *b = &s->b;
    paging_init(b, 256 * MIB);
    s->large = paging_take(b, 2 * LARGE + GRANULE, 0);
    s->active = paging_take(b, 3 * GRANULE, 0);
    s->hole = paging_hole(b, 4 * GRANULE, 0);
    uint32_t other = paging_hole(b, 2 * GRANULE, 1);
    const uf_block *block = &b->core.blocks.items[other];
    const uf_stretch whole = {block->region, block->addr, block->addr + 2 * GRANULE};
    ck_assert_int_eq(uf__shadow_cast(&b->core, other, &whole), UF_OK);
    s->shadow = b->core.paging->shadows[0].block;
    paging_check(b);
}

/* It is found, under that name. What was broken is put right by the caller. */
static void expect(const scene *s, const char *part)
{
    int64_t reserved_bytes[UF_CLASS_COUNT] = {0};
    uf_error error = {UF_OK, ""};
    ck_assert_int_eq(uf__paging_check(&s->b.core, 0, reserved_bytes, &error), UF_ERROR_INTERNAL);
    ck_assert_msg(strstr(error.text, part) != NULL, "'%s' is not in: %s", part, error.text);
}

static void scene_fini(scene *s)
{
    paging_check(&s->b);
    ck_assert_int_eq(uf__shadow_wait(&s->b.core), UF_OK);
    paging_fini(&s->b);
}

static uf_block *block_of(scene *s, uint32_t index)
{
    return &s->b.core.blocks.items[index];
}

/* The entry of the page table for an address in a block. */
static uint32_t *entry(scene *s, uint32_t index, uint64_t offset)
{
    const uf_block *block = block_of(s, index);
    uf_region *region = &s->b.core.regions[block->region];
    return &region->pages[(block->addr + offset - region->addr) / region->page_bytes];
}

START_TEST(a_granule_must_name_a_page_that_is_mapped_there)
{
    scene s;
    scene_init(&s);
    uint32_t *place = entry(&s, s.active, GRANULE), page = *place;
    *place = s.b.core.paging->page_count;
    expect(&s, "a granule names a page that is not mapped");
    *place = s.b.core.paging->loose[UF_PAGE_SMALL];
    expect(&s, "a granule names a page that is not mapped");
    *place = *entry(&s, s.active, 0);
    expect(&s, "a granule names a page that is mapped elsewhere");
    *place = UF_NO_PAGE;
    expect(&s, "an active block has no page somewhere");
    *place = page;
    scene_fini(&s);
}
END_TEST

START_TEST(a_large_page_must_not_lie_half_in_a_block)
{
    scene s;
    scene_init(&s);
    uf_block *block = block_of(&s, s.large);
    ck_assert_int_eq(s.b.core.paging->pages[*entry(&s, s.large, 0)].size, UF_PAGE_LARGE);
    block->size_bytes -= 2 * GRANULE; /* its last small page, and a part of a large one */
    expect(&s, "a large page lies half inside a block");
    block->size_bytes += 2 * GRANULE;
    block->addr += GRANULE;
    block->size_bytes -= GRANULE;
    expect(&s, "a large page lies half inside a block");
    block->addr -= GRANULE;
    block->size_bytes += GRANULE;
    scene_fini(&s);
}
END_TEST

START_TEST(what_is_known_of_a_hole_must_be_so)
{
    scene s;
    scene_init(&s);
    uf_block *hole = block_of(&s, s.hole);
    uint64_t known = hole->requested_bytes;
    ck_assert_uint_eq(known, hole->addr + 4 * GRANULE);
    hole->requested_bytes = hole->addr + hole->size_bytes + 512;
    expect(&s, "a hole's known pages end outside it");
    hole->requested_bytes = hole->addr - 512;
    expect(&s, "a hole's known pages end outside it");
    hole->requested_bytes = known;
    uint32_t *place = entry(&s, s.hole, 2 * GRANULE), page = *place;
    *place = UF_NO_PAGE;
    expect(&s, "a hole has no page where one is known");
    hole->requested_bytes = hole->addr;
    expect(&s, "mapped and loose pages are not all pages");
    hole->requested_bytes = known;
    *place = page;
    scene_fini(&s);
}
END_TEST

START_TEST(the_list_of_loose_pages_must_be_right)
{
    scene s;
    scene_init(&s);
    uf_paging *paging = s.b.core.paging;
    uf_page *loose = &paging->pages[paging->loose[UF_PAGE_SMALL]];
    loose->is_loose = false;
    expect(&s, "the list of loose pages is wrong");
    loose->is_loose = true;
    loose->size = UF_PAGE_LARGE;
    expect(&s, "the list of loose pages is wrong");
    loose->size = UF_PAGE_SMALL;
    paging->loose_count[UF_PAGE_SMALL]++;
    expect(&s, "the count of loose pages is wrong");
    paging->loose_count[UF_PAGE_SMALL]--;
    paging->loose_bytes += GRANULE;
    expect(&s, "the bytes of all pages are not what is held");
    paging->loose_bytes -= GRANULE;
    s.b.core.total_bytes += GRANULE;
    expect(&s, "the bytes of all pages are not what is held");
    s.b.core.total_bytes -= GRANULE;
    scene_fini(&s);
}
END_TEST

START_TEST(a_list_of_loose_pages_that_never_ends_is_no_hang)
{
    scene s;
    scene_init(&s);
    uf_paging *paging = s.b.core.paging;
    uf_page *loose = &paging->pages[paging->loose[UF_PAGE_SMALL]];
    uint32_t next = loose->next;
    loose->next = paging->loose[UF_PAGE_SMALL];
    expect(&s, "the count of loose pages is wrong");
    loose->next = next;
    scene_fini(&s);
}
END_TEST

START_TEST(a_shadow_must_have_no_pages)
{
    scene s;
    scene_init(&s);
    block_of(&s, s.active)->life = UF_LIFE_SHADOW;
    expect(&s, "a shadow has pages");
    block_of(&s, s.active)->life = UF_LIFE_ALLOCATED;
    block_of(&s, s.shadow)->life = UF_LIFE_ALLOCATED;
    expect(&s, "an active block has no page somewhere");
    block_of(&s, s.shadow)->life = UF_LIFE_SHADOW;
    scene_fini(&s);
}
END_TEST

START_TEST(the_bytes_of_each_class_are_added_up)
{
    scene s;
    scene_init(&s);
    int64_t reserved_bytes[UF_CLASS_COUNT] = {0};
    uf_error error;
    ck_assert_int_eq(uf__paging_check(&s.b.core, 0, reserved_bytes, &error), UF_OK);
    ck_assert_int_eq(reserved_bytes[UF_CLASS_SMALL], 0);
    ck_assert_int_eq(reserved_bytes[UF_CLASS_LARGE], (int64_t)s.b.core.total_bytes);
    scene_fini(&s);
}
END_TEST

int main(void)
{
    return suite_run("paging_check", (const TTest *const[]){
                                         a_granule_must_name_a_page_that_is_mapped_there,
                                         a_large_page_must_not_lie_half_in_a_block,
                                         what_is_known_of_a_hole_must_be_so,
                                         the_list_of_loose_pages_must_be_right,
                                         a_list_of_loose_pages_that_never_ends_is_no_hang,
                                         a_shadow_must_have_no_pages,
                                         the_bytes_of_each_class_are_added_up,
                                         NULL,
                                     });
}
