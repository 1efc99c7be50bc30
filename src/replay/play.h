/* SPDX-License-Identifier: MIT
 *
 * The state of one what-if replay. */
#ifndef UF_REPLAY_PLAY_H
#define UF_REPLAY_PLAY_H

#include "alloc/core.h"
#include "device/sim.h"
#include "replay/program.h"

/* The part of a program that repeats: events [first_event, end_event), in pieces (images, steps,
 * requests). Piece n runs from piece_firsts[n] to piece_firsts[n + 1]; the last bound is end_event.
 *
 *   live   |            peak
 *   bytes  |    ______   /\      /\        /\
 *          |   /      \_/  \_/\_/  \__/\_/  \_      base: the lowest level of the middle part
 *          |  /load                            \ end
 *               |<--------- steady -------->|
 *               | piece | piece | piece     |
 */
typedef struct uf_steady {
    uint64_t first_event, end_event;
    uint64_t *piece_firsts; /* piece_count + 1 */
    uint32_t piece_count;   /* 0 = no part that repeats was found */
} uf_steady;

/* Finds the steady part. The base is the least that is live between 25 % and 95 % of the events;
 * the part begins where live bytes have come down to the base (and 5 % of the way to the peak) and
 * stay above it, and a piece ends where they come down there again after having been 20 % up. What
 * covers less than a tenth of the events is none. UF_ERROR_HOST_MEMORY or UF_OK. */
uf_status uf__steady_find(const uf_program *program, uf_steady *steady) UF_MUST_USE;
void uf__steady_fini(uf_steady *steady);

/* Peak of live bytes over events [from, to), requested bytes rounded up to 512. */
uf_status uf__program_peak_live(const uf_program *program, uint64_t from, uint64_t to,
                                uint64_t *peak_bytes) UF_MUST_USE;

#endif
