/* SPDX-License-Identifier: MIT
 *
 * Waits for other streams: which flush a wait is charged to, and between what its time lies. */
#include "replay/waits.h"

#include "suite.h"

START_TEST(a_wait_is_charged_to_the_first_flush_after_the_free)
{
    uf_waits waits = {0};
    uf_replay_result result = {0};
    ck_assert(!uf__waits_has_any(&waits));
    ck_assert_int_eq(uf__waits_put_off(&waits, 4, 0), UF_OK);
    ck_assert_int_eq(uf__waits_put_off(&waits, 4, 1), UF_OK);
    ck_assert_int_eq(uf__waits_flush(&waits, 10, 1000), UF_OK);
    ck_assert_int_eq(uf__waits_put_off(&waits, 4, 2), UF_OK);
    ck_assert_int_eq(uf__waits_flush(&waits, 20, 5000), UF_OK);
    uf__waits_done(&waits, 0, 15, 3000); /* 2 ms after the first flush */
    uf__waits_done(&waits, 1, 30, 7000); /* 6 ms after it */
    uf__waits_done(&waits, 2, 31, 8000); /* 3 ms after the second */
    uf__waits_sum(&waits, &result);
    ck_assert_uint_eq(result.stream_wait_count, 2);
    ck_assert(result.stream_wait_ms == 9.0);
    ck_assert(result.longest_stream_wait_ms == 6.0);
    uf__waits_fini(&waits);
}
END_TEST

START_TEST(a_flush_that_the_recording_made_too_is_no_forced_wait)
{
    uf_waits waits = {0};
    uf_replay_result result = {0};
    ck_assert_int_eq(uf__waits_put_off(&waits, 4, 3), UF_OK);
    uf__waits_done(&waits, 3, 5, 100); /* before any flush */
    ck_assert_int_eq(uf__waits_put_off(&waits, 4, 3), UF_OK);
    ck_assert_int_eq(uf__waits_flush(&waits, 10, 1000), UF_OK);
    uf__waits_done(&waits, 3, 9, 999); /* completed within the request that flushed */
    uf__waits_sum(&waits, &result);
    ck_assert_uint_eq(result.stream_wait_count, 0);
    ck_assert(result.stream_wait_ms == 0.0);
    uf__waits_fini(&waits);
}
END_TEST

START_TEST(without_times_waits_are_counted_and_their_length_is_unknown)
{
    uf_waits waits = {0};
    uf_replay_result result = {0};
    ck_assert_int_eq(uf__waits_put_off(&waits, 1, 0), UF_OK);
    ck_assert_int_eq(uf__waits_flush(&waits, 10, UF_TIME_UNKNOWN), UF_OK);
    uf__waits_done(&waits, 0, 15, UF_TIME_UNKNOWN);
    uf__waits_sum(&waits, &result);
    ck_assert_uint_eq(result.stream_wait_count, 1);
    ck_assert(result.stream_wait_ms == -1.0 && result.longest_stream_wait_ms == -1.0);
    uf__waits_fini(&waits);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {a_wait_is_charged_to_the_first_flush_after_the_free,
                            a_flush_that_the_recording_made_too_is_no_forced_wait,
                            without_times_waits_are_counted_and_their_length_is_unknown, NULL};
    return suite_run("waits", tests);
}
