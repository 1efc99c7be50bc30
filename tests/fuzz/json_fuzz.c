/* SPDX-License-Identifier: MIT
 *
 * Fuzz target of the JSON reader. */
#include <stdint.h>

#include "trace/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    uf__input *input = NULL;
    uf_trace *trace = NULL;
    uf_error error;
    uf_builder *builder = uf__builder_create();
    if (builder != NULL && uf__input_open_memory(data, size_bytes, NULL, &input, &error) == UF_OK &&
        uf__json_read(input, builder, &error) == UF_OK && uf__builder_finish(builder, &trace)) {
        builder = NULL;
    }
    uf_trace_destroy(trace);
    uf__builder_destroy(builder);
    uf__input_close(input);
    return 0;
}
