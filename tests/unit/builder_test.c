/* SPDX-License-Identifier: MIT
 *
 * The builder of traces: interning, growing, and what it counts at the end. */
#include "trace/builder.h"

#include "pickle_bytes.h"

static uint32_t string_id(uf_builder *builder, const char *text)
{
    uint32_t id;
    ck_assert(uf__builder_string(builder, text, strlen(text), &id));
    return id;
}

static uf_trace *finish(uf_builder *builder)
{
    uf_trace *trace = NULL;
    ck_assert(uf__builder_finish(builder, &trace));
    ck_assert_ptr_nonnull(trace);
    return trace;
}

START_TEST(the_same_string_has_the_same_id_and_the_empty_one_is_0)
{
    uf_builder *builder = uf__builder_create();
    ck_assert_uint_eq(string_id(builder, ""), 0);
    uint32_t a = string_id(builder, "a");
    uint32_t b = string_id(builder, "b");
    ck_assert_uint_eq(a, 1);
    ck_assert_uint_eq(b, 2);
    ck_assert_uint_eq(string_id(builder, "a"), a);
    uint32_t with_nul;
    ck_assert(uf__builder_string(builder, "a\0x", 3, &with_nul));
    ck_assert_uint_eq(with_nul, 3);
    uf_trace *trace = finish(builder);
    ck_assert_uint_eq(trace->string_count, 4);
    ck_assert_str_eq(uf_trace_string(trace, a), "a");
    ck_assert_str_eq(uf_trace_string(trace, with_nul), "a");
    ck_assert_uint_eq(trace->string_offsets[4] - trace->string_offsets[3], 4);
    ck_assert_str_eq(uf_trace_string(trace, UF_NONE), "");
    ck_assert_str_eq(uf_trace_string(trace, 99), "");
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(ids_stay_right_while_the_tables_grow)
{
    uf_builder *builder = uf__builder_create();
    uint64_t wrong_count = 0;
    for (uint32_t i = 0; i < 40000; i++) {
        char text[32];
        uint32_t id = UF_NONE;
        snprintf(text, sizeof text, "string %u", i % 20000);
        if (!uf__builder_string(builder, text, strlen(text), &id) || id != i % 20000 + 1)
            wrong_count++;
    }
    ck_assert_uint_eq(wrong_count, 0);
    ck_assert_uint_eq(uf__builder_trace(builder)->string_count, 20001);
    uf__builder_destroy(builder);
}
END_TEST

START_TEST(frames_stacks_and_sites_are_kept_once)
{
    uf_builder *builder = uf__builder_create();
    uf_frame frame = {.filename = 1, .name = 2, .line = 3};
    uint32_t first, second, again;
    ck_assert(uf__builder_frame(builder, &frame, &first));
    frame.line = 4;
    ck_assert(uf__builder_frame(builder, &frame, &second));
    frame.line = 3;
    ck_assert(uf__builder_frame(builder, &frame, &again));
    ck_assert_uint_eq(first, 0);
    ck_assert_uint_eq(second, 1);
    ck_assert_uint_eq(again, 0);
    uint32_t ids[] = {0, 1, 0};
    uint32_t long_stack, short_stack, empty_stack;
    ck_assert(uf__builder_stack(builder, ids, 3, &long_stack));
    ck_assert(uf__builder_stack(builder, ids, 2, &short_stack));
    ck_assert(uf__builder_stack(builder, NULL, 0, &empty_stack));
    ck_assert_uint_ne(long_stack, short_stack);
    ck_assert(uf__builder_stack(builder, ids, 3, &again));
    ck_assert_uint_eq(again, long_stack);
    uf_site site = {.stack = UF_NONE};
    ck_assert(uf__builder_site(builder, &site, &first));
    site.reserved[3] = 7; /* means nothing */
    ck_assert(uf__builder_site(builder, &site, &again));
    ck_assert_uint_eq(again, first);
    site.pool_id[1] = 1;
    ck_assert(uf__builder_site(builder, &site, &second));
    ck_assert_uint_ne(second, first);
    uf_trace *trace = finish(builder);
    ck_assert_uint_eq(trace->stack_count, 3);
    ck_assert_uint_eq(trace->frame_id_count, 5);
    ck_assert_uint_eq(trace->frame_ids[trace->stacks[short_stack].first + 1], 1);
    ck_assert_uint_eq(trace->sites[first].reserved[3], 0);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(events_belong_to_the_device_opened_last)
{
    uf_builder *builder = uf__builder_create();
    uf_event event = {.size_bytes = 1};
    ck_assert(uf__builder_device(builder, 0));
    ck_assert(uf__builder_device(builder, 1));
    for (int i = 0; i < 1000; i++)
        ck_assert(uf__builder_event(builder, &event));
    ck_assert(uf__builder_device(builder, 2));
    ck_assert(uf__builder_event(builder, &event));
    uf_trace *trace = finish(builder);
    ck_assert_uint_eq(trace->device_count, 3);
    ck_assert_uint_eq(trace->devices[0].count, 0);
    ck_assert_uint_eq(trace->devices[1].first, 0);
    ck_assert_uint_eq(trace->devices[1].count, 1000);
    ck_assert_uint_eq(trace->devices[2].first, 1000);
    ck_assert_uint_eq(trace->devices[2].count, 1);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(an_array_of_events_is_adopted_whole_and_then_shared_out)
{
    uf_builder *builder = uf__builder_create();
    uf_event *events = calloc(5, sizeof *events);
    events[4].size_bytes = 44;
    ck_assert(!uf__builder_extend(builder, 1));
    ck_assert(uf__builder_adopt_events(builder, events, 5));
    ck_assert(uf__builder_device(builder, 0));
    ck_assert(uf__builder_extend(builder, 2));
    ck_assert(uf__builder_device(builder, 1));
    ck_assert(uf__builder_extend(builder, 3));
    ck_assert(!uf__builder_extend(builder, 1));
    ck_assert(!uf__builder_adopt_events(builder, events, 5));
    uf_trace *trace = finish(builder);
    ck_assert_uint_eq(trace->event_count, 5);
    ck_assert_uint_eq(trace->devices[1].first, 2);
    ck_assert_uint_eq(trace->devices[1].count, 3);
    ck_assert_uint_eq(trace->events[4].size_bytes, 44);
    uf_trace_destroy(trace);
}
END_TEST

static void add_segment(uf_builder *builder, uint64_t addr, int32_t device, uint64_t allocated)
{
    uf_trace_segment segment = {.addr = addr,
                                .total_bytes = 2048,
                                .allocated_bytes = allocated,
                                .active_bytes = 1024,
                                .requested_bytes = 900,
                                .has_requested = true,
                                .device = device,
                                .stack = UF_NONE};
    ck_assert(uf__builder_segment(builder, &segment));
}

static void add_block(uf_builder *builder, uint64_t addr, uint64_t size_bytes, uf_block_state state,
                      uint64_t requested)
{
    uf_trace_block block = {.addr = addr,
                            .size_bytes = size_bytes,
                            .state = (uint8_t)state,
                            .requested_bytes = requested,
                            .has_requested = true,
                            .stack = UF_NONE};
    ck_assert(uf__builder_block(builder, &block));
}

/* A segment at addr that agrees with itself. */
static void add_good(uf_builder *builder, uint64_t addr, int32_t device)
{
    add_segment(builder, addr, device, 512);
    add_block(builder, addr, 512, UF_BLOCK_ACTIVE_ALLOCATED, 500);
    add_block(builder, addr + 512, 512, UF_BLOCK_ACTIVE_PENDING_FREE, 400);
    add_block(builder, addr + 1024, 1024, UF_BLOCK_INACTIVE, 99999);
}

START_TEST(a_consistent_trace_has_no_oddities)
{
    uf_builder *builder = uf__builder_create();
    add_good(builder, 1 << 20, 0);
    add_good(builder, 2 << 20, 0);
    add_good(builder, 1 << 20, 1); /* another device begins below again */
    uf_trace *trace = finish(builder);
    ck_assert_uint_eq(trace->oddities.gap_count, 0);
    ck_assert_uint_eq(trace->oddities.unsorted_count, 0);
    ck_assert_uint_eq(trace->oddities.unaligned_count, 0);
    ck_assert_uint_eq(trace->oddities.sum_mismatch_count, 0);
    ck_assert_uint_eq(trace->oddities.first_unknown_key, UF_NONE);
    ck_assert_uint_eq(trace->segments[2].first_block, 6);
    ck_assert_uint_eq(trace->segments[2].block_count, 3);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(each_oddity_is_counted_once)
{
    uf_builder *builder = uf__builder_create();
    add_good(builder, 4 << 20, 0);
    add_good(builder, 3 << 20, 0);         /* unsorted */
    add_segment(builder, 5 << 20, 0, 512); /* gap: no blocks; sums differ */
    add_segment(builder, 6 << 20, 0, 513); /* unaligned and gap; sum differs */
    add_block(builder, (6 << 20) + 1, 513, UF_BLOCK_ACTIVE_ALLOCATED, 900);
    uf_trace *trace = finish(builder);
    ck_assert_uint_eq(trace->oddities.gap_count, 2);
    ck_assert_uint_eq(trace->oddities.unsorted_count, 1);
    ck_assert_uint_eq(trace->oddities.unaligned_count, 1);
    ck_assert_uint_eq(trace->oddities.sum_mismatch_count, 2);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(sizes_that_wrap_around_are_no_trouble)
{
    uf_builder *builder = uf__builder_create();
    add_segment(builder, UINT64_MAX - 511, INT32_MIN, UINT64_MAX);
    add_block(builder, UINT64_MAX - 511, UINT64_MAX, UF_BLOCK_ACTIVE_ALLOCATED, UINT64_MAX);
    add_block(builder, 0, UINT64_MAX, UF_BLOCK_ACTIVE_ALLOCATED, UINT64_MAX);
    uf_trace *trace = finish(builder);
    ck_assert_uint_eq(trace->oddities.gap_count, 1);
    uf_trace_destroy(trace);
    uf__builder_destroy(NULL);
    uf_trace_destroy(NULL);
}
END_TEST

START_TEST(every_action_has_the_name_that_pytorch_writes)
{
    ck_assert_str_eq(uf_action_name(UF_ACTION_ALLOC), "alloc");
    ck_assert_str_eq(uf_action_name(UF_ACTION_SEGMENT_UNMAP), "segment_unmap");
    ck_assert_str_eq(uf_action_name(UF_ACTION_OTHER), "other");
    ck_assert_str_eq(uf_action_name(UF_ACTION_COUNT), "unknown");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        the_same_string_has_the_same_id_and_the_empty_one_is_0,
        ids_stay_right_while_the_tables_grow,
        frames_stacks_and_sites_are_kept_once,
        events_belong_to_the_device_opened_last,
        an_array_of_events_is_adopted_whole_and_then_shared_out,
        a_consistent_trace_has_no_oddities,
        each_oddity_is_counted_once,
        sizes_that_wrap_around_are_no_trouble,
        every_action_has_the_name_that_pytorch_writes,
    };
    return run_case("builder", tests, sizeof tests / sizeof tests[0]);
}
