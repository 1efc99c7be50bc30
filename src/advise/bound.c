/* SPDX-License-Identifier: MIT
 *
 * Bounds and equal settings. */
#include "advise/bound.h"

#include <string.h>

#include "alloc/rounding.h"
#include "replay/program.h"

static uint64_t rounded(const uf_conf *conf, uint64_t bytes)
{
    return bytes >= UF_REQUEST_LIMIT_BYTES ? UF_REQUEST_LIMIT_BYTES
                                           : uf__round_request(conf, bytes);
}

/* Counts what is between its request and the request to free it: a block that waits for another
 * stream may be had back by waiting. */
static uint64_t peak_held(const uf_program *program, const uf_conf *conf)
{
    uint64_t held_bytes = 0, peak_bytes = 0;
    for (uint32_t i = 0; i < program->start_count; i++) {
        held_bytes += rounded(conf, program->alloc_bytes[program->start_ids[i]]);
    }
    peak_bytes = held_bytes;
    for (uint64_t at = 0; at < program->event_count; at++) {
        uf_op_kind kind = uf__op_kind(program->ops[at]);
        if (kind == UF_OP_ALLOC) {
            held_bytes += rounded(conf, program->alloc_bytes[uf__op_id(program->ops[at])]);
            peak_bytes = held_bytes > peak_bytes ? held_bytes : peak_bytes;
        } else if (kind == UF_OP_FREE || kind == UF_OP_FREE_LATER) {
            held_bytes -= rounded(conf, program->alloc_bytes[uf__op_id(program->ops[at])]);
        }
    }
    return peak_bytes;
}

void uf__bound_compute(const uf_program *const *programs, uint32_t program_count,
                       const uf_conf *conf, uf_bound *bound)
{
    uf_conf plain;
    uf__conf_init(&plain);
    *bound = (uf_bound){.is_rounding_inert = true};
    for (uint32_t p = 0; p < program_count; p++) {
        const uf_program *program = programs[p];
        uint64_t held_bytes = peak_held(program, conf);
        bound->held_bytes = held_bytes > bound->held_bytes ? held_bytes : bound->held_bytes;
        for (uint32_t i = 0; i < program->alloc_count; i++) {
            uint64_t bytes = rounded(conf, program->alloc_bytes[i]);
            bound->largest_bytes = bytes > bound->largest_bytes ? bytes : bound->largest_bytes;
            bound->has_middle |= bytes > UF_SMALL_MAX_BYTES && bytes < UF_MIN_LARGE_BYTES;
            bound->is_rounding_inert &= bytes == rounded(&plain, program->alloc_bytes[i]);
        }
    }
}

uint64_t uf__bound_limit(const uf_bound *bound, const uf_conf *conf)
{
    uint64_t page_bytes = !conf->is_expandable ? 0
                          : conf->large_segment_bytes > UF_SMALL_SEGMENT_BYTES
                              ? conf->large_segment_bytes
                              : UF_SMALL_SEGMENT_BYTES;
    return bound->held_bytes > page_bytes ? bound->held_bytes - page_bytes : 0;
}

void uf__bound_simplify(const uf_bound *bound, uf_conf *conf)
{
    uf_conf defaults;
    uf__conf_init(&defaults);
    if (bound->is_rounding_inert) {
        memcpy(conf->roundup_power2_divisions, defaults.roundup_power2_divisions,
               sizeof conf->roundup_power2_divisions);
    }
    if (conf->is_expandable) {
        return; /* pages have that size, and blocks grow larger than a segment */
    }
    uint64_t largest_bytes = uf__segment_bytes(conf, bound->largest_bytes);
    largest_bytes = largest_bytes < UF_SMALL_SEGMENT_BYTES ? UF_SMALL_SEGMENT_BYTES : largest_bytes;
    if (bound->has_middle && conf->large_segment_bytes > largest_bytes) {
        largest_bytes = conf->large_segment_bytes;
    }
    if (!bound->has_middle) {
        conf->large_segment_bytes = defaults.large_segment_bytes;
    }
    if (conf->max_split_size_bytes > largest_bytes) {
        conf->max_split_size_bytes = UF_UNLIMITED;
        conf->max_non_split_rounding_bytes = defaults.max_non_split_rounding_bytes;
    } else if (conf->max_non_split_rounding_bytes > largest_bytes - conf->max_split_size_bytes) {
        conf->max_non_split_rounding_bytes = UF_UNLIMITED;
    }
}
