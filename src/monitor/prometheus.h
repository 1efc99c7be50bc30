/* SPDX-License-Identifier: MIT
 *
 * Pages and cards in Prometheus' text format 0.0.4. Names and units follow its conventions: base
 * units, _total for what only rises, HELP and TYPE once for each name. What is not known is left
 * out, never 0. */
#ifndef UF_MONITOR_PROMETHEUS_H
#define UF_MONITOR_PROMETHEUS_H

#include <stdio.h>

#include "monitor/card_use.h"

/* Returns false if the stream failed. */
bool uf__prometheus_write(const uf_pages *pages, const uf_cards *cards, FILE *stream);

#endif
