/* SPDX-License-Identifier: MIT
 *
 * Making the grid.
 *
 *   plain segments    max_split_size_mb x max_non_split_rounding_mb x garbage_collection_threshold
 *                     roundup_power2_divisions x garbage_collection_threshold
 *                     large_segment_size_mb x garbage_collection_threshold
 *                     some max_split_size_mb x some of the two above
 *   expandable        roundup_power2_divisions, large_segment_size_mb
 *
 * Left out: garbage collection without a limit (inert) or with expandable segments (it ignores
 * them); max_split_size_mb with expandable segments (it makes large free blocks unusable for normal
 * requests) and pages above the default size (they may pass the limit by almost a page, which a
 * card would not allow); max_non_split_rounding_mb without max_split_size_mb (inert). What a
 * release does not know is left out by asking its own parser. */
#include "advise/grid.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { HEAD_CAPACITY = 128, TEXT_CAPACITY = 192 };

static const uint32_t split_sizes_mb[] = {20,  32,  48,  64,  96,   128, 192,
                                          256, 384, 512, 768, 1024, 2048};
static const uint32_t roundings_mb[] = {0, 256}; /* 0 = its default */
static const char *const thresholds[] = {"", "0.6", "0.8", "0.95"};
static const uint32_t divisions[] = {2, 4, 8, 16};
static const uint32_t large_segments_mb[] = {12, 32, 64, 128};
static const uint32_t expandable_segments_mb[] = {12}; /* pages; the default is 20 */
static const uint32_t mixed_splits_mb[] = {32, 64, 128, 256, 512};
static const char *const mixed_options[] = {
    "large_segment_size_mb:12", "roundup_power2_divisions:4", "roundup_power2_divisions:8"};

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

/* What stays the same while a grid is made. */
typedef struct maker {
    uf_grid *grid;
    uf_conf_grammar grammar;
    uint16_t release;
    bool has_limit;
    uf_status status;
} maker;

/* Must the release that will run it, and the replay, take the string? */
static uf_status read_conf(const char *text, uf_conf_grammar grammar, uint16_t release,
                           uf_grid_point *point, uf_error *error)
{
    const uf_conf_reading there = {.grammar = grammar, .release = release, .is_at_import = true};
    const uf_conf_reading here = {.is_at_import = true};
    uf_conf_report report;
    uf__conf_init(&point->values);
    uf_status status = uf__conf_read(&point->values, text, &there, NULL, error);
    uf__conf_init(&point->values);
    if (status == UF_OK) {
        status = uf__conf_read(&point->values, text, &here, &report, error);
    }
    if (status == UF_OK) {
        point->option_count = (uint32_t)__builtin_popcount(report.named);
        point->needs_limit =
            point->values.garbage_collection_threshold > 0.0 && !point->values.is_expandable;
    }
    return status;
}

uf_status uf__grid_add(uf_grid *grid, const char *conf, uf_conf_grammar grammar, uint16_t release,
                       uint32_t *index, uf_error *error)
{
    for (uint32_t i = 0; i < grid->count; i++) {
        if (strcmp(grid->points[i].conf, conf) == 0) {
            *index = i;
            return UF_OK;
        }
    }
    uf_grid_point point = {0};
    uf_status status = read_conf(conf, grammar, release, &point, error);
    if (status != UF_OK) {
        return status;
    }
    if (grid->count == grid->capacity) {
        uint32_t capacity = grid->capacity == 0 ? 64 : grid->capacity * 2;
        uf_grid_point *grown = realloc(grid->points, capacity * sizeof *grown);
        if (grown == NULL) {
            return uf__error_set(error, UF_ERROR_HOST_MEMORY, "no memory for the settings");
        }
        grid->points = grown;
        grid->capacity = capacity;
    }
    point.conf = strdup(conf);
    if (point.conf == NULL) {
        return uf__error_set(error, UF_ERROR_HOST_MEMORY, "no memory for the settings");
    }
    *index = grid->count;
    grid->points[grid->count++] = point;
    return UF_OK;
}

static void add(maker *make, const char *conf, bool is_popular)
{
    uint32_t index = 0;
    uf_status status = make->status != UF_OK ? make->status
                                             : uf__grid_add(make->grid, conf, make->grammar,
                                                            make->release, &index, NULL);
    if (status == UF_OK) {
        make->grid->points[index].is_popular |= is_popular;
    } else if (status != UF_ERROR_CONF) {
        make->status = status;
    }
}

static void add_popular(maker *make)
{
    add(make, "", true);
    add(make, "max_split_size_mb:128", true);
    add(make, "max_split_size_mb:128,garbage_collection_threshold:0.8", true);
    add(make, "max_split_size_mb:512", true);
    add(make, "expandable_segments:True", true);
}

/* `head` alone and with each garbage collection threshold. */
static void add_thresholds(maker *make, const char *head)
{
    for (size_t t = 0; t < COUNT_OF(thresholds); t++) {
        char conf[TEXT_CAPACITY];
        bool has_threshold = thresholds[t][0] != '\0';
        if (has_threshold && !make->has_limit) {
            continue;
        }
        snprintf(conf, sizeof conf, "%s%s%s%s", head, has_threshold && head[0] != '\0' ? "," : "",
                 has_threshold ? "garbage_collection_threshold:" : "", thresholds[t]);
        add(make, conf, false);
    }
}

static void add_splits(maker *make)
{
    char conf[HEAD_CAPACITY];
    for (size_t s = 0; s < COUNT_OF(split_sizes_mb); s++) {
        for (size_t r = 0; r < COUNT_OF(roundings_mb); r++) {
            int length =
                snprintf(conf, sizeof conf, "max_split_size_mb:%" PRIu32, split_sizes_mb[s]);
            if (roundings_mb[r] != 0) {
                snprintf(conf + length, sizeof conf - (size_t)length,
                         ",max_non_split_rounding_mb:%" PRIu32, roundings_mb[r]);
            }
            add_thresholds(make, conf);
        }
    }
    for (size_t s = 0; s < COUNT_OF(mixed_splits_mb); s++) {
        for (size_t m = 0; m < COUNT_OF(mixed_options); m++) {
            snprintf(conf, sizeof conf, "max_split_size_mb:%" PRIu32 ",%s", mixed_splits_mb[s],
                     mixed_options[m]);
            add(make, conf, false);
        }
    }
}

static void add_rest(maker *make)
{
    char conf[HEAD_CAPACITY];
    add_thresholds(make, "");
    for (size_t d = 0; d < COUNT_OF(divisions); d++) {
        snprintf(conf, sizeof conf, "roundup_power2_divisions:%" PRIu32, divisions[d]);
        add_thresholds(make, conf);
        snprintf(conf, sizeof conf, "expandable_segments:True,roundup_power2_divisions:%" PRIu32,
                 divisions[d]);
        add(make, conf, false);
    }
    for (size_t l = 0; l < COUNT_OF(large_segments_mb); l++) {
        snprintf(conf, sizeof conf, "large_segment_size_mb:%" PRIu32, large_segments_mb[l]);
        add_thresholds(make, conf);
    }
    for (size_t e = 0; e < COUNT_OF(expandable_segments_mb); e++) {
        snprintf(conf, sizeof conf, "expandable_segments:True,large_segment_size_mb:%" PRIu32,
                 expandable_segments_mb[e]);
        add(make, conf, false);
    }
}

uf_status uf__grid_init(uf_grid *grid, uf_conf_grammar grammar, uint16_t release, bool has_limit)
{
    memset(grid, 0, sizeof *grid);
    maker make = {.grid = grid, .grammar = grammar, .release = release, .has_limit = has_limit};
    add_popular(&make);
    add_splits(&make);
    add_rest(&make);
    return make.status;
}

void uf__grid_fini(uf_grid *grid)
{
    for (uint32_t i = 0; i < grid->count; i++) {
        free(grid->points[i].conf);
    }
    free(grid->points);
    memset(grid, 0, sizeof *grid);
}
