/* SPDX-License-Identifier: MIT
 *
 * Runs of one setting, and the bisection over limits. */
#include "advise/probe.h"

#include "base/error.h"

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + UF_PROBE_GRANULE_BYTES - 1) / UF_PROBE_GRANULE_BYTES * UF_PROBE_GRANULE_BYTES;
}

static void add_played(uf_probe_run *run, const uf_replay_result *played, uint32_t program)
{
    bool is_larger = played->peak_reserved_bytes > run->peak_reserved_bytes;
    run->peak_reserved_bytes = is_larger ? played->peak_reserved_bytes : run->peak_reserved_bytes;
    run->device_calls += played->device_calls;
    run->device_syncs += played->device_syncs;
    run->retry_count += played->retry_count;
    run->device_ms += played->device_ms;
    run->stream_wait_count += played->stream_wait_count;
    if (played->peak_frozen_bytes > run->peak_frozen_bytes) {
        run->peak_frozen_bytes = played->peak_frozen_bytes;
    }
    if (played->longest_stall_ms > run->longest_move_ms) {
        run->longest_move_ms = played->longest_stall_ms;
    }
    run->moving_ms += played->device_ms - played->device_first_ms - played->device_emptied_ms;
    bool is_timed = run->stream_wait_ms >= 0.0 && played->stream_wait_ms >= 0.0;
    bool is_longer = played->longest_stream_wait_ms > run->longest_stream_wait_ms;
    double longest_ms = is_longer ? played->longest_stream_wait_ms : run->longest_stream_wait_ms;
    run->stream_wait_ms = is_timed ? run->stream_wait_ms + played->stream_wait_ms : -1.0;
    run->longest_stream_wait_ms = is_timed ? longest_ms : -1.0;
    if (played->has_oom) {
        run->is_complete = false;
        run->failed_program = program;
        run->oom = played->first_oom;
    }
}

uf_status uf__probe_run(uf_probe *probe, const uf_place *place, uf_probe_run *run, uf_error *error)
{
    const uf_replay_options options = {.struct_size_bytes = sizeof options,
                                       .conf = probe->conf,
                                       .policy = probe->policy,
                                       .limit_bytes = place->limit_bytes,
                                       .card_bytes = place->card_bytes,
                                       .total_bytes = place->total_bytes != 0 ? place->total_bytes
                                                                              : probe->total_bytes};
    uf_probe_run made = {.has_run = true, .is_complete = true};
    for (uint32_t i = 0; i < probe->program_count && made.is_complete; i++) {
        uf_replay_result played;
        uf_status status = uf_replay_run(probe->programs[i], &options, &played, error);
        if (status != UF_OK && status != UF_ERROR_HAZARD) {
            return status;
        }
        probe->replay_count++;
        if (status == UF_OK) {
            probe->event_count += played.event_count;
            add_played(&made, &played, i);
        } else {
            made.is_complete = false;
            made.is_undefined = probe->is_hazardous = true;
            made.failed_program = i;
        }
        if (probe->poll != NULL && !probe->poll(probe->poll_context)) {
            return uf__error_set(error, UF_ERROR_INTERRUPTED, "interrupted");
        }
    }
    made.stall_ms = made.device_ms + probe->sync_ms * (double)made.device_syncs +
                    (made.stream_wait_ms > 0.0 ? made.stream_wait_ms : 0.0);
    *run = made;
    return UF_OK;
}

static uf_status run_at(uf_probe *probe, uint64_t limit_bytes, uf_probe_run *run, uf_error *error)
{
    const uf_place place = {.limit_bytes = limit_bytes};
    return uf__probe_run(probe, &place, run, error);
}

/* Limits that were seen to be kept, so that none is tried twice. */
enum { KEPT_CAPACITY = 64 };

typedef struct uf_kept {
    uint64_t limits_bytes[KEPT_CAPACITY];
    uint32_t count;
} uf_kept;

static void note_kept(uf_kept *kept, uint64_t limit_bytes)
{
    if (kept->count < KEPT_CAPACITY) {
        kept->limits_bytes[kept->count++] = limit_bytes;
    }
}

static bool was_kept(const uf_kept *kept, uint64_t limit_bytes)
{
    bool is_there = false;
    for (uint32_t i = 0; i < kept->count; i++) {
        is_there |= kept->limits_bytes[i] == limit_bytes;
    }
    return is_there;
}

/* Between a failing limit and a completing one, whose run is smallest->at. */
static uf_status bisect(uf_probe *probe, uint64_t low_bytes, uint64_t high_bytes,
                        uf_smallest *smallest, uf_kept *kept, uf_error *error)
{
    uf_status status = UF_OK;
    while (status == UF_OK && high_bytes - low_bytes > UF_PROBE_GRANULE_BYTES) {
        uint64_t middle_bytes = round_up(low_bytes + (high_bytes - low_bytes) / 2);
        middle_bytes -= middle_bytes >= high_bytes ? UF_PROBE_GRANULE_BYTES : 0;
        uf_probe_run run = {0};
        status = run_at(probe, middle_bytes, &run, error);
        if (status == UF_OK && run.is_complete) {
            high_bytes = middle_bytes;
            smallest->at = run;
            note_kept(kept, middle_bytes);
        } else if (status == UF_OK) {
            low_bytes = middle_bytes;
            smallest->below = run;
        }
    }
    smallest->limit_bytes = high_bytes;
    smallest->is_known = true;
    smallest->is_at_most = status != UF_OK;
    return status;
}

uint64_t uf__probe_least(const uf_probe *probe)
{
    return round_up(probe->bound_bytes > probe->floor_bytes ? probe->bound_bytes
                                                            : probe->floor_bytes);
}

/* A limit that is kept, from the peak without a limit (the unfrag policy: from the floor) upwards;
 * 0 if there is none. *failed_bytes: the largest that was seen to fail, 0 if none was. */
static uf_status find_ceiling(uf_probe *probe, uf_smallest *smallest, uint64_t *ceiling_bytes,
                              uint64_t *failed_bytes, uf_error *error)
{
    uf_status status = run_at(probe, 0, &smallest->unlimited, error);
    *ceiling_bytes = *failed_bytes = 0;
    if (status != UF_OK || !smallest->unlimited.is_complete) {
        return status;
    }
    uint64_t peak_bytes = round_up(smallest->unlimited.peak_reserved_bytes);
    uint64_t least_bytes = uf__probe_least(probe);
    bool is_rising = probe->policy == UF_POLICY_UNFRAG;
    uint64_t at_bytes = peak_bytes > least_bytes && !is_rising ? peak_bytes : least_bytes;
    if (probe->is_plain) {
        smallest->at = smallest->unlimited;
        *ceiling_bytes = at_bytes;
        return UF_OK;
    }
    for (uint64_t step = UF_PROBE_GRANULE_BYTES; status == UF_OK && step <= peak_bytes; step *= 2) {
        status = run_at(probe, at_bytes, &smallest->at, error);
        if (status == UF_OK && smallest->at.is_complete) {
            *ceiling_bytes = at_bytes;
            break;
        }
        *failed_bytes = at_bytes;
        smallest->below = smallest->at;
        at_bytes += step;
    }
    return status;
}

/* What is one granule below was not run if it is below the bound or the floor. It is shown to
 * people, so it is run. */
static uf_status show_below(uf_probe *probe, uf_smallest *smallest, uf_error *error)
{
    uf_status status = UF_OK;
    uint64_t floor_bytes = round_up(probe->floor_bytes);
    while (status == UF_OK && !smallest->below.has_run &&
           smallest->limit_bytes > UF_PROBE_GRANULE_BYTES) {
        uf_probe_run run = {0};
        status = run_at(probe, smallest->limit_bytes - UF_PROBE_GRANULE_BYTES, &run, error);
        smallest->is_floor = run.is_complete && smallest->limit_bytes <= floor_bytes;
        if (status == UF_OK && run.is_complete && !smallest->is_floor) {
            smallest->limit_bytes -= UF_PROBE_GRANULE_BYTES;
            smallest->at = run;
        } else if (status == UF_OK) {
            smallest->below = run;
        }
    }
    return status;
}

/* Limits above are tried at distances that double, unless the bisection was there. */
static uf_status climb_over_gaps(uf_probe *probe, uint64_t ceiling_bytes,
                                 const uf_probe_run *at_ceiling, uf_smallest *smallest,
                                 uf_kept *kept, uf_error *error)
{
    uf_status status = UF_OK;
    uint64_t step = UF_PROBE_GRANULE_BYTES;
    while (status == UF_OK && smallest->limit_bytes + step < ceiling_bytes) {
        uf_probe_run run = {0};
        uint64_t at_bytes = smallest->limit_bytes + step;
        bool is_tried = was_kept(kept, at_bytes);
        step *= 2;
        if (is_tried) {
            continue;
        }
        status = run_at(probe, at_bytes, &run, error);
        if (status == UF_OK && !run.is_complete) {
            smallest->has_gaps = true;
            smallest->is_floor = false;
            smallest->below = run;
            smallest->at = *at_ceiling;
            status = bisect(probe, at_bytes, ceiling_bytes, smallest, kept, error);
            step = UF_PROBE_GRANULE_BYTES;
        }
    }
    return status;
}

uf_status uf__probe_smallest(uf_probe *probe, uf_smallest *smallest, uf_error *error)
{
    *smallest = (uf_smallest){0};
    uint64_t ceiling_bytes, failed_bytes;
    uf_status status = find_ceiling(probe, smallest, &ceiling_bytes, &failed_bytes, error);
    if (status != UF_OK || ceiling_bytes == 0) {
        return status;
    }
    uf_probe_run at_ceiling = smallest->at;
    uf_kept kept = {.count = 0};
    uint64_t low_bytes = uf__probe_least(probe);
    low_bytes = low_bytes < ceiling_bytes ? low_bytes : ceiling_bytes;
    low_bytes -= low_bytes == 0 ? 0 : UF_PROBE_GRANULE_BYTES;
    if (probe->policy == UF_POLICY_UNFRAG && failed_bytes > low_bytes) {
        low_bytes = failed_bytes;
    } else {
        smallest->below = (uf_probe_run){0};
    }
    status = bisect(probe, low_bytes, ceiling_bytes, smallest, &kept, error);
    if (status == UF_OK) {
        status = show_below(probe, smallest, error);
    }
    uint64_t peak_bytes = round_up(smallest->unlimited.peak_reserved_bytes);
    if (status == UF_OK && probe->policy == UF_POLICY_UNFRAG && ceiling_bytes < peak_bytes) {
        ceiling_bytes = peak_bytes;
        status = run_at(probe, ceiling_bytes, &at_ceiling, error);
        smallest->has_gaps = status == UF_OK && !at_ceiling.is_complete;
    }
    return status == UF_OK && at_ceiling.is_complete
               ? climb_over_gaps(probe, ceiling_bytes, &at_ceiling, smallest, &kept, error)
               : status;
}

uf_status uf__probe_card(uf_probe *probe, uint64_t limit_bytes, uint64_t allowance_bytes,
                         bool is_limited, uint64_t *card_bytes, uf_error *error)
{
    static const uint64_t sizes_gib[] = {4, 6, 8, 10, 11, 12, 16, 20, 24, 32, 48, 80};
    uf_status status = UF_OK;
    *card_bytes = 0;
    for (size_t i = 0; i < sizeof sizes_gib / sizeof sizes_gib[0]; i++) {
        uint64_t total_bytes = sizes_gib[i] << 30;
        if (total_bytes <= allowance_bytes || total_bytes - allowance_bytes < limit_bytes) {
            continue;
        }
        uint64_t rest_bytes = total_bytes - allowance_bytes;
        const uf_place place = {.limit_bytes = is_limited ? rest_bytes : 0,
                                .card_bytes = rest_bytes,
                                .total_bytes = total_bytes};
        uf_probe_run run = {0};
        status = uf__probe_run(probe, &place, &run, error);
        if (status != UF_OK || run.is_complete) {
            *card_bytes = status == UF_OK ? total_bytes : 0;
            break;
        }
    }
    return status;
}
