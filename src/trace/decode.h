/* SPDX-License-Identifier: MIT
 *
 * Decompression of gz, xz and zst as a step function: bytes in, bytes out, no files. Knows nothing
 * of where the bytes come from. Memory is bounded: see docs/internals/trace.md. */
#ifndef UF_TRACE_DECODE_H
#define UF_TRACE_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <unfrag/status.h>

typedef enum uf__codec { UF__CODEC_PLAIN, UF__CODEC_GZ, UF__CODEC_XZ, UF__CODEC_ZST } uf__codec;

/* So many bytes from the start of the data are enough to tell the codec. */
#define UF__CODEC_MAGIC_BYTES 6

uf__codec uf__codec_detect(const uint8_t *data, size_t size_bytes);

typedef struct uf__decoder uf__decoder;

/* Bytes in and out of one step; the step moves both positions. */
typedef struct uf__decode_span {
    const uint8_t *in;
    const uint8_t *in_end;
    bool is_last; /* nothing comes after in_end */
    uint8_t *out;
    uint8_t *out_end;
} uf__decode_span;

/* Returns UF_OK or UF_ERROR_HOST_MEMORY. The caller destroys it. codec is not UF__CODEC_PLAIN. */
uf_status uf__decoder_create(uf__codec codec, uf__decoder **decoder, uf_error *error) UF_MUST_USE;
void uf__decoder_destroy(uf__decoder *decoder); /* NULL accepted */

/* Decodes until the output is full, the input used up or the data at its end, which sets *is_done;
 * concatenated streams count as one. in_offset: where span->in stands in the stored data, for
 * messages. Returns UF_OK, UF_ERROR_BAD_INPUT (corrupt, ends early, needs too much memory) or
 * UF_ERROR_HOST_MEMORY. */
uf_status uf__decoder_step(uf__decoder *decoder, uf__decode_span *span, uint64_t in_offset,
                           bool *is_done, uf_error *error) UF_MUST_USE;

#endif
