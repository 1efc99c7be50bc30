/* SPDX-License-Identifier: MIT
 *
 * What one run of unfrag trial came to, the file that makes a trial resumable, and the sums over
 * runs of one setting. Knows no processes. */
#ifndef CLI_TRIAL_RESULT_H
#define CLI_TRIAL_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <unfrag/status.h>

/* Numbers that are not known are -1. */
typedef struct trial_run {
    size_t setting;  /* index */
    uint64_t number; /* of the setting, from 0 */
    bool is_failed;
    int exit_code, signal;
    double seconds;
    int64_t unit_count; /* lines that --unit matches; -1 without --unit */
    int64_t peak_reserved_bytes, peak_allocated_bytes, retry_count, oom_count;
} trial_run;

typedef struct trial_setting {
    const char *policy; /* "unfrag" or "torch"; NULL: PyTorch's own allocator */
    const char *conf;   /* "" = PyTorch's defaults */
    char name[160];     /* as shown and kept in the file */
} trial_setting;

typedef struct trial_results {
    trial_run *runs;
    size_t count, capacity;
} trial_results;

/* Names a setting: "default", its settings string, or "policy unfrag". */
void trial_setting_name(trial_setting *setting);

/* Appends. False: no host memory. */
bool trial_results_add(trial_results *results, const trial_run *run);
void trial_results_fini(trial_results *results);
/* Has this run been made? */
bool trial_results_has(const trial_results *results, size_t setting, uint64_t number);

/* Reads a file of lines of JSON as trial_run_write writes them; runs of settings that are not in
 * the list are left alone. what: the command and the limit, as text: a file of another is refused.
 * A file that is not there is an empty one. */
uf_status trial_results_read(trial_results *results, const char *path, const char *what,
                             const trial_setting *settings, size_t setting_count,
                             uf_error *error) UF_MUST_USE;
/* One line, flushed: what is written survives a kill. */
bool trial_run_write(FILE *stream, const trial_run *run, const trial_setting *setting);
bool trial_head_write(FILE *stream, const char *what);

/* Reads what the processes of a run wrote into folder (python/unfrag/trial.py) and removes it. */
void trial_numbers_read(const char *folder, trial_run *run);

/* Over the runs of one setting. Medians; -1 or NaN: no run knows it. */
typedef struct trial_summary {
    uint64_t run_count, failure_count, oom_run_count;
    double rate, rate_low, rate_high; /* of failures, with the 95 % interval of Wilson */
    double seconds;                   /* of runs that did not fail */
    double unit_count, peak_reserved_bytes, retry_count;
} trial_summary;

void trial_summarise(const trial_results *results, size_t setting, trial_summary *summary);

#endif
