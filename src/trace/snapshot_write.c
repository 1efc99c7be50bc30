/* SPDX-License-Identifier: MIT
 *
 * Writes a trace as a snapshot pickle, protocol 4, keys and types as PyTorch 2.11 writes them, so
 * that Python's pickle.load and PyTorch's viewer take it. What the trace does not have is left out.
 * Owns one pickle frame (64 KiB) at a time. Knows nothing of allocation. No lock: it reads a
 * finished trace, which nobody changes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <unfrag/trace.h>

#include "base/error.h"
#include "base/utf8.h"

#define FRAME_CAPACITY_BYTES ((size_t)1 << 16)
#define UNFRAMED_BYTES ((size_t)1 << 15) /* longer strings go out without a frame, uncopied */
#define LIST_BATCH 1000                  /* items per APPENDS, as Python's pickler does it */
#define DEVICE_PAD_MAX 1024              /* no more empty lists than that for absent devices */

/* Opcodes of Python's pickle, by their names there. */
enum {
    OP_PROTO = 0x80,
    OP_FRAME = 0x95,
    OP_STOP = '.',
    OP_MARK = '(',
    OP_EMPTY_DICT = '}',
    OP_SETITEMS = 'u',
    OP_EMPTY_LIST = ']',
    OP_APPENDS = 'e',
    OP_TUPLE2 = 0x86,
    OP_MEMOIZE = 0x94,
    OP_BINGET = 'h',
    OP_LONG_BINGET = 'j',
    OP_BININT1 = 'K',
    OP_BININT2 = 'M',
    OP_BININT = 'J',
    OP_LONG1 = 0x8a,
    OP_BINFLOAT = 'G',
    OP_NEWTRUE = 0x88,
    OP_NEWFALSE = 0x89,
    OP_SHORT_BINUNICODE = 0x8c,
    OP_BINUNICODE = 'X',
    OP_BINUNICODE8 = 0x8d
};

/* The words of the format itself: keys and fixed values, each written once and then referred to. */
#define WORD_LIST(X)                                      \
    X(SEGMENTS, "segments")                               \
    X(DEVICE_TRACES, "device_traces")                     \
    X(ALLOCATOR_SETTINGS, "allocator_settings")           \
    X(EXTERNAL_ANNOTATIONS, "external_annotations")       \
    X(DEVICE, "device")                                   \
    X(ADDRESS, "address")                                 \
    X(TOTAL_SIZE, "total_size")                           \
    X(ALLOCATED_SIZE, "allocated_size")                   \
    X(ACTIVE_SIZE, "active_size")                         \
    X(REQUESTED_SIZE, "requested_size")                   \
    X(STREAM, "stream")                                   \
    X(SEGMENT_TYPE, "segment_type")                       \
    X(SMALL, "small")                                     \
    X(LARGE, "large")                                     \
    X(SEGMENT_POOL_ID, "segment_pool_id")                 \
    X(IS_EXPANDABLE, "is_expandable")                     \
    X(FRAMES, "frames")                                   \
    X(BLOCKS, "blocks")                                   \
    X(SIZE, "size")                                       \
    X(STATE, "state")                                     \
    X(ACTIVE_ALLOCATED, "active_allocated")               \
    X(ACTIVE_PENDING_FREE, "active_pending_free")         \
    X(INACTIVE, "inactive")                               \
    X(OTHER_STATE, "other")                               \
    X(ACTION, "action")                                   \
    X(ADDR, "addr")                                       \
    X(DEVICE_FREE, "device_free")                         \
    X(POOL_ID, "pool_id")                                 \
    X(TIME_US, "time_us")                                 \
    X(COMPILE_CONTEXT, "compile_context")                 \
    X(USER_METADATA, "user_metadata")                     \
    X(NAME, "name")                                       \
    X(FILENAME, "filename")                               \
    X(LINE, "line")                                       \
    X(STAGE, "stage")                                     \
    X(CONF, "PYTORCH_CUDA_ALLOC_CONF")                    \
    X(MAX_SPLIT_SIZE, "max_split_size")                   \
    X(GC_THRESHOLD, "garbage_collection_threshold")       \
    X(EXPANDABLE_SEGMENTS, "expandable_segments")         \
    X(PINNED_THREADS, "pinned_num_register_threads")      \
    X(RELEASE_LOCK, "release_lock_on_cudamalloc")         \
    X(PINNED_REGISTER, "pinned_use_cuda_host_register")   \
    X(CAPTURE_REUSE, "graph_capture_record_stream_reuse") \
    X(DIVISIONS, "roundup_power2_divisions")

typedef enum word {
#define WORD_ENUM(name, text) WORD_##name,
    WORD_LIST(WORD_ENUM)
#undef WORD_ENUM
    /* The action names follow, in the order of uf_action. */
    WORD_FIRST_ACTION,
    WORD_COUNT = WORD_FIRST_ACTION + UF_ACTION_COUNT
} word;

static const char *const WORD_TEXT[WORD_COUNT] = {
#define WORD_TEXT_ENTRY(name, text) text,
    WORD_LIST(WORD_TEXT_ENTRY)
#undef WORD_TEXT_ENTRY
#define ACTION_TEXT_ENTRY(name, text) text,
        UF_ACTION_LIST(ACTION_TEXT_ENTRY)
#undef ACTION_TEXT_ENTRY
};

/* A memo holds for each id its index in Python's memo plus 1; 0 = not written yet. A failure stays
 * in `status`; from then on nothing is written. */
typedef struct pickler {
    FILE *stream;
    const uf_trace *trace;
    uf_error *error;
    uf_status status;
    uint32_t memo_count;
    uint32_t *string_memo;
    uint32_t *frame_memo;
    uint32_t *stack_memo;
    uint32_t word_memo[WORD_COUNT];
    uint32_t empty_list_memo;
    size_t length;
    uint8_t bytes[FRAME_CAPACITY_BYTES];
} pickler;

static void write_raw(pickler *p, const void *bytes, size_t count)
{
    if (p->status == UF_OK && fwrite(bytes, 1, count, p->stream) != count) {
        p->status = uf__error_set(p->error, UF_ERROR_IO, "writing the snapshot failed: %s",
                                  strerror(errno));
    }
}

/* Hands the collected opcodes on as one pickle frame. */
static void frame_commit(pickler *p)
{
    if (p->length == 0) {
        return;
    }
    uint8_t head[9] = {OP_FRAME};
    for (size_t i = 0; i < 8; i++) {
        head[1 + i] = (uint8_t)((uint64_t)p->length >> (8 * i));
    }
    write_raw(p, head, sizeof head);
    write_raw(p, p->bytes, p->length);
    p->length = 0;
}

/* One opcode with its argument; frames end between opcodes, never within one. */
static void put(pickler *p, const void *bytes, size_t count)
{
    if (p->length + count > sizeof p->bytes) {
        frame_commit(p);
    }
    memcpy(p->bytes + p->length, bytes, count);
    p->length += count;
}

static void put_op(pickler *p, int opcode)
{
    uint8_t byte = (uint8_t)opcode;
    put(p, &byte, 1);
}

/* An opcode with a little-endian argument of argument_bytes bytes. */
static void put_op_with(pickler *p, int opcode, uint64_t argument, size_t argument_bytes)
{
    uint8_t bytes[9] = {(uint8_t)opcode};
    for (size_t i = 0; i < argument_bytes; i++) {
        bytes[1 + i] = (uint8_t)(argument >> (8 * i));
    }
    put(p, bytes, 1 + argument_bytes);
}

/* Puts the object on top of the stack into the memo. */
static void memoize(pickler *p, uint32_t *memo)
{
    if (p->memo_count < UINT32_MAX) {
        put_op(p, OP_MEMOIZE);
        *memo = ++p->memo_count;
    }
}

/* Refers to an object of the memo; false if it is not there yet. */
static bool put_memoized(pickler *p, uint32_t memo)
{
    if (memo == 0) {
        return false;
    }
    uint32_t index = memo - 1;
    if (index < 256) {
        put_op_with(p, OP_BINGET, index, 1);
    } else {
        put_op_with(p, OP_LONG_BINGET, index, 4);
    }
    return true;
}

static void put_text(pickler *p, const char *text, size_t length)
{
    uint8_t head[9] = {OP_SHORT_BINUNICODE, (uint8_t)length};
    size_t head_bytes = 2;
    if (length > UINT8_MAX) {
        size_t length_bytes = length <= UINT32_MAX ? 4 : 8;
        head[0] = length <= UINT32_MAX ? OP_BINUNICODE : OP_BINUNICODE8;
        for (size_t i = 0; i < length_bytes; i++) {
            head[1 + i] = (uint8_t)((uint64_t)length >> (8 * i));
        }
        head_bytes = 1 + length_bytes;
    }
    if (length > UNFRAMED_BYTES) {
        frame_commit(p);
        write_raw(p, head, head_bytes);
        write_raw(p, text, length);
        return;
    }
    if (p->length + head_bytes + length > sizeof p->bytes) {
        frame_commit(p);
    }
    put(p, head, head_bytes);
    put(p, text, length);
}

static bool utf8_is_valid(const uint8_t *text, size_t length)
{
    for (size_t at = 0; at < length;) {
        size_t step = uf__utf8_length(text + at, length - at, true);
        if (step == 0) {
            return false;
        }
        at += step;
    }
    return true;
}

/* Python refuses a pickle with a string that is not UTF-8. Each byte that is none becomes the lone
 * surrogate U+DC00 + byte, as Python's "surrogateescape" has it. */
static void put_repaired_text(pickler *p, const uint8_t *text, size_t length)
{
    uint8_t *repaired = malloc(length * 3 + 1);
    if (repaired == NULL) {
        p->status = uf__error_set(p->error, UF_ERROR_HOST_MEMORY,
                                  "writing the snapshot: the host has no memory left");
        return;
    }
    size_t filled = 0;
    for (size_t at = 0; at < length;) {
        size_t step = uf__utf8_length(text + at, length - at, true);
        if (step == 0) {
            repaired[filled++] = 0xed;
            repaired[filled++] = (uint8_t)(0xb0 | text[at] >> 6);
            repaired[filled++] = (uint8_t)(0x80 | (text[at] & 0x3f));
            at++;
        } else {
            memcpy(repaired + filled, text + at, step);
            filled += step;
            at += step;
        }
    }
    put_text(p, (const char *)repaired, filled);
    free(repaired);
}

static void put_word(pickler *p, word w)
{
    if (!put_memoized(p, p->word_memo[w])) {
        put_text(p, WORD_TEXT[w], strlen(WORD_TEXT[w]));
        memoize(p, &p->word_memo[w]);
    }
}

static void put_string(pickler *p, uint32_t id)
{
    if (id >= p->trace->string_count) {
        put_text(p, "", 0);
        return;
    }
    if (put_memoized(p, p->string_memo[id])) {
        return;
    }
    uint64_t offset = p->trace->string_offsets[id];
    size_t length = (size_t)(p->trace->string_offsets[id + 1] - offset - 1);
    const char *text = p->trace->string_data + offset;
    if (utf8_is_valid((const uint8_t *)text, length)) {
        put_text(p, text, length);
    } else {
        put_repaired_text(p, (const uint8_t *)text, length);
    }
    memoize(p, &p->string_memo[id]);
}

static void put_unsigned(pickler *p, uint64_t value)
{
    if (value <= UINT8_MAX) {
        put_op_with(p, OP_BININT1, value, 1);
    } else if (value <= UINT16_MAX) {
        put_op_with(p, OP_BININT2, value, 2);
    } else if (value <= INT32_MAX) {
        put_op_with(p, OP_BININT, value, 4);
    } else {
        /* LONG1: a byte count, then two's complement; a set highest bit would make it negative. */
        uint8_t bytes[11] = {OP_LONG1};
        size_t count = 0;
        for (uint64_t rest = value; rest != 0; rest >>= 8) {
            bytes[2 + count++] = (uint8_t)rest;
        }
        if ((bytes[1 + count] & 0x80) != 0) {
            bytes[2 + count++] = 0;
        }
        bytes[1] = (uint8_t)count;
        put(p, bytes, 2 + count);
    }
}

static void put_signed(pickler *p, int64_t value)
{
    if (value >= 0) {
        put_unsigned(p, (uint64_t)value);
    } else if (value >= INT32_MIN) {
        put_op_with(p, OP_BININT, (uint64_t)value, 4);
    } else {
        uint8_t bytes[10] = {OP_LONG1};
        size_t count = 8;
        for (size_t i = 0; i < 8; i++) {
            bytes[2 + i] = (uint8_t)((uint64_t)value >> (8 * i));
        }
        while (count > 1 && bytes[1 + count] == 0xff && (bytes[count] & 0x80) != 0) {
            count--;
        }
        bytes[1] = (uint8_t)count;
        put(p, bytes, 2 + count);
    }
}

static void put_bool(pickler *p, bool value)
{
    put_op(p, value ? OP_NEWTRUE : OP_NEWFALSE);
}

static void put_float(pickler *p, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_op_with(p, OP_BINFLOAT, __builtin_bswap64(bits), 8); /* the only big-endian argument */
}

static void dict_begin(pickler *p)
{
    put_op(p, OP_EMPTY_DICT);
    put_op(p, OP_MARK);
}

static void dict_end(pickler *p)
{
    put_op(p, OP_SETITEMS);
}

static void list_begin(pickler *p)
{
    put_op(p, OP_EMPTY_LIST);
}

/* Before the item of that index. */
static void list_item(pickler *p, uint64_t index)
{
    if (index % LIST_BATCH == 0) {
        if (index > 0) {
            put_op(p, OP_APPENDS);
        }
        put_op(p, OP_MARK);
    }
}

static void list_end(pickler *p, uint64_t count)
{
    if (count > 0) {
        put_op(p, OP_APPENDS);
    }
}

static void entry_unsigned(pickler *p, word key, uint64_t value)
{
    put_word(p, key);
    put_unsigned(p, value);
}

static void entry_signed(pickler *p, word key, int64_t value)
{
    put_word(p, key);
    put_signed(p, value);
}

static void entry_bool(pickler *p, word key, bool value)
{
    put_word(p, key);
    put_bool(p, value);
}

static void entry_word(pickler *p, word key, word value)
{
    put_word(p, key);
    put_word(p, value);
}

static void entry_string(pickler *p, word key, uint32_t id)
{
    if (id != UF_NONE) {
        put_word(p, key);
        put_string(p, id);
    }
}

static void entry_pool_id(pickler *p, word key, const uint64_t pool_id[2])
{
    put_word(p, key);
    put_unsigned(p, pool_id[0]);
    put_unsigned(p, pool_id[1]);
    put_op(p, OP_TUPLE2);
}

static void put_frame(pickler *p, uint32_t id)
{
    if (put_memoized(p, p->frame_memo[id])) {
        return;
    }
    const uf_frame *frame = &p->trace->frames[id];
    put_op(p, OP_EMPTY_DICT);
    memoize(p, &p->frame_memo[id]);
    put_op(p, OP_MARK);
    entry_string(p, WORD_NAME, frame->name);
    entry_string(p, WORD_FILENAME, frame->filename);
    entry_signed(p, WORD_LINE, frame->line);
    dict_end(p);
}

/* The list of a stack. PyTorch shares equal lists too, and one empty list where nothing was
 * recorded (UF_NONE). */
static void put_stack(pickler *p, uint32_t id)
{
    uint32_t *memo = id == UF_NONE ? &p->empty_list_memo : &p->stack_memo[id];
    if (put_memoized(p, *memo)) {
        return;
    }
    list_begin(p);
    memoize(p, memo);
    if (id == UF_NONE) {
        return;
    }
    const uf_stack *stack = &p->trace->stacks[id];
    for (uint32_t i = 0; i < stack->count; i++) {
        list_item(p, i);
        put_frame(p, p->trace->frame_ids[stack->first + i]);
    }
    list_end(p, stack->count);
}

static void entry_frames(pickler *p, uint32_t stack)
{
    put_word(p, WORD_FRAMES);
    put_stack(p, stack);
}

static void put_block(pickler *p, const uf_trace_block *block)
{
    static const word STATES[] = {WORD_ACTIVE_ALLOCATED, WORD_ACTIVE_PENDING_FREE, WORD_INACTIVE,
                                  WORD_OTHER_STATE};
    dict_begin(p);
    entry_unsigned(p, WORD_ADDRESS, block->addr);
    entry_unsigned(p, WORD_SIZE, block->size_bytes);
    if (block->has_requested) {
        entry_unsigned(p, WORD_REQUESTED_SIZE, block->requested_bytes);
    }
    entry_word(p, WORD_STATE, STATES[block->state & 3]);
    entry_frames(p, block->stack);
    dict_end(p);
}

static void put_segment(pickler *p, const uf_trace_segment *segment)
{
    dict_begin(p);
    entry_signed(p, WORD_DEVICE, segment->device);
    entry_unsigned(p, WORD_ADDRESS, segment->addr);
    entry_unsigned(p, WORD_TOTAL_SIZE, segment->total_bytes);
    entry_unsigned(p, WORD_ALLOCATED_SIZE, segment->allocated_bytes);
    entry_unsigned(p, WORD_ACTIVE_SIZE, segment->active_bytes);
    if (segment->has_requested) {
        entry_unsigned(p, WORD_REQUESTED_SIZE, segment->requested_bytes);
    }
    entry_unsigned(p, WORD_STREAM, segment->stream);
    entry_word(p, WORD_SEGMENT_TYPE, segment->is_large ? WORD_LARGE : WORD_SMALL);
    if (segment->has_pool_id) {
        entry_pool_id(p, WORD_SEGMENT_POOL_ID, segment->pool_id);
    }
    entry_bool(p, WORD_IS_EXPANDABLE, segment->is_expandable);
    /* PyTorch resolves recorded stacks last, so they end up behind the blocks. */
    if (segment->stack == UF_NONE) {
        entry_frames(p, UF_NONE);
    }
    put_word(p, WORD_BLOCKS);
    list_begin(p);
    for (uint32_t i = 0; i < segment->block_count; i++) {
        list_item(p, i);
        put_block(p, &p->trace->blocks[segment->first_block + i]);
    }
    list_end(p, segment->block_count);
    if (segment->stack != UF_NONE) {
        entry_frames(p, segment->stack);
    }
    dict_end(p);
}

static void put_event(pickler *p, const uf_event *event)
{
    const uf_site *site = &p->trace->sites[event->site];
    dict_begin(p);
    if (event->action == UF_ACTION_OTHER && site->action_name != UF_NONE) {
        entry_string(p, WORD_ACTION, site->action_name);
    } else {
        entry_word(p, WORD_ACTION, (word)(WORD_FIRST_ACTION + event->action));
    }
    entry_unsigned(p, event->action == UF_ACTION_OOM ? WORD_DEVICE_FREE : WORD_ADDR, event->addr);
    entry_unsigned(p, WORD_SIZE, event->size_bytes);
    entry_unsigned(p, WORD_STREAM, site->stream);
    if (site->has_pool_id) {
        entry_pool_id(p, WORD_POOL_ID, site->pool_id);
    }
    if (event->time_us != UF_TIME_UNKNOWN) {
        entry_signed(p, WORD_TIME_US, event->time_us);
    }
    entry_string(p, WORD_COMPILE_CONTEXT, site->compile_context);
    entry_string(p, WORD_USER_METADATA, site->user_metadata);
    if (site->stack != UF_NONE) {
        entry_frames(p, site->stack);
    }
    dict_end(p);
}

static void put_segments(pickler *p)
{
    put_word(p, WORD_SEGMENTS);
    list_begin(p);
    for (uint32_t i = 0; i < p->trace->segment_count && p->status == UF_OK; i++) {
        list_item(p, i);
        put_segment(p, &p->trace->segments[i]);
    }
    list_end(p, p->trace->segment_count);
}

static void put_events(pickler *p, const uf_trace_device *device)
{
    list_begin(p);
    for (uint64_t i = 0; i < device->count && p->status == UF_OK; i++) {
        list_item(p, i);
        put_event(p, &p->trace->events[device->first + i]);
    }
    list_end(p, device->count);
}

/* In a snapshot a device's number is its place in the list: absent devices get empty lists. */
static void put_device_traces(pickler *p)
{
    const uf_trace *trace = p->trace;
    uint64_t place = 0;
    put_word(p, WORD_DEVICE_TRACES);
    list_begin(p);
    for (uint32_t i = 0; i < trace->device_count; i++) {
        int64_t device = trace->devices[i].device;
        while (device < DEVICE_PAD_MAX && (int64_t)place < device) {
            list_item(p, place++);
            list_begin(p);
        }
        list_item(p, place++);
        put_events(p, &trace->devices[i]);
    }
    list_end(p, place);
}

static void put_divisions(pickler *p, const uf_trace_settings *settings)
{
    put_word(p, WORD_DIVISIONS);
    dict_begin(p);
    for (unsigned i = 0; i < sizeof settings->divisions / sizeof settings->divisions[0]; i++) {
        char key[8];
        int length = snprintf(key, sizeof key, "%u", 1u << i);
        put_text(p, key, (size_t)length);
        put_unsigned(p, settings->divisions[i]);
    }
    dict_end(p);
}

static void put_settings(pickler *p)
{
    const uf_trace_settings *settings = &p->trace->settings;
    put_word(p, WORD_ALLOCATOR_SETTINGS);
    dict_begin(p);
    if (settings->has_conf) {
        entry_string(p, WORD_CONF, settings->conf);
    }
    if (settings->has_max_split_size) {
        entry_signed(p, WORD_MAX_SPLIT_SIZE, settings->max_split_size_bytes);
    }
    if (settings->has_gc_threshold) {
        put_word(p, WORD_GC_THRESHOLD);
        put_float(p, settings->gc_threshold);
    }
    if (settings->has_expandable) {
        entry_bool(p, WORD_EXPANDABLE_SEGMENTS, settings->is_expandable);
    }
    if ((settings->has_other & 1u) != 0) {
        entry_unsigned(p, WORD_PINNED_THREADS, settings->pinned_num_register_threads);
    }
    if ((settings->has_other & 2u) != 0) {
        entry_bool(p, WORD_RELEASE_LOCK, settings->release_lock_on_cudamalloc);
    }
    if ((settings->has_other & 4u) != 0) {
        entry_bool(p, WORD_PINNED_REGISTER, settings->pinned_use_cuda_host_register);
    }
    if ((settings->has_other & 8u) != 0) {
        entry_bool(p, WORD_CAPTURE_REUSE, settings->graph_capture_record_stream_reuse);
    }
    if (settings->has_divisions) {
        put_divisions(p, settings);
    }
    dict_end(p);
}

static void put_annotations(pickler *p)
{
    put_word(p, WORD_EXTERNAL_ANNOTATIONS);
    list_begin(p);
    for (uint32_t i = 0; i < p->trace->annotation_count; i++) {
        const uf_annotation *annotation = &p->trace->annotations[i];
        list_item(p, i);
        dict_begin(p);
        entry_string(p, WORD_STAGE, annotation->stage);
        entry_string(p, WORD_NAME, annotation->name);
        entry_signed(p, WORD_DEVICE, annotation->device);
        if (annotation->time_us != UF_TIME_UNKNOWN) {
            entry_signed(p, WORD_TIME_US, annotation->time_us);
        }
        dict_end(p);
    }
    list_end(p, p->trace->annotation_count);
}

static void put_snapshot(pickler *p)
{
    dict_begin(p);
    put_segments(p);
    if (p->trace->has_device_traces || p->trace->device_count > 0) {
        put_device_traces(p);
    }
    if (p->trace->settings.is_present) {
        put_settings(p);
    }
    put_annotations(p);
    dict_end(p);
    put_op(p, OP_STOP);
    frame_commit(p);
}

uf_status uf_trace_write_pickle(const uf_trace *trace, FILE *stream, uf_error *error)
{
    uf_status status = UF_ERROR_HOST_MEMORY;
    pickler *p = calloc(1, sizeof *p);
    if (p != NULL) {
        *p = (pickler){.stream = stream, .trace = trace, .error = error};
        p->string_memo = calloc((size_t)trace->string_count + 1, sizeof *p->string_memo);
        p->frame_memo = calloc((size_t)trace->frame_count + 1, sizeof *p->frame_memo);
        p->stack_memo = calloc((size_t)trace->stack_count + 1, sizeof *p->stack_memo);
    }
    if (p == NULL || p->string_memo == NULL || p->frame_memo == NULL || p->stack_memo == NULL) {
        uf__error_set(error, status, "writing the snapshot: the host has no memory left");
        goto out;
    }
    static const uint8_t PROTOCOL[] = {OP_PROTO, 4};
    write_raw(p, PROTOCOL, sizeof PROTOCOL);
    put_snapshot(p);
    status = p->status;
    if (status == UF_OK && fflush(stream) != 0) {
        status =
            uf__error_set(error, UF_ERROR_IO, "writing the snapshot failed: %s", strerror(errno));
    }
out:
    if (p != NULL) {
        free(p->string_memo);
        free(p->frame_memo);
        free(p->stack_memo);
    }
    free(p);
    return status;
}
