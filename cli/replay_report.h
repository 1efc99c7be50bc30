/* SPDX-License-Identifier: MIT
 *
 * What `unfrag replay` shows of one run, as text or JSON. Decides nothing: the verdict comes with
 * the view. */
#ifndef CLI_REPLAY_REPORT_H
#define CLI_REPLAY_REPORT_H

#include <stdbool.h>

#include <unfrag/replay.h>

#include "input.h"
#include "json.h"
#include "replay_options.h"
#include "replay_stats.h"

/* Everything a report draws from; all pointers are borrowed for the call. */
typedef struct replay_view {
    const replay_options *options;
    const cli_input *input;
    const uf_trace *trace;
    const uf_program *program;
    const uf_program_report *followed; /* what following the recording showed */
    uint32_t device_position;          /* in trace->devices */
    uf_replay_options run;             /* what was played under */
    bool is_limit_recorded;            /* run.limit_bytes is the recording's own */
    uint64_t limit_bytes;         /* in force: the run's, or what its settings make; 0 = none */
    uint64_t recorded_peak_bytes; /* of reserved bytes, by the recording's own events */
    uf_replay_result result;
    const replay_recorded *recorded; /* statistics to compare with, if is_there */
    replay_stats_comparison comparison;
    bool is_compared;            /* comparison is filled */
    bool is_as_recorded;         /* nothing was changed: the figures are the recording's own */
    uint64_t first_recorded_oom; /* an event, or UF_EVENT_NONE; set if as recorded or --verify */
    bool is_good;                /* the verdict: fits, or with --verify is equal */
    int64_t read_ns, prepare_ns;
} replay_view;

/* Prints the report to stdout. Returns false if it could not be formed (host memory). */
bool replay_report_text(const replay_view *view);
bool replay_report_json(const replay_view *view);

/* Writes "limit_bytes" and "card_bytes"; 0 = none, written as null. */
void replay_bounds_json(cli_json *json, uint64_t card_bytes, uint64_t limit_bytes);

/* Writes "is_exact" and "exact_until_event". */
void replay_exact_json(cli_json *json, const replay_view *view);

/* The table of torch.cuda.memory_summary(). */
bool replay_report_summary(const uf_stats *stats, int32_t device);

/* Is there something that the model should follow to the end, and does not? */
bool replay_is_inexact(const replay_view *view);

/* One line about it; nothing if all is exact. */
void replay_print_inexact(const replay_view *view);

/* Was the unfrag policy played? */
static inline bool replay_is_paged(const replay_view *view)
{
    return view->run.policy == UF_POLICY_UNFRAG;
}

/* The settings string that was played: that of --conf, else the recording's; "" = defaults. */
const char *replay_conf(const replay_view *view);

/* As --cost takes it. */
const char *replay_cost_name(const replay_view *view);

/* Driver time that is neither the first mapping of a page nor what empty_cache calls asked for. */
double replay_moving_ms(const uf_replay_result *result);

/* (reserved - live) / live in percent: what was held beyond the floor. */
double replay_waste_percent(const uf_replay_result *result);

#endif
