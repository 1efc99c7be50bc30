/* SPDX-License-Identifier: MIT
 *
 * "Did you mean ...": the distance between two spellings. Pure functions, no lock. */
#ifndef UF_BASE_SPELLING_H
#define UF_BASE_SPELLING_H

#include <stdbool.h>
#include <stddef.h>

/* Words longer than this are compared by their first characters only. */
#define UF_SPELLING_MAX 63

/* Single-character insertions, deletions, replacements and swaps of neighbours that turn `word`
 * (length bytes of it) into `candidate`; letters are compared without regard to case. */
size_t uf__spelling_distance(const char *word, size_t length, const char *candidate);

/* True if that distance is at most a third of the longer of the two: a slip, not another word. */
bool uf__spelling_is_near(size_t length, const char *candidate, size_t distance);

#endif
