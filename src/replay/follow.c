/* SPDX-License-Identifier: MIT
 *
 * One run of the model along a recording. Events fall into groups: what one call of the program
 * made the allocator do. A group is found by looking ahead, executed by the core, and compared
 * event by event as the core reports what it does.
 *
 *   [free_requested free_completed]                        a free
 *   [free_completed]                                       a delayed free, seen by a later call
 *   [segment_free segment_free]                            empty_cache, or the death of a pool
 *   [free_completed segment_free segment_alloc alloc]      a request that made room first
 */
#include "replay/follow.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/rounding.h"

enum { PROGRESS_EVENTS = 1 << 16 };

void uf__follow_fail(uf_follow *follow, uint64_t event, const char *format, ...)
{
    if (follow->has_failed) {
        return;
    }
    follow->has_failed = true;
    follow->difference.kind = UF_DIFFERENCE_EVENT;
    follow->difference.event = event;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(follow->difference.text, sizeof follow->difference.text, format, arguments);
    va_end(arguments);
}

static void fail_status(uf_follow *follow, uf_status status)
{
    if (status == UF_ERROR_HOST_MEMORY) {
        follow->status = status;
    }
    uf__follow_fail(follow, follow->cursor, "%s", uf_status_text(status));
    if (status == UF_ERROR_HAZARD) {
        follow->difference.kind = UF_DIFFERENCE_UNDEFINED;
    }
    follow->has_failed = true;
}

static uf_op_kind op_at(const uf_follow *follow, uint64_t at)
{
    return uf__op_kind(follow->program->ops[at]);
}

static bool is_release(const uf_event *event)
{
    return event->action == UF_ACTION_SEGMENT_FREE || event->action == UF_ACTION_SEGMENT_UNMAP;
}

static bool is_acquisition(const uf_event *event)
{
    return event->action == UF_ACTION_SEGMENT_ALLOC || event->action == UF_ACTION_SEGMENT_MAP;
}

static bool is_waiting_completion(const uf_follow *follow, uint64_t at)
{
    uf_op_kind kind = op_at(follow, at);
    return follow->program->events[at].action == UF_ACTION_FREE_COMPLETED &&
           (kind == UF_OP_COMPLETE || kind == UF_OP_COMPLETE_AFTER);
}

/* The label of memory at addr; default where nothing is known. */
static uint16_t label_of_addr(const uf_follow *follow, uint64_t addr)
{
    const uf_range *range = uf__ranges_find(&follow->ranges, addr);
    if (range == NULL) {
        return 0;
    }
    uint16_t label = uf__label(follow->assumptions, range->creator);
    return label == UF_LABEL_UNKNOWN ? 0 : label;
}

/* The label of memory that an acquisition event creates: its own, or that of what it extends. */
static uint16_t label_of_new(const uf_follow *follow, uint64_t at)
{
    const uf_event *event = &follow->program->events[at];
    uint16_t label = uf__label(follow->assumptions, at);
    if (label != UF_LABEL_UNKNOWN) {
        return label;
    }
    const uf_range *range = NULL;
    if (event->action == UF_ACTION_SEGMENT_MAP) {
        range = uf__ranges_adjacent(&follow->ranges, event->addr, event->addr + event->size_bytes);
    }
    label = range == NULL ? 0 : uf__label(follow->assumptions, range->creator);
    return label == UF_LABEL_UNKNOWN ? 0 : label;
}

static bool update_ranges(uf_follow *follow, const uf_event *event)
{
    uint64_t removed_bytes;
    if (is_acquisition(event)) {
        uint64_t creator = follow->cursor;
        if (event->action == UF_ACTION_SEGMENT_MAP &&
            uf__label(follow->assumptions, creator) == UF_LABEL_UNKNOWN) {
            const uf_range *range =
                uf__ranges_adjacent(&follow->ranges, event->addr, event->addr + event->size_bytes);
            creator = range == NULL ? creator : range->creator;
        }
        return uf__ranges_add(&follow->ranges, event->addr, event->size_bytes, creator);
    }
    if (is_release(event)) {
        const uf_range *range = uf__ranges_find(&follow->ranges, event->addr);
        follow->released_creator = range == NULL ? UF_EVENT_NONE : range->creator;
    }
    return !is_release(event) ||
           uf__ranges_remove(&follow->ranges, event->addr, event->size_bytes, &removed_bytes);
}

static uint64_t creator_at(const uf_follow *follow, uint64_t addr)
{
    const uf_range *range = uf__ranges_find(&follow->ranges, addr);
    return range == NULL ? UF_EVENT_NONE : range->creator;
}

/* The core goes on with a flush that differs: each segment it gives back now counts against the
 * assumptions, and the first that the recording kept is the likelier suspect. */
static void count_stray_release(uf_follow *follow, uf_action action, uint64_t addr)
{
    if (action != UF_ACTION_SEGMENT_FREE && action != UF_ACTION_SEGMENT_UNMAP) {
        return;
    }
    const uf_program *program = follow->program;
    follow->stray_release_count++;
    for (uint64_t at = follow->cursor; at <= follow->group_last && at < program->event_count;
         at++) {
        if (is_release(&program->events[at]) && program->events[at].addr == addr) {
            return;
        }
    }
    if (!follow->has_kept_suspect) {
        follow->has_kept_suspect = true;
        follow->suspect_model = creator_at(follow, addr);
    }
}

/* The core did something: it must be what the event at the cursor says. */
static void compare_event(void *context, uf_action action, uint64_t addr, uint64_t size_bytes,
                          uint64_t stream)
{
    uf_follow *follow = context;
    if (follow->has_failed) {
        count_stray_release(follow, action, addr);
        return;
    }
    uf_program *program = follow->program;
    if (follow->cursor > follow->group_last || follow->cursor >= program->event_count) {
        uf__follow_fail(follow, follow->group_last,
                        "expected nothing more, the model adds %s of %" PRIu64
                        " bytes at 0x%" PRIx64,
                        uf_action_name(action), size_bytes, addr);
        follow->suspect_model = creator_at(follow, addr);
        follow->suspect_released = follow->released_creator;
        count_stray_release(follow, action, addr);
        return;
    }
    const uf_event *event = &program->events[follow->cursor];
    uint64_t recorded_stream = program->trace->sites[event->site].stream;
    bool is_same = event->action == action && event->size_bytes == size_bytes &&
                   (action == UF_ACTION_OOM || event->addr == addr) && recorded_stream == stream;
    if (is_same) {
        if (!update_ranges(follow, event)) {
            fail_status(follow, UF_ERROR_HOST_MEMORY);
        }
        follow->cursor++;
        return;
    }
    uf__follow_fail(follow, follow->cursor,
                    "expected %s of %" PRIu64 " bytes at 0x%" PRIx64 " on stream %" PRIu64
                    ", the model does %s of %" PRIu64 " bytes at 0x%" PRIx64 " on stream %" PRIu64,
                    uf_action_name((uf_action)event->action), event->size_bytes, event->addr,
                    recorded_stream, uf_action_name(action), size_bytes, addr, stream);
    if (action != UF_ACTION_OOM) {
        follow->suspect_model = creator_at(follow, addr);
    }
    count_stray_release(follow, action, addr);
    if (event->action == UF_ACTION_ALLOC) {
        follow->suspect_recorded = creator_at(follow, event->addr);
    } else if (is_acquisition(event)) {
        follow->suspect_recorded = follow->cursor;
    } else if (is_release(event)) {
        follow->suspect_recorded = creator_at(follow, event->addr);
        follow->suspect_released = follow->released_creator;
    }
}

/* Frees that complete inside a flush do so in the recorded order. */
static bool next_completion(void *context, bool is_flush, uint64_t *addr)
{
    const uf_follow *follow = context;
    if (!is_flush || follow->has_failed || follow->cursor > follow->group_last ||
        follow->cursor >= follow->program->event_count ||
        follow->program->events[follow->cursor].action != UF_ACTION_FREE_COMPLETED) {
        return false;
    }
    *addr = follow->program->events[follow->cursor].addr;
    return true;
}

/* The core pool of a label. */
static bool pool_of(uf_follow *follow, uint16_t label, uint32_t *pool)
{
    if (label == 0) {
        *pool = UF_DEFAULT_POOL;
        return true;
    }
    const uf_program_pool *known = &follow->program->pools[label];
    uint32_t made = follow->pool_of_label[label];
    bool is_gone = made != 0 && (follow->core.pools[made - 1].id[0] != known->id[0] ||
                                 follow->core.pools[made - 1].id[1] != known->id[1]);
    if (made == 0 || is_gone) { /* a flush forgets a pool that it empties */
        uf_status status = uf__core_pool_create(&follow->core, known->id[0], known->id[1], pool);
        if (status != UF_OK) {
            fail_status(follow, status);
            return false;
        }
        follow->pool_of_label[label] = *pool + 1;
    }
    *pool = follow->pool_of_label[label] - 1;
    return true;
}

/* Inside a request's flush the recording says which private pool comes next; an explicit flush is
 * taken apart by follow_flush. */
static bool next_pool(void *context, uint32_t *pool)
{
    uf_follow *follow = context;
    if (!follow->is_in_request || follow->has_failed || follow->cursor > follow->group_last ||
        follow->cursor >= follow->program->event_count ||
        !is_release(&follow->program->events[follow->cursor])) {
        return false;
    }
    uint16_t label = label_of_addr(follow, follow->program->events[follow->cursor].addr);
    return label != 0 && pool_of(follow, label, pool);
}

static void follow_free(uf_follow *follow, uint64_t at)
{
    uint32_t op = follow->program->ops[at], id = uf__op_id(op);
    uint32_t block = uf__handles_get(&follow->blocks, id);
    bool is_later = uf__op_kind(op) == UF_OP_FREE_LATER;
    const uf_event *event = &follow->program->events[at];
    follow->group_last = is_later ? at : at + 1;
    if (block != UF_NO_BLOCK && event->action == UF_ACTION_FREE_COMPLETED &&
        uf__core_is_waiting(&follow->core, block, id)) {
        follow->group_last = at; /* requested before the trace began */
        uf__core_complete(&follow->core, block);
        return;
    }
    if (block == UF_NO_BLOCK || event->action != UF_ACTION_FREE_REQUESTED) {
        uf__follow_fail(follow, at, "a free of memory that was not allocated before");
        return;
    }
    uf_status status = is_later ? uf__core_use_external(&follow->core, block, id) : UF_OK;
    if (status == UF_OK) {
        status = uf__core_free(&follow->core, block);
    }
    if (status != UF_OK) {
        fail_status(follow, status);
    }
}

static void follow_completion(uf_follow *follow, uint64_t at)
{
    uint32_t op = follow->program->ops[at], id = uf__op_id(op);
    uint32_t block = uf__handles_get(&follow->blocks, id);
    follow->group_last = at;
    if (block == UF_NO_BLOCK || uf__core_block(&follow->core, block)->life != UF_LIFE_PENDING) {
        uf__follow_fail(follow, at, "a completed free that was not requested before");
        return;
    }
    follow->program->ops[at] = uf__op(UF_OP_COMPLETE, id);
    uf__core_complete(&follow->core, block);
}

/* A run of releases that no request caused: empty_cache calls and deaths of pools. */
static void follow_flush(uf_follow *follow, uint64_t first, uint64_t end)
{
    uf_program *program = follow->program;
    for (uint64_t at = first; at < end; at++) {
        if (is_release(&program->events[at])) {
            program->ops[at] = uf__op(UF_OP_NONE, 0);
        }
    }
    follow->group_last = end - 1;
    while (follow->cursor < end && !follow->has_failed) {
        uint64_t before = follow->cursor;
        if (is_waiting_completion(follow, follow->cursor)) {
            follow_completion(follow, follow->cursor);
            follow->group_last = end - 1;
            continue;
        }
        uint16_t label = label_of_addr(follow, program->events[before].addr);
        uint32_t pool;
        uf_status status;
        if (label == 0) {
            program->ops[before] = uf__op(UF_OP_EMPTY, 0);
            status = uf__core_empty_cache(&follow->core);
            follow->empty_cache_count++;
        } else if (pool_of(follow, label, &pool)) {
            program->ops[before] = uf__op(UF_OP_POOL_DROP, label);
            follow->core.pools[pool].use_count = 0;
            follow->is_retired[label] = true;
            status = uf__core_pool_empty(&follow->core, pool);
            if (follow->core.pools[pool].is_known) {
                follow->core.pools[pool].use_count = 1;
            }
        } else {
            return;
        }
        if (status != UF_OK) {
            fail_status(follow, status);
        } else if (follow->cursor == before) {
            const uf_event *event = &program->events[before];
            uf__follow_fail(
                follow, before,
                "expected %s of %" PRIu64 " bytes at 0x%" PRIx64 ", the model cannot release it",
                uf_action_name((uf_action)event->action), event->size_bytes, event->addr);
        }
    }
    follow->last_flush_event = first;
    follow->settled_count = follow->has_failed ? follow->settled_count : follow->cursor;
}

/* Whether the waiting block of an event, once free and merged, would serve the request. */
static bool would_serve(const uf_follow *follow, uint64_t at, uint64_t rounded_bytes,
                        uint32_t stream, uint32_t pool)
{
    const uf_core *core = &follow->core;
    uint32_t index = uf__handles_get(&follow->blocks, uf__op_id(follow->program->ops[at]));
    const uf_block *blocks = core->blocks.items;
    if (index == UF_NO_BLOCK) {
        return false;
    }
    const uf_shelf *shelf = core->shelves[blocks[index].shelf];
    int pool_class = uf__is_small(rounded_bytes) ? UF_CLASS_SMALL : UF_CLASS_LARGE;
    if (shelf->pool != pool || shelf->pool_class != pool_class || shelf->stream != stream) {
        return false;
    }
    uint64_t bytes = blocks[index].size_bytes;
    uint32_t prev = blocks[index].prev, next = blocks[index].next;
    if (prev != UF_NO_BLOCK && blocks[prev].life == UF_LIFE_FREE && blocks[prev].is_mapped) {
        bytes += blocks[prev].size_bytes;
    }
    if (next != UF_NO_BLOCK && blocks[next].life == UF_LIFE_FREE && blocks[next].is_mapped) {
        bytes += blocks[next].size_bytes;
    }
    uint64_t max_split = core->conf.max_split_size_bytes;
    uint64_t rounding = core->conf.max_non_split_rounding_bytes;
    bool is_refused =
        rounded_bytes < max_split ? bytes >= max_split : bytes - rounded_bytes >= rounding;
    return bytes >= rounded_bytes && !is_refused;
}

/* A group that ends in a request: completions and releases [first, lead), acquisitions and all else
 * [lead, last), and the alloc or oom at last. */
typedef struct uf_group {
    uint64_t first, lead, last;
    uint64_t rounded_bytes, bytes, segment_bytes;
    uint32_t stream, pool;
    uint16_t label;
    bool has_lead_releases, is_oom;
} uf_group;

static uf_reading forced_reading(const uf_follow *follow, uint64_t event)
{
    for (size_t i = 0; i < follow->assumptions->reading_count; i++) {
        if (follow->assumptions->readings[i].event == event) {
            return follow->assumptions->readings[i].reading;
        }
    }
    return UF_READING_DEFAULT;
}

/* Could the request itself have given memory back? Only if the limit or the driver refused, or
 * garbage collection was due. Where the limit is not known, the recording's own peak stands in. */
static bool can_release_in_call(const uf_follow *follow, const uf_group *group)
{
    const uf_core *core = &follow->core;
    if (group->is_oom) {
        return true;
    }
    if (group->label != 0) {
        return false; /* requests of private pools never flush */
    }
    if (core->limit_bytes == UF_UNLIMITED) {
        return core->total_bytes + group->segment_bytes > follow->peak_total_bytes;
    }
    double threshold = core->conf.garbage_collection_threshold;
    bool is_gc_due =
        threshold > 0.0 && core->total_bytes > (uint64_t)(threshold * (double)core->limit_bytes);
    return is_gc_due || core->total_bytes + group->segment_bytes > core->limit_bytes;
}

static bool note_open(uint64_t **events, size_t *count, size_t *capacity, uint64_t event)
{
    if (*count == *capacity) {
        size_t grown_capacity = *capacity == 0 ? 16 : *capacity * 2;
        uint64_t *grown = realloc(*events, grown_capacity * sizeof *grown);
        if (grown == NULL) {
            return false;
        }
        *events = grown;
        *capacity = grown_capacity;
    }
    (*events)[(*count)++] = event;
    return true;
}

/* Decides how a group with leading releases is read, and executes them if they came first. */
static void follow_lead(uf_follow *follow, uf_group *group)
{
    uf_reading reading = forced_reading(follow, group->first);
    if (reading == UF_READING_DEFAULT && group->has_lead_releases) {
        reading = can_release_in_call(follow, group) ? UF_READING_IN_CALL : UF_READING_EXPLICIT;
    }
    follow->has_lead = group->has_lead_releases;
    follow->lead_reading = reading;
    if (!group->has_lead_releases) {
        return;
    }
    bool is_noted = reading == UF_READING_IN_CALL
                        ? note_open(&follow->open_in_call, &follow->open_in_call_count,
                                    &follow->open_in_call_capacity, group->first)
                        : note_open(&follow->open_explicit, &follow->open_explicit_count,
                                    &follow->open_explicit_capacity, group->first);
    if (!is_noted) {
        fail_status(follow, UF_ERROR_HOST_MEMORY);
    } else if (reading != UF_READING_IN_CALL) {
        follow_flush(follow, group->first, group->lead);
        group->first = group->lead;
    }
}

/* Completions at the front of the group happen before the search, unless the search would then have
 * found memory: those happened in the flush. Marks what the flush does in the program. */
static void follow_front(uf_follow *follow, const uf_group *group, bool is_search_missed)
{
    uf_program *program = follow->program;
    uint64_t at = group->first;
    while (at < group->last && is_waiting_completion(follow, at) && !follow->has_failed) {
        if (is_search_missed &&
            would_serve(follow, at, group->rounded_bytes, group->stream, group->pool)) {
            break;
        }
        follow_completion(follow, at++);
    }
    for (; at < group->last; at++) {
        if (is_waiting_completion(follow, at)) {
            program->ops[at] = uf__op(UF_OP_COMPLETE_AFTER, uf__op_id(program->ops[at]));
        } else if (is_release(&program->events[at])) {
            uint16_t label = label_of_addr(follow, program->events[at].addr);
            bool is_news = label != 0 && !follow->is_retired[label];
            program->ops[at] = is_news ? uf__op(UF_OP_POOL_RETIRE, label) : uf__op(UF_OP_NONE, 0);
            follow->is_retired[label] = follow->is_retired[label] || is_news;
        }
    }
}

/* Whether an acquisition stands between the front and the end of the group. */
static bool has_acquisition(const uf_follow *follow, const uf_group *group, uint64_t *at)
{
    for (*at = group->first; *at < group->last; (*at)++) {
        if (is_acquisition(&follow->program->events[*at])) {
            return true;
        }
    }
    return false;
}

static bool group_init(uf_follow *follow, uf_group *group)
{
    uf_program *program = follow->program;
    const uf_event *end = &program->events[group->last];
    uint64_t acquired_at;
    group->is_oom = end->action == UF_ACTION_OOM;
    group->bytes = end->size_bytes;
    group->rounded_bytes = uf__round_request(&follow->core.conf, group->bytes);
    group->segment_bytes = uf__segment_bytes(&follow->core.conf, group->rounded_bytes);
    if (!group->is_oom) {
        uint32_t id = uf__op_id(program->ops[group->last]);
        group->label = program->alloc_pool[id];
        if (!program->trace->sites[end->site].has_pool_id) {
            group->label = has_acquisition(follow, group, &acquired_at)
                               ? label_of_new(follow, acquired_at)
                           : follow->assumptions->has_private ? label_of_addr(follow, end->addr)
                                                              : 0;
            if (program->alloc_pool[id] != group->label) { /* zeros take no memory */
                program->alloc_pool[id] = group->label;
            }
        }
        follow->label_last_event[group->label] = group->last;
    }
    uf_status status =
        uf__core_stream(&follow->core, program->trace->sites[end->site].stream, &group->stream);
    if (status != UF_OK) {
        fail_status(follow, status);
    }
    return status == UF_OK;
}

/* Executes a group that ends in an alloc or oom event. */
static void follow_request(uf_follow *follow, uf_group *group)
{
    uint64_t unused_at;
    follow->group_first = group->first;
    if (group->bytes >= UF_REQUEST_LIMIT_BYTES || !group_init(follow, group)) {
        uf__follow_fail(follow, group->last, "a request of 2^60 bytes or more");
        return;
    }
    follow_lead(follow, group);
    if (follow->has_failed || !pool_of(follow, group->label, &group->pool)) {
        return; /* the flush before may have ended the pool, which begins anew then */
    }
    bool is_search_missed = group->is_oom || has_acquisition(follow, group, &unused_at);
    follow_front(follow, group, is_search_missed);
    if (follow->has_failed) {
        return;
    }
    follow->group_last = group->last;
    bool is_redirected = follow->lead_reading == UF_READING_REDIRECTED;
    follow->core.redirection_count += is_redirected;
    follow->is_in_request = true;
    uint32_t block = UF_NO_BLOCK;
    uf_status status =
        uf__core_alloc(&follow->core, group->bytes, group->stream, group->pool, &block);
    follow->core.redirection_count -= is_redirected;
    follow->is_in_request = false;
    if (status == UF_OK && !group->is_oom) {
        if (!uf__handles_set(&follow->blocks, uf__op_id(follow->program->ops[group->last]),
                             block)) {
            fail_status(follow, UF_ERROR_HOST_MEMORY);
        }
    } else if (status != UF_OK && status != UF_ERROR_OUT_OF_MEMORY) {
        fail_status(follow, status);
    }
    if (!follow->has_failed && follow->cursor != group->last + 1) {
        const uf_event *event = &follow->program->events[follow->cursor];
        uf__follow_fail(follow, follow->cursor,
                        "expected %s of %" PRIu64 " bytes at 0x%" PRIx64
                        ", the model is done with the request",
                        uf_action_name((uf_action)event->action), event->size_bytes, event->addr);
        follow->suspect_recorded = is_acquisition(event) ? follow->cursor : UF_EVENT_NONE;
    }
}

/* From the cursor on: a group that ends in a request, or a flush, or a single completion. */
static void follow_group(uf_follow *follow)
{
    const uf_program *program = follow->program;
    uint64_t at = follow->cursor, first = at;
    bool has_release = false;
    while (at < program->event_count &&
           (is_waiting_completion(follow, at) || is_release(&program->events[at]))) {
        has_release = has_release || is_release(&program->events[at]);
        at++;
    }
    uf_group group = {.first = first, .lead = at};
    bool is_request = false;
    if (at < program->event_count &&
        (is_acquisition(&program->events[at]) || program->events[at].action == UF_ACTION_OOM)) {
        while (at < program->event_count &&
               (is_acquisition(&program->events[at]) || is_release(&program->events[at]) ||
                is_waiting_completion(follow, at))) {
            at++;
        }
        is_request = at < program->event_count && (program->events[at].action == UF_ACTION_ALLOC ||
                                                   program->events[at].action == UF_ACTION_OOM);
        if (!is_request) {
            uf__follow_fail(follow, at < program->event_count ? at : at - 1,
                            "memory was taken from the driver for no request");
            return;
        }
    }
    group.has_lead_releases = has_release;
    follow->has_lead = false;
    if (is_request) {
        group.last = at;
        follow_request(follow, &group);
    } else if (has_release) {
        follow->group_first = first;
        follow_flush(follow, first, group.lead);
    } else {
        follow_completion(follow, first);
    }
}

static void follow_event(uf_follow *follow)
{
    uint64_t at = follow->cursor;
    follow->group_first = at;
    follow->has_lead = false;
    switch (op_at(follow, at)) {
    case UF_OP_FREE:
    case UF_OP_FREE_LATER:
        follow_free(follow, at);
        return;
    case UF_OP_ALLOC: {
        uf_group group = {.first = at, .lead = at, .last = at};
        follow_request(follow, &group);
        return;
    }
    default:
        break;
    }
    const uf_event *event = &follow->program->events[at];
    if (event->action == UF_ACTION_SNAPSHOT || event->action == UF_ACTION_OTHER) {
        follow->cursor++;
        return;
    }
    if (event->action == UF_ACTION_FREE_REQUESTED ||
        (event->action == UF_ACTION_FREE_COMPLETED && !is_waiting_completion(follow, at))) {
        uf__follow_fail(follow, at, "a free of memory that is not allocated");
        return;
    }
    follow_group(follow);
}

/* Room for all pools known now, and for the one that the search for assumptions may add while it
 * looks at this run. */
static bool allocate(uf_follow *follow)
{
    const uf_program *program = follow->program;
    follow->label_count = program->pool_count + 1;
    follow->pool_of_label = calloc(follow->label_count, sizeof *follow->pool_of_label);
    follow->label_last_event = calloc(follow->label_count, sizeof *follow->label_last_event);
    follow->is_retired = calloc(follow->label_count, sizeof *follow->is_retired);
    return follow->pool_of_label != NULL && follow->label_last_event != NULL &&
           follow->is_retired != NULL;
}

/* The most the recording ever held, by its events. */
static uint64_t peak_total(const uf_program *program, uint64_t total_bytes)
{
    uint64_t peak_bytes = total_bytes;
    for (uint64_t i = 0; i < program->event_count; i++) {
        const uf_event *event = &program->events[i];
        if (is_acquisition(event)) {
            total_bytes += event->size_bytes;
            peak_bytes = total_bytes > peak_bytes ? total_bytes : peak_bytes;
        } else if (is_release(event)) {
            total_bytes -= event->size_bytes < total_bytes ? event->size_bytes : total_bytes;
        }
    }
    return peak_bytes;
}

uf_status uf__follow_begin(uf_follow *follow, uf_program *program,
                           const uf_assumptions *assumptions)
{
    memset(follow, 0, sizeof *follow);
    follow->program = program;
    follow->assumptions = assumptions;
    follow->suspect_recorded = follow->suspect_model = UF_EVENT_NONE;
    follow->suspect_released = follow->released_creator = UF_EVENT_NONE;
    follow->last_flush_event = UF_EVENT_NONE;
    uf__tape_init(follow);
    uf_core_config config = {.device = &follow->device,
                             .conf = &program->conf,
                             .device_total_bytes = program->options.total_bytes,
                             .limit_bytes = program->options.limit_bytes,
                             .event_hook = compare_event,
                             .event_context = follow,
                             .order_hook = next_completion,
                             .order_context = follow};
    uf_status status = uf__core_init(&follow->core, &config);
    if (status != UF_OK || !allocate(follow) ||
        !uf__handles_init(&follow->blocks, program->alloc_count)) {
        return UF_ERROR_HOST_MEMORY;
    }
    follow->core.pool_hook = next_pool;
    follow->core.pool_context = follow;
    if (program->start != NULL) {
        status = uf__follow_restore(follow, program->start);
        if (status != UF_OK) {
            return status;
        }
    }
    follow->peak_total_bytes = peak_total(program, follow->core.total_bytes);
    return UF_OK;
}

uf_status uf__follow_go(uf_follow *follow, uint64_t until)
{
    const uf_program *program = follow->program;
    uint64_t told = follow->cursor;
    while (follow->cursor < program->event_count && follow->cursor < until && !follow->has_failed) {
        follow_event(follow);
        follow->settled_count = follow->has_failed ? follow->settled_count : follow->cursor;
        if (follow->cursor - told > PROGRESS_EVENTS && program->options.progress != NULL) {
            told = follow->cursor;
            if (!program->options.progress(program->options.progress_context, told, 0)) {
                return UF_ERROR_INTERRUPTED;
            }
        }
    }
    if (!follow->has_failed && follow->cursor >= program->event_count) {
        follow->group_last = program->event_count;
        return uf__follow_compare_end(follow);
    }
    return follow->status;
}

uf_status uf__follow_run(uf_follow *follow, uf_program *program, const uf_assumptions *assumptions)
{
    uf_status status = uf__follow_begin(follow, program, assumptions);
    return status == UF_OK ? uf__follow_go(follow, UINT64_MAX) : status;
}

static bool copy_open(uint64_t **events, size_t count, size_t capacity)
{
    if (*events == NULL) {
        return true;
    }
    uint64_t *copy = malloc(capacity * sizeof *copy);
    if (copy != NULL) {
        memcpy(copy, *events, count * sizeof *copy);
    }
    *events = copy;
    return copy != NULL;
}

bool uf__follow_copy(uf_follow *to, const uf_follow *from)
{
    *to = *from;
    to->device.context = to;
    to->sim.device.context = &to->sim;
    bool is_good = uf__core_copy(&to->core, &from->core);
    to->core.device = is_good ? &to->device : NULL;
    to->core.event_context = to->core.order_context = to->core.pool_context = to;
    /* Each takes its part over even if one before it failed. */
    is_good &= uf__handles_copy(&to->blocks, &from->blocks);
    is_good &= uf__ranges_copy(&to->ranges, &from->ranges);
    is_good &= copy_open(&to->open_in_call, to->open_in_call_count, to->open_in_call_capacity);
    is_good &= copy_open(&to->open_explicit, to->open_explicit_count, to->open_explicit_capacity);
    is_good &= allocate(to);
    for (uint32_t label = 0; label < from->label_count && is_good; label++) {
        to->pool_of_label[label] = from->pool_of_label[label];
        to->label_last_event[label] = from->label_last_event[label];
        to->is_retired[label] = from->is_retired[label];
    }
    return is_good;
}

void uf__follow_fini(uf_follow *follow)
{
    follow->core.device = NULL; /* nobody asks what it gives back */
    uf__core_fini(&follow->core);
    uf__handles_fini(&follow->blocks);
    uf__ranges_fini(&follow->ranges);
    free(follow->pool_of_label);
    free(follow->label_last_event);
    free(follow->is_retired);
    free(follow->open_in_call);
    free(follow->open_explicit);
}
