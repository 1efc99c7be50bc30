/* SPDX-License-Identifier: MIT
 *
 * What contradicts itself in the segments and blocks of a trace. */
#ifndef UF_TRACE_ODDITIES_H
#define UF_TRACE_ODDITIES_H

#include <stdbool.h>

#include <unfrag/trace.h>

/* Sets the gap, unsorted, unaligned and sum counters of trace->oddities from its segments and
 * blocks. Returns false only when the host has no memory left. */
bool uf__oddities_count(uf_trace *trace);

#endif
