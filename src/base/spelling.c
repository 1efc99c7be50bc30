/* SPDX-License-Identifier: MIT
 *
 * Optimal string alignment distance with three rows. Pure functions, no lock. */
#include "base/spelling.h"

#include <string.h>

static char fold(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t uf__spelling_distance(const char *word, size_t length, const char *candidate)
{
    size_t rows[3][UF_SPELLING_MAX + 1];
    size_t *before = rows[0], *above = rows[1], *row = rows[2];
    size_t width = smaller(strlen(candidate), UF_SPELLING_MAX);
    length = smaller(length, UF_SPELLING_MAX);
    for (size_t j = 0; j <= width; j++) {
        before[j] = j;
        above[j] = j;
    }
    for (size_t i = 1; i <= length; i++) {
        char a = fold(word[i - 1]);
        row[0] = i;
        for (size_t j = 1; j <= width; j++) {
            char b = fold(candidate[j - 1]);
            size_t best = smaller(above[j], row[j - 1]) + 1;
            best = smaller(best, above[j - 1] + (a != b));
            if (i > 1 && j > 1 && a == fold(candidate[j - 2]) && b == fold(word[i - 2])) {
                best = smaller(best, before[j - 2] + 1);
            }
            row[j] = best;
        }
        size_t *oldest = before;
        before = above;
        above = row;
        row = oldest;
    }
    return above[width];
}

bool uf__spelling_is_near(size_t length, const char *candidate, size_t distance)
{
    size_t longer = strlen(candidate);
    if (length > longer) {
        longer = length;
    }
    return distance * 3 <= longer;
}
