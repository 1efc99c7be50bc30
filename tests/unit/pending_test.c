/* SPDX-License-Identifier: MIT
 *
 * Blocks that other streams use: when they come back, and in which order. */
#include "alloc/core.h"

#include "unit/core_bench.h"
#include "unit/suite.h"

static bench b;

static void use(uint32_t block, uint64_t stream)
{
    ck_assert_int_eq(uf__core_use(&b.core, block, bench_stream(&b, stream)), UF_OK);
}

static void process(void)
{
    ck_assert_int_eq(uf__core_process(&b.core), UF_OK);
    bench_check(&b);
}

static uf_life life_of(uint32_t block)
{
    return (uf_life)uf__core_block(&b.core, block)->life;
}

START_TEST(use_by_its_own_stream_delays_nothing)
{
    bench_init(&b, "", 0, 0);
    uint32_t block = bench_alloc(&b, 512);
    use(block, 0);
    bench_free(&b, block);
    ck_assert_int_eq(life_of(block), UF_LIFE_FREE);
    bench_fini(&b);
}
END_TEST

START_TEST(free_on_other_stream_waits_for_event)
{
    bench_init(&b, "", 0, 0);
    uint32_t block = bench_alloc(&b, 512);
    use(block, 7);
    use(block, 7);
    bench_free(&b, block);
    ck_assert_uint_eq(b.sim.event_count, 1);
    ck_assert_int_eq(life_of(block), UF_LIFE_PENDING);
    ck_assert_int_eq(bench_current(&b, UF_COUNTER_ALLOCATION), 0);
    ck_assert_int_eq(bench_current(&b, UF_COUNTER_ACTIVE), 1);
    process();
    ck_assert_int_eq(life_of(block), UF_LIFE_PENDING);
    uf__sim_synchronize(&b.sim);
    process();
    ck_assert_int_eq(life_of(block), UF_LIFE_FREE);
    ck_assert_int_eq(bench_current(&b, UF_COUNTER_ACTIVE_BYTES), 0);
    bench_fini(&b);
}
END_TEST

START_TEST(all_streams_must_be_done)
{
    bench_init(&b, "", 0, 0);
    uint32_t block = bench_alloc(&b, 512);
    use(block, 7);
    use(block, 8);
    bench_free(&b, block);
    ck_assert_uint_eq(b.sim.event_count, 2);
    b.sim.event_done_count = 1;
    process();
    ck_assert_int_eq(life_of(block), UF_LIFE_PENDING);
    b.sim.event_done_count = 2;
    process();
    ck_assert_int_eq(life_of(block), UF_LIFE_FREE);
    bench_fini(&b);
}
END_TEST

START_TEST(a_waiting_block_does_not_merge)
{
    bench_init(&b, "", 0, 0);
    uint32_t waiting = bench_alloc(&b, 512), next = bench_alloc(&b, 512);
    use(waiting, 7);
    bench_free(&b, waiting);
    bench_free(&b, next);
    ck_assert_uint_eq(bench_bytes(&b, next), 2 * BENCH_MIB - 512);
    uf__sim_synchronize(&b.sim);
    process();
    ck_assert_uint_eq(bench_bytes(&b, waiting), 2 * BENCH_MIB);
    bench_fini(&b);
}
END_TEST

START_TEST(a_flush_waits_for_what_is_outstanding)
{
    bench_init(&b, "", 0, 0);
    uint32_t block = bench_alloc(&b, 12 * BENCH_MIB);
    use(block, 7);
    bench_free(&b, block);
    bench_empty(&b);
    ck_assert_uint_eq(b.core.total_bytes, 0);
    ck_assert_int_eq(b.core.counters.num_sync_all_streams, 1);
    bench_fini(&b);
}
END_TEST

START_TEST(an_external_use_ends_when_the_caller_says_so)
{
    bench_init(&b, "", 0, 0);
    uint32_t block = bench_alloc(&b, 512);
    ck_assert_int_eq(uf__core_use_external(&b.core, block, 41), UF_OK);
    bench_free(&b, block);
    uf__sim_synchronize(&b.sim);
    process();
    ck_assert(uf__core_is_waiting(&b.core, block, 41));
    ck_assert(!uf__core_is_waiting(&b.core, block, 42));
    uf__core_complete(&b.core, block);
    bench_check(&b);
    ck_assert(!uf__core_is_waiting(&b.core, block, 41));
    ck_assert_int_eq(life_of(block), UF_LIFE_FREE);
    bench_fini(&b);
}
END_TEST

START_TEST(a_flush_ends_external_uses_too)
{
    bench_init(&b, "", 0, 0);
    uint32_t block = bench_alloc(&b, 512);
    ck_assert_int_eq(uf__core_use_external(&b.core, block, 41), UF_OK);
    bench_free(&b, block);
    bench_empty(&b);
    ck_assert_uint_eq(b.core.total_bytes, 0);
    bench_fini(&b);
}
END_TEST

START_TEST(frees_during_a_redirection_are_put_off_and_forget_its_streams)
{
    uint32_t pool;
    bench_init(&b, "", 0, 0);
    ck_assert_int_eq(uf__core_pool_create(&b.core, 0, 1, &pool), UF_OK);
    uint32_t before = bench_alloc(&b, 512), during = bench_alloc(&b, 512);
    use(before, 7);
    ck_assert_int_eq(uf__core_redirect_begin(&b.core, pool), UF_OK);
    use(during, 7);
    bench_free(&b, before);
    bench_free(&b, during);
    ck_assert_int_eq(life_of(before), UF_LIFE_DEFERRED);
    ck_assert_int_eq(life_of(during), UF_LIFE_DEFERRED);
    ck_assert_uint_eq(b.sim.event_count, 0);
    process();
    ck_assert_int_eq(life_of(during), UF_LIFE_DEFERRED);
    ck_assert_int_eq(uf__core_redirect_end(&b.core, pool), UF_OK);
    process();
    ck_assert_int_eq(life_of(before), UF_LIFE_PENDING);
    ck_assert_int_eq(life_of(during), UF_LIFE_FREE);
    ck_assert_uint_eq(b.sim.event_count, 1);
    uf__sim_synchronize(&b.sim);
    process();
    ck_assert_int_eq(life_of(before), UF_LIFE_FREE);
    bench_fini(&b);
}
END_TEST

typedef struct wish {
    uint64_t addrs[4];
    uint32_t count, next;
} wish;

static bool next_wish(void *context, bool is_flush, uint64_t *addr)
{
    wish *wanted = context;
    (void)is_flush;
    if (wanted->next == wanted->count) {
        return false;
    }
    *addr = wanted->addrs[wanted->next++];
    return true;
}

START_TEST(the_order_hook_decides_which_block_completes_first)
{
    bench_init(&b, "", 0, 0);
    uint32_t blocks[3];
    for (int i = 0; i < 3; i++) {
        blocks[i] = bench_alloc(&b, 512);
        use(blocks[i], 7);
    }
    for (int i = 0; i < 3; i++) {
        bench_free(&b, blocks[i]);
    }
    wish wanted = {.addrs = {bench_addr(&b, blocks[2]), bench_addr(&b, blocks[0]), 1}, .count = 3};
    uint64_t last = bench_addr(&b, blocks[1]);
    b.core.order_hook = next_wish;
    b.core.order_context = &wanted;
    uf__sim_synchronize(&b.sim);
    process();
    ck_assert_uint_eq(bench_seen(&b, UF_ACTION_FREE_COMPLETED), 3);
    ck_assert_uint_eq(bench_nth(&b, UF_ACTION_FREE_COMPLETED, 0)->addr, wanted.addrs[0]);
    ck_assert_uint_eq(bench_nth(&b, UF_ACTION_FREE_COMPLETED, 1)->addr, wanted.addrs[1]);
    ck_assert_uint_eq(bench_nth(&b, UF_ACTION_FREE_COMPLETED, 2)->addr, last);
    bench_fini(&b);
}
END_TEST

/* A use whose event could not be recorded is not a use that is over. */
START_TEST(a_block_whose_event_was_not_recorded_still_waits)
{
    bench_init(&b, "", 0, 0);
    uint32_t block = bench_alloc(&b, 512);
    use(block, 7);
    use(block, 8);
    b.fail_at = b.call_count + 2;
    ck_assert_int_eq(uf__core_free(&b.core, block), UF_ERROR_DEVICE);
    bench_check(&b);
    ck_assert_uint_eq(b.sim.event_count, 1);
    uf__sim_synchronize(&b.sim);
    process();
    ck_assert_int_eq(life_of(block), UF_LIFE_PENDING);
    ck_assert_uint_eq(b.sim.event_count, 2); /* made up for now */
    uf__sim_synchronize(&b.sim);
    process();
    ck_assert_int_eq(life_of(block), UF_LIFE_FREE);
    bench_fini(&b);
}
END_TEST

START_TEST(a_query_that_fails_is_reported_and_the_block_waits_on)
{
    bench_init(&b, "", 0, 0);
    uint32_t block = bench_alloc(&b, 512);
    use(block, 7);
    bench_free(&b, block);
    uf__sim_synchronize(&b.sim);
    b.fail_at = b.call_count + 1;
    ck_assert_int_eq(uf__core_process(&b.core), UF_ERROR_DEVICE);
    bench_check(&b);
    ck_assert_int_eq(life_of(block), UF_LIFE_PENDING);
    process();
    ck_assert_int_eq(life_of(block), UF_LIFE_FREE);
    bench_fini(&b);
}
END_TEST

START_TEST(records_of_use_are_taken_again)
{
    bench_init(&b, "", 0, 0);
    for (int i = 0; i < 50; i++) {
        uint32_t block = bench_alloc(&b, 512);
        use(block, 7);
        bench_free(&b, block);
        uf__sim_synchronize(&b.sim);
        process();
    }
    ck_assert_uint_eq(b.core.uses_count, 2);
    bench_fini(&b);
}
END_TEST

int main(void)
{
    return suite_run("pending", (const TTest *const[]){
                                    use_by_its_own_stream_delays_nothing,
                                    free_on_other_stream_waits_for_event,
                                    all_streams_must_be_done,
                                    a_waiting_block_does_not_merge,
                                    a_flush_waits_for_what_is_outstanding,
                                    an_external_use_ends_when_the_caller_says_so,
                                    a_flush_ends_external_uses_too,
                                    frees_during_a_redirection_are_put_off_and_forget_its_streams,
                                    the_order_hook_decides_which_block_completes_first,
                                    a_block_whose_event_was_not_recorded_still_waits,
                                    a_query_that_fails_is_reported_and_the_block_waits_on,
                                    records_of_use_are_taken_again,
                                    NULL,
                                });
}
