/* SPDX-License-Identifier: MIT
 *
 * Fuzz target of the script reader: no block may overlap another, and a free belongs to an alloc.
 */
#include <stdint.h>
#include <stdlib.h>

#include "trace/script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

static void check_addresses(const uf_trace *trace)
{
    uint64_t end = 0;
    for (uint64_t i = 0; i < trace->event_count; i++) {
        const uf_event *event = &trace->events[i];
        if (event->action == UF_ACTION_ALLOC) {
            if (event->addr < end || event->addr % 512 != 0) {
                abort();
            }
            end = event->addr + event->size_bytes;
        } else if (event->action != UF_ACTION_OTHER && event->addr >= end) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    uf__input *input = NULL;
    uf_trace *trace = NULL;
    uf_error error;
    uf_builder *builder = uf__builder_create();
    if (builder != NULL && uf__input_open_memory(data, size_bytes, NULL, &input, &error) == UF_OK &&
        uf__script_read(input, builder, &error) == UF_OK && uf__builder_finish(builder, &trace)) {
        builder = NULL;
    }
    if (trace != NULL) {
        check_addresses(trace);
    }
    uf_trace_destroy(trace);
    uf__builder_destroy(builder);
    uf__input_close(input);
    return 0;
}
