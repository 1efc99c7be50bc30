/* SPDX-License-Identifier: MIT
 *
 * Contradictions of a trace with itself, whatever allocator made it. */
#ifndef UF_REPLAY_AUDIT_H
#define UF_REPLAY_AUDIT_H

#include "replay/program.h"

/* Looks for allocations that overlap live ones and for final segments that the events contradict.
 * Runs only where following found a difference: a trace that the model reproduces cannot contradict
 * itself. Counts in program->report. UF_ERROR_HOST_MEMORY or UF_OK. */
uf_status uf__audit(uf_program *program) UF_MUST_USE;

#endif
