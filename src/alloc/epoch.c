/* SPDX-License-Identifier: MIT
 *
 * Epochs: recording and asking. */
#include "alloc/epoch.h"

#include <string.h>

#include "alloc/give_back.h"
#include "alloc/paging.h"

/* Renews what is idle on every stream. */
static void renew_done(uf_paging *paging)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < paging->stream_count; i++) {
        uint64_t sequence = paging->epochs[i].done_sequence;
        least = sequence < least ? sequence : least;
    }
    paging->done_sequence = least;
}

static void drop_oldest(uf_paging *paging, uf_epochs *epochs)
{
    epochs->done_sequence = epochs->open[0].sequence;
    epochs->open_count--;
    memmove(&epochs->open[0], &epochs->open[1], epochs->open_count * sizeof epochs->open[0]);
    renew_done(paging);
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

/* Whether there were frees since the stream's last epoch that concern it. */
static bool has_freed_since(const uf_core *core, uint32_t stream)
{
    const uf_paging *paging = core->paging;
    const uf_epochs *epochs = &paging->epochs[stream];
    uint64_t last = epochs->open_count != 0 ? epochs->open[epochs->open_count - 1].sequence
                                            : epochs->done_sequence;
    return (paging->is_every_stream_watched ? paging->free_sequence : paging->last_free[stream]) >
           last;
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
                drop_oldest(core->paging, epochs);
            }
        }
    }
    return UF_OK;
}

static bool is_row_done(const uf_core *core, uint32_t stream, uint64_t sequence)
{
    /* A stream that has freed nothing after its last done epoch is idle as far as it matters. */
    return sequence <= core->paging->epochs[stream].done_sequence;
}

bool uf__epoch_is_done(const uf_core *core, uint32_t stream, uint64_t sequence)
{
    return core->paging->is_every_stream_watched ? sequence <= core->paging->done_sequence
                                                 : is_row_done(core, stream, sequence);
}

static uf_status wait_for(uf_core *core, uint32_t stream, uint64_t sequence)
{
    uf_epochs *epochs = &core->paging->epochs[stream];
    while (!is_row_done(core, stream, sequence)) {
        uf_status status = UF_OK;
        if (epochs->open_count == 0) {
            status = close_one(core, stream);
        }
        if (status == UF_OK) {
            status = core->device->event_wait(core->device->context, epochs->open[0].event);
            if (status != UF_OK) {
                return uf__core_device_failed(core, status);
            }
            drop_oldest(core->paging, epochs);
        }
        if (status != UF_OK) {
            return status;
        }
    }
    return UF_OK;
}

uf_status uf__epoch_wait(uf_core *core, uint32_t stream, uint64_t sequence)
{
    if (uf__epoch_is_done(core, stream, sequence)) {
        return UF_OK;
    }
    if (core->redirection_count != 0) {
        return UF_ERROR_BUSY;
    }
    if (!core->paging->is_every_stream_watched) {
        return wait_for(core, stream, sequence);
    }
    uf_status status = UF_OK;
    for (uint32_t i = 0; i < core->paging->stream_count && status == UF_OK; i++) {
        status = wait_for(core, i, sequence);
    }
    return status;
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
