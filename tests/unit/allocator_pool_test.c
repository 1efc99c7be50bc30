/* SPDX-License-Identifier: MIT
 *
 * Private pools and their scopes through the public allocator. */
#include <unfrag/unfrag.h>

#include <pthread.h>

#include "unit/allocator_fixture.h"

typedef struct seen {
    uint64_t segment_count, private_count, last_pool;
} seen;

static bool see_segment(void *context, const uf_segment_info *segment, const uf_block_info *blocks)
{
    seen *s = context;
    (void)blocks;
    s->segment_count++;
    s->private_count += segment->pool_id[1] != 0;
    s->last_pool = segment->pool_id[1] != 0 ? segment->pool_id[1] : s->last_pool;
    return true;
}

static seen look(fixture *f)
{
    seen s = {0};
    ck_assert_int_eq(uf_walk(f->allocator, see_segment, &s, &f->error), UF_OK);
    return s;
}

static uint64_t make_pool(fixture *f, bool is_no_split, bool is_use_on_oom)
{
    const uf_pool_options options = {.struct_size_bytes = sizeof options,
                                     .is_no_split = is_no_split,
                                     .is_use_on_oom = is_use_on_oom};
    uint64_t pool = 0;
    ck_assert_int_eq(uf_pool_create(f->allocator, &options, &pool, &f->error), UF_OK);
    return pool;
}

static void begin(fixture *f, uint64_t pool)
{
    ck_assert_msg(uf_pool_begin(f->allocator, pool, &f->error) == UF_OK, "%s", f->error.text);
}

static void end(fixture *f, uint64_t pool)
{
    ck_assert_msg(uf_pool_end(f->allocator, pool, &f->error) == UF_OK, "%s", f->error.text);
}

START_TEST(what_is_allocated_in_a_scope_belongs_to_the_pool)
{
    fixture f;
    fixture_init(&f, NULL, 0);
    uint64_t first = make_pool(&f, false, false), second = make_pool(&f, false, false);
    ck_assert_uint_eq(first, 1);
    ck_assert_uint_eq(second, 2);
    begin(&f, first);
    uint64_t a = take(&f, 4 * MIB, 0);
    begin(&f, second);
    uint64_t b = take(&f, 4 * MIB, 0);
    end(&f, first); /* not nested: the newest that is open counts */
    uint64_t c = take(&f, 4 * MIB, 0);
    end(&f, second);
    uint64_t d = take(&f, 4 * MIB, 0);
    ck_assert_uint_eq(c, b + 4 * MIB);
    seen s = look(&f);
    ck_assert_uint_eq(s.segment_count, 3);
    ck_assert_uint_eq(s.private_count, 2);
    give(&f, a);
    give(&f, b);
    give(&f, c);
    give(&f, d);
    fixture_fini(&f);
}
END_TEST

START_TEST(destroying_a_pool_gives_its_cache_back_at_once)
{
    fixture f;
    fixture_init(&f, NULL, 0);
    uint64_t pool = make_pool(&f, false, false);
    begin(&f, pool);
    uint64_t a = take(&f, 30 * MIB, 0), b = take(&f, 12 * MIB, 0);
    end(&f, pool);
    give(&f, a);
    ck_assert_int_eq(uf_empty_cache(f.allocator, &f.error), UF_OK);
    ck_assert_int_eq(reserved_of(&f), 42 * (int64_t)MIB); /* a living pool keeps its cache */
    ck_assert_int_eq(uf_pool_destroy(f.allocator, pool, &f.error), UF_OK);
    fixture_check(&f);
    ck_assert_int_eq(reserved_of(&f), 12 * (int64_t)MIB);
    refuses(&f, UF_ERROR_NOT_FOUND, uf_pool_destroy(f.allocator, pool, &f.error), "no pool 1");
    refuses(&f, UF_ERROR_NOT_FOUND, uf_pool_begin(f.allocator, pool, &f.error), "no pool 1");
    give(&f, b);
    ck_assert_int_eq(reserved_of(&f), 12 * (int64_t)MIB);
    ck_assert_int_eq(uf_empty_cache(f.allocator, &f.error), UF_OK);
    ck_assert_int_eq(reserved_of(&f), 0);
    ck_assert_uint_eq(make_pool(&f, false, false), 2); /* numbers are not given twice */
    fixture_fini(&f);
}
END_TEST

START_TEST(a_pool_is_not_destroyed_while_a_scope_is_open)
{
    fixture f;
    fixture_init(&f, NULL, 0);
    uint64_t pool = make_pool(&f, false, false), other = make_pool(&f, false, false);
    begin(&f, other);
    refuses(&f, UF_ERROR_BUSY, uf_pool_destroy(f.allocator, pool, &f.error), "1 pool scope");
    refuses(&f, UF_ERROR_BUSY, uf_pool_begin(f.allocator, other, &f.error), "open already");
    refuses(&f, UF_ERROR_NOT_FOUND, uf_pool_end(f.allocator, pool, &f.error), "no scope of pool 1");
    end(&f, other);
    refuses(&f, UF_ERROR_NOT_FOUND, uf_pool_end(f.allocator, other, &f.error), "pool 2");
    ck_assert_int_eq(uf_pool_destroy(f.allocator, pool, &f.error), UF_OK);
    ck_assert_int_eq(uf_pool_destroy(f.allocator, other, &f.error), UF_OK);
    refuses(&f, UF_ERROR_NOT_FOUND, uf_pool_begin(f.allocator, 0, &f.error), "no pool 0");
    refuses(&f, UF_ERROR_NOT_FOUND, uf_pool_begin(f.allocator, 99, &f.error), "2 were made");
    fixture_fini(&f);
}
END_TEST

START_TEST(a_scope_puts_other_frees_off_and_skips_the_flush)
{
    fixture f;
    fixture_init(&f, NULL, 102 * MIB);
    uint64_t cached = take(&f, 60 * MIB, 0), a = take(&f, 10 * MIB, 0), addr;
    give(&f, cached);
    ck_assert_int_eq(uf_use_on_stream(f.allocator, a, 1, &f.error), UF_OK);
    uint64_t pool = make_pool(&f, false, false);
    begin(&f, pool);
    give(&f, a);
    ck_assert_uint_eq(f.sim.event_count, 0); /* deferred: no event yet */
    refuses(&f, UF_ERROR_OUT_OF_MEMORY, uf_alloc(f.allocator, 80 * MIB, 0, &addr, &f.error),
            "close pool scopes");
    ck_assert_int_eq(stats_of(&f).num_alloc_retries, 0);
    end(&f, pool);
    addr = take(&f, 80 * MIB, 0);
    ck_assert_int_eq(stats_of(&f).num_alloc_retries, 1);
    ck_assert_uint_eq(f.sim.event_count, 1);
    give(&f, addr);
    fixture_fini(&f);
}
END_TEST

START_TEST(pool_options_do_what_they_say)
{
    fixture f;
    fixture_init(&f, NULL, 62 * MIB);
    uint64_t pool = make_pool(&f, true, true), outside;
    begin(&f, pool);
    uint64_t a = take(&f, 100, 0), b = take(&f, 60 * MIB, 0);
    end(&f, pool);
    ck_assert_int_eq(stats_of(&f).allocated_bytes.all.current, 62 * (int64_t)MIB);
    give(&f, b);
    outside = take(&f, 58 * MIB, 0); /* from the pool, whole, instead of failing */
    ck_assert_uint_eq(outside, b);
    ck_assert_int_eq(stats_of(&f).allocated_bytes.all.current, 62 * (int64_t)MIB);
    give(&f, outside);
    give(&f, a);
    uint64_t unused = 0;
    const uf_pool_options none = {0};
    refuses(&f, UF_ERROR_INVALID_ARGUMENT, uf_pool_create(f.allocator, &none, &unused, &f.error),
            "struct_size_bytes");
    fixture_fini(&f);
}
END_TEST

START_TEST(a_destroyed_pool_is_not_raided)
{
    fixture f;
    fixture_init(&f, NULL, 20 * MIB);
    uint64_t pool = make_pool(&f, false, true), addr;
    begin(&f, pool);
    uint64_t a = take(&f, 5 * MIB, 0);
    end(&f, pool);
    uint64_t raided = take(&f, 5 * MIB, 0);
    ck_assert_uint_eq(raided, a + 5 * MIB);
    give(&f, raided);
    ck_assert_int_eq(uf_pool_destroy(f.allocator, pool, &f.error), UF_OK);
    refuses(&f, UF_ERROR_OUT_OF_MEMORY, uf_alloc(f.allocator, 5 * MIB, 0, &addr, &f.error),
            "reserved 20.00 MiB");
    give(&f, a);
    give(&f, take(&f, 5 * MIB, 0)); /* the flush gave the pool's segment back */
    fixture_fini(&f);
}
END_TEST

typedef struct other_thread {
    fixture *f;
    uint64_t addr;
} other_thread;

static void *allocate_elsewhere(void *context)
{
    other_thread *other = context;
    (void)!uf_alloc(other->f->allocator, 4 * MIB, 0, &other->addr, NULL);
    return NULL;
}

START_TEST(a_scope_counts_for_its_own_thread_alone)
{
    fixture f;
    fixture_init(&f, NULL, 0);
    uint64_t pool = make_pool(&f, false, false);
    begin(&f, pool);
    other_thread other = {&f, 0};
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, allocate_elsewhere, &other), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_uint_ne(other.addr, 0);
    ck_assert_uint_eq(look(&f).private_count, 0);
    uint64_t own = take(&f, 4 * MIB, 0);
    ck_assert_uint_eq(look(&f).private_count, 1);
    end(&f, pool);
    give(&f, own);
    give(&f, other.addr);
    fixture_fini(&f);
}
END_TEST

int main(void)
{
    TCase *pools = tcase_create("pools");
    tcase_add_test(pools, what_is_allocated_in_a_scope_belongs_to_the_pool);
    tcase_add_test(pools, destroying_a_pool_gives_its_cache_back_at_once);
    tcase_add_test(pools, a_pool_is_not_destroyed_while_a_scope_is_open);
    tcase_add_test(pools, a_scope_puts_other_frees_off_and_skips_the_flush);
    tcase_add_test(pools, pool_options_do_what_they_say);
    tcase_add_test(pools, a_destroyed_pool_is_not_raided);
    tcase_add_test(pools, a_scope_counts_for_its_own_thread_alone);
    Suite *suite = suite_create("allocator_pool");
    suite_add_tcase(suite, pools);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
