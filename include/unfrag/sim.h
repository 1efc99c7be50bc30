/* SPDX-License-Identifier: MIT
 *
 * A device without memory: addresses, a capacity, and streams whose work is done when told. For
 * trying the allocator and for tests; its addresses must not be dereferenced. */
#ifndef UNFRAG_SIM_H
#define UNFRAG_SIM_H

#include <stdint.h>

#include <unfrag/device.h>
#include <unfrag/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct uf_sim uf_sim;

/* struct_size_bytes = sizeof(uf_sim_options); 0 elsewhere means default. */
typedef struct uf_sim_options {
    size_t struct_size_bytes;
    uint64_t total_bytes;    /* nominal memory; 0 = 24 GiB; below 2^60 */
    uint64_t capacity_bytes; /* what the driver can hand out; 0 = as total_bytes */
} uf_sim_options;

/* Makes a simulated device.
 * options: borrowed for the call; NULL = defaults. sim: receives the device. error: may be NULL.
 * Returns UF_OK; UF_ERROR_INVALID_ARGUMENT (sim is NULL, a size of 2^60 bytes or more, a
 * struct_size_bytes that is none); UF_ERROR_HOST_MEMORY.
 * *sim is owned by the caller (uf_sim_destroy), untouched on failure. Thread-safe. Since 0.1. */
UF_API uf_status uf_sim_create(const uf_sim_options *options, uf_sim **sim,
                               uf_error *error) UF_MUST_USE;

/* Frees a simulated device.
 * sim: no allocator may still be on it; NULL is accepted. Not thread-safe on one sim. Since 0.1. */
UF_API void uf_sim_destroy(uf_sim *sim);

/* Gives the functions to pass on as uf_allocator_options.device.
 * sim: not NULL. Returns a pointer that is borrowed until uf_sim_destroy. The device serves one
 * allocator at a time. Thread-safe. Since 0.1. */
UF_API const uf_device *uf_sim_device(const uf_sim *sim);

/* Lets all work queued so far be done: every event recorded until now counts as reached.
 * sim: not NULL. Thread-safe, also while an allocator uses the device. Since 0.1. */
UF_API void uf_sim_synchronize(uf_sim *sim);

#ifdef __cplusplus
}
#endif
#endif
