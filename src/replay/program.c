/* SPDX-License-Identifier: MIT
 *
 * Linking: which free belongs to which request. Knows addresses and order only; what the allocator
 * would have done is the business of following (follow.c). */
#include "replay/program.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/addrmap.h"
#include "base/error.h"

typedef enum life { LIFE_LIVE, LIFE_PENDING, LIFE_DONE } life;

typedef struct uf_linker {
    uf_program *program;
    uf_addrmap by_addr; /* address -> the latest allocation there */
    uint8_t *lives;     /* by allocation */
    uint32_t capacity;
    uint32_t *stream_of_site; /* stream index + 1, 0 = not looked up */
    uint32_t *pool_of_site;
    int64_t live_bytes,
        peak_bytes; /* saturating, against the start, whose bytes are added at the end */
    uint64_t start_bytes;
} uf_linker;

static uint64_t floor_bytes(uint64_t requested_bytes)
{
    return requested_bytes > UINT64_MAX - 511 ? requested_bytes
                                              : (requested_bytes + 511) & ~UINT64_C(511);
}

/* As a signed change; what no device holds is cut off. */
static int64_t signed_floor(uint64_t requested_bytes)
{
    uint64_t bytes = floor_bytes(requested_bytes);
    return bytes > INT64_MAX / 2 ? INT64_MAX / 2 : (int64_t)bytes;
}

static void contradict(uf_program *program, uint64_t event, const char *what)
{
    uf_program_report *report = &program->report;
    if (report->contradiction_count++ != 0) {
        return;
    }
    report->contradiction.kind = UF_DIFFERENCE_EVENT;
    report->contradiction.event = event;
    const uf_event *at = &program->events[event];
    snprintf(report->contradiction.text, sizeof report->contradiction.text,
             "%s of %" PRIu64 " bytes at address 0x%" PRIx64 ": %s",
             uf_action_name((uf_action)at->action), at->size_bytes, at->addr, what);
}

bool uf__program_stream(uf_program *program, uint64_t handle, uint32_t *stream)
{
    for (uint32_t i = 0; i < program->stream_count; i++) {
        if (program->streams[i] == handle) {
            *stream = i;
            return true;
        }
    }
    if (program->stream_count == UINT16_MAX) {
        return false;
    }
    uint64_t *grown =
        realloc(program->streams, (program->stream_count + 1u) * sizeof *program->streams);
    if (grown == NULL) {
        return false;
    }
    program->streams = grown;
    grown[program->stream_count] = handle;
    *stream = program->stream_count++;
    return true;
}

bool uf__program_pool_find(uf_program *program, const uint64_t id[2], uint32_t *pool)
{
    for (uint32_t i = 0; i < program->pool_count; i++) {
        const uf_program_pool *known = &program->pools[i];
        if (known->is_recorded && known->id[0] == id[0] && known->id[1] == id[1]) {
            *pool = i;
            return true;
        }
    }
    return uf__program_pool(program, id, pool);
}

bool uf__program_pool(uf_program *program, const uint64_t id[2], uint32_t *pool)
{
    if (program->pool_count == UINT16_MAX) {
        return false;
    }
    uf_program_pool *grown =
        realloc(program->pools, (program->pool_count + 1u) * sizeof *program->pools);
    if (grown == NULL) {
        return false;
    }
    program->pools = grown;
    *pool = program->pool_count++;
    grown[*pool] = (uf_program_pool){.is_recorded = id != NULL};
    grown[*pool].id[0] = id != NULL ? id[0] : UINT64_MAX; /* no recorded id is as large */
    grown[*pool].id[1] = id != NULL ? id[1] : *pool;
    return true;
}

static bool resize(void **items, size_t item_bytes, size_t count)
{
    void *moved = realloc(*items, item_bytes * (count == 0 ? 1 : count));
    if (moved != NULL) {
        *items = moved;
    }
    return moved != NULL;
}

/* As above, with zeros behind the first `kept` items. The first time the system's own zeros serve,
 * which take no memory where nothing else is written. */
static bool resize_zeroed(void **items, size_t item_bytes, size_t kept, size_t count)
{
    if (*items == NULL) {
        *items = calloc(count, item_bytes);
        return *items != NULL;
    }
    if (!resize(items, item_bytes, count)) {
        return false;
    }
    memset((char *)*items + kept * item_bytes, 0, (count - kept) * item_bytes);
    return true;
}

static bool set_capacity(uf_linker *linker, uint32_t capacity)
{
    uf_program *program = linker->program;
    if (!resize((void **)&program->alloc_bytes, sizeof *program->alloc_bytes, capacity) ||
        !resize_zeroed((void **)&program->alloc_stream, sizeof *program->alloc_stream,
                       linker->capacity, capacity) ||
        !resize_zeroed((void **)&program->alloc_pool, sizeof *program->alloc_pool, linker->capacity,
                       capacity) ||
        !resize((void **)&linker->lives, sizeof *linker->lives, capacity)) {
        return false;
    }
    linker->capacity = capacity;
    return true;
}

/* Room for every allocation that has an event: exact unless the trace begins mid-life. */
static bool count_allocs(uf_linker *linker)
{
    const uf_program *program = linker->program;
    uint32_t count = 0;
    for (uint64_t at = 0; at < program->event_count && count < UF_OP_ID_LIMIT; at++) {
        count += program->events[at].action == UF_ACTION_ALLOC;
    }
    return set_capacity(linker, count < 16 ? 16 : count);
}

static bool grow_allocs(uf_linker *linker)
{
    return set_capacity(linker, linker->capacity + linker->capacity / 4 + 16);
}

/* A new allocation; false if the host has no memory left or there are too many. */
static bool add_alloc(uf_linker *linker, uint64_t addr, uint64_t bytes, uint32_t stream,
                      uint32_t pool, uint32_t *id)
{
    uf_program *program = linker->program;
    if (program->alloc_count == UF_OP_ID_LIMIT ||
        (program->alloc_count == linker->capacity && !grow_allocs(linker)) ||
        !uf__addrmap_set(&linker->by_addr, addr, program->alloc_count)) {
        return false;
    }
    *id = program->alloc_count++;
    program->alloc_bytes[*id] = bytes;
    if (stream != 0) {
        program->alloc_stream[*id] = (uint16_t)stream;
    }
    if (pool != 0) {
        program->alloc_pool[*id] = (uint16_t)pool;
    }
    linker->lives[*id] = LIFE_LIVE;
    return true;
}

/* One that was there before the trace began. */
static bool add_start(uf_linker *linker, uint64_t addr, uint64_t bytes, uint32_t stream,
                      uint32_t pool, uint32_t *id)
{
    uf_program *program = linker->program;
    if (!add_alloc(linker, addr, bytes, stream, pool, id) ||
        !resize((void **)&program->start_ids, sizeof *program->start_ids,
                program->start_count + 1u) ||
        !resize((void **)&program->start_addrs, sizeof *program->start_addrs,
                program->start_count + 1u)) {
        return false;
    }
    linker->start_bytes += floor_bytes(bytes);
    program->start_ids[program->start_count] = *id;
    program->start_addrs[program->start_count++] = addr;
    return true;
}

static bool site_of(uf_linker *linker, uint32_t site, uint32_t *stream, uint32_t *pool)
{
    uf_program *program = linker->program;
    if (linker->stream_of_site[site] == 0) {
        const uf_site *of = &program->trace->sites[site];
        uint32_t found_stream, found_pool = 0;
        if (!uf__program_stream(program, of->stream, &found_stream) ||
            (of->has_pool_id && !uf__program_pool_find(program, of->pool_id, &found_pool))) {
            return false;
        }
        linker->stream_of_site[site] = found_stream + 1;
        linker->pool_of_site[site] = found_pool;
    }
    *stream = linker->stream_of_site[site] - 1;
    *pool = linker->pool_of_site[site];
    return true;
}

static void add_live(uf_linker *linker, int64_t change)
{
    if (__builtin_add_overflow(linker->live_bytes, change, &linker->live_bytes)) {
        linker->live_bytes = change < 0 ? INT64_MIN : INT64_MAX;
    }
}

static bool link_alloc(uf_linker *linker, uint64_t at, const uf_event *event)
{
    uf_program *program = linker->program;
    uint32_t stream, pool, id;
    const uint32_t *known = uf__addrmap_find(&linker->by_addr, event->addr);
    if (known != NULL && linker->lives[*known] != LIFE_DONE) {
        contradict(program, at, "the address is in use already");
        add_live(linker, -signed_floor(program->alloc_bytes[*known]));
    }
    if (!site_of(linker, event->site, &stream, &pool) ||
        !add_alloc(linker, event->addr, event->size_bytes, stream, pool, &id)) {
        return false;
    }
    program->ops[at] = uf__op(UF_OP_ALLOC, id);
    add_live(linker, signed_floor(event->size_bytes));
    if (linker->live_bytes > linker->peak_bytes) {
        linker->peak_bytes = linker->live_bytes;
    }
    return true;
}

/* The allocation that a free event means; one that was there before is registered. *is_known is
 * false for a free that contradicts the trace. */
static bool find_freed(uf_linker *linker, uint64_t at, const uf_event *event, uint32_t *id,
                       bool *is_known)
{
    const uint32_t *known = uf__addrmap_find(&linker->by_addr, event->addr);
    *is_known = true;
    if (known != NULL && linker->lives[*known] != LIFE_DONE) {
        *id = *known;
        if (linker->program->alloc_bytes[*id] != event->size_bytes) {
            contradict(linker->program, at, "another size than was allocated there");
        }
        return true;
    }
    if (known != NULL) {
        contradict(linker->program, at, "it was freed before and not allocated since");
        *is_known = false;
        return true;
    }
    uint32_t stream, pool;
    return site_of(linker, event->site, &stream, &pool) &&
           add_start(linker, event->addr, event->size_bytes, stream, pool, id);
}

static bool link_free(uf_linker *linker, uint64_t at, const uf_event *event)
{
    uf_program *program = linker->program;
    uint32_t id;
    bool is_known;
    if (!find_freed(linker, at, event, &id, &is_known)) {
        return false;
    }
    if (!is_known || linker->lives[id] == LIFE_PENDING) {
        if (is_known) {
            contradict(program, at, "its free was requested before");
        }
        return true;
    }
    const uf_event *next = at + 1 < program->event_count ? event + 1 : NULL;
    bool is_at_once =
        next != NULL && next->action == UF_ACTION_FREE_COMPLETED && next->addr == event->addr;
    program->ops[at] = uf__op(is_at_once ? UF_OP_FREE : UF_OP_FREE_LATER, id);
    linker->lives[id] = is_at_once ? LIFE_DONE : LIFE_PENDING;
    add_live(linker, is_at_once ? -signed_floor(program->alloc_bytes[id]) : 0);
    return true;
}

static bool link_completion(uf_linker *linker, uint64_t at, const uf_event *event)
{
    uf_program *program = linker->program;
    if (at > 0 && uf__op_kind(program->ops[at - 1]) == UF_OP_FREE &&
        program->events[at - 1].addr == event->addr) {
        return true; /* done with the request */
    }
    uint32_t id;
    bool is_known;
    if (!find_freed(linker, at, event, &id, &is_known)) {
        return false;
    }
    if (is_known) {
        program->ops[at] =
            uf__op(linker->lives[id] == LIFE_PENDING ? UF_OP_COMPLETE : UF_OP_FREE, id);
        linker->lives[id] = LIFE_DONE;
        add_live(linker, -signed_floor(program->alloc_bytes[id]));
    }
    return true;
}

static bool is_release(const uf_event *event)
{
    return event->action == UF_ACTION_SEGMENT_FREE || event->action == UF_ACTION_SEGMENT_UNMAP;
}

/* A run of releases that no request follows at once is taken for an empty_cache; one that stands
 * before a request for memory for that request's own. Following finds out better. */
static void link_releases(uf_program *program, uint64_t at)
{
    if (at > 0 && is_release(&program->events[at - 1])) {
        return;
    }
    uint64_t end = at;
    while (end < program->event_count && is_release(&program->events[end])) {
        end++;
    }
    uint8_t next = end < program->event_count ? program->events[end].action : UF_ACTION_OTHER;
    if (next != UF_ACTION_SEGMENT_ALLOC && next != UF_ACTION_SEGMENT_MAP && next != UF_ACTION_OOM) {
        program->ops[at] = uf__op(UF_OP_EMPTY, 0);
        program->report.empty_cache_count++;
    }
}

static void link_other(uf_program *program, uint64_t at, const uf_event *event)
{
    uint32_t name = program->trace->sites[event->site].action_name;
    if (program->trace->form == UF_FORM_SCRIPT &&
        strcmp(uf_trace_string(program->trace, name), "empty_cache") == 0) {
        program->ops[at] = uf__op(UF_OP_EMPTY, 0);
    }
}

static bool link_event(uf_linker *linker, uint64_t at)
{
    uf_program *program = linker->program;
    const uf_event *event = &program->events[at];
    switch ((uf_action)event->action) {
    case UF_ACTION_ALLOC:
        return link_alloc(linker, at, event);
    case UF_ACTION_FREE_REQUESTED:
        return link_free(linker, at, event);
    case UF_ACTION_FREE_COMPLETED:
        return link_completion(linker, at, event);
    case UF_ACTION_SEGMENT_FREE:
    case UF_ACTION_SEGMENT_UNMAP:
        link_releases(program, at);
        return true;
    case UF_ACTION_OOM:
        program->ops[at] = uf__op(UF_OP_OOM, 0);
        program->report.oom_count++;
        return true;
    case UF_ACTION_OTHER:
        link_other(program, at, event);
        return true;
    default:
        return true;
    }
}

/* Active blocks at the end that no event mentions were there at the start. */
static bool link_survivors(uf_linker *linker)
{
    uf_program *program = linker->program;
    const uf_trace *trace = program->trace;
    for (uint32_t s = 0; s < trace->segment_count; s++) {
        const uf_trace_segment *segment = &trace->segments[s];
        if (segment->device != program->device) {
            continue;
        }
        uint32_t stream, pool = 0, id;
        if (!uf__program_stream(program, segment->stream, &stream) ||
            (segment->has_pool_id && !uf__program_pool_find(program, segment->pool_id, &pool))) {
            return false;
        }
        for (uint32_t b = 0; b < segment->block_count; b++) {
            const uf_trace_block *block = &trace->blocks[segment->first_block + b];
            bool is_active = block->state == UF_BLOCK_ACTIVE_ALLOCATED ||
                             block->state == UF_BLOCK_ACTIVE_PENDING_FREE;
            if (!is_active || uf__addrmap_find(&linker->by_addr, block->addr) != NULL) {
                continue;
            }
            uint64_t bytes = block->has_requested && block->requested_bytes != 0
                                 ? block->requested_bytes
                                 : block->size_bytes;
            if (!add_start(linker, block->addr, bytes, stream, pool, &id)) {
                return false;
            }
        }
    }
    return true;
}

uf_status uf__program_link(uf_program *program, uf_error *error)
{
    uf_linker linker = {.program = program};
    const uint64_t default_id[2] = {0, 0};
    uint32_t index;
    uint32_t site_count = program->trace->site_count;
    program->ops = calloc(program->event_count + 1, sizeof *program->ops);
    linker.stream_of_site = calloc(site_count + 1u, sizeof *linker.stream_of_site);
    linker.pool_of_site = calloc(site_count + 1u, sizeof *linker.pool_of_site);
    bool is_good = program->ops != NULL && linker.stream_of_site != NULL &&
                   linker.pool_of_site != NULL && count_allocs(&linker) &&
                   uf__program_pool(program, default_id, &index) &&
                   uf__program_stream(program, 0, &index);
    for (uint64_t at = 0; at < program->event_count && is_good; at++) {
        is_good = link_event(&linker, at);
    }
    is_good = is_good && link_survivors(&linker);
    program->peak_live_bytes = linker.start_bytes + (uint64_t)linker.peak_bytes;
    uf__addrmap_fini(&linker.by_addr);
    free(linker.lives);
    free(linker.stream_of_site);
    free(linker.pool_of_site);
    if (is_good) {
        program->report.event_count = program->event_count;
        program->report.stream_count = program->stream_count;
        return UF_OK;
    }
    if (program->stream_count == UINT16_MAX || program->alloc_count == UF_OP_ID_LIMIT ||
        program->pool_count == UINT16_MAX) {
        return uf__error_set(error, UF_ERROR_UNSUPPORTED,
                             "the trace has more streams or pools (65535) or allocations (2^28) "
                             "than a replay can number");
    }
    return uf__error_set(error, UF_ERROR_HOST_MEMORY, "no memory to link %" PRIu64 " events",
                         program->event_count);
}
