/* SPDX-License-Identifier: MIT
 *
 * Groups of releases are told apart by what follows: the program's own reading of them. */
#include "report/marks.h"

#include <stdlib.h>
#include <string.h>

static bool is_release(const uf_event *event)
{
    return event->action == UF_ACTION_SEGMENT_FREE || event->action == UF_ACTION_SEGMENT_UNMAP;
}

static bool add(uf_marks *marks, uint32_t *capacity, uf_mark mark)
{
    if (marks->count == *capacity) {
        uint32_t wanted = *capacity == 0 ? 64 : *capacity * 2;
        uf_mark *grown = realloc(marks->items, wanted * sizeof *grown);
        if (grown == NULL) {
            return false;
        }
        marks->items = grown;
        *capacity = wanted;
    }
    marks->items[marks->count++] = mark;
    marks->counts[mark.kind]++;
    return true;
}

/* Releases that lead to a segment or to a failure were made for a request. */
static uf_mark_kind kind_of_group(const uf_history *history, uint64_t first, uint64_t end)
{
    uf_op_kind op = uf__op_kind(history->program->ops[first]);
    bool is_own = op == UF_OP_EMPTY || op == UF_OP_POOL_DROP;
    uint8_t next = end < history->event_count ? history->events[end].action : UF_ACTION_OTHER;
    bool is_asking =
        next == UF_ACTION_SEGMENT_ALLOC || next == UF_ACTION_SEGMENT_MAP || next == UF_ACTION_OOM;
    return !is_own && is_asking ? UF_MARK_RETRY : UF_MARK_EMPTY;
}

static int by_bytes(const void *a, const void *b)
{
    const uf_mark *one = a, *other = b;
    if (one->kind != other->kind) {
        return one->kind < other->kind ? -1 : 1;
    }
    if (one->bytes != other->bytes) {
        return one->bytes > other->bytes ? -1 : 1;
    }
    return one->event < other->event ? -1 : one->event > other->event;
}

static int by_event(const void *a, const void *b)
{
    const uf_mark *one = a, *other = b;
    return one->event < other->event ? -1 : one->event > other->event;
}

/* The largest of each kind, in order again. */
static void thin_out(uf_marks *marks, uint32_t kind_limit)
{
    uint32_t kept = 0, of_kind = 0;
    if (marks->count == 0) {
        return;
    }
    qsort(marks->items, marks->count, sizeof *marks->items, by_bytes);
    for (uint32_t i = 0; i < marks->count; i++) {
        of_kind = i > 0 && marks->items[i].kind == marks->items[i - 1].kind ? of_kind + 1 : 0;
        if (of_kind < kind_limit) {
            marks->items[kept++] = marks->items[i];
        }
    }
    marks->count = kept;
    qsort(marks->items, marks->count, sizeof *marks->items, by_event);
}

uf_status uf__marks_init(uf_marks *marks, const uf_history *history, uint32_t kind_limit)
{
    uint32_t capacity = 0;
    memset(marks, 0, sizeof *marks);
    for (uint64_t at = 0; at < history->event_count; at++) {
        const uf_event *event = &history->events[at];
        uf_mark mark = {.event = (uint32_t)at};
        if (event->action == UF_ACTION_OOM) {
            mark.kind = UF_MARK_OOM;
            mark.bytes = event->size_bytes;
            mark.free_bytes = event->addr;
        } else if (is_release(event)) {
            uint64_t end = at;
            while (end < history->event_count && is_release(&history->events[end])) {
                mark.bytes += history->events[end++].size_bytes;
            }
            mark.kind = kind_of_group(history, at, end);
            at = end - 1;
        } else {
            continue;
        }
        if (!add(marks, &capacity, mark)) {
            return UF_ERROR_HOST_MEMORY;
        }
    }
    thin_out(marks, kind_limit);
    return UF_OK;
}

void uf__marks_fini(uf_marks *marks)
{
    free(marks->items);
    memset(marks, 0, sizeof *marks);
}
