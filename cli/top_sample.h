/* SPDX-License-Identifier: MIT
 *
 * What `top` and `export` show at one moment: pages, cards, and the driver's word, which is asked
 * for no more often than every five seconds. One thread. */
#ifndef CLI_TOP_SAMPLE_H
#define CLI_TOP_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "device/nvml.h"
#include "monitor/card_use.h"
#include "monitor/pages.h"

typedef struct cli_top_sample {
    uf_pages pages;
    uf_cards cards;
    uf_nvml nvml;
    int64_t next_nvml_ns; /* CLOCK_MONOTONIC; 0 = ask at once */
    int64_t unix_ns;      /* when the pages were read */
} cli_top_sample;

/* Reads everything anew. What uf__pages_read returns. */
uf_status cli_top_sample_read(cli_top_sample *sample, uf_error *error) UF_MUST_USE;
void cli_top_sample_fini(cli_top_sample *sample);

/* Leaves the pages of one process only. */
void cli_top_sample_keep(cli_top_sample *sample, uint32_t pid);

#endif
