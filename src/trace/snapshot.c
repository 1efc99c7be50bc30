/* SPDX-License-Identifier: MIT
 *
 * PyTorch memory snapshots: after the pickle has been read (snapshot_record.c turns its
 * dictionaries into records on the way), puts segments, events, settings and annotations into the
 * builder. Reads by key, never by position. No lock. */
#include "trace/snapshot.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "trace/snapshot_record.h"

#define DIVISION_COUNT 16

#define TOP_KEYS                                                                            \
    (UF__KEY_BIT(SEGMENTS) | UF__KEY_BIT(DEVICE_TRACES) | UF__KEY_BIT(ALLOCATOR_SETTINGS) | \
     UF__KEY_BIT(EXTERNAL_ANNOTATIONS))
#define SEGMENT_KEYS                                                                        \
    (UF__KEY_BIT(DEVICE) | UF__KEY_BIT(ADDRESS) | UF__KEY_BIT(TOTAL_SIZE) |                 \
     UF__KEY_BIT(ALLOCATED_SIZE) | UF__KEY_BIT(ACTIVE_SIZE) | UF__KEY_BIT(REQUESTED_SIZE) | \
     UF__KEY_BIT(STREAM) | UF__KEY_BIT(SEGMENT_TYPE) | UF__KEY_BIT(SEGMENT_POOL_ID) |       \
     UF__KEY_BIT(IS_EXPANDABLE) | UF__KEY_BIT(FRAMES) | UF__KEY_BIT(BLOCKS))
#define SETTINGS_KEYS                                                                          \
    (UF__KEY_BIT(CONF) | UF__KEY_BIT(MAX_SPLIT_SIZE) | UF__KEY_BIT(GC_THRESHOLD) |             \
     UF__KEY_BIT(EXPANDABLE_SEGMENTS) | UF__KEY_BIT(DIVISIONS) | UF__KEY_BIT(PINNED_THREADS) | \
     UF__KEY_BIT(RELEASE_LOCK) | UF__KEY_BIT(PINNED_HOST_REGISTER) |                           \
     UF__KEY_BIT(RECORD_STREAM_REUSE))

static uf_status no_snapshot(const uf__snapshot *snapshot, uf_error *error, const char *what)
{
    return uf__error_set(error, UF_ERROR_BAD_INPUT,
                         "%s, but not a snapshot: %s; torch.cuda.memory._dump_snapshot() writes "
                         "snapshots",
                         snapshot->form_name, what);
}

static uf_status no_list(uf_error *error, const char *key, uf__value value)
{
    return uf__error_set(error, UF_ERROR_BAD_INPUT, "a damaged snapshot: '%s' is %s and not a list",
                         key, uf__value_noun(value));
}

static bool text_is(const uf__snapshot *snapshot, uf__value value, const char *text)
{
    return uf__value_tag(value) == UF__TAG_STRING &&
           strcmp(uf__strings_text(&snapshot->store.strings, (uint32_t)uf__value_payload(value)),
                  text) == 0;
}

/* Truth of a boolean or number; false for anything else. */
static bool is_true(const uf__snapshot *snapshot, uf__value value)
{
    int64_t number;
    return uf__store_as_i64(&snapshot->store, value, &number) && number != 0;
}

/* Blocks of the segment that was put into the builder last. */
static uf_status put_blocks(uf__snapshot *snapshot, uf__value blocks, uint64_t segment_addr,
                            uint64_t segment_number, uf_error *error)
{
    uf__list_walk walk;
    uf__value value;
    uint64_t next_addr = segment_addr;
    if (blocks == UF__VALUE_NOTHING)
        return UF_OK;
    if (!uf__list_walk_begin(&walk, &snapshot->store, blocks))
        return no_list(error, "blocks", blocks);
    while (uf__list_walk_next(&walk, &snapshot->store, &value)) {
        if (!uf__value_is_record(value, UF__RECORD_BLOCK))
            return uf__error_set(error, UF_ERROR_BAD_INPUT,
                                 "a damaged snapshot: segment %" PRIu64
                                 " has a block that is %s without 'state'",
                                 segment_number, uf__value_noun(value));
        uf_trace_block block = snapshot->blocks[uf__record_index(value)];
        if (!(block.reserved[0] & UF__BLOCK_HAS_ADDR))
            block.addr = next_addr; /* 2.0 */
        block.reserved[0] = 0;
        next_addr = block.addr + block.size_bytes;
        if (!uf__builder_block(snapshot->builder, &block))
            return uf__snapshot_no_memory(error);
    }
    return UF_OK;
}

/* One of the sizes of a segment; *is_there tells whether the key was. */
static uf_status segment_size(uf__snapshot *snapshot, uf__key key, const char *name,
                              uint64_t number, uint64_t *size_bytes, bool *is_there,
                              uf_error *error)
{
    uf__value value = uf__fields_get(&snapshot->fields, key);
    *is_there = value != UF__VALUE_NOTHING;
    if (*is_there && !uf__snapshot_size(snapshot, value, size_bytes))
        return uf__snapshot_bad(snapshot, "segment", number, name, value, error);
    return UF_OK;
}

static uf_status segment_sizes(uf__snapshot *snapshot, uint64_t number, uf_trace_segment *segment,
                               uf_error *error)
{
    bool is_there;
    uf_status status = segment_size(snapshot, UF__KEY_TOTAL_SIZE, "total_size", number,
                                    &segment->total_bytes, &is_there, error);
    if (status == UF_OK && !is_there)
        return uf__snapshot_bad(snapshot, "segment", number, "total_size", UF__VALUE_NOTHING,
                                error);
    if (status == UF_OK)
        status = segment_size(snapshot, UF__KEY_ALLOCATED_SIZE, "allocated_size", number,
                              &segment->allocated_bytes, &is_there, error);
    if (status == UF_OK)
        status = segment_size(snapshot, UF__KEY_ACTIVE_SIZE, "active_size", number,
                              &segment->active_bytes, &is_there, error);
    if (status == UF_OK)
        status = segment_size(snapshot, UF__KEY_REQUESTED_SIZE, "requested_size", number,
                              &segment->requested_bytes, &is_there, error);
    segment->has_requested = is_there;
    return status;
}

static uf_status segment_place(uf__snapshot *snapshot, uint64_t number, uf_trace_segment *segment,
                               uf_error *error)
{
    const uf__fields *fields = &snapshot->fields;
    uf__value value = uf__fields_get(fields, UF__KEY_ADDRESS);
    if (!uf__store_as_u64(&snapshot->store, value, &segment->addr))
        return uf__snapshot_bad(snapshot, "segment", number, "address", value, error);
    value = uf__fields_get(fields, UF__KEY_DEVICE);
    int64_t device = 0;
    if (value != UF__VALUE_NOTHING && (!uf__store_as_i64(&snapshot->store, value, &device) ||
                                       device < INT32_MIN || device > INT32_MAX))
        return uf__snapshot_bad(snapshot, "segment", number, "device", value, error);
    segment->device = (int32_t)device;
    value = uf__fields_get(fields, UF__KEY_STREAM);
    if (value != UF__VALUE_NOTHING && !uf__snapshot_stream(snapshot, value, &segment->stream))
        return uf__snapshot_bad(snapshot, "segment", number, "stream", value, error);
    value = uf__fields_get(fields, UF__KEY_SEGMENT_POOL_ID);
    segment->has_pool_id = value != UF__VALUE_NOTHING;
    if (segment->has_pool_id && !uf__snapshot_pool_id(snapshot, value, segment->pool_id))
        return uf__snapshot_bad(snapshot, "segment", number, "segment_pool_id", value, error);
    return UF_OK;
}

static uf_status put_segment(uf__snapshot *snapshot, uf__value dict, uint64_t number,
                             uf_error *error)
{
    uf__fields *fields = &snapshot->fields;
    if (!uf__fields_take_dict(fields, &snapshot->store, dict))
        return uf__error_set(error, UF_ERROR_BAD_INPUT,
                             "a damaged snapshot: segment %" PRIu64 " is %s and not a segment",
                             number, uf__value_noun(dict));
    uf_trace_segment segment = {.stack = UF_NONE};
    uf_status status = segment_place(snapshot, number, &segment, error);
    if (status == UF_OK)
        status = segment_sizes(snapshot, number, &segment, error);
    segment.is_large = text_is(snapshot, uf__fields_get(fields, UF__KEY_SEGMENT_TYPE), "large");
    segment.is_expandable = is_true(snapshot, uf__fields_get(fields, UF__KEY_IS_EXPANDABLE));
    if (status == UF_OK)
        status = uf__snapshot_stack(snapshot, uf__fields_get(fields, UF__KEY_FRAMES), false,
                                    &segment.stack, error);
    if (status == UF_OK)
        status = uf__snapshot_count_unknown(snapshot, fields, SEGMENT_KEYS, error);
    if (status == UF_OK && !uf__builder_segment(snapshot->builder, &segment))
        status = uf__snapshot_no_memory(error);
    if (status == UF_OK)
        status = put_blocks(snapshot, uf__fields_get(fields, UF__KEY_BLOCKS), segment.addr, number,
                            error);
    return status;
}

static uf_status put_segments(uf__snapshot *snapshot, uf__value segments, uf_error *error)
{
    uf__list_walk walk;
    uf__value segment;
    uint64_t number = 0;
    if (segments == UF__VALUE_NOTHING)
        return UF_OK;
    if (!uf__list_walk_begin(&walk, &snapshot->store, segments))
        return no_list(error, "segments", segments);
    while (uf__list_walk_next(&walk, &snapshot->store, &segment)) {
        uf_status status = put_segment(snapshot, segment, number++, error);
        if (status != UF_OK)
            return status;
    }
    return UF_OK;
}

static uf_status bad_list_event(const char *what, const char *quote, const char *word,
                                uint64_t device, uint64_t number, uf_error *error)
{
    return uf__error_set(error, UF_ERROR_BAD_INPUT,
                         "a damaged snapshot: event %" PRIu64 " of device_traces[%" PRIu64
                         "] %s %s%s%s",
                         number, device, what, quote, word, quote);
}

/* What an event lacks, or NULL; which keys it needs depends on its action. */
static const char *missing_key(const uf_event *event)
{
    uint8_t has = event->reserved[0];
    if (event->action == UF_ACTION_OTHER)
        return NULL;
    if (!(has & UF__EVENT_HAS_SIZE))
        return "size";
    if (has & UF__EVENT_HAS_ADDR || event->action == UF_ACTION_SNAPSHOT)
        return NULL;
    return event->action == UF_ACTION_OOM ? "device_free" : "addr";
}

/* One device's events. *expected is the index that the next event has if the lists, one after the
 * other, are the events in the order of the file; UINT64_MAX once they are not. */
static uf_status check_device(uf__snapshot *snapshot, uf__value list, uint64_t device,
                              uint64_t *expected, uf_error *error)
{
    uf_trace_oddities *oddities = &uf__builder_trace(snapshot->builder)->oddities;
    uf__list_walk walk;
    uf__value value;
    uint64_t count, number = 0;
    if (device > INT32_MAX || !uf__list_walk_begin(&walk, &snapshot->store, list))
        return no_list(error, "device_traces[...]", list);
    for (; uf__list_walk_next_run(&walk, &snapshot->store, &value, &count); number += count) {
        if (uf__value_tag(value) == UF__TAG_DICT)
            return bad_list_event("has no", "'", "action", device, number, error);
        if (!uf__value_is_record(value, UF__RECORD_EVENT))
            return bad_list_event("is not an event but", "", uf__value_noun(value), device, number,
                                  error);
        const uf_event *events = &snapshot->events[uf__record_index(value)];
        for (uint64_t i = 0; i < count; i++) {
            if (missing_key(&events[i]) != NULL)
                return bad_list_event("has no", "'", missing_key(&events[i]), device, number + i,
                                      error);
            oddities->unknown_action_count += events[i].action == UF_ACTION_OTHER;
        }
        *expected = uf__record_index(value) == *expected ? *expected + count : UINT64_MAX;
    }
    return UF_OK;
}

/* Checks all events; *is_in_order tells whether the lists, one after the other, are the events in
 * the order of the file, each once. */
static uf_status check_events(uf__snapshot *snapshot, uf__value traces, bool *is_in_order,
                              uf_error *error)
{
    uf__list_walk walk;
    uf__value list;
    uint64_t expected = 0;
    if (!uf__list_walk_begin(&walk, &snapshot->store, traces))
        return no_list(error, "device_traces", traces);
    for (uint64_t device = 0; uf__list_walk_next(&walk, &snapshot->store, &list); device++) {
        uf_status status = check_device(snapshot, list, device, &expected, error);
        if (status != UF_OK)
            return status;
    }
    *is_in_order = expected == snapshot->event_count;
    return UF_OK;
}

/* One device's events, whose array the builder has already, or one by one. */
static bool put_device(uf__snapshot *snapshot, uf__value list, int32_t device, bool is_adopted)
{
    uf__list_walk walk;
    uf__value value;
    uint64_t count;
    if (!uf__builder_device(snapshot->builder, device))
        return false;
    uf__list_walk_begin(&walk, &snapshot->store, list);
    while (uf__list_walk_next_run(&walk, &snapshot->store, &value, &count)) {
        if (is_adopted && !uf__builder_extend(snapshot->builder, count))
            return false;
        for (uint64_t i = 0; i < count && !is_adopted; i++) {
            uf_event event = snapshot->events[uf__record_index(value) + i];
            event.reserved[0] = 0;
            if (!uf__builder_event(snapshot->builder, &event))
                return false;
        }
    }
    return true;
}

static uf_status put_events(uf__snapshot *snapshot, uf__value traces, uf_error *error)
{
    bool is_in_order = false;
    if (traces == UF__VALUE_NOTHING)
        return UF_OK;
    uf__builder_trace(snapshot->builder)->has_device_traces = true;
    uf_status status = check_events(snapshot, traces, &is_in_order, error);
    if (status != UF_OK)
        return status;
    if (is_in_order) {
        for (uint64_t i = 0; i < snapshot->event_count; i++)
            snapshot->events[i].reserved[0] = 0;
        if (!uf__builder_adopt_events(snapshot->builder, snapshot->events, snapshot->event_count))
            return uf__snapshot_no_memory(error);
        snapshot->events = NULL;
    }
    uf__list_walk walk;
    uf__value list;
    int32_t device = 0;
    uf__list_walk_begin(&walk, &snapshot->store, traces);
    while (uf__list_walk_next(&walk, &snapshot->store, &list))
        if (!put_device(snapshot, list, device++, is_in_order))
            return uf__snapshot_no_memory(error);
    return UF_OK;
}

static uf_status put_annotations(uf__snapshot *snapshot, uf__value annotations, uf_error *error)
{
    uf__list_walk walk;
    uf__value value;
    if (annotations == UF__VALUE_NOTHING)
        return UF_OK;
    if (!uf__list_walk_begin(&walk, &snapshot->store, annotations))
        return no_list(error, "external_annotations", annotations);
    while (uf__list_walk_next(&walk, &snapshot->store, &value)) {
        if (!uf__value_is_record(value, UF__RECORD_ANNOTATION))
            return uf__error_set(error, UF_ERROR_BAD_INPUT,
                                 "a damaged snapshot: an annotation is %s without 'stage'",
                                 uf__value_noun(value));
        if (!uf__builder_annotation(snapshot->builder,
                                    &snapshot->annotations[uf__record_index(value)]))
            return uf__snapshot_no_memory(error);
    }
    return UF_OK;
}

/* Returns the index of a division's key, "1" to "32768" or the number itself; -1 for others. */
static int division_index(const uf__snapshot *snapshot, uf__value key)
{
    uint64_t number = 0;
    if (uf__value_tag(key) == UF__TAG_STRING) {
        const uf__strings *strings = &snapshot->store.strings;
        const char *text = uf__strings_text(strings, (uint32_t)uf__value_payload(key));
        size_t length = uf__strings_length(strings, (uint32_t)uf__value_payload(key));
        if (length == 0 || length > 5)
            return -1;
        for (size_t i = 0; i < length; i++) {
            if (text[i] < '0' || text[i] > '9')
                return -1;
            number = number * 10 + (uint64_t)(text[i] - '0');
        }
    } else if (!uf__store_as_u64(&snapshot->store, key, &number)) {
        return -1;
    }
    for (int i = 0; i < DIVISION_COUNT; i++)
        if (number == UINT64_C(1) << i)
            return i;
    return -1;
}

static uf_status put_divisions(uf__snapshot *snapshot, uf__value dict, uf_trace_settings *settings,
                               uf_error *error)
{
    if (uf__value_tag(dict) != UF__TAG_DICT)
        return UF_OK;
    settings->has_divisions = true;
    uf__value values[DIVISION_COUNT];
    for (int i = 0; i < DIVISION_COUNT; i++)
        values[i] = UF__VALUE_NOTHING;
    const uf__object *object = uf__store_object(&snapshot->store, dict);
    for (uint64_t i = 0; i + 1 < object->count; i += 2) {
        int at = division_index(snapshot, object->items[i]);
        if (at >= 0) {
            values[at] = object->items[i + 1]; /* a repeated key's last value counts */
            continue;
        }
        uf__fields odd = {.unknown_count = 1, .first_unknown = object->items[i]};
        uf_status status = uf__snapshot_count_unknown(snapshot, &odd, 0, error);
        if (status != UF_OK)
            return status;
    }
    for (int i = 0; i < DIVISION_COUNT; i++)
        if (values[i] != UF__VALUE_NOTHING && values[i] != UF__VALUE_NONE &&
            !uf__store_as_u64(&snapshot->store, values[i], &settings->divisions[i]))
            return uf__error_set(error, UF_ERROR_BAD_INPUT,
                                 "a damaged snapshot: roundup_power2_divisions has %s for 2^%d",
                                 uf__value_noun(values[i]), i);
    return UF_OK;
}

/* The four settings that have no field of their own in has_. */
static void put_other_settings(uf__snapshot *snapshot, uf_trace_settings *settings)
{
    const uf__fields *fields = &snapshot->fields;
    uf__value threads = uf__fields_get(fields, UF__KEY_PINNED_THREADS);
    uf__value lock = uf__fields_get(fields, UF__KEY_RELEASE_LOCK);
    uf__value host = uf__fields_get(fields, UF__KEY_PINNED_HOST_REGISTER);
    uf__value reuse = uf__fields_get(fields, UF__KEY_RECORD_STREAM_REUSE);
    uint64_t number;
    if (uf__store_as_u64(&snapshot->store, threads, &number) && number <= UINT32_MAX) {
        settings->pinned_num_register_threads = (uint32_t)number;
        settings->has_other |= 1u << 0;
    }
    settings->release_lock_on_cudamalloc = is_true(snapshot, lock);
    settings->pinned_use_cuda_host_register = is_true(snapshot, host);
    settings->graph_capture_record_stream_reuse = is_true(snapshot, reuse);
    if (lock != UF__VALUE_NOTHING)
        settings->has_other |= 1u << 1;
    if (host != UF__VALUE_NOTHING)
        settings->has_other |= 1u << 2;
    if (reuse != UF__VALUE_NOTHING)
        settings->has_other |= 1u << 3;
}

static uf_status put_settings(uf__snapshot *snapshot, uf__value dict, uf_error *error)
{
    uf__fields *fields = &snapshot->fields;
    uf_trace_settings *settings = &uf__builder_trace(snapshot->builder)->settings;
    if (!uf__fields_take_dict(fields, &snapshot->store, dict))
        return UF_OK;
    settings->is_present = true;
    uf_status status =
        uf__snapshot_string(snapshot, uf__fields_get(fields, UF__KEY_CONF), &settings->conf, error);
    if (status != UF_OK)
        return status;
    settings->has_conf = settings->conf != UF_NONE;
    uf__value value = uf__fields_get(fields, UF__KEY_MAX_SPLIT_SIZE);
    uint64_t unlimited;
    settings->has_max_split_size =
        uf__store_as_i64(&snapshot->store, value, &settings->max_split_size_bytes);
    if (!settings->has_max_split_size && uf__store_as_u64(&snapshot->store, value, &unlimited)) {
        settings->has_max_split_size = true; /* -1 written without a sign */
        settings->max_split_size_bytes = -1;
    }
    settings->has_gc_threshold = uf__store_as_double(
        &snapshot->store, uf__fields_get(fields, UF__KEY_GC_THRESHOLD), &settings->gc_threshold);
    value = uf__fields_get(fields, UF__KEY_EXPANDABLE_SEGMENTS);
    settings->has_expandable = value != UF__VALUE_NOTHING;
    settings->is_expandable = is_true(snapshot, value);
    put_other_settings(snapshot, settings);
    status = uf__snapshot_count_unknown(snapshot, fields, SETTINGS_KEYS, error);
    if (status == UF_OK)
        status =
            put_divisions(snapshot, uf__fields_get(fields, UF__KEY_DIVISIONS), settings, error);
    return status;
}

/* A bare list must hold segments, to be told from any other pickled list. */
static uf_status put_bare_list(uf__snapshot *snapshot, uf__value list, uf_error *error)
{
    uf__list_walk walk;
    uf__value first;
    if (!uf__list_walk_begin(&walk, &snapshot->store, list) ||
        !uf__list_walk_next(&walk, &snapshot->store, &first) ||
        !uf__fields_take_dict(&snapshot->fields, &snapshot->store, first) ||
        !(snapshot->fields.seen & UF__KEY_BIT(TOTAL_SIZE)))
        return no_snapshot(snapshot, error, "a list that holds no segments");
    return put_segments(snapshot, list, error);
}

static uf_status put_all(uf__snapshot *snapshot, uf__value top, uf_error *error)
{
    uf__fields *fields = &snapshot->fields;
    if (uf__value_tag(top) == UF__TAG_LIST)
        return put_bare_list(snapshot, top, error);
    if (!uf__fields_take_dict(fields, &snapshot->store, top))
        return no_snapshot(snapshot, error, uf__value_noun(top));
    if (!(fields->seen & (UF__KEY_BIT(SEGMENTS) | UF__KEY_BIT(DEVICE_TRACES))))
        return no_snapshot(snapshot, error, "a dictionary without 'segments' and 'device_traces'");
    uf_status status = uf__snapshot_count_unknown(snapshot, fields, TOP_KEYS, error);
    uf__value segments = uf__fields_get(fields, UF__KEY_SEGMENTS);
    uf__value traces = uf__fields_get(fields, UF__KEY_DEVICE_TRACES);
    uf__value settings = uf__fields_get(fields, UF__KEY_ALLOCATOR_SETTINGS);
    uf__value annotations = uf__fields_get(fields, UF__KEY_EXTERNAL_ANNOTATIONS);
    if (status == UF_OK)
        status = put_segments(snapshot, segments, error);
    if (status == UF_OK)
        status = put_events(snapshot, traces, error);
    if (status == UF_OK)
        status = put_settings(snapshot, settings, error);
    if (status == UF_OK)
        status = put_annotations(snapshot, annotations, error);
    return status;
}

uf_status uf__snapshot_read_form(uf__snapshot_parser *parse, uf_trace_form form,
                                 const char *form_name, uf__input *input, bool skip_stacks,
                                 uf_builder *builder, uf_error *error)
{
    uf__snapshot *snapshot = calloc(1, sizeof *snapshot);
    if (snapshot == NULL)
        return uf__snapshot_no_memory(error);
    snapshot->input = input;
    snapshot->builder = builder;
    snapshot->form_name = form_name;
    snapshot->skip_stacks = skip_stacks;
    uf__builder_trace(builder)->form = form;
    uf__reducer reducer;
    uf__value top = UF__VALUE_NOTHING;
    uf_status status = UF_OK;
    if (!uf__snapshot_init(snapshot, &reducer))
        status = uf__snapshot_no_memory(error);
    if (status == UF_OK)
        status = parse(input, &snapshot->store, &reducer, &top, error);
    if (status == UF_OK) {
        uf__store_drop_memo(&snapshot->store);
        status = put_all(snapshot, top, error);
    }
    uf__snapshot_fini(snapshot);
    free(snapshot);
    return status;
}

uf_status uf__snapshot_read(uf__input *input, bool skip_stacks, uf_builder *builder,
                            uf_error *error)
{
    return uf__snapshot_read_form(uf__pickle_read, UF_FORM_PICKLE, "a pickle", input, skip_stacks,
                                  builder, error);
}
