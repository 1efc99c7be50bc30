/* SPDX-License-Identifier: MIT
 *
 * Reads NAME.stats.json with jansson and compares it key by key. */
#include "replay_stats.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define SYNC_KEY "num_sync_all_streams"

static uf_status load(const char *path, json_t **root, uf_error *error)
{
    FILE *file = fopen(path, "rbe");
    if (file == NULL) {
        return uf__error_set(error, UF_ERROR_IO, "%s: %s", path, strerror(errno));
    }
    json_error_t cause;
    json_t *found = json_loadf(file, JSON_REJECT_DUPLICATES, &cause);
    bool is_read = ferror(file) == 0;
    fclose(file);
    if (!is_read) {
        return uf__error_set(error, UF_ERROR_IO, "%s: reading failed", path);
    }
    if (found == NULL) {
        return uf__error_set(error, UF_ERROR_BAD_INPUT, "%s: no valid JSON: line %d: %s", path,
                             cause.line, cause.text);
    }
    *root = found;
    return UF_OK;
}

uf_status replay_recorded_read(const char *path, replay_recorded *recorded, uf_error *error)
{
    memset(recorded, 0, sizeof *recorded);
    json_t *root = NULL;
    uf_status status = load(path, &root, error);
    if (status != UF_OK) {
        return status;
    }
    size_t found_count = 0;
    recorded->has_key = calloc(uf_stats_count(), 1);
    if (recorded->has_key == NULL) {
        json_decref(root);
        return uf__error_set(error, UF_ERROR_HOST_MEMORY, "no host memory for statistics");
    }
    const char *key;
    for (size_t i = 0; uf_stats_entry(&recorded->stats, i, &key, NULL); i++) {
        const json_t *value = json_object_get(root, key);
        if (json_is_integer(value) &&
            uf_stats_set(&recorded->stats, key, json_integer_value(value))) {
            recorded->has_key[i] = 1;
            found_count += 1;
        }
    }
    json_decref(root);
    if (found_count == 0) {
        replay_recorded_fini(recorded);
        return uf__error_set(error, UF_ERROR_BAD_INPUT,
                             "%s: none of the keys of torch.cuda.memory_stats() is in it", path);
    }
    recorded->is_there = true;
    return UF_OK;
}

void replay_recorded_fini(replay_recorded *recorded)
{
    free(recorded->has_key);
    memset(recorded, 0, sizeof *recorded);
}

void replay_stats_compare(const replay_recorded *recorded, const uf_stats *model,
                          replay_stats_comparison *comparison)
{
    memset(comparison, 0, sizeof *comparison);
    const char *key;
    int64_t wanted;
    for (size_t i = 0; uf_stats_entry(&recorded->stats, i, &key, &wanted); i++) {
        int64_t got;
        if (!recorded->has_key[i] || !uf_stats_find(model, key, &got)) {
            continue;
        }
        bool is_sync = strcmp(key, SYNC_KEY) == 0;
        if (is_sync) {
            comparison->sync_recorded = wanted;
            comparison->sync_model = got;
        }
        comparison->compared_count += 1;
        if (got == wanted || (is_sync && got < wanted)) {
            comparison->equal_count += 1;
        } else if (comparison->first_difference[0] == '\0') {
            snprintf(comparison->first_difference, sizeof comparison->first_difference,
                     "%s: recorded %" PRId64 ", replayed %" PRId64, key, wanted, got);
        }
    }
}
