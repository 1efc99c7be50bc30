/* SPDX-License-Identifier: MIT
 *
 * Sums by call stack. */
#include "report/sites.h"

#include <stdlib.h>
#include <string.h>

static int by_peak(const void *a, const void *b)
{
    const uf_report_site *one = a, *other = b;
    if (one->peak_bytes != other->peak_bytes) {
        return one->peak_bytes > other->peak_bytes ? -1 : 1;
    }
    if (one->alloc_bytes != other->alloc_bytes) {
        return one->alloc_bytes > other->alloc_bytes ? -1 : 1;
    }
    return one->stack < other->stack ? -1 : one->stack > other->stack;
}

uf_status uf__sites_init(uf_sites *sites, const uf_history *history)
{
    memset(sites, 0, sizeof *sites);
    uint32_t stack_count = history->trace->stack_count;
    uint64_t peak_event = history->peaks[UF_LEVEL_LIVE].event;
    uf_report_site *all = calloc(stack_count + 1u, sizeof *all);
    if (all == NULL) {
        return UF_ERROR_HOST_MEMORY;
    }
    for (uint64_t i = 0; i < history->span_count; i++) {
        const uf_span *span = &history->spans[i];
        bool is_there = uf__span_is_at(span, peak_event);
        if (span->stack >= stack_count) {
            sites->unknown_peak_bytes += is_there ? span->size_bytes : 0;
            continue;
        }
        uf_report_site *site = &all[span->stack];
        site->alloc_bytes += span->size_bytes;
        site->alloc_count++;
        site->peak_bytes += is_there ? span->size_bytes : 0;
        site->peak_count += is_there;
        if (span->size_bytes > site->largest_bytes) {
            site->largest_bytes = span->size_bytes;
        }
    }
    for (uint32_t i = 0; i < stack_count; i++) {
        if (all[i].alloc_count > 0) {
            all[sites->count] = all[i];
            all[sites->count++].stack = i;
        }
    }
    qsort(all, sites->count, sizeof *all, by_peak);
    sites->items = all;
    return UF_OK;
}

void uf__sites_fini(uf_sites *sites)
{
    free(sites->items);
    memset(sites, 0, sizeof *sites);
}

static bool is_of_torch(const char *filename)
{
    return strstr(filename, "/torch/") != NULL || strstr(filename, "\\torch\\") != NULL ||
           strstr(filename, "??") != NULL || filename[0] == '\0' || filename[0] == '<' ||
           strstr(filename, ".cpp") != NULL || strstr(filename, ".so") != NULL;
}

const uf_frame *uf__sites_frame(const uf_trace *trace, uint32_t stack)
{
    if (stack >= trace->stack_count) {
        return NULL;
    }
    const uf_stack *list = &trace->stacks[stack];
    for (uint32_t i = 0; i < list->count; i++) {
        const uf_frame *frame = &trace->frames[trace->frame_ids[list->first + i]];
        if (!is_of_torch(uf_trace_string(trace, frame->filename))) {
            return frame;
        }
    }
    return list->count > 0 ? &trace->frames[trace->frame_ids[list->first]] : NULL;
}
