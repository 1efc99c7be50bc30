/* SPDX-License-Identifier: MIT
 *
 * What plan prints: the answer to one size, and the table of what fits a card. */
#ifndef CLI_PLAN_REPORT_H
#define CLI_PLAN_REPORT_H

#include "advise/plan.h"
#include "plan_options.h"

/* One line of the table: the largest batch under the options asked for, and with more of them. */
enum { PLAN_COLUMNS = 3 };

typedef struct plan_row {
    uf_plan_shape shape;
    uint32_t batches[PLAN_COLUMNS]; /* 0 = none fits */
} plan_row;

typedef struct plan_table {
    uint32_t options[PLAN_COLUMNS]; /* of each column */
    uint32_t column_count;
    plan_row rows[UF_PLAN_SIZES_MAX];
    uint32_t row_count;
} plan_table;

/* All return false if the result could not be written. */
bool plan_report_text(const plan_options *options, const uf_plan_model *model,
                      const uf_plan_answer *answer);
bool plan_report_json(const plan_options *options, const uf_plan_model *model,
                      const uf_plan_answer *answer);
bool plan_report_table_text(const plan_options *options, const uf_plan_model *model,
                            const plan_table *table);
bool plan_report_table_json(const plan_options *options, const uf_plan_model *model,
                            const plan_table *table);

/* "--offload --vae-slicing", or "no options". */
enum { PLAN_OPTIONS_CAPACITY = 96 };
const char *plan_options_text(char text[PLAN_OPTIONS_CAPACITY], uint32_t options);

#endif
