/* SPDX-License-Identifier: MIT
 *
 * Traces that contradict themselves: counted, told with their event, never fatal. */
#include "replay/audit.h"

#include "unit/suite.h"
#include "unit/trace_maker.h"

#define MIB MAKER_MIB
#define BASE MAKER_BASE

static maker m;

/* The first contradiction of m, and that a what-if run goes through all the same. */
static void expect(uint64_t count, uint64_t event, const char *text)
{
    uf_program *program = maker_program(&m, NULL);
    const uf_program_report *report = uf_program_report_get(program);
    ck_assert(!report->is_equal);
    ck_assert_uint_eq(report->contradiction_count, count);
    ck_assert_uint_eq(report->contradiction.event, event);
    if (strstr(report->contradiction.text, text) == NULL) {
        ck_abort_msg("\"%s\" does not say \"%s\"", report->contradiction.text, text);
    }
    uf_replay_options options = {.struct_size_bytes = sizeof options, .is_checked = true};
    uf_replay_result result;
    uf_error error = {UF_OK, ""};
    if (uf_replay_run(program, &options, &result, &error) != UF_OK) {
        ck_abort_msg("%s", error.text);
    }
    uf_program_destroy(program);
}

START_TEST(a_sound_trace_has_none)
{
    maker_sample(&m);
    uf_program *program = maker_program(&m, NULL);
    ck_assert_uint_eq(uf_program_report_get(program)->contradiction_count, 0);
    uf_program_destroy(program);
}
END_TEST

START_TEST(a_difference_to_the_model_is_not_a_contradiction)
{
    maker_sample(&m);
    /* Another allocator put the second block a MiB further on. */
    m.events[2].addr += MIB;
    m.blocks[1].size_bytes += MIB;
    m.blocks[2].addr += MIB;
    m.blocks[3].addr += MIB;
    m.blocks[3].size_bytes -= MIB;
    uf_program *program = maker_program(&m, NULL);
    ck_assert(!uf_program_report_get(program)->is_equal);
    ck_assert_uint_eq(uf_program_report_get(program)->contradiction_count, 0);
    uf_program_destroy(program);
}
END_TEST

START_TEST(a_double_free_is_one)
{
    maker_sample(&m);
    maker_free(&m, BASE, 1572864 - 100);
    maker_free(&m, BASE, 1572864 - 100);
    expect(2, 9, "freed before and not allocated since");
}
END_TEST

START_TEST(an_allocation_across_a_live_one_is_one)
{
    maker_sample(&m);
    m.events[5].addr = BASE + 2 * MIB;
    m.events[5].size_bytes = 2 * MIB;
    expect(1, 5, "alloc of 2097152 bytes at 0x7f0000200000 overlaps");
}
END_TEST

START_TEST(an_allocation_at_a_live_address_is_one)
{
    maker_sample(&m);
    m.events[5].addr = BASE + 3 * MIB;
    expect(2, 5, "in use already");
}
END_TEST

START_TEST(a_free_of_another_size_is_one)
{
    maker_sample(&m);
    m.events[3].size_bytes = m.events[4].size_bytes = 4 * MIB;
    expect(1, 3, "another size than was allocated there");
}
END_TEST

START_TEST(final_blocks_that_the_events_do_not_leave_are_one)
{
    maker_sample(&m);
    m.blocks[2].state = UF_BLOCK_INACTIVE;
    expect(1, UF_EVENT_NONE, "the events leave 2 blocks allocated, the final segments have 1");
}
END_TEST

START_TEST(final_segments_without_what_is_live_are_one)
{
    maker_sample(&m);
    m.segments[0].addr += 512 * MIB;
    for (int i = 0; i < 4; i++) {
        m.blocks[i].addr += 512 * MIB;
    }
    uf_program *program = maker_program(&m, NULL);
    const uf_program_report *report = uf_program_report_get(program);
    ck_assert(!report->is_equal);
    ck_assert_uint_ge(report->contradiction_count, 1);
    ck_assert_uint_eq(report->contradiction.event, UF_EVENT_NONE);
    uf_program_destroy(program);
}
END_TEST

START_TEST(an_allocation_at_the_end_of_the_address_space_is_survived)
{
    maker_sample(&m);
    m.events[5].addr = UINT64_MAX - 100;
    m.events[5].size_bytes = UINT64_MAX;
    uf_program *program = maker_program(&m, NULL);
    ck_assert(!uf_program_report_get(program)->is_equal);
    uf_replay_result result;
    uf_error error = {UF_OK, ""};
    ck_assert_int_eq(uf_replay_run(program, NULL, &result, &error), UF_OK);
    ck_assert(result.has_oom);
    ck_assert_uint_eq(result.first_oom.event, 5);
    ck_assert_uint_eq(result.first_oom.requested_bytes, UINT64_MAX);
    uf_program_destroy(program);
}
END_TEST

int main(void)
{
    return suite_run("audit", (const TTest *const[]){
                                  a_sound_trace_has_none,
                                  a_difference_to_the_model_is_not_a_contradiction,
                                  a_double_free_is_one,
                                  an_allocation_across_a_live_one_is_one,
                                  an_allocation_at_a_live_address_is_one,
                                  a_free_of_another_size_is_one,
                                  final_blocks_that_the_events_do_not_leave_are_one,
                                  final_segments_without_what_is_live_are_one,
                                  an_allocation_at_the_end_of_the_address_space_is_survived,
                                  NULL,
                              });
}
