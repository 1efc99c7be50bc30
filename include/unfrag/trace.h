/* SPDX-License-Identifier: MIT
 *
 * A recorded allocation history: events, and the segments and blocks that were left at its end.
 * A uf_trace is filled by a reader and is read-only afterwards; any number of threads may then read
 * it. Its readers execute nothing that the input contains. */
#ifndef UNFRAG_TRACE_H
#define UNFRAG_TRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <unfrag/event.h>
#include <unfrag/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define UF_TIME_UNKNOWN INT64_MIN
#define UF_NONE UINT32_MAX

/* One event, 32 bytes. What repeats from event to event lives in its site. */
typedef struct uf_event {
    uint64_t addr;       /* device address; for UF_ACTION_OOM the driver's free bytes */
    uint64_t size_bytes; /* requested bytes, segment bytes, or mapped bytes, by action */
    int64_t time_us;     /* since the Unix epoch; UF_TIME_UNKNOWN where not recorded */
    uint32_t site;       /* index into uf_trace.sites */
    uint8_t action;      /* a uf_action */
    uint8_t reserved[3];
} uf_event;

/* What many events share. Strings are ids (uf_trace_string), UF_NONE where absent. */
typedef struct uf_site {
    uint64_t stream;          /* stream handle, 0 = default stream */
    uint64_t pool_id[2];      /* private pool; {0,0} = default; meaningful if has_pool_id */
    uint32_t stack;           /* index into uf_trace.stacks, or UF_NONE */
    uint32_t compile_context; /* string id */
    uint32_t user_metadata;   /* string id */
    uint32_t action_name;     /* string id of the action where action is UF_ACTION_OTHER */
    bool has_pool_id;         /* PyTorch 2.12 and later record it with each event */
    uint8_t reserved[7];
} uf_site;

typedef struct uf_frame {
    uint32_t filename; /* string id */
    uint32_t name;     /* string id */
    int64_t line;
} uf_frame;

/* A call stack, innermost first: frame_ids[first .. first + count). */
typedef struct uf_stack {
    uint64_t first;
    uint32_t count;
} uf_stack;

/* Each device's events, oldest first: events[first .. first + count). */
typedef struct uf_trace_device {
    int32_t device; /* index as recorded */
    uint64_t first;
    uint64_t count;
} uf_trace_device;

typedef struct uf_trace_block {
    uint64_t addr; /* summed from the segment's start where the layout (2.0) has none */
    uint64_t size_bytes;
    uint64_t requested_bytes; /* stale for inactive blocks; 0 where the layout has none */
    uint32_t stack;           /* or UF_NONE */
    uint8_t state;            /* a uf_block_state */
    bool has_requested;
    uint8_t reserved[2];
} uf_trace_block;

typedef struct uf_trace_segment {
    uint64_t addr;
    uint64_t total_bytes;
    uint64_t allocated_bytes;
    uint64_t active_bytes;
    uint64_t requested_bytes; /* 0 where the layout has none */
    uint64_t stream;
    uint64_t pool_id[2];
    uint64_t first_block; /* blocks[first_block .. first_block + block_count) */
    uint32_t block_count;
    uint32_t stack;
    int32_t device;
    bool is_large; /* segment_type "large" */
    bool is_expandable;
    bool has_pool_id;
    bool has_requested;
} uf_trace_segment;

typedef struct uf_annotation {
    uint32_t name;  /* string id */
    uint32_t stage; /* string id: "START" or "END" */
    int32_t device;
    int64_t time_us;
} uf_annotation;

/* The allocator_settings of a snapshot. The has_ flags say which keys were there. */
typedef struct uf_trace_settings {
    bool is_present; /* the dictionary itself was there */
    bool has_conf, has_max_split_size, has_gc_threshold, has_expandable, has_divisions;
    uint32_t conf;                /* string id of the last settings string */
    int64_t max_split_size_bytes; /* -1 = unlimited */
    double gc_threshold;
    bool is_expandable;
    uint64_t divisions[16]; /* roundup_power2_divisions, index log2 of the key */
    uint32_t pinned_num_register_threads;
    bool release_lock_on_cudamalloc, pinned_use_cuda_host_register,
        graph_capture_record_stream_reuse;
    uint8_t has_other; /* bit 0..3: the four keys above were there, in that order */
} uf_trace_settings;

typedef enum uf_trace_form {
    UF_FORM_PICKLE,
    UF_FORM_UFT,
    UF_FORM_JSON,
    UF_FORM_SCRIPT
} uf_trace_form;

/* What a reader met that it does not know, or that contradicts itself. Shown, never fatal. */
typedef struct uf_trace_oddities {
    uint64_t unknown_key_count;    /* dictionary entries whose key has no meaning here */
    uint64_t unknown_action_count; /* events with UF_ACTION_OTHER */
    uint32_t first_unknown_key;    /* string id, or UF_NONE */
    uint64_t gap_count;            /* segments whose blocks do not fill them */
    uint64_t unsorted_count;       /* segments below their predecessor on the same device */
    uint64_t unaligned_count;      /* blocks whose size or address is no multiple of 512 */
    uint64_t sum_mismatch_count;   /* segments whose own sums differ from their blocks' */
} uf_trace_oddities;

typedef struct uf_trace {
    uf_trace_form form;
    uf_event *events;
    uint64_t event_count;
    uf_trace_device *devices; /* one entry per recorded device list, empty ones included */
    uint32_t device_count;
    uf_site *sites;
    uint32_t site_count;
    uf_trace_segment *segments; /* in file order */
    uint32_t segment_count;
    uf_trace_block *blocks;
    uint64_t block_count;
    uf_frame *frames;
    uint32_t frame_count;
    uint32_t *frame_ids; /* the frames of all stacks */
    uint64_t frame_id_count;
    uf_stack *stacks;
    uint32_t stack_count;
    uf_annotation *annotations;
    uint32_t annotation_count;
    uf_trace_settings settings;
    uf_trace_oddities oddities;
    bool has_device_traces; /* the key was there, even if empty */
    /* Of a script (UF_FORM_SCRIPT) only; 0 or UF_NONE where the script does not say. */
    uint64_t script_card_bytes, script_limit_bytes;
    /* Recorded facts that .uft carries along and a snapshot lacks; 0 where unknown. */
    uint64_t total_bytes;
    /* Interned strings: string_offsets[id] into string_data, NUL-terminated, id 0 is "". */
    char *string_data;
    uint64_t *string_offsets; /* string_count + 1 entries; length = difference - 1 */
    uint32_t string_count;
    /* Figures of the reading, for benchmarks. */
    uint64_t input_bytes;   /* as stored */
    uint64_t decoded_bytes; /* after decompression */
} uf_trace;

/* Options of the readers. struct_size_bytes = sizeof; 0 elsewhere means default. */
typedef struct uf_trace_read_options {
    size_t struct_size_bytes;
    bool skip_stacks; /* do not keep frames */
    /* Called now and then with bytes read and total input bytes (0 = unknown); return false to
     * stop the reading (UF_ERROR_INTERRUPTED). */
    bool (*progress)(void *context, uint64_t done_bytes, uint64_t total_bytes);
    void *progress_context;
} uf_trace_read_options;

/* Reads a trace of any form (snapshot pickle protocol 2-5, .uft, JSON snapshot, script), plain or
 * gz, xz or zst, told by content. path: a file, or "-" for standard input. options may be NULL.
 * Returns UF_OK; UF_ERROR_IO (cannot open or read); UF_ERROR_BAD_INPUT (empty, truncated, corrupt,
 * or something else; error names the byte offset); UF_ERROR_HOST_MEMORY; UF_ERROR_INTERRUPTED.
 * *trace is owned by the caller (uf_trace_destroy), untouched on failure. Thread-safe. Since 0.1.
 */
UF_API uf_status uf_trace_read(const char *path, const uf_trace_read_options *options,
                               uf_trace **trace, uf_error *error) UF_MUST_USE;

/* The same from size_bytes bytes at data (borrowed for the call). Since 0.1. */
UF_API uf_status uf_trace_read_memory(const void *data, size_t size_bytes,
                                      const uf_trace_read_options *options, uf_trace **trace,
                                      uf_error *error) UF_MUST_USE;

/* Frees a trace; NULL is accepted. Since 0.1. */
UF_API void uf_trace_destroy(uf_trace *trace);

/* Returns the interned string of an id, "" for UF_NONE or an id out of range. Borrowed until the
 * trace is destroyed. Strings may contain any byte but end at their first NUL here. Since 0.1. */
UF_API const char *uf_trace_string(const uf_trace *trace, uint32_t string_id);

/* Writes the trace in our own format (docs/uft.md) to an open stream. Returns UF_OK or UF_ERROR_IO.
 * Since 0.1. */
UF_API uf_status uf_trace_write_uft(const uf_trace *trace, FILE *stream,
                                    uf_error *error) UF_MUST_USE;

/* Writes the trace as a snapshot pickle (protocol 4) that PyTorch's viewer and Python's
 * pickle.load accept. Returns UF_OK or UF_ERROR_IO. Since 0.1. */
UF_API uf_status uf_trace_write_pickle(const uf_trace *trace, FILE *stream,
                                       uf_error *error) UF_MUST_USE;

/* Returns the name of an action as PyTorch writes it. Static text. Since 0.1. */
UF_API const char *uf_action_name(uf_action action);

#ifdef __cplusplus
}
#endif
#endif
