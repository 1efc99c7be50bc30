/* SPDX-License-Identifier: MIT
 *
 * A sample of `top` as a table, and as one line of JSON. */
#ifndef CLI_TOP_REPORT_H
#define CLI_TOP_REPORT_H

#include <stdio.h>

#include "exit_code.h"
#include "top_order.h"
#include "top_sample.h"

/* order: count indices of pages. */
cli_exit cli_top_print_table(const cli_top_sample *sample, const size_t *order, size_t count,
                             FILE *stream);
cli_exit cli_top_print_json(const cli_top_sample *sample, const size_t *order, size_t count,
                            FILE *stream);

#endif
