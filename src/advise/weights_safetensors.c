/* SPDX-License-Identifier: MIT
 *
 * Safetensors: 8 bytes of length (little endian), a JSON object, the data.
 *
 *     | N | {"a": {"dtype", "shape", "data_offsets": [begin, end]}, ...} | data of all tensors |
 *     0   8                                                          8 + N             file's end
 *
 * The data have neither gaps nor overlaps, and the last one ends where the file does. */
#include "advise/weights_parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"

/* What the reference implementation accepts. */
#define HEADER_BYTES_MAX UINT64_C(100000000)

typedef struct extent {
    uint64_t begin, end;
    const char *name; /* of the header's */
} extent;

static const struct {
    const char *name;
    unsigned bits;
} dtypes[] = {
#define DTYPE_ROW(constant, name, bits) {name, bits},
    UF_DTYPE_LIST(DTYPE_ROW)
#undef DTYPE_ROW
};

const char *uf__dtype_name(uf_dtype dtype)
{
    return dtypes[dtype].name;
}

static uf_dtype find_dtype(const char *name)
{
    for (unsigned i = 0; i < UF_DTYPE_COUNT; i++) {
        if (dtypes[i].bits != 0 && strcmp(dtypes[i].name, name) == 0) {
            return (uf_dtype)i;
        }
    }
    return UF_DTYPE_OTHER;
}

bool uf__weights_count(uf_weights_sum *sum, uf_dtype dtype, uint64_t data_bytes,
                       uint64_t parameter_count)
{
    uint64_t bytes, parameters;
    if (!uf__add_checked(sum->data_bytes, data_bytes, &bytes) ||
        !uf__add_checked(sum->parameter_count, parameter_count, &parameters)) {
        return false;
    }
    sum->data_bytes = bytes;
    sum->parameter_count = parameters;
    sum->tensor_count++;
    sum->dtype_bytes[dtype] += data_bytes;
    sum->dtype_parameters[dtype] += parameter_count;
    return true;
}

json_t *uf__weights_safetensors_header(int stream, uf_weight_file *file, uint64_t *header_bytes)
{
    unsigned char raw[8];
    uint64_t length = 0;
    if (!uf__weights_read(stream, 0, raw, sizeof raw)) {
        uf__weights_say(file, UF_WEIGHT_CUT, "it ends within its first 8 bytes");
        return NULL;
    }
    for (unsigned i = 0; i < sizeof raw; i++) {
        length |= (uint64_t)raw[i] << (8 * i);
    }
    if (length > HEADER_BYTES_MAX || length < 2) {
        uf__weights_say(file, UF_WEIGHT_DAMAGED,
                        "it is no safetensors file: a header of %" PRIu64 " bytes", length);
        return NULL;
    }
    if (length > file->file_bytes - sizeof raw) {
        uf__weights_say(file, UF_WEIGHT_CUT,
                        "it ends within its header, which alone takes %" PRIu64 " bytes", length);
        return NULL;
    }
    char *text = malloc(length);
    json_error_t where;
    json_t *header = NULL;
    if (text == NULL || !uf__weights_read(stream, sizeof raw, text, length)) {
        uf__weights_say(file, UF_WEIGHT_UNCHECKED, "its header could not be read");
    } else {
        header = json_loadb(text, length, JSON_REJECT_DUPLICATES, &where);
        if (!json_is_object(header)) {
            json_decref(header);
            header = NULL;
            uf__weights_say(file, UF_WEIGHT_DAMAGED, "its header is no JSON object");
        }
    }
    free(text);
    *header_bytes = length + sizeof raw;
    return header;
}

static bool read_shape(const json_t *shape, uint64_t *count)
{
    uint64_t product = 1;
    if (!json_is_array(shape)) {
        return false;
    }
    for (size_t i = 0; i < json_array_size(shape); i++) {
        const json_t *item = json_array_get(shape, i);
        if (!json_is_integer(item) || json_integer_value(item) < 0 ||
            !uf__multiply_checked(product, (uint64_t)json_integer_value(item), &product)) {
            return false;
        }
    }
    *count = product;
    return true;
}

static bool read_offsets(const json_t *offsets, extent *span)
{
    const json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end) ||
        json_integer_value(begin) < 0 || json_integer_value(end) < json_integer_value(begin)) {
        return false;
    }
    span->begin = (uint64_t)json_integer_value(begin);
    span->end = (uint64_t)json_integer_value(end);
    return true;
}

/* One tensor's entry: its span agrees with its shape and type. */
static bool read_tensor(const json_t *entry, extent *span, uf_weight_file *file)
{
    const char *type = json_string_value(json_object_get(entry, "dtype"));
    uint64_t count = 0, bits = 0;
    if (type == NULL || !read_shape(json_object_get(entry, "shape"), &count) ||
        !read_offsets(json_object_get(entry, "data_offsets"), span)) {
        uf__weights_say(file, UF_WEIGHT_DAMAGED,
                        "its header has no proper dtype, shape and data_offsets for '%.80s'",
                        span->name);
        return false;
    }
    uf_dtype dtype = find_dtype(type);
    uint64_t bytes = span->end - span->begin;
    bool is_known = dtypes[dtype].bits != 0;
    if (is_known && (!uf__multiply_checked(count, dtypes[dtype].bits, &bits) || bits % 8 != 0 ||
                     bits / 8 != bytes)) {
        uf__weights_say(file, UF_WEIGHT_DAMAGED,
                        "'%.80s' has %" PRIu64 " elements of %s and %" PRIu64 " bytes", span->name,
                        count, type, bytes);
        return false;
    }
    if (!uf__weights_count(&file->sum, dtype, bytes, count)) {
        uf__weights_say(file, UF_WEIGHT_DAMAGED, "its tensors add up to more than 2^64 bytes");
        return false;
    }
    return true;
}

static int compare_spans(const void *left, const void *right)
{
    const extent *a = left, *b = right;
    if (a->begin != b->begin) {
        return a->begin < b->begin ? -1 : 1;
    }
    return a->end < b->end ? -1 : a->end > b->end;
}

/* Neither gaps nor overlaps. *end: where the data end. */
static bool check_spans(extent *spans, size_t count, uint64_t *end, uf_weight_file *file)
{
    uint64_t at = 0;
    if (count > 1) {
        qsort(spans, count, sizeof *spans, compare_spans);
    }
    for (size_t i = 0; i < count; i++) {
        if (spans[i].begin != at) {
            uf__weights_say(file, UF_WEIGHT_DAMAGED,
                            "'%.80s' begins at %" PRIu64 ", where %" PRIu64 " is due: tensors %s",
                            spans[i].name, spans[i].begin, at,
                            spans[i].begin < at ? "overlap" : "have a gap between them");
            return false;
        }
        at = spans[i].end;
    }
    *end = at;
    return true;
}

static void check_end(uint64_t end, uf_weight_file *file)
{
    file->expected_bytes = end;
    if (file->file_bytes < end) {
        uf__weights_say(file, UF_WEIGHT_CUT, "%" PRIu64 " of %" PRIu64 " bytes are there",
                        file->file_bytes, end);
    } else if (file->file_bytes > end) {
        uf__weights_say(file, UF_WEIGHT_DAMAGED, "%" PRIu64 " bytes too many behind its data",
                        file->file_bytes - end);
    }
}

void uf__weights_check_safetensors(int stream, uf_weight_file *file)
{
    uint64_t header_bytes = 0, data_bytes = 0;
    json_t *header = uf__weights_safetensors_header(stream, file, &header_bytes);
    if (header == NULL) {
        return;
    }
    extent *spans = calloc(json_object_size(header) + 1, sizeof *spans);
    size_t count = 0;
    bool is_good = spans != NULL;
    const char *name;
    json_t *entry;
    json_object_foreach(header, name, entry)
    {
        if (is_good && strcmp(name, "__metadata__") != 0) {
            spans[count].name = name;
            is_good = read_tensor(entry, &spans[count], file);
            count++;
        }
    }
    if (spans == NULL) {
        uf__weights_say(file, UF_WEIGHT_UNCHECKED, "no host memory to read its header");
    } else if (is_good && check_spans(spans, count, &data_bytes, file)) {
        file->has_sum = true;
        check_end(header_bytes + data_bytes, file);
    }
    free(spans);
    json_decref(header);
}
