/* SPDX-License-Identifier: MIT
 *
 * What docs/internals/torch-policy.md says of PyTorch's interface (messages, pool numbers, names of
 * statistics, the moment when settings count), through ours. Its allocator proper:
 * tests/oracle/conformance_*.c. */
#include <unfrag/unfrag.h>

#include "alloc/allocator_parts.h"
#include "alloc/conf.h"
#include "replay/program.h"
#include "unit/allocator_fixture.h"
#include "unit/recordings.h"
#include "unit/suite.h"

START_TEST(a_message_names_the_segment_that_was_tried)
{
    fixture f;
    uint64_t addr = 0;
    fixture_init(&f, NULL, 10 * MIB);
    refuses(&f, UF_ERROR_OUT_OF_MEMORY, uf_alloc(f.allocator, 400 * MIB + 5, 0, &addr, &f.error),
            "requested 419430405 bytes (400.00 MiB) on stream 0x0, which needs a segment of 402.00 "
            "MiB; limit 10.00 MiB");
    refuses(&f, UF_ERROR_OUT_OF_MEMORY, uf_alloc(f.allocator, 3 * MIB, 0, &addr, &f.error),
            "which needs a segment of 20.00 MiB");
    fixture_fini(&f);
}
END_TEST

START_TEST(a_request_of_2_to_the_60_minus_1_is_an_ordinary_failure)
{
    fixture f;
    uint64_t addr = 0;
    fixture_init(&f, NULL, 10 * MIB);
    refuses(&f, UF_ERROR_REQUEST_TOO_LARGE,
            uf_alloc(f.allocator, UINT64_C(1) << 60, 0, &addr, &f.error), "1152921504606846976");
    ck_assert_int_eq(stats_of(&f).num_ooms, 0);
    refuses(&f, UF_ERROR_OUT_OF_MEMORY,
            uf_alloc(f.allocator, (UINT64_C(1) << 60) - 1, 0, &addr, &f.error), "limit 10.00 MiB");
    ck_assert_int_eq(stats_of(&f).num_ooms, 1);
    fixture_fini(&f);
}
END_TEST

static bool note_pool(void *context, const uf_segment_info *segment, const uf_block_info *blocks)
{
    uint64_t *ids = context;
    (void)blocks;
    ids[0] += segment->pool_id[0];
    ids[1] = ids[1] * 10 + segment->pool_id[1];
    return true;
}

START_TEST(pools_made_by_hand_are_0_1_and_0_2)
{
    fixture f;
    uint64_t ids[2] = {0, 0};
    fixture_init(&f, NULL, 0);
    for (uint64_t number = 1; number <= 2; number++) {
        uint64_t pool = 0;
        ck_assert_int_eq(uf_pool_create(f.allocator, NULL, &pool, &f.error), UF_OK);
        ck_assert_uint_eq(pool, number);
        ck_assert_int_eq(uf_pool_begin(f.allocator, pool, &f.error), UF_OK);
        (void)take(&f, 3 * MIB, 0);
        ck_assert_int_eq(uf_pool_end(f.allocator, pool, &f.error), UF_OK);
    }
    ck_assert_int_eq(uf_walk(f.allocator, note_pool, ids, &f.error), UF_OK);
    ck_assert_uint_eq(ids[0], 0);
    ck_assert(ids[1] == 12 || ids[1] == 21); /* by address */
    fixture_fini(&f);
}
END_TEST

START_TEST(pools_of_captures_have_their_number_in_front)
{
    recording entry;
    uf_trace *trace = recording_read_named("graphs.default", &entry);
    size_t private_count = 0;
    for (uint32_t i = 0; i < trace->segment_count; i++) {
        const uint64_t *id = trace->segments[i].pool_id;
        if (id[0] != 0 || id[1] != 0) {
            private_count++;
            ck_assert_uint_ne(id[0], 0);
            ck_assert_uint_eq(id[1], 0);
        }
    }
    ck_assert_uint_gt(private_count, 0);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(a_scope_raises_the_use_count_from_1_to_2_and_its_end_lowers_it)
{
    fixture f;
    uint64_t pool = 0;
    uint32_t index = 0;
    fixture_init(&f, NULL, 0);
    const uf_core *core = &f.allocator->core;
    ck_assert_int_eq(uf_pool_create(f.allocator, NULL, &pool, &f.error), UF_OK);
    ck_assert(uf__core_pool_find(core, 0, pool, &index));
    ck_assert_int_eq(core->pools[index].use_count, 1);
    ck_assert_int_eq(uf_pool_begin(f.allocator, pool, &f.error), UF_OK);
    ck_assert_int_eq(core->pools[index].use_count, 2);
    ck_assert_int_eq(uf_pool_end(f.allocator, pool, &f.error), UF_OK);
    ck_assert_int_eq(core->pools[index].use_count, 1);
    fixture_fini(&f);
}
END_TEST

START_TEST(the_group_of_what_is_handed_out_is_called_allocation)
{
    uf_stats stats = {0};
    stats.allocation.all.current = 7;
    int64_t value = 0;
    ck_assert(uf_stats_find(&stats, "allocation.all.current", &value));
    ck_assert_int_eq(value, 7);
    ck_assert(!uf_stats_find(&stats, "allocated.all.current", &value));
    ck_assert(!uf_stats_find(&stats, "num_oom_rejections", &value)); /* of later releases */
}
END_TEST

START_TEST(statistics_nest_in_pytorchs_order)
{
#define NAME(name, unit, text) #name,
    static const char *const got[] = {UF_STATS_COUNTER_LIST(NAME) UF_STATS_GROUP_LIST(NAME)
                                          UF_STATS_OVERSIZE_LIST(NAME)};
#undef NAME
    static const char *const expected[] = {
        "num_alloc_retries", "num_ooms", "max_split_size", "num_sync_all_streams",
        "num_device_alloc", "num_device_free",
        /* groups */
        "allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes",
        "active_bytes", "inactive_split_bytes", "requested_bytes",
        /* not divided by pool */
        "oversize_allocations", "oversize_segments"};
    const size_t count = sizeof expected / sizeof expected[0];
    ck_assert_uint_eq(sizeof got / sizeof got[0], count);
    for (size_t i = 0; i < count; i++) {
        ck_assert_str_eq(got[i], expected[i]);
    }
    ck_assert_uint_eq(offsetof(uf_stat_group, all), 0);
    ck_assert_uint_lt(offsetof(uf_stat_group, small_pool), offsetof(uf_stat_group, large_pool));
}
END_TEST

START_TEST(a_clamped_max_split_size_shows_as_minus_1048576)
{
    fixture f;
    fixture_init(&f, "max_split_size_mb:17592186044416", 0);
    ck_assert_int_eq(stats_of(&f).max_split_size, -1048576);
    fixture_fini(&f);
    fixture_init(&f, NULL, 0);
    ck_assert_int_eq(stats_of(&f).max_split_size, -1);
    fixture_fini(&f);
}
END_TEST

/* A program that never touches CUDA does not see a bad value: only the reading does. */
START_TEST(a_bad_value_passes_the_import_and_fails_when_it_is_read)
{
    static const char *const texts[] = {"max_split_size_mb:10", "expandable_segments:true",
                                        "garbage_collection_threshold:80%", "nonsense:1"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const uf_conf_reading reading = {.grammar = UF_CONF_2_11, .is_at_import = true};
        uf_conf conf;
        uf_conf_report report;
        uf_error error;
        ck_assert_int_eq(uf__conf_backend_scan(texts[i], NULL, &error), UF_OK);
        uf__conf_init(&conf);
        ck_assert_int_eq(uf__conf_read(&conf, texts[i], &reading, &report, &error), UF_ERROR_CONF);
        ck_assert_int_eq(report.exception, UF_CONF_RAISES_VALUE_ERROR);
    }
}
END_TEST

START_TEST(an_unknown_key_is_named_and_so_is_a_bad_boolean)
{
    static const struct {
        const char *text, *part;
    } cases[] = {{"maximum:1", "'maximum'"},
                 {"expandable_segments:TRUE", "'TRUE'"},
                 {"expandable_segments:1", "'1'"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fixture f;
        uf_allocator_options options = fixture_options(&f, cases[i].text);
        uf_allocator *made = NULL;
        ck_assert_int_eq(uf_allocator_create(&options, &made, &f.error), UF_ERROR_CONF);
        ck_assert_msg(strstr(f.error.text, cases[i].part) != NULL, "%s", f.error.text);
    }
}
END_TEST

/* A call that failed half-way leaves its string in the snapshot, and what stood before the bad item
 * in force: a recording made after it is read so. */
START_TEST(a_recording_after_a_failed_call_keeps_the_string_and_its_first_half)
{
    recording entry;
    uf_error error = {UF_OK, ""};
    uf_program *program = NULL;
    uf_trace *trace = recording_read_named("graphs.default", &entry);
    static char string[] = "\0max_split_size_mb:128;garbage_collection_threshold:0.8";
    static uint64_t offsets[] = {0, 1, sizeof string};
    char *own_data = trace->string_data;
    uint64_t *own_offsets = trace->string_offsets;
    uint32_t own_count = trace->string_count;
    trace->string_data = string;
    trace->string_offsets = offsets;
    trace->string_count = 2;
    trace->settings.conf = 1;
    trace->settings.has_conf = true;
    trace->settings.max_split_size_bytes = 128 << 20;
    const uf_program_options options = {.struct_size_bytes = sizeof options,
                                        .num_alloc_retries = -1};
    ck_assert_int_eq(uf_program_create(trace, &options, &program, &error), UF_OK);
    ck_assert_str_eq(uf_program_conf(program), string + 1);
    ck_assert_uint_eq(program->conf.max_split_size_bytes, 128 * MIB);
    ck_assert(program->conf.garbage_collection_threshold == 0.0);
    uf_program_destroy(program);
    trace->string_data = own_data;
    trace->string_offsets = own_offsets;
    trace->string_count = own_count;
    uf_trace_destroy(trace);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_message_names_the_segment_that_was_tried,
        a_request_of_2_to_the_60_minus_1_is_an_ordinary_failure,
        pools_made_by_hand_are_0_1_and_0_2,
        pools_of_captures_have_their_number_in_front,
        a_scope_raises_the_use_count_from_1_to_2_and_its_end_lowers_it,
        the_group_of_what_is_handed_out_is_called_allocation,
        statistics_nest_in_pytorchs_order,
        a_clamped_max_split_size_shows_as_minus_1048576,
        a_bad_value_passes_the_import_and_fails_when_it_is_read,
        an_unknown_key_is_named_and_so_is_a_bad_boolean,
        a_recording_after_a_failed_call_keeps_the_string_and_its_first_half,
        NULL,
    };
    return suite_run("policy", tests);
}
