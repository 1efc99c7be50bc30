/* SPDX-License-Identifier: MIT
 *
 * Numbers to bytes, bytes to text. */
#include "report/pack.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

void uf__pack_fini(uf_pack *pack)
{
    free(pack->bytes);
    memset(pack, 0, sizeof *pack);
}

static bool make_room(uf_pack *pack)
{
    if (pack->count + 10 <= pack->capacity) {
        return true;
    }
    size_t capacity = pack->capacity == 0 ? 4096 : pack->capacity * 2;
    unsigned char *grown = pack->has_failed ? NULL : realloc(pack->bytes, capacity);
    if (grown == NULL) {
        pack->has_failed = true;
        return false;
    }
    pack->bytes = grown;
    pack->capacity = capacity;
    return true;
}

void uf__pack_number(uf_pack *pack, uint64_t value)
{
    if (!make_room(pack)) {
        return;
    }
    while (value >= 0x80) {
        pack->bytes[pack->count++] = (unsigned char)(value | 0x80);
        value >>= 7;
    }
    pack->bytes[pack->count++] = (unsigned char)value;
}

void uf__pack_signed(uf_pack *pack, int64_t value)
{
    uint64_t doubled = (uint64_t)value << 1;
    uf__pack_number(pack, value < 0 ? ~doubled : doubled);
}

/* gzip of the bytes; the caller frees *packed. */
static bool compress_bytes(const uf_pack *pack, unsigned char **packed, size_t *packed_bytes)
{
    enum { GZIP_WINDOW = 15 + 16, MEMORY_LEVEL = 9, LEVEL = 5 };
    z_stream stream = {0};
    if (deflateInit2(&stream, LEVEL, Z_DEFLATED, GZIP_WINDOW, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) !=
        Z_OK) {
        return false;
    }
    size_t capacity = deflateBound(&stream, pack->count) + 64;
    *packed = malloc(capacity);
    size_t taken = 0, made = 0;
    int result = *packed != NULL ? Z_OK : Z_MEM_ERROR;
    while (result == Z_OK) { /* zlib counts in 32 bits */
        size_t left = pack->count - taken, room = capacity - made;
        uInt in_bytes = (uInt)(left > (1u << 30) ? (1u << 30) : left);
        uInt out_bytes = (uInt)(room > (1u << 30) ? (1u << 30) : room);
        stream.next_in = pack->bytes + taken;
        stream.avail_in = in_bytes;
        stream.next_out = *packed + made;
        stream.avail_out = out_bytes;
        result = deflate(&stream, left == in_bytes ? Z_FINISH : Z_NO_FLUSH);
        taken += in_bytes - stream.avail_in;
        made += out_bytes - stream.avail_out;
    }
    deflateEnd(&stream);
    *packed_bytes = made;
    return result == Z_STREAM_END;
}

static void encode(const unsigned char *from, size_t count, char *to)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < count; i += 3) {
        uint32_t bits = (uint32_t)from[i] << 16;
        bits |= i + 1 < count ? (uint32_t)from[i + 1] << 8 : 0;
        bits |= i + 2 < count ? (uint32_t)from[i + 2] : 0;
        *to++ = letters[bits >> 18];
        *to++ = letters[bits >> 12 & 63];
        *to++ = i + 1 < count ? letters[bits >> 6 & 63] : '=';
        *to++ = i + 2 < count ? letters[bits & 63] : '=';
    }
}

uf_status uf__pack_write(const uf_pack *pack, FILE *stream, size_t *written_bytes)
{
    enum { PIECE = 3 << 12 };
    unsigned char *packed = NULL;
    size_t packed_bytes = 0;
    char text[PIECE / 3 * 4];
    *written_bytes = 0;
    if (pack->has_failed || !compress_bytes(pack, &packed, &packed_bytes)) {
        free(packed);
        return UF_ERROR_HOST_MEMORY;
    }
    bool is_good = true;
    for (size_t at = 0; at < packed_bytes && is_good; at += PIECE) {
        size_t count = packed_bytes - at < PIECE ? packed_bytes - at : PIECE;
        size_t length = (count + 2) / 3 * 4;
        encode(packed + at, count, text);
        is_good = fwrite(text, 1, length, stream) == length;
        *written_bytes += length;
    }
    free(packed);
    return is_good ? UF_OK : UF_ERROR_IO;
}
