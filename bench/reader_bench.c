/* SPDX-License-Identifier: MIT
 *
 * Reads a trace a few times and prints how long the best reading took, as one JSON object:
 *
 *   reader_bench FILE [--stacks] [--runs N]
 *
 * bench/run calls it, one process for each figure, so that the peak memory is that of one case. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <unfrag/trace.h>

static double now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The peak of this program's resident set (VmHWM); getrusage would count the parent's before exec.
 */
static int64_t peak_bytes(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    int64_t kib = -1;
    while (file != NULL && kib < 0 && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "VmHWM:", 6) == 0) {
            kib = strtoll(line + 6, NULL, 10);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return kib < 0 ? -1 : kib * 1024;
}

static int measure(const char *path, bool has_stacks, long run_count)
{
    uf_trace_read_options options = {.struct_size_bytes = sizeof options,
                                     .skip_stacks = !has_stacks};
    int64_t start_peak = peak_bytes();
    double best = 0.0;
    uint64_t decoded_bytes = 0, event_count = 0;
    for (long i = 0; i < run_count; i++) {
        uf_error error = {0};
        uf_trace *trace = NULL;
        double start = now_seconds();
        if (uf_trace_read(path, &options, &trace, &error) != UF_OK) {
            fprintf(stderr, "reader_bench: %s\n", error.text);
            return 1;
        }
        double seconds = now_seconds() - start;
        best = i == 0 || seconds < best ? seconds : best;
        decoded_bytes = trace->decoded_bytes;
        event_count = trace->event_count;
        uf_trace_destroy(trace);
    }
    printf("{\"seconds\": %.6f, \"decoded_bytes\": %" PRIu64 ", \"events\": %" PRIu64
           ", \"start_peak_bytes\": %" PRId64 ", \"host_peak_bytes\": %" PRId64 "}\n",
           best, decoded_bytes, event_count, start_peak, peak_bytes());
    return 0;
}

int main(int argc, char **argv)
{
    const char *path = NULL;
    bool has_stacks = false;
    long run_count = 5;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--stacks") == 0) {
            has_stacks = true;
        } else if (strcmp(argv[i], "--runs") == 0 && i + 1 < argc) {
            run_count = strtol(argv[++i], NULL, 10);
        } else {
            path = argv[i];
        }
    }
    if (path == NULL || run_count < 1) {
        fputs("usage: reader_bench FILE [--stacks] [--runs N]\n", stderr);
        return 2;
    }
    return measure(path, has_stacks, run_count);
}
