/* SPDX-License-Identifier: MIT
 *
 * What driver calls cost: measured medians and the line between them. Pure functions. */
#ifndef UF_DEVICE_COST_H
#define UF_DEVICE_COST_H

#include <stdint.h>

typedef enum uf_cost_call {
    UF_COST_MALLOC,
    UF_COST_FREE,
    UF_COST_RESERVE,
    UF_COST_CREATE,
    UF_COST_MAP,
    UF_COST_ACCESS,      /* one handle */
    UF_COST_ACCESS_EACH, /* each of several handles in one call */
    UF_COST_UNMAP,       /* one handle */
    UF_COST_UNMAP_EACH,  /* each of several handles in one call */
    UF_COST_RELEASE,
    UF_COST_CALL_COUNT
} uf_cost_call;

/* Nanoseconds of one call on an H200 with driver 580 (PCIe 5): linear in size between the measured
 * points, clamped outside. Waiting for running kernels is not in it. */
int64_t uf__cost_ns(uf_cost_call call, uint64_t size_bytes);

#endif
