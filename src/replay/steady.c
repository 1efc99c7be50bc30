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

/* Marks allocations that are freed before the end. */
static uint8_t *mark_short_lived(const uf_program *program, uint64_t *peak_bytes,
                                 uint64_t *lasting_bytes)
{
    uint8_t *is_short = calloc(program->alloc_count + 1u, 1);
    if (is_short == NULL) {
        return NULL;
    }
    for (uint64_t at = 0; at < program->event_count; at++) {
        if (is_end_of_life(uf__op_kind(program->ops[at]))) {
            is_short[uf__op_id(program->ops[at])] = 1;
        }
    }
    uint64_t short_bytes = 0;
    *peak_bytes = *lasting_bytes = 0;
    for (uint64_t at = 0; at < program->event_count; at++) {
        uf_op_kind kind = uf__op_kind(program->ops[at]);
        uint32_t id = uf__op_id(program->ops[at]);
        uint64_t bytes = kind == UF_OP_ALLOC || is_end_of_life(kind) ? program->alloc_bytes[id] : 0;
        if (kind == UF_OP_ALLOC && is_short[id]) {
            short_bytes += bytes;
            *peak_bytes = short_bytes > *peak_bytes ? short_bytes : *peak_bytes;
        } else if (kind == UF_OP_ALLOC) {
            *lasting_bytes += bytes;
        } else if (is_end_of_life(kind)) {
            short_bytes -= bytes < short_bytes ? bytes : short_bytes;
        }
    }
    return is_short;
}

static bool add_piece(uf_steady *steady, uint64_t first)
{
    uint64_t *grown =
        realloc(steady->piece_firsts, (steady->piece_count + 2u) * sizeof *steady->piece_firsts);
    if (grown == NULL) {
        return false;
    }
    steady->piece_firsts = grown;
    grown[steady->piece_count++] = first;
    return true;
}

uf_status uf__steady_find(const uf_program *program, uf_steady *steady)
{
    uint64_t peak_bytes, lasting_bytes, short_bytes = 0, lasted_bytes = 0;
    memset(steady, 0, sizeof *steady);
    uint8_t *is_short = mark_short_lived(program, &peak_bytes, &lasting_bytes);
    bool is_good = is_short != NULL, is_high = false;
    for (uint64_t at = 0; at < program->event_count && is_good; at++) {
        uf_op_kind kind = uf__op_kind(program->ops[at]);
        uint32_t id = uf__op_id(program->ops[at]);
        bool is_low = short_bytes <= peak_bytes / 50;
        bool is_loaded = lasted_bytes >= lasting_bytes - lasting_bytes / 100;
        if (steady->piece_count == 0 && is_low && is_loaded) {
            is_good = add_piece(steady, at);
        } else if (steady->piece_count > 0 && is_high && is_low) {
            is_good = add_piece(steady, at);
            is_high = false;
        }
        is_high = is_high || short_bytes > peak_bytes / 2;
        if (kind == UF_OP_ALLOC) {
            *(is_short[id] ? &short_bytes : &lasted_bytes) += program->alloc_bytes[id];
        } else if (is_end_of_life(kind)) {
            uint64_t bytes = program->alloc_bytes[id];
            short_bytes -= bytes < short_bytes ? bytes : short_bytes;
        }
    }
    if (is_good && steady->piece_count == 0) {
        is_good = add_piece(steady, 0);
    }
    free(is_short);
    if (!is_good) {
        uf__steady_fini(steady);
        return UF_ERROR_HOST_MEMORY;
    }
    steady->first_event = steady->piece_firsts[0];
    steady->piece_firsts[steady->piece_count] = program->event_count;
    return UF_OK;
}

void uf__steady_fini(uf_steady *steady)
{
    free(steady->piece_firsts);
    memset(steady, 0, sizeof *steady);
}
