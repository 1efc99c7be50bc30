/* SPDX-License-Identifier: MIT
 *
 * How the result of `unfrag check` is printed. Knows nothing of how it was found. */
#ifndef CLI_CHECK_REPORT_H
#define CLI_CHECK_REPORT_H

#include "advise/check.h"
#include "exit_code.h"

/* One JSON object on stdout. */
cli_exit cli_check_print_json(const uf_check *check);

/* Findings, what they correct, and what is in force at the end, on stdout. */
void cli_check_print(const uf_check *check);

#endif
