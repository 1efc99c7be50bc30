/* SPDX-License-Identifier: MIT
 *
 * Turns the dictionaries of a snapshot into records while the pickle is being read, so that memory
 * grows by 32 bytes an event and not with the pickle. Events are recognised as soon as they are
 * filled, the others when they are put into a list. Guarded by nothing: one snapshot belongs to one
 * reader. */
#include "trace/snapshot_record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"

#define SIZE_LIMIT_BYTES (UINT64_C(1) << 60)

#define EVENT_KEYS                                                                       \
    (UF__KEY_BIT(ACTION) | UF__KEY_BIT(ADDR) | UF__KEY_BIT(SIZE) | UF__KEY_BIT(STREAM) | \
     UF__KEY_BIT(TIME_US) | UF__KEY_BIT(COMPILE_CONTEXT) | UF__KEY_BIT(USER_METADATA) |  \
     UF__KEY_BIT(FRAMES) | UF__KEY_BIT(DEVICE_FREE) | UF__KEY_BIT(POOL_ID))
#define SITE_KEYS                                                                      \
    (UF__KEY_BIT(STREAM) | UF__KEY_BIT(COMPILE_CONTEXT) | UF__KEY_BIT(USER_METADATA) | \
     UF__KEY_BIT(FRAMES) | UF__KEY_BIT(POOL_ID))
#define FRAME_KEYS (UF__KEY_BIT(FILENAME) | UF__KEY_BIT(NAME) | UF__KEY_BIT(LINE))
#define BLOCK_KEYS                                                                                 \
    (UF__KEY_BIT(STATE) | UF__KEY_BIT(SIZE) | UF__KEY_BIT(ADDRESS) | UF__KEY_BIT(REQUESTED_SIZE) | \
     UF__KEY_BIT(FRAMES) | UF__KEY_BIT(HISTORY))
#define HISTORY_KEYS (UF__KEY_BIT(ADDR) | UF__KEY_BIT(REAL_SIZE) | UF__KEY_BIT(FRAMES))
#define ANNOTATION_KEYS \
    (UF__KEY_BIT(STAGE) | UF__KEY_BIT(NAME) | UF__KEY_BIT(DEVICE) | UF__KEY_BIT(TIME_US))

static const char *const key_texts[] = {
#define KEY_TEXT(name, text) text,
    UF__KEY_LIST(KEY_TEXT)
#undef KEY_TEXT
};

uf_status uf__snapshot_no_memory(uf_error *error)
{
    return uf__error_set(error, UF_ERROR_HOST_MEMORY,
                         "the host has no memory left to hold the trace");
}

/* A value for a message: small numbers as they are, others by kind. */
static const char *describe(uf__value value, char text[32])
{
    if (uf__value_tag(value) != UF__TAG_INT)
        return uf__value_noun(value);
    snprintf(text, 32, "%" PRId64, (int64_t)value >> UF__VALUE_TAG_BITS);
    return text;
}

uf_status uf__snapshot_bad(const uf__snapshot *snapshot, const char *what, uint64_t number,
                           const char *key, uf__value value, uf_error *error)
{
    char text[32];
    return uf__error_set(error, UF_ERROR_BAD_INPUT,
                         "%s %" PRIu64 " (counted from 0 through the file, before byte %" PRIu64
                         "): its %s is %s, which cannot be",
                         what, number, uf__input_offset(snapshot->input), key,
                         describe(value, text));
}

static uf_status bad_event(const uf__snapshot *snapshot, const char *key, uf__value value,
                           uf_error *error)
{
    return uf__snapshot_bad(snapshot, "event", snapshot->event_number, key, value, error);
}

void uf__fields_take(uf__fields *fields, const uf__value *pairs, uint64_t pair_count)
{
    uint64_t seen = 0;
    fields->unknown_count = 0;
    for (uint64_t i = 0; i < pair_count; i++) {
        uf__value key = pairs[2 * i];
        /* The string's id; beyond all ids for anything but a string. */
        uint64_t id = (key - UF__TAG_STRING) >> UF__VALUE_TAG_BITS |
                      (key - UF__TAG_STRING) << (64 - UF__VALUE_TAG_BITS);
        if (id < UF__KEY_COUNT) {
            fields->value[id] = pairs[2 * i + 1];
            seen |= UINT64_C(1) << id;
        } else if (fields->unknown_count++ == 0) {
            fields->first_unknown = key;
        }
    }
    fields->seen = seen;
}

bool uf__fields_take_dict(uf__fields *fields, const uf__store *store, uf__value dict)
{
    if (uf__value_tag(dict) != UF__TAG_DICT)
        return false;
    const uf__object *object = uf__store_object(store, dict);
    if (object->flags & UF__OBJECT_FORWARDED)
        return false;
    uf__fields_take(fields, object->items, object->count / 2);
    for (uint32_t key = 0; key < UF__KEY_COUNT; key++)
        if (fields->seen >> key & 1)
            fields->value[key] = uf__store_resolve(store, fields->value[key]);
    return true;
}

uf_status uf__snapshot_count_unknown(uf__snapshot *snapshot, const uf__fields *fields,
                                     uint64_t known, uf_error *error)
{
    uint64_t strange = fields->seen & ~known;
    if (fields->unknown_count == 0 && strange == 0)
        return UF_OK;
    uf_trace_oddities *oddities = &uf__builder_trace(snapshot->builder)->oddities;
    oddities->unknown_key_count += fields->unknown_count + (uint64_t)__builtin_popcountll(strange);
    if (oddities->first_unknown_key != UF_NONE)
        return UF_OK;
    uf__value first = fields->first_unknown;
    if (fields->unknown_count == 0)
        first = uf__value_make(UF__TAG_STRING, (uint64_t)__builtin_ctzll(strange));
    return uf__snapshot_string(snapshot, first, &oddities->first_unknown_key, error);
}

/* Interns a store string in the trace at its first use there. */
static uf_status translate(uf__snapshot *snapshot, uint32_t store_id, uint32_t *id, uf_error *error)
{
    uf__strings *strings = &snapshot->store.strings;
    if (strings->count > snapshot->string_id_capacity) {
        uint32_t *ids = uf__array_grow(snapshot->string_ids, &snapshot->string_id_capacity,
                                       strings->count, sizeof *ids);
        if (ids == NULL)
            return uf__snapshot_no_memory(error);
        snapshot->string_ids = ids;
    }
    while (snapshot->string_id_count < strings->count)
        snapshot->string_ids[snapshot->string_id_count++] = UF_NONE;
    uint32_t *known = &snapshot->string_ids[store_id];
    if (*known == UF_NONE &&
        !uf__builder_string(snapshot->builder, uf__strings_text(strings, store_id),
                            uf__strings_length(strings, store_id), known))
        return uf__snapshot_no_memory(error);
    *id = *known;
    return UF_OK;
}

uf_status uf__snapshot_string(uf__snapshot *snapshot, uf__value value, uint32_t *id,
                              uf_error *error)
{
    *id = UF_NONE;
    if (uf__value_tag(value) != UF__TAG_STRING)
        return UF_OK;
    uint32_t store_id = (uint32_t)uf__value_payload(value);
    if (store_id < snapshot->string_id_count && snapshot->string_ids[store_id] != UF_NONE) {
        *id = snapshot->string_ids[store_id];
        return UF_OK;
    }
    return translate(snapshot, store_id, id, error);
}

bool uf__snapshot_size(const uf__snapshot *snapshot, uf__value value, uint64_t *size_bytes)
{
    uint64_t number;
    if (!uf__store_as_u64(&snapshot->store, value, &number) || number >= SIZE_LIMIT_BYTES)
        return false;
    *size_bytes = number;
    return true;
}

bool uf__snapshot_stream(const uf__snapshot *snapshot, uf__value value, uint64_t *stream)
{
    int64_t number;
    if (uf__store_as_u64(&snapshot->store, value, stream))
        return true;
    if (!uf__store_as_i64(&snapshot->store, value, &number))
        return false;
    *stream = (uint64_t)number;
    return true;
}

bool uf__snapshot_pool_id(const uf__snapshot *snapshot, uf__value value, uint64_t pool_id[2])
{
    uf__list_walk walk;
    uf__value part[3];
    int count = 0;
    if (!uf__list_walk_begin(&walk, &snapshot->store, value))
        return false;
    while (count < 3 && uf__list_walk_next(&walk, &snapshot->store, &part[count]))
        count++;
    uint64_t numbers[2];
    if (count != 2 || !uf__snapshot_stream(snapshot, part[0], &numbers[0]) ||
        !uf__snapshot_stream(snapshot, part[1], &numbers[1]))
        return false;
    pool_id[0] = numbers[0];
    pool_id[1] = numbers[1];
    return true;
}

/* Makes room for the frames of a stack. */
static bool reserve_frames(uf__snapshot *snapshot, uint64_t count)
{
    if (count <= snapshot->frame_id_capacity)
        return true;
    uint32_t *ids =
        uf__array_grow(snapshot->frame_ids, &snapshot->frame_id_capacity, count, sizeof *ids);
    if (ids == NULL)
        return false;
    snapshot->frame_ids = ids;
    return true;
}

/* Collects the frame ids of a list. */
static uf_status collect_frames(uf__snapshot *snapshot, uf__value frames, uint32_t *count,
                                uf_error *error)
{
    uf__list_walk walk;
    uf__value frame;
    uint64_t n = 0;
    bool is_list = uf__list_walk_begin(&walk, &snapshot->store, frames);
    while (is_list && uf__list_walk_next(&walk, &snapshot->store, &frame)) {
        if (!uf__value_is_record(frame, UF__RECORD_FRAME))
            return uf__error_set(error, UF_ERROR_BAD_INPUT,
                                 "a stack's frame is %s without 'filename', before byte %" PRIu64,
                                 uf__value_noun(frame), uf__input_offset(snapshot->input));
        if (n >= UINT32_MAX - 1)
            return uf__error_set(error, UF_ERROR_BAD_INPUT, "a stack of 2^32 frames");
        if (!reserve_frames(snapshot, n + 1))
            return uf__snapshot_no_memory(error);
        snapshot->frame_ids[n++] = (uint32_t)uf__record_index(frame);
    }
    if (!is_list)
        return uf__error_set(error, UF_ERROR_BAD_INPUT,
                             "'frames' is %s and not a list, before byte %" PRIu64,
                             uf__value_noun(frames), uf__input_offset(snapshot->input));
    *count = (uint32_t)n;
    return UF_OK;
}

uf_status uf__snapshot_stack(uf__snapshot *snapshot, uf__value frames, bool can_replace,
                             uint32_t *stack, uf_error *error)
{
    frames = uf__store_resolve(&snapshot->store, frames);
    *stack = UF_NONE;
    if (frames == UF__VALUE_NOTHING || frames == UF__VALUE_NONE || frames == UF__VALUE_EMPTY)
        return UF_OK;
    can_replace = can_replace && uf__value_tag(frames) == UF__TAG_LIST;
    if (snapshot->skip_stacks) {
        if (can_replace && !uf__store_replace(&snapshot->store, frames, UF__VALUE_EMPTY))
            return uf__snapshot_no_memory(error);
        return UF_OK;
    }
    if (uf__value_is_record(frames, UF__RECORD_STACK)) {
        *stack = (uint32_t)uf__record_index(frames);
        return UF_OK;
    }
    uint32_t count = 0;
    uf_status status = collect_frames(snapshot, frames, &count, error);
    if (status != UF_OK || count == 0)
        return status;
    if (!uf__builder_stack(snapshot->builder, snapshot->frame_ids, count, stack))
        return uf__snapshot_no_memory(error);
    if (can_replace &&
        !uf__store_replace(&snapshot->store, frames, uf__record_make(UF__RECORD_STACK, *stack)))
        return uf__snapshot_no_memory(error);
    return UF_OK;
}

/* Reads the site keys that were seen into a site. */
static uf_status apply_site(uf__snapshot *snapshot, uf__value stack, uf_site *site, uf_error *error)
{
    const uf__fields *fields = &snapshot->fields;
    uf__value value = uf__fields_get(fields, UF__KEY_STREAM);
    uf_status status = UF_OK;
    if (value != UF__VALUE_NOTHING && !uf__snapshot_stream(snapshot, value, &site->stream))
        return bad_event(snapshot, "stream", value, error);
    if (fields->seen & UF__KEY_BIT(COMPILE_CONTEXT))
        status = uf__snapshot_string(snapshot, fields->value[UF__KEY_COMPILE_CONTEXT],
                                     &site->compile_context, error);
    if (status == UF_OK && (fields->seen & UF__KEY_BIT(USER_METADATA)))
        status = uf__snapshot_string(snapshot, fields->value[UF__KEY_USER_METADATA],
                                     &site->user_metadata, error);
    value = uf__fields_get(fields, UF__KEY_POOL_ID);
    if (value != UF__VALUE_NOTHING) {
        if (!uf__snapshot_pool_id(snapshot, value, site->pool_id))
            return bad_event(snapshot, "pool_id", value, error);
        site->has_pool_id = true;
    }
    if (uf__value_is_record(stack, UF__RECORD_STACK))
        site->stack = (uint32_t)uf__record_index(stack);
    return status;
}

/* Turns a list of frames into a stack record, or UF__VALUE_NOTHING. */
static uf_status take_stack(uf__snapshot *snapshot, uf__value *stack, uf_error *error)
{
    uint32_t id;
    uf_status status = uf__snapshot_stack(
        snapshot, uf__fields_get(&snapshot->fields, UF__KEY_FRAMES), true, &id, error);
    *stack = id == UF_NONE ? UF__VALUE_NOTHING : uf__record_make(UF__RECORD_STACK, id);
    return status;
}

/* The site of a new event, from the cache where its words are the same as an earlier event's. */
static uf_status take_site(uf__snapshot *snapshot, uint32_t *site_id, uf_error *error)
{
    const uf__fields *fields = &snapshot->fields;
    uf__site_cache made = {
        .stream = uf__fields_get(fields, UF__KEY_STREAM),
        .context = uf__fields_get(fields, UF__KEY_COMPILE_CONTEXT),
        .metadata = uf__fields_get(fields, UF__KEY_USER_METADATA),
        .pool = uf__fields_get(fields, UF__KEY_POOL_ID),
        .stack = UF__VALUE_NOTHING,
    };
    uf_status status = UF_OK;
    if (fields->seen & UF__KEY_BIT(FRAMES))
        status = take_stack(snapshot, &made.stack, error);
    if (status != UF_OK)
        return status;
    uint64_t hash = (made.stream + made.stack * 3 + made.metadata * 5 + made.pool * 7) *
                    UINT64_C(0x9e3779b97f4a7c15);
    uf__site_cache *cached = &snapshot->cache[hash >> (64 - UF__SITE_CACHE_BITS)];
    if (cached->site != UF_NONE && cached->stream == made.stream &&
        cached->context == made.context && cached->metadata == made.metadata &&
        cached->pool == made.pool && cached->stack == made.stack) {
        *site_id = cached->site;
        return UF_OK;
    }
    uf_site site = {.stack = UF_NONE,
                    .compile_context = UF_NONE,
                    .user_metadata = UF_NONE,
                    .action_name = UF_NONE};
    status = apply_site(snapshot, made.stack, &site, error);
    if (status != UF_OK)
        return status;
    if (!uf__builder_site(snapshot->builder, &site, site_id))
        return uf__snapshot_no_memory(error);
    made.site = *site_id;
    /* A container's word may come to name another container; the other words never change. */
    if (!uf__value_is_container(made.pool))
        *cached = made;
    return UF_OK;
}

/* Address, size and time, where seen. */
static uf_status apply_numbers(uf__snapshot *snapshot, uf_event *event, uf_error *error)
{
    const uf__fields *fields = &snapshot->fields;
    uf__value value = uf__fields_get(fields, UF__KEY_SIZE);
    if (value != UF__VALUE_NOTHING) {
        if (!uf__snapshot_size(snapshot, value, &event->size_bytes))
            return bad_event(snapshot, "size", value, error);
        event->reserved[0] |= UF__EVENT_HAS_SIZE;
    }
    value = uf__fields_get(fields, UF__KEY_ADDR);
    if (value != UF__VALUE_NOTHING && !(event->reserved[0] & UF__EVENT_HAS_DEVICE_FREE)) {
        if (!uf__store_as_u64(&snapshot->store, value, &event->addr))
            return bad_event(snapshot, "addr", value, error);
        event->reserved[0] |= UF__EVENT_HAS_ADDR;
    }
    if (fields->seen & UF__KEY_BIT(DEVICE_FREE) && event->action == UF_ACTION_OOM) {
        value = uf__fields_get(fields, UF__KEY_DEVICE_FREE);
        if (value != UF__VALUE_NOTHING) {
            if (!uf__store_as_u64(&snapshot->store, value, &event->addr))
                return bad_event(snapshot, "device_free", value, error);
            event->reserved[0] |= UF__EVENT_HAS_ADDR | UF__EVENT_HAS_DEVICE_FREE;
        }
    }
    value = uf__fields_get(fields, UF__KEY_TIME_US);
    if (value != UF__VALUE_NOTHING && !uf__store_as_i64(&snapshot->store, value, &event->time_us))
        return bad_event(snapshot, "time_us", value, error);
    return UF_OK;
}

/* The action, where seen; an unknown name goes into the site. */
static uf_status apply_action(uf__snapshot *snapshot, uf_event *event, bool *is_other,
                              uf_error *error)
{
    *is_other = event->action == UF_ACTION_OTHER;
    if (!(snapshot->fields.seen & UF__KEY_BIT(ACTION)))
        return UF_OK;
    uf__value value = snapshot->fields.value[UF__KEY_ACTION];
    if (uf__value_tag(value) != UF__TAG_STRING)
        return bad_event(snapshot, "action", value, error);
    uint64_t number = uf__value_payload(value) - UF__FIRST_ACTION_ID;
    *is_other = number >= UF_ACTION_OTHER;
    event->action = *is_other ? (uint8_t)UF_ACTION_OTHER : (uint8_t)number;
    return UF_OK;
}

/* Changes an event by the fields at hand, going through its whole site. */
static uf_status apply_event(uf__snapshot *snapshot, uf_event *event, uf_error *error)
{
    bool is_other;
    uf_status status = apply_action(snapshot, event, &is_other, error);
    if (status == UF_OK)
        status = apply_numbers(snapshot, event, error);
    uf__value stack = UF__VALUE_NOTHING;
    if (status == UF_OK && snapshot->fields.seen & UF__KEY_BIT(FRAMES))
        status = take_stack(snapshot, &stack, error);
    uf_site site = uf__builder_trace(snapshot->builder)->sites[event->site];
    if (status == UF_OK)
        status = apply_site(snapshot, stack, &site, error);
    if (status == UF_OK && snapshot->fields.seen & UF__KEY_BIT(ACTION)) {
        site.action_name = UF_NONE;
        if (is_other)
            status = uf__snapshot_string(snapshot, snapshot->fields.value[UF__KEY_ACTION],
                                         &site.action_name, error);
    }
    if (status != UF_OK)
        return status;
    if (!uf__builder_site(snapshot->builder, &site, &event->site))
        return uf__snapshot_no_memory(error);
    return UF_OK;
}

/* Action and numbers of an event with the usual keys and small positive numbers, at one go. Returns
 * false when the general way is needed; it sets all of them. */
static inline bool take_plain(const uf__fields *fields, uf_event *event)
{
    const uint64_t needed =
        UF__KEY_BIT(ACTION) | UF__KEY_BIT(ADDR) | UF__KEY_BIT(SIZE) | UF__KEY_BIT(TIME_US);
    uf__value addr = fields->value[UF__KEY_ADDR];
    uf__value size = fields->value[UF__KEY_SIZE];
    uf__value time = fields->value[UF__KEY_TIME_US];
    uf__value action = fields->value[UF__KEY_ACTION];
    uint64_t number = uf__value_payload(action) - UF__FIRST_ACTION_ID;
    if ((fields->seen & needed) != needed || number >= UF_ACTION_OOM ||
        uf__value_tag(action) != UF__TAG_STRING ||
        uf__value_tag(addr | size | time) != UF__TAG_INT || (int64_t)(addr | size) < 0)
        return false;
    event->addr = uf__value_payload(addr);
    event->size_bytes = uf__value_payload(size);
    event->time_us = (int64_t)time >> UF__VALUE_TAG_BITS;
    event->action = (uint8_t)number;
    event->reserved[0] = UF__EVENT_HAS_SIZE | UF__EVENT_HAS_ADDR;
    return true;
}

static uf_status take_event(uf__snapshot *snapshot, uf__value *record, uf_error *error)
{
    if (snapshot->event_count >= snapshot->event_capacity) {
        uf_event *events = uf__array_grow(snapshot->events, &snapshot->event_capacity,
                                          snapshot->event_count + 1, sizeof *events);
        if (events == NULL)
            return uf__snapshot_no_memory(error);
        snapshot->events = events;
    }
    uf_event *event = &snapshot->events[snapshot->event_count];
    memset(event, 0, sizeof *event);
    event->time_us = UF_TIME_UNKNOWN;
    bool is_other = false;
    snapshot->event_number = snapshot->event_count;
    uf_status status = UF_OK;
    if (!take_plain(&snapshot->fields, event)) {
        status = apply_action(snapshot, event, &is_other, error);
        if (status == UF_OK)
            status = apply_numbers(snapshot, event, error);
    }
    if (status == UF_OK)
        status = take_site(snapshot, &event->site, error);
    if (status == UF_OK && is_other) {
        uf_site site = uf__builder_trace(snapshot->builder)->sites[event->site];
        status = uf__snapshot_string(snapshot, snapshot->fields.value[UF__KEY_ACTION],
                                     &site.action_name, error);
        if (status == UF_OK && !uf__builder_site(snapshot->builder, &site, &event->site))
            status = uf__snapshot_no_memory(error);
    }
    if (status == UF_OK)
        status = uf__snapshot_count_unknown(snapshot, &snapshot->fields, EVENT_KEYS, error);
    if (status == UF_OK)
        *record = uf__record_make(UF__RECORD_EVENT, snapshot->event_count++);
    return status;
}

static uf_status take_frame(uf__snapshot *snapshot, uf__value *record, uf_error *error)
{
    const uf__fields *fields = &snapshot->fields;
    uf_frame frame = {0};
    uint32_t id = 0;
    uf_status status = uf__snapshot_count_unknown(snapshot, fields, FRAME_KEYS, error);
    if (status == UF_OK && !snapshot->skip_stacks) {
        uf__value line = uf__fields_get(fields, UF__KEY_LINE);
        if (line != UF__VALUE_NOTHING && !uf__store_as_i64(&snapshot->store, line, &frame.line))
            return uf__error_set(error, UF_ERROR_BAD_INPUT,
                                 "a frame's line is %s, which cannot be, before byte %" PRIu64,
                                 uf__value_noun(line), uf__input_offset(snapshot->input));
        status = uf__snapshot_string(snapshot, uf__fields_get(fields, UF__KEY_FILENAME),
                                     &frame.filename, error);
        if (status == UF_OK)
            status = uf__snapshot_string(snapshot, uf__fields_get(fields, UF__KEY_NAME),
                                         &frame.name, error);
        if (status == UF_OK && !uf__builder_frame(snapshot->builder, &frame, &id))
            status = uf__snapshot_no_memory(error);
    }
    if (status == UF_OK)
        *record = uf__record_make(UF__RECORD_FRAME, id);
    return status;
}

static uf_block_state block_state(const uf__snapshot *snapshot, uf__value value)
{
    if (uf__value_tag(value) != UF__TAG_STRING)
        return UF_BLOCK_OTHER;
    const char *text =
        uf__strings_text(&snapshot->store.strings, (uint32_t)uf__value_payload(value));
    if (strcmp(text, "active_allocated") == 0)
        return UF_BLOCK_ACTIVE_ALLOCATED;
    if (strcmp(text, "active_pending_free") == 0 || strcmp(text, "active_awaiting_free") == 0)
        return UF_BLOCK_ACTIVE_PENDING_FREE;
    return strcmp(text, "inactive") == 0 ? UF_BLOCK_INACTIVE : UF_BLOCK_OTHER;
}

/* The 2.0 layout: requested size and frames are in the first entry of `history`. */
static uf_status apply_history(uf__snapshot *snapshot, uf_trace_block *block, uf_error *error)
{
    uf__list_walk walk;
    uf__value first;
    uf__fields *fields = &snapshot->history;
    if (!uf__list_walk_begin(&walk, &snapshot->store, snapshot->fields.value[UF__KEY_HISTORY]) ||
        !uf__list_walk_next(&walk, &snapshot->store, &first) ||
        !uf__fields_take_dict(fields, &snapshot->store, first))
        return UF_OK;
    uf__value value = uf__fields_get(fields, UF__KEY_REAL_SIZE);
    if (value != UF__VALUE_NOTHING && !block->has_requested) {
        if (!uf__snapshot_size(snapshot, value, &block->requested_bytes))
            return uf__snapshot_bad(snapshot, "block", snapshot->block_count, "real_size", value,
                                    error);
        block->has_requested = true;
    }
    uf_status status = uf__snapshot_count_unknown(snapshot, fields, HISTORY_KEYS, error);
    if (status == UF_OK && block->stack == UF_NONE)
        status = uf__snapshot_stack(snapshot, uf__fields_get(fields, UF__KEY_FRAMES), false,
                                    &block->stack, error);
    return status;
}

static uf_status apply_block(uf__snapshot *snapshot, uf_trace_block *block, uf_error *error)
{
    const uf__fields *fields = &snapshot->fields;
    uint64_t number = snapshot->block_count;
    uf__value value = uf__fields_get(fields, UF__KEY_SIZE);
    if (value == UF__VALUE_NOTHING || !uf__snapshot_size(snapshot, value, &block->size_bytes))
        return uf__snapshot_bad(snapshot, "block", number, "size", value, error);
    value = uf__fields_get(fields, UF__KEY_ADDRESS);
    if (value != UF__VALUE_NOTHING) {
        if (!uf__store_as_u64(&snapshot->store, value, &block->addr))
            return uf__snapshot_bad(snapshot, "block", number, "address", value, error);
        block->reserved[0] |= UF__BLOCK_HAS_ADDR;
    }
    value = uf__fields_get(fields, UF__KEY_REQUESTED_SIZE);
    if (value != UF__VALUE_NOTHING) {
        if (!uf__snapshot_size(snapshot, value, &block->requested_bytes))
            return uf__snapshot_bad(snapshot, "block", number, "requested_size", value, error);
        block->has_requested = true;
    }
    block->state = (uint8_t)block_state(snapshot, fields->value[UF__KEY_STATE]);
    uf_status status = uf__snapshot_stack(snapshot, uf__fields_get(fields, UF__KEY_FRAMES), true,
                                          &block->stack, error);
    if (status == UF_OK && fields->seen & UF__KEY_BIT(HISTORY))
        status = apply_history(snapshot, block, error);
    return status;
}

static uf_status take_block(uf__snapshot *snapshot, uf__value *record, uf_error *error)
{
    uf_trace_block block = {.stack = UF_NONE};
    uf_status status = apply_block(snapshot, &block, error);
    if (status == UF_OK)
        status = uf__snapshot_count_unknown(snapshot, &snapshot->fields, BLOCK_KEYS, error);
    if (status != UF_OK)
        return status;
    if (snapshot->block_count >= snapshot->block_capacity) {
        uf_trace_block *blocks = uf__array_grow(snapshot->blocks, &snapshot->block_capacity,
                                                snapshot->block_count + 1, sizeof *blocks);
        if (blocks == NULL)
            return uf__snapshot_no_memory(error);
        snapshot->blocks = blocks;
    }
    snapshot->blocks[snapshot->block_count] = block;
    *record = uf__record_make(UF__RECORD_BLOCK, snapshot->block_count++);
    return UF_OK;
}

static uf_status take_annotation(uf__snapshot *snapshot, uf__value *record, uf_error *error)
{
    const uf__fields *fields = &snapshot->fields;
    uf_annotation annotation = {.time_us = UF_TIME_UNKNOWN};
    uint64_t number = snapshot->annotation_count;
    uf__value value = uf__fields_get(fields, UF__KEY_TIME_US);
    if (value != UF__VALUE_NOTHING &&
        !uf__store_as_i64(&snapshot->store, value, &annotation.time_us))
        return uf__snapshot_bad(snapshot, "annotation", number, "time_us", value, error);
    value = uf__fields_get(fields, UF__KEY_DEVICE);
    int64_t device = 0;
    if (value != UF__VALUE_NOTHING && (!uf__store_as_i64(&snapshot->store, value, &device) ||
                                       device < INT32_MIN || device > INT32_MAX))
        return uf__snapshot_bad(snapshot, "annotation", number, "device", value, error);
    annotation.device = (int32_t)device;
    uf_status status = uf__snapshot_string(snapshot, uf__fields_get(fields, UF__KEY_NAME),
                                           &annotation.name, error);
    if (status == UF_OK)
        status = uf__snapshot_string(snapshot, uf__fields_get(fields, UF__KEY_STAGE),
                                     &annotation.stage, error);
    if (status == UF_OK)
        status = uf__snapshot_count_unknown(snapshot, fields, ANNOTATION_KEYS, error);
    if (status != UF_OK)
        return status;
    if (number >= snapshot->annotation_capacity) {
        uf_annotation *annotations = uf__array_grow(
            snapshot->annotations, &snapshot->annotation_capacity, number + 1, sizeof *annotations);
        if (annotations == NULL)
            return uf__snapshot_no_memory(error);
        snapshot->annotations = annotations;
    }
    snapshot->annotations[snapshot->annotation_count++] = annotation;
    *record = uf__record_make(UF__RECORD_ANNOTATION, number);
    return UF_OK;
}

static uf_status fill(void *context, const uf__value *pairs, uint64_t pair_count, uf__value *record,
                      uf_error *error)
{
    uf__snapshot *snapshot = context;
    uf__fields_take(&snapshot->fields, pairs, pair_count);
    if (snapshot->fields.seen & UF__KEY_BIT(ACTION))
        return take_event(snapshot, record, error);
    return UF_OK;
}

static uf_status seal(void *context, const uf__value *pairs, uint64_t pair_count, uf__value *record,
                      uf_error *error)
{
    uf__snapshot *snapshot = context;
    uf__fields_take(&snapshot->fields, pairs, pair_count);
    uint64_t seen = snapshot->fields.seen;
    if (seen & UF__KEY_BIT(ACTION))
        return take_event(snapshot, record, error);
    if (seen & UF__KEY_BIT(FILENAME))
        return take_frame(snapshot, record, error);
    if (seen & UF__KEY_BIT(STATE))
        return take_block(snapshot, record, error);
    if (seen & UF__KEY_BIT(STAGE))
        return take_annotation(snapshot, record, error);
    return UF_OK;
}

/* Notes what a frame was made from, and that it came after the last one. */
static bool note_frame(uf__snapshot *snapshot, uint64_t names, uf__value line, uint32_t id)
{
    if (id >= snapshot->known_frame_capacity) {
        uf__known_frame *grown =
            uf__array_grow(snapshot->known_frames, &snapshot->known_frame_capacity,
                           id + UINT64_C(1), sizeof *grown);
        if (grown == NULL)
            return false;
        snapshot->known_frames = grown;
    }
    uf__known_frame *known = snapshot->known_frames;
    while (snapshot->known_frame_count <= id)
        known[snapshot->known_frame_count++] = (uf__known_frame){.line = UF__VALUE_NOTHING};
    known[id].names = names;
    known[id].line = line;
    known[snapshot->last_frame].next = id;
    snapshot->last_frame = id;
    return true;
}

/* A sealed frame, by guess if it is the one that came after the last one before. */
static bool take_sealed_frame(uf__snapshot *snapshot, uf__value *record)
{
    const uf__fields *fields = &snapshot->fields;
    uf__value file = fields->value[UF__KEY_FILENAME], name = fields->value[UF__KEY_NAME];
    uf__value line = fields->value[UF__KEY_LINE];
    uint64_t names = uf__value_payload(file) << 32 | uf__value_payload(name);
    const uf__known_frame *known = snapshot->known_frames;
    if (fields->seen != FRAME_KEYS || snapshot->skip_stacks ||
        uf__value_tag(file) != UF__TAG_STRING || uf__value_tag(name) != UF__TAG_STRING)
        return take_frame(snapshot, record, NULL) == UF_OK;
    if (known != NULL) {
        uint32_t next = known[snapshot->last_frame].next;
        if (known[next].names == names && known[next].line == line) {
            snapshot->last_frame = next;
            *record = uf__record_make(UF__RECORD_FRAME, next);
            return true;
        }
    }
    return take_frame(snapshot, record, NULL) == UF_OK &&
           note_frame(snapshot, names, line, (uint32_t)uf__record_index(*record));
}

/* A dictionary whose values are in the fields already. A frame is one for sure only where it is
 * sealed. */
static bool take(void *context, const uf__taken *taken, bool is_sealed, uf__value *record)
{
    uf__snapshot *snapshot = context;
    uint64_t seen = taken->seen;
    snapshot->fields.seen = seen;
    snapshot->fields.unknown_count = taken->unknown_count;
    snapshot->fields.first_unknown = taken->first_unknown;
    if (!is_sealed)
        return (seen & UF__KEY_BIT(ACTION)) != 0 && take_event(snapshot, record, NULL) == UF_OK;
    return taken->unknown_count == 0 && (seen & ~FRAME_KEYS) == 0 &&
           (seen & UF__KEY_BIT(FILENAME)) != 0 && take_sealed_frame(snapshot, record);
}

/* An event's frames; what else holds a list is read the general way. */
static bool take_list(void *context, uint64_t seen, uint32_t slot, const uf__value *values,
                      uint64_t count, uf__value *word)
{
    uf__snapshot *snapshot = context;
    uint32_t stack;
    if (slot != UF__KEY_FRAMES || !(seen & UF__KEY_BIT(ACTION)) || count >= UINT32_MAX)
        return false;
    *word = UF__VALUE_EMPTY;
    if (snapshot->skip_stacks)
        return true;
    if (!reserve_frames(snapshot, count))
        return false;
    for (uint64_t i = 0; i < count; i++) {
        if (!uf__value_is_record(values[i], UF__RECORD_FRAME))
            return false;
        snapshot->frame_ids[i] = (uint32_t)uf__record_index(values[i]);
    }
    if (!uf__builder_stack(snapshot->builder, snapshot->frame_ids, (uint32_t)count, &stack))
        return false;
    *word = uf__record_make(UF__RECORD_STACK, stack);
    return true;
}

static uf_status amend(void *context, uf__value record, const uf__value *pairs, uint64_t pair_count,
                       uf_error *error)
{
    uf__snapshot *snapshot = context;
    if (!uf__value_is_record(record, UF__RECORD_EVENT))
        return uf__error_set(error, UF_ERROR_BAD_INPUT,
                             "a dictionary is changed after its use, before byte %" PRIu64,
                             uf__input_offset(snapshot->input));
    uf__fields_take(&snapshot->fields, pairs, pair_count);
    snapshot->event_number = uf__record_index(record);
    uf_event *event = &snapshot->events[snapshot->event_number];
    uf_status status = apply_event(snapshot, event, error);
    if (status == UF_OK)
        status = uf__snapshot_count_unknown(snapshot, &snapshot->fields, EVENT_KEYS, error);
    return status;
}

bool uf__snapshot_init(uf__snapshot *snapshot, uf__reducer *reducer)
{
    uf__store_init(&snapshot->store);
    uint32_t id;
    for (uint32_t key = 0; key < UF__KEY_COUNT; key++) {
        if (!uf__strings_intern(&snapshot->store.strings, key_texts[key], strlen(key_texts[key]),
                                &id))
            return false;
    }
    for (int action = 0; action < UF_ACTION_OTHER; action++) {
        const char *name = uf_action_name((uf_action)action);
        if (!uf__strings_intern(&snapshot->store.strings, name, strlen(name), &id))
            return false;
    }
    for (size_t i = 0; i < sizeof snapshot->cache / sizeof snapshot->cache[0]; i++)
        snapshot->cache[i].site = UF_NONE;
    *reducer = (uf__reducer){.context = snapshot,
                             .fill = fill,
                             .seal = seal,
                             .amend = amend,
                             .slots = snapshot->fields.value,
                             .slot_count = UF__KEY_COUNT,
                             .take = take,
                             .take_list = take_list};
    return true;
}

void uf__snapshot_fini(uf__snapshot *snapshot)
{
    uf__store_fini(&snapshot->store);
    free(snapshot->events);
    free(snapshot->blocks);
    free(snapshot->annotations);
    free(snapshot->string_ids);
    free(snapshot->frame_ids);
    free(snapshot->known_frames);
}
