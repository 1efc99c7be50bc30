/* SPDX-License-Identifier: MIT
 *
 * A snapshot without history is a state: what is held from the driver, what of it is cached, and
 * why that cannot be given back. */
#ifndef CLI_REPLAY_STATE_H
#define CLI_REPLAY_STATE_H

#include <stdbool.h>

#include <unfrag/trace.h>

/* Is there nothing to replay: no device has more than one event, and it is no script? */
bool replay_state_is_all(const uf_trace *trace);

/* Prints the state, as text or JSON. input: the argument as given; is_question: it was asked
 * whether something fits, and the text says why there is no verdict. Returns false if it could not
 * be formed (host memory). */
bool replay_state_print(const uf_trace *trace, const char *input, bool is_question, bool is_json);

#endif
