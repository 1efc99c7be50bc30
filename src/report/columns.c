/* SPDX-License-Identifier: MIT
 *
 * Columns, each as differences to what stands before. */
#include "report/columns.h"

#include <stdlib.h>
#include <string.h>

#include "alloc/rounding.h"

/* Addresses that were ever held, without the gaps between them: what the map shows as one height.
 *
 *   addresses  [lane 0]      [lane 1]   [lane 2]
 *   height     [lane 0][lane 1][lane 2]                                                        */
typedef struct uf_lane {
    uint64_t addr, end;
    uint64_t height; /* where it begins */
} uf_lane;

typedef struct uf_writer {
    uf_columns *columns;
    const uf_history *history;
    uf_lane *lanes;
    size_t lane_count;
    bool *is_kept;       /* by span */
    uint32_t *numbers;   /* of the stacks in the page, by stack of the trace; UF_NONE = left out */
    uint64_t unit_bytes; /* all sizes and heights are multiples of it */
} uf_writer;

static int by_addr(const void *a, const void *b)
{
    const uf_lane *one = a, *other = b;
    return one->addr < other->addr ? -1 : one->addr > other->addr;
}

static bool find_lanes(uf_writer *writer)
{
    const uf_history *history = writer->history;
    uf_lane *lanes = calloc(history->extent_count + 1, sizeof *lanes);
    if (lanes == NULL) {
        return false;
    }
    for (uint64_t i = 0; i < history->extent_count; i++) {
        const uf_extent *extent = &history->extents[i];
        lanes[i] = (uf_lane){extent->addr, extent->addr + extent->size_bytes, 0};
    }
    if (history->extent_count > 0) {
        qsort(lanes, history->extent_count, sizeof *lanes, by_addr);
    }
    size_t count = 0;
    for (uint64_t i = 0; i < history->extent_count; i++) {
        uf_lane *last = count > 0 ? &lanes[count - 1] : NULL;
        if (last != NULL && lanes[i].addr <= last->end) {
            last->end = lanes[i].end > last->end ? lanes[i].end : last->end;
        } else {
            lanes[count++] = lanes[i];
        }
    }
    uint64_t height = 0;
    for (size_t i = 0; i < count; i++) {
        lanes[i].height = height;
        height += lanes[i].end - lanes[i].addr;
    }
    writer->lanes = lanes;
    writer->lane_count = count;
    writer->columns->lane_bytes = height;
    return true;
}

static uint64_t height_of(const uf_writer *writer, uint64_t addr)
{
    size_t low = 0, high = writer->lane_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (writer->lanes[middle].addr <= addr) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return writer->lane_count == 0 ? 0
                                   : writer->lanes[low].height + (addr - writer->lanes[low].addr);
}

static uint64_t life_of(const uf_history *history, const uf_span *span)
{
    uint64_t end = span->to == UF_HISTORY_END ? history->event_count : span->to;
    return end > span->from ? end - span->from : 1;
}

/* How much of the map a span covers; all small ones count alike, so that those which live long, and
 * pin what is around them, stay. */
static unsigned weight_of(const uf_history *history, const uf_span *span)
{
    uint64_t bytes = span->size_bytes > UF_MIB ? span->size_bytes : UF_MIB;
    double area = (double)bytes * (double)life_of(history, span);
    uint64_t scaled = area >= 9e18 ? UINT64_MAX / 2 : (uint64_t)area + 1;
    /* A number that grows with the logarithm, in steps of a sixteenth. */
    unsigned log2 = uf__floor_log2(scaled);
    unsigned rest = log2 >= 4 ? (unsigned)(scaled >> (log2 - 4)) & 15u : 0;
    return log2 * 16u + rest;
}

static bool choose_spans(uf_writer *writer, uint64_t span_limit)
{
    enum { WEIGHTS = 64 * 16 };
    const uf_history *history = writer->history;
    uf_columns *columns = writer->columns;
    uint64_t counts[WEIGHTS] = {0}, room = span_limit;
    writer->is_kept = calloc(history->span_count + 1, sizeof *writer->is_kept);
    if (writer->is_kept == NULL) {
        return false;
    }
    for (uint64_t i = 0; i < history->span_count; i++) {
        counts[weight_of(history, &history->spans[i])]++;
    }
    unsigned least = WEIGHTS;
    while (least > 0 && counts[least - 1] <= room) {
        room -= counts[--least];
    }
    for (uint64_t i = 0; i < history->span_count; i++) {
        const uf_span *span = &history->spans[i];
        writer->is_kept[i] = weight_of(history, span) >= least;
        if (writer->is_kept[i]) {
            columns->span_count++;
            continue;
        }
        uint64_t life = life_of(history, span);
        columns->skipped_count++;
        if (span->size_bytes > columns->skipped_bytes_most) {
            columns->skipped_bytes_most = span->size_bytes;
        }
        if (life > columns->skipped_events_most) {
            columns->skipped_events_most = life;
        }
    }
    return true;
}

typedef struct uf_weighed {
    uint64_t bytes;
    uint32_t stack;
} uf_weighed;

static int by_bytes(const void *a, const void *b)
{
    const uf_weighed *one = a, *other = b;
    if (one->bytes != other->bytes) {
        return one->bytes > other->bytes ? -1 : 1;
    }
    return one->stack < other->stack ? -1 : one->stack > other->stack;
}

/* Numbers the stacks anew, most memory first. */
static bool choose_stacks(uf_writer *writer, uint32_t stack_limit)
{
    const uf_history *history = writer->history;
    uf_columns *columns = writer->columns;
    uint32_t stack_count = history->trace->stack_count, count = 0;
    uf_weighed *weighed = calloc(stack_count + 1u, sizeof *weighed);
    uint32_t *numbers = calloc(stack_count + 1u, sizeof *numbers);
    columns->stacks = calloc(stack_count + 1u, sizeof *columns->stacks);
    columns->numbers = numbers;
    if (weighed == NULL || columns->stacks == NULL || numbers == NULL) {
        free(weighed);
        return false;
    }
    for (uint32_t i = 0; i < stack_count; i++) {
        weighed[i].stack = i;
        numbers[i] = UF_NONE;
    }
    for (uint64_t i = 0; i < history->span_count; i++) {
        const uf_span *span = &history->spans[i];
        if (writer->is_kept[i] && span->stack < stack_count) {
            weighed[span->stack].bytes += span->size_bytes + 1;
        }
    }
    qsort(weighed, stack_count, sizeof *weighed, by_bytes);
    while (count < stack_count && count < stack_limit && weighed[count].bytes > 0) {
        numbers[weighed[count].stack] = count;
        columns->stacks[count] = weighed[count].stack;
        count++;
    }
    columns->stack_count = count;
    free(weighed);
    return true;
}

/* 512 unless a recording has odd addresses or sizes. */
static void find_unit(uf_writer *writer)
{
    const uf_history *history = writer->history;
    uint64_t bits = 0;
    for (uint64_t i = 0; i < history->extent_count; i++) {
        bits |= history->extents[i].addr | history->extents[i].size_bytes;
    }
    for (uint64_t i = 0; i < history->span_count; i++) {
        bits |= history->spans[i].addr | history->spans[i].size_bytes;
    }
    writer->unit_bytes = bits % UF_MIN_BLOCK_BYTES == 0 ? UF_MIN_BLOCK_BYTES : 1;
}

static void write_timeline(const uf_writer *writer)
{
    const uf_timeline *timeline = &writer->history->timeline;
    uf_pack *pack = &writer->columns->pack;
    uf__pack_number(pack, timeline->bucket_events);
    uf__pack_number(pack, timeline->bucket_count);
    for (int level = 0; level < UF_LEVEL_COUNT; level++) {
        uint64_t before = 0;
        for (uint32_t i = 0; i < timeline->bucket_count; i++) {
            uint64_t most = timeline->most[level][i] / UF_MIN_BLOCK_BYTES;
            uf__pack_step(pack, before, most);
            before = most;
        }
        for (uint32_t i = 0; i < timeline->bucket_count; i++) {
            uf__pack_number(pack, timeline->most[level][i] / UF_MIN_BLOCK_BYTES -
                                      timeline->least[level][i] / UF_MIN_BLOCK_BYTES);
        }
    }
    uint64_t before = 0;
    for (uint32_t i = 0; i < timeline->bucket_count; i++) {
        uf__pack_number(pack, timeline->alloc_count[i] - before);
        before = timeline->alloc_count[i];
    }
}

/* Times since the first one, which never go back; a first number 0 says that there are none. */
static void write_times(const uf_writer *writer)
{
    const uf_timeline *timeline = &writer->history->timeline;
    uf_pack *pack = &writer->columns->pack;
    bool has_times = timeline->bucket_count > 0;
    for (uint32_t i = 0; i < timeline->bucket_count; i++) {
        has_times = has_times && timeline->time_us[i] != UF_TIME_UNKNOWN;
    }
    uf__pack_number(pack, has_times);
    int64_t latest = has_times ? timeline->time_us[0] : 0;
    for (uint32_t i = 0; i < timeline->bucket_count && has_times; i++) {
        int64_t time_us = timeline->time_us[i] > latest ? timeline->time_us[i] : latest;
        uf__pack_number(pack, (uint64_t)time_us - (uint64_t)latest);
        latest = time_us;
    }
}

static void write_lanes(const uf_writer *writer)
{
    uf_pack *pack = &writer->columns->pack;
    uint64_t before = 0;
    uf__pack_number(pack, writer->lane_count);
    for (size_t i = 0; i < writer->lane_count; i++) {
        uf__pack_number(pack, writer->lanes[i].addr - before);
        uf__pack_number(pack, (writer->lanes[i].end - writer->lanes[i].addr) / writer->unit_bytes);
        before = writer->lanes[i].addr;
    }
}

typedef enum uf_extent_column {
    EXTENT_FROM,
    EXTENT_LIFE, /* 0 = to the end */
    EXTENT_HEIGHT,
    EXTENT_SIZE,
    EXTENT_STREAM,
    EXTENT_POOL,
    EXTENT_KIND, /* 1 expandable, 2 of the small pool */
    EXTENT_COLUMNS
} uf_extent_column;

static void write_extents(const uf_writer *writer)
{
    const uf_history *history = writer->history;
    uf_pack *pack = &writer->columns->pack;
    uf__pack_number(pack, history->extent_count);
    for (int column = 0; column < EXTENT_COLUMNS; column++) {
        uint64_t before = 0;
        for (uint64_t i = 0; i < history->extent_count; i++) {
            const uf_extent *extent = &history->extents[i];
            uint64_t height = height_of(writer, extent->addr) / writer->unit_bytes;
            uint64_t life = extent->to == UF_HISTORY_END ? 0 : extent->to - extent->from + 1u;
            const uint64_t values[EXTENT_COLUMNS] = {extent->from,
                                                     life,
                                                     height,
                                                     extent->size_bytes / writer->unit_bytes,
                                                     extent->stream,
                                                     extent->pool,
                                                     extent->is_expandable + 2u * extent->is_small};
            bool is_step = column == EXTENT_FROM || column == EXTENT_HEIGHT;
            uf__pack_signed(pack, (int64_t)(values[column] - (is_step ? before : 0)));
            before = values[column];
        }
    }
}

typedef enum uf_span_column {
    SPAN_FROM,
    SPAN_LIFE, /* 0 = to the end */
    SPAN_WAIT, /* of its life, the part after its free was requested */
    SPAN_HEIGHT,
    SPAN_SIZE,
    SPAN_ROUNDING, /* block size - requested bytes; negative where a recording contradicts itself */
    SPAN_STREAM,
    SPAN_POOL,
    SPAN_STACK, /* number + 1; 0 = none, or not in the page */
    SPAN_COLUMNS
} uf_span_column;

static uint64_t span_value(const uf_writer *writer, const uf_span *span, uf_span_column column)
{
    const uf_history *history = writer->history;
    uint64_t end = span->to == UF_HISTORY_END ? history->event_count : span->to;
    switch (column) {
    case SPAN_FROM:
        return span->from;
    case SPAN_LIFE:
        return span->to == UF_HISTORY_END ? 0 : span->to - span->from + 1u;
    case SPAN_WAIT:
        return span->freed < end ? end - span->freed : 0;
    case SPAN_HEIGHT:
        return height_of(writer, span->addr) / writer->unit_bytes;
    case SPAN_SIZE:
        return span->size_bytes / writer->unit_bytes;
    case SPAN_ROUNDING:
        return span->size_bytes - span->requested_bytes;
    case SPAN_STREAM:
        return span->stream;
    case SPAN_POOL:
        return span->pool;
    case SPAN_STACK:
        return span->stack < history->trace->stack_count
                   ? writer->columns->numbers[span->stack] + 1u
                   : 0;
    case SPAN_COLUMNS:
        break;
    }
    return 0;
}

static void write_spans(const uf_writer *writer)
{
    const uf_history *history = writer->history;
    uf_pack *pack = &writer->columns->pack;
    uf__pack_number(pack, writer->columns->span_count);
    for (int column = 0; column < SPAN_COLUMNS; column++) {
        uint64_t before = 0;
        bool is_step = column == SPAN_FROM || column == SPAN_HEIGHT;
        for (uint64_t i = 0; i < history->span_count; i++) {
            if (writer->is_kept[i]) {
                uint64_t value = span_value(writer, &history->spans[i], (uf_span_column)column);
                uf__pack_signed(pack, (int64_t)(value - (is_step ? before : 0)));
                before = value;
            }
        }
    }
}

uf_status uf__columns_init(uf_columns *columns, const uf_history *history, uint64_t span_limit,
                           uint32_t stack_limit)
{
    memset(columns, 0, sizeof *columns);
    uf_writer writer = {.columns = columns, .history = history};
    bool is_good = find_lanes(&writer) && choose_spans(&writer, span_limit) &&
                   choose_stacks(&writer, stack_limit);
    if (is_good) {
        find_unit(&writer);
        uf__pack_number(&columns->pack, history->event_count);
        uf__pack_number(&columns->pack, writer.unit_bytes);
        write_timeline(&writer);
        write_times(&writer);
        write_lanes(&writer);
        write_extents(&writer);
        write_spans(&writer);
    }
    free(writer.lanes);
    free(writer.is_kept);
    return is_good && !columns->pack.has_failed ? UF_OK : UF_ERROR_HOST_MEMORY;
}

void uf__columns_fini(uf_columns *columns)
{
    uf__pack_fini(&columns->pack);
    free(columns->stacks);
    free(columns->numbers);
    memset(columns, 0, sizeof *columns);
}
