/* SPDX-License-Identifier: MIT
 *
 * What the Python module calls in the glue, by ctypes. Plain C; no function throws. */
#ifndef UF_TORCH_ENTRY_H
#define UF_TORCH_ENTRY_H

#include <stddef.h>
#include <stdint.h>

#include <unfrag/unfrag.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Puts unfrag's allocator in the place of PyTorch's.
 * policy: "unfrag" or "torch". conf: settings as in PYTORCH_CUDA_ALLOC_CONF; may be NULL.
 * limit_bytes, 0 = none; fraction of each GPU's memory, 0 = none; at most one of them. error:
 * receives one line on failure. Returns 0; 1: CUDA is in use already; 2: installed before; 3:
 * anything else. */
UF_API int uf_torch_install(const char *policy, const char *conf, uint64_t limit_bytes,
                            double fraction, char *error, size_t capacity);

/* 1 while PyTorch's current allocator is unfrag's. */
UF_API int uf_torch_is_active(void);

/* The release that this file was built for, 2011 for 2.11. */
UF_API int uf_torch_version(void);

/* The allocator of a GPU, made if need be; NULL: error says why. Borrowed for ever. */
UF_API uf_allocator *uf_torch_allocator(int device, char *error, size_t capacity);

/* The GPUs that have an allocator, as bits. */
UF_API uint64_t uf_torch_devices(void);

/* Changes the settings on all GPUs. Returns 0, or 1 and one line in error. */
UF_API int uf_torch_conf_set(const char *conf, char *error, size_t capacity);

#ifdef __cplusplus
}
#endif
#endif
