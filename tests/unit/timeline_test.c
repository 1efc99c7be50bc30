/* SPDX-License-Identifier: MIT
 *
 * Memory over the events of a trace, where the trace begins mid-life too. */
#include "trace/timeline.h"

#include <string.h>

#include "suite.h"

static uf_event events[8];
static uf_site sites[1];
static uf_trace_device devices[2];
static uf_trace_segment segments[1];
static uf_trace_block blocks[2];
static uf_trace trace;

static void begin(void)
{
    memset(events, 0, sizeof events);
    memset(&trace, 0, sizeof trace);
    trace.events = events;
    trace.sites = sites;
    trace.site_count = 1;
    trace.devices = devices;
    trace.segments = segments;
    trace.blocks = blocks;
}

static void add(uf_action action, uint64_t size_bytes, int64_t time_us)
{
    events[trace.event_count++] =
        (uf_event){.size_bytes = size_bytes, .time_us = time_us, .action = (uint8_t)action};
    devices[0] = (uf_trace_device){.device = 0, .first = 0, .count = trace.event_count};
    trace.device_count = 1;
}

static void expect_levels(const uf_timeline *timeline, int64_t allocated, int64_t active,
                          int64_t live, int64_t reserved)
{
    ck_assert_int_eq(timeline->levels[UF_LEVEL_ALLOCATED], allocated);
    ck_assert_int_eq(timeline->levels[UF_LEVEL_ACTIVE], active);
    ck_assert_int_eq(timeline->levels[UF_LEVEL_LIVE], live);
    ck_assert_int_eq(timeline->levels[UF_LEVEL_RESERVED], reserved);
}

START_TEST(a_freed_block_is_active_until_its_free_completes)
{
    begin();
    add(UF_ACTION_SEGMENT_ALLOC, 4096, 100);
    add(UF_ACTION_ALLOC, 1000, 101);
    add(UF_ACTION_FREE_REQUESTED, 1000, 105);
    add(UF_ACTION_FREE_COMPLETED, 1000, 107);
    add(UF_ACTION_SEGMENT_FREE, 4096, 107);
    uf_timeline timeline;
    int64_t time_us;
    uf__timeline_begin(&timeline, &trace, 0);
    expect_levels(&timeline, 0, 0, 0, 0);
    ck_assert(uf__timeline_step(&timeline, &time_us) == &events[0]);
    expect_levels(&timeline, 0, 0, 0, 4096);
    ck_assert_ptr_nonnull(uf__timeline_step(&timeline, &time_us));
    expect_levels(&timeline, 1000, 1000, 1024, 4096);
    ck_assert_ptr_nonnull(uf__timeline_step(&timeline, &time_us));
    expect_levels(&timeline, 0, 1000, 1024, 4096);
    ck_assert_int_eq(time_us, 5);
    ck_assert_ptr_nonnull(uf__timeline_step(&timeline, &time_us));
    ck_assert_ptr_nonnull(uf__timeline_step(&timeline, &time_us));
    expect_levels(&timeline, 0, 0, 0, 0);
    ck_assert_ptr_null(uf__timeline_step(&timeline, &time_us));
    ck_assert(timeline.has_reserved);
}
END_TEST

START_TEST(what_was_there_before_the_first_event_follows_from_the_end)
{
    begin();
    segments[0] = (uf_trace_segment){.total_bytes = 8192, .block_count = 2};
    trace.segment_count = 1;
    blocks[0] = (uf_trace_block){.size_bytes = 1024,
                                 .requested_bytes = 900,
                                 .has_requested = true,
                                 .state = UF_BLOCK_ACTIVE_ALLOCATED};
    blocks[1] = (uf_trace_block){.size_bytes = 512, .state = UF_BLOCK_ACTIVE_PENDING_FREE};
    add(UF_ACTION_FREE_REQUESTED, 2000, 1);
    add(UF_ACTION_FREE_COMPLETED, 2000, 2);
    uf_timeline timeline;
    uf__timeline_begin(&timeline, &trace, 0);
    expect_levels(&timeline, 2900, 900 + 512 + 2000, 1024 + 512 + 2048, 8192);
}
END_TEST

START_TEST(without_segments_reserved_is_not_told_and_nothing_is_below_zero)
{
    begin();
    add(UF_ACTION_ALLOC, 600, UF_TIME_UNKNOWN);
    add(UF_ACTION_ALLOC, 600, UF_TIME_UNKNOWN);
    uf_timeline timeline;
    int64_t time_us;
    uf__timeline_begin(&timeline, &trace, 0);
    expect_levels(&timeline, 0, 0, 0, 0);
    ck_assert(!timeline.has_reserved);
    ck_assert_ptr_nonnull(uf__timeline_step(&timeline, &time_us));
    ck_assert_int_eq(time_us, 0);
    ck_assert_ptr_nonnull(uf__timeline_step(&timeline, &time_us));
    ck_assert_int_eq(time_us, 1);
    expect_levels(&timeline, 1200, 1200, 2048, 0);
}
END_TEST

START_TEST(time_never_falls_and_begins_with_the_first_device)
{
    begin();
    add(UF_ACTION_ALLOC, 1, 1000);
    add(UF_ACTION_ALLOC, 1, 900);
    add(UF_ACTION_ALLOC, 1, 1200);
    events[trace.event_count++] = (uf_event){.size_bytes = 1, .time_us = 400};
    devices[1] = (uf_trace_device){.device = 1, .first = 3, .count = 1};
    trace.device_count = 2;
    static const int64_t wanted[] = {600, 600, 800};
    uf_timeline timeline;
    uf__timeline_begin(&timeline, &trace, 0);
    for (int i = 0; i < 3; i++) {
        int64_t time_us = -1;
        ck_assert_ptr_nonnull(uf__timeline_step(&timeline, &time_us));
        ck_assert_int_eq(time_us, wanted[i]);
    }
}
END_TEST

int main(void)
{
    return suite_run("timeline",
                     (const TTest *const[]){
                         a_freed_block_is_active_until_its_free_completes,
                         what_was_there_before_the_first_event_follows_from_the_end,
                         without_segments_reserved_is_not_told_and_nothing_is_below_zero,
                         time_never_falls_and_begins_with_the_first_device,
                         NULL,
                     });
}
