/* SPDX-License-Identifier: MIT
 *
 * The command line of `unfrag plan`: options as given, checked for what can be checked before a
 * model file or recording is read. */
#ifndef CLI_PLAN_OPTIONS_H
#define CLI_PLAN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "advise/plan.h"
#include "exit_code.h"

enum { PLAN_FROM_MAX = 64 };

/* A recording to fit, and how it was described. */
typedef struct plan_from {
    const char *input;
    bool is_described;
    uf_plan_shape shape;
    uint32_t options;
} plan_from;

/* Texts are borrowed from argv. */
typedef struct plan_options {
    const char *model; /* name or file; NULL with --from */
    bool has_size, has_batch;
    uf_plan_question question;
    const char *dtype;
    const char *weights; /* a folder or file of weights; NULL = the model's own */
    plan_from from[PLAN_FROM_MAX];
    uint32_t from_count;
    const char *name;   /* of a fitted model */
    uint32_t multiple;  /* of a fitted model's width and height */
    const char *output; /* where a fitted model goes; NULL = nowhere */
    bool is_json;
} plan_options;

cli_exit plan_options_parse(int argc, char **argv, plan_options *options);

#endif
