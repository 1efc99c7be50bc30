/* SPDX-License-Identifier: MIT
 *
 * Fuzz target of the .uft reader and of both trace writers. The checksums of the input are set
 * right first, so that what lies behind them is reached; what was read is written and must come
 * back equal in size. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "trace/uft.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

static void put_u32(uint8_t *at, unsigned long value)
{
    for (int i = 0; i < 4; i++) {
        at[i] = (uint8_t)(value >> (8 * i));
    }
}

static void set_checksums(uint8_t *data, size_t size_bytes)
{
    if (size_bytes < UF_UFT_HEADER_BYTES) {
        return;
    }
    put_u32(data + 12, crc32_z(0, data, 12));
    size_t at = UF_UFT_HEADER_BYTES;
    while (size_bytes - at >= UF_UFT_SECTION_BYTES) {
        uint8_t *section = data + at;
        size_t payload_bytes = section[4] | (size_t)section[5] << 8 | (size_t)section[6] << 16 |
                               (size_t)section[7] << 24;
        if (payload_bytes > size_bytes - at - UF_UFT_SECTION_BYTES) {
            return;
        }
        uLong crc = crc32_z(0, section, 8);
        put_u32(section + 8, crc32_z(crc, section + UF_UFT_SECTION_BYTES, payload_bytes));
        at += UF_UFT_SECTION_BYTES + payload_bytes;
    }
}

static uf_trace *read_uft(const void *data, size_t size_bytes)
{
    uf__input *input = NULL;
    uf_trace *trace = NULL;
    uf_error error;
    uf_builder *builder = uf__builder_create();
    if (builder != NULL && uf__input_open_memory(data, size_bytes, NULL, &input, &error) == UF_OK &&
        uf__uft_read(input, builder, &error) == UF_OK && uf__builder_finish(builder, &trace)) {
        builder = NULL;
    }
    uf__builder_destroy(builder);
    uf__input_close(input);
    return trace;
}

typedef uf_status (*writer)(const uf_trace *, FILE *, uf_error *);

static char *write_trace(writer write, const uf_trace *trace, size_t *size_bytes)
{
    char *data = NULL;
    FILE *stream = open_memstream(&data, size_bytes);
    if (stream == NULL || write(trace, stream, NULL) != UF_OK || fclose(stream) != 0) {
        abort();
    }
    return data;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    uint8_t *copy = malloc(size_bytes + 1);
    memcpy(copy, data, size_bytes);
    set_checksums(copy, size_bytes);
    uf_trace *trace = read_uft(copy, size_bytes);
    free(copy);
    if (trace == NULL) {
        return 0;
    }
    size_t written_bytes;
    size_t again_bytes;
    char *written = write_trace(uf_trace_write_uft, trace, &written_bytes);
    uf_trace *again = read_uft(written, written_bytes);
    if (again == NULL) {
        abort();
    }
    char *rewritten = write_trace(uf_trace_write_uft, again, &again_bytes);
    if (again_bytes != written_bytes || memcmp(written, rewritten, written_bytes) != 0) {
        abort();
    }
    free(written);
    free(rewritten);
    free(write_trace(uf_trace_write_pickle, trace, &written_bytes));
    uf_trace_destroy(again);
    uf_trace_destroy(trace);
    return 0;
}
