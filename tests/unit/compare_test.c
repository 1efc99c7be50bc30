/* SPDX-License-Identifier: MIT
 *
 * Final segments and blocks: each field that differs is found. */
#include "replay/follow.h"

#include "unit/follow_bench.h"
#include "unit/suite.h"

static follow_bench f;

static void expect_segment(const char *text)
{
    follow_bench_expect_difference(&f, UF_DIFFERENCE_SEGMENT, UF_EVENT_NONE, text);
    maker_sample(&f.m);
}

static void expect_block(const char *text)
{
    follow_bench_expect_difference(&f, UF_DIFFERENCE_BLOCK, UF_EVENT_NONE, text);
    maker_sample(&f.m);
}

START_TEST(each_field_of_a_segment_is_compared)
{
    maker_sample(&f.m);
    uf_trace_segment *segment = &f.m.segments[0];
    segment->addr += 512;
    expect_segment("expected: 0x7f0000000200");
    segment->total_bytes += 512;
    expect_segment("20972032 bytes");
    segment->stream = 7;
    expect_segment("stream 7");
    segment->is_large = false;
    expect_segment("final segment expected");
    segment->is_expandable = true;
    expect_segment("final segment expected");
    segment->allocated_bytes -= 512;
    expect_segment("3669504 allocated");
    segment->active_bytes -= 512;
    expect_segment("3669504 active");
    segment->requested_bytes -= 1;
    expect_segment("final segment expected");
    segment->pool_id[0] = 3;
    expect_segment("pool (3,0)");
}
END_TEST

START_TEST(each_field_of_a_block_is_compared)
{
    maker_sample(&f.m);
    uf_trace_block *block = &f.m.blocks[1];
    block->addr += 512;
    expect_block("0x7f0000180200, 1572864 bytes");
    block->size_bytes += 512;
    expect_block("1573376 bytes");
    block->requested_bytes = 77;
    expect_block("requested 77, inactive; the model has 0x7f0000180000, 1572864 bytes, requested "
                 "3145728, inactive");
    block->state = UF_BLOCK_ACTIVE_PENDING_FREE;
    expect_block("active_pending_free; the model has");
}
END_TEST

START_TEST(a_block_too_few_or_too_many_is_a_difference)
{
    maker_sample(&f.m);
    f.m.segments[0].block_count = 3;
    expect_block("expected with 3 blocks, the model has 4");
    maker_block(&f.m, 512, 0, UF_BLOCK_INACTIVE);
    f.m.segments[0].total_bytes -= 512;
    expect_block("final block expected");
}
END_TEST

START_TEST(a_segment_too_few_or_too_many_is_a_difference)
{
    maker_sample(&f.m);
    f.m.trace.segment_count = 0;
    expect_segment("final segment expected: none");
    maker_segment(&f.m, MAKER_BASE + 100 * MAKER_MIB, true);
    maker_block(&f.m, 20 * MAKER_MIB, 0, UF_BLOCK_INACTIVE);
    expect_segment("the model has none");
}
END_TEST

START_TEST(what_a_layout_does_not_have_is_not_compared)
{
    maker_sample(&f.m);
    f.m.segments[0].has_pool_id = f.m.segments[0].has_requested = false;
    f.m.segments[0].pool_id[0] = 3;
    f.m.segments[0].requested_bytes = 0;
    f.m.blocks[1].has_requested = false;
    f.m.blocks[1].requested_bytes = 0;
    follow_bench_expect_equal(&f);
}
END_TEST

START_TEST(the_order_of_segments_in_the_file_does_not_matter)
{
    maker_init(&f.m);
    for (uint64_t i = 0; i < 3; i++) {
        maker_event(&f.m, UF_ACTION_SEGMENT_ALLOC, MAKER_BASE + i * 50 * MAKER_MIB, 12 * MAKER_MIB);
        maker_event(&f.m, UF_ACTION_ALLOC, MAKER_BASE + i * 50 * MAKER_MIB, 12 * MAKER_MIB);
        maker_segment(&f.m, MAKER_BASE + (2 - i) * 50 * MAKER_MIB, true);
        maker_block(&f.m, 12 * MAKER_MIB, 12 * MAKER_MIB, UF_BLOCK_ACTIVE_ALLOCATED);
    }
    follow_bench_expect_equal(&f);
}
END_TEST

START_TEST(segments_of_other_devices_are_not_looked_at)
{
    maker_sample(&f.m);
    maker_segment(&f.m, MAKER_BASE, true)->device = 4;
    maker_block(&f.m, 512, 0, UF_BLOCK_INACTIVE);
    follow_bench_expect_equal(&f);
}
END_TEST

int main(void)
{
    return suite_run("compare", (const TTest *const[]){
                                    each_field_of_a_segment_is_compared,
                                    each_field_of_a_block_is_compared,
                                    a_block_too_few_or_too_many_is_a_difference,
                                    a_segment_too_few_or_too_many_is_a_difference,
                                    what_a_layout_does_not_have_is_not_compared,
                                    the_order_of_segments_in_the_file_does_not_matter,
                                    segments_of_other_devices_are_not_looked_at,
                                    NULL,
                                });
}
