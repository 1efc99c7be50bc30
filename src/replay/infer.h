/* SPDX-License-Identifier: MIT
 *
 * Finding the assumptions under which the model reproduces a recording. */
#ifndef UF_REPLAY_INFER_H
#define UF_REPLAY_INFER_H

#include "replay/program.h"

/* Follows the recording under the best assumptions it can find; fills in the program's operations,
 * pools and report. UF_ERROR_HOST_MEMORY, UF_ERROR_INTERRUPTED, or UF_OK whatever the comparison
 * shows. */
uf_status uf__infer(uf_program *program) UF_MUST_USE;

#endif
