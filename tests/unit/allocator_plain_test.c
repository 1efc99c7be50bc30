/* SPDX-License-Identifier: MIT
 *
 * Plain and whole pools: what they are made of, under both policies, and where their room comes
 * from. */
#include <unfrag/host.h>
#include <unfrag/pool.h>

#include "unit/suite.h"
#include "unit/allocator_fixture.h"

static void init(fixture *f, uf_policy policy, const char *conf, uint64_t limit_bytes)
{
    uf_allocator_options options = fixture_options(f, conf);
    options.policy = policy;
    options.limit_bytes = limit_bytes;
    fixture_make(f, &options);
}

static uint64_t pool_of(fixture *f, uf_pool_kind kind)
{
    uf_pool_options options = {.struct_size_bytes = sizeof options, .kind = kind};
    uint64_t pool = 0;
    uf_status status = uf_pool_create(f->allocator, &options, &pool, &f->error);
    ck_assert_msg(status == UF_OK, "%s", f->error.text);
    return pool;
}

static void begin(fixture *f, uint64_t pool)
{
    ck_assert_int_eq(uf_pool_begin(f->allocator, pool, &f->error), UF_OK);
}

static void end(fixture *f, uint64_t pool)
{
    ck_assert_int_eq(uf_pool_end(f->allocator, pool, &f->error), UF_OK);
}

static uint64_t take_in(fixture *f, uint64_t pool, uint64_t bytes)
{
    begin(f, pool);
    uint64_t addr = take(f, bytes, 0);
    end(f, pool);
    return addr;
}

/* Segments of a walk that are not expandable, and the bytes of them. */
typedef struct seen {
    uint64_t plain_count, plain_bytes, expandable_count;
} seen;

static bool see(void *context, const uf_segment_info *segment, const uf_block_info *blocks)
{
    seen *s = context;
    (void)blocks;
    s->plain_count += !segment->is_expandable;
    s->plain_bytes += segment->is_expandable ? 0 : segment->total_bytes;
    s->expandable_count += segment->is_expandable;
    return true;
}

static seen look(fixture *f)
{
    seen s = {0, 0, 0};
    ck_assert_int_eq(uf_walk(f->allocator, see, &s, &f->error), UF_OK);
    return s;
}

static void a_plain_pool_has_plain_segments(uf_policy policy, const char *conf)
{
    fixture f;
    init(&f, policy, conf, 0);
    uint64_t pool = pool_of(&f, UF_POOL_PLAIN), outside = take(&f, 40 * MIB, 0);
    uint64_t inside = take_in(&f, pool, 30 * MIB), small = take_in(&f, pool, 1000);
    seen s = look(&f);
    ck_assert_uint_eq(s.plain_count, 2);
    ck_assert_uint_eq(s.plain_bytes, 32 * MIB);
    ck_assert_uint_eq(s.expandable_count, 1);
    give(&f, inside);
    ck_assert_uint_eq(take_in(&f, pool, 30 * MIB), inside); /* cached */
    give(&f, inside);
    give(&f, small);
    give(&f, outside);
    ck_assert_int_eq(uf_pool_destroy(f.allocator, pool, &f.error), UF_OK);
    ck_assert_uint_eq(look(&f).plain_count, 0);
    fixture_fini(&f);
}

START_TEST(a_plain_pool_has_plain_segments_under_the_unfrag_policy)
{
    a_plain_pool_has_plain_segments(UF_POLICY_UNFRAG, NULL);
}
END_TEST

START_TEST(a_plain_pool_has_plain_segments_where_others_are_expandable)
{
    a_plain_pool_has_plain_segments(UF_POLICY_TORCH, "expandable_segments:True");
}
END_TEST

START_TEST(a_whole_pool_has_a_segment_for_each_request)
{
    const uf_policy policies[2] = {UF_POLICY_UNFRAG, UF_POLICY_TORCH};
    for (int i = 0; i < 2; i++) {
        fixture f;
        init(&f, policies[i], NULL, 0);
        uint64_t pool = pool_of(&f, UF_POOL_WHOLE);
        uint64_t small = take_in(&f, pool, 512), middle = take_in(&f, pool, 3 * MIB);
        uint64_t large = take_in(&f, pool, 31 * MIB);
        ck_assert_int_eq(reserved_of(&f), (int64_t)(2 + 4 + 32) * (int64_t)MIB);
        give(&f, large);
        uint64_t other = take_in(&f, pool, 20 * MIB); /* not the front of a larger one */
        ck_assert_uint_ne(other, large);
        ck_assert_uint_eq(take_in(&f, pool, 32 * MIB), large); /* the same size rounded up */
        ck_assert_int_eq(uf_pool_change(f.allocator, pool, false, false, &f.error), UF_OK);
        give(&f, middle);
        ck_assert_uint_eq(take_in(&f, pool, 4 * MIB), middle); /* it stays whole */
        ck_assert_uint_eq(look(&f).plain_count, 4);
        give(&f, small);
        fixture_check(&f);
        uf_allocator_destroy(f.allocator);
        ck_assert_uint_eq(f.sim.in_use_bytes, 0);
    }
}
END_TEST

START_TEST(a_plain_segment_takes_its_room_from_cached_pages)
{
    fixture f;
    init(&f, UF_POLICY_UNFRAG, NULL, 256 * MIB);
    uint64_t pool = pool_of(&f, UF_POOL_PLAIN), addr = 0, kept = take(&f, 64 * MIB, 0);
    give(&f, take(&f, 192 * MIB, 0));
    ck_assert_int_eq(reserved_of(&f), 256 * (int64_t)MIB);
    uint64_t plain = take_in(&f, pool, 100 * MIB);
    ck_assert_int_le(reserved_of(&f), 256 * (int64_t)MIB);
    begin(&f, pool);
    refuses(&f, UF_ERROR_OUT_OF_MEMORY, uf_alloc(f.allocator, 93 * MIB, 0, &addr, &f.error),
            "which needs a plain segment of 94.00 MiB");
    end(&f, pool);
    give(&f, plain);
    /* It is the living pool's, cached or not. */
    refuses(&f, UF_ERROR_OUT_OF_MEMORY, uf_alloc(f.allocator, 93 * MIB, 0, &addr, &f.error),
            "frozen in private pools 100.00 MiB");
    uf_usage usage;
    ck_assert_int_eq(uf_usage_get(f.allocator, &usage, &f.error), UF_OK);
    ck_assert_uint_eq(usage.frozen_bytes, 100 * MIB);
    ck_assert_int_eq(uf_pool_destroy(f.allocator, pool, &f.error), UF_OK);
    give(&f, take(&f, 192 * MIB, 0));
    give(&f, kept);
    fixture_fini(&f);
}
END_TEST

START_TEST(what_a_dead_plain_pool_cached_serves_others)
{
    fixture f;
    init(&f, UF_POLICY_UNFRAG, NULL, 256 * MIB);
    uint64_t pool = pool_of(&f, UF_POOL_PLAIN), inside = take_in(&f, pool, 200 * MIB);
    ck_assert_int_eq(uf_pool_destroy(f.allocator, pool, &f.error), UF_OK);
    give(&f, inside); /* later than its pool */
    ck_assert_int_eq(reserved_of(&f), 200 * (int64_t)MIB);
    uint64_t addr = take(&f, 250 * MIB, 0);
    ck_assert_uint_eq(look(&f).plain_count, 0);
    give(&f, addr);
    fixture_fini(&f);
}
END_TEST

START_TEST(there_are_three_kinds)
{
    fixture f;
    init(&f, UF_POLICY_UNFRAG, NULL, 0);
    uint64_t pool;
    uf_pool_options options = {.struct_size_bytes = sizeof options, .kind = (uf_pool_kind)7};
    refuses(&f, UF_ERROR_INVALID_ARGUMENT, uf_pool_create(f.allocator, &options, &pool, &f.error),
            "there is no kind of pool 7");
    fixture_fini(&f);
}
END_TEST

START_TEST(a_plain_pool_is_brought_back_to_a_checkpoint)
{
    fixture f;
    init(&f, UF_POLICY_UNFRAG, NULL, 0);
    uint64_t pool = pool_of(&f, UF_POOL_PLAIN);
    uint64_t first = take_in(&f, pool, 3 * MIB), second = take_in(&f, pool, 5 * MIB);
    uf_pool_checkpoint *checkpoint;
    ck_assert_int_eq(uf_pool_checkpoint_create(f.allocator, pool, &checkpoint, &f.error), UF_OK);
    give(&f, first);
    give(&f, second);
    uint64_t other = take_in(&f, pool, 8 * MIB);
    ck_assert_uint_eq(other, first);
    uf_status status = uf_pool_checkpoint_restore(f.allocator, checkpoint, NULL, NULL, &f.error);
    ck_assert_msg(status == UF_OK, "%s", f.error.text);
    fixture_check(&f);
    give(&f, first);
    give(&f, second);
    uf_pool_checkpoint_destroy(checkpoint);
    fixture_fini(&f);
}
END_TEST

enum { LIVE_MOST = 40, POOLS = 3 };

typedef struct held {
    uint64_t addr, bytes;
    unsigned char mark;
} held;

static void check_bytes(const held *h)
{
    const unsigned char *bytes = (const unsigned char *)(uintptr_t)h->addr;
    ck_assert_uint_eq(bytes[0], h->mark);
    ck_assert_uint_eq(bytes[h->bytes / 2], h->mark);
    ck_assert_uint_eq(bytes[h->bytes - 1], h->mark);
}

/* Random requests in all kinds of pools and outside, under a tight limit, on memory that is real:
 * every byte is where it was, nothing is lost, and a failure is one of memory. */
static void live(uf_policy policy, const char *conf, unsigned seed)
{
    fixture f;
    uf_host *host;
    uf_host_options made = {.struct_size_bytes = sizeof made, .total_bytes = 256 * MIB};
    ck_assert_int_eq(uf_host_create(&made, &host, &f.error), UF_OK);
    uf_allocator_options options = {.struct_size_bytes = sizeof options,
                                    .device = uf_host_device(host),
                                    .policy = policy,
                                    .conf = conf,
                                    .limit_bytes = 96 * MIB};
    fixture_make(&f, &options);
    uint64_t pools[POOLS] = {pool_of(&f, UF_POOL_PLAIN), pool_of(&f, UF_POOL_WHOLE),
                             pool_of(&f, UF_POOL_DEFAULT)};
    held all[LIVE_MOST];
    int count = 0, served_count = 0;
    srand(seed);
    for (int i = 0; i < 1500; i++) {
        int where = rand() % (POOLS + 2), what = rand() % 100;
        if (what == 0 && where < POOLS) {
            ck_assert_int_eq(uf_pool_destroy(f.allocator, pools[where], &f.error), UF_OK);
            pools[where] = pool_of(&f, where == 0   ? UF_POOL_PLAIN
                                       : where == 1 ? UF_POOL_WHOLE
                                                    : UF_POOL_DEFAULT);
        } else if (what == 1) {
            ck_assert_int_eq(uf_empty_cache(f.allocator, &f.error), UF_OK);
        } else if (what == 2) {
            ck_assert_int_eq(uf_trim(f.allocator, 8 * MIB, NULL, &f.error), UF_OK);
        } else if (count < LIVE_MOST && (what < 55 || count == 0)) {
            held *h = &all[count];
            h->bytes = (uint64_t)(rand() % 4 == 0 ? 1 + rand() % 20000 : 1 + rand() % (9 << 20));
            h->mark = (unsigned char)rand();
            if (where < POOLS) {
                begin(&f, pools[where]);
            }
            uf_status status =
                uf_alloc(f.allocator, h->bytes, (uint64_t)(rand() % 2), &h->addr, &f.error);
            if (where < POOLS) {
                end(&f, pools[where]);
            }
            ck_assert_msg(status == UF_OK || status == UF_ERROR_OUT_OF_MEMORY, "%s", f.error.text);
            if (status == UF_OK) {
                memset((void *)(uintptr_t)h->addr, h->mark, h->bytes);
                count++;
                served_count++;
            }
        } else {
            int chosen = rand() % count;
            check_bytes(&all[chosen]);
            ck_assert_int_eq(uf_free(f.allocator, all[chosen].addr, &f.error), UF_OK);
            all[chosen] = all[--count];
        }
        fixture_check(&f);
    }
    ck_assert_int_gt(served_count, 300);
    for (int i = 0; i < count; i++) {
        check_bytes(&all[i]);
    }
    uf_allocator_destroy(f.allocator);
    uf_host_counts counts;
    uf_host_counts_get(host, &counts);
    ck_assert_uint_eq(counts.in_use_bytes, 0);
    ck_assert_uint_eq(uf_host_faults(host, NULL), 0);
    uf_host_destroy(host);
}

START_TEST(all_kinds_live_side_by_side)
{
    for (unsigned seed = 1; seed <= 6; seed++) {
        live(UF_POLICY_UNFRAG, NULL, seed);
        live(UF_POLICY_TORCH, "expandable_segments:True", seed);
        live(UF_POLICY_TORCH, NULL, seed);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_plain_pool_has_plain_segments_under_the_unfrag_policy,
        a_plain_pool_has_plain_segments_where_others_are_expandable,
        a_whole_pool_has_a_segment_for_each_request,
        a_plain_segment_takes_its_room_from_cached_pages,
        what_a_dead_plain_pool_cached_serves_others,
        there_are_three_kinds,
        a_plain_pool_is_brought_back_to_a_checkpoint,
        all_kinds_live_side_by_side,
        NULL,
    };
    return suite_run("allocator_plain", tests);
}
