/* SPDX-License-Identifier: MIT
 *
 * Weights by component and type, as their files' headers tell. */
#include "plan_weights.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "base/size.h"
#include "json.h"
#include "table.h"

enum { TYPES_CAPACITY = 160 };

static const char *first_fault(const uf_weights *weights)
{
    for (size_t i = 0; i < weights->file_count; i++) {
        const uf_weight_file *file = &weights->files[i];
        if (uf__weight_is_fault(file->state)) {
            return file->text != NULL ? file->text : uf__weight_state_name(file->state);
        }
    }
    return "no weight files whose headers tell their sizes";
}

uf_status plan_weights_scan(const plan_options *options, uf_weights *weights, uf_error *error)
{
    uf_status status = uf__weights_scan(options->weights, weights, error);
    if (status == UF_OK &&
        (weights->fault_count != 0 || !weights->has_sum || weights->sum.data_bytes == 0)) {
        status =
            uf__error_set(error, UF_ERROR_BAD_INPUT,
                          "%s: the weights cannot be summed: %s; 'unfrag doctor --model' tells "
                          "more",
                          options->weights, first_fault(weights));
    }
    return status;
}

/* "F16 4.78 GiB, F32 1.20 MiB" */
static const char *types_text(char text[TYPES_CAPACITY], const uf_weights_sum *sum)
{
    size_t length = 0;
    text[0] = '\0';
    for (int i = 0; i < UF_DTYPE_COUNT && length < TYPES_CAPACITY; i++) {
        char bytes[UF_SIZE_TEXT_CAPACITY];
        if (sum->dtype_bytes[i] != 0) {
            int written = snprintf(text + length, TYPES_CAPACITY - length, "%s%s %s",
                                   length == 0 ? "" : ", ", uf__dtype_name((uf_dtype)i),
                                   uf__size_format(bytes, sizeof bytes, sum->dtype_bytes[i]));
            length += written > 0 ? (size_t)written : 0;
        }
    }
    return text;
}

static const char *name_of(const uf_weight_set *set)
{
    return set->component[0] != '\0' ? set->component : set->name;
}

static bool print_text(const uf_weights *weights)
{
    char types[TYPES_CAPACITY];
    cli_table *table = cli_table_create();
    cli_table_column(table, "weights", CLI_LEFT);
    cli_table_column(table, "tensors", CLI_RIGHT);
    cli_table_column(table, "parameters", CLI_RIGHT);
    cli_table_column(table, "bytes", CLI_RIGHT);
    cli_table_column(table, "stored as", CLI_LEFT);
    for (size_t i = 0; i < weights->set_count; i++) {
        const uf_weight_set *set = &weights->sets[i];
        if (set->is_chosen && set->has_sum) {
            cli_table_row(table);
            cli_table_cell(table, "%s", name_of(set));
            cli_table_cell_count(table, set->sum.tensor_count);
            cli_table_cell_count(table, set->sum.parameter_count);
            cli_table_cell_size(table, set->sum.data_bytes);
            cli_table_cell(table, "%s", types_text(types, &set->sum));
        }
    }
    cli_table_row(table);
    cli_table_cell(table, "all");
    cli_table_cell_count(table, weights->sum.tensor_count);
    cli_table_cell_count(table, weights->sum.parameter_count);
    cli_table_cell_size(table, weights->sum.data_bytes);
    cli_table_cell(table, "%s", types_text(types, &weights->sum));
    bool is_printed = cli_table_print(table, stdout);
    cli_table_destroy(table);
    printf("\nThat is the weights' part, as stored; what a program computes comes on top.\n");
    return is_printed;
}

static void write_sum(cli_json *json, const uf_weights_sum *sum)
{
    cli_json_uint64(json, "weights_bytes", sum->data_bytes);
    cli_json_uint64(json, "parameters", sum->parameter_count);
    cli_json_uint64(json, "tensors", sum->tensor_count);
    cli_json_object_begin(json, "dtype_bytes");
    for (int i = 0; i < UF_DTYPE_COUNT; i++) {
        if (sum->dtype_bytes[i] != 0) {
            cli_json_uint64(json, uf__dtype_name((uf_dtype)i), sum->dtype_bytes[i]);
        }
    }
    cli_json_object_end(json);
}

bool plan_weights_print(const plan_options *options, const uf_weights *weights)
{
    if (!options->is_json) {
        return print_text(weights);
    }
    cli_json json;
    cli_json_init(&json, stdout);
    cli_json_object_begin(&json, NULL);
    cli_json_string(&json, "path", options->weights);
    write_sum(&json, &weights->sum);
    cli_json_array_begin(&json, "components");
    for (size_t i = 0; i < weights->set_count; i++) {
        if (weights->sets[i].is_chosen && weights->sets[i].has_sum) {
            cli_json_object_begin(&json, NULL);
            cli_json_string(&json, "name", name_of(&weights->sets[i]));
            write_sum(&json, &weights->sets[i].sum);
            cli_json_object_end(&json);
        }
    }
    cli_json_array_end(&json);
    cli_json_object_end(&json);
    return cli_json_finish(&json);
}
