/* SPDX-License-Identifier: MIT
 *
 * How the replay reports write sizes, counts, streams and command arguments. Knows nothing of
 * replays. Pure functions. */
#ifndef CLI_REPLAY_TEXT_H
#define CLI_REPLAY_TEXT_H

#include <stdint.h>

#include "base/size.h"
#include "table.h"

typedef char size_text[UF_SIZE_TEXT_CAPACITY];
typedef char count_text[CLI_COUNT_TEXT_CAPACITY];
typedef char stream_text[24];

#define SIZE(buffer, bytes) uf__size_format(buffer, sizeof(buffer), bytes)

/* "s", or nothing for one. */
const char *replay_plural(uint64_t count);

/* "default", or the handle as PyTorch prints it: "0x1dc4e0f0". Returns buffer. */
const char *replay_stream_text(stream_text buffer, uint64_t stream);

/* A size that an option reads back exactly: "24GiB", "600MiB", or bytes. Returns buffer. */
const char *replay_size_argument(size_text buffer, uint64_t bytes);

/* Prints a word of a command line to stdout, in quotes where the shell needs them. */
void replay_print_word(const char *word);

/* Prints "unfrag tune [--card SIZE] [--limit SIZE] INPUT" to stdout; 0 = no such bound. */
void replay_print_tune(uint64_t card_bytes, uint64_t limit_bytes, const char *input);

#endif
