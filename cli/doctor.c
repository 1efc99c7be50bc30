/* SPDX-License-Identifier: MIT
 *
 * unfrag doctor: this machine, with or without a GPU. Owns the options and the exit code. */
#include <argp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "advise/doctor.h"
#include "base/error.h"
#include "doctor_report.h"
#include "exit_code.h"
#include "input.h"
#include "size_option.h"
#include "verb.h"

#define CARDS_TABLE "cards.tsv"

typedef struct doctor_options {
    const char *model;
    const char *card;
    bool is_json;
} doctor_options;

static const struct argp_option option_list[] = {
    {"model", 'm', "DIR", 0, "Also look whether the weight files of this model are whole", 0},
    {"card", 'c', "SIZE", 0, "Recommend settings for a card of this size, or of this name", 0},
    {"json", 'j', NULL, 0, "Print one JSON object", 0},
    {0},
};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    doctor_options *options = state->input;
    switch (key) {
    case 'm':
        options->model = argument;
        return 0;
    case 'c':
        options->card = argument;
        return 0;
    case 'j':
        options->is_json = true;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "'%s'? It takes options only; a model is named with --model", argument);
        return ARGP_ERR_UNKNOWN;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static cli_exit report(const doctor_options *options, const uf_doctor *doctor)
{
    cli_exit code = options->is_json ? cli_doctor_print_json(doctor) : cli_doctor_print(doctor);
    if (code != CLI_EXIT_DONE) {
        return code;
    }
    switch (doctor->verdict) {
    case UF_DOCTOR_GOOD:
        break;
    case UF_DOCTOR_FAULT:
        return CLI_EXIT_NO;
    case UF_DOCTOR_NO_CARD:
        return CLI_EXIT_ENVIRONMENT;
    }
    return CLI_EXIT_DONE;
}

static cli_exit examine(const doctor_options *options, uf_doctor *doctor)
{
    uf_error error = {0};
    uf_doctor_options wanted = {.variables = (const char *const *)environ,
                                .root = "",
                                .own_pid = (uint32_t)getpid(),
                                .model = options->model};
    while (environ[wanted.variable_count] != NULL) {
        wanted.variable_count++;
    }
    if (options->card != NULL &&
        cli_card_option("--card", options->card, &wanted.card_bytes, &error) != UF_OK) {
        return cli_fail("doctor", &error);
    }
    char *table = cli_input_data_file(CARDS_TABLE);
    wanted.cards_table = table;
    cli_exit code = uf__doctor_examine(&wanted, doctor, &error) == UF_OK
                        ? report(options, doctor)
                        : cli_fail("doctor", &error);
    uf__doctor_fini(doctor);
    free(table);
    return code;
}

cli_exit cli_doctor(int argc, char **argv)
{
    doctor_options options = {0};
    static const struct argp parser = {
        .options = option_list,
        .parser = parse_option,
        .doc = "Examines this machine: the driver and what it really can, cards and who holds "
               "their memory, the environment's settings and whether they are active, the active "
               "Python's torch, disks, and what to do next."
               "\vThe exit code is 1 if a setting is without effect or the model is not whole, and "
               "else 4 if there is no GPU that programs can use. Nothing is changed."};
    if (argp_parse(&parser, argc, argv, 0, NULL, &options) != 0) {
        return CLI_EXIT_USAGE;
    }
    uf_doctor *doctor = calloc(1, sizeof *doctor);
    if (doctor == NULL) {
        uf_error error = {0};
        (void)uf__error_set(&error, UF_ERROR_HOST_MEMORY, "no host memory to begin");
        return cli_fail("doctor", &error);
    }
    cli_exit code = examine(&options, doctor);
    free(doctor);
    return code;
}
