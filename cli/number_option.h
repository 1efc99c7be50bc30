/* SPDX-License-Identifier: MIT
 *
 * Options whose value is a whole number within a range. */
#ifndef CLI_NUMBER_OPTION_H
#define CLI_NUMBER_OPTION_H

#include <stdint.h>

#include <unfrag/status.h>

/* Reads decimal digits, and nothing else, from minimum to maximum. Returns UF_OK or
 * UF_ERROR_INVALID_ARGUMENT; the error names the option and the range. *value is untouched on
 * failure. */
uf_status cli_number_option(const char *option, const char *text, uint64_t minimum,
                            uint64_t maximum, uint64_t *value, uf_error *error) UF_MUST_USE;

#endif
