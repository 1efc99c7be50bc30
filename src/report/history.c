/* SPDX-License-Identifier: MIT
 *
 * The walk over the events. */
#include "report/history.h"

#include <stdlib.h>
#include <string.h>

#include "alloc/rounding.h"
#include "base/error.h"
#include "replay/rebuild.h"
#include "report/blockmap.h"

typedef struct uf_walker {
    uf_history *history;
    const uf_program *program;
    uf_blockmap blocks;
    uf_addrmap extents; /* index of the extent that starts at an address, while it is held */
    uint16_t *stream_of_site;
    uint32_t segment_count; /* owners given out */
    uint64_t levels[UF_LEVEL_COUNT];
} uf_walker;

static bool grow(void **items, uint64_t *capacity, uint64_t count, size_t item_bytes)
{
    if (count < *capacity) {
        return true;
    }
    uint64_t wanted = *capacity == 0 ? 1024 : *capacity + *capacity / 2;
    void *grown = realloc(*items, (size_t)wanted * item_bytes);
    if (grown == NULL) {
        return false;
    }
    *items = grown;
    *capacity = wanted;
    return true;
}

static bool add_span(uf_history *history, uf_span span, uint32_t *index)
{
    if (history->span_count >= UF_BLOCKMAP_CACHED ||
        !grow((void **)&history->spans, &history->span_capacity, history->span_count,
              sizeof span)) {
        return false;
    }
    *index = (uint32_t)history->span_count;
    history->spans[history->span_count++] = span;
    return true;
}

static bool add_extent(uf_history *history, uf_extent extent)
{
    if (!grow((void **)&history->extents, &history->extent_capacity, history->extent_count,
              sizeof extent)) {
        return false;
    }
    history->extents[history->extent_count++] = extent;
    return true;
}

static uint64_t floor_bytes(uint64_t requested_bytes)
{
    return requested_bytes == 0 ? UF_MIN_BLOCK_BYTES
                                : uf__round_up_power2(requested_bytes, UF_MIN_BLOCK_BYTES);
}

static void subtract(uint64_t *level, uint64_t bytes)
{
    *level -= bytes <= *level ? bytes : *level;
}

/* A range was obtained. Mapped parts are kept apart, as they came. */
static bool hold(uf_walker *walker, uf_extent extent)
{
    if (extent.size_bytes == 0 || extent.addr + extent.size_bytes < extent.addr) {
        walker->history->stray_count++;
        return true;
    }
    uint32_t owner = extent.is_expandable ? UF_OWNER_EXPANDABLE : walker->segment_count++;
    walker->levels[UF_LEVEL_RESERVED] += extent.size_bytes;
    return uf__addrmap_set(&walker->extents, extent.addr,
                           (uint32_t)walker->history->extent_count) &&
           add_extent(walker->history, extent) &&
           uf__blockmap_add(&walker->blocks, (uf_blockmap_block){extent.addr, extent.size_bytes,
                                                                 owner, UF_BLOCKMAP_CACHED});
}

/* The extent that holds addr now, or UF_NONE. Nearly always one starts there. */
static uint32_t extent_at(const uf_walker *walker, uint64_t addr)
{
    const uf_history *history = walker->history;
    const uint32_t *found = uf__addrmap_find(&walker->extents, addr);
    if (found != NULL) {
        return *found;
    }
    for (uint64_t i = history->extent_count; i-- > 0;) {
        const uf_extent *extent = &history->extents[i];
        if (extent->to == UF_HISTORY_END && extent->addr <= addr &&
            addr - extent->addr < extent->size_bytes) {
            return (uint32_t)i;
        }
    }
    return UF_NONE;
}

/* What is left of an extent goes on as a new one. */
static bool go_on_with(uf_walker *walker, uf_extent extent, uint64_t addr, uint64_t end,
                       uint32_t at)
{
    extent.addr = addr;
    extent.size_bytes = end - addr;
    extent.from = at;
    extent.is_start = false;
    return end == addr ||
           (uf__addrmap_set(&walker->extents, addr, (uint32_t)walker->history->extent_count) &&
            add_extent(walker->history, extent));
}

/* The extents in [addr, addr + size_bytes) end; what reaches out of it goes on. */
static bool let_go_extents(uf_walker *walker, uint64_t addr, uint64_t size_bytes, uint32_t at)
{
    uf_history *history = walker->history;
    uint64_t end = addr + size_bytes;
    while (addr < end) {
        uint32_t index = extent_at(walker, addr);
        if (index == UF_NONE) {
            break; /* the rest is not held: it was counted when it was looked for */
        }
        uf_extent extent = history->extents[index];
        uint64_t extent_end = extent.addr + extent.size_bytes;
        history->extents[index].to = at;
        uf__addrmap_remove(&walker->extents, extent.addr);
        if (!go_on_with(walker, extent, extent.addr, addr, at) ||
            (extent_end > end && !go_on_with(walker, extent, end, extent_end, at))) {
            return false;
        }
        addr = extent_end;
    }
    return true;
}

static bool let_go(uf_walker *walker, uint64_t addr, uint64_t size_bytes, uint32_t at)
{
    bool is_found = false;
    if (!uf__blockmap_remove(&walker->blocks, addr, size_bytes, &is_found)) {
        return false;
    }
    if (!is_found) {
        walker->history->stray_count++;
        return true;
    }
    subtract(&walker->levels[UF_LEVEL_RESERVED], size_bytes);
    return let_go_extents(walker, addr, size_bytes, at);
}

/* PyTorch's rule (spec 2.5): is the rest of a cached block worth a block of its own? */
static uint64_t block_bytes(const uf_conf *conf, uint64_t requested_bytes,
                            const uf_blockmap_block *cached)
{
    if (requested_bytes >= UF_REQUEST_LIMIT_BYTES) {
        return cached->size_bytes;
    }
    uint64_t rounded = uf__round_request(conf, requested_bytes);
    if (rounded > cached->size_bytes) {
        return cached->size_bytes;
    }
    uint64_t rest = cached->size_bytes - rounded;
    bool is_cut = uf__is_small(rounded) || cached->owner == UF_OWNER_EXPANDABLE
                      ? rest >= UF_MIN_BLOCK_BYTES
                      : rounded < conf->max_split_size_bytes && rest > UF_SMALL_MAX_BYTES;
    return is_cut ? rounded : cached->size_bytes;
}

static void note_in_extent(uf_walker *walker, uint64_t addr, const uf_span *span)
{
    const uint32_t *found = uf__addrmap_find(&walker->extents, addr);
    if (found != NULL && span->pool != 0) {
        walker->history->extents[*found].pool = span->pool;
    }
}

static bool begin_span(uf_walker *walker, uf_span span)
{
    uint32_t block = uf__blockmap_find(&walker->blocks, span.addr), index;
    bool is_cached =
        block != UF_BLOCKMAP_NONE && walker->blocks.blocks[block].span == UF_BLOCKMAP_CACHED;
    if (!is_cached) { /* nothing explains it */
        walker->history->stray_count++;
        return true;
    }
    span.size_bytes =
        block_bytes(&walker->program->conf, span.requested_bytes, &walker->blocks.blocks[block]);
    walker->levels[UF_LEVEL_LIVE] += floor_bytes(span.requested_bytes);
    walker->levels[UF_LEVEL_ALLOCATED] += span.size_bytes;
    walker->levels[UF_LEVEL_ACTIVE] += span.size_bytes;
    note_in_extent(walker, span.addr, &span);
    return add_span(walker->history, span, &index) &&
           uf__blockmap_take(&walker->blocks, block, span.size_bytes, index);
}

static uf_span *span_at(uf_walker *walker, uint64_t addr, uint32_t *block)
{
    *block = uf__blockmap_find(&walker->blocks, addr);
    if (*block == UF_BLOCKMAP_NONE || walker->blocks.blocks[*block].span == UF_BLOCKMAP_CACHED) {
        walker->history->stray_count++;
        return NULL;
    }
    return &walker->history->spans[walker->blocks.blocks[*block].span];
}

static void request_free(uf_walker *walker, uint64_t addr, uint32_t at)
{
    uint32_t block;
    uf_span *span = span_at(walker, addr, &block);
    if (span != NULL && span->freed == UF_HISTORY_END) {
        span->freed = at;
        subtract(&walker->levels[UF_LEVEL_ALLOCATED], span->size_bytes);
    }
}

static bool end_span(uf_walker *walker, uint64_t addr, uint32_t at)
{
    uint32_t block;
    uf_span *span = span_at(walker, addr, &block);
    if (span == NULL) {
        return true;
    }
    if (span->freed == UF_HISTORY_END) {
        request_free(walker, addr, at);
    }
    span->to = at;
    subtract(&walker->levels[UF_LEVEL_ACTIVE], span->size_bytes);
    subtract(&walker->levels[UF_LEVEL_LIVE], floor_bytes(span->requested_bytes));
    return uf__blockmap_give(&walker->blocks, block);
}

static bool walk_alloc(uf_walker *walker, const uf_event *event, uint32_t at)
{
    const uf_program *program = walker->program;
    uint32_t op = program->ops[at];
    uf_span span = {.addr = event->addr,
                    .requested_bytes = event->size_bytes,
                    .from = at,
                    .freed = UF_HISTORY_END,
                    .to = UF_HISTORY_END,
                    .stack = program->trace->sites[event->site].stack,
                    .stream = walker->stream_of_site[event->site]};
    if (uf__op_kind(op) == UF_OP_ALLOC) {
        span.stream = program->alloc_stream[uf__op_id(op)];
        span.pool = program->alloc_pool[uf__op_id(op)];
    }
    return begin_span(walker, span);
}

static bool note_failure(uf_walker *walker, const uf_event *event, uint32_t at)
{
    uf_history *history = walker->history;
    uf_failure failure = {
        .event = at, .wanted_bytes = event->size_bytes, .device_free_bytes = event->addr};
    memcpy(failure.levels, walker->levels, sizeof failure.levels);
    if (!grow((void **)&history->failures, &history->failure_capacity, history->failure_count,
              sizeof failure)) {
        return false;
    }
    history->failures[history->failure_count++] = failure;
    return true;
}

static bool walk_event(uf_walker *walker, const uf_event *event, uint32_t at)
{
    switch ((uf_action)event->action) {
    case UF_ACTION_ALLOC:
        return walk_alloc(walker, event, at);
    case UF_ACTION_FREE_REQUESTED:
        request_free(walker, event->addr, at);
        return true;
    case UF_ACTION_FREE_COMPLETED:
        return end_span(walker, event->addr, at);
    case UF_ACTION_SEGMENT_ALLOC:
    case UF_ACTION_SEGMENT_MAP:
        return hold(walker, (uf_extent){.addr = event->addr,
                                        .size_bytes = event->size_bytes,
                                        .from = at,
                                        .to = UF_HISTORY_END,
                                        .stream = walker->stream_of_site[event->site],
                                        .is_expandable = event->action == UF_ACTION_SEGMENT_MAP,
                                        .is_small = event->size_bytes == UF_SMALL_SEGMENT_BYTES});
    case UF_ACTION_SEGMENT_FREE:
    case UF_ACTION_SEGMENT_UNMAP:
        return let_go(walker, event->addr, event->size_bytes, at);
    case UF_ACTION_OOM:
        return note_failure(walker, event, at);
    default:
        return true;
    }
}

/* A block that was there before the first event: cut out of its segment wherever it lies. */
static bool place_start(uf_walker *walker, const uf_adopt_block *block, const uf_extent *extent,
                        bool is_waiting)
{
    bool is_found = false;
    uint32_t index = 0;
    uf_span span = {.addr = block->addr,
                    .size_bytes = block->size_bytes,
                    .requested_bytes = block->requested_bytes,
                    .freed = is_waiting ? 0 : UF_HISTORY_END,
                    .to = UF_HISTORY_END,
                    .stack = UF_NONE,
                    .stream = extent->stream,
                    .pool = extent->pool,
                    .is_start = true};
    uint32_t owner = extent->is_expandable ? UF_OWNER_EXPANDABLE : walker->segment_count - 1;
    if (!uf__blockmap_remove(&walker->blocks, block->addr, block->size_bytes, &is_found)) {
        return false;
    }
    if (!is_found) {
        walker->history->stray_count++;
        return true;
    }
    walker->levels[UF_LEVEL_LIVE] += floor_bytes(span.requested_bytes);
    walker->levels[UF_LEVEL_ALLOCATED] += is_waiting ? 0 : span.size_bytes;
    walker->levels[UF_LEVEL_ACTIVE] += span.size_bytes;
    return add_span(walker->history, span, &index) &&
           uf__blockmap_add(&walker->blocks,
                            (uf_blockmap_block){span.addr, span.size_bytes, owner, index});
}

/* The rebuilt start state of a recording whose beginning is lost. */
static bool walk_start(uf_walker *walker)
{
    const uf_program *program = walker->program;
    const uf_start *start = program->start;
    bool is_good = true;
    for (uint32_t s = 0; start != NULL && s < start->segment_count && is_good; s++) {
        const uf_start_segment *segment = &start->segments[s];
        uint32_t stream = 0;
        while (stream + 1 < program->stream_count && program->streams[stream] != segment->stream) {
            stream++;
        }
        uf_extent extent = {.addr = segment->addr,
                            .size_bytes = segment->end - segment->addr,
                            .to = UF_HISTORY_END,
                            .stream = (uint16_t)stream,
                            .pool = (uint16_t)segment->label,
                            .is_expandable = segment->is_expandable,
                            .is_small = !segment->is_large,
                            .is_start = true};
        is_good = hold(walker, extent);
        for (uint32_t b = 0; b < segment->block_count && is_good; b++) {
            if (segment->allocs[b] != UF_NONE) {
                is_good = place_start(walker, &segment->blocks[b], &extent, segment->is_waiting[b]);
            }
        }
    }
    return is_good;
}

static void note_peaks(uf_history *history, const uint64_t levels[UF_LEVEL_COUNT], uint64_t event)
{
    for (int level = 0; level < UF_LEVEL_COUNT; level++) {
        uf_peak *peak = &history->peaks[level];
        if (levels[level] > peak->bytes || event == 0) {
            peak->bytes = levels[level];
            peak->event = event;
            memcpy(peak->levels, levels, sizeof peak->levels);
        }
    }
    uint64_t reserved = levels[UF_LEVEL_RESERVED], active = levels[UF_LEVEL_ACTIVE];
    uint64_t cached = reserved > active ? reserved - active : 0;
    if (cached > history->most_cached.bytes || event == 0) {
        history->most_cached = (uf_peak){.bytes = cached, .event = event};
        memcpy(history->most_cached.levels, levels, sizeof history->most_cached.levels);
    }
}

/* Final blocks have stacks even where the event that made them is lost. */
static void take_final_stacks(uf_walker *walker)
{
    uf_history *history = walker->history;
    const uf_trace *trace = history->trace;
    for (uint64_t b = 0; b < trace->block_count; b++) {
        const uf_trace_block *block = &trace->blocks[b];
        uint32_t index = uf__blockmap_find(&walker->blocks, block->addr);
        uint32_t span =
            index == UF_BLOCKMAP_NONE ? UF_BLOCKMAP_CACHED : walker->blocks.blocks[index].span;
        if (span != UF_BLOCKMAP_CACHED && history->spans[span].stack == UF_NONE &&
            history->spans[span].size_bytes == block->size_bytes) {
            history->spans[span].stack = block->stack;
        }
    }
}

static bool copy_names(uf_history *history, const uf_program *program)
{
    history->streams = calloc(program->stream_count + 1u, sizeof *history->streams);
    history->pools = calloc(program->pool_count + 1u, sizeof *history->pools);
    if (history->streams == NULL || history->pools == NULL) {
        return false;
    }
    memcpy(history->streams, program->streams, program->stream_count * sizeof *program->streams);
    history->stream_count = program->stream_count;
    for (uint32_t i = 0; i < program->pool_count; i++) {
        memcpy(history->pools[i], program->pools[i].id, sizeof history->pools[i]);
    }
    history->pool_count = program->pool_count;
    return true;
}

static bool find_streams(uf_walker *walker)
{
    const uf_program *program = walker->program;
    const uf_trace *trace = program->trace;
    walker->stream_of_site = calloc(trace->site_count + 1u, sizeof *walker->stream_of_site);
    for (uint32_t i = 0; i < trace->site_count && walker->stream_of_site != NULL; i++) {
        uint32_t stream = 0;
        while (stream + 1 < program->stream_count &&
               program->streams[stream] != trace->sites[i].stream) {
            stream++;
        }
        walker->stream_of_site[i] = (uint16_t)stream;
    }
    return walker->stream_of_site != NULL;
}

static bool walk(uf_walker *walker)
{
    uf_history *history = walker->history;
    bool is_good = walk_start(walker);
    uint64_t alloc_count = 0;
    for (uint64_t at = 0; at < history->event_count && is_good; at++) {
        const uf_event *event = &history->events[at];
        is_good = walk_event(walker, event, (uint32_t)at);
        uf__timeline_note(&history->timeline, at, event->time_us, alloc_count, walker->levels);
        alloc_count += event->action == UF_ACTION_ALLOC;
        note_peaks(history, walker->levels, at);
    }
    memcpy(history->end_levels, walker->levels, sizeof history->end_levels);
    if (is_good) {
        take_final_stacks(walker);
    }
    return is_good;
}

uf_status uf__history_init(uf_history *history, const uf_program *program, uint32_t bucket_limit,
                           uf_error *error)
{
    *history = (uf_history){.trace = program->trace,
                            .program = program,
                            .events = program->events,
                            .event_count = program->event_count,
                            .device = program->device};
    if (program->event_count >= UINT32_MAX / 2) {
        return uf__error_set(error, UF_ERROR_UNSUPPORTED,
                             "a report shows up to 2 147 483 647 events; the recording has more");
    }
    uf_walker walker = {.history = history, .program = program};
    uf__blockmap_init(&walker.blocks);
    bool is_good =
        uf__timeline_init(&history->timeline, program->event_count, bucket_limit) == UF_OK &&
        copy_names(history, program) && find_streams(&walker) && walk(&walker);
    uf__blockmap_fini(&walker.blocks);
    uf__addrmap_fini(&walker.extents);
    free(walker.stream_of_site);
    return is_good ? UF_OK
                   : uf__error_set(error, UF_ERROR_HOST_MEMORY,
                                   "no host memory for the blocks of the recording");
}

static uint16_t state_stream(uf_history *history, uint64_t handle)
{
    for (uint32_t i = 0; i < history->stream_count; i++) {
        if (history->streams[i] == handle) {
            return (uint16_t)i;
        }
    }
    if (history->stream_count == UINT16_MAX) {
        return 0;
    }
    history->streams[history->stream_count] = handle;
    return (uint16_t)history->stream_count++;
}

static uint16_t state_pool(uf_history *history, const uf_trace_segment *segment)
{
    if (!segment->has_pool_id || (segment->pool_id[0] == 0 && segment->pool_id[1] == 0)) {
        return 0;
    }
    for (uint32_t i = 1; i < history->pool_count; i++) {
        if (memcmp(history->pools[i], segment->pool_id, sizeof history->pools[i]) == 0) {
            return (uint16_t)i;
        }
    }
    if (history->pool_count == UINT16_MAX) {
        return 0;
    }
    memcpy(history->pools[history->pool_count], segment->pool_id, sizeof history->pools[0]);
    return (uint16_t)history->pool_count++;
}

static bool place_state(uf_history *history, const uf_trace_segment *segment)
{
    uf_extent extent = {.addr = segment->addr,
                        .size_bytes = segment->total_bytes,
                        .to = UF_HISTORY_END,
                        .stream = state_stream(history, segment->stream),
                        .pool = state_pool(history, segment),
                        .is_expandable = segment->is_expandable,
                        .is_small = !segment->is_large,
                        .is_start = true};
    uint32_t index;
    bool is_good = segment->total_bytes == 0 || add_extent(history, extent);
    history->end_levels[UF_LEVEL_RESERVED] += segment->total_bytes;
    for (uint32_t b = 0; b < segment->block_count && is_good; b++) {
        const uf_trace_block *block = &history->trace->blocks[segment->first_block + b];
        if (block->state == UF_BLOCK_INACTIVE || block->size_bytes == 0) {
            continue;
        }
        bool is_pending = block->state == UF_BLOCK_ACTIVE_PENDING_FREE;
        uf_span span = {.addr = block->addr,
                        .size_bytes = block->size_bytes,
                        .requested_bytes =
                            block->has_requested ? block->requested_bytes : block->size_bytes,
                        .freed = is_pending ? 0 : UF_HISTORY_END,
                        .to = UF_HISTORY_END,
                        .stack = block->stack,
                        .stream = extent.stream,
                        .pool = extent.pool,
                        .is_start = true};
        history->end_levels[UF_LEVEL_LIVE] += floor_bytes(span.requested_bytes);
        history->end_levels[UF_LEVEL_ALLOCATED] += is_pending ? 0 : span.size_bytes;
        history->end_levels[UF_LEVEL_ACTIVE] += span.size_bytes;
        is_good = add_span(history, span, &index);
    }
    return is_good;
}

uf_status uf__history_init_state(uf_history *history, const uf_trace *trace, int32_t device,
                                 uf_error *error)
{
    *history = (uf_history){.trace = trace, .device = device, .pool_count = 1};
    history->streams = calloc(trace->segment_count + 1u, sizeof *history->streams);
    history->pools = calloc(trace->segment_count + 2u, sizeof *history->pools);
    bool is_good = history->streams != NULL && history->pools != NULL &&
                   uf__timeline_init(&history->timeline, 0, 1) == UF_OK;
    for (uint32_t s = 0; s < trace->segment_count && is_good; s++) {
        if (trace->segments[s].device == device) {
            is_good = place_state(history, &trace->segments[s]);
        }
    }
    note_peaks(history, history->end_levels, 0);
    return is_good ? UF_OK
                   : uf__error_set(error, UF_ERROR_HOST_MEMORY,
                                   "no host memory for the blocks of the snapshot");
}

void uf__history_fini(uf_history *history)
{
    uf__timeline_fini(&history->timeline);
    free(history->spans);
    free(history->extents);
    free(history->failures);
    free(history->streams);
    free(history->pools);
    memset(history, 0, sizeof *history);
}
