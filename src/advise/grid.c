/* SPDX-License-Identifier: MIT
 *
 * Making the grid.
 *
 *   plain segments    max_split_size_mb x max_non_split_rounding_mb x garbage_collection_threshold
 *                     roundup_power2_divisions x garbage_collection_threshold
 *                     large_segment_size_mb (2.11)
 *   expandable        roundup_power2_divisions, large_segment_size_mb (2.11)
 *
 * Left out: garbage collection without a limit (inert) or with expandable segments (it ignores
 * them); max_split_size_mb with expandable segments (it makes large free blocks unusable for normal
 * requests) and pages above the default size (they may pass the limit by almost a page, which a
 * card would not allow); max_non_split_rounding_mb without max_split_size_mb (inert). */
#include "advise/grid.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint32_t split_sizes_mb[] = {20,  32,  48,  64,  96,  128, 192,
                                          256, 384, 512, 768, 1024, 2048};
static const uint32_t roundings_mb[] = {0, 64, 256, 1024}; /* 0 = its default */
static const char *const thresholds[] = {"", "0.6", "0.8", "0.95"};
static const uint32_t divisions[] = {2, 4, 8, 16};
static const uint32_t large_segments_mb[] = {12, 32, 64, 128};

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

uf_status uf__grid_add(uf_grid *grid, const char *conf, uint32_t *index)
{
    for (uint32_t i = 0; i < grid->count; i++) {
        if (strcmp(grid->points[i].conf, conf) == 0) {
            *index = i;
            return UF_OK;
        }
    }
    if (strlen(conf) >= UF_GRID_CONF_CAPACITY) {
        return UF_ERROR_INVALID_ARGUMENT;
    }
    if (grid->count == grid->capacity) {
        uint32_t capacity = grid->capacity == 0 ? 64 : grid->capacity * 2;
        uf_grid_point *grown = realloc(grid->points, capacity * sizeof *grown);
        if (grown == NULL) {
            return UF_ERROR_HOST_MEMORY;
        }
        grid->points = grown;
        grid->capacity = capacity;
    }
    *index = grid->count++;
    grid->points[*index] = (uf_grid_point){0};
    snprintf(grid->points[*index].conf, UF_GRID_CONF_CAPACITY, "%s", conf);
    return UF_OK;
}

static uf_status add(uf_grid *grid, const char *conf, bool needs_limit, uint32_t roundup_divisions,
                     bool is_popular)
{
    uint32_t index;
    uf_status status = uf__grid_add(grid, conf, &index);
    if (status == UF_OK) {
        grid->points[index].needs_limit = needs_limit;
        grid->points[index].roundup_divisions = roundup_divisions;
        grid->points[index].is_popular = is_popular;
    }
    return status;
}

static uf_status add_popular(uf_grid *grid, bool has_limit)
{
    uf_status status = add(grid, "", false, 0, true);
    if (status == UF_OK) {
        status = add(grid, "max_split_size_mb:128", false, 0, true);
    }
    if (status == UF_OK && has_limit) {
        status = add(grid, "max_split_size_mb:128,garbage_collection_threshold:0.8", true, 0, true);
    }
    if (status == UF_OK) {
        status = add(grid, "max_split_size_mb:512", false, 0, true);
    }
    return status == UF_OK ? add(grid, "expandable_segments:True", false, 0, true) : status;
}

/* `head` alone and with each garbage collection threshold. */
static uf_status add_thresholds(uf_grid *grid, const char *head, bool has_limit,
                                uint32_t roundup_divisions)
{
    uf_status status = UF_OK;
    for (size_t t = 0; t < COUNT_OF(thresholds) && status == UF_OK; t++) {
        char conf[UF_GRID_CONF_CAPACITY];
        bool has_threshold = thresholds[t][0] != '\0';
        if (has_threshold && !has_limit) {
            continue;
        }
        snprintf(conf, sizeof conf, "%s%s%s%s", head, has_threshold && head[0] != '\0' ? "," : "",
                 has_threshold ? "garbage_collection_threshold:" : "", thresholds[t]);
        uint32_t index;
        uint32_t before = grid->count;
        status = uf__grid_add(grid, conf, &index);
        if (status == UF_OK && grid->count > before) {
            grid->points[index].needs_limit = has_threshold;
            grid->points[index].roundup_divisions = roundup_divisions;
        }
    }
    return status;
}

static uf_status add_splits(uf_grid *grid, uf_conf_grammar grammar, bool has_limit)
{
    uf_status status = UF_OK;
    for (size_t s = 0; s < COUNT_OF(split_sizes_mb) && status == UF_OK; s++) {
        bool is_too_small = grammar >= UF_CONF_2_0 && split_sizes_mb[s] <= 20;
        for (size_t r = 0; r < COUNT_OF(roundings_mb) && status == UF_OK && !is_too_small; r++) {
            char head[UF_GRID_CONF_CAPACITY];
            if (roundings_mb[r] == 0) {
                snprintf(head, sizeof head, "max_split_size_mb:%" PRIu32, split_sizes_mb[s]);
            } else if (grammar == UF_CONF_1_10) {
                continue;
            } else {
                snprintf(head, sizeof head,
                         "max_split_size_mb:%" PRIu32 ",max_non_split_rounding_mb:%" PRIu32,
                         split_sizes_mb[s], roundings_mb[r]);
            }
            status = add_thresholds(grid, head, has_limit, 0);
        }
    }
    return status;
}

static uf_status add_rest(uf_grid *grid, uf_conf_grammar grammar, bool has_limit)
{
    char conf[UF_GRID_CONF_CAPACITY];
    uf_status status = add_thresholds(grid, "", has_limit, 0);
    for (size_t d = 0; d < COUNT_OF(divisions) && status == UF_OK; d++) {
        snprintf(conf, sizeof conf, "roundup_power2_divisions:%" PRIu32, divisions[d]);
        status = add_thresholds(grid, conf, has_limit, divisions[d]);
        if (status == UF_OK && grammar != UF_CONF_1_10) {
            snprintf(conf, sizeof conf,
                     "expandable_segments:True,roundup_power2_divisions:%" PRIu32, divisions[d]);
            status = add(grid, conf, false, divisions[d], false);
        }
    }
    for (size_t l = 0;
         l < COUNT_OF(large_segments_mb) && status == UF_OK && grammar == UF_CONF_2_11; l++) {
        snprintf(conf, sizeof conf, "large_segment_size_mb:%" PRIu32, large_segments_mb[l]);
        status = add_thresholds(grid, conf, has_limit, 0);
        if (status == UF_OK && large_segments_mb[l] <= 20) {
            snprintf(conf, sizeof conf, "expandable_segments:True,large_segment_size_mb:%" PRIu32,
                     large_segments_mb[l]);
            status = add(grid, conf, false, 0, false);
        }
    }
    return status;
}

uf_status uf__grid_init(uf_grid *grid, uf_conf_grammar grammar, bool has_limit)
{
    memset(grid, 0, sizeof *grid);
    uf_status status = add_popular(grid, has_limit);
    if (status == UF_OK) {
        status = add_splits(grid, grammar, has_limit);
    }
    if (status == UF_OK) {
        status = add_rest(grid, grammar, has_limit);
    }
    if (status != UF_OK) {
        uf__grid_fini(grid);
    }
    return status;
}

void uf__grid_fini(uf_grid *grid)
{
    free(grid->points);
    memset(grid, 0, sizeof *grid);
}
