/* SPDX-License-Identifier: MIT
 *
 * Recorded statistics (torch.cuda.memory_stats() as JSON) and their comparison with the model's.
 * Knows nothing of how either came to be. */
#ifndef CLI_REPLAY_STATS_H
#define CLI_REPLAY_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <unfrag/stats.h>
#include <unfrag/status.h>

typedef struct replay_recorded {
    bool is_there;
    char *has_key; /* by index of uf_stats_entry: the file had it; owned */
    uf_stats stats;
} replay_recorded;

/* Reads a file of statistics: an object whose keys are those of torch.cuda.memory_stats(); other
 * keys, and values that are no integers, are left out. Returns UF_OK; UF_ERROR_IO;
 * UF_ERROR_BAD_INPUT (no JSON object, or none of the keys); UF_ERROR_HOST_MEMORY. */
uf_status replay_recorded_read(const char *path, replay_recorded *recorded,
                               uf_error *error) UF_MUST_USE;
void replay_recorded_fini(replay_recorded *recorded);

typedef struct replay_stats_comparison {
    size_t compared_count;
    size_t equal_count;
    char first_difference[200]; /* "" if there is none */
    /* Flushes that released nothing leave no trace: the model may have fewer, never more. */
    int64_t sync_recorded, sync_model; /* num_sync_all_streams */
} replay_stats_comparison;

/* Compares every recorded key with the model's. */
void replay_stats_compare(const replay_recorded *recorded, const uf_stats *model,
                          replay_stats_comparison *comparison);

#endif
