/* SPDX-License-Identifier: MIT
 *
 * The stages of the search and the choice among settings. See tune.h. */
#include "advise/search.h"

#include <string.h>

#include "advise/workers.h"
#include "base/error.h"

/* A job: the smallest limit of one setting, on its own. */
static uf_status search_alone(void *context, uint32_t index, uf_error *error)
{
    const uf_search *search = context;
    uf_candidate *candidate = &search->candidates[search->chosen[index]];
    uf_status status = uf__probe_smallest(&candidate->probe, &candidate->smallest, error);
    candidate->is_proved = status == UF_OK;
    return status;
}

/* A job: the smallest card. */
static uf_status search_card(void *context, uint32_t index, uf_error *error)
{
    const uf_search *search = context;
    uint32_t point = search->chosen[index];
    uf_candidate *candidate = &search->candidates[point];
    return !candidate->smallest.is_known
               ? UF_OK
               : uf__probe_card(&candidate->probe, candidate->smallest.limit_bytes,
                                search->options->allowance_bytes,
                                search->result->grid.points[point].needs_limit,
                                &candidate->card_bytes, error);
}

/* Does what is known decide the run at a limit? */
static bool is_decided(const uf_candidate *candidate, uint64_t limit_bytes, bool *is_kept)
{
    *is_kept = false;
    if (limit_bytes < uf__probe_least(&candidate->probe) ||
        limit_bytes <= candidate->failed_bytes) {
        return true;
    }
    if (candidate->is_proved) {
        *is_kept = candidate->smallest.is_known && candidate->smallest.limit_bytes <= limit_bytes;
        return !*is_kept || candidate->smallest.limit_bytes == limit_bytes;
    }
    return false;
}

/* A job: one setting at the stage's limit, without a card. */
static uf_status run_at_limit(void *context, uint32_t index, uf_error *error)
{
    const uf_search *search = context;
    uf_candidate *candidate = &search->candidates[search->chosen[index]];
    uint64_t limit_bytes = search->place.limit_bytes;
    bool is_kept;
    uf_status status = UF_OK;
    if (candidate->run.has_run && candidate->run_limit_bytes == limit_bytes) {
        return UF_OK;
    }
    if (!is_decided(candidate, limit_bytes, &is_kept)) {
        status = uf__probe_run(&candidate->probe, &search->place, &candidate->run, error);
    } else if (is_kept) {
        candidate->run = candidate->smallest.at;
    } else {
        candidate->run = (uf_probe_run){.has_run = true};
    }
    if (status != UF_OK) {
        return status;
    }
    candidate->run_limit_bytes = limit_bytes;
    uint64_t *mark = candidate->run.is_complete ? &candidate->kept_bytes : &candidate->failed_bytes;
    bool is_news = *mark == 0 || (limit_bytes < *mark) == candidate->run.is_complete;
    *mark = is_news ? limit_bytes : *mark;
    return UF_OK;
}

/* A job: one setting at the limit or on the card asked for. Garbage collection without a limit
 * would be inert: it gets one as large as the card. */
static uf_status run_there(void *context, uint32_t index, uf_error *error)
{
    const uf_search *search = context;
    uint32_t point = search->chosen[index];
    uf_candidate *candidate = &search->candidates[point];
    uf_place place = search->place;
    if (place.limit_bytes == 0 && search->result->grid.points[point].needs_limit) {
        place.limit_bytes = place.card_bytes;
    }
    candidate->run_limit_bytes = place.limit_bytes;
    uint64_t room_bytes =
        place.limit_bytes != 0 && (place.card_bytes == 0 || place.limit_bytes < place.card_bytes)
            ? place.limit_bytes
            : place.card_bytes;
    if (room_bytes < candidate->probe.bound_bytes && !candidate->is_reported) {
        candidate->run = (uf_probe_run){.has_run = true};
        return UF_OK;
    }
    return uf__probe_run(&candidate->probe, &place, &candidate->run, error);
}

/* Runs a job over the chosen grid points. */
static uf_status run_stage(uf_search *search, uf_worker_job job, uf_error *error)
{
    return uf__workers_run(search->options->thread_count, search->chosen_count, job, search, error);
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

/* The reported ones, and what stands for them. */
static void choose_reported(uf_search *search)
{
    search->chosen_count = 0;
    for (uint32_t i = 0; i < search->result->grid.count; i++) {
        if (search->candidates[i].is_reported && search->candidates[i].twin == UF_NONE) {
            search->chosen[search->chosen_count++] = i;
        }
    }
}

static bool is_eligible(const uf_candidate *candidate)
{
    return candidate->is_alive && candidate->run.is_complete && !candidate->probe.is_hazardous;
}

bool uf__search_is_simpler(const uf_search *search, uint32_t a, uint32_t b)
{
    const uf_grid_point *left = &search->result->grid.points[a];
    const uf_grid_point *right = &search->result->grid.points[b];
    if (left->needs_limit != right->needs_limit && search->options->limit_bytes == 0) {
        return right->needs_limit; /* a limit would have to be set, too */
    }
    if (left->option_count != right->option_count) {
        return left->option_count < right->option_count;
    }
    size_t left_length = strlen(left->conf), right_length = strlen(right->conf);
    return left_length != right_length ? left_length < right_length : a < b;
}

/* The best of the eligible candidates by their latest run; UF_NONE if there is none. */
static uint32_t pick(const uf_search *search)
{
    const uf_candidate *candidates = search->candidates;
    uint32_t count = search->result->grid.count, best = UF_NONE;
    uint32_t today =
        search->baseline == UF_NONE ? UF_NONE : uf__search_origin(search, search->baseline);
    double least_ms = -1.0;
    for (uint32_t i = 0; i < count; i++) {
        bool is_less = least_ms < 0.0 || candidates[i].run.stall_ms < least_ms;
        least_ms = is_eligible(&candidates[i]) && is_less ? candidates[i].run.stall_ms : least_ms;
    }
    double slack_ms = least_ms * UF_TUNE_STALL_SLACK;
    double unnoticed_ms = search->recording_ms * UF_TUNE_TIME_SLACK;
    double most_ms = least_ms + (slack_ms > unnoticed_ms ? slack_ms : unnoticed_ms);
    double most_today_ms =
        least_ms + UF_TUNE_TODAY_MS > most_ms ? least_ms + UF_TUNE_TODAY_MS : most_ms;
    uint64_t least_bytes = UINT64_MAX;
    for (uint32_t i = 0; i < count; i++) {
        bool is_less = is_eligible(&candidates[i]) && candidates[i].run.stall_ms <= most_ms &&
                       candidates[i].run.peak_reserved_bytes < least_bytes;
        least_bytes = is_less ? candidates[i].run.peak_reserved_bytes : least_bytes;
    }
    double most_bytes = (double)least_bytes * (1.0 + UF_TUNE_RESERVED_SLACK);
    for (uint32_t i = 0; i < count; i++) {
        bool is_good = is_eligible(&candidates[i]) &&
                       candidates[i].run.stall_ms <= (i == today ? most_today_ms : most_ms) &&
                       (double)candidates[i].run.peak_reserved_bytes <= most_bytes;
        if (is_good && (best == UF_NONE || i == today ||
                        (best != today && uf__search_is_simpler(search, i, best)))) {
            best = i;
        }
    }
    return best;
}

/* Keeps alive what completed in the latest stage, if anything did that may be chosen. */
static bool keep_complete(uf_search *search)
{
    bool has_complete = false;
    for (uint32_t i = 0; i < search->chosen_count; i++) {
        has_complete |= is_eligible(&search->candidates[search->chosen[i]]);
    }
    for (uint32_t i = 0; i < search->chosen_count && has_complete; i++) {
        uf_candidate *candidate = &search->candidates[search->chosen[i]];
        candidate->is_alive = is_eligible(candidate);
    }
    return has_complete;
}

/* The smallest limit among the proved settings; UINT64_MAX if there is none. */
static uint64_t smallest_proved(const uf_search *search, uint32_t *point)
{
    uint64_t smallest_bytes = UINT64_MAX;
    *point = UF_NONE;
    for (uint32_t i = 0; i < search->result->grid.count; i++) {
        const uf_candidate *candidate = &search->candidates[i];
        bool is_good =
            candidate->is_proved && candidate->smallest.is_known && !candidate->probe.is_hazardous;
        if (is_good && candidate->smallest.limit_bytes < smallest_bytes) {
            smallest_bytes = candidate->smallest.limit_bytes;
            *point = i;
        }
    }
    return smallest_bytes;
}

static uint64_t with_slack(uint64_t bytes)
{
    uint64_t above = bytes + (uint64_t)((double)bytes * UF_TUNE_LIMIT_SLACK);
    return above / UF_PROBE_GRANULE_BYTES * UF_PROBE_GRANULE_BYTES;
}

/* A limit that counts as equal to `bytes`, but is not above today's smallest one. */
static uint64_t equal_limit(const uf_search *search, uint64_t bytes)
{
    uint64_t above_bytes = with_slack(bytes);
    if (search->baseline != UF_NONE) {
        const uf_candidate *today =
            &search->candidates[uf__search_origin(search, search->baseline)];
        if (today->smallest.is_known && today->smallest.limit_bytes < above_bytes) {
            above_bytes = today->smallest.limit_bytes;
        }
    }
    return above_bytes > bytes ? above_bytes : bytes;
}

static void revive(uf_search *search)
{
    for (uint32_t i = 0; i < search->result->grid.count; i++) {
        const uf_candidate *candidate = &search->candidates[i];
        search->candidates[i].is_alive = candidate->twin == UF_NONE &&
                                         !candidate->probe.is_hazardous &&
                                         (!candidate->is_proved || candidate->smallest.is_known);
    }
}

static uf_status run_alive(uf_search *search, uint64_t limit_bytes, uf_error *error)
{
    search->place = (uf_place){.limit_bytes = limit_bytes};
    choose_alive(search);
    return run_stage(search, run_at_limit, error);
}

/* Who goes first: of those alive that are not proved the one that kept the smallest limit, then the
 * one that reserved least there. UF_NONE if there is none. */
static uint32_t likeliest(const uf_search *search)
{
    uint32_t best = UF_NONE;
    for (uint32_t i = 0; i < search->result->grid.count; i++) {
        const uf_candidate *candidate = &search->candidates[i];
        if (!is_eligible(candidate) || candidate->is_proved) {
            continue;
        }
        const uf_candidate *other = best == UF_NONE ? NULL : &search->candidates[best];
        bool is_less = other == NULL || candidate->kept_bytes < other->kept_bytes ||
                       (candidate->kept_bytes == other->kept_bytes &&
                        candidate->run.peak_reserved_bytes < other->run.peak_reserved_bytes);
        best = is_less ? i : best;
    }
    return best;
}

/* Bisects one setting's limit between what it cannot keep and what it kept, to `enough_bytes`. */
static uf_status lower_one(uf_search *search, uint32_t point, uint64_t enough_bytes,
                           uint64_t *high_bytes, uf_error *error)
{
    const uf_candidate *candidate = &search->candidates[point];
    uint64_t low_bytes = uf__probe_least(&candidate->probe);
    low_bytes -= low_bytes == 0 ? 0 : UF_PROBE_GRANULE_BYTES;
    low_bytes = candidate->failed_bytes > low_bytes ? candidate->failed_bytes : low_bytes;
    uf_status status = UF_OK;
    while (status == UF_OK && *high_bytes > low_bytes && *high_bytes - low_bytes > enough_bytes) {
        uint64_t middle_bytes = low_bytes + (*high_bytes - low_bytes) / 2;
        middle_bytes = middle_bytes / UF_PROBE_GRANULE_BYTES * UF_PROBE_GRANULE_BYTES;
        search->place = (uf_place){.limit_bytes = middle_bytes};
        search->chosen[0] = point;
        search->chosen_count = 1;
        status = run_stage(search, run_at_limit, error);
        bool is_kept = status == UF_OK && is_eligible(candidate);
        *high_bytes = is_kept ? middle_bytes : *high_bytes;
        low_bytes = is_kept ? low_bytes : middle_bytes;
    }
    return status;
}

/* Stages 2 and 3: the smallest limit that any setting keeps, as far as single runs show; to a part
 * of what counts as equal. */
static uf_status search_smallest(uf_search *search, uint64_t *limit_bytes, uf_error *error)
{
    uint32_t point;
    *limit_bytes = smallest_proved(search, &point);
    uint64_t enough_bytes = (with_slack(*limit_bytes) - *limit_bytes) / 4;
    enough_bytes -= enough_bytes % UF_PROBE_GRANULE_BYTES;
    enough_bytes = enough_bytes == 0 ? UF_PROBE_GRANULE_BYTES : enough_bytes;
    revive(search);
    uf_status status = run_alive(search, equal_limit(search, *limit_bytes), error);
    bool has_any = status == UF_OK && keep_complete(search);
    while (status == UF_OK && has_any && (point = likeliest(search)) != UF_NONE) {
        status = lower_one(search, point, enough_bytes, limit_bytes, error);
        search->candidates[point].is_alive = false;
        has_any = false;
        if (status == UF_OK && *limit_bytes > enough_bytes) {
            status = run_alive(search, *limit_bytes - enough_bytes, error);
            has_any = status == UF_OK && keep_complete(search);
            *limit_bytes -= has_any ? enough_bytes : 0;
        }
    }
    return status;
}

static uf_status prove(uf_search *search, uint32_t point, uf_error *error)
{
    search->chosen[0] = point;
    search->chosen_count = 1;
    return search->candidates[point].is_proved ? UF_OK : run_stage(search, search_alone, error);
}

/* Is b, searched on its own, in nothing worse than a? */
static bool is_no_worse(const uf_candidate *b, const uf_candidate *a)
{
    return b->is_proved && b->smallest.is_known && !b->probe.is_hazardous &&
           b->smallest.limit_bytes <= a->smallest.limit_bytes &&
           b->smallest.at.stall_ms <= a->smallest.at.stall_ms &&
           b->smallest.unlimited.peak_reserved_bytes <= a->smallest.unlimited.peak_reserved_bytes;
}

/* The choice is made a little above the smallest limit. A setting that people know, or today's,
 * that is in nothing worse at its own smallest limit is taken instead. */
static void prefer_known(uf_search *search)
{
    for (uint32_t i = 0; i < search->result->grid.count && search->best != UF_NONE; i++) {
        const uf_candidate *candidate = &search->candidates[i];
        uint32_t today =
            search->baseline == UF_NONE ? UF_NONE : uf__search_origin(search, search->baseline);
        const uf_grid_point *known = &search->result->grid.points[i];
        const uf_grid_point *best = &search->result->grid.points[search->best];
        bool is_better_known =
            known->is_popular && !best->is_popular && (best->needs_limit || !known->needs_limit);
        bool is_other = i != search->best && search->best != today && candidate->twin == UF_NONE &&
                        (is_better_known || i == today);
        if (is_other && is_no_worse(candidate, &search->candidates[search->best])) {
            search->best = i;
        }
    }
}

/* Stage 4: the choice at a limit; a winner that its proof shows to need more, or to be hazardous,
 * is dropped for the next. */
static uf_status choose_at(uf_search *search, uint64_t limit_bytes, uf_error *error)
{
    revive(search);
    uf_status status = run_alive(search, limit_bytes, error);
    while (status == UF_OK && search->best == UF_NONE) {
        uint32_t point = pick(search);
        if (point == UF_NONE) {
            break;
        }
        uf_candidate *candidate = &search->candidates[point];
        status = prove(search, point, error);
        bool is_good = status == UF_OK && candidate->smallest.is_known &&
                       candidate->smallest.limit_bytes <= limit_bytes &&
                       !candidate->probe.is_hazardous;
        candidate->is_alive = is_good;
        search->best = is_good ? point : UF_NONE;
    }
    prefer_known(search);
    return status;
}

/* Where limits above the smallest one fail for all that keep it: everything that may be better than
 * the best of stage 1 is searched on its own. */
static uf_status choose_among_all(uf_search *search, uf_error *error)
{
    search->chosen_count = 0;
    for (uint32_t i = 0; i < search->result->grid.count; i++) {
        const uf_candidate *candidate = &search->candidates[i];
        if (!candidate->is_proved && candidate->kept_bytes != 0 && candidate->twin == UF_NONE) {
            search->chosen[search->chosen_count++] = i;
        }
    }
    uf_status status = run_stage(search, search_alone, error);
    uint32_t point;
    uint64_t limit_bytes = smallest_proved(search, &point);
    if (status == UF_OK) {
        status = choose_at(search, equal_limit(search, limit_bytes), error);
    }
    search->best = search->best == UF_NONE ? point : search->best;
    return status;
}

static uf_status search_freely(uf_search *search, uf_error *error)
{
    choose_reported(search);
    uf_status status = run_stage(search, search_alone, error);
    uint32_t point;
    if (status != UF_OK || smallest_proved(search, &point) == UINT64_MAX) {
        return status;
    }
    uint64_t limit_bytes = 0;
    status = search_smallest(search, &limit_bytes, error);
    if (status == UF_OK) {
        status = choose_at(search, equal_limit(search, limit_bytes), error);
    }
    return status == UF_OK && search->best == UF_NONE ? choose_among_all(search, error) : status;
}

uf_place uf__search_place(const uf_search *search)
{
    const uf_tune_options *options = search->options;
    return (uf_place){.limit_bytes = options->limit_bytes,
                      .card_bytes = options->card_bytes,
                      .total_bytes = options->total_bytes != 0        ? options->total_bytes
                                     : options->card_total_bytes != 0 ? options->card_total_bytes
                                                                      : options->card_bytes};
}

static uf_status search_there(uf_search *search, uf_error *error)
{
    revive(search);
    choose_alive(search);
    search->place = uf__search_place(search);
    uf_status status = run_stage(search, run_there, error);
    search->best = pick(search);
    if (status != UF_OK) {
        return status;
    }
    if (search->best != UF_NONE) {
        search->candidates[search->best].is_reported = true;
    }
    choose_reported(search);
    return run_stage(search, search_alone, error);
}

/* Interrupted: of all that is known to complete, the smallest limit; with a place the choice so far
 * stands. */
static uint32_t best_so_far(const uf_search *search)
{
    uint32_t best = UF_NONE;
    uint64_t best_bytes = UINT64_MAX;
    for (uint32_t i = 0; i < search->result->grid.count; i++) {
        const uf_candidate *candidate = &search->candidates[i];
        uint64_t bytes = candidate->smallest.is_known ? candidate->smallest.limit_bytes
                         : candidate->kept_bytes != 0 ? candidate->kept_bytes
                                                      : UINT64_MAX;
        if (!candidate->probe.is_hazardous && bytes < best_bytes) {
            best_bytes = bytes;
            best = i;
        }
    }
    return best;
}

uf_status uf__search_run(uf_search *search, uf_error *error)
{
    search->best = UF_NONE;
    bool has_place = uf__search_has_place(search);
    uf_status status = has_place ? search_there(search, error) : search_freely(search, error);
    if (status == UF_ERROR_INTERRUPTED && search->best == UF_NONE && !has_place) {
        search->best = best_so_far(search);
        if (search->best != UF_NONE && !search->candidates[search->best].smallest.is_known) {
            uf_candidate *candidate = &search->candidates[search->best];
            candidate->smallest = (uf_smallest){
                .is_known = true, .is_at_most = true, .limit_bytes = candidate->kept_bytes};
            if (candidate->run_limit_bytes == candidate->kept_bytes) {
                candidate->smallest.at = candidate->run;
            }
        }
    }
    if (search->best != UF_NONE) {
        search->candidates[search->best].is_reported = true;
    }
    if (status == UF_OK) {
        choose_reported(search);
        status = run_stage(search, search_card, error);
    }
    return status;
}
