/* SPDX-License-Identifier: MIT
 *
 * One program under several allocator settings, for the comparison in a report: today's, the
 * popular ones, the unfrag policy, and with a search the best. What each does is src/advise/'s
 * business. Owns its array. */
#ifndef UF_REPORT_SETTINGS_H
#define UF_REPORT_SETTINGS_H

#include "advise/tune.h"

typedef enum uf_effort {
    UF_EFFORT_NONE,
    UF_EFFORT_PEAKS,  /* one replay each, without a limit */
    UF_EFFORT_FEW,    /* and the smallest limit and card of three: see uf__settings_effort */
    UF_EFFORT_LIMITS, /* and of each */
    UF_EFFORT_SEARCH  /* as `tune` does */
} uf_effort;

/* What takes about a second for that many events: a smallest limit is some 14 replays. Of three it
 * is searched where there are too many for all: today's settings, expandable segments, and up to
 * 600 000 events the unfrag policy. */
uf_effort uf__settings_effort(uint64_t event_count);

typedef struct uf_settings_row {
    char *conf; /* owned; "" = PyTorch's defaults, or none: the unfrag policy */
    bool is_today, is_best, is_unfrag;
    bool is_undefined; /* the settings lead to what PyTorch leaves undefined */
    bool has_peak, has_smallest;
    uint64_t peak_reserved_bytes; /* without a limit */
    uint64_t smallest_limit_bytes;
    uint64_t card_bytes; /* the smallest card; 0 = none or unknown */
    /* At the smallest limit, or without one where that was not searched. */
    uint64_t device_syncs, retry_count;
    double device_ms;
} uf_settings_row;

typedef struct uf_settings {
    uf_effort effort;
    uf_settings_row *rows; /* needs least first, where that is known; the unfrag policy last */
    uint32_t count;
    uint64_t peak_live_bytes;
    uint64_t allowance_bytes; /* of a card, left to others */
    uint64_t replay_count;
    bool is_interrupted;
} uf_settings;

typedef struct uf_settings_options {
    uf_effort effort;
    uint64_t event_count; /* of the recording: how much is worth its time */
    const char *conf;     /* today's; NULL = as recorded */
    uint64_t total_bytes;
    uint32_t thread_count; /* 0 = one per core */
    /* Called after each replay, from any thread but one at a time; false stops. May be NULL. */
    bool (*progress)(void *context, uint64_t done, uint64_t total);
    void *progress_context;
} uf_settings_options;

/* UF_OK; UF_ERROR_CONF (options->conf); UF_ERROR_INTERRUPTED; UF_ERROR_HOST_MEMORY. fini in any
 * case. */
uf_status uf__settings_init(uf_settings *settings, const uf_program *program,
                            const uf_settings_options *options, uf_error *error) UF_MUST_USE;
void uf__settings_fini(uf_settings *settings);

/* The first row of that kind, or NULL. */
const uf_settings_row *uf__settings_today(const uf_settings *settings);
const uf_settings_row *uf__settings_unfrag(const uf_settings *settings);

/* The row that needs least; of those that need no more than 0.5 % above it, the one with the least
 * time in the driver. The unfrag policy aside. NULL if nothing is known. */
const uf_settings_row *uf__settings_best(const uf_settings *settings);

#endif
