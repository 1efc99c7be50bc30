/* SPDX-License-Identifier: MIT
 *
 * The part of uf__core_check that is about pages. */
#ifndef UF_ALLOC_PAGING_CHECK_H
#define UF_ALLOC_PAGING_CHECK_H

#include "alloc/paging.h"

/* Proves what paging.h says always holds; adds what is mapped to reserved_bytes, by class.
 * plain_bytes: of plain segments. Returns UF_OK or UF_ERROR_INTERNAL with the first violation. */
uf_status uf__paging_check(const uf_core *core, uint64_t plain_bytes,
                           int64_t reserved_bytes[UF_CLASS_COUNT], uf_error *error) UF_MUST_USE;

#endif
