/* SPDX-License-Identifier: MIT
 *
 * The nearest of several names, by the distance of base/spelling.h. */
#include "nearest.h"

#include <string.h>

#include "base/spelling.h"

const char *cli_nearest(const char *typed, const char *const *names, size_t count)
{
    const char *best = NULL;
    size_t best_distance = 0;
    size_t length = strlen(typed);
    for (size_t i = 0; i < count; i++) {
        size_t distance = uf__spelling_distance(typed, length, names[i]);
        if (uf__spelling_is_near(length, names[i], distance) &&
            (best == NULL || distance < best_distance)) {
            best = names[i];
            best_distance = distance;
        }
    }
    return best;
}
