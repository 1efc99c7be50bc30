/* SPDX-License-Identifier: MIT
 *
 * Sets a search up, and makes its result. The search itself is in search.c. */
#include "advise/tune.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "advise/search.h"
#include "advise/workers.h"
#include "base/error.h"
#include "replay/program.h"

/* Replays that one bisection takes, about; for the progress bar. */
enum { BISECTION_REPLAYS = 24 };

static double now_s(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static bool watch(void *context)
{
    uf_search *search = context;
    const uf_tune_options *options = search->options;
    if (options->progress == NULL) {
        return true;
    }
    pthread_mutex_lock(&search->lock);
    uint64_t done = ++search->done_count;
    uint64_t total = search->estimated_count > done ? search->estimated_count : done + 1;
    bool is_wanted = options->progress(options->progress_context, done, total);
    pthread_mutex_unlock(&search->lock);
    return is_wanted;
}

static double recording_ms(const uf_program *program)
{
    int64_t first_us = UF_TIME_UNKNOWN, last_us = UF_TIME_UNKNOWN;
    for (uint64_t i = 0; i < program->event_count; i++) {
        int64_t time_us = program->events[i].time_us;
        first_us = first_us == UF_TIME_UNKNOWN ? time_us : first_us;
        last_us = time_us != UF_TIME_UNKNOWN ? time_us : last_us;
    }
    return first_us != UF_TIME_UNKNOWN && last_us > first_us ? (double)(last_us - first_us) / 1e3
                                                             : 0.0;
}

/* The floor of all programs together, and what the recordings tried in vain. */
static void measure(uf_search *search)
{
    uf_tune_result *result = search->result;
    for (uint32_t i = 0; i < search->program_count; i++) {
        const uf_program *program = search->programs[i];
        uf_tune_file *file = &result->files[i];
        file->peak_live_bytes = program->peak_live_bytes;
        file->recorded_oom_count = program->report.oom_count;
        result->recorded_oom_count += file->recorded_oom_count;
        search->recording_ms += recording_ms(program);
        if (file->peak_live_bytes > result->peak_live_bytes) {
            result->peak_live_bytes = file->peak_live_bytes;
        }
    }
}

/* Popular settings and today's stand for those that act like them, not the other way round. */
static uint32_t rank(const uf_search *search, uint32_t point)
{
    return search->result->grid.points[point].is_popular ? 0 : point == search->baseline ? 1 : 2;
}

static void find_twin(uf_search *search, const uf_conf *simplified, uint32_t point)
{
    uint32_t origin = point;
    for (uint32_t i = 0; i < search->result->grid.count; i++) {
        uint32_t rank_here = rank(search, i), rank_there = rank(search, origin);
        bool is_before = rank_here < rank_there ||
                         (rank_here == rank_there && uf__search_is_simpler(search, i, origin));
        if (is_before && uf__conf_is_equal(&simplified[i], &simplified[point])) {
            origin = i;
        }
    }
    search->candidates[point].twin = origin == point ? UF_NONE : origin;
}

/* A probe for each grid point, its bound, and which points act alike. */
static uf_status prepare(uf_search *search)
{
    uf_tune_result *result = search->result;
    const uf_tune_options *options = search->options;
    const uf_grid *grid = &result->grid;
    uf_bound *bounds = calloc(grid->count, sizeof *bounds);
    uf_conf *simplified = calloc(grid->count, sizeof *simplified);
    uf_status status = bounds != NULL && simplified != NULL ? UF_OK : UF_ERROR_HOST_MEMORY;
    for (uint32_t i = 0; i < grid->count && status == UF_OK; i++) {
        const uf_conf *conf = &grid->points[i].values;
        uint32_t same = 0;
        while (same < i &&
               memcmp(grid->points[same].values.roundup_power2_divisions,
                      conf->roundup_power2_divisions, sizeof conf->roundup_power2_divisions) != 0) {
            same++;
        }
        if (same < i) {
            bounds[i] = bounds[same];
        } else {
            uf__bound_compute(search->programs, search->program_count, conf, &bounds[i]);
        }
        simplified[i] = *conf;
        uf__bound_simplify(&bounds[i], &simplified[i]);
        uf_candidate *candidate = &search->candidates[i];
        candidate->is_reported =
            grid->points[i].is_popular || i == search->baseline || options->is_exhaustive;
        candidate->probe = (uf_probe){
            .programs = search->programs,
            .program_count = search->program_count,
            .conf = grid->points[i].conf,
            .total_bytes = options->total_bytes,
            .bound_bytes = uf__bound_limit(&bounds[i], conf),
            .floor_bytes = result->peak_live_bytes,
            .is_plain = !conf->is_expandable && conf->garbage_collection_threshold == 0.0,
            .sync_ms = options->sync_ms < 0.0 ? UF_TUNE_SYNC_MS : options->sync_ms,
            .poll = watch,
            .poll_context = search};
        search->estimated_count += candidate->is_reported ? BISECTION_REPLAYS : 1;
    }
    for (uint32_t i = 0; i < grid->count && status == UF_OK; i++) {
        find_twin(search, simplified, i);
    }
    result->held_bytes = status == UF_OK ? bounds[0].held_bytes : 0;
    search->estimated_count =
        (search->estimated_count + 2 * BISECTION_REPLAYS) * search->program_count;
    free(bounds);
    free(simplified);
    return status;
}

/* A job: one program alone, under the best settings or today's. */
static uf_status search_file(void *context, uint32_t index, uf_error *error)
{
    uf_search *search = context;
    uint32_t program = index / 2, point = index % 2 == 0 ? search->best : search->baseline;
    uf_tune_file *file = &search->result->files[program];
    if (point == UF_NONE) {
        return UF_OK;
    }
    const uf_candidate *candidate = &search->candidates[point];
    uf_probe probe = candidate->probe;
    probe.programs = &search->programs[program];
    probe.program_count = 1;
    const uf_conf *conf = &search->result->grid.points[point].values;
    uf_bound bound;
    uf__bound_compute(probe.programs, 1, conf, &bound);
    probe.bound_bytes = uf__bound_limit(&bound, conf);
    probe.floor_bytes = file->peak_live_bytes;
    uf_place place = search->place;
    place.limit_bytes = candidate->run_limit_bytes;
    uf_status status = UF_OK;
    if (uf__search_has_place(search)) {
        uf_probe_run *run = index % 2 == 0 ? &file->best_run : &file->baseline_run;
        status = uf__probe_run(&probe, &place, run, error);
    }
    uf_smallest *smallest = index % 2 == 0 ? &file->best : &file->baseline;
    return status == UF_OK ? uf__probe_smallest(&probe, smallest, error) : status;
}

/* What stands for a point is what was run. */
static void copy_twins(uf_search *search)
{
    for (uint32_t i = 0; i < search->result->grid.count; i++) {
        uf_candidate *candidate = &search->candidates[i];
        if (candidate->twin == UF_NONE) {
            continue;
        }
        const uf_candidate *origin = &search->candidates[candidate->twin];
        candidate->smallest = origin->smallest;
        candidate->run = origin->run;
        candidate->run_limit_bytes = origin->run_limit_bytes;
        candidate->card_bytes = origin->card_bytes;
        candidate->probe.is_hazardous = origin->probe.is_hazardous;
    }
    /* Today's settings are the answer where they act like it. */
    if (search->baseline != UF_NONE && search->best != UF_NONE &&
        uf__search_origin(search, search->baseline) == search->best) {
        search->best = search->baseline;
    }
}

static uf_tune_entry make_entry(const uf_search *search, uint32_t point)
{
    const uf_candidate *candidate = &search->candidates[point];
    uf_tune_entry entry = {.point = point,
                           .run = candidate->smallest.at,
                           .place = {.limit_bytes = candidate->smallest.limit_bytes},
                           .smallest = candidate->smallest,
                           .card_bytes = candidate->card_bytes,
                           .is_hazardous = candidate->probe.is_hazardous};
    if (uf__search_has_place(search)) {
        entry.run = candidate->run;
        entry.place = search->place;
        entry.place.limit_bytes = candidate->run_limit_bytes;
    }
    return entry;
}

/* The order of the ranking: what completes, the smallest limit, the least stall, the grid. */
static int compare_entries(const void *left, const void *right)
{
    const uf_tune_entry *a = left, *b = right;
    if (a->run.is_complete != b->run.is_complete) {
        return a->run.is_complete ? -1 : 1;
    }
    uint64_t limit_a = a->smallest.is_known ? a->smallest.limit_bytes : UINT64_MAX;
    uint64_t limit_b = b->smallest.is_known ? b->smallest.limit_bytes : UINT64_MAX;
    if (limit_a != limit_b) {
        return limit_a < limit_b ? -1 : 1;
    }
    if (a->run.stall_ms != b->run.stall_ms) {
        return a->run.stall_ms < b->run.stall_ms ? -1 : 1;
    }
    return a->point < b->point ? -1 : a->point > b->point;
}

static void make_entries(uf_search *search)
{
    uf_tune_result *result = search->result;
    for (uint32_t i = 0; i < result->grid.count; i++) {
        const uf_candidate *candidate = &search->candidates[i];
        result->tried_count += candidate->probe.replay_count > 0;
        result->skipped_count += candidate->probe.replay_count == 0;
        result->replay_count += candidate->probe.replay_count;
        result->event_count += candidate->probe.event_count;
        bool has_figures = candidate->run.has_run || candidate->smallest.unlimited.has_run;
        if (candidate->is_reported && (has_figures || i == search->best)) {
            result->entries[result->entry_count++] = make_entry(search, i);
        }
    }
    qsort(result->entries, result->entry_count, sizeof *result->entries, compare_entries);
    result->baseline = result->best = UF_NONE;
    for (uint32_t i = 0; i < result->entry_count; i++) {
        if (result->entries[i].point == search->best) {
            uf_tune_entry best = result->entries[i];
            memmove(&result->entries[1], &result->entries[0], i * sizeof best);
            result->entries[0] = best;
            result->best = 0;
        }
    }
    for (uint32_t i = 0; i < result->entry_count; i++) {
        result->baseline = result->entries[i].point == search->baseline ? i : result->baseline;
    }
}

/* A job: the unfrag policy, as the settings are searched. */
static uf_status search_unfrag(void *context, uint32_t index, uf_error *error)
{
    uf_search *search = context;
    const uf_tune_options *options = search->options;
    uf_tune_result *result = search->result;
    uf_tune_entry *entry = &result->unfrag;
    uf_probe probe = {.programs = search->programs,
                      .program_count = search->program_count,
                      .policy = UF_POLICY_UNFRAG,
                      .total_bytes = options->total_bytes,
                      .floor_bytes = result->peak_live_bytes,
                      .sync_ms = options->sync_ms < 0.0 ? UF_TUNE_SYNC_MS : options->sync_ms,
                      .poll = watch,
                      .poll_context = search};
    (void)index;
    *entry = (uf_tune_entry){.point = UF_NONE};
    uf_status status = uf__probe_smallest(&probe, &entry->smallest, error);
    if (status == UF_OK && entry->smallest.is_known) {
        status = uf__probe_card(&probe, entry->smallest.limit_bytes, options->allowance_bytes,
                                false, &entry->card_bytes, error);
    }
    entry->run = entry->smallest.at;
    entry->place = (uf_place){.limit_bytes = entry->smallest.limit_bytes};
    if (status == UF_OK && uf__search_has_place(search)) {
        entry->place = uf__search_place(search);
        status = uf__probe_run(&probe, &entry->place, &entry->run, error);
    }
    result->has_unfrag = status == UF_OK;
    result->replay_count += probe.replay_count;
    result->event_count += probe.event_count;
    return status;
}

static uf_status search_all(uf_search *search, uf_error *error)
{
    uf_tune_result *result = search->result;
    uf_status status = uf__search_run(search, error);
    copy_twins(search);
    if (status == UF_OK && search->program_count > 1) {
        status = uf__workers_run(search->options->thread_count, search->program_count * 2,
                                 search_file, search, error);
    }
    if (status == UF_OK) {
        status = uf__workers_run(1, 1, search_unfrag, search, error);
    }
    result->is_interrupted = status == UF_ERROR_INTERRUPTED;
    if (status == UF_OK || result->is_interrupted) {
        make_entries(search);
        return UF_OK;
    }
    return status;
}

static uf_status make_grid(uf_search *search, uf_error *error)
{
    const uf_tune_options *options = search->options;
    uf_grid *grid = &search->result->grid;
    bool has_limit = options->limit_bytes != 0 || options->card_bytes == 0;
    uf_status status = uf__grid_init(grid, options->grammar, options->release, has_limit);
    const char *today =
        options->conf != NULL ? options->conf : uf_program_conf(search->programs[0]);
    search->baseline = UF_NONE;
    if (status == UF_OK) {
        status =
            uf__grid_add(grid, today, options->grammar, options->release, &search->baseline, error);
        if (status == UF_OK && grid->points[search->baseline].values.is_async_backend) {
            free(grid->points[--grid->count].conf); /* the driver's own allocator, not this one */
            search->baseline = UF_NONE;
        }
    }
    return status == UF_ERROR_CONF && options->conf == NULL ? UF_OK : status;
}

uf_status uf__tune(const uf_program *const *programs, uint32_t program_count,
                   const uf_tune_options *options, uf_tune_result *result, uf_error *error)
{
    double start_s = now_s();
    memset(result, 0, sizeof *result);
    result->baseline = result->best = UF_NONE;
    uf_search search = {.programs = programs,
                        .program_count = program_count,
                        .options = options,
                        .result = result,
                        .best = UF_NONE,
                        .lock = PTHREAD_MUTEX_INITIALIZER};
    uf_status status = make_grid(&search, error);
    if (status == UF_OK) {
        uint32_t count = result->grid.count > program_count ? result->grid.count : program_count;
        search.candidates = calloc(result->grid.count, sizeof *search.candidates);
        search.chosen = calloc(count, sizeof *search.chosen);
        result->entries = calloc(result->grid.count + 1u, sizeof *result->entries);
        result->files = calloc(program_count, sizeof *result->files);
        result->file_count = program_count;
        bool is_good = search.candidates != NULL && search.chosen != NULL &&
                       result->entries != NULL && result->files != NULL;
        if (is_good) {
            measure(&search);
        }
        status = is_good ? prepare(&search) : UF_ERROR_HOST_MEMORY;
        if (status != UF_OK) {
            (void)uf__error_set(error, status, "no memory for the search");
        }
    }
    if (status == UF_OK) {
        status = search_all(&search, error);
    }
    free(search.candidates);
    free(search.chosen);
    pthread_mutex_destroy(&search.lock);
    result->seconds = now_s() - start_s;
    if (status != UF_OK) {
        uf__tune_result_fini(result);
    }
    return status;
}

void uf__tune_result_fini(uf_tune_result *result)
{
    uf__grid_fini(&result->grid);
    free(result->entries);
    free(result->files);
    memset(result, 0, sizeof *result);
}
