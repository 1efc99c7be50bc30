/* SPDX-License-Identifier: MIT
 *
 * The command line of `unfrag tune`: options as given, checked for what can be checked before a
 * recording is read. */
#ifndef CLI_TUNE_OPTIONS_H
#define CLI_TUNE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "alloc/conf.h"
#include "exit_code.h"

/* Texts are borrowed from argv; inputs is owned (tune_options_fini). */
typedef struct tune_options {
    const char **inputs;
    uint32_t input_count;
    const char *conf;         /* today's settings; NULL = as recorded */
    uint64_t limit_bytes;     /* 0 = none given */
    uint64_t card_bytes;      /* 0 = none given */
    uint64_t total_bytes;     /* 0 = none given */
    uint64_t allowance_bytes; /* for the CUDA context and libraries */
    double sync_ms;           /* negative = default */
    uf_conf_grammar grammar;
    uint16_t release;      /* of PyTorch: 211 is 2.11; 0 = the newest of the grammar */
    const char *torch;     /* the same as it was given; NULL = not given */
    uint32_t thread_count; /* 0 = one per core */
    bool has_device;
    int32_t device;
    bool is_json;
} tune_options;

cli_exit tune_options_parse(int argc, char **argv, tune_options *options);
void tune_options_fini(tune_options *options);

#endif
