/* SPDX-License-Identifier: MIT
 *
 * What each stream and pool had of a replay. Read-only on program and core. */
#ifndef UF_REPLAY_GROUPS_H
#define UF_REPLAY_GROUPS_H

#include "alloc/core.h"
#include "replay/program.h"

/* Fills in up to capacity groups, by pool and then by stream; *count is how many there are.
 * UF_ERROR_HOST_MEMORY or UF_OK. */
uf_status uf__groups_measure(const uf_program *program, const uf_core *core,
                             uf_replay_group *groups, uint32_t capacity,
                             uint32_t *count) UF_MUST_USE;

#endif
