/* SPDX-License-Identifier: MIT
 *
 * Snapshots: dictionaries becoming records, read by key, in every layout, and what cannot be one.
 * tests/trace compares whole files with Python; here are the cases that Python does not write. */
#include "trace/snapshot.h"

#include "pickle_bytes.h"

/* Pieces of protocol-2 pickles. */
#define KEY(text, length) "X" length "\0\0\0" text
#define SEGMENTS KEY("segments", "\10")
#define TRACES KEY("device_traces", "\15")
#define ACTION KEY("action", "\6")
#define ALLOC KEY("alloc", "\5")
#define ADDR KEY("addr", "\4")
#define SIZE KEY("size", "\4")
#define STREAM KEY("stream", "\6")
#define FRAMES KEY("frames", "\6")
/* A snapshot whose only device has these events. */
#define EVENTS(events) "\x80\2}(" SEGMENTS "]" TRACES "]](" events "eau."
#define EVENT "}(" ACTION ALLOC ADDR "M\0\2" SIZE "K\5" STREAM "K\0u"

START_TEST(an_event_is_read_by_key)
{
    static const char data[] =
        EVENTS("}(" SIZE "K\5" STREAM "K\7" ACTION KEY("free_completed", "\16") ADDR "M\0\2u");
    uf_trace *trace = read_bytes(BYTES(data));
    ck_assert_int_eq(trace->form, UF_FORM_PICKLE);
    ck_assert_uint_eq(trace->event_count, 1);
    ck_assert_uint_eq(trace->events[0].addr, 512);
    ck_assert_uint_eq(trace->events[0].size_bytes, 5);
    ck_assert_int_eq(trace->events[0].time_us, UF_TIME_UNKNOWN);
    ck_assert_int_eq(trace->events[0].action, UF_ACTION_FREE_COMPLETED);
    ck_assert_uint_eq(trace->events[0].reserved[0], 0);
    const uf_site *site = &trace->sites[trace->events[0].site];
    ck_assert_uint_eq(site->stream, 7);
    ck_assert_uint_eq(site->stack, UF_NONE);
    ck_assert_uint_eq(site->compile_context, UF_NONE);
    ck_assert_uint_eq(site->user_metadata, UF_NONE);
    ck_assert(!site->has_pool_id);
    ck_assert_uint_eq(trace->decoded_bytes, sizeof data - 1);
    ck_assert_uint_eq(trace->string_count, 1); /* keys and known actions leave no string */
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(an_event_built_key_by_key_is_the_same)
{
    uf_trace *trace = read_bytes(BYTES(EVENTS("}" SIZE "K\5s" STREAM "K\7s" ACTION ALLOC "s" ADDR
                                              "M\0\2s" SIZE "K\6s"))); /* the last value counts */
    ck_assert_uint_eq(trace->event_count, 1);
    ck_assert_uint_eq(trace->events[0].addr, 512);
    ck_assert_uint_eq(trace->events[0].size_bytes, 6);
    ck_assert_uint_eq(trace->sites[trace->events[0].site].stream, 7);
    ck_assert_uint_eq(trace->site_count, 1);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(keys_added_to_an_event_that_is_a_record_already_count)
{
    uf_trace *trace = read_bytes(BYTES(EVENTS(
        EVENT STREAM "K\x9s" SIZE "K\6s" KEY("odd", "\3") "Ns" ACTION KEY("what", "\4") "s")));
    ck_assert_uint_eq(trace->event_count, 1);
    ck_assert_uint_eq(trace->events[0].size_bytes, 6);
    const uf_site *site = &trace->sites[trace->events[0].site];
    ck_assert_uint_eq(site->stream, 9);
    ck_assert_int_eq(trace->events[0].action, UF_ACTION_OTHER);
    ck_assert_str_eq(uf_trace_string(trace, site->action_name), "what");
    ck_assert_uint_eq(trace->oddities.unknown_key_count, 1);
    ck_assert_uint_eq(trace->oddities.unknown_action_count, 1);
    ck_assert_str_eq(uf_trace_string(trace, trace->oddities.first_unknown_key), "odd");
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(an_event_shared_through_the_memo_counts_each_time)
{
    uf_trace *trace = read_bytes(BYTES(EVENTS("}q\1(" ACTION ALLOC ADDR "M\0\2" SIZE "K\5"
                                              "u" EVENT "h\1h\1")));
    ck_assert_uint_eq(trace->event_count, 4);
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(trace->events[i].size_bytes, 5);
    uf_trace_destroy(trace);
    /* Taken from the memo while still open, and filled through the other name. */
    trace = read_bytes(BYTES(EVENTS("}q\1h\1(" ACTION ALLOC ADDR "M\0\2" SIZE "K\5u")));
    ck_assert_uint_eq(trace->event_count, 2);
    ck_assert_uint_eq(trace->events[0].size_bytes, 5);
    ck_assert_uint_eq(trace->events[1].size_bytes, 5);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(events_that_no_device_lists_are_left_out)
{
    uf_trace *trace = read_bytes(BYTES("\x80\2}(" KEY(
        "unknown", "\7") "](" EVENT EVENT "e" TRACES "]](" EVENT "ea" SEGMENTS "]u."));
    ck_assert_uint_eq(trace->event_count, 1);
    ck_assert_uint_eq(trace->devices[0].count, 1);
    uf_trace_destroy(trace);
}
END_TEST

#define FRAME_A                                                                             \
    "}(" KEY("filename", "\10") KEY("a.py", "\4") KEY("line", "\4") "K\1" KEY("name", "\4") \
        KEY("f", "\1") "u"
#define FRAME_B "}(" KEY("name", "\4") KEY("g", "\1") KEY("filename", "\10") KEY("b.py", "\4") "u"
#define EVENT_WITH(frames) "}(" ACTION ALLOC ADDR "M\0\2" SIZE "K\5" FRAMES frames "u"

START_TEST(stacks_are_kept_once_however_they_are_written)
{
    uf_trace *trace =
        read_bytes(BYTES(EVENTS(EVENT_WITH("](" FRAME_A FRAME_B "eq\1") /* memoized after */
                                EVENT_WITH("]q\2(" FRAME_A FRAME_B "e") /* before */
                                EVENT_WITH("h\1") EVENT_WITH("h\2")     /* recalled */
                                EVENT_WITH("]" FRAME_A "a" FRAME_B "a") /* one by one */
                                EVENT_WITH(FRAME_A FRAME_B "\x86")      /* a tuple */
                                EVENT_WITH("]") EVENT_WITH(")") EVENT_WITH("N") EVENT)));
    ck_assert_uint_eq(trace->stack_count, 1);
    ck_assert_uint_eq(trace->frame_count, 2);
    for (int i = 0; i < 6; i++)
        ck_assert_uint_eq(trace->sites[trace->events[i].site].stack, 0);
    for (int i = 6; i < 10; i++)
        ck_assert_uint_eq(trace->sites[trace->events[i].site].stack, UF_NONE);
    const uf_frame *frame = &trace->frames[trace->frame_ids[0]];
    ck_assert_str_eq(uf_trace_string(trace, frame->filename), "a.py");
    ck_assert_str_eq(uf_trace_string(trace, frame->name), "f");
    ck_assert_int_eq(frame->line, 1);
    frame = &trace->frames[trace->frame_ids[1]];
    ck_assert_str_eq(uf_trace_string(trace, frame->name), "g");
    ck_assert_int_eq(frame->line, 0);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(stacks_can_be_left_out)
{
    static const char data[] = EVENTS(EVENT_WITH("](" FRAME_A FRAME_B "eq\1") EVENT_WITH("h\1"));
    uf_trace_read_options options = {.struct_size_bytes = sizeof options, .skip_stacks = true};
    uf_trace *trace = NULL;
    uf_error error;
    ck_assert_int_eq(uf_trace_read_memory(BYTES(data), &options, &trace, &error), UF_OK);
    ck_assert_uint_eq(trace->event_count, 2);
    ck_assert_uint_eq(trace->stack_count, 0);
    ck_assert_uint_eq(trace->frame_count, 0);
    ck_assert_uint_eq(trace->string_count, 1);
    ck_assert_uint_eq(trace->sites[trace->events[1].site].stack, UF_NONE);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(an_out_of_memory_event_has_the_free_bytes_for_an_address)
{
    uf_trace *trace = read_bytes(
        BYTES(EVENTS("}(" ACTION KEY("oom", "\3") KEY("device_free", "\13") "M\0\4" SIZE "K\5u")));
    ck_assert_int_eq(trace->events[0].action, UF_ACTION_OOM);
    ck_assert_uint_eq(trace->events[0].addr, 1024);
    uf_trace_destroy(trace);
    expect_refusal(BYTES(EVENTS("}(" ACTION KEY("oom", "\3") SIZE "K\5u")), "has no 'device_free'");
}
END_TEST

START_TEST(an_event_with_impossible_numbers_is_named)
{
    expect_refusal(
        BYTES(EVENTS(EVENT EVENT "}(" ACTION ALLOC ADDR "K\0" SIZE "J\xfe\xff\xff\xffu")),
        "event 2 (counted");
    expect_refusal(BYTES(EVENTS("}(" ACTION ALLOC ADDR "K\0" SIZE "J\xfe\xff\xff\xffu")),
                   "its size is -2,");
    expect_refusal(
        BYTES(EVENTS("}(" ACTION ALLOC ADDR "K\0" SIZE "\x8a\x08\0\0\0\0\0\0\0\x10u")), /* 2^60 */
        "its size is a number beyond 2^59");
    expect_refusal(BYTES(EVENTS("}(" ACTION ALLOC ADDR "Nu")), "event 0 of device_traces[0]");
    expect_refusal(BYTES(EVENTS("}(" ACTION ALLOC SIZE "K\1u")), "has no 'addr'");
    expect_refusal(BYTES(EVENTS(EVENT "}(" ADDR "K\0" SIZE "K\1u")), "event 1 of device_traces[0]");
    expect_refusal(BYTES(EVENTS("K\1")), "is not an event but a number");
    expect_refusal(BYTES(EVENTS("}(" ACTION "K\1" SIZE "K\1u")), "its action is 1,");
    expect_refusal(BYTES(EVENTS(EVENT_WITH("K\1"))), "'frames' is a number");
    expect_refusal(BYTES(EVENTS(EVENT_WITH("](K\1e"))), "frame is a number");
}
END_TEST

#define ADDRESS KEY("address", "\7")
#define TOTAL KEY("total_size", "\12")
#define BLOCKS KEY("blocks", "\6")
#define STATE KEY("state", "\5")
#define ACTIVE KEY("active_allocated", "\20")
#define HISTORY KEY("history", "\7")
#define REAL KEY("real_size", "\11")
#define SEGMENT(blocks) "}(" ADDRESS "M\0\x10" TOTAL "M\0\x10" BLOCKS blocks "u"
#define SEGMENT_LIST(segments) "\x80\2}(" SEGMENTS "](" segments "eu."

START_TEST(blocks_of_the_2_0_layout_get_addresses_and_requested_sizes)
{
    static const char data[] =
        SEGMENT_LIST(SEGMENT("](}(" SIZE "M\0\x08" STATE ACTIVE HISTORY "](}(" REAL "M\x34\2" ADDR
                             "K\1" FRAMES "](" FRAME_A "euN"
                             "eu}(" SIZE "M\0\x08" STATE KEY("inactive", "\10") HISTORY "]ue"));
    uf_trace *trace = read_bytes(BYTES(data));
    ck_assert(!trace->has_device_traces);
    ck_assert_uint_eq(trace->segment_count, 1);
    ck_assert_uint_eq(trace->block_count, 2);
    ck_assert_uint_eq(trace->blocks[0].addr, 4096);
    ck_assert_uint_eq(trace->blocks[0].requested_bytes, 0x234);
    ck_assert(trace->blocks[0].has_requested);
    ck_assert_uint_eq(trace->blocks[0].stack, 0);
    ck_assert_int_eq(trace->blocks[0].state, UF_BLOCK_ACTIVE_ALLOCATED);
    ck_assert_uint_eq(trace->blocks[1].addr, 6144);
    ck_assert(!trace->blocks[1].has_requested);
    ck_assert_uint_eq(trace->blocks[1].reserved[0], 0);
    ck_assert_uint_eq(trace->blocks[1].stack, UF_NONE);
    ck_assert(!trace->segments[0].has_requested);
    ck_assert(!trace->segments[0].has_pool_id);
    ck_assert_uint_eq(trace->oddities.gap_count, 0);
    ck_assert_uint_eq(trace->oddities.sum_mismatch_count, 1); /* allocated_size is missing */
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(a_segment_must_have_a_place_and_a_size)
{
    expect_refusal(BYTES(SEGMENT_LIST("}(" ADDRESS "K\0" BLOCKS "]u")),
                   "segment 0 (counted from 0 through the file, before byte");
    expect_refusal(BYTES(SEGMENT_LIST(SEGMENT("]") "}(" TOTAL "K\0" BLOCKS "]u")), "segment 1 ");
    expect_refusal(BYTES(SEGMENT_LIST("K\5")), "segment 0 is a number");
    expect_refusal(BYTES(SEGMENT_LIST(SEGMENT("K\1"))), "'blocks' is a number");
    expect_refusal(BYTES(SEGMENT_LIST(SEGMENT("]}a"))), "without 'state'");
    expect_refusal(BYTES(SEGMENT_LIST(SEGMENT("](}(" STATE ACTIVE ADDRESS "K\0ue"))),
                   "block 0 (counted");
    expect_refusal(BYTES("\x80\2}(" SEGMENTS "K\1u."), "'segments' is a number");
    expect_refusal(BYTES("\x80\2}(" SEGMENTS "]" TRACES "K\1u."), "'device_traces' is a number");
    expect_refusal(BYTES("\x80\2}(" SEGMENTS "]" TRACES "]K\1au."), "is a number and not a list");
}
END_TEST

START_TEST(a_bare_list_of_segments_is_a_snapshot)
{
    uf_trace *trace = read_bytes(BYTES("\x80\2](" SEGMENT("]") SEGMENT("]") "e."));
    ck_assert_uint_eq(trace->segment_count, 2);
    ck_assert_uint_eq(trace->event_count, 0);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(empty_snapshots_are_snapshots)
{
    uf_trace *trace = read_bytes(BYTES("\x80\2}" SEGMENTS "]s."));
    ck_assert_uint_eq(trace->segment_count, 0);
    ck_assert_uint_eq(trace->device_count, 0);
    ck_assert(!trace->has_device_traces);
    uf_trace_destroy(trace);
    trace = read_bytes(BYTES("\x80\2}(" TRACES "](]]]e" SEGMENTS "Nu."));
    ck_assert_uint_eq(trace->device_count, 3);
    ck_assert_int_eq(trace->devices[2].device, 2);
    ck_assert_uint_eq(trace->devices[2].count, 0);
    ck_assert(trace->has_device_traces);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(other_pickles_are_named_as_such)
{
    expect_refusal(BYTES("\x80\2N."), "a pickle, but not a snapshot: None");
    expect_refusal(BYTES("\x80\2}."), "a dictionary without 'segments' and 'device_traces'");
    expect_refusal(BYTES("\x80\2]."), "a list that holds no segments");
    expect_refusal(BYTES("\x80\2](K\1e."), "a list that holds no segments");
    expect_refusal(BYTES("\x80\2](" EVENT "e."), "a list that holds no segments");
    expect_refusal(BYTES("\x80\2" EVENT "."), "a dictionary");
    expect_refusal(BYTES("\x80\2K\1K\2\x86."), "not a snapshot: a list");
}
END_TEST

START_TEST(a_record_in_use_cannot_change)
{
    expect_refusal(BYTES(EVENTS(EVENT_WITH("](" FRAME_A "q\1eh\1" KEY("line", "\4") "K\2s0"))),
                   "a dictionary is changed after its use");
}
END_TEST

START_TEST(settings_and_annotations_are_read)
{
    static const char
        data[] =
            "\x80\2}(" SEGMENTS
            "]" KEY("allocator_settings", "\22") "}(" KEY("PYTORCH_CUDA_ALLOC_CONF", "\27")
                KEY("a:b", "\3")
                    KEY("max_split_size", "\16") "\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\0" KEY("garbage_collection_threshold", "\34") "G\x3f\xe8\0\0\0\0\0\0" KEY("expandable_segments", "\23") "\x88" KEY(
                        "pinned_num_register_threads",
                        "\33") "K\4" KEY("graph_capture_record_stream_reuse",
                                         "\41") "\x88" KEY("roundup_power2_divisions",
                                                           "\30") "}(" KEY("1",
                                                                           "\1") "K\1" KEY("32768",
                                                                                           "\5") "K"
                                                                                                 "\10"
                                                                                                 "M"
                                                                                                 "\0\1K\7" KEY("3", "\1") "K\1uu" KEY(
                                                                                                     "external_annotations",
                                                                                                     "\24") "]}(" KEY("stage",
                                                                                                                      "\5")
                                                                                                     KEY("START", "\5") KEY(
                                                                                                         "name",
                                                                                                         "\4") KEY("step",
                                                                                                                   "\4")
                                                                                                         KEY("device", "\6") "K\1" KEY(
                                                                                                             "time_us",
                                                                                                             "\7") "K\x63ua"
                                                                                                                   "u.";
    uf_trace *trace = read_bytes(BYTES(data));
    const uf_trace_settings *settings = &trace->settings;
    ck_assert(settings->is_present && settings->has_conf && settings->has_divisions);
    ck_assert_str_eq(uf_trace_string(trace, settings->conf), "a:b");
    ck_assert_int_eq(settings->max_split_size_bytes, -1);
    ck_assert(settings->has_gc_threshold && settings->gc_threshold == 0.75);
    ck_assert(settings->has_expandable && settings->is_expandable);
    ck_assert_uint_eq(settings->pinned_num_register_threads, 4);
    ck_assert(settings->graph_capture_record_stream_reuse);
    ck_assert(!settings->release_lock_on_cudamalloc);
    ck_assert_uint_eq(settings->has_other, 1 | 8);
    ck_assert_uint_eq(settings->divisions[0], 1);
    ck_assert_uint_eq(settings->divisions[8], 7);
    ck_assert_uint_eq(settings->divisions[15], 8);
    ck_assert_uint_eq(trace->oddities.unknown_key_count, 1);
    ck_assert_str_eq(uf_trace_string(trace, trace->oddities.first_unknown_key), "3");
    ck_assert_uint_eq(trace->annotation_count, 1);
    ck_assert_str_eq(uf_trace_string(trace, trace->annotations[0].stage), "START");
    ck_assert_str_eq(uf_trace_string(trace, trace->annotations[0].name), "step");
    ck_assert_int_eq(trace->annotations[0].device, 1);
    ck_assert_int_eq(trace->annotations[0].time_us, 99);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(many_sites_through_one_cache_stay_apart)
{
    /* More streams than the cache has places, each twice. */
    char data[200000];
    static const char head[] = "\x80\2}(" SEGMENTS "]" TRACES "]](";
    static const char event[] = "}(" ACTION ALLOC ADDR "K\0" SIZE "K\1" STREAM "M";
    size_t n = sizeof head - 1;
    memcpy(data, head, n);
    for (int i = 0; i < 2000; i++) {
        memcpy(data + n, event, sizeof event - 1);
        n += sizeof event - 1;
        data[n++] = (char)(i % 1000);
        data[n++] = (char)(i % 1000 >> 8);
        data[n++] = 'u';
    }
    memcpy(data + n, "eau.", 4);
    uf_trace *trace = read_bytes(data, n + 4);
    ck_assert_uint_eq(trace->event_count, 2000);
    ck_assert_uint_eq(trace->site_count, 1000);
    for (uint64_t i = 0; i < 2000; i++)
        ck_assert_uint_eq(trace->sites[trace->events[i].site].stream, i % 1000);
    uf_trace_destroy(trace);
}
END_TEST

/* Protocol 4, memoized as Python does it: entry 0 is the event, 1 to 7 its keys and their strings,
 * 8 the list, 9 the frame, 10 to 14 its keys and strings. */
#define M "\224"
#define OPEN "}" M "("
#define FIRST_EVENT                                                                       \
    OPEN ACTION M ALLOC M ADDR M "M\0\2" SIZE M "K\5" KEY("pool_id", "\7") M              \
        "K\0K\1\206" M FRAMES M "]" M "(" OPEN KEY("filename", "\10") M KEY("a.py", "\4") \
            M KEY("line", "\4") M "K\1" KEY("name", "\4") M KEY("f", "\1") M "ueu"
#define FRAME_LINE(line) OPEN "h\12h\13h\14K" line "h\15h\16u"
/* Entry 15 is the event, 16 the pair, 17 the list, 18 and 19 the frames. */
#define SECOND_EVENT \
    OPEN "h\1h\2h\3M\0\4h\4K\6h\5K\0K\1\206" M "h\7]" M "(" FRAME_LINE("\1") FRAME_LINE("\2") "eu"

START_TEST(events_like_one_before_are_read_alike)
{
    uf_trace *trace = read_bytes(
        BYTES(EVENTS(FIRST_EVENT SECOND_EVENT                       /* */
                         OPEN "h\1h\2h\3M\0\6h\4K\7h\7]" M "h\11au" /* a list of one frame */
                     OPEN "h\1h\2h\3M\0\10h\4K\10h\7h\21u"          /* the second's list */
                     OPEN "h\1h\2h\3M\0\12h\4K\11h\7]" M "(eu"      /* an empty one */
                              "h\17" EVENT                          /* the second again */
                     )));
    static const uint64_t addrs[] = {512, 1024, 1536, 2048, 2560, 1024};
    static const uint32_t frame_counts[] = {1, 2, 1, 2, 0, 2};
    ck_assert_uint_eq(trace->event_count, 7);
    for (int i = 0; i < 6; i++) {
        const uf_site *site = &trace->sites[trace->events[i].site];
        ck_assert_uint_eq(trace->events[i].addr, addrs[i]);
        ck_assert_uint_eq(trace->events[i].size_bytes, i < 5 ? 5u + (unsigned)i : 6u);
        ck_assert_int_eq(site->has_pool_id, i < 2 || i == 5);
        ck_assert_uint_eq(site->pool_id[1], site->has_pool_id ? 1 : 0);
        ck_assert_uint_eq(site->stack == UF_NONE ? 0 : trace->stacks[site->stack].count,
                          frame_counts[i]);
    }
    ck_assert_uint_eq(trace->frame_count, 2);
    ck_assert_uint_eq(trace->stack_count, 2);
    ck_assert_int_eq(trace->frames[1].line, 2);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(unknown_keys_are_counted_in_every_event)
{
#define ODD_EVENT OPEN "h\1h\2h\3M\0\4h\17N" /* 15: a key that no snapshot has */
    uf_trace *trace = read_bytes(
        BYTES(EVENTS(FIRST_EVENT KEY("odd", "\3") M "0" ODD_EVENT "h\4K\6u" ODD_EVENT
                                                    "h\4K\6u" ODD_EVENT "h\17Nh\4K\6u" EVENT)));
    ck_assert_uint_eq(trace->event_count, 5);
    ck_assert_uint_eq(trace->events[3].size_bytes, 6);
    ck_assert_uint_eq(trace->oddities.unknown_key_count, 4);
    ck_assert_str_eq(uf_trace_string(trace, trace->oddities.first_unknown_key), "odd");
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(a_memo_entry_that_changes_changes_the_keys_after_it)
{
    uf_trace *trace =
        read_bytes(BYTES(EVENTS(FIRST_EVENT SECOND_EVENT SIZE "q\3" ADDR "q\4"
                                                              "00" /* 3 and 4 change places */
                                OPEN "h\1h\2h\3K\7h\4M\0\6u" EVENT)));
    ck_assert_uint_eq(trace->event_count, 4);
    ck_assert_uint_eq(trace->events[1].addr, 1024);
    ck_assert_uint_eq(trace->events[2].addr, 1536);
    ck_assert_uint_eq(trace->events[2].size_bytes, 7);
    uf_trace_destroy(trace);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        an_event_is_read_by_key,
        an_event_built_key_by_key_is_the_same,
        keys_added_to_an_event_that_is_a_record_already_count,
        an_event_shared_through_the_memo_counts_each_time,
        events_that_no_device_lists_are_left_out,
        stacks_are_kept_once_however_they_are_written,
        stacks_can_be_left_out,
        an_out_of_memory_event_has_the_free_bytes_for_an_address,
        an_event_with_impossible_numbers_is_named,
        blocks_of_the_2_0_layout_get_addresses_and_requested_sizes,
        a_segment_must_have_a_place_and_a_size,
        a_bare_list_of_segments_is_a_snapshot,
        empty_snapshots_are_snapshots,
        other_pickles_are_named_as_such,
        a_record_in_use_cannot_change,
        settings_and_annotations_are_read,
        many_sites_through_one_cache_stay_apart,
        events_like_one_before_are_read_alike,
        unknown_keys_are_counted_in_every_event,
        a_memo_entry_that_changes_changes_the_keys_after_it,
    };
    return run_case("snapshot", tests, sizeof tests / sizeof tests[0]);
}
