/* SPDX-License-Identifier: MIT
 *
 * What `unfrag tune` prints: one screen for a person, or one JSON object. */
#ifndef CLI_TUNE_REPORT_H
#define CLI_TUNE_REPORT_H

#include "advise/tune.h"
#include "tune_input.h"
#include "tune_options.h"

/* Both return false if standard output could not be written. */
bool tune_report_text(const tune_options *options, const tune_input *inputs,
                      const uf_tune_result *result);
bool tune_report_json(const tune_options *options, const tune_input *inputs,
                      const uf_tune_result *result);

/* Is there a setting under which everything completes where it was asked to? */
bool tune_has_answer(const uf_tune_result *result);

/* What there is to run in: the smaller of the limit and of the card less its allowance; 0 = no
 * place was named. */
uint64_t tune_room_bytes(const tune_options *options);

#endif
