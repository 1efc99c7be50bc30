/* SPDX-License-Identifier: MIT
 *
 * The command line of `unfrag replay`: options as given, and checked for what can be checked before
 * the recording is read. Knows nothing of how a replay is done. */
#ifndef CLI_REPLAY_OPTIONS_H
#define CLI_REPLAY_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "exit_code.h"

typedef enum replay_policy { REPLAY_TORCH, REPLAY_UNFRAG } replay_policy;
typedef enum replay_cost { REPLAY_COST_H200, REPLAY_COST_A100 } replay_cost;
typedef enum replay_on_oom { REPLAY_STOP, REPLAY_SKIP } replay_on_oom;

/* Texts are borrowed from argv. */
typedef struct replay_options {
    const char *input;
    replay_policy policy;
    const char *conf;     /* NULL = as recorded */
    uint64_t limit_bytes; /* 0 = none given */
    uint64_t card_bytes;  /* 0 = none given */
    uint64_t total_bytes; /* 0 = none given */
    bool has_device;
    int32_t device;
    uint64_t from_event; /* first event to report on */
    uint64_t to_event;   /* the first event not played; 0 = the end */
    uint32_t repeat_count;
    bool has_shuffle;
    uint64_t shuffle_seed;
    bool has_on_oom;
    replay_on_oom on_oom;
    bool has_lag;
    uint64_t lag_ms; /* how far the device is behind; the unfrag policy only */
    replay_cost cost;
    bool is_verify;
    const char *stats_path; /* NULL = NAME.stats.json beside the recording, if it is there */
    bool is_summary;
    bool is_compare;
    bool is_json;
} replay_options;

/* Fills *options. Returns CLI_EXIT_DONE, or CLI_EXIT_USAGE after the error was told; --help ends
 * the program. */
cli_exit replay_options_parse(int argc, char **argv, replay_options *options);

#endif
