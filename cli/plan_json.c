/* SPDX-License-Identifier: MIT
 *
 * The JSON reports of plan. */
#include <stdio.h>

#include "json.h"
#include "plan_report.h"

static void write_options(cli_json *json, const char *key, uint32_t options)
{
    cli_json_array_begin(json, key);
    for (uint32_t i = 0; i < UF_PLAN_OPTION_COUNT; i++) {
        if ((options >> i & 1) != 0) {
            cli_json_string(json, NULL, uf__plan_option_name((uf_plan_option)i));
        }
    }
    cli_json_array_end(json);
}

static void write_question(cli_json *json, const plan_options *options, const uf_plan_model *model)
{
    const uf_plan_question *question = &options->question;
    cli_json_string(json, "model", model->name);
    if (options->has_size) {
        cli_json_uint64(json, "width", question->job.shape.width);
        cli_json_uint64(json, "height", question->job.shape.height);
        cli_json_uint64(json, "batch", question->job.shape.batch);
    }
    write_options(json, "options", question->job.options);
    cli_json_string(json, "dtype", options->dtype != NULL ? options->dtype : model->dtype);
    cli_json_string(json, "policy", question->policy == UF_POLICY_UNFRAG ? "unfrag" : "torch");
    cli_json_string(json, "conf", question->conf != NULL ? question->conf : "");
    if (question->card_bytes != 0) {
        cli_json_uint64(json, "card_bytes", question->card_bytes);
    } else {
        cli_json_null(json, "card_bytes");
    }
    cli_json_uint64(json, "allowance_bytes", question->allowance_bytes);
}

static void write_phases(cli_json *json, const uf_plan_model *model, const uf_plan_answer *answer)
{
    cli_json_array_begin(json, "phases");
    for (uint32_t i = 0; i < model->phase_count; i++) {
        const uf_plan_phase *phase = &answer->phases[i];
        cli_json_object_begin(json, NULL);
        cli_json_string(json, "name", model->phase_names[i]);
        cli_json_uint64(json, "peak_bytes", phase->peak_bytes);
        cli_json_uint64(json, "weights_bytes", phase->weights_bytes);
        cli_json_bool(json, "is_peak", i == answer->peak_phase);
        cli_json_object_end(json);
    }
    cli_json_array_end(json);
}

static void write_figure(cli_json *json, const char *key, bool is_there,
                         const uf_plan_figure *figure)
{
    if (!is_there) {
        cli_json_null(json, key);
        return;
    }
    cli_json_object_begin(json, key);
    write_options(json, "options", figure->options);
    cli_json_uint64(json, "peak_bytes", figure->peak_bytes);
    cli_json_uint64(json, "reserved_bytes", figure->reserved_bytes);
    cli_json_uint64(json, "needed_bytes", figure->needed_bytes);
    cli_json_object_end(json);
}

static void write_effects(cli_json *json, const uf_plan_answer *answer)
{
    cli_json_array_begin(json, "effects");
    for (uint32_t i = 0; i < UF_PLAN_OPTION_COUNT; i++) {
        const uf_plan_effect *effect = &answer->effects[i];
        cli_json_object_begin(json, NULL);
        cli_json_string(json, "option", uf__plan_option_name((uf_plan_option)i));
        cli_json_bool(json, "is_on", effect->is_asked);
        write_figure(json, effect->is_asked ? "without" : "with", effect->is_there, &effect->other);
        cli_json_object_end(json);
    }
    cli_json_array_end(json);
}

static void write_reserved(cli_json *json, const uf_plan_answer *answer)
{
    cli_json_object_begin(json, "reserved_bytes");
    cli_json_uint64(json, "default", answer->default_reserved_bytes);
    cli_json_uint64(json, "expandable", answer->expandable_reserved_bytes);
    if (answer->has_unfrag) {
        cli_json_uint64(json, "unfrag", answer->unfrag_reserved_bytes);
    } else {
        cli_json_null(json, "unfrag");
    }
    cli_json_uint64(json, "asked", answer->asked.reserved_bytes);
    cli_json_object_end(json);
}

static void write_verdict(cli_json *json, const plan_options *options, const uf_plan_answer *answer)
{
    if (options->question.card_bytes != 0) {
        cli_json_bool(json, "fits", answer->fits);
        cli_json_int64(json, "margin_bytes", answer->margin_bytes);
    } else {
        cli_json_null(json, "fits");
        cli_json_null(json, "margin_bytes");
    }
    cli_json_uint64(json, "needed_bytes", answer->asked.needed_bytes);
    if (answer->smallest_card_bytes != 0) {
        cli_json_uint64(json, "smallest_card_bytes", answer->smallest_card_bytes);
    } else {
        cli_json_null(json, "smallest_card_bytes");
    }
}

bool plan_report_json(const plan_options *options, const uf_plan_model *model,
                      const uf_plan_answer *answer)
{
    cli_json json;
    cli_json_init(&json, stdout);
    cli_json_object_begin(&json, NULL);
    write_question(&json, options, model);
    cli_json_uint64(&json, "peak_bytes", answer->asked.peak_bytes);
    cli_json_string(&json, "peak_phase", model->phase_names[answer->peak_phase]);
    cli_json_uint64(&json, "weights_bytes", answer->weights_bytes);
    cli_json_uint64(&json, "resident_weights_bytes", answer->most_weights_bytes);
    write_phases(&json, model, answer);
    write_reserved(&json, answer);
    write_verdict(&json, options, answer);
    cli_json_double(&json, "margin_share", answer->margin);
    cli_json_bool(&json, "is_beyond_recordings", answer->is_beyond);
    cli_json_bool(&json, "is_dtype_scaled", answer->is_dtype_scaled);
    write_effects(&json, answer);
    write_figure(&json, "cheapest", answer->has_cheapest, &answer->cheapest);
    write_figure(&json, "leanest", answer->has_leanest, &answer->leanest);
    cli_json_object_end(&json);
    return cli_json_finish(&json);
}

bool plan_report_table_json(const plan_options *options, const uf_plan_model *model,
                            const plan_table *table)
{
    cli_json json;
    cli_json_init(&json, stdout);
    cli_json_object_begin(&json, NULL);
    write_question(&json, options, model);
    cli_json_uint64(&json, "batch_limit", uf__plan_batch_limit(model));
    cli_json_array_begin(&json, "table");
    for (uint32_t row = 0; row < table->row_count; row++) {
        for (uint32_t column = 0; column < table->column_count; column++) {
            cli_json_object_begin(&json, NULL);
            cli_json_uint64(&json, "width", table->rows[row].shape.width);
            cli_json_uint64(&json, "height", table->rows[row].shape.height);
            write_options(&json, "options", table->options[column]);
            cli_json_uint64(&json, "largest_batch", table->rows[row].batches[column]);
            cli_json_object_end(&json);
        }
    }
    cli_json_array_end(&json);
    cli_json_object_end(&json);
    return cli_json_finish(&json);
}
