/* SPDX-License-Identifier: MIT
 *
 * "Did you mean": the name in a list that is nearest to what was typed. Pure function. */
#ifndef CLI_NEAREST_H
#define CLI_NEAREST_H

#include <stddef.h>

/* Returns the nearest of count names, the first of equals, or NULL if none is near enough to be a
 * slip. The result is borrowed from names. */
const char *cli_nearest(const char *typed, const char *const *names, size_t count);

#endif
