/* SPDX-License-Identifier: MIT
 *
 * GGUF: "GGUF", version, counts, key-value pairs, the tensors' descriptions, then the data, each
 * tensor at a multiple of the alignment. The last tensor's end is the least size of the file. */
#include "advise/weights_parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"

#define TEXT_BYTES_MAX (UINT64_C(1) << 30)
#define COUNT_MAX (UINT64_C(1) << 24)
#define DIMENSIONS_MAX 4u

enum { VALUE_STRING = 8, VALUE_ARRAY = 9, VALUE_U32 = 4 };

/* Bytes of a value by type; 0: strings and arrays. */
static const unsigned char value_bytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

/* Elements and bytes of a block by type of tensor; {0, 0}: there is no such type. */
static const struct {
    uint16_t elements, bytes;
    uf_dtype dtype;
} kinds[] = {
    [0] = {1, 4, UF_DTYPE_F32},
    [1] = {1, 2, UF_DTYPE_F16},
    [2] = {32, 18, UF_DTYPE_QUANTIZED},
    [3] = {32, 20, UF_DTYPE_QUANTIZED},
    [6] = {32, 22, UF_DTYPE_QUANTIZED},
    [7] = {32, 24, UF_DTYPE_QUANTIZED},
    [8] = {32, 34, UF_DTYPE_QUANTIZED},
    [9] = {32, 36, UF_DTYPE_QUANTIZED},
    [10] = {256, 84, UF_DTYPE_QUANTIZED},
    [11] = {256, 110, UF_DTYPE_QUANTIZED},
    [12] = {256, 144, UF_DTYPE_QUANTIZED},
    [13] = {256, 176, UF_DTYPE_QUANTIZED},
    [14] = {256, 210, UF_DTYPE_QUANTIZED},
    [15] = {256, 292, UF_DTYPE_QUANTIZED},
    [16] = {256, 66, UF_DTYPE_QUANTIZED},
    [17] = {256, 74, UF_DTYPE_QUANTIZED},
    [18] = {256, 98, UF_DTYPE_QUANTIZED},
    [19] = {256, 50, UF_DTYPE_QUANTIZED},
    [20] = {32, 18, UF_DTYPE_QUANTIZED},
    [21] = {256, 110, UF_DTYPE_QUANTIZED},
    [22] = {256, 82, UF_DTYPE_QUANTIZED},
    [23] = {256, 136, UF_DTYPE_QUANTIZED},
    [24] = {1, 1, UF_DTYPE_I8},
    [25] = {1, 2, UF_DTYPE_I16},
    [26] = {1, 4, UF_DTYPE_I32},
    [27] = {1, 8, UF_DTYPE_I64},
    [28] = {1, 8, UF_DTYPE_F64},
    [29] = {256, 56, UF_DTYPE_QUANTIZED},
    [30] = {1, 2, UF_DTYPE_BF16},
};

typedef struct gguf_reader {
    int stream;
    uint64_t at, file_bytes;
    bool has_failed; /* the file ended, or a length is absurd */
} gguf_reader;

static void take(gguf_reader *reader, void *bytes, size_t size)
{
    memset(bytes, 0, size);
    if (reader->has_failed || !uf__weights_read(reader->stream, reader->at, bytes, size)) {
        reader->has_failed = true;
        return;
    }
    reader->at += size;
}

static uint32_t take_u32(gguf_reader *reader)
{
    unsigned char b[4];
    take(reader, b, sizeof b);
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static uint64_t take_u64(gguf_reader *reader)
{
    uint64_t low = take_u32(reader);
    return low | (uint64_t)take_u32(reader) << 32;
}

static void skip(gguf_reader *reader, uint64_t size)
{
    if (size > reader->file_bytes - reader->at) {
        reader->has_failed = true;
    } else {
        reader->at += size;
    }
}

/* A text; its first bytes go to `text`. */
static void take_text(gguf_reader *reader, char *text, size_t capacity)
{
    uint64_t length = take_u64(reader);
    size_t shown = length < capacity ? (size_t)length : capacity - 1;
    uint64_t start = reader->at;
    text[0] = '\0';
    if (length > TEXT_BYTES_MAX) {
        reader->has_failed = true;
        return;
    }
    take(reader, text, shown);
    text[shown] = '\0';
    reader->at = reader->has_failed ? reader->at : start;
    skip(reader, length);
}

static void skip_value(gguf_reader *reader, uint32_t type)
{
    char text[2];
    uint64_t size = 0;
    if (type == VALUE_STRING) {
        take_text(reader, text, sizeof text);
        return;
    }
    if (type != VALUE_ARRAY) {
        reader->has_failed = reader->has_failed || type >= sizeof value_bytes;
        skip(reader, reader->has_failed ? 0 : value_bytes[type]);
        return;
    }
    uint32_t inner = take_u32(reader);
    uint64_t count = take_u64(reader);
    if (inner == VALUE_STRING) {
        for (uint64_t i = 0; i < count && !reader->has_failed; i++) {
            take_text(reader, text, sizeof text);
        }
    } else if (inner == VALUE_ARRAY || inner >= sizeof value_bytes ||
               !uf__multiply_checked(count, value_bytes[inner], &size)) {
        reader->has_failed = true; /* arrays of arrays are not written by anybody */
    } else {
        skip(reader, size);
    }
}

static uint64_t skip_pairs(gguf_reader *reader, uint64_t count)
{
    uint64_t alignment = 32;
    for (uint64_t i = 0; i < count && !reader->has_failed; i++) {
        char key[64];
        take_text(reader, key, sizeof key);
        uint32_t type = take_u32(reader);
        if (strcmp(key, "general.alignment") == 0 && type == VALUE_U32) {
            alignment = take_u32(reader);
        } else {
            skip_value(reader, type);
        }
    }
    return alignment;
}

/* One description. *end: where its data end, from the start of all data. */
static bool take_tensor(gguf_reader *reader, uf_weight_file *file, uint64_t *end)
{
    char name[81];
    uint64_t count = 1, bytes = 0, last = 0;
    take_text(reader, name, sizeof name);
    uint32_t dimension_count = take_u32(reader);
    bool is_good = dimension_count <= DIMENSIONS_MAX;
    for (uint32_t i = 0; is_good && i < dimension_count; i++) {
        is_good = uf__multiply_checked(count, take_u64(reader), &count);
    }
    uint32_t kind = take_u32(reader);
    uint64_t offset = take_u64(reader);
    if (reader->has_failed) {
        return false;
    }
    if (is_good && (kind >= sizeof kinds / sizeof kinds[0] || kinds[kind].elements == 0)) {
        file->has_sum = false; /* newer than this table; the others are still checked */
        return true;
    }
    is_good = is_good && count % kinds[kind].elements == 0 &&
              uf__multiply_checked(count / kinds[kind].elements, kinds[kind].bytes, &bytes) &&
              uf__add_checked(offset, bytes, &last) &&
              uf__weights_count(&file->sum, kinds[kind].dtype, bytes, count);
    if (!is_good) {
        uf__weights_say(file, UF_WEIGHT_DAMAGED, "'%.80s' has an impossible shape", name);
        return false;
    }
    *end = last > *end ? last : *end;
    return true;
}

static void check_end(const gguf_reader *reader, uint64_t alignment, uint64_t end,
                      uf_weight_file *file)
{
    uint64_t data = 0, last = 0;
    if (!uf__round_up_checked(reader->at, alignment, &data) || !uf__add_checked(data, end, &last)) {
        uf__weights_say(file, UF_WEIGHT_DAMAGED, "an impossible alignment of %" PRIu64, alignment);
        file->has_sum = false;
        return;
    }
    file->expected_bytes = last;
    if (file->file_bytes < last) {
        uf__weights_say(file, UF_WEIGHT_CUT, "%" PRIu64 " of %" PRIu64 " bytes are there",
                        file->file_bytes, last);
    }
}

void uf__weights_check_gguf(int stream, uf_weight_file *file)
{
    gguf_reader reader = {.stream = stream, .file_bytes = file->file_bytes};
    char magic[4];
    take(&reader, magic, sizeof magic);
    uint32_t version = take_u32(&reader);
    if (reader.has_failed || memcmp(magic, "GGUF", 4) != 0) {
        uf__weights_say(file, UF_WEIGHT_DAMAGED, "it does not begin with GGUF");
        return;
    }
    if (version < 2 || version > 3) {
        uf__weights_say(file, UF_WEIGHT_UNCHECKED, "version %u of GGUF is not known here", version);
        return;
    }
    uint64_t tensor_count = take_u64(&reader), pair_count = take_u64(&reader), end = 0;
    if (tensor_count > COUNT_MAX || pair_count > COUNT_MAX) {
        uf__weights_say(file, UF_WEIGHT_DAMAGED, "it counts %" PRIu64 " tensors", tensor_count);
        return;
    }
    uint64_t alignment = skip_pairs(&reader, pair_count);
    file->has_sum = true;
    for (uint64_t i = 0; i < tensor_count; i++) {
        if (!take_tensor(&reader, file, &end)) {
            file->has_sum = false;
            break;
        }
    }
    if (reader.has_failed) {
        uf__weights_say(file, UF_WEIGHT_CUT, "it ends within its header");
        file->has_sum = false;
    } else if (!uf__weight_is_fault(file->state)) {
        check_end(&reader, alignment, end, file);
    }
}
