/* SPDX-License-Identifier: MIT
 *
 * The tables by stream and by pool of a replay, from its groups (one stream's part of one pool). */
#ifndef CLI_REPLAY_GROUPS_H
#define CLI_REPLAY_GROUPS_H

#include "json.h"
#include "replay_report.h"

/* Room for groups; more are counted, not listed. */
#define REPLAY_GROUP_CAPACITY 4096

/* Prints one table by stream and one by pool, each only if it has more than one row. Returns false
 * if the host had no memory. */
bool replay_groups_print(const replay_view *view);

/* Writes the array "groups". */
void replay_groups_json(cli_json *json, const replay_view *view);

#endif
