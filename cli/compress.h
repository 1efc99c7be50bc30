/* SPDX-License-Identifier: MIT
 *
 * A stream that compresses what is written to it. Knows no format of ours. One thread each. */
#ifndef CLI_COMPRESS_H
#define CLI_COMPRESS_H

#include <stddef.h>
#include <stdio.h>

#include <unfrag/status.h>

typedef enum cli_compression { CLI_PLAIN, CLI_GZIP, CLI_XZ, CLI_ZSTD } cli_compression;

/* Tells the compression from the end of a file name (.gz, .xz, .zst), and the length of the name
 * without it. */
cli_compression cli_compression_of(const char *path, size_t *stem_length);

/* Opens a stream that writes compressed bytes to target (borrowed until the stream is closed).
 * fclose ends the compressed data, leaves target open, and reports what failed on the way; a write
 * fails once Ctrl-C was pressed. For CLI_PLAIN the bytes go through unchanged. */
uf_status cli_compress_open(FILE *target, cli_compression compression, FILE **stream,
                            uf_error *error) UF_MUST_USE;

#endif
