/* SPDX-License-Identifier: MIT
 *
 * Writes a trace as .uft (docs/uft.md). Owns one section's bytes at a time, about a mebibyte, so
 * the size of the trace does not matter. Must not know where the stream leads. No lock: it reads a
 * finished trace, which nobody changes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/error.h"
#include "trace/uft.h"

#define SECTION_TARGET_BYTES ((size_t)1 << 20)
#define RECORD_MAX_BYTES ((size_t)128) /* any record without a string or a list of frames */

/* The section being filled: 12 bytes of head, then `length` - 12 of payload. */
typedef struct writer {
    FILE *stream;
    const uf_trace *trace;
    uf_error *error;
    uint8_t *bytes;
    size_t length;
    size_t capacity;
    uf_uft_tag tag;
} writer;

static const char *const TAG_TEXT[] = {
#define TAG_TEXT_ENTRY(name, text) text,
    UF_UFT_TAG_LIST(TAG_TEXT_ENTRY)
#undef TAG_TEXT_ENTRY
};

static uint64_t zigzag(uint64_t difference)
{
    return (difference << 1) ^ (0 - (difference >> 63));
}

static void put_u32(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
    at[2] = (uint8_t)(value >> 16);
    at[3] = (uint8_t)(value >> 24);
}

/* Needs room for 10 bytes; section_room and section_grow see to it. */
static void put_varint(writer *w, uint64_t value)
{
    while (value >= 0x80) {
        w->bytes[w->length++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    w->bytes[w->length++] = (uint8_t)value;
}

static void put_byte(writer *w, unsigned value)
{
    w->bytes[w->length++] = (uint8_t)value;
}

static uf_status write_bytes(writer *w, const void *bytes, size_t count)
{
    if (fwrite(bytes, 1, count, w->stream) != count) {
        return uf__error_set(w->error, UF_ERROR_IO, "writing the .uft trace failed: %s",
                             strerror(errno));
    }
    return UF_OK;
}

static uf_status section_end(writer *w)
{
    size_t payload_bytes = w->length - UF_UFT_SECTION_BYTES;
    if (payload_bytes == 0) {
        return UF_OK;
    }
    if (payload_bytes > UF_UFT_PAYLOAD_MAX_BYTES) {
        return uf__error_set(w->error, UF_ERROR_UNSUPPORTED,
                             "a single string or stack of %zu bytes does not fit .uft, which "
                             "holds up to %u",
                             payload_bytes, UF_UFT_PAYLOAD_MAX_BYTES);
    }
    memcpy(w->bytes, TAG_TEXT[w->tag], 4);
    put_u32(w->bytes + 4, (uint32_t)payload_bytes);
    uLong crc = crc32_z(0, w->bytes, 8);
    crc = crc32_z(crc, w->bytes + UF_UFT_SECTION_BYTES, payload_bytes);
    put_u32(w->bytes + 8, (uint32_t)crc);
    uf_status status = write_bytes(w, w->bytes, w->length);
    w->length = UF_UFT_SECTION_BYTES;
    return status;
}

static void section_begin(writer *w, uf_uft_tag tag)
{
    w->tag = tag;
    w->length = UF_UFT_SECTION_BYTES;
}

/* True while another record of RECORD_MAX_BYTES belongs into this section. */
static bool section_has_room(const writer *w)
{
    return w->length + RECORD_MAX_BYTES <= SECTION_TARGET_BYTES;
}

/* Makes room for a record of any length: in this section, else alone in the next. */
static uf_status section_grow(writer *w, size_t record_bytes)
{
    if (w->length + record_bytes > SECTION_TARGET_BYTES && w->length > UF_UFT_SECTION_BYTES) {
        uf_status status = section_end(w);
        if (status != UF_OK) {
            return status;
        }
    }
    size_t needed = w->length + record_bytes;
    if (needed > w->capacity) {
        uint8_t *bytes = realloc(w->bytes, needed);
        if (bytes == NULL) {
            return uf__error_set(w->error, UF_ERROR_HOST_MEMORY,
                                 "writing the .uft trace: the host has no memory left for a "
                                 "record of %zu bytes",
                                 record_bytes);
        }
        w->bytes = bytes;
        w->capacity = needed;
    }
    return UF_OK;
}

/* Starts the next section of the same tag when this one is full. */
static uf_status section_room(writer *w)
{
    return section_has_room(w) ? UF_OK : section_end(w);
}

static uf_status write_header(writer *w)
{
    uint8_t header[UF_UFT_HEADER_BYTES];
    memcpy(header, UF_UFT_MAGIC, UF_UFT_MAGIC_BYTES);
    put_u32(header + 8, UF_UFT_MAJOR | (uint32_t)UF_UFT_MINOR << 16);
    put_u32(header + 12, (uint32_t)crc32_z(0, header, 12));
    return write_bytes(w, header, sizeof header);
}

static uf_status write_meta(writer *w)
{
    const uf_trace *trace = w->trace;
    section_begin(w, UF_UFT_META);
    put_varint(w, trace->has_device_traces ? UF_UFT_META_HAS_DEVICE_TRACES : 0);
    put_varint(w, trace->total_bytes);
    put_varint(w, trace->script_card_bytes);
    put_varint(w, trace->script_limit_bytes);
    return section_end(w);
}

/* String 0 is "" in every trace and is not written. */
static uf_status write_strings(writer *w)
{
    const uf_trace *trace = w->trace;
    section_begin(w, UF_UFT_STRINGS);
    for (uint32_t id = 1; id < trace->string_count; id++) {
        uint64_t offset = trace->string_offsets[id];
        size_t length = (size_t)(trace->string_offsets[id + 1] - offset - 1);
        uf_status status = section_grow(w, length + RECORD_MAX_BYTES);
        if (status != UF_OK) {
            return status;
        }
        put_varint(w, length);
        memcpy(w->bytes + w->length, trace->string_data + offset, length);
        w->length += length;
    }
    return section_end(w);
}

static uf_status write_frames(writer *w)
{
    const uf_trace *trace = w->trace;
    section_begin(w, UF_UFT_FRAMES);
    for (uint32_t id = 0; id < trace->frame_count; id++) {
        uf_status status = section_room(w);
        if (status != UF_OK) {
            return status;
        }
        const uf_frame *frame = &trace->frames[id];
        put_varint(w, (uint32_t)(frame->filename + 1));
        put_varint(w, (uint32_t)(frame->name + 1));
        put_varint(w, zigzag((uint64_t)frame->line));
    }
    return section_end(w);
}

static uf_status write_stacks(writer *w)
{
    const uf_trace *trace = w->trace;
    section_begin(w, UF_UFT_STACKS);
    for (uint32_t id = 0; id < trace->stack_count; id++) {
        const uf_stack *stack = &trace->stacks[id];
        uf_status status = section_grow(w, ((size_t)stack->count + 1) * 5 + RECORD_MAX_BYTES);
        if (status != UF_OK) {
            return status;
        }
        put_varint(w, stack->count);
        for (uint32_t i = 0; i < stack->count; i++) {
            put_varint(w, trace->frame_ids[stack->first + i]);
        }
    }
    return section_end(w);
}

static void put_optional(writer *w, uint32_t id)
{
    if (id != UF_NONE) {
        put_varint(w, id);
    }
}

static uf_status write_sites(writer *w)
{
    const uf_trace *trace = w->trace;
    section_begin(w, UF_UFT_SITES);
    for (uint32_t id = 0; id < trace->site_count; id++) {
        uf_status status = section_room(w);
        if (status != UF_OK) {
            return status;
        }
        const uf_site *site = &trace->sites[id];
        put_byte(w, (site->has_pool_id ? UF_UFT_SITE_HAS_POOL : 0) |
                        (site->stack != UF_NONE ? UF_UFT_SITE_HAS_STACK : 0) |
                        (site->compile_context != UF_NONE ? UF_UFT_SITE_HAS_CONTEXT : 0) |
                        (site->user_metadata != UF_NONE ? UF_UFT_SITE_HAS_METADATA : 0) |
                        (site->action_name != UF_NONE ? UF_UFT_SITE_HAS_ACTION_NAME : 0));
        put_varint(w, site->stream);
        if (site->has_pool_id) {
            put_varint(w, site->pool_id[0]);
            put_varint(w, site->pool_id[1]);
        }
        put_optional(w, site->stack);
        put_optional(w, site->compile_context);
        put_optional(w, site->user_metadata);
        put_optional(w, site->action_name);
    }
    return section_end(w);
}

static uf_status write_settings(writer *w)
{
    const uf_trace_settings *set = &w->trace->settings;
    unsigned flags = (set->is_present ? UF_UFT_SET_IS_PRESENT : 0) |
                     (set->has_conf ? UF_UFT_SET_HAS_CONF : 0) |
                     (set->has_max_split_size ? UF_UFT_SET_HAS_MAX_SPLIT : 0) |
                     (set->has_gc_threshold ? UF_UFT_SET_HAS_GC : 0) |
                     (set->has_expandable ? UF_UFT_SET_HAS_EXPANDABLE : 0) |
                     (set->has_divisions ? UF_UFT_SET_HAS_DIVISIONS : 0) |
                     (set->is_expandable ? UF_UFT_SET_IS_EXPANDABLE : 0) |
                     (set->release_lock_on_cudamalloc ? UF_UFT_SET_RELEASE_LOCK : 0) |
                     (set->pinned_use_cuda_host_register ? UF_UFT_SET_PINNED_REGISTER : 0) |
                     (set->graph_capture_record_stream_reuse ? UF_UFT_SET_CAPTURE_REUSE : 0) |
                     ((unsigned)set->has_other & 0x0fu) << UF_UFT_SET_OTHER_SHIFT;
    section_begin(w, UF_UFT_SETTINGS);
    uf_status status = section_grow(w, RECORD_MAX_BYTES + sizeof set->divisions * 2);
    if (status != UF_OK) {
        return status;
    }
    put_varint(w, flags);
    put_varint(w, (uint32_t)(set->conf + 1));
    put_varint(w, zigzag((uint64_t)set->max_split_size_bytes));
    uint64_t bits;
    memcpy(&bits, &set->gc_threshold, sizeof bits);
    put_u32(w->bytes + w->length, (uint32_t)bits);
    put_u32(w->bytes + w->length + 4, (uint32_t)(bits >> 32));
    w->length += 8;
    for (size_t i = 0; i < sizeof set->divisions / sizeof set->divisions[0]; i++) {
        put_varint(w, set->divisions[i]);
    }
    put_varint(w, set->pinned_num_register_threads);
    return section_end(w);
}

static void put_segment(writer *w, const uf_trace_segment *segment)
{
    put_byte(w, (segment->is_large ? UF_UFT_SEG_IS_LARGE : 0) |
                    (segment->is_expandable ? UF_UFT_SEG_IS_EXPANDABLE : 0) |
                    (segment->has_pool_id ? UF_UFT_SEG_HAS_POOL : 0) |
                    (segment->has_requested ? UF_UFT_SEG_HAS_REQUESTED : 0) |
                    (segment->stack != UF_NONE ? UF_UFT_SEG_HAS_STACK : 0));
    put_varint(w, zigzag((uint64_t)(int64_t)segment->device));
    put_varint(w, segment->addr);
    put_varint(w, segment->total_bytes);
    put_varint(w, segment->allocated_bytes);
    put_varint(w, segment->active_bytes);
    if (segment->has_requested) {
        put_varint(w, segment->requested_bytes);
    }
    put_varint(w, segment->stream);
    if (segment->has_pool_id) {
        put_varint(w, segment->pool_id[0]);
        put_varint(w, segment->pool_id[1]);
    }
    put_optional(w, segment->stack);
}

/* expected_addr: where a block lies that follows its predecessor without a gap. */
static void put_block(writer *w, const uf_trace_block *block, uint64_t expected_addr)
{
    bool follows = block->addr == expected_addr;
    bool is_full = block->has_requested && block->requested_bytes == block->size_bytes;
    put_byte(w, UF_UFT_IS_BLOCK | (unsigned)block->state << UF_UFT_BLK_STATE_SHIFT |
                    (block->has_requested ? UF_UFT_BLK_HAS_REQUESTED : 0) |
                    (block->stack != UF_NONE ? UF_UFT_BLK_HAS_STACK : 0) |
                    (follows ? UF_UFT_BLK_FOLLOWS : 0) | (is_full ? UF_UFT_BLK_IS_FULL : 0));
    if (!follows) {
        put_varint(w, zigzag(block->addr - expected_addr));
    }
    put_varint(w, block->size_bytes);
    if (block->has_requested && !is_full) {
        put_varint(w, block->requested_bytes);
    }
    put_optional(w, block->stack);
}

static uf_status write_segments(writer *w)
{
    const uf_trace *trace = w->trace;
    section_begin(w, UF_UFT_SEGMENTS);
    for (uint32_t i = 0; i < trace->segment_count; i++) {
        const uf_trace_segment *segment = &trace->segments[i];
        uf_status status = section_room(w);
        if (status != UF_OK) {
            return status;
        }
        put_segment(w, segment);
        uint64_t expected_addr = segment->addr;
        for (uint32_t j = 0; j < segment->block_count; j++) {
            const uf_trace_block *block = &trace->blocks[segment->first_block + j];
            status = section_room(w);
            if (status != UF_OK) {
                return status;
            }
            put_block(w, block, expected_addr);
            expected_addr = block->addr + block->size_bytes;
        }
    }
    return section_end(w);
}

static uf_status write_annotations(writer *w)
{
    const uf_trace *trace = w->trace;
    section_begin(w, UF_UFT_ANNOTATIONS);
    for (uint32_t i = 0; i < trace->annotation_count; i++) {
        uf_status status = section_room(w);
        if (status != UF_OK) {
            return status;
        }
        const uf_annotation *annotation = &trace->annotations[i];
        bool has_time = annotation->time_us != UF_TIME_UNKNOWN;
        put_byte(w, has_time ? UF_UFT_ANN_HAS_TIME : 0);
        put_varint(w, (uint32_t)(annotation->name + 1));
        put_varint(w, (uint32_t)(annotation->stage + 1));
        put_varint(w, zigzag((uint64_t)(int64_t)annotation->device));
        if (has_time) {
            put_varint(w, zigzag((uint64_t)annotation->time_us));
        }
    }
    return section_end(w);
}

/* The event before, as far as it is repeated; all zero where a section begins. */
typedef struct predecessor {
    uint64_t addr;
    uint64_t size_bytes;
    uint64_t time_us;
    uint32_t site;
} predecessor;

static void put_event(writer *w, const uf_event *event, predecessor *before)
{
    uint64_t difference = event->addr - before->addr;
    bool is_same_range = difference == 0 && event->size_bytes == before->size_bytes;
    bool is_in_bytes = (difference & ((1u << UF_UFT_EV_SHIFT) - 1)) != 0;
    bool is_same_site = event->site == before->site;
    bool is_timeless = event->time_us == UF_TIME_UNKNOWN;
    put_byte(w,
             (event->action & UF_UFT_EV_ACTION_MASK) | (is_same_range ? UF_UFT_EV_SAME_RANGE : 0) |
                 (is_same_site ? UF_UFT_EV_SAME_SITE : 0) | (is_timeless ? UF_UFT_EV_TIMELESS : 0) |
                 (is_in_bytes ? UF_UFT_EV_IN_BYTES : 0));
    if (!is_same_site) {
        put_varint(w, event->site);
    }
    if (!is_same_range) {
        uint64_t folded = zigzag(difference);
        /* A multiple of 512 stays exact: zigzag keeps the sign in the lowest bit. */
        put_varint(w, is_in_bytes ? folded : folded >> UF_UFT_EV_SHIFT);
        put_varint(w, event->size_bytes);
    }
    if (!is_timeless) {
        put_varint(w, zigzag((uint64_t)event->time_us - before->time_us));
        before->time_us = (uint64_t)event->time_us;
    }
    before->site = event->site;
    if (event->action != UF_ACTION_OOM && event->action != UF_ACTION_SNAPSHOT) {
        before->addr = event->addr;
        before->size_bytes = event->size_bytes;
    }
}

static uf_status write_device(writer *w, const uf_trace_device *device)
{
    section_begin(w, UF_UFT_DEVICE);
    put_varint(w, zigzag((uint64_t)(int64_t)device->device));
    uf_status status = section_end(w);
    if (status != UF_OK || device->count == 0) {
        return status;
    }
    section_begin(w, UF_UFT_EVENTS);
    predecessor before = {0};
    for (uint64_t i = 0; i < device->count; i++) {
        if (!section_has_room(w)) {
            status = section_end(w);
            if (status != UF_OK) {
                return status;
            }
            before = (predecessor){0};
        }
        put_event(w, &w->trace->events[device->first + i], &before);
    }
    return section_end(w);
}

static uf_status write_end(writer *w)
{
    const uf_trace *trace = w->trace;
    section_begin(w, UF_UFT_END);
    put_varint(w, trace->event_count);
    put_varint(w, trace->device_count);
    put_varint(w, trace->segment_count);
    put_varint(w, trace->block_count);
    put_varint(w, trace->annotation_count);
    return section_end(w);
}

typedef uf_status (*part)(writer *);

uf_status uf_trace_write_uft(const uf_trace *trace, FILE *stream, uf_error *error)
{
    /* A part may refer to what the parts before it define. */
    static const part PARTS[] = {write_header,   write_meta,     write_strings,
                                 write_frames,   write_stacks,   write_sites,
                                 write_settings, write_segments, write_annotations};
    writer w = {.stream = stream, .trace = trace, .error = error};
    w.capacity = SECTION_TARGET_BYTES;
    w.bytes = malloc(w.capacity);
    if (w.bytes == NULL) {
        return uf__error_set(error, UF_ERROR_HOST_MEMORY,
                             "writing the .uft trace: the host has no memory left");
    }
    uf_status status = UF_OK;
    for (size_t i = 0; status == UF_OK && i < sizeof PARTS / sizeof PARTS[0]; i++) {
        status = PARTS[i](&w);
    }
    for (uint32_t i = 0; status == UF_OK && i < trace->device_count; i++) {
        status = write_device(&w, &trace->devices[i]);
    }
    if (status == UF_OK) {
        status = write_end(&w);
    }
    free(w.bytes);
    if (status == UF_OK && fflush(stream) != 0) {
        status =
            uf__error_set(error, UF_ERROR_IO, "writing the .uft trace failed: %s", strerror(errno));
    }
    return status;
}
