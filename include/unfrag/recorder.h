/* SPDX-License-Identifier: MIT
 *
 * Records an allocator's events, and writes snapshots that PyTorch's memory viewer, Python's
 * pickle.load and uf_trace_read accept. */
#ifndef UNFRAG_RECORDER_H
#define UNFRAG_RECORDER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <unfrag/status.h>
#include <unfrag/unfrag.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The newest events of one allocator, in memory. Opaque; guards itself. */
typedef struct uf_recorder uf_recorder;

/* Entries kept unless told: 1 Mi, which take 40 MiB. */
#define UF_RECORDER_ENTRY_COUNT (UINT64_C(1) << 20)

/* struct_size_bytes = sizeof(uf_recorder_options); 0 elsewhere means default. */
typedef struct uf_recorder_options {
    size_t struct_size_bytes;
    uint64_t max_entry_count; /* the newest are kept; 0 = UF_RECORDER_ENTRY_COUNT; below 2^40 */
    /* Gives the time of an event in nanoseconds since the Unix epoch; NULL = CLOCK_REALTIME. Called
     * under the allocator's lock; must not call the allocator or the recorder. */
    int64_t (*clock)(void *context);
    void *clock_context; /* borrowed until uf_recorder_destroy */
} uf_recorder_options;

/* Makes a recorder. Memory for entries is taken as events come.
 * options: borrowed for the call; NULL = defaults. recorder: receives it. error: may be NULL.
 * Returns UF_OK; UF_ERROR_INVALID_ARGUMENT (recorder is NULL, a struct_size_bytes that is none,
 * 2^40 entries or more); UF_ERROR_HOST_MEMORY. *recorder is owned by the caller
 * (uf_recorder_destroy), untouched on failure. Thread-safe. Since 0.1. */
UF_API uf_status uf_recorder_create(const uf_recorder_options *options, uf_recorder **recorder,
                                    uf_error *error) UF_MUST_USE;

/* Frees a recorder.
 * recorder: NULL is accepted; no allocator may still report to it. Since 0.1. */
UF_API void uf_recorder_destroy(uf_recorder *recorder);

/* The callback to give an allocator: on_event = uf_recorder_event, event_context = the recorder.
 * One recorder serves one allocator at a time. recorder: a uf_recorder; event: borrowed for the
 * call. Thread-safe. Since 0.1. */
UF_API void uf_recorder_event(void *recorder, const uf_allocator_event *event);

/* Forgets the events recorded so far.
 * recorder: not NULL. Thread-safe. Since 0.1. */
UF_API void uf_recorder_clear(uf_recorder *recorder);

/* How many events there are.
 * recorder: not NULL. entry_count: receives how many are kept. lost_count: receives how many older
 * ones were dropped, since creation or the last uf_recorder_clear, because max_entry_count was
 * reached or the host had no memory for more. Either may be NULL. Thread-safe. Since 0.1. */
UF_API void uf_recorder_count(uf_recorder *recorder, uint64_t *entry_count, uint64_t *lost_count);

/* Writes a snapshot: segments and blocks of this instant, the events that led to it, the settings.
 * Everything is of one instant, whatever other threads do meanwhile. The recorder then notes a
 * `snapshot` event, which later snapshots show, as PyTorch does.
 * allocator: whose state is written. recorder: the one that the allocator reports to; NULL = no
 * events. stream: open for writing; borrowed for the call, flushed, not closed. error: may be NULL.
 * Returns UF_OK; UF_ERROR_INVALID_ARGUMENT (allocator or stream is NULL); UF_ERROR_BUSY (called
 * from inside the callback); UF_ERROR_IO; UF_ERROR_HOST_MEMORY. Thread-safe. Since 0.1. Source:
 * docs/internals/torch-policy.md section 10. */
UF_API uf_status uf_snapshot_write(uf_allocator *allocator, uf_recorder *recorder, FILE *stream,
                                   uf_error *error) UF_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
