/* SPDX-License-Identifier: MIT
 *
 * The text reports of plan. */
#include "plan_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "table.h"

typedef char size_text[UF_SIZE_TEXT_CAPACITY];

#define SIZE(buffer, bytes) uf__size_format(buffer, sizeof(buffer), bytes)

/* A change below this is called none. */
#define NOTHING_SHARE 0.001

const char *plan_options_text(char text[PLAN_OPTIONS_CAPACITY], uint32_t options)
{
    text[0] = '\0';
    for (uint32_t i = 0; i < UF_PLAN_OPTION_COUNT; i++) {
        if ((options >> i & 1) != 0) {
            strcat(text, text[0] == '\0' ? "--" : " --");
            strcat(text, uf__plan_option_name((uf_plan_option)i));
        }
    }
    return text[0] == '\0' ? strcpy(text, "no options") : text;
}

static void print_head(const plan_options *options, const uf_plan_model *model)
{
    const uf_plan_job *job = &options->question.job;
    char names[PLAN_OPTIONS_CAPACITY];
    printf("%s", model->title);
    if (options->has_size) {
        printf(", %" PRIu32 "x%" PRIu32 ", batch %" PRIu32, job->shape.width, job->shape.height,
               job->shape.batch);
    }
    printf(", %s, %s\n\n", options->dtype != NULL ? options->dtype : model->dtype,
           plan_options_text(names, job->options));
}

static bool print_phases(const uf_plan_model *model, const uf_plan_answer *answer)
{
    cli_table *table = cli_table_create();
    cli_table_column(table, "phase", CLI_LEFT);
    cli_table_column(table, "peak live", CLI_RIGHT);
    cli_table_column(table, "weights", CLI_RIGHT);
    cli_table_column(table, "the rest", CLI_RIGHT);
    cli_table_column(table, "", CLI_LEFT);
    for (uint32_t i = 0; i < model->phase_count; i++) {
        const uf_plan_phase *phase = &answer->phases[i];
        cli_table_row(table);
        cli_table_cell(table, "%s", model->phase_names[i]);
        cli_table_cell_size(table, phase->peak_bytes);
        cli_table_cell_size(table, phase->weights_bytes);
        cli_table_cell_size(table, phase->peak_bytes - phase->weights_bytes);
        cli_table_cell(table, "%s", i == answer->peak_phase ? "the peak" : "");
    }
    bool is_printed = cli_table_print(table, stdout);
    cli_table_destroy(table);
    return is_printed;
}

static void print_reserved(const plan_options *options, const uf_plan_answer *answer)
{
    const char *conf = options->question.conf;
    size_text bytes, weights;
    printf("\nall weights    %s\n", SIZE(weights, answer->weights_bytes));
    printf("reserved       %s by PyTorch with default settings\n",
           SIZE(bytes, answer->default_reserved_bytes));
    printf("               %s with expandable_segments:True\n",
           SIZE(bytes, answer->expandable_reserved_bytes));
    if (answer->has_unfrag) {
        printf("               %s by unfrag\n", SIZE(bytes, answer->unfrag_reserved_bytes));
    }
    if (conf != NULL && conf[0] != '\0') {
        printf("               %s with %s\n", SIZE(bytes, answer->asked.reserved_bytes), conf);
    }
    printf("needed         %s: that, %.0f %% for the plan's error, %s for CUDA and its libraries\n",
           SIZE(bytes, answer->asked.needed_bytes), 100.0 * answer->margin,
           SIZE(weights, options->question.allowance_bytes));
    if (answer->smallest_card_bytes != 0) {
        printf("smallest card  %s\n", SIZE(bytes, answer->smallest_card_bytes));
    } else {
        printf("smallest card  none of the usual ones\n");
    }
}

static void print_fit(const plan_options *options, const uf_plan_answer *answer)
{
    size_text card, margin;
    if (options->question.card_bytes == 0) {
        return;
    }
    bool fits = answer->fits;
    uint64_t distance = (uint64_t)(fits ? answer->margin_bytes : -answer->margin_bytes);
    printf("\n%s a card of %s: %s %s.\n", fits ? "It fits" : "It does not fit",
           SIZE(card, options->question.card_bytes), SIZE(margin, distance),
           fits ? "to spare" : "too much");
}

static void print_effect(const uf_plan_model *model, const uf_plan_answer *answer, uint32_t option)
{
    const uf_plan_effect *effect = &answer->effects[option];
    const uf_plan_figure *now = &answer->asked, *other = &effect->other;
    size_text peak, reserved;
    const char *name = uf__plan_option_name((uf_plan_option)option);
    if (model->is_inert[option]) {
        printf("--%-18s does nothing: this pipeline ignores it\n", name);
        return;
    }
    if (!effect->is_there) {
        return;
    }
    double change =
        ((double)other->needed_bytes - (double)now->needed_bytes) / (double)now->needed_bytes;
    double live = ((double)other->peak_bytes - (double)now->peak_bytes) / (double)now->peak_bytes;
    bool is_peak_same = live < NOTHING_SHARE && live > -NOTHING_SHARE;
    bool is_nothing = is_peak_same && change < NOTHING_SHARE && change > -NOTHING_SHARE;
    int width = effect->is_asked ? 10 : 18;
    printf("%s--%-*s ", effect->is_asked ? "without " : "", width, name);
    if (is_nothing) {
        printf("does nothing here: the peak, in '%s', stays as it is\n",
               model->phase_names[answer->peak_phase]);
    } else if (is_peak_same) {
        printf("leaves the peak, in '%s', as it is; reserved %s\n",
               model->phase_names[answer->peak_phase], SIZE(reserved, other->reserved_bytes));
    } else {
        printf("peak live %s, reserved %s\n", SIZE(peak, other->peak_bytes),
               SIZE(reserved, other->reserved_bytes));
    }
}

static void print_cheapest(const plan_options *options, const uf_plan_answer *answer)
{
    char names[PLAN_OPTIONS_CAPACITY];
    size_text needed;
    if (options->question.card_bytes != 0 && answer->has_cheapest) {
        printf("\nThe least that fits: %s (needs %s).\n",
               plan_options_text(names, answer->cheapest.options),
               SIZE(needed, answer->cheapest.needed_bytes));
    } else if (options->question.card_bytes != 0 && answer->has_leanest) {
        printf("\nNo set of options fits; %s needs least: %s. A smaller size or batch, or "
               "other\nsettings (--conf), may.\n",
               plan_options_text(names, answer->leanest.options),
               SIZE(needed, answer->leanest.needed_bytes));
    }
}

static void print_notes(const plan_options *options, const uf_plan_model *model,
                        const uf_plan_answer *answer)
{
    if (answer->is_beyond) {
        printf("\nBeyond what was recorded (%.2f to %.2f megapixels, batches to %" PRIu32 "): the "
               "same formulas go on.\n",
               (double)model->recorded_min_pixels / 1e6, (double)model->recorded_max_pixels / 1e6,
               model->recorded_max_batch);
    }
    if (answer->is_over) {
        printf("\nSome tensors have over 2^31 elements, where libraries split their work: recorded "
               "once only.\n");
    }
    if (answer->is_dtype_scaled) {
        printf("\nRecorded in %s: sizes in %s are scaled, not measured.\n", model->dtype,
               options->dtype);
    }
}

bool plan_report_text(const plan_options *options, const uf_plan_model *model,
                      const uf_plan_answer *answer)
{
    print_head(options, model);
    bool is_printed = print_phases(model, answer);
    print_reserved(options, answer);
    print_fit(options, answer);
    printf("\n");
    for (uint32_t i = 0; i < UF_PLAN_OPTION_COUNT; i++) {
        print_effect(model, answer, i);
    }
    print_cheapest(options, answer);
    print_notes(options, model, answer);
    return is_printed;
}

bool plan_report_table_text(const plan_options *options, const uf_plan_model *model,
                            const plan_table *table)
{
    size_text card, allowance;
    print_head(options, model);
    printf("The largest batch (up to %" PRIu32 ") that fits a card of %s, %s of which are left to "
           "CUDA:\n\n",
           uf__plan_batch_limit(model), SIZE(card, options->question.card_bytes),
           SIZE(allowance, options->question.allowance_bytes));
    cli_table *lines = cli_table_create();
    cli_table_column(lines, "size", CLI_LEFT);
    for (uint32_t i = 0; i < table->column_count; i++) {
        char names[PLAN_OPTIONS_CAPACITY];
        cli_table_column(lines, plan_options_text(names, table->options[i]), CLI_RIGHT);
    }
    for (uint32_t row = 0; row < table->row_count; row++) {
        cli_table_row(lines);
        cli_table_cell(lines, "%" PRIu32 "x%" PRIu32, table->rows[row].shape.width,
                       table->rows[row].shape.height);
        for (uint32_t i = 0; i < table->column_count; i++) {
            uint32_t batch = table->rows[row].batches[i];
            if (batch == 0) {
                cli_table_cell(lines, "-");
            } else {
                cli_table_cell(lines, "%" PRIu32, batch);
            }
        }
    }
    bool is_printed = cli_table_print(lines, stdout);
    cli_table_destroy(lines);
    return is_printed;
}
