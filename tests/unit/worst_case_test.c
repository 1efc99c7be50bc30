/* SPDX-License-Identifier: MIT
 *
 * The sequences that come nearest to the worst case of the unfrag policy's promise (docs/internals/
 * unfrag-policy.md): every page is held by as little as can be, and then the largest request that
 * must still fit is served, and one byte more is refused, with the terms in the text. */
#include "unit/suite.h"
#include "unit/allocator_fixture.h"

#define PAGE_BYTES (2 * MIB)
#define SMALLEST_BYTES UINT64_C(512)

enum { PIN_COUNT = 24, LIMIT_PAGES = 40 };

static void paged_init(fixture *f)
{
    uf_allocator_options options = fixture_options(f, NULL);
    options.policy = UF_POLICY_UNFRAG;
    options.limit_bytes = LIMIT_PAGES * PAGE_BYTES;
    fixture_make(f, &options);
}

/* One block of 512 bytes at the start of each of so many pages: what was between them is given
 * back. */
static void pin_pages(fixture *f, uint64_t pins[], int count)
{
    static uint64_t between[LIMIT_PAGES][2];
    for (int i = 0; i < count; i++) {
        pins[i] = take(f, SMALLEST_BYTES, 0);
        ck_assert_uint_eq(pins[i] % PAGE_BYTES, pins[0] % PAGE_BYTES);
        between[i][0] = take(f, 1 * MIB, 0);
        between[i][1] = take(f, 1 * MIB - SMALLEST_BYTES, 0);
    }
    for (int i = 0; i < count; i++) {
        give(f, between[i][0]);
        give(f, between[i][1]);
    }
}

/* So many pages are all that a request can have: it gets them all. So many bytes more it does not
 * get; the text says why. */
static void expect_pages_left(fixture *f, uint64_t count, uint64_t more_bytes, const char *text)
{
    uint64_t addr = 77;
    refuses(f, UF_ERROR_OUT_OF_MEMORY,
            uf_alloc(f->allocator, count * PAGE_BYTES + more_bytes, 0, &addr, &f->error), text);
    ck_assert_uint_eq(addr, 77);
    addr = take(f, count * PAGE_BYTES, 0);
    ck_assert_int_le(reserved_of(f), LIMIT_PAGES * (int64_t)PAGE_BYTES);
    give(f, addr);
}

START_TEST(a_page_is_held_by_one_block_of_512_bytes_and_the_rest_is_served)
{
    fixture f;
    uint64_t pins[PIN_COUNT];
    paged_init(&f);
    pin_pages(&f, pins, PIN_COUNT);
    ck_assert_int_eq(stats_of(&f).active_bytes.all.current, PIN_COUNT * SMALLEST_BYTES);
    expect_pages_left(&f, LIMIT_PAGES - PIN_COUNT, 1, "under active blocks 48.00 MiB");
    /* Each pin that goes brings a page, wherever it was. */
    for (int i = 0; i < PIN_COUNT; i += 2) {
        give(&f, pins[i]);
    }
    expect_pages_left(&f, LIMIT_PAGES - PIN_COUNT / 2, 1, "under active blocks 24.00 MiB");
    fixture_fini(&f);
}
END_TEST

START_TEST(every_page_of_the_limit_is_held_and_small_requests_are_served_still)
{
    fixture f;
    uint64_t pins[LIMIT_PAGES], addr = 77, between[2 * LIMIT_PAGES];
    paged_init(&f);
    pin_pages(&f, pins, LIMIT_PAGES);
    refuses(&f, UF_ERROR_OUT_OF_MEMORY, uf_alloc(f.allocator, 1 * MIB + 1, 0, &addr, &f.error),
            "under active blocks 80.00 MiB");
    /* What is left of the pages is no less to the last byte: it serves small requests. */
    for (int i = 0; i < LIMIT_PAGES; i++) {
        between[2 * i] = take(&f, 1 * MIB, 0);
        between[2 * i + 1] = take(&f, 1 * MIB - SMALLEST_BYTES, 0);
    }
    ck_assert_int_eq(stats_of(&f).active_bytes.all.current, LIMIT_PAGES * (int64_t)PAGE_BYTES);
    refuses(&f, UF_ERROR_OUT_OF_MEMORY, uf_alloc(f.allocator, 1, 0, &addr, &f.error),
            "cached and movable 0 B");
    for (int i = 0; i < 2 * LIMIT_PAGES; i++) {
        give(&f, between[i]);
    }
    fixture_fini(&f);
}
END_TEST

START_TEST(blocks_across_borders_hold_two_pages_each)
{
    enum { BLOCK_COUNT = 34, KEPT_COUNT = 8 };
    fixture f;
    uint64_t blocks[BLOCK_COUNT];
    int kept = 0;
    paged_init(&f);
    for (int i = 0; i < BLOCK_COUNT; i++) {
        blocks[i] = take(&f, 1 * MIB + SMALLEST_BYTES, 0); /* the smallest of the large class */
    }
    for (int i = 0; i < BLOCK_COUNT; i++) {
        uint64_t end = blocks[i] + 1 * MIB + SMALLEST_BYTES - 1;
        bool is_across = blocks[i] / PAGE_BYTES != end / PAGE_BYTES;
        if (is_across && i % 4 == 1 && kept < KEPT_COUNT) {
            kept++;
        } else {
            give(&f, blocks[i]);
        }
    }
    ck_assert_int_eq(kept, KEPT_COUNT);
    /* Beside a block it may use what that leaves of its page: less than a page at either end. */
    expect_pages_left(&f, LIMIT_PAGES - 2 * KEPT_COUNT, 2 * PAGE_BYTES,
                      "under active blocks 32.00 MiB");
    fixture_fini(&f);
}
END_TEST

START_TEST(large_pages_are_broken_for_what_lies_between_the_held_ones)
{
    fixture f;
    uint64_t pins[8];
    paged_init(&f);
    uint64_t large = take(&f, 64 * MIB, 0); /* two pages of 32 MiB */
    pin_pages(&f, pins, 8);
    give(&f, large);
    expect_pages_left(&f, LIMIT_PAGES - 8, 1, "under active blocks 16.00 MiB");
    fixture_fini(&f);
}
END_TEST

START_TEST(frozen_pages_come_on_top)
{
    fixture f;
    uint64_t pins[8], pool;
    paged_init(&f);
    ck_assert_int_eq(uf_pool_create(f.allocator, NULL, &pool, &f.error), UF_OK);
    ck_assert_int_eq(uf_pool_begin(f.allocator, pool, &f.error), UF_OK);
    uint64_t inside = take(&f, 10 * PAGE_BYTES, 0);
    ck_assert_int_eq(uf_pool_end(f.allocator, pool, &f.error), UF_OK);
    give(&f, inside);
    pin_pages(&f, pins, 8);
    expect_pages_left(&f, LIMIT_PAGES - 8 - 10, 1, "frozen in private pools 20.00 MiB");
    ck_assert_int_eq(uf_pool_destroy(f.allocator, pool, &f.error), UF_OK);
    expect_pages_left(&f, LIMIT_PAGES - 8, 1, "under active blocks 16.00 MiB");
    fixture_fini(&f);
}
END_TEST

int main(void)
{
    return suite_run("worst_case",
                     (const TTest *const[]){
                         a_page_is_held_by_one_block_of_512_bytes_and_the_rest_is_served,
                         every_page_of_the_limit_is_held_and_small_requests_are_served_still,
                         blocks_across_borders_hold_two_pages_each,
                         large_pages_are_broken_for_what_lies_between_the_held_ones,
                         frozen_pages_come_on_top,
                         NULL,
                     });
}
