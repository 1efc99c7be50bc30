/* SPDX-License-Identifier: MIT
 *
 * Giving cached memory back: uf_trim and collection by age. */
#include "alloc/trim.h"

#include "alloc/shadow.h"
#include "alloc/take.h"

/* So often in the time or the number of frees after which pages go, it is looked whether any do. */
enum { LOOKS_PER_AGE = 8 };

uint64_t uf__trim_cached_bytes(const uf_core *core)
{
    if (core->paging != NULL) {
        return uf__take_cached_bytes(core);
    }
    return core->total_bytes - (uint64_t)uf__counter_all(&core->counters, UF_COUNTER_ACTIVE_BYTES);
}

/* How many pages of a size may go and which: large ones while whole ones are too many. */
static uf_page_size choose_size(const uf_core *core, uint64_t excess_bytes, uint64_t *count)
{
    const uint64_t *bytes_of = core->paging->bytes_of;
    uf_page_size size = excess_bytes >= bytes_of[UF_PAGE_LARGE] ? UF_PAGE_LARGE : UF_PAGE_SMALL;
    *count = size == UF_PAGE_LARGE ? excess_bytes / bytes_of[size]
                                   : (excess_bytes + bytes_of[size] - 1) / bytes_of[size];
    return size;
}

/* Gives loose pages back while more is cached than is to be kept; the rest stays loose. */
static uf_status release_loose(uf_core *core, uint64_t keep_bytes)
{
    const uf_paging *paging = core->paging;
    uint64_t cached_bytes = uf__take_cached_bytes(core);
    uf_status status = UF_OK;
    while (status == UF_OK && cached_bytes > keep_bytes && paging->loose_bytes != 0) {
        bool is_large = cached_bytes - keep_bytes >= paging->bytes_of[UF_PAGE_LARGE] ||
                        paging->loose_count[UF_PAGE_SMALL] == 0;
        uf_page_size size =
            is_large && paging->loose_count[UF_PAGE_LARGE] != 0 ? UF_PAGE_LARGE : UF_PAGE_SMALL;
        status = uf__page_destroy(core, size);
        cached_bytes -= status == UF_OK ? paging->bytes_of[size] : 0;
    }
    return status == UF_ERROR_BUSY ? UF_OK : status; /* a capture: they stay loose */
}

/* Pages of holes that were freed up to that free, in one mode. */
static uf_status trim_pages(uf_core *core, uint64_t keep_bytes, uint64_t freed_by, bool can_wait)
{
    uf_status status = release_loose(core, keep_bytes);
    bool has_progress = true;
    while (status == UF_OK && has_progress) {
        uint64_t cached_bytes = uf__take_cached_bytes(core), count, taken = 0;
        if (cached_bytes <= keep_bytes) {
            break;
        }
        uf_page_size size = choose_size(core, cached_bytes - keep_bytes, &count);
        status = uf__take_from_cache(core, size, count, freed_by, can_wait, &taken);
        if (status == UF_OK && taken == 0) {
            /* Only of the other size: one page more than need be, or many small ones. */
            size = size == UF_PAGE_SMALL ? UF_PAGE_LARGE : UF_PAGE_SMALL;
            count = size == UF_PAGE_LARGE
                        ? 1
                        : (cached_bytes - keep_bytes) / core->paging->bytes_of[UF_PAGE_SMALL];
            status = uf__take_from_cache(core, size, count, freed_by, can_wait, &taken);
        }
        has_progress = taken != 0;
        uf_status undone = release_loose(core, keep_bytes);
        status = status == UF_OK ? undone : status;
    }
    return status;
}

static uf_status trim_paged(uf_core *core, uint64_t keep_bytes)
{
    uf_status status = uf__epoch_poll(core);
    if (status == UF_OK) {
        status = uf__shadow_clear(core);
    }
    if (status == UF_OK) {
        status = uf__plain_release_dead(core);
    }
    if (status == UF_OK) {
        status = trim_pages(core, keep_bytes, UINT64_MAX, false);
    }
    if (status == UF_OK && core->redirection_count == 0 &&
        uf__take_cached_bytes(core) > keep_bytes) {
        status = trim_pages(core, keep_bytes, UINT64_MAX, true);
    }
    return status;
}

uf_status uf__trim(uf_core *core, uint64_t keep_bytes, uint64_t *released_bytes)
{
    uint64_t before_bytes = core->total_bytes;
    uf_status status =
        core->paging != NULL ? trim_paged(core, keep_bytes) : uf__core_trim(core, keep_bytes);
    *released_bytes = before_bytes - core->total_bytes;
    return status;
}

/* The newest free that was so long ago. */
static uint64_t freed_before(const uf_collector *collector, int64_t ns)
{
    uint64_t sequence = 0;
    for (uint32_t i = 0; i < UF_AGE_MARKS; i++) {
        bool is_old = collector->mark_ns[i] != 0 && collector->mark_ns[i] <= ns;
        if (is_old && collector->mark_sequence[i] > sequence) {
            sequence = collector->mark_sequence[i];
        }
    }
    return sequence;
}

static void mark(uf_collector *collector, uint64_t sequence, int64_t ns)
{
    collector->mark_sequence[collector->next_mark] = sequence;
    collector->mark_ns[collector->next_mark] = ns;
    collector->next_mark = (collector->next_mark + 1) % UF_AGE_MARKS;
    collector->last_ns = ns;
}

uf_status uf__collect(uf_core *core, uf_collector *collector)
{
    const uf_collect_rule *rule = &collector->rule;
    uint64_t sequence = core->paging->free_sequence, freed_by = 0;
    bool is_due = false;
    if (rule->after_frees != 0 &&
        sequence - collector->last_sequence >= rule->after_frees / LOOKS_PER_AGE) {
        freed_by = sequence > rule->after_frees ? sequence - rule->after_frees : 0;
        collector->last_sequence = sequence;
        is_due = true;
    }
    if (rule->after_ns != 0) {
        int64_t now_ns = core->device->clock_ns(core->device->context);
        if (collector->last_ns == 0 ||
            now_ns - collector->last_ns >= rule->after_ns / LOOKS_PER_AGE) {
            mark(collector, sequence, now_ns == 0 ? 1 : now_ns);
            uint64_t old = freed_before(collector, now_ns - rule->after_ns);
            freed_by = old > freed_by ? old : freed_by;
            is_due = true;
        }
    }
    if (!is_due || freed_by == 0 || core->redirection_count != 0) {
        return UF_OK;
    }
    uf_status status = uf__epoch_poll(core);
    if (status == UF_OK) {
        status = uf__epoch_close(core);
    }
    if (status == UF_OK) {
        status = uf__shadow_clear(core);
    }
    return status == UF_OK ? trim_pages(core, 0, freed_by, false) : status;
}
