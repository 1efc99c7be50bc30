/* SPDX-License-Identifier: MIT
 *
 * A recording to tune for: read, followed, and what is odd about it told on stderr. It is followed
 * as `unfrag replay` does it, so that the figures of both are equal. */
#ifndef CLI_TUNE_INPUT_H
#define CLI_TUNE_INPUT_H

#include <unfrag/replay.h>

#include "tune_options.h"

typedef struct tune_input {
    const char *name; /* as on the command line; borrowed */
    uf_trace *trace;
    uf_program *program;
} tune_input;

/* Returns what reading and uf_program_create return, and UF_ERROR_BAD_INPUT for a recording without
 * history, or one that contradicts itself. The caller ends it with tune_input_close either way. */
uf_status tune_input_open(const tune_options *options, const char *name, tune_input *input,
                          uf_error *error) UF_MUST_USE;
void tune_input_close(tune_input *input);

#endif
