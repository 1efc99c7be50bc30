/* SPDX-License-Identifier: MIT
 *
 * The answer of a what-if replay in words: it fits, how much is left, or why it does not and what
 * to try next. */
#ifndef CLI_REPLAY_FIT_H
#define CLI_REPLAY_FIT_H

#include "replay_report.h"

/* What CUDA's context and libraries take of a card; a replay does not subtract it, tune does. */
extern const uint64_t replay_context_bytes;

/* Does it fit a card with less to spare than CUDA itself takes? */
bool replay_fit_is_tight(const replay_view *view, const uf_replay_result *result);

void replay_fit_print(const replay_view *view);

#endif
