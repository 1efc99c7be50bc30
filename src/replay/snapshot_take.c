/* SPDX-License-Identifier: MIT
 *
 * A snapshot of a living allocator: copies its state and its recorder's events under the
 * allocator's mutex, so that both are of one instant, and writes them as a trace afterwards,
 * outside it. */
#include <unfrag/recorder.h>

#include <stdlib.h>
#include <string.h>

#include <unfrag/trace.h>

#include "alloc/allocator.h"
#include "alloc/walk.h"
#include "base/error.h"
#include "replay/recorder.h"
#include "trace/builder.h"

/* What is copied under the mutex. */
typedef struct taken {
    uf_recorder *recorder; /* may be NULL */
    uf_walk_copy layout;
    uf_recorder_entry *entries;
    uint64_t entry_count;
    uf_conf conf;
    char *conf_text;
    int32_t device_index;
} taken;

static void taken_fini(taken *all)
{
    uf__walk_copy_fini(&all->layout);
    free(all->entries);
    free(all->conf_text);
}

static uf_status take(void *context, const uf_allocator_view *view)
{
    taken *all = context;
    const uf_core *core = view->core;
    all->conf = core->conf;
    all->device_index = view->device_index;
    all->conf_text = strdup(view->conf);
    uf_status status =
        all->conf_text != NULL ? uf__walk_copy_init(&all->layout, core) : UF_ERROR_HOST_MEMORY;
    if (status == UF_OK && all->recorder != NULL) {
        int64_t active_bytes = uf__counter_all(&core->counters, UF_COUNTER_ACTIVE_BYTES);
        status = uf__recorder_copy(all->recorder, (uint64_t)active_bytes, &all->entries,
                                   &all->entry_count);
    }
    return status;
}

/* Events of one stream share a site; what follows one another mostly is of one stream. */
static bool build_events(uf_builder *builder, const taken *all)
{
    static const char CONTEXT[] = "N/A"; /* what PyTorch writes where nothing was compiled */
    uf_site site;
    memset(&site, 0, sizeof site);
    site.stack = site.action_name = UF_NONE;
    if (!uf__builder_string(builder, CONTEXT, sizeof CONTEXT - 1, &site.compile_context) ||
        !uf__builder_string(builder, "", 0, &site.user_metadata)) {
        return false;
    }
    uint32_t site_id = UF_NONE;
    for (uint64_t i = 0; i < all->entry_count; i++) {
        const uf_recorder_entry *entry = &all->entries[i];
        if (site_id == UF_NONE || site.stream != entry->stream) {
            site.stream = entry->stream;
            if (!uf__builder_site(builder, &site, &site_id)) {
                return false;
            }
        }
        const uf_event event = {.addr = entry->addr,
                                .size_bytes = entry->size_bytes,
                                .time_us = entry->time_ns / 1000,
                                .site = site_id,
                                .action = entry->action};
        if (!uf__builder_event(builder, &event)) {
            return false;
        }
    }
    return true;
}

static bool build_blocks(uf_builder *builder, const uf_block_info *blocks, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const uf_trace_block block = {.addr = blocks[i].addr,
                                      .size_bytes = blocks[i].size_bytes,
                                      .requested_bytes = blocks[i].requested_bytes,
                                      .stack = UF_NONE,
                                      .state = (uint8_t)blocks[i].state,
                                      .has_requested = true};
        if (!uf__builder_block(builder, &block)) {
            return false;
        }
    }
    return true;
}

static bool build_segments(uf_builder *builder, const taken *all)
{
    const uf_block_info *blocks = all->layout.blocks;
    for (uint64_t i = 0; i < all->layout.segment_count; i++) {
        const uf_segment_info *from = &all->layout.segments[i];
        const uf_trace_segment segment = {.addr = from->addr,
                                          .total_bytes = from->total_bytes,
                                          .allocated_bytes = from->allocated_bytes,
                                          .active_bytes = from->active_bytes,
                                          .requested_bytes = from->requested_bytes,
                                          .stream = from->stream,
                                          .pool_id = {from->pool_id[0], from->pool_id[1]},
                                          .stack = UF_NONE,
                                          .device = all->device_index,
                                          .is_large = from->is_large,
                                          .is_expandable = from->is_expandable,
                                          .has_pool_id = true,
                                          .has_requested = true};
        if (!uf__builder_segment(builder, &segment) ||
            !build_blocks(builder, blocks, from->block_count)) {
            return false;
        }
        blocks += from->block_count;
    }
    return true;
}

static bool build_settings(uf_builder *builder, const taken *all)
{
    uf_trace_settings *settings = &uf__builder_trace(builder)->settings;
    const uf_conf *conf = &all->conf;
    settings->is_present = settings->has_conf = settings->has_max_split_size = true;
    settings->has_gc_threshold = settings->has_expandable = settings->has_divisions = true;
    settings->has_other = 15; /* all four of the others */
    settings->max_split_size_bytes = (int64_t)conf->max_split_size_bytes; /* unlimited = -1 */
    settings->gc_threshold = conf->garbage_collection_threshold;
    settings->is_expandable = conf->is_expandable;
    memcpy(settings->divisions, conf->roundup_power2_divisions, sizeof settings->divisions);
    settings->pinned_num_register_threads = (uint32_t)conf->pinned_num_register_threads;
    settings->release_lock_on_cudamalloc = conf->can_release_lock;
    settings->pinned_use_cuda_host_register = conf->has_host_register;
    settings->graph_capture_record_stream_reuse = conf->can_reuse_in_capture;
    return uf__builder_string(builder, all->conf_text, strlen(all->conf_text), &settings->conf);
}

static uf_status build(const taken *all, uf_trace **trace)
{
    uf_builder *builder = uf__builder_create();
    if (builder == NULL) {
        return UF_ERROR_HOST_MEMORY;
    }
    uf__builder_trace(builder)->has_device_traces = true;
    bool is_built = uf__builder_device(builder, all->device_index) && build_events(builder, all) &&
                    build_segments(builder, all) && build_settings(builder, all) &&
                    uf__builder_finish(builder, trace);
    if (!is_built) {
        uf__builder_destroy(builder);
        return UF_ERROR_HOST_MEMORY;
    }
    return UF_OK;
}

uf_status uf_snapshot_write(uf_allocator *allocator, uf_recorder *recorder, FILE *stream,
                            uf_error *error)
{
    if (stream == NULL) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT, "uf_snapshot_write: stream is NULL");
    }
    taken all = {.recorder = recorder};
    uf_trace *trace = NULL;
    uf_status status = uf__allocator_look(allocator, take, &all, error);
    if (status == UF_OK) {
        status = build(&all, &trace);
    }
    if (status == UF_ERROR_HOST_MEMORY) {
        uf__error_set(error, status, "taking a snapshot: the host has no memory left");
    }
    taken_fini(&all);
    if (status == UF_OK) {
        status = uf_trace_write_pickle(trace, stream, error);
    }
    uf_trace_destroy(trace);
    return status;
}
