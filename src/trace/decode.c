/* SPDX-License-Identifier: MIT
 *
 * Decompression of gz, xz and zst. Owns the libraries' stream objects. No lock; one decoder belongs
 * to one input. */
#include "trace/decode.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <lzma.h>
#define ZLIB_CONST
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/error.h"

#define XZ_MEMORY_LIMIT_BYTES (UINT64_C(1) << 30)
#define ZST_WINDOW_LOG_MAX 27 /* 128 MiB, what the zstd command accepts by itself */

struct uf__decoder {
    uf__codec codec;
    bool is_between; /* gz, zst: a member or frame has ended, and another may follow */
    z_stream gz;
    lzma_stream xz;
    ZSTD_DStream *zst;
};

uf__codec uf__codec_detect(const uint8_t *data, size_t size_bytes)
{
    static const uint8_t xz_magic[6] = {0xfd, '7', 'z', 'X', 'Z', 0};
    if (size_bytes >= 3 && data[0] == 0x1f && data[1] == 0x8b && data[2] == 8)
        return UF__CODEC_GZ;
    if (size_bytes >= 6 && memcmp(data, xz_magic, 6) == 0)
        return UF__CODEC_XZ;
    if (size_bytes >= 4 && data[1] == 0xb5 && data[0] == 0x28 && data[2] == 0x2f && data[3] == 0xfd)
        return UF__CODEC_ZST;
    /* A skippable frame, which parallel compressors put first. */
    if (size_bytes >= 4 && (data[0] & 0xf0) == 0x50 && data[1] == 0x2a && data[2] == 0x4d &&
        data[3] == 0x18)
        return UF__CODEC_ZST;
    return UF__CODEC_PLAIN;
}

static const char *codec_name(uf__codec codec)
{
    switch (codec) {
    case UF__CODEC_GZ:
        return "gz";
    case UF__CODEC_XZ:
        return "xz";
    case UF__CODEC_ZST:
        return "zst";
    case UF__CODEC_PLAIN:
        break;
    }
    return "plain";
}

uf_status uf__decoder_create(uf__codec codec, uf__decoder **decoder, uf_error *error)
{
    uf__decoder *made = calloc(1, sizeof *made);
    if (made == NULL)
        goto no_memory;
    if (codec == UF__CODEC_GZ && inflateInit2(&made->gz, 16 + MAX_WBITS) != Z_OK)
        goto no_memory;
    made->codec = codec;
    if (codec == UF__CODEC_XZ &&
        lzma_stream_decoder(&made->xz, XZ_MEMORY_LIMIT_BYTES, LZMA_CONCATENATED) != LZMA_OK)
        goto no_memory;
    if (codec == UF__CODEC_ZST) {
        made->zst = ZSTD_createDStream();
        if (made->zst == NULL || ZSTD_isError(ZSTD_DCtx_setParameter(made->zst, ZSTD_d_windowLogMax,
                                                                     ZST_WINDOW_LOG_MAX)))
            goto no_memory;
    }
    *decoder = made;
    return UF_OK;

no_memory:
    uf__decoder_destroy(made);
    return uf__error_set(error, UF_ERROR_HOST_MEMORY, "no memory for %s decompression",
                         codec_name(codec));
}

void uf__decoder_destroy(uf__decoder *decoder)
{
    if (decoder == NULL)
        return;
    if (decoder->codec == UF__CODEC_GZ)
        inflateEnd(&decoder->gz);
    lzma_end(&decoder->xz);
    ZSTD_freeDStream(decoder->zst);
    free(decoder);
}

static uf_status ends_early(const uf__decoder *decoder, uint64_t offset, uf_error *error)
{
    return uf__error_set(error, UF_ERROR_BAD_INPUT,
                         "the %s data ends early, after %" PRIu64
                         " bytes; the file was probably cut off while being written or copied",
                         codec_name(decoder->codec), offset);
}

static uf_status corrupt(const uf__decoder *decoder, uint64_t offset, const char *why,
                         uf_error *error)
{
    return uf__error_set(error, UF_ERROR_BAD_INPUT,
                         "the %s data is corrupt near byte %" PRIu64 " of the file: %s",
                         codec_name(decoder->codec), offset, why != NULL ? why : "unknown reason");
}

static uf_status no_memory(uf__codec codec, uf_error *error)
{
    return uf__error_set(error, UF_ERROR_HOST_MEMORY, "no memory for %s decompression",
                         codec_name(codec));
}

/* After a gz member: another member, zero padding, or the end. */
static uf_status gz_between(uf__decoder *decoder, uf__decode_span *span, uint64_t offset,
                            bool *is_done, uf_error *error)
{
    while (span->in < span->in_end && *span->in == 0) {
        span->in++;
        offset++;
    }
    if (span->in == span->in_end) {
        *is_done = span->is_last;
        return UF_OK;
    }
    if (*span->in != 0x1f)
        return corrupt(decoder, offset, "something else follows the compressed data", error);
    if (inflateReset(&decoder->gz) != Z_OK)
        return uf__error_set(error, UF_ERROR_INTERNAL, "zlib cannot be reset");
    decoder->is_between = false;
    return UF_OK;
}

static uf_status gz_step(uf__decoder *decoder, uf__decode_span *span, uint64_t in_offset,
                         bool *is_done, uf_error *error)
{
    if (decoder->is_between) {
        const uint8_t *before = span->in;
        uf_status status = gz_between(decoder, span, in_offset, is_done, error);
        if (status != UF_OK || decoder->is_between)
            return status;
        in_offset += (uint64_t)(span->in - before);
    }
    z_stream *gz = &decoder->gz;
    const uint8_t *in_begin = span->in;
    const uint8_t *out_begin = span->out;
    gz->next_in = span->in;
    gz->avail_in = (uInt)(span->in_end - span->in);
    gz->next_out = span->out;
    gz->avail_out = (uInt)(span->out_end - span->out);
    int code = inflate(gz, Z_NO_FLUSH);
    span->in = gz->next_in;
    span->out = gz->next_out;
    uint64_t offset = in_offset + (uint64_t)(span->in - in_begin);
    if (code == Z_STREAM_END) {
        decoder->is_between = true;
        *is_done = span->is_last && span->in == span->in_end;
        return UF_OK;
    }
    if (code == Z_MEM_ERROR)
        return no_memory(decoder->codec, error);
    if (code != Z_OK && code != Z_BUF_ERROR)
        return corrupt(decoder, offset, gz->msg, error);
    if (span->is_last && span->in == span->in_end && span->out == out_begin)
        return ends_early(decoder, offset, error);
    return UF_OK;
}

static uf_status xz_step(uf__decoder *decoder, uf__decode_span *span, uint64_t in_offset,
                         bool *is_done, uf_error *error)
{
    lzma_stream *xz = &decoder->xz;
    const uint8_t *in_begin = span->in;
    xz->next_in = span->in;
    xz->avail_in = (size_t)(span->in_end - span->in);
    xz->next_out = span->out;
    xz->avail_out = (size_t)(span->out_end - span->out);
    lzma_ret code = lzma_code(xz, span->is_last ? LZMA_FINISH : LZMA_RUN);
    span->in = xz->next_in;
    span->out = xz->next_out;
    uint64_t offset = in_offset + (uint64_t)(span->in - in_begin);
    switch (code) {
    case LZMA_OK:
        return UF_OK;
    case LZMA_STREAM_END:
        *is_done = true;
        return UF_OK;
    case LZMA_BUF_ERROR:
        return span->is_last ? ends_early(decoder, offset, error) : UF_OK;
    case LZMA_MEM_ERROR:
        return no_memory(decoder->codec, error);
    case LZMA_MEMLIMIT_ERROR:
        return uf__error_set(error, UF_ERROR_BAD_INPUT,
                             "the xz data needs %" PRIu64 " MiB of memory to decompress, more than "
                             "the %" PRIu64 " MiB allowed; decompress it with xz first",
                             lzma_memusage(xz) >> 20, XZ_MEMORY_LIMIT_BYTES >> 20);
    case LZMA_FORMAT_ERROR:
        return corrupt(decoder, offset, "something else follows the compressed data", error);
    case LZMA_OPTIONS_ERROR:
        return corrupt(decoder, offset, "unsupported options", error);
    default:
        return corrupt(decoder, offset, "checksum or structure is wrong", error);
    }
}

static uf_status zst_step(uf__decoder *decoder, uf__decode_span *span, uint64_t in_offset,
                          bool *is_done, uf_error *error)
{
    ZSTD_inBuffer in = {span->in, (size_t)(span->in_end - span->in), 0};
    ZSTD_outBuffer out = {span->out, (size_t)(span->out_end - span->out), 0};
    if (decoder->is_between && in.size == 0) {
        *is_done = span->is_last;
        return UF_OK;
    }
    size_t code = ZSTD_decompressStream(decoder->zst, &out, &in);
    span->in += in.pos;
    span->out += out.pos;
    uint64_t offset = in_offset + in.pos;
    if (ZSTD_isError(code)) {
        switch (ZSTD_getErrorCode(code)) {
        case ZSTD_error_memory_allocation:
            return no_memory(decoder->codec, error);
        case ZSTD_error_frameParameter_windowTooLarge:
            return uf__error_set(error, UF_ERROR_BAD_INPUT,
                                 "the zst data needs a window of more than %d MiB; decompress it "
                                 "with zstd --long=31 first",
                                 1 << (ZST_WINDOW_LOG_MAX - 20));
        default:
            return corrupt(decoder, offset, ZSTD_getErrorName(code), error);
        }
    }
    decoder->is_between = code == 0;
    if (code == 0)
        *is_done = span->is_last && span->in == span->in_end;
    else if (span->is_last && span->in == span->in_end && out.pos == 0)
        return ends_early(decoder, offset, error);
    return UF_OK;
}

uf_status uf__decoder_step(uf__decoder *decoder, uf__decode_span *span, uint64_t in_offset,
                           bool *is_done, uf_error *error)
{
    *is_done = false;
    switch (decoder->codec) {
    case UF__CODEC_GZ:
        return gz_step(decoder, span, in_offset, is_done, error);
    case UF__CODEC_XZ:
        return xz_step(decoder, span, in_offset, is_done, error);
    case UF__CODEC_ZST:
        return zst_step(decoder, span, in_offset, is_done, error);
    case UF__CODEC_PLAIN:
        break;
    }
    return uf__error_set(error, UF_ERROR_INTERNAL, "no decoder for plain data");
}
