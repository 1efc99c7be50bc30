/* SPDX-License-Identifier: MIT
 *
 * verify FOLDER NAME=LIMIT...: follows recordings, as `unfrag replay --verify` does, with whatever
 * allocator this was built with. Exit status 0: all equal; 1: the first that is not is printed;
 * 3: something could not be read. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unfrag/replay.h>

enum { EQUAL = 0, DIFFERENT = 1, UNREADABLE = 3 };

static int unreadable(const char *name, const char *why)
{
    fprintf(stderr, "%s: %s\n", name, why);
    return UNREADABLE;
}

/* Flushes that released nothing left no event: the model may have fewer of them. */
static int compare_stats(const char *name, json_t *recorded, const uf_stats *stats)
{
    const char *key;
    json_t *value;
    json_object_foreach(recorded, key, value)
    {
        int64_t got, expected = json_integer_value(value);
        if (!uf_stats_find(stats, key, &got)) {
            return unreadable(name, key);
        }
        bool is_sync = strcmp(key, "num_sync_all_streams") == 0;
        if (got != expected && !(is_sync && got < expected)) {
            printf("%s: %s is %" PRId64 ", recorded %" PRId64 "\n", name, key, got, expected);
            return DIFFERENT;
        }
    }
    return EQUAL;
}

static int verify_trace(const char *name, const uf_trace *trace, json_t *recorded, uint64_t limit)
{
    uf_error error = {UF_OK, ""};
    uf_program *program = NULL;
    uf_program_options options = {
        .struct_size_bytes = sizeof options,
        .limit_bytes = limit,
        .num_alloc_retries = json_integer_value(json_object_get(recorded, "num_alloc_retries"))};
    if (uf_program_create(trace, &options, &program, &error) != UF_OK) {
        return unreadable(name, error.text);
    }
    const uf_program_report *report = uf_program_report_get(program);
    int result = DIFFERENT;
    if (report->is_equal) {
        result = compare_stats(name, recorded, &report->stats);
    } else {
        printf("%s: after %" PRIu64 " events: %s\n", name, report->events_equal,
               report->difference.text);
    }
    uf_program_destroy(program);
    return result;
}

static int verify(const char *folder, char *argument)
{
    char path[1000];
    char *limit = strchr(argument, '=');
    if (limit == NULL) {
        return unreadable(argument, "expected NAME=LIMIT");
    }
    *limit++ = '\0';
    uf_trace *trace = NULL;
    uf_error error = {UF_OK, ""};
    snprintf(path, sizeof path, "%s/%s.pickle.xz", folder, argument);
    if (uf_trace_read(path, NULL, &trace, &error) != UF_OK) {
        return unreadable(argument, error.text);
    }
    snprintf(path, sizeof path, "%s/%s.stats.json", folder, argument);
    json_t *recorded = json_load_file(path, 0, NULL);
    int result = recorded == NULL
                     ? unreadable(path, "no statistics")
                     : verify_trace(argument, trace, recorded, strtoull(limit, NULL, 10));
    json_decref(recorded);
    uf_trace_destroy(trace);
    return result;
}

int main(int argc, char **argv)
{
    int result = argc > 2 ? EQUAL : unreadable("verify", "usage: verify FOLDER NAME=LIMIT...");
    for (int i = 2; i < argc && result == EQUAL; i++) {
        result = verify(argv[1], argv[i]);
    }
    return result;
}
