/* SPDX-License-Identifier: MIT
 *
 * Growing, and taking pages from cached ranges. */
#include "alloc/take.h"

#include <stdlib.h>

#include "alloc/hole.h"
#include "alloc/shadow.h"

typedef struct victim {
    uint64_t age;
    uint32_t block;
} victim;

static int compare_victims(const void *left, const void *right)
{
    const victim *a = left, *b = right;
    return (a->age > b->age) - (a->age < b->age);
}

static bool is_takeable(const uf_core *core, const uf_shelf *shelf)
{
    return shelf != NULL && !core->pools[shelf->pool].is_plain &&
           (shelf->pool == UF_DEFAULT_POOL || core->pools[shelf->pool].use_count == 0 ||
            core->pools[shelf->pool].is_use_on_oom);
}

/* Lists the holes that hold a whole granule, the longest unused first. */
static uf_status list_victims(const uf_core *core, victim **victims, uint32_t *count)
{
    uint32_t capacity = 0;
    for (uint32_t i = 1; i < core->shelf_count; i++) {
        capacity += is_takeable(core, core->shelves[i]) ? core->shelves[i]->cached.count : 0;
    }
    *victims = malloc(((size_t)capacity + 1) * sizeof **victims);
    *count = 0;
    if (*victims == NULL) {
        return UF_ERROR_HOST_MEMORY;
    }
    const uf_block *blocks = core->blocks.items;
    for (uint32_t i = 1; i < core->shelf_count; i++) {
        if (!is_takeable(core, core->shelves[i])) {
            continue;
        }
        const uf_freeset *cached = &core->shelves[i]->cached;
        uint32_t index =
            uf__freeset_at_least(cached, blocks, core->paging->bytes_of[UF_PAGE_SMALL], 0);
        for (; index != UF_NO_BLOCK; index = uf__freeset_after(cached, blocks, index)) {
            uf_stretch whole = uf__hole_granules(core, &blocks[index]);
            if (whole.from < whole.to) {
                (*victims)[(*count)++] = (victim){blocks[index].age_base, index};
            }
        }
    }
    qsort(*victims, *count, sizeof **victims, compare_victims);
    return UF_OK;
}

/* The last run of pages of one size in *within, at most `count` of them; false if none. *within
 * shrinks to what was not looked at. */
static bool last_run(const uf_core *core, uf_stretch *within, uf_page_size size, uint64_t count,
                     uf_stretch *run)
{
    const uf_region *region = &core->regions[within->region];
    uint64_t granule = region->page_bytes;
    uint64_t known_to = region->addr + (uint64_t)region->page_capacity * granule;
    uint64_t at = within->to < known_to ? within->to : known_to;
    run->to = 0;
    while (at > within->from && count > 0) {
        uint32_t page = uf__page_at(core, within->region, at - granule);
        bool is_wanted = page != UF_NO_PAGE && core->paging->pages[page].size == size &&
                         core->paging->pages[page].shadow_count < UINT8_MAX;
        if (!is_wanted && run->to != 0) {
            break;
        }
        uint64_t before = page == UF_NO_PAGE ? at - granule : core->paging->pages[page].addr;
        if (is_wanted) {
            *run = (uf_stretch){within->region, before, run->to != 0 ? run->to : at};
            count--;
        }
        at = before;
    }
    within->to = at;
    return run->to != 0;
}

/* How pages may be taken that work on the hole's stream may still use. */
typedef enum uf_take_mode {
    UF_TAKE_IDLE,  /* not at all */
    UF_TAKE_ALIAS, /* within the stream they are for, leaving a shadow */
    UF_TAKE_WAIT   /* after waiting for the work */
} uf_take_mode;

/* Takes up to `count` pages of one size from a hole. */
static uf_status take_from(uf_core *core, uint32_t index, uf_page_size size, uint64_t count,
                           bool is_idle)
{
    uf_stretch within = uf__hole_granules(core, &core->blocks.items[index]), run;
    uint32_t had = core->paging->loose_count[size];
    uf_status status = UF_OK;
    while (status == UF_OK && core->paging->loose_count[size] - had < count &&
           core->blocks.items[index].life == UF_LIFE_FREE &&
           last_run(core, &within, size, count - (core->paging->loose_count[size] - had), &run)) {
        status = is_idle ? uf__pages_unmap(core, &run) : uf__shadow_cast(core, index, &run);
        uf_block *hole = &core->blocks.items[index];
        if (is_idle && status == UF_OK && hole->requested_bytes > run.from) {
            hole->requested_bytes = run.from > hole->addr ? run.from : hole->addr;
        }
    }
    return status;
}

/* Takes up to `count` pages of one size from holes that were freed up to that free, for a stream;
 * *taken receives how many. */
static uf_status take_aged(uf_core *core, uint32_t stream, uf_take_mode mode, uf_page_size size,
                           uint64_t count, uint64_t freed_by, uint64_t *taken)
{
    uint32_t had = core->paging->loose_count[size], victim_count;
    victim *victims;
    uf_status status = list_victims(core, &victims, &victim_count);
    if (status != UF_OK) {
        return status;
    }
    for (uint32_t i = 0; i < victim_count && status == UF_OK; i++) {
        uint64_t done = core->paging->loose_count[size] - had;
        if (done == count || victims[i].age > freed_by) {
            break;
        }
        const uf_block *hole = &core->blocks.items[victims[i].block];
        uint32_t its_stream = core->shelves[hole->shelf]->stream;
        bool is_idle = uf__epoch_is_done(core, its_stream, hole->age_base);
        bool is_ours = mode == UF_TAKE_ALIAS && its_stream == stream;
        if (!is_idle && mode == UF_TAKE_WAIT && core->redirection_count == 0) {
            status = uf__epoch_wait(core, its_stream, hole->age_base);
            is_idle = status == UF_OK;
            status = status == UF_ERROR_BUSY ? UF_OK : status; /* a capture: not this one */
        }
        if (is_idle || is_ours) {
            status = take_from(core, victims[i].block, size, count - done, is_idle);
        }
    }
    *taken = core->paging->loose_count[size] - had;
    free(victims);
    return status;
}

static uf_status take(uf_core *core, uint32_t stream, uf_take_mode mode, uf_page_size size,
                      uint64_t count, uint64_t *taken)
{
    uf_status status = take_aged(core, stream, mode, size, count, UINT64_MAX, taken);
    core->paging->moved_count += *taken;
    return status;
}

uf_status uf__take_from_cache(uf_core *core, uf_page_size size, uint64_t count, uint64_t freed_by,
                              bool can_wait, uint64_t *taken)
{
    *taken = 0;
    return take_aged(core, 0, can_wait ? UF_TAKE_WAIT : UF_TAKE_IDLE, size, count, freed_by, taken);
}

/* Without a limit there is a soft bound, a little above what has been active at most: beyond it
 * pages of holes are taken before it grows, as long as that costs little of the time that has
 * passed. It is tight while moving has cost next to nothing. Under a limit nothing moves while
 * there is room, but for the last of it (bound_of_request). */
static const int64_t TIME_PER_MOVING = 200;
static const int64_t CREDIT_NS = 50000000;

static uint64_t room_below(const uf_core *core, uint64_t bound_bytes)
{
    return core->total_bytes < bound_bytes ? bound_bytes - core->total_bytes : 0;
}

/* What may still be spent on moving, and what has been. */
static bool can_afford_moving(const uf_core *core, int64_t share)
{
    const uf_device *device = core->device;
    int64_t passed_ns = device->clock_ns(device->context) - core->paging->start_ns;
    int64_t budget_ns = passed_ns / TIME_PER_MOVING + CREDIT_NS;
    return (int64_t)core->paging->moved_count <= budget_ns / share / core->paging->move_ns;
}

/* With is_limit_spared the last 45th of a limit is not for what was fragmented: it is for a peak of
 * active bytes, a hundredth of that and a little. Beyond it grows only what cannot be had from
 * holes at once, or where moving has cost too much. So a program that needs nearly all of its limit
 * holds little more than it needs. */
enum { LIMIT_PER_SPARE = 45, PEAK_PER_SPARE = 100 };
static const uint64_t SPARE_BYTES = UINT64_C(16) << 20;

static uint64_t bound_of_request(const uf_core *core)
{
    const uf_paging *paging = core->paging;
    uint64_t limit_bytes = core->limit_bytes, peak_bytes = paging->peak_active_bytes;
    if (!paging->is_limit_spared || limit_bytes == UF_UNLIMITED || core->device->clock_ns == NULL ||
        paging->is_reserving || peak_bytes >= limit_bytes || !can_afford_moving(core, 1)) {
        return limit_bytes;
    }
    uint64_t plain_bytes = limit_bytes - limit_bytes / LIMIT_PER_SPARE;
    uint64_t peak_spare_bytes = peak_bytes / PEAK_PER_SPARE + SPARE_BYTES;
    if (peak_spare_bytes >= limit_bytes - peak_bytes) {
        return limit_bytes;
    }
    uint64_t needed_bytes = peak_bytes + peak_spare_bytes;
    return needed_bytes > plain_bytes ? needed_bytes : plain_bytes;
}

/* In uf__take_pages. */
static uint64_t hard_room(const uf_core *core)
{
    return room_below(core, core->paging->bound_bytes);
}

/* Below the soft bound, if there is one now. */
static uint64_t soft_room(const uf_core *core, uint64_t hard_room_bytes)
{
    uint64_t percent = 0;
    const uf_paging *paging = core->paging;
    if (core->limit_bytes == UF_UNLIMITED && core->device->clock_ns != NULL &&
        !paging->is_reserving) {
        percent = can_afford_moving(core, 2)   ? paging->tight_percent
                  : can_afford_moving(core, 1) ? paging->soft_percent
                                               : 0;
    }
    return percent == 0 ? hard_room_bytes
                        : room_below(core, paging->peak_active_bytes / 100 * percent);
}

/* Whether the device keeps the headroom after growth by so much. It is asked once for a request
 * that grows; if it does not answer, growth shows. */
static bool leaves_headroom(uf_core *core, uint64_t bytes)
{
    uf_paging *paging = core->paging;
    uint64_t free_bytes, total_bytes;
    if (paging->headroom_bytes == 0) {
        return true;
    }
    if (!paging->is_looked_up) {
        bool is_known =
            core->device->memory_info(core->device->context, &free_bytes, &total_bytes) == UF_OK;
        free_bytes = is_known && free_bytes > paging->headroom_bytes
                         ? free_bytes - paging->headroom_bytes
                         : 0;
        paging->growable_bytes = is_known ? core->total_bytes + free_bytes : UINT64_MAX;
        paging->is_looked_up = true;
    }
    return core->total_bytes + bytes <= paging->growable_bytes;
}

uint64_t uf__take_room(const uf_core *core)
{
    return soft_room(core, room_below(core, bound_of_request(core)));
}

/* Creates one page if there is room; *is_made tells. */
static uf_status grow(uf_core *core, uf_page_size size, uint64_t room, bool *is_refused,
                      bool *is_made)
{
    *is_made = false;
    if (*is_refused || room < core->paging->bytes_of[size]) {
        return UF_OK;
    }
    if (!leaves_headroom(core, core->paging->bytes_of[size])) {
        *is_refused = true;
        return UF_OK;
    }
    uf_status status = uf__page_create(core, size);
    *is_made = status == UF_OK;
    *is_refused = status == UF_ERROR_OUT_OF_MEMORY;
    return *is_refused ? UF_OK : status;
}

/* One step towards `wanted` more loose pages without giving any back: growth up to the soft bound,
 * pages of holes, growth up to the limit. *is_made tells whether it led anywhere. */
static uf_status step(uf_core *core, uint32_t stream, uf_page_size size, uint64_t wanted,
                      bool *is_refused, bool *is_made)
{
    uf_status status = grow(core, size, soft_room(core, hard_room(core)), is_refused, is_made);
    if (status == UF_OK && !*is_made) {
        /* During a capture only what is known to be idle: leftovers could not be waited for. */
        uf_take_mode mode = core->redirection_count == 0 ? UF_TAKE_ALIAS : UF_TAKE_IDLE;
        uint64_t taken;
        status = take(core, stream, mode, size, wanted, &taken);
        *is_made = status == UF_OK && taken != 0;
    }
    return status == UF_OK && !*is_made ? grow(core, size, hard_room(core), is_refused, is_made)
                                        : status;
}

static int64_t small_per_large(const uf_paging *paging)
{
    return (int64_t)(paging->bytes_of[UF_PAGE_LARGE] / paging->bytes_of[UF_PAGE_SMALL]);
}

/* What it costs to give a large page back and to create small ones in its place. */
static int64_t break_ns(const uf_paging *paging)
{
    return paging->costs[UF_PAGE_LARGE].release_ns +
           small_per_large(paging) * paging->costs[UF_PAGE_SMALL].create_ns;
}

/* Whether small pages are had for less from a loose large one than from holes. */
static bool is_break_cheap(const uf_paging *paging)
{
    return break_ns(paging) < small_per_large(paging) * paging->costs[UF_PAGE_SMALL].unmap_ns;
}

/* Whether a large page in the place of small ones costs less than mapping those. Sooner or later
 * small ones will be wanted again: half of what that costs counts. */
static bool is_join_cheap(const uf_paging *paging)
{
    const uf_page_cost *small = &paging->costs[UF_PAGE_SMALL];
    const uf_page_cost *large = &paging->costs[UF_PAGE_LARGE];
    return small_per_large(paging) * small->release_ns + large->create_ns + large->map_ns +
               break_ns(paging) / 2 <
           small_per_large(paging) * small->map_ns;
}

/* Small pages of as many bytes as a large one are given back to the driver, so that a large one can
 * be made in their place. *is_made tells whether there were enough. */
static uf_status change_small(uf_core *core, uint32_t stream, bool *is_made)
{
    const uint64_t *bytes_of = core->paging->bytes_of;
    uint64_t room = hard_room(core), taken = 0;
    uint64_t missing_bytes = bytes_of[UF_PAGE_LARGE] - room + bytes_of[UF_PAGE_SMALL] - 1;
    uint64_t count = missing_bytes / bytes_of[UF_PAGE_SMALL];
    uf_status status = take(core, stream, UF_TAKE_IDLE, UF_PAGE_SMALL, count, &taken);
    *is_made = taken == count;
    (void)leaves_headroom(core, 0); /* before they go: what is held may be held again */
    for (uint64_t i = 0; i < count && status == UF_OK && *is_made; i++) {
        status = uf__page_destroy(core, UF_PAGE_SMALL);
    }
    return status;
}

static uf_status take_large(uf_core *core, uint32_t stream, uint64_t count, bool *is_refused)
{
    uf_paging *paging = core->paging;
    uf_status status = UF_OK;
    bool is_made = true;
    while (status == UF_OK && is_made && paging->loose_count[UF_PAGE_LARGE] < count) {
        status = step(core, stream, UF_PAGE_LARGE, count - paging->loose_count[UF_PAGE_LARGE],
                      is_refused, &is_made);
        if (status == UF_OK && !is_made && !*is_refused &&
            hard_room(core) < paging->bytes_of[UF_PAGE_LARGE] && is_join_cheap(paging)) {
            status = change_small(core, stream, &is_made);
        }
    }
    return status;
}

/* A large page is given back to the driver, so that small ones can be made in its place. *is_made
 * tells whether there was one. */
static uf_status change_large(uf_core *core, uint32_t stream, uf_take_mode mode,
                              uint64_t large_count, bool *is_made)
{
    uint64_t taken = 0;
    uf_status status = UF_OK;
    if (core->paging->loose_count[UF_PAGE_LARGE] <= large_count) {
        status = take(core, stream, mode, UF_PAGE_LARGE, 1, &taken);
    }
    *is_made = status == UF_OK && core->paging->loose_count[UF_PAGE_LARGE] > large_count;
    (void)leaves_headroom(core, 0);
    return *is_made ? uf__page_destroy(core, UF_PAGE_LARGE) : status;
}

static uf_status take_small(uf_core *core, uint32_t stream, uint64_t large_count, uint64_t count,
                            bool *is_refused)
{
    uf_paging *paging = core->paging;
    uf_status status = UF_OK;
    while (status == UF_OK && paging->loose_count[UF_PAGE_SMALL] < count) {
        uint64_t wanted = count - paging->loose_count[UF_PAGE_SMALL], taken = 0;
        bool is_made;
        if (paging->loose_count[UF_PAGE_LARGE] > large_count && is_break_cheap(paging) &&
            soft_room(core, hard_room(core)) < paging->bytes_of[UF_PAGE_SMALL]) {
            status = uf__page_destroy(core, UF_PAGE_LARGE);
            continue;
        }
        status = step(core, stream, UF_PAGE_SMALL, wanted, is_refused, &is_made);
        const uf_take_mode modes[2] = {UF_TAKE_IDLE, UF_TAKE_WAIT};
        /* Nothing is waited for as long as the limit has room. */
        int mode_count = paging->bound_bytes < core->limit_bytes ? 1 : 2;
        for (int i = 0; i < mode_count && status == UF_OK && !is_made; i++) {
            status = take(core, stream, modes[i], UF_PAGE_SMALL, wanted, &taken);
            is_made = taken != 0;
            if (status == UF_OK && !is_made) {
                status = change_large(core, stream, modes[i], large_count, &is_made);
                *is_refused = *is_refused && !is_made;
            }
        }
        if (status == UF_OK && !is_made) {
            return UF_ERROR_OUT_OF_MEMORY;
        }
    }
    return status;
}

static uf_status take_both(uf_core *core, uint32_t stream, uint64_t large_count,
                           uint64_t small_count)
{
    uf_paging *paging = core->paging;
    uint64_t per_large = paging->bytes_of[UF_PAGE_LARGE] / paging->bytes_of[UF_PAGE_SMALL];
    bool is_refused = false;
    /* Left over from a request that failed: another stream may still be at work in them. */
    uf_status status = paging->loose_bytes != 0 ? uf__shadow_settle_loose(core) : UF_OK;
    if (status == UF_OK) {
        status = take_large(core, stream, large_count, &is_refused);
    }
    is_refused = false; /* a small page may be had where a large one was refused */
    if (status == UF_OK && paging->loose_count[UF_PAGE_LARGE] < large_count) {
        uint64_t missing = large_count - paging->loose_count[UF_PAGE_LARGE];
        small_count += missing * per_large;
        large_count -= missing;
    }
    return status == UF_OK ? take_small(core, stream, large_count, small_count, &is_refused)
                           : status;
}

uf_status uf__take_pages(uf_core *core, uint32_t stream, uint64_t large_count, uint64_t small_count)
{
    core->paging->bound_bytes = bound_of_request(core);
    uf_status status = take_both(core, stream, large_count, small_count);
    if (status == UF_ERROR_OUT_OF_MEMORY && core->paging->bound_bytes < core->limit_bytes) {
        core->paging->bound_bytes = core->limit_bytes;
        status = take_both(core, stream, large_count, small_count);
    }
    return status;
}

uint64_t uf__take_cached_bytes(const uf_core *core)
{
    uint64_t bytes = core->paging->loose_bytes;
    for (uint32_t i = 1; i < core->shelf_count; i++) {
        const uf_shelf *shelf = core->shelves[i];
        uint32_t index = is_takeable(core, shelf)
                             ? uf__freeset_at_least(&shelf->cached, core->blocks.items, 0, 0)
                             : UF_NO_BLOCK;
        for (; index != UF_NO_BLOCK;
             index = uf__freeset_after(&shelf->cached, core->blocks.items, index)) {
            uf_stretch whole = uf__hole_granules(core, &core->blocks.items[index]);
            uf_stretch run = {whole.region, whole.from, whole.from};
            while (whole.from < whole.to && uf__paging_next_run(core, &run, whole.to)) {
                bytes += run.to - run.from;
            }
        }
    }
    return bytes;
}

uint64_t uf__take_available_bytes(const uf_core *core)
{
    uint64_t bytes = uf__take_cached_bytes(core);
    return core->limit_bytes == UF_UNLIMITED ? bytes : bytes + room_below(core, core->limit_bytes);
}

uf_status uf__take_undo(uf_core *core)
{
    uf_status status = UF_OK;
    if (core->paging->loose_bytes != 0) {
        (void)leaves_headroom(core, 0); /* the request may try again */
    }
    for (int size = 0; size < UF_PAGE_SIZE_COUNT; size++) {
        while (core->paging->loose_count[size] != 0 && status == UF_OK) {
            status = uf__page_destroy(core, (uf_page_size)size);
        }
    }
    return status == UF_ERROR_BUSY ? UF_OK : status; /* a capture: they stay loose */
}
