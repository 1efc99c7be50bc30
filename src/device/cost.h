/* SPDX-License-Identifier: MIT
 *
 * What driver calls cost: tables of medians, by machine, and the line between them. Pure functions.
 */
#ifndef UF_DEVICE_COST_H
#define UF_DEVICE_COST_H

#include <stdint.h>

#include <unfrag/cost.h>
#include <unfrag/device.h>

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

typedef struct uf_cost_table uf_cost_table;

/* The table of a model; it lives as long as the program. An unknown model is UF_COST_H200. */
const uf_cost_table *uf__cost_table(uf_cost_model model);

/* Nanoseconds of one call: linear in size between the points of the table, clamped outside. Waiting
 * for running kernels is not in it. */
int64_t uf__cost_ns(const uf_cost_table *table, uf_cost_call call, uint64_t size_bytes);

/* The same for one page of that size among several. */
void uf__cost_page(const uf_cost_table *table, uint64_t size_bytes, uf_page_cost *cost);

#endif
