/* SPDX-License-Identifier: MIT
 *
 * Reads .uft (docs/uft.md) into a builder. Owns one section's payload at a time and, for each kind
 * of id, the table from the file's ids to the builder's, since a file may repeat what the builder
 * interns. Trusts nothing: memory grows with the bytes that arrived, never with a number that
 * stands in them. No lock: one reader, one thread. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/error.h"
#include "trace/array.h"
#include "trace/uft.h"

/* Bytes behind a payload that may be read though they do not belong to it: a record without a list
 * is decoded first and found too long afterwards. No such record is longer. */
#define SLACK_BYTES ((size_t)512)
#define READ_STEP_BYTES ((size_t)1 << 20)

/* The builder's id for each id of the file. */
typedef struct id_table {
    uint32_t *ids;
    uint64_t count;
    uint64_t capacity;
} id_table;

/* A payload being decoded. is_bad stays set once a number was longer than 64 bits. */
typedef struct cursor {
    const uint8_t *at;
    const uint8_t *end;
    bool is_bad;
} cursor;

typedef struct reader {
    uf__input *input;
    uf_builder *builder;
    uf_error *error;
    uint8_t *payload; /* payload_capacity + SLACK_BYTES */
    uint64_t payload_capacity;
    uint64_t payload_offset; /* in the file, of the section at hand */
    uint32_t payload_bytes;
    char tag[5];
    id_table strings, frames, stacks, sites;
    uint64_t expected_block_addr; /* end of the segment's blocks so far */
    bool has_device, has_segment, has_ended;
} reader;

/* May read up to 10 bytes, also beyond the end: see SLACK_BYTES. Inlined everywhere, so that the
 * cursor of a loop stays in registers. */
static inline __attribute__((always_inline)) uint64_t take_varint(cursor *c)
{
    uint64_t byte = *c->at++;
    uint64_t value = byte & 0x7f;
    for (unsigned shift = 7; byte >= 0x80; shift += 7) {
        if (shift > 63) {
            c->is_bad = true;
            break;
        }
        byte = *c->at++;
        value |= (byte & 0x7f) << shift;
        if (shift == 63 && byte > 1) {
            c->is_bad = true;
        }
    }
    return value;
}

static inline __attribute__((always_inline)) uint64_t take_zigzag(cursor *c)
{
    uint64_t folded = take_varint(c);
    return (folded >> 1) ^ (0 - (folded & 1));
}

/* The same of a number that has 32 bits in a trace. */
static uint32_t take_u32(cursor *c)
{
    uint64_t value = take_varint(c);
    c->is_bad |= value > UINT32_MAX;
    return (uint32_t)value;
}

static int32_t take_i32(cursor *c)
{
    int64_t value = (int64_t)take_zigzag(c);
    c->is_bad |= value < INT32_MIN || value > INT32_MAX;
    return (int32_t)value;
}

/* True when the record just taken lies within the payload. */
static inline bool is_intact(const cursor *c)
{
    return c->at <= c->end && !c->is_bad;
}

static uf_status fail_host_memory(reader *r)
{
    return uf__error_set(r->error, UF_ERROR_HOST_MEMORY,
                         "reading the .uft trace: the host has no memory left at byte %" PRIu64
                         " of the input",
                         r->payload_offset);
}

/* at: where the record begins that makes no sense. */
static uf_status fail_record(reader *r, const uint8_t *at, const char *what)
{
    return uf__error_set(r->error, UF_ERROR_BAD_INPUT,
                         "section %s of the .uft trace, record at byte %" PRIu64
                         " of the input: %s; the program that wrote the file has a defect, its "
                         "checksum is right",
                         r->tag, r->payload_offset + (uint64_t)(at - r->payload), what);
}

static uf_status fail_cut(reader *r, const uint8_t *at)
{
    return fail_record(r, at, "it runs beyond its section or holds a number that is too large");
}

static bool table_add(id_table *table, uint32_t id)
{
    if (table->count == table->capacity) {
        uint32_t *ids = uf__array_grow(table->ids, &table->capacity, table->count + 1, sizeof *ids);
        if (ids == NULL) {
            return false;
        }
        table->ids = ids;
    }
    table->ids[table->count++] = id;
    return true;
}

/* Takes an id of the file and turns it into the builder's. */
static uint32_t take_id(cursor *c, const id_table *table)
{
    uint64_t id = take_varint(c);
    if (id >= table->count) {
        c->is_bad = true;
        return UF_NONE;
    }
    return table->ids[id];
}

/* The same where 0 stands for "none" and ids are one higher. */
static uint32_t take_id_or_none(cursor *c, const id_table *table)
{
    uint64_t id = take_varint(c);
    if (id == 0) {
        return UF_NONE;
    }
    if (id > table->count) {
        c->is_bad = true;
        return UF_NONE;
    }
    return table->ids[id - 1];
}

static uint32_t take_id_if(cursor *c, const id_table *table, bool is_there)
{
    return is_there ? take_id(c, table) : UF_NONE;
}

static uf_status read_meta(reader *r, cursor *c)
{
    uf_trace *trace = uf__builder_trace(r->builder);
    uint64_t flags = take_varint(c);
    uint64_t total_bytes = take_varint(c);
    uint64_t script_card_bytes = take_varint(c);
    uint64_t script_limit_bytes = take_varint(c);
    if (!is_intact(c)) {
        return fail_cut(r, r->payload);
    }
    trace->has_device_traces = (flags & UF_UFT_META_HAS_DEVICE_TRACES) != 0;
    trace->total_bytes = total_bytes;
    trace->script_card_bytes = script_card_bytes;
    trace->script_limit_bytes = script_limit_bytes;
    return UF_OK;
}

static uf_status read_strings(reader *r, cursor *c)
{
    while (c->at < c->end) {
        const uint8_t *record = c->at;
        uint64_t length = take_varint(c);
        if (!is_intact(c) || length > (uint64_t)(c->end - c->at)) {
            return fail_cut(r, record);
        }
        uint32_t id;
        if (!uf__builder_string(r->builder, (const char *)c->at, (size_t)length, &id) ||
            !table_add(&r->strings, id)) {
            return fail_host_memory(r);
        }
        c->at += length;
    }
    return UF_OK;
}

static uf_status read_frames(reader *r, cursor *c)
{
    while (c->at < c->end) {
        const uint8_t *record = c->at;
        uf_frame frame;
        memset(&frame, 0, sizeof frame);
        frame.filename = take_id_or_none(c, &r->strings);
        frame.name = take_id_or_none(c, &r->strings);
        frame.line = (int64_t)take_zigzag(c);
        if (!is_intact(c)) {
            return fail_cut(r, record);
        }
        uint32_t id;
        if (!uf__builder_frame(r->builder, &frame, &id) || !table_add(&r->frames, id)) {
            return fail_host_memory(r);
        }
    }
    return UF_OK;
}

/* One stack; `ids` is room for as many frames as the payload has bytes. */
static uf_status read_stack(reader *r, cursor *c, uint32_t *ids)
{
    const uint8_t *record = c->at;
    uint32_t count = take_u32(c);
    if (!is_intact(c) || count > (size_t)(c->end - c->at)) {
        return fail_cut(r, record);
    }
    for (uint32_t i = 0; i < count; i++) {
        ids[i] = take_id(c, &r->frames);
        if (!is_intact(c)) {
            return fail_cut(r, record);
        }
    }
    uint32_t id;
    if (!uf__builder_stack(r->builder, ids, count, &id) || !table_add(&r->stacks, id)) {
        return fail_host_memory(r);
    }
    return UF_OK;
}

static uf_status read_stacks(reader *r, cursor *c)
{
    uint32_t *ids = malloc(((size_t)r->payload_bytes + 1) * sizeof *ids);
    if (ids == NULL) {
        return fail_host_memory(r);
    }
    uf_status status = UF_OK;
    while (status == UF_OK && c->at < c->end) {
        status = read_stack(r, c, ids);
    }
    free(ids);
    return status;
}

static uf_status read_sites(reader *r, cursor *c)
{
    while (c->at < c->end) {
        const uint8_t *record = c->at;
        unsigned flags = *c->at++;
        uf_site site;
        memset(&site, 0, sizeof site);
        site.stream = take_varint(c);
        site.has_pool_id = (flags & UF_UFT_SITE_HAS_POOL) != 0;
        if (site.has_pool_id) {
            site.pool_id[0] = take_varint(c);
            site.pool_id[1] = take_varint(c);
        }
        site.stack = take_id_if(c, &r->stacks, (flags & UF_UFT_SITE_HAS_STACK) != 0);
        site.compile_context = take_id_if(c, &r->strings, (flags & UF_UFT_SITE_HAS_CONTEXT) != 0);
        site.user_metadata = take_id_if(c, &r->strings, (flags & UF_UFT_SITE_HAS_METADATA) != 0);
        site.action_name = take_id_if(c, &r->strings, (flags & UF_UFT_SITE_HAS_ACTION_NAME) != 0);
        if (!is_intact(c)) {
            return fail_cut(r, record);
        }
        uint32_t id;
        if (!uf__builder_site(r->builder, &site, &id) || !table_add(&r->sites, id)) {
            return fail_host_memory(r);
        }
    }
    return UF_OK;
}

static uf_status read_settings(reader *r, cursor *c)
{
    uf_trace_settings set;
    memset(&set, 0, sizeof set);
    uint64_t flags = take_varint(c);
    set.conf = take_id_or_none(c, &r->strings);
    set.max_split_size_bytes = (int64_t)take_zigzag(c);
    uint64_t bits = 0;
    for (unsigned i = 0; i < 8; i++) {
        bits |= (uint64_t)*c->at++ << (8 * i);
    }
    memcpy(&set.gc_threshold, &bits, sizeof bits);
    for (size_t i = 0; i < sizeof set.divisions / sizeof set.divisions[0]; i++) {
        set.divisions[i] = take_varint(c);
    }
    set.pinned_num_register_threads = take_u32(c);
    if (!is_intact(c)) {
        return fail_cut(r, r->payload);
    }
    set.is_present = (flags & UF_UFT_SET_IS_PRESENT) != 0;
    set.has_conf = (flags & UF_UFT_SET_HAS_CONF) != 0;
    set.has_max_split_size = (flags & UF_UFT_SET_HAS_MAX_SPLIT) != 0;
    set.has_gc_threshold = (flags & UF_UFT_SET_HAS_GC) != 0;
    set.has_expandable = (flags & UF_UFT_SET_HAS_EXPANDABLE) != 0;
    set.has_divisions = (flags & UF_UFT_SET_HAS_DIVISIONS) != 0;
    set.is_expandable = (flags & UF_UFT_SET_IS_EXPANDABLE) != 0;
    set.release_lock_on_cudamalloc = (flags & UF_UFT_SET_RELEASE_LOCK) != 0;
    set.pinned_use_cuda_host_register = (flags & UF_UFT_SET_PINNED_REGISTER) != 0;
    set.graph_capture_record_stream_reuse = (flags & UF_UFT_SET_CAPTURE_REUSE) != 0;
    set.has_other = (uint8_t)(flags >> UF_UFT_SET_OTHER_SHIFT & 0x0fu);
    uf__builder_trace(r->builder)->settings = set;
    return UF_OK;
}

static uf_status read_segment(reader *r, cursor *c)
{
    const uint8_t *record = c->at;
    unsigned flags = *c->at++;
    uf_trace_segment segment;
    memset(&segment, 0, sizeof segment);
    segment.is_large = (flags & UF_UFT_SEG_IS_LARGE) != 0;
    segment.is_expandable = (flags & UF_UFT_SEG_IS_EXPANDABLE) != 0;
    segment.has_pool_id = (flags & UF_UFT_SEG_HAS_POOL) != 0;
    segment.has_requested = (flags & UF_UFT_SEG_HAS_REQUESTED) != 0;
    segment.device = take_i32(c);
    segment.addr = take_varint(c);
    segment.total_bytes = take_varint(c);
    segment.allocated_bytes = take_varint(c);
    segment.active_bytes = take_varint(c);
    segment.requested_bytes = segment.has_requested ? take_varint(c) : 0;
    segment.stream = take_varint(c);
    if (segment.has_pool_id) {
        segment.pool_id[0] = take_varint(c);
        segment.pool_id[1] = take_varint(c);
    }
    segment.stack = take_id_if(c, &r->stacks, (flags & UF_UFT_SEG_HAS_STACK) != 0);
    if (!is_intact(c)) {
        return fail_cut(r, record);
    }
    r->has_segment = true;
    r->expected_block_addr = segment.addr;
    return uf__builder_segment(r->builder, &segment) ? UF_OK : fail_host_memory(r);
}

static uf_status read_block(reader *r, cursor *c)
{
    const uint8_t *record = c->at;
    unsigned flags = *c->at++;
    uf_trace_block block;
    memset(&block, 0, sizeof block);
    block.addr = r->expected_block_addr;
    if ((flags & UF_UFT_BLK_FOLLOWS) == 0) {
        block.addr += take_zigzag(c);
    }
    block.size_bytes = take_varint(c);
    block.has_requested = (flags & UF_UFT_BLK_HAS_REQUESTED) != 0;
    if (block.has_requested) {
        bool is_full = (flags & UF_UFT_BLK_IS_FULL) != 0;
        block.requested_bytes = is_full ? block.size_bytes : take_varint(c);
    }
    block.state = (uint8_t)(flags >> UF_UFT_BLK_STATE_SHIFT & 3u);
    block.stack = take_id_if(c, &r->stacks, (flags & UF_UFT_BLK_HAS_STACK) != 0);
    if (!is_intact(c)) {
        return fail_cut(r, record);
    }
    if (!r->has_segment) {
        return fail_record(r, record, "a block comes before the first segment");
    }
    r->expected_block_addr = block.addr + block.size_bytes;
    return uf__builder_block(r->builder, &block) ? UF_OK : fail_host_memory(r);
}

static uf_status read_segments(reader *r, cursor *c)
{
    uf_status status = UF_OK;
    while (status == UF_OK && c->at < c->end) {
        bool is_block = (*c->at & UF_UFT_IS_BLOCK) != 0;
        status = is_block ? read_block(r, c) : read_segment(r, c);
    }
    return status;
}

static uf_status read_annotations(reader *r, cursor *c)
{
    while (c->at < c->end) {
        const uint8_t *record = c->at;
        bool has_time = (*c->at++ & UF_UFT_ANN_HAS_TIME) != 0;
        uf_annotation annotation;
        memset(&annotation, 0, sizeof annotation);
        annotation.name = take_id_or_none(c, &r->strings);
        annotation.stage = take_id_or_none(c, &r->strings);
        annotation.device = take_i32(c);
        annotation.time_us = has_time ? (int64_t)take_zigzag(c) : UF_TIME_UNKNOWN;
        if (!is_intact(c)) {
            return fail_cut(r, record);
        }
        if (!uf__builder_annotation(r->builder, &annotation)) {
            return fail_host_memory(r);
        }
    }
    return UF_OK;
}

static uf_status read_device(reader *r, cursor *c)
{
    int32_t device = take_i32(c);
    if (!is_intact(c)) {
        return fail_cut(r, r->payload);
    }
    r->has_device = true;
    return uf__builder_device(r->builder, device) ? UF_OK : fail_host_memory(r);
}

/* The event before, as far as it is repeated. */
typedef struct predecessor {
    uint64_t addr;
    uint64_t size_bytes;
    uint64_t time_us;
    uint64_t site;
} predecessor;

/* Takes one event; its site is still the file's. */
static inline __attribute__((always_inline)) uf_event take_event(cursor *c, predecessor *before)
{
    unsigned head = *c->at++;
    uf_event event = {.addr = before->addr,
                      .size_bytes = before->size_bytes,
                      .time_us = UF_TIME_UNKNOWN,
                      .action = (uint8_t)(head & UF_UFT_EV_ACTION_MASK)};
    if ((head & UF_UFT_EV_SAME_SITE) == 0) {
        before->site = take_varint(c);
    }
    if ((head & UF_UFT_EV_SAME_RANGE) == 0) {
        unsigned shift = (head & UF_UFT_EV_IN_BYTES) != 0 ? 0 : UF_UFT_EV_SHIFT;
        event.addr += take_zigzag(c) << shift;
        event.size_bytes = take_varint(c);
    }
    if ((head & UF_UFT_EV_TIMELESS) == 0) {
        before->time_us += take_zigzag(c);
        event.time_us = (int64_t)before->time_us;
    }
    if (event.action != UF_ACTION_OOM && event.action != UF_ACTION_SNAPSHOT) {
        before->addr = event.addr;
        before->size_bytes = event.size_bytes;
    }
    return event;
}

/* Each section stands alone: the predecessor of its first event is all zero. */
static uf_status read_events(reader *r, cursor *c)
{
    if (!r->has_device) {
        return fail_record(r, r->payload, "events come before the first device");
    }
    predecessor before = {0};
    cursor local = *c;
    while (local.at < local.end) {
        const uint8_t *record = local.at;
        uf_event event = take_event(&local, &before);
        if (!is_intact(&local)) {
            return fail_cut(r, record);
        }
        if (event.action >= UF_ACTION_COUNT || before.site >= r->sites.count) {
            return fail_record(r, record, "an event of an unknown action or site");
        }
        event.site = r->sites.ids[before.site];
        if (!uf__builder_event(r->builder, &event)) {
            return fail_host_memory(r);
        }
    }
    return UF_OK;
}

static uf_status read_end(reader *r, cursor *c)
{
    const uf_trace *trace = uf__builder_trace(r->builder);
    uint64_t counts[5];
    for (size_t i = 0; i < 5; i++) {
        counts[i] = take_varint(c);
    }
    if (!is_intact(c)) {
        return fail_cut(r, r->payload);
    }
    if (counts[0] != trace->event_count || counts[1] != trace->device_count ||
        counts[2] != trace->segment_count || counts[3] != trace->block_count ||
        counts[4] != trace->annotation_count) {
        return uf__error_set(r->error, UF_ERROR_BAD_INPUT,
                             "the .uft trace lacks sections: it should hold %" PRIu64
                             " events, %" PRIu64 " segments and %" PRIu64 " blocks but holds "
                             "%" PRIu64 ", %" PRIu32 " and %" PRIu64 "; get the file again",
                             counts[0], counts[2], counts[3], trace->event_count,
                             trace->segment_count, trace->block_count);
    }
    r->has_ended = true;
    return UF_OK;
}

typedef uf_status (*section_reader)(reader *, cursor *);

static const char TAG_TEXT[UF_UFT_TAG_COUNT][5] = {
#define TAG_TEXT_ENTRY(name, text) text,
    UF_UFT_TAG_LIST(TAG_TEXT_ENTRY)
#undef TAG_TEXT_ENTRY
};

static const section_reader SECTION_READERS[UF_UFT_TAG_COUNT] = {
    [UF_UFT_META] = read_meta,         [UF_UFT_STRINGS] = read_strings,
    [UF_UFT_FRAMES] = read_frames,     [UF_UFT_STACKS] = read_stacks,
    [UF_UFT_SITES] = read_sites,       [UF_UFT_SETTINGS] = read_settings,
    [UF_UFT_SEGMENTS] = read_segments, [UF_UFT_ANNOTATIONS] = read_annotations,
    [UF_UFT_DEVICE] = read_device,     [UF_UFT_EVENTS] = read_events,
    [UF_UFT_END] = read_end,
};

static uint32_t get_u32(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uf_status fail_truncated(reader *r, uint64_t offset, const char *what)
{
    return uf__error_set(r->error, UF_ERROR_BAD_INPUT,
                         "the .uft trace is cut off: it ends at byte %" PRIu64 " of the input, "
                         "within %s that begins at byte %" PRIu64 "; copy or record it again",
                         r->input->decoded_bytes, what, offset);
}

static uf_status fail_checksum(reader *r, uint64_t offset, uint32_t stored, uint32_t computed)
{
    return uf__error_set(r->error, UF_ERROR_BAD_INPUT,
                         "the .uft trace is damaged: section '%s' at byte %" PRIu64
                         " of the input has checksum %08" PRIx32 " where %08" PRIx32
                         " is recorded; copy or record it again",
                         r->tag, offset, computed, stored);
}

/* Brings a payload into r->payload, growing it only as bytes arrive. */
static uf_status load_payload(reader *r, uint64_t section_offset)
{
    size_t loaded = 0;
    while (loaded < r->payload_bytes) {
        size_t step = r->payload_bytes - loaded;
        if (step > READ_STEP_BYTES) {
            step = READ_STEP_BYTES;
        }
        if (loaded + step + SLACK_BYTES > r->payload_capacity) {
            uint8_t *grown =
                uf__array_grow(r->payload, &r->payload_capacity, loaded + step + SLACK_BYTES, 1);
            if (grown == NULL) {
                return fail_host_memory(r);
            }
            r->payload = grown;
        }
        while (step > 0) {
            uf_status status = uf__input_ensure(r->input, 1, r->error);
            if (status != UF_OK) {
                return status;
            }
            size_t at_hand = uf__input_at_hand(r->input);
            if (at_hand == 0) {
                return fail_truncated(r, section_offset, "a section");
            }
            size_t count = at_hand < step ? at_hand : step;
            memcpy(r->payload + loaded, r->input->cursor, count);
            r->input->cursor += count;
            loaded += count;
            step -= count;
        }
    }
    if (loaded > 0) {
        memset(r->payload + loaded, 0, SLACK_BYTES);
    }
    return UF_OK;
}

/* Passes over the payload of a section that a newer minor version has added; its checksum counts
 * all the same. */
static uf_status skip_payload(reader *r, uint64_t section_offset, uLong *crc)
{
    size_t left = r->payload_bytes;
    while (left > 0) {
        uf_status status = uf__input_ensure(r->input, 1, r->error);
        if (status != UF_OK) {
            return status;
        }
        size_t at_hand = uf__input_at_hand(r->input);
        if (at_hand == 0) {
            return fail_truncated(r, section_offset, "a section");
        }
        size_t count = at_hand < left ? at_hand : left;
        *crc = crc32_z(*crc, r->input->cursor, count);
        r->input->cursor += count;
        left -= count;
    }
    return UF_OK;
}

static const char *printable_tag(char text[5], const uint8_t *tag)
{
    for (size_t i = 0; i < 4; i++) {
        text[i] = tag[i] >= 0x20 && tag[i] < 0x7f ? (char)tag[i] : '?';
    }
    text[4] = '\0';
    return text;
}

static section_reader find_section(const uint8_t *tag)
{
    for (size_t i = 0; i < UF_UFT_TAG_COUNT; i++) {
        if (memcmp(tag, TAG_TEXT[i], 4) == 0) {
            return SECTION_READERS[i];
        }
    }
    return NULL;
}

static uf_status read_section(reader *r)
{
    uint64_t offset = uf__input_offset(r->input);
    uint8_t head[UF_UFT_SECTION_BYTES];
    if (uf__input_at_hand(r->input) < sizeof head) {
        return fail_truncated(r, offset, "a section");
    }
    uf_status status = uf__input_read(r->input, head, sizeof head, r->error);
    if (status != UF_OK) {
        return status;
    }
    section_reader read = find_section(head);
    printable_tag(r->tag, head);
    r->payload_bytes = get_u32(head + 4);
    r->payload_offset = offset + sizeof head;
    if (r->payload_bytes > UF_UFT_PAYLOAD_MAX_BYTES) {
        return uf__error_set(r->error, UF_ERROR_BAD_INPUT,
                             "the .uft trace is damaged: section '%s' at byte %" PRIu64
                             " of the input claims %" PRIu32 " bytes, the limit is %" PRIu32,
                             r->tag, offset, r->payload_bytes, UF_UFT_PAYLOAD_MAX_BYTES);
    }
    uLong crc = crc32_z(0, head, 8);
    if (read == NULL) {
        status = skip_payload(r, offset, &crc);
    } else {
        status = load_payload(r, offset);
        if (status == UF_OK && r->payload_bytes > 0) {
            crc = crc32_z(crc, r->payload, r->payload_bytes);
        }
    }
    if (status != UF_OK) {
        return status;
    }
    uint32_t stored = get_u32(head + 8);
    if (stored != (uint32_t)crc) {
        return fail_checksum(r, offset, stored, (uint32_t)crc);
    }
    if (read == NULL || r->payload_bytes == 0) {
        return UF_OK;
    }
    cursor c = {.at = r->payload, .end = r->payload + r->payload_bytes};
    return read(r, &c);
}

static uf_status read_header(reader *r)
{
    uint8_t header[UF_UFT_HEADER_BYTES];
    uf_status status = uf__input_ensure(r->input, sizeof header, r->error);
    if (status != UF_OK) {
        return status;
    }
    if (uf__input_at_hand(r->input) < sizeof header) {
        return fail_truncated(r, 0, "the header");
    }
    status = uf__input_read(r->input, header, sizeof header, r->error);
    if (status != UF_OK) {
        return status;
    }
    if (memcmp(header, UF_UFT_MAGIC, UF_UFT_MAGIC_BYTES) != 0) {
        return uf__error_set(r->error, UF_ERROR_BAD_INPUT,
                             "this is no .uft trace: its first %d bytes are not those of one%s",
                             UF_UFT_MAGIC_BYTES,
                             memcmp(header, UF_UFT_MAGIC, 4) == 0
                                 ? "; something has translated line ends, copy it as binary"
                                 : "");
    }
    uint32_t stored = get_u32(header + 12);
    uint32_t computed = (uint32_t)crc32_z(0, header, 12);
    if (stored != computed) {
        memcpy(r->tag, "head", sizeof r->tag);
        return fail_checksum(r, 0, stored, computed);
    }
    unsigned major = header[8] | (unsigned)header[9] << 8;
    unsigned minor = header[10] | (unsigned)header[11] << 8;
    if (major != UF_UFT_MAJOR) {
        return uf__error_set(r->error, UF_ERROR_UNSUPPORTED,
                             "the .uft trace has version %u.%u, this unfrag reads %d.x; %s", major,
                             minor, UF_UFT_MAJOR,
                             major > UF_UFT_MAJOR ? "a newer unfrag reads it"
                                                  : "no released unfrag has written it");
    }
    return UF_OK;
}

static uf_status read_all(reader *r)
{
    uf_status status = read_header(r);
    while (status == UF_OK) {
        status = uf__input_ensure(r->input, UF_UFT_SECTION_BYTES, r->error);
        if (status != UF_OK) {
            return status;
        }
        size_t at_hand = uf__input_at_hand(r->input);
        if (at_hand == 0 && r->has_ended) {
            return UF_OK;
        }
        uint64_t offset = uf__input_offset(r->input);
        if (at_hand == 0) {
            return uf__error_set(r->error, UF_ERROR_BAD_INPUT,
                                 "the .uft trace is cut off: it ends at byte %" PRIu64
                                 " of the input without its last section; copy or record it again",
                                 offset);
        }
        if (r->has_ended) {
            return uf__error_set(r->error, UF_ERROR_BAD_INPUT,
                                 "something follows the end of the .uft trace at byte %" PRIu64
                                 " of the input; two files joined cannot be read",
                                 offset);
        }
        status = read_section(r);
    }
    return status;
}

uf_status uf__uft_read(uf__input *input, uf_builder *builder, uf_error *error)
{
    reader r = {.input = input, .builder = builder, .error = error};
    uf__builder_trace(builder)->form = UF_FORM_UFT;
    uf_status status = UF_OK;
    if (!table_add(&r.strings, 0)) { /* string 0 is "" and not written */
        status = fail_host_memory(&r);
    } else {
        status = read_all(&r);
    }
    free(r.payload);
    free(r.strings.ids);
    free(r.frames.ids);
    free(r.stacks.ids);
    free(r.sites.ids);
    return status;
}
