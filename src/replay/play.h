/* SPDX-License-Identifier: MIT
 *
 * The state of one what-if replay. */
#ifndef UF_REPLAY_PLAY_H
#define UF_REPLAY_PLAY_H

#include "alloc/core.h"
#include "device/sim.h"
#include "replay/program.h"

/* The part of a program that repeats: from first_event to the end, in pieces. Piece n runs from
 * piece_firsts[n] to piece_firsts[n + 1]; the last bound is the end of the trace. */
typedef struct uf_steady {
    uint64_t first_event;
    uint64_t *piece_firsts;
    uint32_t piece_count;
} uf_steady;

/* Finds the steady part: it starts where 99 % of what stays has been allocated and the rest is low,
 * and a piece ends where short-lived memory is down to 2 % of its peak after having been above 50
 * %. UF_ERROR_HOST_MEMORY or UF_OK. */
uf_status uf__steady_find(const uf_program *program, uf_steady *steady) UF_MUST_USE;
void uf__steady_fini(uf_steady *steady);

/* Peak of live bytes over events [from, to), requested bytes rounded up to 512. */
uf_status uf__program_peak_live(const uf_program *program, uint64_t from, uint64_t to,
                                uint64_t *peak_bytes) UF_MUST_USE;

#endif
