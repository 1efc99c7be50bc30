/* SPDX-License-Identifier: MIT
 *
 * The options that say how the allocator is to be, shared by run and env: parsed once, and turned
 * into the variables that the hook reads. */
#ifndef CLI_RUN_OPTIONS_H
#define CLI_RUN_OPTIONS_H

#include <argp.h>
#include <stdbool.h>

#include "launch.h"

typedef struct cli_run_options {
    const char *policy, *limit, *conf; /* as given; NULL = not */
    bool is_required, is_optional, is_verbose;
} cli_run_options;

/* For struct argp's children: input is a cli_run_options. */
extern const struct argp cli_run_argp;

/* Checks the options and adds UNFRAG_POLICY and the rest. */
uf_status cli_run_variables(const cli_run_options *options, cli_variables *list,
                            uf_error *error) UF_MUST_USE;

#endif
