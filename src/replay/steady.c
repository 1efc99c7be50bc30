/* SPDX-License-Identifier: MIT
 *
 * Walks over a program's operations that need no allocator: the peak of live bytes, and the part of
 * a recording that repeats. */
#include <stdlib.h>
#include <string.h>

#include "replay/play.h"

static uint64_t floor_bytes(uint64_t bytes)
{
    return bytes > UINT64_MAX - 511 ? bytes : (bytes + 511) & ~UINT64_C(511);
}

static bool is_end_of_life(uf_op_kind kind)
{
    return kind == UF_OP_FREE || kind == UF_OP_COMPLETE || kind == UF_OP_COMPLETE_AFTER;
}

uf_status uf__program_peak_live(const uf_program *program, uint64_t from, uint64_t to,
                                uint64_t *peak_bytes)
{
    if (from == 0 && to >= program->event_count) {
        *peak_bytes = program->peak_live_bytes;
        return UF_OK;
    }
    uint8_t *is_live = calloc(program->alloc_count + 1u, 1);
    if (is_live == NULL) {
        return UF_ERROR_HOST_MEMORY;
    }
    uint64_t live_bytes = 0, peak = 0;
    for (uint32_t i = 0; i < program->start_count; i++) {
        is_live[program->start_ids[i]] = 1;
        live_bytes += floor_bytes(program->alloc_bytes[program->start_ids[i]]);
    }
    for (uint64_t at = 0; at < to && at < program->event_count; at++) {
        uf_op_kind kind = uf__op_kind(program->ops[at]);
        uint32_t id = uf__op_id(program->ops[at]);
        peak = at == from ? live_bytes : peak;
        if (kind == UF_OP_ALLOC) {
            is_live[id] = 1;
            live_bytes += floor_bytes(program->alloc_bytes[id]);
            peak = live_bytes > peak ? live_bytes : peak;
        } else if (is_end_of_life(kind) && is_live[id]) {
            is_live[id] = 0;
            live_bytes -= floor_bytes(program->alloc_bytes[id]);
        }
    }
    free(is_live);
    *peak_bytes = peak;
    return UF_OK;
}

/* Live bytes along the trace: call for each event in turn. */
typedef struct uf_level {
    const uf_program *program;
    uint8_t *is_live; /* by allocation */
    uint64_t live_bytes;
} uf_level;

static bool level_init(uf_level *level, const uf_program *program)
{
    level->program = program;
    level->live_bytes = 0;
    level->is_live = calloc(program->alloc_count + 1u, 1);
    for (uint32_t i = 0; level->is_live != NULL && i < program->start_count; i++) {
        level->is_live[program->start_ids[i]] = 1;
        level->live_bytes += floor_bytes(program->alloc_bytes[program->start_ids[i]]);
    }
    return level->is_live != NULL;
}

static void level_step(uf_level *level, uint64_t at)
{
    uf_op_kind kind = uf__op_kind(level->program->ops[at]);
    uint32_t id = uf__op_id(level->program->ops[at]);
    if (kind == UF_OP_ALLOC && !level->is_live[id]) {
        level->is_live[id] = 1;
        level->live_bytes += floor_bytes(level->program->alloc_bytes[id]);
    } else if (is_end_of_life(kind) && level->is_live[id]) {
        level->is_live[id] = 0;
        level->live_bytes -= floor_bytes(level->program->alloc_bytes[id]);
    }
}

/* The base, the peak, and the first event after which live bytes never fall below the base until
 * the middle part ends. */
static bool find_levels(const uf_program *program, uint64_t *base_bytes, uint64_t *peak_bytes,
                        uint64_t *loaded_event)
{
    uf_level level;
    uint64_t from = program->event_count / 4, to = program->event_count - program->event_count / 20;
    if (!level_init(&level, program)) {
        return false;
    }
    *base_bytes = UINT64_MAX;
    *peak_bytes = 0;
    for (uint64_t at = 0; at < program->event_count; at++) {
        level_step(&level, at);
        if (at >= from && at < to) {
            *base_bytes = level.live_bytes < *base_bytes ? level.live_bytes : *base_bytes;
            *peak_bytes = level.live_bytes > *peak_bytes ? level.live_bytes : *peak_bytes;
        }
    }
    free(level.is_live);
    *loaded_event = 0;
    if (!level_init(&level, program)) {
        return false;
    }
    for (uint64_t at = 0; at < to; at++) {
        level_step(&level, at);
        *loaded_event = level.live_bytes < *base_bytes ? at + 1 : *loaded_event;
    }
    free(level.is_live);
    return true;
}

static bool add_bound(uf_steady *steady, uint32_t *bound_count, uint64_t event)
{
    uint64_t *grown =
        realloc(steady->piece_firsts, (*bound_count + 1u) * sizeof *steady->piece_firsts);
    if (grown == NULL) {
        return false;
    }
    steady->piece_firsts = grown;
    grown[(*bound_count)++] = event;
    return true;
}

uf_status uf__steady_find(const uf_program *program, uf_steady *steady)
{
    uint64_t base_bytes, peak_bytes, loaded_event;
    uint32_t bound_count = 0;
    uf_level level;
    memset(steady, 0, sizeof *steady);
    if (!find_levels(program, &base_bytes, &peak_bytes, &loaded_event) ||
        !level_init(&level, program)) {
        return UF_ERROR_HOST_MEMORY;
    }
    uint64_t range_bytes = peak_bytes > base_bytes ? peak_bytes - base_bytes : 0;
    uint64_t low_bytes = base_bytes + range_bytes / 20, high_bytes = base_bytes + range_bytes / 5;
    bool is_good = true, is_high = false;
    for (uint64_t at = 0; at < program->event_count && is_good; at++) {
        level_step(&level, at);
        bool is_low = level.live_bytes <= low_bytes && at >= loaded_event;
        if (is_low && (bound_count == 0 || is_high)) {
            is_good = add_bound(steady, &bound_count, at + 1);
            is_high = false;
        }
        is_high = is_high || (bound_count > 0 && level.live_bytes > high_bytes);
    }
    free(level.is_live);
    if (!is_good) {
        uf__steady_fini(steady);
        return UF_ERROR_HOST_MEMORY;
    }
    if (bound_count > 1) {
        steady->first_event = steady->piece_firsts[0];
        steady->end_event = steady->piece_firsts[bound_count - 1];
        bool is_large = steady->end_event - steady->first_event >= program->event_count / 10;
        steady->piece_count = is_large ? bound_count - 1 : 0;
    }
    return UF_OK;
}

void uf__steady_fini(uf_steady *steady)
{
    free(steady->piece_firsts);
    memset(steady, 0, sizeof *steady);
}
