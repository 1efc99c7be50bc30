/* SPDX-License-Identifier: MIT
 *
 * Rows from single probes, or from a whole search. */
#include "report/settings.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "advise/workers.h"
#include "base/error.h"
#include "replay/program.h"

enum { REPLAYS_OF_A_LIMIT = 14 }; /* about; for the progress bar */

static const uint64_t LIMITS_EVENTS = 300000, FEW_EVENTS = 1500000;
/* A limit of the unfrag policy takes several times as long: near it pages move all the time. */
static const uint64_t UNFRAG_EVENTS = 600000;

uf_effort uf__settings_effort(uint64_t event_count)
{
    return event_count <= LIMITS_EVENTS ? UF_EFFORT_LIMITS
           : event_count <= FEW_EVENTS  ? UF_EFFORT_FEW
                                        : UF_EFFORT_PEAKS;
}

typedef struct uf_comparing {
    const uf_program *program;
    const uf_settings_options *options;
    uf_settings *settings;
    pthread_mutex_t lock;
    uint64_t done_count, estimated_count; /* guarded by lock, as the calls of progress */
} uf_comparing;

static bool watch(void *context)
{
    uf_comparing *comparing = context;
    const uf_settings_options *options = comparing->options;
    if (options->progress == NULL) {
        return true;
    }
    pthread_mutex_lock(&comparing->lock);
    uint64_t done = ++comparing->done_count;
    uint64_t total = comparing->estimated_count > done ? comparing->estimated_count : done + 1;
    bool is_wanted = options->progress(options->progress_context, done, total);
    pthread_mutex_unlock(&comparing->lock);
    return is_wanted;
}

static void take_run(uf_settings_row *row, const uf_probe_run *run)
{
    row->device_ms = run->device_ms;
    row->device_syncs = run->device_syncs;
    row->retry_count = run->retry_count;
}

static uf_status compare(void *context, uint32_t index, uf_error *error)
{
    uf_comparing *comparing = context;
    const uf_settings_options *options = comparing->options;
    uf_settings_row *row = &comparing->settings->rows[index];
    uf_probe probe = {.programs = &comparing->program,
                      .program_count = 1,
                      .conf = row->is_unfrag ? NULL : row->conf,
                      .policy = row->is_unfrag ? UF_POLICY_UNFRAG : UF_POLICY_TORCH,
                      .total_bytes = options->total_bytes,
                      .floor_bytes = comparing->program->peak_live_bytes,
                      .sync_ms = UF_TUNE_SYNC_MS,
                      .poll = watch,
                      .poll_context = comparing};
    bool is_one_of_few = row->is_unfrag
                             ? options->event_count <= UNFRAG_EVENTS
                             : row->is_today || strcmp(row->conf, "expandable_segments:True") == 0;
    if (options->effort == UF_EFFORT_PEAKS ||
        (options->effort == UF_EFFORT_FEW && !is_one_of_few)) {
        const uf_place place = {.total_bytes = options->total_bytes};
        uf_probe_run run = {0};
        uf_status status = uf__probe_run(&probe, &place, &run, error);
        row->has_peak = status == UF_OK && run.is_complete;
        row->peak_reserved_bytes = run.peak_reserved_bytes;
        row->is_undefined = run.is_undefined;
        take_run(row, &run);
        return status;
    }
    uf_smallest smallest;
    uf_status status = uf__probe_smallest(&probe, &smallest, error);
    row->has_peak = smallest.unlimited.is_complete;
    row->peak_reserved_bytes = smallest.unlimited.peak_reserved_bytes;
    row->has_smallest = smallest.is_known;
    row->smallest_limit_bytes = smallest.limit_bytes;
    row->is_undefined = probe.is_hazardous && !smallest.is_known;
    take_run(row, smallest.is_known ? &smallest.at : &smallest.unlimited);
    if (status == UF_OK && smallest.is_known) {
        status = uf__probe_card(&probe, smallest.limit_bytes, UF_TUNE_ALLOWANCE_BYTES, true,
                                &row->card_bytes, error);
    }
    return status;
}

/* Today's settings, and the popular ones of the grid. */
static uf_status choose_rows(uf_comparing *comparing, uf_error *error)
{
    uf_settings *settings = comparing->settings;
    const char *today =
        comparing->options->conf != NULL ? comparing->options->conf : comparing->program->conf_text;
    uf_grid grid;
    uint32_t index = UF_NONE;
    uf_status status = uf__grid_init(&grid, UF_CONF_2_11, 0, true);
    if (status == UF_OK) {
        status = uf__grid_add(&grid, today, UF_CONF_2_11, 0, &index, error);
        if (status == UF_ERROR_CONF && comparing->options->conf == NULL) {
            status = UF_OK; /* PyTorch took it, whatever it was */
        }
    }
    if (status == UF_OK) {
        settings->rows = calloc(grid.count + 2u, sizeof *settings->rows);
        status = settings->rows != NULL ? UF_OK : UF_ERROR_HOST_MEMORY;
    }
    for (uint32_t i = 0; i < grid.count && status == UF_OK; i++) {
        if (grid.points[i].is_popular || i == index || i == 0) {
            uf_settings_row *row = &settings->rows[settings->count++];
            row->conf = strdup(grid.points[i].conf);
            row->is_today = i == index;
            status = row->conf != NULL ? UF_OK : UF_ERROR_HOST_MEMORY;
        }
    }
    uf__grid_fini(&grid);
    if (status == UF_OK) {
        uf_settings_row *row = &settings->rows[settings->count++];
        row->is_unfrag = true;
        row->conf = strdup("");
        status = row->conf != NULL ? UF_OK : UF_ERROR_HOST_MEMORY;
    }
    return status;
}

static int by_need(const void *a, const void *b)
{
    const uf_settings_row *one = a, *other = b;
    if (one->is_unfrag != other->is_unfrag) {
        return one->is_unfrag ? 1 : -1;
    }
    if (one->has_smallest != other->has_smallest) {
        return one->has_smallest ? -1 : 1;
    }
    uint64_t needs = one->has_smallest ? one->smallest_limit_bytes : one->peak_reserved_bytes;
    uint64_t others = one->has_smallest ? other->smallest_limit_bytes : other->peak_reserved_bytes;
    if (needs != others) {
        return needs < others ? -1 : 1;
    }
    return strcmp(one->conf, other->conf);
}

static uf_status take_entry(uf_settings *settings, const uf_tune_result *result,
                            const uf_tune_entry *entry)
{
    uf_settings_row *row = &settings->rows[settings->count++];
    const uf_probe_run *unlimited = &entry->smallest.unlimited;
    row->is_unfrag = entry->point == UF_NONE;
    row->conf = strdup(row->is_unfrag ? "" : result->grid.points[entry->point].conf);
    row->is_undefined = entry->is_hazardous;
    row->has_peak = unlimited->is_complete;
    row->peak_reserved_bytes = unlimited->peak_reserved_bytes;
    row->has_smallest = entry->smallest.is_known;
    row->smallest_limit_bytes = entry->smallest.limit_bytes;
    row->card_bytes = entry->card_bytes;
    take_run(row, entry->run.is_complete ? &entry->run : unlimited);
    return row->conf != NULL ? UF_OK : UF_ERROR_HOST_MEMORY;
}

static uf_status search(uf_comparing *comparing, uf_error *error)
{
    const uf_settings_options *options = comparing->options;
    uf_settings *settings = comparing->settings;
    uf_tune_options how = {.conf = options->conf,
                           .total_bytes = options->total_bytes,
                           .allowance_bytes = UF_TUNE_ALLOWANCE_BYTES,
                           .sync_ms = UF_TUNE_SYNC_MS,
                           .grammar = UF_CONF_2_11,
                           .thread_count = options->thread_count,
                           .progress = options->progress,
                           .progress_context = options->progress_context};
    uf_tune_result result;
    uf_status status = uf__tune(&comparing->program, 1, &how, &result, error);
    if (status != UF_OK) {
        return status;
    }
    settings->rows = calloc(result.entry_count + 2u, sizeof *settings->rows);
    status = settings->rows != NULL ? UF_OK : UF_ERROR_HOST_MEMORY;
    for (uint32_t i = 0; i < result.entry_count && status == UF_OK; i++) {
        status = take_entry(settings, &result, &result.entries[i]);
        settings->rows[i].is_today = i == result.baseline;
        settings->rows[i].is_best = i == result.best;
    }
    if (status == UF_OK && result.has_unfrag) {
        status = take_entry(settings, &result, &result.unfrag);
    }
    settings->replay_count = result.replay_count;
    settings->is_interrupted = result.is_interrupted;
    uf__tune_result_fini(&result);
    return status;
}

static uf_status compare_all(uf_comparing *comparing, uf_error *error)
{
    const uf_settings_options *options = comparing->options;
    uf_settings *settings = comparing->settings;
    uf_status status = choose_rows(comparing, error);
    if (status != UF_OK) {
        return status;
    }
    comparing->estimated_count =
        options->effort == UF_EFFORT_LIMITS ? settings->count * REPLAYS_OF_A_LIMIT
        : options->effort == UF_EFFORT_FEW  ? settings->count + 3 * REPLAYS_OF_A_LIMIT
                                            : settings->count;
    pthread_mutex_init(&comparing->lock, NULL);
    status = uf__workers_run(options->thread_count, settings->count, compare, comparing, error);
    pthread_mutex_destroy(&comparing->lock);
    settings->replay_count = comparing->done_count;
    qsort(settings->rows, settings->count, sizeof *settings->rows, by_need);
    for (uint32_t i = 0; i < settings->count && status == UF_OK; i++) {
        settings->rows[i].is_best = &settings->rows[i] == uf__settings_best(settings);
    }
    return status;
}

uf_status uf__settings_init(uf_settings *settings, const uf_program *program,
                            const uf_settings_options *options, uf_error *error)
{
    *settings = (uf_settings){.effort = options->effort,
                              .peak_live_bytes = program->peak_live_bytes,
                              .allowance_bytes = UF_TUNE_ALLOWANCE_BYTES};
    uf_comparing comparing = {.program = program, .options = options, .settings = settings};
    uf_status status = options->effort == UF_EFFORT_NONE     ? UF_OK
                       : options->effort == UF_EFFORT_SEARCH ? search(&comparing, error)
                                                             : compare_all(&comparing, error);
    return status == UF_ERROR_HOST_MEMORY
               ? uf__error_set(error, status, "no host memory to compare settings")
               : status;
}

void uf__settings_fini(uf_settings *settings)
{
    for (uint32_t i = 0; i < settings->count; i++) {
        free(settings->rows[i].conf);
    }
    free(settings->rows);
    memset(settings, 0, sizeof *settings);
}

const uf_settings_row *uf__settings_today(const uf_settings *settings)
{
    for (uint32_t i = 0; i < settings->count; i++) {
        if (settings->rows[i].is_today) {
            return &settings->rows[i];
        }
    }
    return NULL;
}

const uf_settings_row *uf__settings_unfrag(const uf_settings *settings)
{
    for (uint32_t i = 0; i < settings->count; i++) {
        if (settings->rows[i].is_unfrag) {
            return &settings->rows[i];
        }
    }
    return NULL;
}

static uint64_t need_of(const uf_settings_row *row)
{
    return row->has_smallest ? row->smallest_limit_bytes : row->peak_reserved_bytes;
}

const uf_settings_row *uf__settings_best(const uf_settings *settings)
{
    const uf_settings_row *least = NULL, *best = NULL;
    for (uint32_t i = 0; i < settings->count; i++) {
        const uf_settings_row *row = &settings->rows[i];
        if (row->is_best) {
            return row;
        }
        bool is_candidate = !row->is_unfrag && !row->is_undefined && row->has_peak &&
                            (row->has_smallest || settings->effort == UF_EFFORT_PEAKS);
        if (is_candidate && (least == NULL || need_of(row) < need_of(least))) {
            least = row;
        }
    }
    for (uint32_t i = 0; i < settings->count && least != NULL; i++) {
        const uf_settings_row *row = &settings->rows[i];
        bool is_near = !row->is_unfrag && !row->is_undefined && row->has_peak &&
                       row->has_smallest == least->has_smallest &&
                       (double)need_of(row) <= (double)need_of(least) * 1.005;
        if (is_near && (best == NULL || row->device_ms < best->device_ms)) {
            best = row;
        }
    }
    return best;
}
