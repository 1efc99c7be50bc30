/* SPDX-License-Identifier: MIT
 *
 * Linking: which free belongs to which request. */
#include "replay/program.h"

#include <string.h>

#include "unit/suite.h"
#include "unit/trace_maker.h"

static maker m;

static void expect_op(const uf_program *program, uint64_t at, uf_op_kind kind, uint32_t id)
{
    ck_assert_int_eq(uf__op_kind(program->ops[at]), kind);
    ck_assert_uint_eq(uf__op_id(program->ops[at]), id);
}

START_TEST(an_operation_holds_its_kind_and_an_id_of_28_bits)
{
    uint32_t op = uf__op(UF_OP_OOM, UF_OP_ID_LIMIT - 1);
    ck_assert_int_eq(uf__op_kind(op), UF_OP_OOM);
    ck_assert_uint_eq(uf__op_id(op), UF_OP_ID_LIMIT - 1);
}
END_TEST

START_TEST(requests_are_linked_to_their_frees)
{
    maker_sample(&m);
    uf_program *program = maker_link(&m);
    expect_op(program, 0, UF_OP_NONE, 0);
    expect_op(program, 1, UF_OP_ALLOC, 0);
    expect_op(program, 2, UF_OP_ALLOC, 1);
    expect_op(program, 3, UF_OP_FREE, 0);
    expect_op(program, 4, UF_OP_NONE, 0);
    expect_op(program, 5, UF_OP_ALLOC, 2);
    expect_op(program, 6, UF_OP_NONE, 0);
    ck_assert_uint_eq(program->alloc_count, 3);
    ck_assert_uint_eq(program->alloc_bytes[2], 1572864 - 100);
    ck_assert_uint_eq(program->start_count, 0);
    ck_assert_uint_eq(program->peak_live_bytes, 5 * MAKER_MIB);
    ck_assert_uint_eq(program->report.contradiction_count, 0);
    uf_program_destroy(program);
}
END_TEST

START_TEST(a_free_that_completes_later_is_two_operations)
{
    maker_init(&m);
    maker_event(&m, UF_ACTION_ALLOC, 512, 100);
    maker_event(&m, UF_ACTION_FREE_REQUESTED, 512, 100);
    maker_event(&m, UF_ACTION_ALLOC, 4096, 100);
    maker_event(&m, UF_ACTION_FREE_COMPLETED, 512, 100);
    uf_program *program = maker_link(&m);
    expect_op(program, 1, UF_OP_FREE_LATER, 0);
    expect_op(program, 3, UF_OP_COMPLETE, 0);
    ck_assert_uint_eq(program->peak_live_bytes, 1024);
    uf_program_destroy(program);
}
END_TEST

START_TEST(an_address_may_be_allocated_again_after_its_free)
{
    maker_init(&m);
    for (int i = 0; i < 100; i++) {
        maker_event(&m, UF_ACTION_ALLOC, 512, 100);
        maker_free(&m, 512, 100);
    }
    uf_program *program = maker_link(&m);
    ck_assert_uint_eq(program->alloc_count, 100);
    expect_op(program, 298, UF_OP_FREE, 99);
    ck_assert_uint_eq(program->peak_live_bytes, 512);
    ck_assert_uint_eq(program->report.contradiction_count, 0);
    uf_program_destroy(program);
}
END_TEST

START_TEST(what_is_freed_without_an_alloc_was_there_before)
{
    maker_init(&m);
    maker_event_at(&m, UF_ACTION_FREE_REQUESTED, 512, 1000, MAKER_STREAM_7);
    maker_event_at(&m, UF_ACTION_FREE_COMPLETED, 512, 1000, MAKER_STREAM_7);
    maker_event(&m, UF_ACTION_FREE_COMPLETED, 8192, 600);
    uf_program *program = maker_link(&m);
    ck_assert_uint_eq(program->start_count, 2);
    ck_assert_uint_eq(program->start_addrs[0], 512);
    ck_assert_uint_eq(program->alloc_bytes[program->start_ids[0]], 1000);
    ck_assert_uint_eq(program->streams[program->alloc_stream[0]], 7);
    expect_op(program, 0, UF_OP_FREE, 0);
    expect_op(program, 2, UF_OP_FREE, 1);
    ck_assert_uint_eq(program->peak_live_bytes, 1024 + 1024);
    ck_assert_uint_eq(program->report.contradiction_count, 0);
    uf_program_destroy(program);
}
END_TEST

START_TEST(active_blocks_that_no_event_mentions_were_there_before)
{
    maker_sample(&m);
    m.devices[0].count = 0;
    m.trace.event_count = 0;
    uf_program *program = maker_link(&m);
    ck_assert_uint_eq(program->start_count, 2);
    ck_assert_uint_eq(program->start_addrs[1], MAKER_BASE + 3 * MAKER_MIB);
    ck_assert_uint_eq(program->peak_live_bytes, 1572864 + 2 * MAKER_MIB);
    uf_program_destroy(program);
}
END_TEST

START_TEST(releases_before_no_request_are_an_empty_cache)
{
    maker_init(&m);
    maker_event(&m, UF_ACTION_SEGMENT_FREE, MAKER_BASE, 2 * MAKER_MIB);
    maker_event(&m, UF_ACTION_SEGMENT_UNMAP, MAKER_BASE, 2 * MAKER_MIB);
    maker_event(&m, UF_ACTION_SNAPSHOT, 0, 0);
    maker_event(&m, UF_ACTION_SEGMENT_FREE, MAKER_BASE, 2 * MAKER_MIB);
    maker_event(&m, UF_ACTION_SEGMENT_ALLOC, MAKER_BASE, 2 * MAKER_MIB);
    maker_event(&m, UF_ACTION_OOM, 0, 2 * MAKER_MIB);
    uf_program *program = maker_link(&m);
    expect_op(program, 0, UF_OP_EMPTY, 0);
    expect_op(program, 1, UF_OP_NONE, 0);
    expect_op(program, 3, UF_OP_NONE, 0);
    expect_op(program, 5, UF_OP_OOM, 0);
    ck_assert_uint_eq(program->report.empty_cache_count, 1);
    ck_assert_uint_eq(program->report.oom_count, 1);
    uf_program_destroy(program);
}
END_TEST

START_TEST(streams_and_pools_are_numbered_in_the_order_they_appear)
{
    maker_init(&m);
    maker_event_at(&m, UF_ACTION_ALLOC, 512, 1, MAKER_STREAM_9);
    maker_event_at(&m, UF_ACTION_ALLOC, 1024, 1, MAKER_POOL_5);
    maker_event_at(&m, UF_ACTION_ALLOC, 1536, 1, MAKER_STREAM_9);
    uf_program *program = maker_link(&m);
    ck_assert_uint_eq(program->stream_count, 2);
    ck_assert_uint_eq(program->streams[0], 0);
    ck_assert_uint_eq(program->streams[1], 9);
    ck_assert_uint_eq(program->alloc_stream[0], 1);
    ck_assert_uint_eq(program->alloc_stream[1], 0);
    ck_assert_uint_eq(program->pool_count, 2);
    ck_assert_uint_eq(program->alloc_pool[0], 0);
    ck_assert_uint_eq(program->alloc_pool[1], 1);
    ck_assert_uint_eq(program->pools[1].id[1], 5);
    ck_assert(program->pools[1].is_recorded);
    uf_program_destroy(program);
}
END_TEST

/* The contradiction that the last event of m makes. */
static void expect_contradiction(uint64_t event, const char *text)
{
    uf_program *program = maker_link(&m);
    ck_assert_uint_eq(program->report.contradiction_count, 1);
    ck_assert_uint_eq(program->report.contradiction.event, event);
    ck_assert_int_eq(program->report.contradiction.kind, UF_DIFFERENCE_EVENT);
    if (strstr(program->report.contradiction.text, text) == NULL) {
        ck_abort_msg("\"%s\" does not say \"%s\"", program->report.contradiction.text, text);
    }
    uf_program_destroy(program);
}

START_TEST(contradictions_name_their_event)
{
    maker_init(&m);
    maker_event(&m, UF_ACTION_ALLOC, 512, 100);
    maker_event(&m, UF_ACTION_ALLOC, 512, 100);
    expect_contradiction(1, "in use already");
    maker_init(&m);
    maker_event(&m, UF_ACTION_ALLOC, 512, 100);
    maker_free(&m, 512, 101);
    expect_contradiction(1, "another size");
    maker_init(&m);
    maker_event(&m, UF_ACTION_ALLOC, 512, 100);
    maker_event(&m, UF_ACTION_FREE_REQUESTED, 512, 100);
    maker_event(&m, UF_ACTION_SNAPSHOT, 0, 0);
    maker_event(&m, UF_ACTION_FREE_REQUESTED, 512, 100);
    expect_contradiction(3, "requested before");
    maker_init(&m);
    maker_event(&m, UF_ACTION_ALLOC, 512, 100);
    maker_free(&m, 512, 100);
    maker_event(&m, UF_ACTION_SNAPSHOT, 0, 0);
    maker_event(&m, UF_ACTION_FREE_COMPLETED, 512, 100);
    expect_contradiction(4, "freed before");
}
END_TEST

START_TEST(more_than_65535_streams_are_unsupported)
{
    uf_program *program = calloc(1, sizeof *program);
    ck_assert_ptr_nonnull(program);
    uint32_t stream;
    for (uint32_t i = 0; i < UINT16_MAX; i++) {
        ck_assert(uf__program_stream(program, UINT64_MAX - i, &stream));
        if (i > 300) { /* a linear search: the rest by hand */
            program->stream_count = UINT16_MAX;
            break;
        }
    }
    free(program->streams);
    program->streams = calloc(UINT16_MAX, sizeof *program->streams);
    ck_assert_ptr_nonnull(program->streams);
    ck_assert(!uf__program_stream(program, 12345, &stream));
    uf_program_destroy(program);
}
END_TEST

int main(void)
{
    return suite_run("program", (const TTest *const[]){
                                    an_operation_holds_its_kind_and_an_id_of_28_bits,
                                    requests_are_linked_to_their_frees,
                                    a_free_that_completes_later_is_two_operations,
                                    an_address_may_be_allocated_again_after_its_free,
                                    what_is_freed_without_an_alloc_was_there_before,
                                    active_blocks_that_no_event_mentions_were_there_before,
                                    releases_before_no_request_are_an_empty_cache,
                                    streams_and_pools_are_numbered_in_the_order_they_appear,
                                    contradictions_name_their_event,
                                    more_than_65535_streams_are_unsupported,
                                    NULL,
                                });
}
