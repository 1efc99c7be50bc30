/* SPDX-License-Identifier: MIT
 *
 * The public allocator: making and ending it, handing memory out and taking it back, limits and
 * settings. Everything but `options` is guarded by the allocator's lock. */
#include "alloc/allocator_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unfrag/cost.h>

#include "alloc/hazard.h"
#include "alloc/largest.h"
#include "alloc/rounding.h"
#include "alloc/take.h"
#include "base/error.h"

static const int32_t DEVICE_INDEX_MAX = 1023; /* a snapshot has a list for each device below */

static const uint64_t PAGE_BYTES_LEAST = UINT64_C(4) << 10, PAGE_BYTES_MOST = UINT64_C(64) << 30;

static const int64_t NS_PER_MS = 1000000;
enum { SOFT_PERCENT_LEAST = 100, SOFT_PERCENT_MOST = 10000 };

static const uint64_t HEADROOM_LEAST = UINT64_C(256) << 20;
enum { HEADROOM_PERCENT = 2, HEADROOM_SHARE_MOST = 8 }; /* at most an eighth of the device */

static uint64_t small_page_bytes(const uf_allocator_options *options)
{
    uint64_t least_bytes = UINT64_C(2) << 20;
    if (options->device->granularity_bytes > least_bytes) {
        least_bytes = options->device->granularity_bytes;
    }
    return options->page_bytes != 0 ? options->page_bytes : least_bytes;
}

static uint64_t large_page_bytes(const uf_allocator_options *options)
{
    return options->large_page_bytes != 0 ? options->large_page_bytes
                                          : 16 * small_page_bytes(options);
}

typedef struct size_text {
    char text[UF_SIZE_TEXT_CAPACITY];
} size_text;

static const char *size(size_text *text, uint64_t bytes)
{
    return uf__size_format(text->text, sizeof text->text, bytes);
}

static bool can_map(const uf_device *device)
{
    return device->range_reserve != NULL && device->range_release != NULL &&
           device->pages_map != NULL && device->pages_unmap != NULL && device->stream_wait != NULL;
}

static uf_status check_device(const uf_device *device, uf_error *error)
{
    if (device == NULL || device->struct_size_bytes < sizeof *device) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "an allocator needs a device whose struct_size_bytes is at least %zu",
                             sizeof *device);
    }
    if (device->memory_info == NULL || device->segment_create == NULL ||
        device->segment_destroy == NULL || device->event_record == NULL ||
        device->event_query == NULL || device->event_wait == NULL) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "the device lacks a function that every device must have: "
                             "memory_info, segment_create, segment_destroy, event_record, "
                             "event_query, event_wait");
    }
    return UF_OK;
}

/* What the unfrag policy asks for beyond that. */
static uf_status check_paging(const uf_allocator_options *options, uf_error *error)
{
    const uf_device *device = options->device;
    if (device->range_reserve == NULL || device->range_release == NULL ||
        device->handle_create == NULL || device->handle_release == NULL ||
        device->handle_map == NULL || device->range_access == NULL || device->range_unmap == NULL) {
        return uf__error_set(error, UF_ERROR_UNSUPPORTED,
                             "UF_POLICY_UNFRAG needs a device that can map handles, and this one "
                             "lacks one of range_reserve, range_release, handle_create, "
                             "handle_release, handle_map, range_access, range_unmap; use "
                             "UF_POLICY_TORCH");
    }
    uint64_t page_bytes = small_page_bytes(options), large_bytes = large_page_bytes(options);
    if (page_bytes < PAGE_BYTES_LEAST || (page_bytes & (page_bytes - 1)) != 0 ||
        large_bytes % page_bytes != 0 || large_bytes > PAGE_BYTES_MOST) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "pages of %" PRIu64 " and %" PRIu64
                             " bytes were given; small ones are "
                             "a power of two from 4 KiB, large ones a multiple of it up to 64 GiB",
                             page_bytes, large_bytes);
    }
    if (device->granularity_bytes != 0 && page_bytes % device->granularity_bytes != 0) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "pages of %" PRIu64 " bytes were given; on this device they are "
                             "multiples of %" PRIu64,
                             page_bytes, device->granularity_bytes);
    }
    if (options->soft_percent != 0 &&
        (options->soft_percent < SOFT_PERCENT_LEAST || options->soft_percent > SOFT_PERCENT_MOST)) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "a soft_percent of %" PRIu32 " was given; it is from %d to %d, or 0",
                             options->soft_percent, SOFT_PERCENT_LEAST, SOFT_PERCENT_MOST);
    }
    if (options->collect_after_ms != 0 && device->clock_ns == NULL) {
        return uf__error_set(error, UF_ERROR_UNSUPPORTED,
                             "collect_after_ms needs a device with a clock (clock_ns); "
                             "collect_after_frees does not");
    }
    return UF_OK;
}

static uf_status check_options(const uf_allocator_options *options, uf_error *error)
{
    if (options->policy != UF_POLICY_DEFAULT && options->policy != UF_POLICY_TORCH &&
        options->policy != UF_POLICY_UNFRAG) {
        return uf__error_set(error, UF_ERROR_UNSUPPORTED,
                             "there is no policy %d; use UF_POLICY_TORCH (%d) or UF_POLICY_UNFRAG "
                             "(%d)",
                             (int)options->policy, (int)UF_POLICY_TORCH, (int)UF_POLICY_UNFRAG);
    }
    if (options->device_index < 0 || options->device_index > DEVICE_INDEX_MAX) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "a device_index of %" PRId32 " was given; it is from 0 to %" PRId32,
                             options->device_index, DEVICE_INDEX_MAX);
    }
    if (!(options->fraction >= 0.0 && options->fraction <= 1.0)) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "a fraction of %g was given; it is a share of the device's memory "
                             "above 0 and up to 1, or 0 for none",
                             options->fraction);
    }
    if (options->fraction != 0.0 && options->limit_bytes != 0) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "both a limit of %" PRIu64 " bytes and a fraction of %g were given; "
                             "give one",
                             options->limit_bytes, options->fraction);
    }
    uf_status status = check_device(options->device, error);
    return status == UF_OK && options->policy == UF_POLICY_UNFRAG ? check_paging(options, error)
                                                                  : status;
}

/* What a string that was accepted asks for and an allocator or its device cannot do. */
static uf_status check_conf(const uf_conf *conf, const uf_device *device, uf_policy policy,
                            uf_error *error)
{
    if (conf->is_async_backend) {
        return uf__error_set(error, UF_ERROR_UNSUPPORTED,
                             "backend:cudaMallocAsync is the driver's allocator, not this one; "
                             "leave it out");
    }
    if (conf->is_expandable && policy != UF_POLICY_UNFRAG && !can_map(device)) {
        return uf__error_set(error, UF_ERROR_UNSUPPORTED,
                             "expandable_segments:True needs a device that can map pages, and this "
                             "one lacks one of range_reserve, range_release, pages_map, "
                             "pages_unmap, stream_wait");
    }
    return UF_OK;
}

static void on_event(void *context, uf_action action, uint64_t addr, uint64_t size_bytes,
                     uint64_t stream)
{
    uf_allocator *allocator = context;
    const uf_allocator_event event = {action, addr, size_bytes, stream};
    if (allocator->debug != NULL) {
        uf__debugging_event_locked(allocator, action, addr, size_bytes);
    }
    if (allocator->options.on_event == NULL) {
        return;
    }
    atomic_store_explicit(&allocator->callback_thread, (uintptr_t)pthread_self(),
                          memory_order_relaxed);
    allocator->options.on_event(allocator->options.event_context, &event);
    atomic_store_explicit(&allocator->callback_thread, 0, memory_order_relaxed);
}

static uint64_t headroom_bytes(const uf_allocator_options *options)
{
    const uf_device *device = options->device;
    uint64_t free_bytes, total_bytes;
    if (options->headroom_bytes != 0) {
        return options->headroom_bytes == UF_HEADROOM_NONE ? 0 : options->headroom_bytes;
    }
    if (!device->is_shared ||
        device->memory_info(device->context, &free_bytes, &total_bytes) != UF_OK) {
        return 0;
    }
    uint64_t bytes = total_bytes / 100 * HEADROOM_PERCENT;
    bytes = bytes < HEADROOM_LEAST ? HEADROOM_LEAST : bytes;
    return bytes < total_bytes / HEADROOM_SHARE_MOST ? bytes : total_bytes / HEADROOM_SHARE_MOST;
}

/* What pages cost, as given or measured; false: as the core knows it. */
static bool page_costs(const uf_allocator_options *options, uf_page_cost costs[UF_PAGE_SIZE_COUNT])
{
    const uint64_t bytes[UF_PAGE_SIZE_COUNT] = {small_page_bytes(options),
                                                large_page_bytes(options)};
    bool is_known = options->page_costs != NULL;
    for (int size = 0; size < UF_PAGE_SIZE_COUNT && is_known; size++) {
        costs[size] = options->page_costs[size];
    }
    if (options->is_cost_probed) {
        is_known = true;
        for (int size = 0; size < UF_PAGE_SIZE_COUNT && is_known; size++) {
            is_known = uf_cost_probe(options->device, bytes[size], &costs[size], NULL) == UF_OK;
        }
    }
    return is_known;
}

static uf_status core_init(uf_allocator *allocator, const uf_conf *conf)
{
    const uf_allocator_options *options = &allocator->options;
    uf_page_cost costs[UF_PAGE_SIZE_COUNT];
    bool is_paged = options->policy == UF_POLICY_UNFRAG;
    uf_core_config config = {.device = options->device,
                             .conf = conf,
                             .limit_bytes = options->limit_bytes,
                             .is_paged = is_paged,
                             .headroom_bytes = is_paged ? headroom_bytes(options) : 0,
                             .soft_percent = options->soft_percent,
                             .is_every_stream_watched = options->is_every_stream_watched,
                             .is_limit_spared = options->is_limit_spared,
                             .page_costs = is_paged && page_costs(options, costs) ? costs : NULL,
                             .granule_bytes = small_page_bytes(options),
                             .large_page_bytes = large_page_bytes(options),
                             .event_hook =
                                 options->on_event != NULL || options->is_debug ? on_event : NULL,
                             .event_context = allocator};
    uf_status status = uf__core_init(&allocator->core, &config);
    if (status == UF_OK && options->fraction != 0.0) {
        status = uf__core_fraction_set(&allocator->core, options->fraction);
    }
    return status;
}

uf_status uf_allocator_create(const uf_allocator_options *given, uf_allocator **allocator,
                              uf_error *error)
{
    uf_allocator_options options;
    if (given == NULL || allocator == NULL || !uf__take_struct(&options, sizeof options, given)) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "uf_allocator_create: options or allocator is NULL, or "
                             "options.struct_size_bytes is not sizeof(uf_allocator_options), %zu",
                             sizeof options);
    }
    uf_conf conf;
    uf__conf_init(&conf);
    uf_status status = check_options(&options, error);
    const char *text = options.conf != NULL ? options.conf : "";
    const uf_conf_reading reading = {.grammar = UF_CONF_2_11, .is_at_import = true};
    if (status == UF_OK) {
        status = uf__conf_read(&conf, text, &reading, NULL, error);
    }
    if (status == UF_OK) {
        status = check_conf(&conf, options.device, options.policy, error);
    }
    if (status != UF_OK) {
        return status;
    }
    uf_allocator *made = calloc(1, sizeof *made);
    char *kept = strdup(text);
    bool has_memory = made != NULL && kept != NULL;
    if (has_memory) {
        made->options = options;
        made->options.conf = NULL;
        has_memory = !options.is_debug || uf__debugging_begin(made);
    }
    if (!has_memory) {
        free(made);
        free(kept);
        return uf__explain_host_memory(error, "making an allocator");
    }
    made->collector.rule =
        (uf_collect_rule){.after_ns = (int64_t)options.collect_after_ms * NS_PER_MS,
                          .after_frees = options.collect_after_frees};
    made->is_collecting = options.policy == UF_POLICY_UNFRAG &&
                          (options.collect_after_ms != 0 || options.collect_after_frees != 0);
    made->conf = kept;
    status = core_init(made, &conf);
    made->options.page_costs = NULL;
    if (status != UF_OK) {
        uf__debugging_end(made);
        free(kept);
        free(made);
        return uf__explain_device(options.device, error, status, "making an allocator");
    }
    *allocator = made;
    return UF_OK;
}

void uf_allocator_destroy(uf_allocator *allocator)
{
    if (allocator == NULL) {
        return;
    }
    uf_core *core = &allocator->core;
    uf__aside_settle_locked(allocator); /* nobody else is here any more */
    while (core->redirection_count != 0 &&
           uf__core_redirect_end(core, uf__core_redirect_pool(core)) == UF_OK) {
    }
    if (allocator->debug != NULL) {
        uf__debugging_look_locked(allocator);
    }
    /* Waits for the streams that use freed blocks; a failure leaves the rest to fini. */
    (void)!uf__core_empty_cache(core);
    uf__debugging_end(allocator);
    uf__core_fini(core);
    uf__addrmap_fini(&allocator->blocks);
    free(allocator->pins);
    free(allocator->scopes);
    free(allocator->conf);
    free(allocator);
}

static uf_status explain_oom_locked(const uf_allocator *allocator, uint64_t bytes, uint32_t stream,
                                    uint32_t pool, uf_error *error)
{
    const uf_core *core = &allocator->core;
    uint64_t rounded = uf__round_request(&core->conf, bytes);
    uint64_t active = (uint64_t)uf__counter_all(&core->counters, UF_COUNTER_ACTIVE_BYTES);
    uint64_t allocated = (uint64_t)uf__counter_all(&core->counters, UF_COUNTER_ALLOCATED_BYTES);
    int pool_class = uf__is_small(rounded) ? UF_CLASS_SMALL : UF_CLASS_LARGE;
    uint64_t largest = uf__largest_block_bytes(core, pool, pool_class, stream);
    bool is_limited = core->limit_bytes != UF_UNLIMITED, is_scoped = core->redirection_count != 0;
    size_text text[9];
    return uf__error_set(
        error, UF_ERROR_OUT_OF_MEMORY,
        "out of memory: requested %" PRIu64 " bytes (%s) on stream 0x%" PRIx64
        ", which needs a segment of %s; limit %s, reserved %s, allocated %s, waiting for streams "
        "%s, cached %s (largest free block for this stream and pool %s), free on the device %s; "
        "%s%s",
        bytes, size(&text[0], bytes), core->streams[stream],
        size(&text[1], uf__segment_bytes(&core->conf, rounded)),
        is_limited ? size(&text[2], core->limit_bytes) : "none", size(&text[3], core->total_bytes),
        size(&text[4], allocated), size(&text[5], active - allocated),
        size(&text[6], core->total_bytes - active), size(&text[7], largest),
        size(&text[8], uf__core_device_free_bytes(core)),
        is_scoped ? "close pool scopes, so that the cache can be given back" : "free something",
        is_limited ? ", or raise the limit" : ", or try expandable_segments:True");
}

/* Under the unfrag policy a request fails for want of pages alone; the text says where they are. */
static uf_status explain_paged_oom_locked(const uf_allocator *allocator, uint64_t bytes,
                                          uint32_t stream, uint32_t pool, uf_error *error)
{
    const uf_core *core = &allocator->core;
    const uf_paging *paging = core->paging;
    bool is_limited = core->limit_bytes != UF_UNLIMITED;
    uint64_t room_bytes = is_limited && core->total_bytes < core->limit_bytes
                              ? core->limit_bytes - core->total_bytes
                              : 0;
    uint64_t available_bytes = uf__take_available_bytes(core);
    uint64_t cached_bytes = available_bytes - room_bytes;
    uint64_t frozen_bytes = uf__paging_frozen_bytes(core);
    uint64_t needed_bytes = uf__round_request(&core->conf, bytes);
    bool is_plain = core->pools[pool].is_plain;
    needed_bytes = !is_plain                    ? uf__granule_ceil(core, needed_bytes)
                   : core->pools[pool].is_whole ? uf__round_up_power2(needed_bytes, 2 * UF_MIB)
                                                : uf__segment_bytes(&core->conf, needed_bytes);
    uint64_t pinned_bytes = uf__pin_freed_bytes_locked(allocator);
    uint64_t free_bytes = uf__core_device_free_bytes(core), all_bytes = core->device_total_bytes;
    uint64_t outside_bytes =
        free_bytes + core->total_bytes < all_bytes ? all_bytes - free_bytes - core->total_bytes : 0;
    size_text text[10];
    return uf__error_set(
        error, UF_ERROR_OUT_OF_MEMORY,
        "out of memory: requested %" PRIu64 " bytes (%s) on stream 0x%" PRIx64
        ", which needs %s %s; limit %s, held %s, of which under active blocks %s, "
        "frozen in private pools %s, cached and movable %s; free on the device %s (%s left to "
        "others), held outside %s; free something%s%s%s",
        bytes, size(&text[0], bytes), core->streams[stream],
        is_plain ? "a plain segment of" : "pages of up to", size(&text[1], needed_bytes),
        is_limited ? size(&text[2], core->limit_bytes) : "none", size(&text[3], core->total_bytes),
        size(&text[4], core->total_bytes - frozen_bytes - cached_bytes),
        size(&text[5], frozen_bytes), size(&text[6], cached_bytes), size(&text[7], free_bytes),
        size(&text[8], paging->headroom_bytes), size(&text[9], outside_bytes),
        pinned_bytes != 0 ? ", or unpin what was freed" : "",
        core->redirection_count != 0 && cached_bytes != 0
            ? ", or close pool scopes: inside one only pages known to be idle are taken"
            : "",
        is_limited                       ? ", or raise the limit"
        : paging->peak_frozen_bytes != 0 ? ", or destroy pools"
                                         : ", or see who else holds memory on the device");
}

static uf_status explain_alloc_locked(const uf_allocator *allocator, uf_status status,
                                      uint64_t bytes, uint32_t stream, uint32_t pool,
                                      uf_error *error)
{
    const uf_core *core = &allocator->core;
    if (status == UF_ERROR_OUT_OF_MEMORY && core->paging != NULL) {
        return explain_paged_oom_locked(allocator, bytes, stream, pool, error);
    }
    if (status == UF_ERROR_OUT_OF_MEMORY) {
        return explain_oom_locked(allocator, bytes, stream, pool, error);
    }
    if (status == UF_ERROR_HAZARD) {
        size_text setting;
        return uf__error_set(error, status,
                             "a request of %" PRIu64 " bytes would release a piece of a split "
                             "segment, because max_split_size_mb was lowered to %s while larger "
                             "pieces existed; PyTorch's behaviour is undefined here. Raise the "
                             "setting again, or free the segment's other blocks",
                             bytes, size(&setting, core->conf.max_split_size_bytes));
    }
    size_text requested;
    char what[80];
    snprintf(what, sizeof what, "allocating %s", size(&requested, bytes));
    return uf__explain_device(core->device, error, status, what);
}

static uf_status find_stream_locked(uf_allocator *allocator, uint64_t handle, uint32_t *stream)
{
    uf_core *core = &allocator->core;
    if (core->streams[allocator->last_stream] == handle) {
        *stream = allocator->last_stream;
        return UF_OK;
    }
    uf_status status = uf__core_stream(core, handle, stream);
    if (status == UF_OK) {
        allocator->last_stream = *stream;
    }
    return status;
}

static uf_status alloc_locked(uf_allocator *allocator, uint64_t bytes, uint64_t stream_handle,
                              uint64_t *addr, uf_error *error)
{
    uf_core *core = &allocator->core;
    uint32_t stream = 0, block = UF_NO_BLOCK, pool;
    pool = uf__scope_pool_locked(allocator, stream_handle);
    uf_status status = uf__core_process(core);
    if (__builtin_expect(allocator->is_collecting, 0) && status == UF_OK) {
        status = uf__collect(core, &allocator->collector);
    }
    if (status == UF_OK) {
        status = find_stream_locked(allocator, stream_handle, &stream);
    }
    if (status == UF_OK) {
        status = uf__core_alloc(core, bytes + allocator->guard_bytes, stream, pool, &block);
    }
    if (status != UF_OK) {
        return explain_alloc_locked(allocator, status, bytes, stream, pool, error);
    }
    uint64_t made_addr = uf__core_block(core, block)->addr;
    if (__builtin_expect(allocator->debug != NULL, 0)) {
        status = uf__debugging_hand_out_locked(allocator, block, error);
        if (status != UF_OK) {
            return status; /* the block stays where it is: it must not come again */
        }
    }
    if (!uf__addrmap_set(&allocator->blocks, made_addr, block)) {
        (void)!uf__core_free(core, block); /* no other stream uses it: cannot fail */
        return uf__explain_host_memory(error, "noting an address");
    }
    *addr = made_addr;
    uf_aside *aside = &allocator->aside;
    aside->addr = made_addr;
    aside->bytes = bytes;
    aside->stream = stream_handle;
    aside->block = block;
    return UF_OK;
}

uf_status uf_alloc(uf_allocator *allocator, uint64_t bytes, uint64_t stream, uint64_t *addr,
                   uf_error *error)
{
    if (addr == NULL) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT, "uf_alloc: addr is NULL");
    }
    if (bytes >= UF_REQUEST_LIMIT_BYTES) {
        return uf__error_set(error, UF_ERROR_REQUEST_TOO_LARGE,
                             "%" PRIu64 " bytes were requested, and no request may reach 2^60 "
                             "(%" PRIu64 "): a size was computed wrongly, perhaps a negative one",
                             bytes, UF_REQUEST_LIMIT_BYTES);
    }
    uf_status status = uf__allocator_lock(allocator, error);
    if (status != UF_OK) {
        return status;
    }
    uf_aside *aside = &allocator->aside;
    if (aside->is_freed && aside->bytes == bytes && aside->stream == stream) {
        uf__core_take_up(&allocator->core, aside->block);
        aside->is_freed = false;
        *addr = aside->addr;
    } else if (bytes == 0) {
        *addr = 0;
    } else {
        uf__aside_settle_locked(allocator);
        status = alloc_locked(allocator, bytes, stream, addr, error);
    }
    uf__allocator_leave(allocator);
    return status;
}

static uf_status explain_foreign_locked(uf_allocator *allocator, uint64_t addr, uf_error *error)
{
    if (allocator->debug != NULL) {
        return uf__debug_foreign(allocator->debug, addr, error);
    }
    return uf__error_set(error, UF_ERROR_FOREIGN_POINTER,
                         "address 0x%" PRIx64 " is not one that this allocator handed out, or it "
                         "was given back before; %zu addresses are handed out now",
                         addr, allocator->blocks.count);
}

static inline uf_status free_locked(uf_allocator *allocator, uint64_t addr, uint32_t block,
                                    uf_error *error)
{
    if (allocator->pin_count != 0 && uf__pin_keeps_locked(allocator, addr)) {
        return UF_OK;
    }
    uf_status status = uf__core_free(&allocator->core, block);
    if (status != UF_OK) {
        (void)uf__explain_device(allocator->core.device, error, status, "giving memory back");
    }
    return status;
}

static uf_status free_debugged_locked(uf_allocator *allocator, uint64_t addr, uint32_t block,
                                      uf_error *error)
{
    uint64_t damage_count = uf__debug_damage_count(allocator->debug);
    uf__debug_give_back(allocator->debug, addr);
    uf_status status = free_locked(allocator, addr, block, error);
    return status == UF_OK ? uf__debug_tell(allocator->debug, damage_count, error) : status;
}

/* Nothing must have to see each free for itself. */
static bool can_set_aside_locked(const uf_allocator *allocator)
{
    return !allocator->aside.is_freed && (allocator->scope_count | allocator->pin_count) == 0 &&
           !allocator->is_collecting && allocator->debug == NULL &&
           uf__core_can_set_aside(&allocator->core, allocator->aside.block);
}

uf_status uf_free(uf_allocator *allocator, uint64_t addr, uf_error *error)
{
    uf_status status = uf__allocator_lock(allocator, error);
    if (status != UF_OK) {
        return status;
    }
    uf_aside *aside = &allocator->aside;
    if (addr != 0 && aside->addr == addr && can_set_aside_locked(allocator)) {
        uf__core_set_aside(&allocator->core, aside->block);
        aside->is_freed = true;
        uf__allocator_leave(allocator);
        return UF_OK;
    }
    uf__aside_settle_locked(allocator);
    uint32_t block;
    if (addr != 0 && !uf__addrmap_take(&allocator->blocks, addr, &block)) {
        status = explain_foreign_locked(allocator, addr, error);
    } else if (addr != 0 && __builtin_expect(allocator->debug != NULL, 0)) {
        status = free_debugged_locked(allocator, addr, block, error);
    } else if (addr != 0) {
        status = free_locked(allocator, addr, block, error);
    }
    uf__allocator_leave(allocator);
    return status;
}

uf_status uf_use_on_stream(uf_allocator *allocator, uint64_t addr, uint64_t stream_handle,
                           uf_error *error)
{
    uf_status status = uf__allocator_enter(allocator, error);
    if (status != UF_OK) {
        return status;
    }
    const uint32_t *found = uf__addrmap_find(&allocator->blocks, addr);
    if (addr != 0 && found == NULL) {
        status = explain_foreign_locked(allocator, addr, error);
    } else if (addr != 0) {
        uint32_t stream;
        status = uf__core_stream(&allocator->core, stream_handle, &stream);
        if (status == UF_OK) {
            status = uf__core_use(&allocator->core, *found, stream);
        }
        status = uf__explain(error, status, "noting another stream");
    }
    uf__allocator_leave(allocator);
    return status;
}

uf_status uf_empty_cache(uf_allocator *allocator, uf_error *error)
{
    uf_status status = uf__allocator_enter(allocator, error);
    if (status == UF_OK) {
        if (allocator->debug != NULL) {
            uf__debugging_look_locked(allocator); /* before it goes */
        }
        status = uf__core_empty_cache(&allocator->core);
        status = uf__explain_device(allocator->core.device, error, status, "emptying the cache");
        uf__allocator_leave(allocator);
    }
    return status;
}

uf_status uf_limit_set(uf_allocator *allocator, uint64_t limit_bytes, uf_error *error)
{
    uf_status status = uf__allocator_enter(allocator, error);
    if (status == UF_OK) {
        uf__core_limit_set(&allocator->core, limit_bytes == 0 ? UF_UNLIMITED : limit_bytes);
        uf__allocator_leave(allocator);
    }
    return status;
}

uf_status uf_fraction_set(uf_allocator *allocator, double fraction, uf_error *error)
{
    uf_status status = uf__allocator_enter(allocator, error);
    if (status != UF_OK) {
        return status;
    }
    status = uf__core_fraction_set(&allocator->core, fraction);
    if (status != UF_OK) {
        uf__error_set(error, status,
                      "a fraction of %g was given; it is a share of the device's memory from 0 to "
                      "1",
                      fraction);
    }
    uf__allocator_leave(allocator);
    return status;
}

static uf_status check_hazard_locked(const uf_allocator *allocator, const uf_conf *conf,
                                     uf_error *error)
{
    const uf_core *core = &allocator->core;
    uint64_t wanted = conf->max_split_size_bytes;
    if (allocator->options.can_lower_split_size || wanted >= core->conf.max_split_size_bytes) {
        return UF_OK;
    }
    uint32_t index = uf__hazard_find(core, wanted);
    if (index == UF_NO_BLOCK) {
        return UF_OK;
    }
    const uf_block *block = uf__core_block(core, index);
    size_text piece, whole;
    return uf__error_set(
        error, UF_ERROR_HAZARD,
        "max_split_size_mb cannot become %" PRIu64 " now: %s (%" PRIu64 " bytes) at 0x%" PRIx64
        " is a piece of a split segment of %s, and PyTorch may then release it as if it were the "
        "whole. The settings in force stay. Set it before the first allocation, or after this "
        "segment was freed and the cache emptied",
        wanted / UF_MIB, size(&piece, block->size_bytes), block->size_bytes, block->addr,
        size(&whole, uf__hazard_segment_bytes(core, index)));
}

static uf_status conf_set_locked(uf_allocator *allocator, const char *text, uf_error *error)
{
    uf_conf conf = allocator->core.conf;
    uf_status status = uf__conf_parse(&conf, text, UF_CONF_2_11, error);
    if (status == UF_OK) {
        status = check_conf(&conf, allocator->options.device, allocator->options.policy, error);
    }
    if (status == UF_OK) {
        status = check_hazard_locked(allocator, &conf, error);
    }
    if (status != UF_OK) {
        return status;
    }
    char *kept = strdup(text);
    if (kept == NULL) {
        return uf__explain_host_memory(error, "changing settings");
    }
    uf__core_conf_set(&allocator->core, &conf);
    free(allocator->conf);
    allocator->conf = kept;
    return UF_OK;
}

uf_status uf_conf_set(uf_allocator *allocator, const char *conf, uf_error *error)
{
    if (conf == NULL) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "uf_conf_set: conf is NULL; the empty string stands for the defaults");
    }
    uf_status status = uf__allocator_enter(allocator, error);
    if (status == UF_OK) {
        status = conf_set_locked(allocator, conf, error);
        uf__allocator_leave(allocator);
    }
    return status;
}
