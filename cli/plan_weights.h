/* SPDX-License-Identifier: MIT
 *
 * The weights' part of a plan from the headers of weight files alone. */
#ifndef CLI_PLAN_WEIGHTS_H
#define CLI_PLAN_WEIGHTS_H

#include "advise/weights.h"
#include "plan_options.h"

/* Scans options->weights. UF_OK only if everything that counts could be summed; the error says what
 * is at fault. The caller ends *weights with uf__weights_fini, whatever was returned. */
uf_status plan_weights_scan(const plan_options *options, uf_weights *weights,
                            uf_error *error) UF_MUST_USE;

/* What the files hold, as stored. False if it could not be written. */
bool plan_weights_print(const plan_options *options, const uf_weights *weights);

#endif
