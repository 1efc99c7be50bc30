/* SPDX-License-Identifier: MIT
 *
 * A stream of bytes from a file, standard input or memory, decompressed on the way (gz, xz, zst,
 * told by content), seen through a window:
 *
 *        consumed        | cursor                 limit |   not yet read
 *     ...................|##############################|................
 *
 * The reader takes bytes at the cursor and moves it; uf__input_ensure brings more in behind them.
 * Knows nothing of what the bytes mean. Not thread-safe. */
#ifndef UF_TRACE_INPUT_H
#define UF_TRACE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <unfrag/trace.h>

/* The largest number of bytes that uf__input_ensure can be asked for. */
#define UF__INPUT_ENSURE_BYTES ((size_t)64 << 10)
/* So many bytes after the limit may be read, but mean nothing. */
#define UF__INPUT_SLACK_BYTES ((size_t)64)

struct uf__source;

typedef struct uf__input {
    const uint8_t *cursor; /* next byte; the reader moves it, never beyond limit */
    const uint8_t *limit;  /* end of the bytes at hand */
    bool is_at_end;        /* nothing follows the limit */
    uint8_t *window;
    uint64_t decoded_bytes; /* up to limit, after decompression */
    uint64_t stored_bytes;  /* taken from the source so far, as stored */
    struct uf__source *source;
} uf__input;

/* Opens a file ("-": standard input). options may be NULL; its progress callback is called during
 * uf__input_ensure. Returns UF_OK, UF_ERROR_IO, UF_ERROR_HOST_MEMORY, or what the first
 * decompression says. The caller closes it. */
uf_status uf__input_open(const char *path, const uf_trace_read_options *options, uf__input **input,
                         uf_error *error) UF_MUST_USE;

/* The same over size_bytes bytes at data, borrowed until the input is closed. */
uf_status uf__input_open_memory(const void *data, size_t size_bytes,
                                const uf_trace_read_options *options, uf__input **input,
                                uf_error *error) UF_MUST_USE;

void uf__input_close(uf__input *input); /* NULL accepted */

/* Makes at least want_bytes (at most UF__INPUT_ENSURE_BYTES) available from the cursor on; fewer
 * only at the end of the input, which is no error: compare limit - cursor. Pointers into the
 * window become invalid. Returns UF_OK, UF_ERROR_IO, UF_ERROR_BAD_INPUT (compressed data that is
 * corrupt or ends early), UF_ERROR_HOST_MEMORY or UF_ERROR_INTERRUPTED. */
uf_status uf__input_ensure(uf__input *input, size_t want_bytes, uf_error *error) UF_MUST_USE;

/* Copies exactly size_bytes bytes to data and moves on; UF_ERROR_BAD_INPUT when there are fewer. */
uf_status uf__input_read(uf__input *input, void *data, size_t size_bytes,
                         uf_error *error) UF_MUST_USE;

/* Moves on by exactly size_bytes bytes; UF_ERROR_BAD_INPUT when there are fewer. */
uf_status uf__input_skip(uf__input *input, uint64_t size_bytes, uf_error *error) UF_MUST_USE;

/* Bytes at hand from the cursor on. */
static inline size_t uf__input_at_hand(const uf__input *input)
{
    return (size_t)(input->limit - input->cursor);
}

/* Where the cursor stands, counted in decompressed bytes from the start. */
static inline uint64_t uf__input_offset(const uf__input *input)
{
    return input->decoded_bytes - uf__input_at_hand(input);
}

#endif
