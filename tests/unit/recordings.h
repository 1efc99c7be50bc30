/* SPDX-License-Identifier: MIT
 *
 * The bundled recordings as their index lists them, for tests. Owns nothing but what it returns.
 * Single-threaded. */
#ifndef UF_TESTS_RECORDINGS_H
#define UF_TESTS_RECORDINGS_H

#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unfrag/replay.h>

enum { RECORDINGS_MAX = 64 };

typedef struct recording {
    char name[80];
    uint64_t limit_bytes; /* 0 = none */
    uint64_t event_count;
} recording;

/* Fills list with the recordings of a folder and returns how many there are. */
static inline size_t recordings_list_of(const char *folder, recording *list)
{
    char line[500], limit[40];
    snprintf(line, sizeof line, "%s/index.tsv", folder);
    FILE *file = fopen(line, "r");
    ck_assert_ptr_nonnull(file);
    size_t count = 0;
    ck_assert_ptr_nonnull(fgets(line, sizeof line, file));
    while (fgets(line, sizeof line, file) != NULL) {
        ck_assert_uint_lt(count, RECORDINGS_MAX);
        recording *entry = &list[count++];
        unsigned long long event_count;
        ck_assert_int_eq(
            sscanf(line, "%79[^\t]\t%*[^\t]\t%39[^\t]\t%llu", entry->name, limit, &event_count), 3);
        entry->limit_bytes = strcmp(limit, "none") == 0 ? 0 : strtoull(limit, NULL, 10);
        entry->event_count = event_count;
    }
    fclose(file);
    ck_assert_uint_gt(count, 10);
    return count;
}

/* Those that are bundled. */
static inline size_t recordings_list(recording *list)
{
    return recordings_list_of(PROJECT_DATA_DIR, list);
}

/* Destroy the trace. */
static inline uf_trace *recording_read_of(const char *folder, const recording *entry)
{
    char path[400];
    uf_trace *trace;
    uf_error error = {UF_OK, ""};
    snprintf(path, sizeof path, "%s/%.79s.pickle.xz", folder, entry->name);
    uf_trace_read_options options = {.struct_size_bytes = sizeof options, .skip_stacks = true};
    if (uf_trace_read(path, &options, &trace, &error) != UF_OK) {
        ck_abort_msg("%s: %s", entry->name, error.text);
    }
    return trace;
}

static inline uf_trace *recording_read(const recording *entry)
{
    return recording_read_of(PROJECT_DATA_DIR, entry);
}

/* The statistics recorded at its end. */
static inline uf_stats recording_stats(const recording *entry)
{
    char path[400];
    uf_stats stats;
    size_t set_count = 0;
    memset(&stats, 0, sizeof stats);
    snprintf(path, sizeof path, "%s/%.79s.stats.json", PROJECT_DATA_DIR, entry->name);
    json_t *root = json_load_file(path, 0, NULL);
    ck_assert_ptr_nonnull(root);
    const char *key;
    json_t *value;
    json_object_foreach(root, key, value)
    {
        set_count += json_is_integer(value) && uf_stats_set(&stats, key, json_integer_value(value));
    }
    json_decref(root);
    ck_assert_uint_eq(set_count, uf_stats_count());
    return stats;
}

/* Destroy the program. */
static inline uf_program *recording_program(const recording *entry, const uf_trace *trace,
                                            int64_t num_alloc_retries)
{
    uf_program *program;
    uf_error error = {UF_OK, ""};
    uf_program_options options = {.struct_size_bytes = sizeof options,
                                  .limit_bytes = entry->limit_bytes,
                                  .num_alloc_retries = num_alloc_retries};
    if (uf_program_create(trace, &options, &program, &error) != UF_OK) {
        ck_abort_msg("%s: %s", entry->name, error.text);
    }
    return program;
}

/* The recording of that name, read. Destroy the trace. */
static inline uf_trace *recording_read_named(const char *name, recording *entry)
{
    static recording list[RECORDINGS_MAX];
    size_t count = recordings_list(list);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(list[i].name, name) == 0) {
            *entry = list[i];
            return recording_read(entry);
        }
    }
    ck_abort_msg("there is no recording %s", name);
    return NULL;
}

#endif
