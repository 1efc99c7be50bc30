/* SPDX-License-Identifier: MIT
 *
 * The search. See tune.h for its stages. */
#include "advise/tune.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "advise/workers.h"
#include "alloc/rounding.h"
#include "base/error.h"

/* What is known of one grid point while the search runs. */
typedef struct uf_candidate {
    uf_tune_entry entry;
    bool is_alive;    /* still in the running */
    bool is_reported; /* gets an entry whatever it gave */
    bool is_proved;   /* its smallest limit was searched on its own */
    uint64_t event_count, replay_count;
} uf_candidate;

typedef struct uf_search {
    const uf_program *const *programs;
    uint32_t program_count;
    const uf_tune_options *options;
    uf_tune_result *result;
    uf_candidate *candidates; /* by grid point */
    uint32_t *chosen;         /* grid points of the stage under way */
    uint32_t chosen_count;
    uint64_t stage_limit_bytes;
    uint64_t ceiling_bytes; /* a limit that the setting under way is known to complete at, 0 = none */
    uint32_t stage_done_count, total_count; /* for progress */
    double sync_ms;
} uf_search;

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + UF_TUNE_GRANULE_BYTES - 1) / UF_TUNE_GRANULE_BYTES * UF_TUNE_GRANULE_BYTES;
}

/* Replays one setting over all programs. */
static uf_status run_point(const uf_search *search, uint32_t point, uint64_t limit_bytes,
                           uint64_t card_bytes, uf_tune_run *run, uf_error *error)
{
    uf_candidate *candidate = &search->candidates[point];
    *run = (uf_tune_run){.has_run = true, .is_complete = true};
    for (uint32_t i = 0; i < search->program_count && run->is_complete; i++) {
        uf_replay_result played;
        uf_replay_options options = {.struct_size_bytes = sizeof options,
                                     .conf = search->result->grid.points[point].conf,
                                     .limit_bytes = limit_bytes,
                                     .card_bytes = card_bytes,
                                     .total_bytes = search->options->total_bytes};
        uf_status status = uf_replay_run(search->programs[i], &options, &played, error);
        candidate->replay_count++;
        if (status == UF_ERROR_HAZARD) {
            run->is_complete = false;
            run->is_undefined = true;
            return UF_OK;
        }
        if (status != UF_OK) {
            return status;
        }
        candidate->event_count += played.event_count;
        bool is_larger = played.peak_reserved_bytes > run->peak_reserved_bytes;
        run->peak_reserved_bytes = is_larger ? played.peak_reserved_bytes : run->peak_reserved_bytes;
        run->device_calls += played.device_calls;
        run->device_syncs += played.device_syncs;
        run->retry_count += played.retry_count;
        run->device_ms += played.device_ms;
        if (played.has_oom) {
            run->is_complete = false;
            run->failed_program = i;
            run->oom = played.first_oom;
        }
    }
    run->stall_ms = run->device_ms + search->sync_ms * (double)run->device_syncs;
    return UF_OK;
}

/* The smallest limit between a failing and a completing one. Keeps the runs at both ends. */
static uf_status bisect(const uf_search *search, uint32_t point, uint64_t low_bytes,
                        uint64_t high_bytes, uf_error *error)
{
    uf_tune_entry *entry = &search->candidates[point].entry;
    uf_status status = UF_OK;
    while (status == UF_OK && high_bytes - low_bytes > UF_TUNE_GRANULE_BYTES) {
        uint64_t middle_bytes = round_up(low_bytes + (high_bytes - low_bytes) / 2);
        middle_bytes -= middle_bytes >= high_bytes ? UF_TUNE_GRANULE_BYTES : 0;
        uf_tune_run run;
        status = run_point(search, point, middle_bytes, 0, &run, error);
        if (run.is_complete) {
            high_bytes = middle_bytes;
            entry->run = run;
        } else {
            low_bytes = middle_bytes;
            entry->below = run;
        }
    }
    entry->smallest_limit_bytes = entry->run_limit_bytes = high_bytes;
    entry->has_smallest = true;
    return status;
}

/* A limit where the setting completes, from its peak without a limit upwards; 0 if there is none. */
static uf_status find_ceiling(const uf_search *search, uint32_t point, uint64_t *high_bytes,
                              uf_error *error)
{
    uf_tune_entry *entry = &search->candidates[point].entry;
    uf_status status = run_point(search, point, 0, 0, &entry->free_run, error);
    *high_bytes = 0;
    if (status != UF_OK || !entry->free_run.is_complete) {
        return status;
    }
    uint64_t at_bytes = round_up(entry->free_run.peak_reserved_bytes);
    for (uint64_t step = UF_TUNE_GRANULE_BYTES; status == UF_OK && step <= at_bytes; step *= 2) {
        status = run_point(search, point, at_bytes, 0, &entry->run, error);
        if (entry->run.is_complete) {
            *high_bytes = at_bytes;
            break;
        }
        entry->below = entry->run;
        at_bytes += step;
    }
    return status;
}

/* Limits above the smallest one, further and further apart: does one of them fail? Then the search
 * goes on above it, and the result is the smallest limit with none failing above. */
static uf_status climb_over_gaps(const uf_search *search, uint32_t point, uint64_t ceiling_bytes,
                                 uf_error *error)
{
    uf_tune_entry *entry = &search->candidates[point].entry;
    uf_status status = UF_OK;
    uint64_t step = UF_TUNE_GRANULE_BYTES;
    while (status == UF_OK && entry->smallest_limit_bytes + step < ceiling_bytes) {
        uf_tune_run run;
        uint64_t at_bytes = entry->smallest_limit_bytes + step;
        status = run_point(search, point, at_bytes, 0, &run, error);
        step *= 2;
        if (status == UF_OK && !run.is_complete) {
            entry->has_gaps = true;
            entry->below = run;
            status = run_point(search, point, ceiling_bytes, 0, &entry->run, error);
            if (status == UF_OK) {
                status = bisect(search, point, at_bytes, ceiling_bytes, error);
            }
            step = UF_TUNE_GRANULE_BYTES;
        }
    }
    return status;
}

/* A job: the smallest limit of one setting, on its own. */
static uf_status search_alone(void *context, uint32_t index, uf_error *error)
{
    const uf_search *search = context;
    uint32_t point = search->chosen[index];
    uf_tune_entry *entry = &search->candidates[point].entry;
    uint64_t high_bytes, low_bytes = 0;
    search->candidates[point].is_proved = true;
    uf_status status = find_ceiling(search, point, &high_bytes, error);
    if (status != UF_OK || high_bytes == 0) {
        search->candidates[point].is_alive = false;
        return status;
    }
    uint64_t ceiling_bytes = high_bytes;
    uint64_t floor_bytes = search->result->peak_live_bytes / UF_TUNE_GRANULE_BYTES *
                           UF_TUNE_GRANULE_BYTES;
    uf_tune_run run = {0};
    if (floor_bytes < high_bytes) {
        status = run_point(search, point, floor_bytes, 0, &run, error);
    }
    if (run.is_complete) {
        high_bytes = floor_bytes; /* expandable segments may pass the limit by part of a page */
        entry->run = run;
    } else if (run.has_run) {
        low_bytes = floor_bytes;
        entry->below = run;
    }
    if (status == UF_OK) {
        status = bisect(search, point, low_bytes, high_bytes, error);
    }
    return status == UF_OK ? climb_over_gaps(search, point, ceiling_bytes, error) : status;
}

/* A job: one setting at the stage's limit. */
static uf_status run_at_limit(void *context, uint32_t index, uf_error *error)
{
    const uf_search *search = context;
    uf_tune_entry *entry = &search->candidates[search->chosen[index]].entry;
    entry->run_limit_bytes = search->stage_limit_bytes;
    return run_point(search, search->chosen[index], search->stage_limit_bytes,
                     search->options->card_bytes, &entry->run, error);
}

static uf_status run_freely(void *context, uint32_t index, uf_error *error)
{
    const uf_search *search = context;
    uf_tune_entry *entry = &search->candidates[search->chosen[index]].entry;
    return entry->free_run.has_run
               ? UF_OK
               : run_point(search, search->chosen[index], 0, 0, &entry->free_run, error);
}

static bool watch(void *context, uint32_t done_count, uint32_t count)
{
    uf_search *search = context;
    const uf_tune_options *options = search->options;
    uint64_t total = (uint64_t)search->total_count + count;
    return options->progress == NULL ||
           options->progress(options->progress_context, search->stage_done_count + done_count,
                             total);
}

/* Runs a job over the chosen grid points. */
static uf_status run_stage(uf_search *search, uf_worker_job job, uf_error *error)
{
    uf_status status = uf__workers_run(search->options->thread_count, search->chosen_count, job,
                                       watch, search, error);
    search->stage_done_count += search->chosen_count;
    search->total_count = search->stage_done_count;
    return status;
}

static void choose_alive(uf_search *search)
{
    search->chosen_count = 0;
    for (uint32_t i = 0; i < search->result->grid.count; i++) {
        if (search->candidates[i].is_alive) {
            search->chosen[search->chosen_count++] = i;
        }
    }
}

static void choose_reported(uf_search *search)
{
    search->chosen_count = 0;
    for (uint32_t i = 0; i < search->result->grid.count; i++) {
        if (search->candidates[i].is_reported) {
            search->chosen[search->chosen_count++] = i;
        }
    }
}

/* The order of preference among settings that complete at one limit. */
static int compare_runs(const uf_tune_entry *a, const uf_tune_entry *b)
{
    if (a->run.stall_ms != b->run.stall_ms) {
        return a->run.stall_ms < b->run.stall_ms ? -1 : 1;
    }
    if (a->run.peak_reserved_bytes != b->run.peak_reserved_bytes) {
        return a->run.peak_reserved_bytes < b->run.peak_reserved_bytes ? -1 : 1;
    }
    return a->point < b->point ? -1 : a->point > b->point;
}

/* The alive setting that is best at the stage's limit; UF_NONE if none completes. */
static uint32_t best_alive(const uf_search *search)
{
    uint32_t best = UF_NONE;
    for (uint32_t i = 0; i < search->result->grid.count; i++) {
        const uf_candidate *candidate = &search->candidates[i];
        if (candidate->is_alive && candidate->entry.run.is_complete &&
            (best == UF_NONE ||
             compare_runs(&candidate->entry, &search->candidates[best].entry) < 0)) {
            best = i;
        }
    }
    return best;
}

static uint64_t smallest_reported(const uf_search *search)
{
    uint64_t smallest_bytes = UINT64_MAX;
    for (uint32_t i = 0; i < search->result->grid.count; i++) {
        const uf_tune_entry *entry = &search->candidates[i].entry;
        if (entry->has_smallest && entry->smallest_limit_bytes < smallest_bytes) {
            smallest_bytes = entry->smallest_limit_bytes;
        }
    }
    return smallest_bytes;
}

/* Keeps alive what completed at the stage's limit, if anything did. */
static bool keep_complete(uf_search *search)
{
    bool has_complete = false;
    for (uint32_t i = 0; i < search->chosen_count; i++) {
        has_complete |= search->candidates[search->chosen[i]].entry.run.is_complete;
    }
    for (uint32_t i = 0; i < search->chosen_count && has_complete; i++) {
        uf_candidate *candidate = &search->candidates[search->chosen[i]];
        candidate->is_alive = candidate->entry.run.is_complete;
    }
    return has_complete;
}

/* Stages 2 to 4. best: the grid point that wins. */
static uf_status search_together(uf_search *search, uint32_t *best, uf_error *error)
{
    uf_tune_result *result = search->result;
    uint64_t high_bytes = smallest_reported(search);
    uint64_t low_bytes = round_up(result->peak_live_bytes);
    *best = UF_NONE;
    if (high_bytes == UINT64_MAX) {
        return UF_OK;
    }
    for (uint32_t i = 0; i < result->grid.count; i++) {
        search->candidates[i].is_alive = true;
    }
    search->stage_limit_bytes = high_bytes;
    choose_alive(search);
    uf_status status = run_stage(search, run_at_limit, error);
    keep_complete(search);
    /* Expandable segments may pass a limit by part of a page. */
    low_bytes -= low_bytes < 2 * UF_LARGE_SEGMENT_BYTES ? low_bytes : 2 * UF_LARGE_SEGMENT_BYTES;
    low_bytes = low_bytes < high_bytes ? low_bytes : 0;
    while (status == UF_OK && high_bytes - low_bytes > UF_TUNE_GRANULE_BYTES) {
        uint64_t middle_bytes = round_up(low_bytes + (high_bytes - low_bytes) / 2);
        middle_bytes -= middle_bytes >= high_bytes ? UF_TUNE_GRANULE_BYTES : 0;
        search->stage_limit_bytes = middle_bytes;
        choose_alive(search);
        status = run_stage(search, run_at_limit, error);
        if (status == UF_OK && keep_complete(search)) {
            high_bytes = middle_bytes;
        } else {
            low_bytes = middle_bytes;
        }
    }
    if (status == UF_OK) {
        search->stage_limit_bytes = high_bytes;
        choose_alive(search);
        status = run_stage(search, run_at_limit, error);
        *best = best_alive(search);
    }
    return status;
}

/* With a limit or card: every setting there. */
static uf_status search_there(uf_search *search, uint32_t *best, uf_error *error)
{
    for (uint32_t i = 0; i < search->result->grid.count; i++) {
        search->candidates[i].is_alive = true;
    }
    search->stage_limit_bytes = search->options->limit_bytes;
    choose_alive(search);
    uf_status status = run_stage(search, run_at_limit, error);
    *best = best_alive(search);
    return status;
}

/* Smallest limits of what is reported, keeping the runs at the limit or card asked for. */
static uf_status search_reported(uf_search *search, uf_error *error)
{
    uf_status status;
    uint32_t count = search->result->grid.count;
    uf_tune_entry *kept = malloc((count + 1) * sizeof *kept);
    if (kept == NULL) {
        return uf__error_set(error, UF_ERROR_HOST_MEMORY, "no memory for the search");
    }
    for (uint32_t i = 0; i < count; i++) {
        kept[i] = search->candidates[i].entry;
    }
    choose_reported(search);
    status = run_stage(search, search_alone, error);
    for (uint32_t i = 0; i < count; i++) {
        uf_tune_entry *entry = &search->candidates[i].entry;
        if (kept[i].run.has_run && search->candidates[i].is_reported) {
            entry->run = kept[i].run;
            entry->run_limit_bytes = kept[i].run_limit_bytes;
        }
    }
    free(kept);
    return status;
}

static uf_status search_all(uf_search *search, uint32_t baseline, uint32_t *best, uf_error *error)
{
    uf_tune_result *result = search->result;
    bool has_place = search->options->limit_bytes != 0 || search->options->card_bytes != 0;
    for (uint32_t i = 0; i < result->grid.count; i++) {
        search->candidates[i].entry.point = i;
        search->candidates[i].is_reported =
            result->grid.points[i].is_popular || i == baseline || search->options->is_exhaustive;
    }
    uf_status status = UF_OK;
    *best = UF_NONE;
    if (has_place) {
        status = search_there(search, best, error);
        if (*best != UF_NONE) {
            search->candidates[*best].is_reported = true;
        }
        return status == UF_OK ? search_reported(search, error) : status;
    }
    status = search_reported(search, error);
    if (status == UF_OK) {
        uf_tune_entry *own = malloc((result->grid.count + 1) * sizeof *own);
        if (own == NULL) {
            return uf__error_set(error, UF_ERROR_HOST_MEMORY, "no memory for the search");
        }
        for (uint32_t i = 0; i < result->grid.count; i++) {
            own[i] = search->candidates[i].entry;
        }
        status = search_together(search, best, error);
        uint64_t limit_bytes = search->stage_limit_bytes;
        for (uint32_t i = 0; i < result->grid.count; i++) {
            uf_tune_entry *entry = &search->candidates[i].entry;
            if (search->candidates[i].is_reported) {
                *entry = own[i]; /* at its own smallest limit */
            } else if (search->candidates[i].is_alive && entry->run.is_complete) {
                entry->smallest_limit_bytes = limit_bytes;
                entry->has_smallest = status == UF_OK;
                search->candidates[i].is_reported = i == *best;
            }
        }
        free(own);
    }
    if (status == UF_OK && *best != UF_NONE && !search->candidates[*best].is_proved) {
        search->chosen[0] = *best; /* proves the winner as the others were, gaps included */
        search->chosen_count = 1;
        status = run_stage(search, search_alone, error);
    }
    choose_reported(search);
    return status == UF_OK ? run_stage(search, run_freely, error) : status;
}

static int compare_entries(const void *left, const void *right)
{
    const uf_tune_entry *a = left, *b = right;
    if (a->run.is_complete != b->run.is_complete) {
        return a->run.is_complete ? -1 : 1;
    }
    if (a->run_limit_bytes != b->run_limit_bytes) {
        return a->run_limit_bytes < b->run_limit_bytes ? -1 : 1;
    }
    return compare_runs(a, b);
}

static uf_status make_entries(uf_search *search, uint32_t baseline, uint32_t best, uf_error *error)
{
    uf_tune_result *result = search->result;
    result->entries = calloc(result->grid.count + 1u, sizeof *result->entries);
    if (result->entries == NULL) {
        return uf__error_set(error, UF_ERROR_HOST_MEMORY, "no memory for the result");
    }
    for (uint32_t i = 0; i < result->grid.count; i++) {
        const uf_candidate *candidate = &search->candidates[i];
        result->tried_count += candidate->replay_count > 0;
        result->replay_count += candidate->replay_count;
        result->event_count += candidate->event_count;
        if (candidate->is_reported && candidate->replay_count > 0) {
            result->entries[result->entry_count++] = candidate->entry;
        }
    }
    qsort(result->entries, result->entry_count, sizeof *result->entries, compare_entries);
    result->baseline = result->best = UF_NONE;
    for (uint32_t i = 0; i < result->entry_count; i++) {
        result->baseline = result->entries[i].point == baseline ? i : result->baseline;
        result->best = result->entries[i].point == best ? i : result->best;
    }
    return UF_OK;
}

static double now_s(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* The floor of all programs together, and what the recordings tried in vain. */
static uf_status measure_floor(uf_search *search, uf_error *error)
{
    for (uint32_t i = 0; i < search->program_count; i++) {
        uf_replay_result played;
        uf_status status = uf_replay_run(search->programs[i], NULL, &played, error);
        if (status != UF_OK && status != UF_ERROR_HAZARD) {
            return status;
        }
        if (status == UF_OK && played.peak_live_bytes > search->result->peak_live_bytes) {
            search->result->peak_live_bytes = played.peak_live_bytes;
        }
        search->result->recorded_oom_count +=
            uf_program_report_get(search->programs[i])->oom_count;
    }
    return UF_OK;
}

static uf_status check_conf(const char *conf, uf_error *error)
{
    const uf_conf_reading reading = {.is_at_import = true};
    uf_conf parsed;
    uf__conf_init(&parsed);
    return uf__conf_read(&parsed, conf, &reading, NULL, error);
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
                        .sync_ms = options->sync_ms < 0.0 ? UF_TUNE_SYNC_MS : options->sync_ms};
    bool has_limit = options->limit_bytes != 0 || options->card_bytes == 0;
    const char *today = options->conf != NULL ? options->conf : uf_program_conf(programs[0]);
    uint32_t baseline = UF_NONE, best = UF_NONE;
    uf_status status = options->conf != NULL ? check_conf(today, error) : UF_OK;
    if (status == UF_OK) {
        status = uf__grid_init(&result->grid, options->grammar, has_limit);
    }
    if (status == UF_OK && check_conf(today, NULL) == UF_OK) {
        status = uf__grid_add(&result->grid, today, &baseline);
    }
    if (status == UF_OK) {
        search.candidates = calloc(result->grid.count, sizeof *search.candidates);
        search.chosen = calloc(result->grid.count, sizeof *search.chosen);
        bool is_good = search.candidates != NULL && search.chosen != NULL;
        status = is_good ? measure_floor(&search, error) : UF_ERROR_HOST_MEMORY;
    }
    if (status == UF_OK) {
        status = search_all(&search, baseline, &best, error);
        result->is_interrupted = status == UF_ERROR_INTERRUPTED;
        status = result->is_interrupted ? UF_OK : status;
    }
    if (status == UF_OK) {
        if (best == UF_NONE && result->is_interrupted) {
            best = best_alive(&search);
        }
        status = make_entries(&search, baseline, best, error);
    }
    free(search.candidates);
    free(search.chosen);
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
    memset(result, 0, sizeof *result);
}

uint64_t uf__tune_card(uint64_t limit_bytes, uint64_t allowance_bytes)
{
    static const uint64_t sizes_gib[] = {4, 6, 8, 10, 11, 12, 16, 20, 24, 32, 48, 80};
    for (size_t i = 0; i < sizeof sizes_gib / sizeof sizes_gib[0]; i++) {
        uint64_t card_bytes = sizes_gib[i] << 30;
        if (card_bytes >= allowance_bytes && card_bytes - allowance_bytes >= limit_bytes) {
            return card_bytes;
        }
    }
    return 0;
}
