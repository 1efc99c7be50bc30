/* SPDX-License-Identifier: MIT
 *
 * Options whose value is a size: "24GiB", plain bytes, "90%" of a card, or a card's name. */
#ifndef CLI_SIZE_OPTION_H
#define CLI_SIZE_OPTION_H

#include <stdint.h>

#include <unfrag/status.h>

/* Reads the value of an option such as --limit. whole_bytes is what a percentage is of; 0 = not
 * known, a percentage is then refused. Zero bytes are refused, too, and less
 * than 1 MiB as --card, --limit or --total. Returns UF_OK or
 * UF_ERROR_INVALID_ARGUMENT; the error names the option. *bytes is untouched on failure. */
uf_status cli_size_option(const char *option, const char *text, uint64_t whole_bytes,
                          uint64_t *bytes, uf_error *error) UF_MUST_USE;

/* Reads the value of --card: a size, or a card's name such as "RTX 3060" for its nominal memory. */
uf_status cli_card_option(const char *option, const char *text, uint64_t *bytes,
                          uf_error *error) UF_MUST_USE;

#endif
