/* SPDX-License-Identifier: MIT
 *
 * unfrag plan MODEL: finds or fits the model, asks, reports. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "advise/plan_fit.h"
#include "base/error.h"
#include "base/size.h"
#include "input.h"
#include "nearest.h"
#include "plan_report.h"
#include "plan_weights.h"
#include "verb.h"

#define MODEL_SUFFIX ".model.xz"
/* Models are recorded in 16-bit types. */
#define RECORDED_ELEMENT_BYTES 2.0
/* Fine-tunes have the parameters of their model, give or take what was packed with them. */
#define ARCHITECTURE_RATIO 1.1

enum { MODELS_MAX = 64, NAMES_CAPACITY = 512 };

static bool has_model_suffix(const char *name)
{
    size_t length = strlen(name), suffix = strlen(MODEL_SUFFIX);
    return length > suffix && strcmp(name + length - suffix, MODEL_SUFFIX) == 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names of the models in a folder, sorted; each is owned. */
static size_t list_models(const char *folder, char *names[MODELS_MAX])
{
    size_t count = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *entry = dir == NULL ? NULL : readdir(dir);
         entry != NULL && count < MODELS_MAX; entry = readdir(dir)) {
        if (has_model_suffix(entry->d_name)) {
            names[count] = strndup(entry->d_name, strlen(entry->d_name) - strlen(MODEL_SUFFIX));
            count += names[count] != NULL ? 1 : 0;
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    qsort(names, count, sizeof *names, by_name);
    return count;
}

static uf_status no_model(const char *folder, const char *name, uf_error *error)
{
    char *names[MODELS_MAX];
    char list[NAMES_CAPACITY] = "";
    size_t count = list_models(folder, names), length = 0;
    for (size_t i = 0; i < count && length < sizeof list; i++) {
        int written = snprintf(list + length, sizeof list - length, " %s", names[i]);
        length += written > 0 ? (size_t)written : 0;
    }
    const char *near = cli_nearest(name, (const char *const *)names, count);
    uf_status status = uf__error_set(
        error, UF_ERROR_NOT_FOUND,
        "there is no model '%s'%s%s%s; there are:%s; any other from recordings of it (--from)",
        name, near != NULL ? ", did you mean '" : "", near != NULL ? near : "",
        near != NULL ? "'?" : "", list);
    for (size_t i = 0; i < count; i++) {
        free(names[i]);
    }
    return status;
}

/* A name that comes with unfrag, else a file. */
static uf_status find_model(const char *name, uf_plan_model **model, uf_error *error)
{
    char *relative = NULL;
    if (strchr(name, '/') != NULL || strstr(name, ".model") != NULL) {
        return uf__plan_model_read(name, model, error);
    }
    if (asprintf(&relative, "models/%s" MODEL_SUFFIX, name) < 0) {
        return uf__error_set(error, UF_ERROR_HOST_MEMORY, "no host memory for a file name");
    }
    char *path = cli_input_data_file(relative), *folder = cli_input_data_file("models");
    uf_status status = path != NULL     ? uf__plan_model_read(path, model, error)
                       : folder != NULL ? no_model(folder, name, error)
                                        : uf__error_set(error, UF_ERROR_IO,
                                                        "the models that come with unfrag were not "
                                                        "found: set UNFRAG_DATA to the folder that "
                                                        "holds index.tsv and models");
    free(relative);
    free(path);
    free(folder);
    return status;
}

typedef struct fitting {
    cli_input inputs[PLAN_FROM_MAX];
    uf_trace *traces[PLAN_FROM_MAX];
    uf_program *programs[PLAN_FROM_MAX];
    uf_plan_sample samples[PLAN_FROM_MAX];
} fitting;

static uf_status open_samples(const plan_options *options, fitting *fit, uf_error *error)
{
    uf_status status = UF_OK;
    for (uint32_t i = 0; i < options->from_count && status == UF_OK; i++) {
        const plan_from *from = &options->from[i];
        const uf_program_options how = {.struct_size_bytes = sizeof how, .num_alloc_retries = -1};
        status = cli_input_find(from->input, &fit->inputs[i], error);
        if (status == UF_OK) {
            status = cli_input_read(&fit->inputs[i], true, &fit->traces[i], error);
        }
        if (status == UF_OK) {
            status = uf_program_create(fit->traces[i], &how, &fit->programs[i], error);
        }
        fit->samples[i] = (uf_plan_sample){.program = fit->programs[i],
                                           .name = from->input,
                                           .shape = from->shape,
                                           .options = from->options};
    }
    return status;
}

static void close_samples(const plan_options *options, fitting *fit)
{
    for (uint32_t i = 0; i < options->from_count; i++) {
        uf_program_destroy(fit->programs[i]);
        uf_trace_destroy(fit->traces[i]);
        cli_input_fini(&fit->inputs[i]);
    }
}

static uf_status write_output(const char *path, const char *text, size_t length, uf_error *error)
{
    FILE *file = fopen(path, "w");
    bool is_good = file != NULL && fwrite(text, 1, length, file) == length;
    if (file != NULL && fclose(file) != 0) {
        is_good = false;
    }
    return is_good ? UF_OK : uf__error_set(error, UF_ERROR_IO, "%s: %s", path, strerror(errno));
}

static void tell_fit(const plan_options *options, const uf_plan_fit_report *report)
{
    char worst[UF_SIZE_TEXT_CAPACITY];
    fprintf(stderr,
            "fitted %" PRIu32 " recordings: %" PRIu32 " kinds of runs, %" PRIu32
            " formulas; %" PRIu64 " requests to the byte, %" PRIu64 " to within %s\n",
            options->from_count, report->family_count, report->formula_count, report->exact_count,
            report->loose_count, uf__size_format(worst, sizeof worst, report->worst_bytes));
}

static uf_status fit_model(const plan_options *options, uf_plan_model **model, uf_error *error)
{
    fitting *fit = calloc(1, sizeof *fit);
    if (fit == NULL) {
        return uf__error_set(error, UF_ERROR_HOST_MEMORY, "no host memory for recordings");
    }
    char *text = NULL;
    size_t length = 0;
    uf_plan_fit_report report;
    uf_status status = open_samples(options, fit, error);
    if (status == UF_OK) {
        status = uf__plan_fit(fit->samples, options->from_count, options->name, options->multiple,
                              &text, &length, &report, error);
    }
    if (status == UF_OK) {
        tell_fit(options, &report);
        status = uf__plan_model_parse(text, length, model, error);
    }
    if (status == UF_OK && options->output != NULL) {
        status = write_output(options->output, text, length, error);
    }
    free(text);
    close_samples(options, fit);
    free(fit);
    return status;
}

static cli_exit answer_size(const plan_options *options, const uf_plan_model *model)
{
    uf_error error = {0};
    uf_plan_answer answer;
    uf_status status = uf__plan(model, &options->question, &answer, &error);
    if (status != UF_OK) {
        return cli_fail("plan", &error);
    }
    bool is_printed = options->is_json ? plan_report_json(options, model, &answer)
                                       : plan_report_text(options, model, &answer);
    return !is_printed                                         ? CLI_EXIT_ENVIRONMENT
           : options->question.card_bytes != 0 && !answer.fits ? CLI_EXIT_NO
                                                               : CLI_EXIT_DONE;
}

/* Columns: the options asked for, then with those of the VAE, then with offload too. */
static void choose_columns(const plan_options *options, const uf_plan_model *model,
                           plan_table *table)
{
    static const uint32_t more[PLAN_COLUMNS] = {
        0, 1u << UF_PLAN_VAE_SLICING | 1u << UF_PLAN_VAE_TILING,
        1u << UF_PLAN_VAE_SLICING | 1u << UF_PLAN_VAE_TILING | 1u << UF_PLAN_OFFLOAD};
    for (uint32_t i = 0; i < PLAN_COLUMNS; i++) {
        uint32_t set = options->question.job.options;
        for (uint32_t option = 0; option < UF_PLAN_OPTION_COUNT; option++) {
            set |= model->has_option[option] ? more[i] & (1u << option) : 0;
        }
        if (table->column_count == 0 || table->options[table->column_count - 1] != set) {
            table->options[table->column_count++] = set;
        }
    }
}

static cli_exit answer_table(const plan_options *options, const uf_plan_model *model)
{
    uf_error error = {0};
    plan_table table = {0};
    uf_plan_shape sizes[UF_PLAN_SIZES_MAX];
    table.row_count = uf__plan_usual_sizes(model, sizes);
    choose_columns(options, model, &table);
    for (uint32_t row = 0; row < table.row_count; row++) {
        table.rows[row].shape = sizes[row];
        for (uint32_t column = 0; column < table.column_count; column++) {
            uf_plan_question question = options->question;
            question.job.shape = sizes[row];
            question.job.options = table.options[column];
            uf_status status =
                uf__plan_largest_batch(model, &question, &table.rows[row].batches[column], &error);
            if (status != UF_OK && status != UF_ERROR_UNSUPPORTED) {
                return cli_fail("plan", &error);
            }
        }
    }
    bool is_printed = options->is_json ? plan_report_table_json(options, model, &table)
                                       : plan_report_table_text(options, model, &table);
    return is_printed ? CLI_EXIT_DONE : CLI_EXIT_ENVIRONMENT;
}

/* Weights of the model's own architecture: their parameters in its type. */
static uf_status take_weights(plan_options *options, const uf_plan_model *model,
                              const uf_weights *weights, uf_error *error)
{
    uint64_t own_bytes = 0;
    for (uint32_t i = 0; i < model->module_count; i++) {
        own_bytes += model->modules[i].is_resident ? model->modules[i].bytes : 0;
    }
    double own_count = (double)own_bytes / RECORDED_ELEMENT_BYTES;
    double ratio = own_bytes == 0 ? 0.0 : (double)weights->sum.parameter_count / own_count;
    if (ratio < 1.0 / ARCHITECTURE_RATIO || ratio > ARCHITECTURE_RATIO) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "%s has %" PRIu64 " parameters, %s %.0f: weights of another "
                             "architecture, or not of all its parts",
                             options->weights, weights->sum.parameter_count, model->name,
                             own_count);
    }
    options->question.job.weights_ratio = ratio;
    return UF_OK;
}

/* Without a model the weights are the answer. */
static cli_exit answer_weights(plan_options *options, const uf_plan_model *model)
{
    uf_error error = {0};
    uf_weights weights;
    cli_exit code = CLI_EXIT_DONE;
    uf_status status = plan_weights_scan(options, &weights, &error);
    if (status != UF_OK) {
        code = cli_fail("plan", &error);
    } else if (model == NULL) {
        code = plan_weights_print(options, &weights) ? CLI_EXIT_DONE : CLI_EXIT_ENVIRONMENT;
    } else if (take_weights(options, model, &weights, &error) != UF_OK) {
        code = cli_fail("plan", &error);
    }
    uf__weights_fini(&weights);
    return code;
}

cli_exit cli_plan(int argc, char **argv)
{
    plan_options options;
    cli_exit code = plan_options_parse(argc, argv, &options);
    if (code != CLI_EXIT_DONE) {
        return code;
    }
    uf_error error = {0};
    uf_plan_model *model = NULL;
    if (options.weights != NULL && options.model == NULL && options.from_count == 0) {
        return answer_weights(&options, NULL);
    }
    uf_status status = options.model != NULL ? find_model(options.model, &model, &error)
                                             : fit_model(&options, &model, &error);
    if (status != UF_OK) {
        return cli_fail("plan", &error);
    }
    if (options.weights != NULL) {
        code = answer_weights(&options, model);
    }
    if (code != CLI_EXIT_DONE) {
        uf__plan_model_destroy(model);
        return code;
    }
    if (options.has_size) {
        code = answer_size(&options, model);
    } else if (options.question.card_bytes != 0) {
        code = answer_table(&options, model);
    }
    uf__plan_model_destroy(model);
    return code;
}
