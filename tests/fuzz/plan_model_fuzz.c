/* SPDX-License-Identifier: MIT
 *
 * Fuzz target of the reader of plan's model files, and of laying out what it lets in. */
#include <stdint.h>

#include "advise/plan_stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    uf_plan_model *model = NULL;
    uf_error error;
    if (uf__plan_model_parse((const char *)data, size_bytes, &model, &error) != UF_OK) {
        return 0;
    }
    for (uint32_t options = 0; options < 1u << UF_PLAN_OPTION_COUNT; options += 5) {
        const uf_plan_job job = {.shape = {256, 192, 1 + options % 3}, .options = options};
        uf_plan_stream stream;
        (void)(uf__plan_stream_build(model, &job, &stream, &error) == UF_OK);
        uf__plan_stream_fini(&stream);
    }
    uf__plan_model_destroy(model);
    return 0;
}
