/* SPDX-License-Identifier: MIT
 *
 * unfrag report FILE: one self-contained page of a recording, or of two side by side. Owns the
 * order of the steps and where the page goes; what is in it is src/report/'s business. */
#include "verb.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/output.h"
#include "report/page.h"
#include "report_data.h"

/* "snapshot.pickle.xz" gives "snapshot.html", "@zimage-1024" "zimage-1024.html". The caller frees
 * it; NULL if the host has no memory. */
static char *name_after(const char *input)
{
    static const char *const endings[] = {".gz", ".xz", ".zst", ".pickle", ".pkl", ".uft", ".json"};
    const char *slash = strrchr(input, '/');
    const char *base = slash != NULL ? slash + 1 : input[0] == '@' ? input + 1 : input;
    size_t length = strlen(base);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t ending_length = strlen(endings[i]);
        if (length > ending_length &&
            strncmp(base + length - ending_length, endings[i], ending_length) == 0) {
            length -= ending_length;
        }
    }
    char *name = NULL;
    bool is_named = length > 0 && strcmp(base, "-") != 0;
    int count =
        is_named ? asprintf(&name, "%.*s.html", (int)length, base) : asprintf(&name, "report.html");
    return count < 0 ? NULL : name;
}

static uf_status write_page(const report_view *view, FILE *stream, uf_error *error)
{
    const report_options *options = view->options;
    uf_pack packs[REPORT_INPUT_LIMIT];
    char *data = NULL;
    size_t data_bytes = 0;
    FILE *text = open_memstream(&data, &data_bytes);
    bool is_good = text != NULL && report_data_write(view, text);
    if (text != NULL && fclose(text) != 0) {
        is_good = false;
    }
    for (uint32_t i = 0; i < options->input_count; i++) {
        packs[i] = view->inputs[i].columns.pack; /* borrowed */
    }
    uf_page page = {.title = options->title != NULL ? options->title : view->inputs[0].name,
                    .data = data,
                    .data_bytes = data_bytes,
                    .packs = packs,
                    .pack_count = options->input_count};
    uf_status status =
        is_good ? uf__page_write(&page, stream, error)
                : uf__error_set(error, UF_ERROR_HOST_MEMORY, "no host memory for the page");
    free(data);
    return status;
}

/* What it returns has been told. */
static cli_exit finish(const report_view *view, const char *name, uf_output *output)
{
    uf_error error = {0};
    bool is_standard = output->is_standard;
    if (write_page(view, output->stream, &error) != UF_OK) {
        uf__output_abandon(output);
        return cli_fail_output("report", &error);
    }
    long page_bytes = is_standard ? 0 : ftell(output->stream);
    if (uf__output_commit(output, &error) != UF_OK) {
        return cli_fail_output("report", &error);
    }
    if (is_standard) {
        return CLI_EXIT_DONE;
    }
    uint64_t size_bytes = page_bytes > 0 ? (uint64_t)page_bytes : 0;
    if (view->options->is_json) {
        return report_summary_json(view, name, size_bytes) ? CLI_EXIT_DONE : CLI_EXIT_ENVIRONMENT;
    }
    report_summary_text(view, name, size_bytes);
    return CLI_EXIT_DONE;
}

static uf_status open_inputs(const report_options *options, report_input *inputs, uf_error *error)
{
    uf_status status = UF_OK;
    for (uint32_t i = 0; i < options->input_count && status == UF_OK; i++) {
        status = report_input_open(options, options->inputs[i], &inputs[i], error);
    }
    return status;
}

/* The output is open; what it returns has been told. */
static cli_exit report(const report_options *options, const char *name, uf_output *output)
{
    uf_error error = {0};
    report_input inputs[REPORT_INPUT_LIMIT] = {{0}};
    uf_difference_report difference = {0};
    uf_status status = open_inputs(options, inputs, &error);
    if (status == UF_OK && options->input_count == 2) {
        const uf_history *const histories[] = {&inputs[0].history, &inputs[1].history};
        const uf_moment *const peaks[] = {&inputs[0].moments.items[0], &inputs[1].moments.items[0]};
        status = uf__difference_init(&difference, histories, peaks);
        if (status != UF_OK) {
            uf__error_set(&error, status, "no host memory for the comparison");
        }
    }
    report_view view = {.options = options,
                        .inputs = inputs,
                        .difference = options->input_count == 2 ? &difference : NULL};
    cli_exit code;
    if (status == UF_OK) {
        code = finish(&view, name, output);
    } else {
        uf__output_abandon(output);
        code = cli_fail("report", &error);
    }
    uf__difference_fini(&difference);
    for (uint32_t i = 0; i < options->input_count; i++) {
        report_input_close(&inputs[i]);
    }
    return code;
}

/* The output is opened before anything is read: nobody waits to hear that it exists. */
static cli_exit open_and_report(const report_options *options, const char *name)
{
    uf_error error = {0};
    uf_output output;
    if (uf__output_open(&output, name, options->is_forced, &error) == UF_OK) {
        return report(options, name, &output);
    }
    struct stat found;
    bool is_file = stat(name, &found) == 0 && !S_ISDIR(found.st_mode);
    if (error.status == UF_ERROR_INVALID_ARGUMENT && !options->is_forced && is_file) {
        uf__error_set(&error, UF_ERROR_INVALID_ARGUMENT, "%s exists; --force replaces it", name);
    }
    return cli_fail_output("report", &error);
}

cli_exit cli_report(int argc, char **argv)
{
    report_options options;
    cli_exit code = report_options_parse(argc, argv, &options);
    if (code != CLI_EXIT_DONE) {
        return code;
    }
    char *named = options.output == NULL ? name_after(options.inputs[0]) : NULL;
    const char *name = options.output != NULL ? options.output : named;
    if (name == NULL) {
        const uf_error error = {UF_ERROR_HOST_MEMORY, "no host memory for the page's name"};
        return cli_fail("report", &error);
    }
    code = open_and_report(&options, name);
    free(named);
    return code;
}
