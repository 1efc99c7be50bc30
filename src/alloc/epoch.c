/* SPDX-License-Identifier: MIT
 *
 * Epochs: recording and asking. */
#include "alloc/epoch.h"

#include <string.h>

#include "alloc/give_back.h"
#include "alloc/paging.h"

static void drop_oldest(uf_epochs *epochs)
{
    epochs->done_sequence = epochs->open[0].sequence;
    epochs->open_count--;
    memmove(&epochs->open[0], &epochs->open[1], epochs->open_count * sizeof epochs->open[0]);
}

static uf_status close_one(uf_core *core, uint32_t stream)
{
    uf_epochs *epochs = &core->paging->epochs[stream];
    uint64_t sequence = core->paging->free_sequence;
    if (epochs->open_count == UF_EPOCHS_OPEN) {
        return UF_OK; /* the device is far behind: no use in more marks */
    }
    uint64_t event;
    uf_status status =
        core->device->event_record(core->device->context, core->streams[stream], &event);
    if (status != UF_OK) {
        return status == UF_ERROR_BUSY ? status : uf__core_device_failed(core, status);
    }
    epochs->open[epochs->open_count++] = (uf_epoch){event, sequence};
    return UF_OK;
}

static bool has_freed_since(const uf_core *core, uint32_t stream)
{
    const uf_epochs *epochs = &core->paging->epochs[stream];
    uint64_t last = epochs->open_count != 0 ? epochs->open[epochs->open_count - 1].sequence
                                            : epochs->done_sequence;
    return core->paging->last_free[stream] > last;
}

uf_status uf__epoch_close(uf_core *core)
{
    uf_status status = UF_OK;
    if (core->redirection_count != 0) {
        return UF_OK;
    }
    for (uint32_t i = 0; i < core->paging->stream_count && status == UF_OK; i++) {
        if (has_freed_since(core, i)) {
            status = close_one(core, i);
            status = status == UF_ERROR_BUSY ? UF_OK : status; /* a capture: later */
        }
    }
    return status;
}

uf_status uf__epoch_poll(uf_core *core)
{
    const uf_device *device = core->device;
    for (uint32_t i = 0; core->redirection_count == 0 && i < core->paging->stream_count; i++) {
        uf_epochs *epochs = &core->paging->epochs[i];
        bool is_done = true;
        while (epochs->open_count != 0 && is_done) {
            uf_status status =
                device->event_query(device->context, epochs->open[0].event, &is_done);
            if (status != UF_OK) {
                return uf__core_device_failed(core, status);
            }
            if (is_done) {
                drop_oldest(epochs);
            }
        }
    }
    return UF_OK;
}

bool uf__epoch_is_done(const uf_core *core, uint32_t stream, uint64_t sequence)
{
    /* A stream that has freed nothing after its last done epoch is idle as far as it matters. */
    return sequence <= core->paging->epochs[stream].done_sequence;
}

uf_status uf__epoch_wait(uf_core *core, uint32_t stream, uint64_t sequence)
{
    uf_epochs *epochs = &core->paging->epochs[stream];
    if (!uf__epoch_is_done(core, stream, sequence) && core->redirection_count != 0) {
        return UF_ERROR_BUSY;
    }
    while (!uf__epoch_is_done(core, stream, sequence)) {
        uf_status status = UF_OK;
        if (epochs->open_count == 0) {
            status = close_one(core, stream);
        }
        if (status == UF_OK) {
            status = core->device->event_wait(core->device->context, epochs->open[0].event);
            if (status != UF_OK) {
                return uf__core_device_failed(core, status);
            }
            drop_oldest(epochs);
        }
        if (status != UF_OK) {
            return status;
        }
    }
    return UF_OK;
}

void uf__epoch_end(uf_core *core)
{
    const uf_device *device = core->device;
    for (uint32_t i = 0; i < core->paging->stream_count; i++) {
        uf_epochs *epochs = &core->paging->epochs[i];
        for (uint32_t j = 0; j < epochs->open_count; j++) {
            (void)!device->event_wait(device->context, epochs->open[j].event);
        }
        epochs->open_count = 0;
        epochs->is_lost =
            device->stream_wait != NULL && !uf__stream_wait_last(device, core->streams[i]);
    }
}
