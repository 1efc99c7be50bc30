/* SPDX-License-Identifier: MIT
 *
 * gzip, xz and zstd behind one stdio stream (fopencookie). Each codec is a function that takes
 * input until there is none and hands the output to the target. */
#include "compress.h"

#include <errno.h>
#include <lzma.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#define ZLIB_CONST /* next_in points to const */
#include <zlib.h>
#include <zstd.h>

#include "base/error.h"
#include "interrupt.h"

#define BUFFER_BYTES 65536
#define XZ_LEVEL 3
#define ZSTD_LEVEL 9
#define GZIP_WINDOW_BITS (15 + 16) /* 16: with a gzip head, says zlib.h */

typedef struct compressor {
    FILE *target;
    cli_compression compression;
    z_stream gzip;
    lzma_stream xz;
    ZSTD_CStream *zstd;
    unsigned char buffer[BUFFER_BYTES];
} compressor;

static bool has_suffix(const char *path, size_t length, const char *suffix)
{
    size_t suffix_length = strlen(suffix);
    return length > suffix_length && strcmp(path + length - suffix_length, suffix) == 0;
}

cli_compression cli_compression_of(const char *path, size_t *stem_length)
{
    size_t length = strlen(path);
    *stem_length = length;
    if (has_suffix(path, length, ".gz")) {
        *stem_length = length - 3;
        return CLI_GZIP;
    }
    if (has_suffix(path, length, ".xz")) {
        *stem_length = length - 3;
        return CLI_XZ;
    }
    if (has_suffix(path, length, ".zst")) {
        *stem_length = length - 4;
        return CLI_ZSTD;
    }
    return CLI_PLAIN;
}

static bool emit(compressor *self, size_t count)
{
    return fwrite(self->buffer, 1, count, self->target) == count;
}

/* The three codecs: all of the input, or with is_end also the end of the compressed data. */
static bool pump_gzip(compressor *self, const char *data, size_t size, bool is_end)
{
    self->gzip.next_in = (const Bytef *)data;
    self->gzip.avail_in = (uInt)size;
    int result;
    do {
        self->gzip.next_out = self->buffer;
        self->gzip.avail_out = BUFFER_BYTES;
        result = deflate(&self->gzip, is_end ? Z_FINISH : Z_NO_FLUSH);
        if (result == Z_STREAM_ERROR || !emit(self, BUFFER_BYTES - self->gzip.avail_out)) {
            return false;
        }
    } while (self->gzip.avail_out == 0 || (is_end && result != Z_STREAM_END));
    return true;
}

static bool pump_xz(compressor *self, const char *data, size_t size, bool is_end)
{
    self->xz.next_in = (const uint8_t *)data;
    self->xz.avail_in = size;
    lzma_ret result;
    do {
        self->xz.next_out = self->buffer;
        self->xz.avail_out = BUFFER_BYTES;
        result = lzma_code(&self->xz, is_end ? LZMA_FINISH : LZMA_RUN);
        bool is_good = result == LZMA_OK || result == LZMA_STREAM_END;
        if (!is_good || !emit(self, BUFFER_BYTES - self->xz.avail_out)) {
            return false;
        }
    } while (self->xz.avail_in > 0 || (is_end && result != LZMA_STREAM_END));
    return true;
}

static bool pump_zstd(compressor *self, const char *data, size_t size, bool is_end)
{
    ZSTD_inBuffer input = {data, size, 0};
    size_t left;
    do {
        ZSTD_outBuffer output = {self->buffer, BUFFER_BYTES, 0};
        left = ZSTD_compressStream2(self->zstd, &output, &input,
                                    is_end ? ZSTD_e_end : ZSTD_e_continue);
        if (ZSTD_isError(left) || !emit(self, output.pos)) {
            return false;
        }
    } while (input.pos < input.size || (is_end && left != 0));
    return true;
}

static bool pump(compressor *self, const char *data, size_t size, bool is_end)
{
    if (cli_is_interrupted()) {
        return false;
    }
    switch (self->compression) {
    case CLI_GZIP:
        return pump_gzip(self, data, size, is_end);
    case CLI_XZ:
        return pump_xz(self, data, size, is_end);
    case CLI_ZSTD:
        return pump_zstd(self, data, size, is_end);
    case CLI_PLAIN:
        break;
    }
    return size == 0 || fwrite(data, 1, size, self->target) == size;
}

static ssize_t on_write(void *cookie, const char *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        size_t part = size - done < BUFFER_BYTES ? size - done : BUFFER_BYTES;
        if (!pump(cookie, data + done, part, false)) {
            errno = errno != 0 ? errno : EIO;
            return 0; /* fopencookie: what a failed write returns */
        }
        done += part;
    }
    return (ssize_t)size;
}

static void destroy(compressor *self)
{
    switch (self->compression) {
    case CLI_GZIP:
        (void)deflateEnd(&self->gzip);
        break;
    case CLI_XZ:
        lzma_end(&self->xz);
        break;
    case CLI_ZSTD:
        ZSTD_freeCStream(self->zstd);
        break;
    case CLI_PLAIN:
        break;
    }
    free(self);
}

static int on_close(void *cookie)
{
    bool is_good = pump(cookie, "", 0, true);
    destroy(cookie);
    return is_good ? 0 : EOF;
}

static bool start(compressor *self)
{
    switch (self->compression) {
    case CLI_GZIP:
        return deflateInit2(&self->gzip, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW_BITS, 8,
                            Z_DEFAULT_STRATEGY) == Z_OK;
    case CLI_XZ:
        return lzma_easy_encoder(&self->xz, XZ_LEVEL, LZMA_CHECK_CRC64) == LZMA_OK;
    case CLI_ZSTD:
        self->zstd = ZSTD_createCStream();
        return self->zstd != NULL && !ZSTD_isError(ZSTD_CCtx_setParameter(
                                         self->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL));
    case CLI_PLAIN:
        break;
    }
    return true;
}

uf_status cli_compress_open(FILE *target, cli_compression compression, FILE **stream,
                            uf_error *error)
{
    compressor *self = calloc(1, sizeof *self);
    if (self == NULL) {
        return uf__error_set(error, UF_ERROR_HOST_MEMORY, "no host memory to compress with");
    }
    self->target = target;
    self->compression = compression;
    FILE *opened = NULL;
    if (start(self)) {
        cookie_io_functions_t functions = {.write = on_write, .close = on_close};
        opened = fopencookie(self, "w", functions);
    }
    if (opened == NULL) {
        destroy(self);
        return uf__error_set(error, UF_ERROR_HOST_MEMORY, "no host memory to compress with");
    }
    (void)setvbuf(opened, NULL, _IOFBF, BUFFER_BYTES);
    *stream = opened;
    return UF_OK;
}
