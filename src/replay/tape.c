/* SPDX-License-Identifier: MIT
 *
 * The recorded device: it hands out the addresses of the recording, refuses memory where the
 * recording shows that it was refused, and objects when the model asks for what was never asked.
 * Costs are the simulator's. */
#include "replay/follow.h"

#include <inttypes.h>
#include <string.h>

static const uf_event *expected(const uf_follow *follow)
{
    return follow->cursor <= follow->group_last && follow->cursor < follow->program->event_count
               ? &follow->program->events[follow->cursor]
               : NULL;
}

/* Compares a request to the driver with the event at the cursor. UF_OK: it was served then.
 * UF_ERROR_DEVICE_MEMORY: something was given back next, so it was refused. */
static uf_status answer(uf_follow *follow, uf_action action, uint64_t addr, uint64_t size_bytes)
{
    const uf_event *event = expected(follow);
    if (event == NULL) {
        uf__follow_fail(follow, follow->cursor,
                        "expected no driver call, the model asks for %" PRIu64 " bytes",
                        size_bytes);
        return UF_ERROR_DEVICE;
    }
    bool is_same = event->action == action && event->size_bytes == size_bytes &&
                   (action == UF_ACTION_SEGMENT_ALLOC || event->addr == addr);
    if (is_same) {
        return UF_OK;
    }
    if (event->action == UF_ACTION_ALLOC || event->action == UF_ACTION_SEGMENT_ALLOC ||
        event->action == UF_ACTION_SEGMENT_MAP) {
        uf__follow_fail(follow, follow->cursor,
                        "expected %s of %" PRIu64 " bytes at 0x%" PRIx64
                        ", the model wants %s of %" PRIu64 " bytes",
                        uf_action_name((uf_action)event->action), event->size_bytes, event->addr,
                        uf_action_name(action), size_bytes);
        const uf_range *recorded = uf__ranges_find(&follow->ranges, event->addr);
        const uf_range *model = action == UF_ACTION_SEGMENT_MAP && addr > 0
                                    ? uf__ranges_find(&follow->ranges, addr - 1)
                                    : NULL;
        follow->suspect_recorded = event->action != UF_ACTION_ALLOC ? follow->cursor
                                   : recorded == NULL               ? UF_EVENT_NONE
                                                                    : recorded->creator;
        follow->suspect_model = model == NULL ? UF_EVENT_NONE : model->creator;
        return UF_ERROR_DEVICE;
    }
    return UF_ERROR_DEVICE_MEMORY;
}

static uf_status segment_create(void *context, uint64_t size_bytes, uint64_t stream, uint64_t *addr)
{
    uf_follow *follow = context;
    uf_status status = answer(follow, UF_ACTION_SEGMENT_ALLOC, 0, size_bytes);
    uint64_t unused_addr;
    uf_status charged =
        follow->sim.device.segment_create(&follow->sim, size_bytes, stream, &unused_addr);
    if (status == UF_OK) {
        *addr = expected(follow)->addr;
        return charged;
    }
    follow->sim.in_use_bytes -= charged == UF_OK ? size_bytes : 0;
    return status;
}

static uf_status segment_destroy(void *context, uint64_t addr, uint64_t size_bytes)
{
    uf_follow *follow = context;
    return follow->sim.device.segment_destroy(&follow->sim, addr, size_bytes);
}

static bool is_reserved(const uf_core *core, uint64_t addr)
{
    for (uint32_t i = 1; i < core->region_count; i++) {
        const uf_region *region = &core->regions[i];
        if (addr >= region->addr && addr - region->addr < region->size_bytes) {
            return true;
        }
    }
    return false;
}

/* The first pages go to the start of a reservation. They may come much later than it, where the
 * driver refused at first. */
static uf_status range_reserve(void *context, uint64_t size_bytes, uint64_t *addr)
{
    uf_follow *follow = context;
    const uf_program *program = follow->program;
    const uf_trace *trace = program->trace;
    uf_status status = follow->sim.device.range_reserve(&follow->sim, size_bytes, addr);
    if (follow->group_last >= program->event_count) {
        return status;
    }
    uint64_t stream = trace->sites[program->events[follow->group_last].site].stream;
    for (uint64_t i = follow->cursor; i < program->event_count; i++) {
        const uf_event *event = &program->events[i];
        if (event->action == UF_ACTION_SEGMENT_MAP && trace->sites[event->site].stream == stream &&
            !is_reserved(&follow->core, event->addr)) {
            *addr = event->addr;
            break;
        }
    }
    return status;
}

static uf_status range_release(void *context, uint64_t addr, uint64_t size_bytes)
{
    uf_follow *follow = context;
    return follow->sim.device.range_release(&follow->sim, addr, size_bytes);
}

static uf_status pages_map(void *context, uint64_t addr, uint64_t size_bytes, uint64_t page_bytes)
{
    uf_follow *follow = context;
    uf_status status = answer(follow, UF_ACTION_SEGMENT_MAP, addr, size_bytes);
    if (status != UF_OK) {
        return status;
    }
    return follow->sim.device.pages_map(&follow->sim, addr, size_bytes, page_bytes);
}

static uf_status pages_unmap(void *context, uint64_t addr, uint64_t size_bytes, uint64_t page_bytes)
{
    uf_follow *follow = context;
    return follow->sim.device.pages_unmap(&follow->sim, addr, size_bytes, page_bytes);
}

static uf_status memory_info(void *context, uint64_t *free_bytes, uint64_t *total_bytes)
{
    uf_follow *follow = context;
    return follow->sim.device.memory_info(&follow->sim, free_bytes, total_bytes);
}

static uf_status stream_wait(void *context, uint64_t stream)
{
    uf_follow *follow = context;
    return follow->sim.device.stream_wait(&follow->sim, stream);
}

static uf_status event_record(void *context, uint64_t stream, uint64_t *event)
{
    uf_follow *follow = context;
    return follow->sim.device.event_record(&follow->sim, stream, event);
}

static uf_status event_query(void *context, uint64_t event, bool *is_done)
{
    uf_follow *follow = context;
    return follow->sim.device.event_query(&follow->sim, event, is_done);
}

static uf_status event_wait(void *context, uint64_t event)
{
    uf_follow *follow = context;
    return follow->sim.device.event_wait(&follow->sim, event);
}

void uf__tape_init(uf_follow *follow)
{
    uint64_t total_bytes = follow->program->options.total_bytes;
    uf__sim_init(&follow->sim, total_bytes, UINT64_MAX);
    follow->device = (uf_device){.struct_size_bytes = sizeof(uf_device),
                                 .context = follow,
                                 .memory_info = memory_info,
                                 .segment_create = segment_create,
                                 .segment_destroy = segment_destroy,
                                 .range_reserve = range_reserve,
                                 .range_release = range_release,
                                 .pages_map = pages_map,
                                 .pages_unmap = pages_unmap,
                                 .stream_wait = stream_wait,
                                 .event_record = event_record,
                                 .event_query = event_query,
                                 .event_wait = event_wait};
}
