/* SPDX-License-Identifier: MIT
 *
 * Epochs: what is recorded, what is known to be done, and what is waited for. */
#include "unit/paging_bench.h"

static const uf_epochs *epochs_of(const paging_bench *b, uint32_t stream)
{
    return &b->core.paging->epochs[stream];
}

/* A free on a stream; returns its number. */
static uint64_t free_one(paging_bench *b, uint32_t stream)
{
    paging_give(b, paging_take(b, GRANULE, stream));
    return b->core.paging->free_sequence;
}

START_TEST(streams_that_freed_since_their_last_epoch_are_marked_and_no_others)
{
    paging_bench b;
    paging_init(&b, 0);
    (void)free_one(&b, 0);
    uint64_t before = b.records.count;
    ck_assert_int_eq(uf__epoch_close(&b.core), UF_OK);
    ck_assert_uint_eq(b.records.count, before + 1);
    ck_assert_uint_eq(epochs_of(&b, 0)->open_count, 1);
    ck_assert_uint_eq(epochs_of(&b, 1)->open_count, 0);
    ck_assert_int_eq(uf__epoch_close(&b.core), UF_OK); /* nothing was freed since */
    ck_assert_uint_eq(b.records.count, before + 1);
    (void)free_one(&b, 0);
    ck_assert_int_eq(uf__epoch_close(&b.core), UF_OK);
    ck_assert_uint_eq(epochs_of(&b, 0)->open_count, 2);
    paging_fini(&b);
}
END_TEST

START_TEST(a_done_event_makes_the_frees_up_to_its_number_idle)
{
    paging_bench b;
    paging_init(&b, 0);
    uint64_t first = free_one(&b, 0), second;
    ck_assert_int_eq(uf__epoch_close(&b.core), UF_OK);
    second = free_one(&b, 0);
    ck_assert_int_eq(uf__epoch_poll(&b.core), UF_OK);
    ck_assert(!uf__epoch_is_done(&b.core, 0, first));
    uf__sim_synchronize(&b.sim);
    ck_assert(!uf__epoch_is_done(&b.core, 0, first)); /* not known until it is asked */
    ck_assert_int_eq(uf__epoch_poll(&b.core), UF_OK);
    ck_assert(uf__epoch_is_done(&b.core, 0, first));
    ck_assert(!uf__epoch_is_done(&b.core, 0, second));
    ck_assert_uint_eq(epochs_of(&b, 0)->open_count, 0);
    paging_fini(&b);
}
END_TEST

START_TEST(waiting_waits_for_no_more_than_the_free_that_is_meant)
{
    paging_bench b;
    paging_init(&b, 0);
    uint64_t first = free_one(&b, 0), second;
    ck_assert_int_eq(uf__epoch_close(&b.core), UF_OK);
    second = free_one(&b, 0);
    ck_assert_int_eq(uf__epoch_close(&b.core), UF_OK);
    ck_assert_int_eq(uf__epoch_wait(&b.core, 0, first), UF_OK);
    ck_assert_uint_eq(b.waits.count, 1);
    ck_assert(!uf__epoch_is_done(&b.core, 0, second));
    ck_assert_int_eq(uf__epoch_wait(&b.core, 0, first), UF_OK); /* known */
    ck_assert_uint_eq(b.waits.count, 1);
    ck_assert_int_eq(uf__epoch_wait(&b.core, 0, second), UF_OK);
    ck_assert_uint_eq(b.waits.count, 2);
    /* With no epoch open, one is ended for it. */
    uint64_t third = free_one(&b, 0), records = b.records.count;
    ck_assert_int_eq(uf__epoch_wait(&b.core, 0, third), UF_OK);
    ck_assert_uint_eq(b.records.count, records + 1);
    ck_assert(uf__epoch_is_done(&b.core, 0, third));
    paging_fini(&b);
}
END_TEST

START_TEST(one_stream_says_nothing_of_another)
{
    paging_bench b;
    paging_init(&b, 0);
    uint64_t first = free_one(&b, 0), second = free_one(&b, 1);
    ck_assert_int_eq(uf__epoch_wait(&b.core, 1, second), UF_OK);
    ck_assert(uf__epoch_is_done(&b.core, 1, second));
    ck_assert(!uf__epoch_is_done(&b.core, 0, first));
    paging_fini(&b);
}
END_TEST

START_TEST(where_every_stream_is_watched_all_of_them_must_be_done)
{
    paging_bench b;
    paging_init(&b, 0);
    b.core.paging->is_every_stream_watched = true;
    (void)paging_take(&b, GRANULE, 1);
    uint64_t number = free_one(&b, 0);
    ck_assert_int_eq(uf__epoch_close(&b.core), UF_OK);
    ck_assert_uint_eq(epochs_of(&b, 0)->open_count, 1);
    ck_assert_uint_eq(epochs_of(&b, 1)->open_count, 1); /* though it has freed nothing */
    b.sim.event_done_count = b.sim.event_count - 1;     /* all but the last event */
    ck_assert_int_eq(uf__epoch_poll(&b.core), UF_OK);
    ck_assert_uint_eq(epochs_of(&b, 0)->done_sequence, number);
    ck_assert(!uf__epoch_is_done(&b.core, 0, number));
    ck_assert_int_eq(uf__epoch_wait(&b.core, 0, number), UF_OK);
    ck_assert_uint_eq(b.waits.count, 1);
    ck_assert(uf__epoch_is_done(&b.core, 0, number));
    paging_fini(&b);
}
END_TEST

START_TEST(a_stream_that_was_only_named_for_a_block_is_watched_too)
{
    paging_bench b;
    paging_init(&b, 0);
    b.core.paging->is_every_stream_watched = true;
    uint32_t shared = paging_take(&b, GRANULE, 0);
    ck_assert_int_eq(uf__core_use(&b.core, shared, 1), UF_OK);
    uint64_t number = free_one(&b, 0);
    ck_assert_int_eq(uf__epoch_wait(&b.core, 0, number), UF_OK);
    ck_assert_uint_eq(b.waits.count, 2);
    ck_assert_uint_eq(epochs_of(&b, 1)->done_sequence, number);
    paging_fini(&b);
}
END_TEST

START_TEST(a_device_far_behind_is_not_marked_without_end)
{
    paging_bench b;
    paging_init(&b, 0);
    for (int i = 0; i < 3 * UF_EPOCHS_OPEN; i++) {
        (void)free_one(&b, 0);
        ck_assert_int_eq(uf__epoch_close(&b.core), UF_OK);
    }
    ck_assert_uint_eq(epochs_of(&b, 0)->open_count, UF_EPOCHS_OPEN);
    ck_assert_int_eq(uf__epoch_wait(&b.core, 0, b.core.paging->free_sequence), UF_OK);
    paging_fini(&b);
}
END_TEST

START_TEST(during_a_redirection_the_device_is_asked_nothing)
{
    paging_bench b;
    uint32_t pool;
    paging_init(&b, 0);
    uint64_t number = free_one(&b, 0);
    ck_assert_int_eq(uf__epoch_close(&b.core), UF_OK);
    uf__sim_synchronize(&b.sim);
    (void)free_one(&b, 0);
    ck_assert_int_eq(uf__core_pool_create(&b.core, 0, 1, &pool), UF_OK);
    ck_assert_int_eq(uf__core_redirect_begin(&b.core, pool), UF_OK);
    uint64_t records = b.records.count, queries = b.queries.count;
    ck_assert_int_eq(uf__epoch_close(&b.core), UF_OK);
    ck_assert_int_eq(uf__epoch_poll(&b.core), UF_OK);
    ck_assert_int_eq(uf__epoch_wait(&b.core, 0, number), UF_ERROR_BUSY);
    ck_assert_uint_eq(b.records.count, records);
    ck_assert_uint_eq(b.queries.count, queries);
    ck_assert_uint_eq(b.waits.count, 0);
    ck_assert_int_eq(uf__core_redirect_end(&b.core, pool), UF_OK);
    ck_assert_int_eq(uf__epoch_wait(&b.core, 0, number), UF_OK);
    paging_fini(&b);
}
END_TEST

START_TEST(a_call_that_fails_makes_nothing_idle)
{
    paging_bench b;
    paging_init(&b, 0);
    uint64_t number = free_one(&b, 0);
    b.records.failing_count = 1;
    ck_assert_int_eq(uf__epoch_close(&b.core), UF_ERROR_DEVICE);
    ck_assert_uint_eq(epochs_of(&b, 0)->open_count, 0);
    ck_assert_int_eq(uf__epoch_close(&b.core), UF_OK);
    b.waits.failing_count = 1;
    ck_assert_int_eq(uf__epoch_wait(&b.core, 0, number), UF_ERROR_DEVICE);
    ck_assert(!uf__epoch_is_done(&b.core, 0, number));
    ck_assert_uint_eq(epochs_of(&b, 0)->open_count, 1);
    uf__sim_synchronize(&b.sim);
    b.queries.failing_count = 1;
    ck_assert_int_eq(uf__epoch_poll(&b.core), UF_ERROR_DEVICE);
    ck_assert(!uf__epoch_is_done(&b.core, 0, number));
    ck_assert_int_eq(uf__epoch_poll(&b.core), UF_OK);
    ck_assert(uf__epoch_is_done(&b.core, 0, number));
    paging_fini(&b);
}
END_TEST

int main(void)
{
    return suite_run("epoch",
                     (const TTest *const[]){
                         streams_that_freed_since_their_last_epoch_are_marked_and_no_others,
                         a_done_event_makes_the_frees_up_to_its_number_idle,
                         waiting_waits_for_no_more_than_the_free_that_is_meant,
                         one_stream_says_nothing_of_another,
                         where_every_stream_is_watched_all_of_them_must_be_done,
                         a_stream_that_was_only_named_for_a_block_is_watched_too,
                         a_device_far_behind_is_not_marked_without_end,
                         during_a_redirection_the_device_is_asked_nothing,
                         a_call_that_fails_makes_nothing_idle,
                         NULL,
                     });
}
