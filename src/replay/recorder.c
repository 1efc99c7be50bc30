/* SPDX-License-Identifier: MIT
 *
 * The ring of an allocator's newest events. Owns the ring; knows nothing of files. Guarded by its
 * own mutex, which is taken after the allocator's (alloc/allocator.h).
 *
 *   entries   [ 5th | 6th | 3rd | 4th ]     capacity 4 = max_entry_count, count 4, lost 2
 *                           ^ first: the oldest kept
 *
 * Until max_entry_count is reached the array doubles, and first is 0. */
#include "replay/recorder.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"

static const uint64_t ENTRY_LIMIT_COUNT = UINT64_C(1) << 40;
static const uint64_t FIRST_CAPACITY = 1024;

struct uf_recorder {
    pthread_mutex_t mutex;
    uint64_t max_entry_count; /* constant, as are the clock's two */
    int64_t (*clock)(void *context);
    void *clock_context;
    uf_recorder_entry *entries;
    uint64_t capacity, first, count, lost_count;
};

static int64_t realtime(void *context)
{
    (void)context;
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

uf_status uf_recorder_create(const uf_recorder_options *options, uf_recorder **recorder,
                             uf_error *error)
{
    static const uf_recorder_options DEFAULTS = {.struct_size_bytes = sizeof DEFAULTS};
    options = options != NULL ? options : &DEFAULTS;
    if (recorder == NULL || options->struct_size_bytes < sizeof *options) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "uf_recorder_create: recorder is NULL, or options.struct_size_bytes "
                             "is not sizeof(uf_recorder_options), %zu",
                             sizeof *options);
    }
    if (options->max_entry_count >= ENTRY_LIMIT_COUNT) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "a recorder of %llu entries was asked for; the most is 2^40 - 1",
                             (unsigned long long)options->max_entry_count);
    }
    uf_recorder *made = calloc(1, sizeof *made);
    if (made == NULL || pthread_mutex_init(&made->mutex, NULL) != 0) {
        free(made);
        return uf__error_set(error, UF_ERROR_HOST_MEMORY,
                             "making a recorder: the host has no memory left");
    }
    made->max_entry_count =
        options->max_entry_count != 0 ? options->max_entry_count : UF_RECORDER_ENTRY_COUNT;
    made->clock = options->clock != NULL ? options->clock : realtime;
    made->clock_context = options->clock_context;
    *recorder = made;
    return UF_OK;
}

void uf_recorder_destroy(uf_recorder *recorder)
{
    if (recorder == NULL) {
        return;
    }
    pthread_mutex_destroy(&recorder->mutex);
    free(recorder->entries);
    free(recorder);
}

/* Makes room while the ring may still grow; without it the oldest entry gives way. */
static void grow_locked(uf_recorder *recorder)
{
    uint64_t wanted = recorder->capacity == 0 ? FIRST_CAPACITY : recorder->capacity * 2;
    wanted = wanted < recorder->max_entry_count ? wanted : recorder->max_entry_count;
    if (wanted <= recorder->capacity || recorder->first != 0) {
        return;
    }
    uf_recorder_entry *moved = realloc(recorder->entries, (size_t)wanted * sizeof *moved);
    if (moved != NULL) {
        recorder->entries = moved;
        recorder->capacity = wanted;
    }
}

static void append_locked(uf_recorder *recorder, const uf_recorder_entry *entry)
{
    if (recorder->count == recorder->capacity) {
        grow_locked(recorder);
    }
    if (recorder->capacity == 0) {
        recorder->lost_count++;
        return;
    }
    if (recorder->count == recorder->capacity) {
        recorder->entries[recorder->first] = *entry;
        recorder->first = (recorder->first + 1) % recorder->capacity;
        recorder->lost_count++;
        return;
    }
    recorder->entries[recorder->count++] = *entry;
}

void uf_recorder_event(void *context, const uf_allocator_event *event)
{
    uf_recorder *recorder = context;
    const uf_recorder_entry entry = {.addr = event->addr,
                                     .size_bytes = event->size_bytes,
                                     .stream = event->stream,
                                     .time_ns = recorder->clock(recorder->clock_context),
                                     .action = (uint8_t)event->action};
    pthread_mutex_lock(&recorder->mutex);
    append_locked(recorder, &entry);
    pthread_mutex_unlock(&recorder->mutex);
}

void uf_recorder_clear(uf_recorder *recorder)
{
    pthread_mutex_lock(&recorder->mutex);
    recorder->first = recorder->count = recorder->lost_count = 0;
    pthread_mutex_unlock(&recorder->mutex);
}

void uf_recorder_count(uf_recorder *recorder, uint64_t *entry_count, uint64_t *lost_count)
{
    pthread_mutex_lock(&recorder->mutex);
    uint64_t count = recorder->count, lost = recorder->lost_count;
    pthread_mutex_unlock(&recorder->mutex);
    if (entry_count != NULL) {
        *entry_count = count;
    }
    if (lost_count != NULL) {
        *lost_count = lost;
    }
}

uf_status uf__recorder_copy(uf_recorder *recorder, uint64_t active_bytes,
                            uf_recorder_entry **entries, uint64_t *count)
{
    const uf_recorder_entry note = {.size_bytes = active_bytes,
                                    .time_ns = recorder->clock(recorder->clock_context),
                                    .action = UF_ACTION_SNAPSHOT};
    pthread_mutex_lock(&recorder->mutex);
    uf_recorder_entry *copy = malloc(((size_t)recorder->count + 1) * sizeof *copy);
    if (copy != NULL) {
        *entries = copy;
        *count = recorder->count;
        for (uint64_t i = 0; i < recorder->count; i++) {
            copy[i] = recorder->entries[(recorder->first + i) % recorder->capacity];
        }
        append_locked(recorder, &note);
    }
    pthread_mutex_unlock(&recorder->mutex);
    return copy != NULL ? UF_OK : UF_ERROR_HOST_MEMORY;
}
