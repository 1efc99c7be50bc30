/* SPDX-License-Identifier: MIT
 *
 * Segments and blocks are made from the spans and extents that are there. */
#include "report/moment.h"

#include <stdlib.h>
#include <string.h>

#include "alloc/rounding.h"

typedef struct uf_gatherer {
    const uf_history *history;
    uf_moment *moment;
    uint32_t *extents, *spans; /* indices of those that are there, by address */
    uint64_t extent_count, span_count;
} uf_gatherer;

typedef struct uf_keyed {
    uint64_t addr;
    uint32_t index;
} uf_keyed;

static int by_addr(const void *a, const void *b)
{
    const uf_keyed *one = a, *other = b;
    return one->addr < other->addr ? -1 : one->addr > other->addr;
}

/* Sorts `count` keyed items and leaves their indices. */
static uint32_t *sorted_indices(uf_keyed *keyed, uint64_t count)
{
    uint32_t *indices = malloc((count + 1) * sizeof *indices);
    if (indices != NULL) {
        qsort(keyed, count, sizeof *keyed, by_addr);
        for (uint64_t i = 0; i < count; i++) {
            indices[i] = keyed[i].index;
        }
    }
    free(keyed);
    return indices;
}

static bool gather(uf_gatherer *gatherer)
{
    const uf_history *history = gatherer->history;
    uint64_t event = gatherer->moment->event;
    for (uint64_t i = 0; i < history->extent_count; i++) {
        gatherer->extent_count += uf__extent_is_at(&history->extents[i], event);
    }
    for (uint64_t i = 0; i < history->span_count; i++) {
        gatherer->span_count += uf__span_is_at(&history->spans[i], event);
    }
    uf_keyed *extents = malloc((gatherer->extent_count + 1) * sizeof *extents);
    uf_keyed *spans = malloc((gatherer->span_count + 1) * sizeof *spans);
    if (extents == NULL || spans == NULL) {
        free(extents);
        free(spans);
        return false;
    }
    uint64_t count = 0;
    for (uint64_t i = 0; i < history->extent_count; i++) {
        if (uf__extent_is_at(&history->extents[i], event)) {
            extents[count++] = (uf_keyed){history->extents[i].addr, (uint32_t)i};
        }
    }
    count = 0;
    for (uint64_t i = 0; i < history->span_count; i++) {
        if (uf__span_is_at(&history->spans[i], event)) {
            spans[count++] = (uf_keyed){history->spans[i].addr, (uint32_t)i};
        }
    }
    gatherer->extents = sorted_indices(extents, gatherer->extent_count);
    gatherer->spans = sorted_indices(spans, gatherer->span_count);
    return gatherer->extents != NULL && gatherer->spans != NULL;
}

static void add_block(uf_moment *moment, uint64_t addr, uint64_t end, const uf_span *span,
                      uint32_t index)
{
    if (end <= addr) {
        return;
    }
    uf_trace_segment *segment = &moment->segments[moment->segment_count];
    uint8_t state = span == NULL                   ? UF_BLOCK_INACTIVE
                    : span->freed <= moment->event ? UF_BLOCK_ACTIVE_PENDING_FREE
                                                   : UF_BLOCK_ACTIVE_ALLOCATED;
    moment->span_of_block[moment->block_count] = index;
    moment->blocks[moment->block_count++] =
        (uf_trace_block){.addr = addr,
                         .size_bytes = end - addr,
                         .requested_bytes = span != NULL ? span->requested_bytes : 0,
                         .stack = span != NULL ? span->stack : UF_NONE,
                         .state = state,
                         .has_requested = span != NULL};
    segment->block_count++;
    segment->active_bytes += span != NULL ? end - addr : 0;
    segment->allocated_bytes += state == UF_BLOCK_ACTIVE_ALLOCATED ? end - addr : 0;
}

/* The segment that starts with extents[at]: mapped parts that touch are one. Returns the first
 * extent after it. */
static uint64_t begin_segment(uf_gatherer *gatherer, uint64_t at)
{
    uf_moment *moment = gatherer->moment;
    const uf_history *history = gatherer->history;
    const uf_extent *first = &history->extents[gatherer->extents[at]];
    uint64_t end = first->addr + first->size_bytes;
    at++;
    while (first->is_expandable && at < gatherer->extent_count) {
        const uf_extent *next = &history->extents[gatherer->extents[at]];
        if (!next->is_expandable || next->addr != end) {
            break;
        }
        end += next->size_bytes;
        at++;
    }
    uf_trace_segment *segment = &moment->segments[moment->segment_count];
    *segment = (uf_trace_segment){.addr = first->addr,
                                  .total_bytes = end - first->addr,
                                  .stream = history->streams[first->stream],
                                  .first_block = moment->block_count,
                                  .stack = UF_NONE,
                                  .device = history->device,
                                  .is_large = !first->is_small,
                                  .is_expandable = first->is_expandable,
                                  .has_pool_id = true,
                                  .has_requested = true};
    memcpy(segment->pool_id, history->pools[first->pool], sizeof segment->pool_id);
    return at;
}

static void fill_segments(uf_gatherer *gatherer)
{
    uf_moment *moment = gatherer->moment;
    const uf_history *history = gatherer->history;
    uint64_t s = 0;
    for (uint64_t e = 0; e < gatherer->extent_count;) {
        e = begin_segment(gatherer, e);
        const uf_trace_segment *segment = &moment->segments[moment->segment_count];
        uint64_t at = segment->addr, end = at + segment->total_bytes;
        for (; s < gatherer->span_count; s++) {
            const uf_span *span = &history->spans[gatherer->spans[s]];
            if (span->addr >= end) {
                break;
            }
            if (span->addr < at) {
                continue; /* outside of what is held: a contradiction of the recording */
            }
            uint64_t span_end =
                span->addr + span->size_bytes < end ? span->addr + span->size_bytes : end;
            add_block(moment, at, span->addr, NULL, UF_NONE);
            add_block(moment, span->addr, span_end, span, gatherer->spans[s]);
            moment->levels[UF_LEVEL_LIVE] +=
                span->requested_bytes == 0
                    ? UF_MIN_BLOCK_BYTES
                    : uf__round_up_power2(span->requested_bytes, UF_MIN_BLOCK_BYTES);
            at = span_end;
        }
        add_block(moment, at, end, NULL, UF_NONE);
        moment->levels[UF_LEVEL_RESERVED] += segment->total_bytes;
        moment->levels[UF_LEVEL_ACTIVE] += segment->active_bytes;
        moment->levels[UF_LEVEL_ALLOCATED] += segment->allocated_bytes;
        moment->segment_count++;
    }
}

/* A snapshot of that moment, as the failed request would have left it. */
static void examine(uf_moment *moment, const uf_history *history, uint64_t limit_bytes)
{
    bool is_oom = moment->kind == UF_MOMENT_OOM;
    uf_event event = is_oom ? history->events[moment->event] : (uf_event){0};
    uf_trace_device device = {.device = history->device, .count = is_oom};
    uf_trace view = *history->trace;
    view.events = &event;
    view.event_count = is_oom;
    view.devices = &device;
    view.device_count = 1;
    view.segments = moment->segments;
    view.segment_count = moment->segment_count;
    view.blocks = moment->blocks;
    view.block_count = moment->block_count;
    (void)uf__snapshot_examine(&view, history->device, &moment->state);
    moment->state.limit_bytes = limit_bytes;
    moment->state.oom_event = moment->event;
}

static uf_status explain(uf_moment *moment, const uf_history *history)
{
    const uf_conf_reading reading = {.is_at_import = true};
    uf_conf_report report = {0};
    uf_conf conf;
    uf__conf_init(&conf);
    bool has_conf = history->program != NULL && uf__conf_read(&conf, history->program->conf_text,
                                                              &reading, &report, NULL) == UF_OK;
    moment->explanation = calloc(1, sizeof *moment->explanation);
    if (moment->explanation == NULL) {
        return UF_ERROR_HOST_MEMORY;
    }
    uf_explain_request request = {.snapshot = &moment->state,
                                  .conf = has_conf ? &conf : NULL,
                                  .named = has_conf ? report.named : 0};
    uf__explain(&request, moment->explanation);
    return UF_OK;
}

uf_status uf__moment_init(uf_moment *moment, const uf_history *history, uf_moment_kind kind,
                          uint64_t event, uint64_t limit_bytes)
{
    *moment = (uf_moment){.kind = kind, .event = event};
    uf_gatherer gatherer = {.history = history, .moment = moment};
    bool is_good = gather(&gatherer);
    if (is_good) {
        uint64_t block_room = gatherer.span_count * 2 + gatherer.extent_count + 1;
        moment->segments = calloc(gatherer.extent_count + 1, sizeof *moment->segments);
        moment->blocks = calloc(block_room, sizeof *moment->blocks);
        moment->span_of_block = calloc(block_room, sizeof *moment->span_of_block);
        is_good =
            moment->segments != NULL && moment->blocks != NULL && moment->span_of_block != NULL;
    }
    if (is_good) {
        fill_segments(&gatherer);
        moment->wanted_bytes =
            kind == UF_MOMENT_OOM ? history->events[moment->event].size_bytes : 0;
        examine(moment, history, limit_bytes);
    }
    free(gatherer.extents);
    free(gatherer.spans);
    if (is_good && kind == UF_MOMENT_OOM) {
        return explain(moment, history);
    }
    return is_good ? UF_OK : UF_ERROR_HOST_MEMORY;
}

void uf__moment_fini(uf_moment *moment)
{
    free(moment->segments);
    free(moment->blocks);
    free(moment->span_of_block);
    free(moment->explanation);
    memset(moment, 0, sizeof *moment);
}

/* The failures to look at: indices into marks, in order. Returns how many. */
static uint32_t choose_failures(const uf_marks *marks, uint32_t *chosen, uint32_t capacity)
{
    uint32_t first = UF_NONE, last = UF_NONE, count = 0;
    for (uint32_t i = 0; i < marks->count; i++) {
        if (marks->items[i].kind == UF_MARK_OOM) {
            first = first == UF_NONE ? i : first;
            last = i;
        }
    }
    if (first == UF_NONE) {
        return 0;
    }
    chosen[count++] = first;
    while (count + 1 < capacity) { /* the largest that is not chosen yet */
        uint32_t best = UF_NONE;
        for (uint32_t i = first + 1; i < last; i++) {
            bool is_new = marks->items[i].kind == UF_MARK_OOM;
            for (uint32_t k = 0; k < count; k++) {
                is_new = is_new && chosen[k] != i;
            }
            if (is_new && (best == UF_NONE || marks->items[i].bytes > marks->items[best].bytes)) {
                best = i;
            }
        }
        if (best == UF_NONE) {
            break;
        }
        uint32_t at = count++;
        for (; at > 0 && chosen[at - 1] > best; at--) {
            chosen[at] = chosen[at - 1];
        }
        chosen[at] = best;
    }
    if (last != first) {
        chosen[count++] = last;
    }
    return count;
}

uf_status uf__moments_init(uf_moments *moments, const uf_history *history, const uf_marks *marks,
                           uint64_t limit_bytes)
{
    uint32_t chosen[UF_MOMENT_LIMIT - 2];
    uf_status status = UF_OK;
    moments->count = 0;
    if (history->event_count > 0) {
        status = uf__moment_init(&moments->items[moments->count++], history, UF_MOMENT_PEAK,
                                 history->peaks[UF_LEVEL_RESERVED].event, limit_bytes);
    }
    uint32_t failure_count = choose_failures(marks, chosen, UF_MOMENT_LIMIT - 2);
    for (uint32_t i = 0; i < failure_count && status == UF_OK; i++) {
        status = uf__moment_init(&moments->items[moments->count++], history, UF_MOMENT_OOM,
                                 marks->items[chosen[i]].event, limit_bytes);
    }
    if (status == UF_OK) {
        uint64_t last = history->event_count > 0 ? history->event_count - 1 : 0;
        status = uf__moment_init(&moments->items[moments->count++], history, UF_MOMENT_END, last,
                                 limit_bytes);
    }
    return status;
}

void uf__moments_fini(uf_moments *moments)
{
    for (uint32_t i = 0; i < moments->count; i++) {
        uf__moment_fini(&moments->items[i]);
    }
    moments->count = 0;
}

const uf_moment *uf__moments_failure(const uf_moments *moments)
{
    for (uint32_t i = moments->count; i-- > 0;) {
        if (moments->items[i].kind == UF_MOMENT_OOM) {
            return &moments->items[i];
        }
    }
    return NULL;
}
