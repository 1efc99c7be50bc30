/* SPDX-License-Identifier: MIT
 *
 * Bundled recordings as programs, for tests of tuning; the first part of one if that is enough. */
#ifndef UF_TESTS_TUNE_SAMPLE_H
#define UF_TESTS_TUNE_SAMPLE_H

#include <check.h>
#include <stdio.h>
#include <unfrag/replay.h>

typedef struct tune_sample {
    uf_trace *trace;
    uf_program *program;
} tune_sample;

/* event_count 0 = all events. */
static inline void tune_sample_open(tune_sample *sample, const char *name, uint64_t event_count)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.pickle.xz", PROJECT_DATA_DIR, name);
    const uf_trace_read_options options = {.struct_size_bytes = sizeof options,
                                           .skip_stacks = true};
    uf_error error;
    ck_assert_int_eq(uf_trace_read(path, &options, &sample->trace, &error), UF_OK);
    uf_trace_device *device = &sample->trace->devices[0];
    device->count = event_count != 0 && event_count < device->count ? event_count : device->count;
    ck_assert_int_eq(uf_program_create(sample->trace, NULL, &sample->program, &error), UF_OK);
}

static inline void tune_sample_close(tune_sample *sample)
{
    uf_program_destroy(sample->program);
    uf_trace_destroy(sample->trace);
}

#endif
