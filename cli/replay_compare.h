/* SPDX-License-Identifier: MIT
 *
 * `unfrag replay --compare`: the same recording under four common settings, its own and those
 * of --conf, a row for each. */
#ifndef CLI_REPLAY_COMPARE_H
#define CLI_REPLAY_COMPARE_H

#include "replay_report.h"

/* Replays view->program under each setting, with the bounds of view->run, and prints the rows.
 * Returns the exit code: done if one of the settings fits. */
cli_exit replay_compare(const replay_view *view);

#endif
