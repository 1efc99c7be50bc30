/* SPDX-License-Identifier: MIT
 *
 * The arithmetic behind an explanation, and what a snapshot adds. Families and flags:
 * tests/explain/. */
#include "advise/explain.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"

static uf_explanation *explain(const char *text, const uf_conf *conf, uint32_t named)
{
    uf_message_log *log = NULL;
    uf_error error = {0};
    ck_assert_int_eq(uf__message_scan_memory(text, strlen(text), &log, &error), UF_OK);
    uf_explanation *out = malloc(sizeof *out);
    ck_assert_ptr_nonnull(out);
    uf_explain_request request = {.log = log, .conf = conf, .named = named};
    uf__explain(&request, out);
    out->growth = NULL; /* borrowed from the log */
    free(log);
    return out;
}

static void expect_amount(uf_amount amount, int64_t bytes)
{
    ck_assert(amount.is_known);
    ck_assert_int_eq(amount.bytes, bytes);
}

START_TEST(private_pools_are_not_counted_twice)
{
    uf_explanation *out =
        explain("CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of "
                "16.00 GiB of which 128.00 MiB is free. Of the allocated memory 14.00 GiB is "
                "allocated by PyTorch, with 1.00 GiB allocated in private pools (e.g., CUDA "
                "Graphs), and 256.00 MiB is reserved by PyTorch but unallocated.",
                NULL, 0);
    int64_t mib = (int64_t)UF_MIB;
    ck_assert_int_eq(out->message.form, UF_MESSAGE_T6);
    expect_amount(out->reckoning.allocated, 13 * 1024 * mib);
    expect_amount(out->reckoning.cached, (1024 + 256) * mib);
    expect_amount(out->reckoning.reserved, (14 * 1024 + 256) * mib);
    expect_amount(out->reckoning.covering, (128 + 256) * mib);
    expect_amount(out->reckoning.outside, (2 * 1024 - 128 - 256) * mib);
    ck_assert_int_eq(out->causes[0], UF_CAUSE_OUTSIDE_MEMORY);
    free(out);
}
END_TEST

START_TEST(the_request_is_a_segment_and_the_tensor_is_smaller)
{
    static const struct {
        const char *asked;
        int64_t least, most;
    } cases[] = {{"2.00 MiB", 1, (int64_t)UF_MIB},
                 {"20.00 MiB", (int64_t)UF_MIB + 1, (int64_t)(20 * UF_MIB)},
                 {"64.00 MiB", (int64_t)(62 * UF_MIB) + 1, (int64_t)(64 * UF_MIB)}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512] = "CUDA out of memory. Tried to allocate ";
        strcat(text, cases[i].asked);
        strcat(text, " (GPU 0; 8.00 GiB total capacity; 7.00 GiB already allocated; 1.00 MiB free; "
                     "7.50 GiB reserved in total by PyTorch)");
        uf_explanation *out = explain(text, NULL, 0);
        ck_assert(out->reckoning.is_segment);
        expect_amount(out->reckoning.least_wanted, cases[i].least);
        expect_amount(out->reckoning.most_wanted, cases[i].most);
        free(out);
    }
}
END_TEST

START_TEST(an_unprinted_fraction_is_seen_by_its_trace)
{
    uf_explanation *out =
        explain("CUDA out of memory. Tried to allocate 64.00 MiB. GPU 0 has a total capacty of "
                "79.15 GiB of which 38.09 GiB is free. Including non-PyTorch memory, this process "
                "has 41.06 GiB memory in use. Of the allocated memory 39.10 GiB is allocated by "
                "PyTorch, and 427.46 MiB is reserved by PyTorch but unallocated.",
                NULL, 0);
    ck_assert_int_eq(out->causes[0], UF_CAUSE_REFUSED_WITH_FREE_MEMORY);
    ck_assert_int_eq(out->causes[1], UF_CAUSE_LIMIT);
    ck_assert(out->reckoning.is_limit_inferred);
    ck_assert_double_eq_tol(out->reckoning.limit_fraction, 0.5, 1e-9);
    free(out);
}
END_TEST

static bool advises(const uf_explanation *out, const char *words)
{
    for (uint32_t i = 0; i < out->advice_count; i++) {
        if (strstr(out->advice[i], words) != NULL) {
            return true;
        }
    }
    return false;
}

START_TEST(what_is_in_force_is_not_advised)
{
    static const char text[] =
        "CUDA out of memory. Tried to allocate 64.00 MiB. GPU 0 has a total capacity of 16.00 GiB "
        "of which 32.00 MiB is free. Of the allocated memory 15.00 GiB is allocated by PyTorch, "
        "and "
        "512.00 MiB is reserved by PyTorch but unallocated.";
    uf_conf conf;
    uf__conf_init(&conf);
    uf_explanation *out = explain(text, &conf, 0);
    ck_assert_int_eq(out->causes[0], UF_CAUSE_FRAGMENTATION);
    ck_assert(advises(out, "expandable_segments:True"));
    ck_assert(!advises(out, "max_split_size_mb"));
    free(out);
    conf.is_expandable = true;
    conf.max_split_size_bytes = 128 * UF_MIB;
    out = explain(text, &conf, 1u << UF_CONF_EXPANDABLE_SEGMENTS | 1u << UF_CONF_MAX_SPLIT_SIZE);
    ck_assert(!advises(out, "expandable_segments"));
    ck_assert(advises(out, "max_split_size_mb out"));
    free(out);
}
END_TEST

/* A snapshot made by hand: one segment half in use, one whole, one of another stream, one private.
 */
START_TEST(a_snapshot_divides_what_is_cached)
{
    uint64_t mib = UF_MIB;
    uf_trace_block blocks[] = {
        {.addr = 0, .size_bytes = 4 * mib, .state = UF_BLOCK_ACTIVE_ALLOCATED, .stack = UF_NONE},
        {.addr = 4 * mib, .size_bytes = 16 * mib, .state = UF_BLOCK_INACTIVE, .stack = UF_NONE},
        {.addr = 100 * mib, .size_bytes = 8 * mib, .state = UF_BLOCK_INACTIVE, .stack = UF_NONE},
        {.addr = 200 * mib, .size_bytes = 2 * mib, .state = UF_BLOCK_INACTIVE, .stack = UF_NONE},
        {.addr = 300 * mib, .size_bytes = 1 * mib, .state = UF_BLOCK_INACTIVE, .stack = UF_NONE}};
    uf_trace_segment segments[] = {
        {.addr = 0, .total_bytes = 20 * mib, .first_block = 0, .block_count = 2, .is_large = true},
        {.addr = 100 * mib, .total_bytes = 8 * mib, .first_block = 2, .block_count = 1},
        {.addr = 200 * mib,
         .total_bytes = 2 * mib,
         .stream = 7,
         .first_block = 3,
         .block_count = 1},
        {.addr = 300 * mib,
         .total_bytes = 1 * mib,
         .pool_id = {0, 3},
         .first_block = 4,
         .block_count = 1}};
    uf_trace trace = {.segments = segments, .segment_count = 4, .blocks = blocks, .block_count = 5};
    uf_snapshot_state state;
    ck_assert(uf__snapshot_examine(&trace, -1, &state));
    ck_assert_uint_eq(state.reserved_bytes, 31 * mib);
    ck_assert_uint_eq(state.allocated_bytes, 4 * mib);
    ck_assert_uint_eq(state.cached_bytes, 27 * mib);
    ck_assert_uint_eq(state.between_bytes, 16 * mib);
    ck_assert_uint_eq(state.whole_bytes, 8 * mib);
    ck_assert_uint_eq(state.stream_bytes, 2 * mib);
    ck_assert_uint_eq(state.pool_bytes, 1 * mib);
    ck_assert_uint_eq(state.largest_cached_bytes, 16 * mib);
    ck_assert_uint_eq(state.pinned_count, 1);
    ck_assert_ptr_eq(state.pinned[0].segment, &segments[0]);
    ck_assert_ptr_eq(state.pinned[0].holder, &blocks[0]);
    ck_assert(!state.has_oom);
}
END_TEST

START_TEST(memory_that_never_comes_back_in_a_history_is_growth)
{
    enum { ROUNDS = 400 };
    static uf_event events[ROUNDS * 3];
    for (int keeps = 0; keeps < 2; keeps++) {
        uint64_t count = 0;
        for (uint64_t i = 0; i < ROUNDS; i++) {
            events[count++] = (uf_event){
                .addr = i, .size_bytes = 100 * UF_MIB, .action = UF_ACTION_ALLOC, .site = UF_NONE};
            if (keeps == 1) {
                events[count++] =
                    (uf_event){.addr = 9000 + i, .size_bytes = UF_MIB, .action = UF_ACTION_ALLOC};
            }
            events[count++] = (uf_event){
                .addr = i, .size_bytes = 100 * UF_MIB, .action = UF_ACTION_FREE_COMPLETED};
        }
        uf_trace_device device = {.device = 0, .first = 0, .count = count};
        uf_trace_block block = {.size_bytes = ROUNDS * UF_MIB, .state = UF_BLOCK_ACTIVE_ALLOCATED};
        uf_trace_segment segment = {.total_bytes = ROUNDS * UF_MIB, .block_count = 1};
        uf_trace trace = {.events = events,
                          .event_count = count,
                          .devices = &device,
                          .device_count = 1,
                          .segments = &segment,
                          .segment_count = 1,
                          .blocks = &block,
                          .block_count = 1};
        uf_snapshot_state state;
        ck_assert(uf__snapshot_examine(&trace, 0, &state));
        ck_assert_int_eq(state.is_growing, keeps == 1);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("explain");
    TCase *all = tcase_create("all");
    tcase_add_test(all, private_pools_are_not_counted_twice);
    tcase_add_test(all, the_request_is_a_segment_and_the_tensor_is_smaller);
    tcase_add_test(all, an_unprinted_fraction_is_seen_by_its_trace);
    tcase_add_test(all, what_is_in_force_is_not_advised);
    tcase_add_test(all, a_snapshot_divides_what_is_cached);
    tcase_add_test(all, memory_that_never_comes_back_in_a_history_is_growth);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed_count = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed_count == 0 ? 0 : 1;
}
