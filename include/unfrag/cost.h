/* SPDX-License-Identifier: MIT
 *
 * What pages cost: measured on a device, and whose driver times a simulated device charges. */
#ifndef UNFRAG_COST_H
#define UNFRAG_COST_H

#include <stdint.h>

#include <unfrag/device.h>
#include <unfrag/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum uf_cost_model {
    UF_COST_H200 = 0, /* measured: an H200 with driver 580 on PCIe 5 */
    UF_COST_A100 = 1  /* the page calls of an A100, as measured for pages of 2 MiB; what was not
                         measured there is taken as said in docs/policy.md */
} uf_cost_model;

/* Measures what a page costs on a device, by its own clock: makes four pages five times, maps them
 * side by side, gives access, unmaps and releases them, and takes the medians. Nothing is left
 * behind. It needs the memory of the four pages meanwhile and takes some milliseconds on a GPU.
 * device: not NULL; an allocator may be on it. page_bytes: a size that the device can map. cost:
 * receives it, of one page among several.
 * Returns UF_OK; UF_ERROR_INVALID_ARGUMENT; UF_ERROR_UNSUPPORTED (the device has no clock, cannot
 * map handles, or its clock stands still in its calls); UF_ERROR_DEVICE_MEMORY; UF_ERROR_DEVICE.
 * Thread-safe if the device is. Since 0.1. */
UF_API uf_status uf_cost_probe(const uf_device *device, uint64_t page_bytes, uf_page_cost *cost,
                               uf_error *error) UF_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif
