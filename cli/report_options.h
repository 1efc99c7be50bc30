/* SPDX-License-Identifier: MIT
 *
 * The command line of `unfrag report`. */
#ifndef CLI_REPORT_OPTIONS_H
#define CLI_REPORT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "exit_code.h"

enum { REPORT_INPUT_LIMIT = 2 };

typedef enum report_tuning {
    REPORT_TUNE_AUTO, /* settings side by side, as far as that takes about a second */
    REPORT_TUNE_NONE,
    REPORT_TUNE_SEARCH
} report_tuning;

/* Texts are borrowed from argv. */
typedef struct report_options {
    const char *inputs[REPORT_INPUT_LIMIT];
    uint32_t input_count;
    const char *output;   /* NULL: named after the input */
    const char *title;    /* NULL: the input */
    uint64_t limit_bytes; /* the limit it was recorded under; 0 = none given */
    report_tuning tuning;
    bool has_device;
    int32_t device;
    bool skip_stacks;
    bool is_forced;
    bool is_json;
} report_options;

cli_exit report_options_parse(int argc, char **argv, report_options *options);

#endif
