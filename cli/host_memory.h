/* SPDX-License-Identifier: MIT
 *
 * How much of the host's memory this program has taken. */
#ifndef CLI_HOST_MEMORY_H
#define CLI_HOST_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* The peak of the resident set. Returns false where the system does not tell. */
bool cli_host_peak(uint64_t *bytes);

#endif
