/* SPDX-License-Identifier: MIT
 *
 * unfrag torch build: hands over to the package's own builder, with the Python whose torch it is
 * for. Owns the options; how the glue is built stands in python/unfrag/build.py alone. */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "launch.h"
#include "verb.h"

typedef struct torch_options {
    const char *python;
    bool is_forced, is_json, has_verb;
} torch_options;

static const struct argp_option option_list[] = {
    {"interpreter", 'P', "PROGRAM", 0,
     "The Python whose torch it is for; by default the first in PATH", 0},
    {"force", 'f', NULL, 0, "Build it also if it is there", 0},
    {"json", 'j', NULL, 0, "Print one JSON object", 0},
    {0},
};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    torch_options *options = state->input;
    switch (key) {
    case 'P':
        options->python = argument;
        return 0;
    case 'f':
        options->is_forced = true;
        return 0;
    case 'j':
        options->is_json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (options->has_verb || strcmp(argument, "build") != 0) {
            argp_error(state, "it knows 'build', not '%s'", argument);
        }
        options->has_verb = true;
        return 0;
    case ARGP_KEY_END:
        if (!options->has_verb) {
            argp_error(state, "what about torch? There is: unfrag torch build");
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* The package is found by its folder, whatever PYTHONPATH says, and imports nothing of the user's
 * but torch's own folder. */
static const char PROGRAM[] =
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from unfrag import build; "
    "sys.exit(build.main(sys.argv[1:]))";

static cli_exit build(const torch_options *options)
{
    uf_error error = {0};
    char *folder = cli_python_folder();
    if (folder == NULL) {
        (void)uf__error_set(&error, UF_ERROR_NOT_FOUND,
                            "unfrag's Python files are not where this program is: set UNFRAG_HOME "
                            "to the checkout, or install unfrag again");
        (void)cli_fail("torch", &error);
        return CLI_EXIT_ENVIRONMENT;
    }
    char command[] = "-c", force[] = "--force", json[] = "--json", program[sizeof PROGRAM];
    memcpy(program, PROGRAM, sizeof PROGRAM);
    char *python = strdup(options->python != NULL ? options->python : "python3");
    char *words[8] = {python, command, program, folder};
    size_t count = 4;
    if (options->is_forced) {
        words[count++] = force;
    }
    if (options->is_json) {
        words[count++] = json;
    }
    cli_variables variables = {0};
    cli_variables_set(&variables, "UNFRAG_DISABLE", "1");
    cli_launch launch = {
        .command = words, .variables = &variables, .verb = "torch", .output_descriptor = -1};
    cli_launch_end end;
    cli_exit code = CLI_EXIT_INTERNAL;
    if (python == NULL) {
        code = CLI_EXIT_ENVIRONMENT;
    } else if (cli_launch_wait(&launch, &end, &error) == UF_OK) {
        cli_launch_explain(&launch, &end);
        code = (cli_exit)cli_launch_code(&end);
    } else {
        (void)cli_fail("torch", &error);
        code = CLI_EXIT_ENVIRONMENT;
    }
    cli_variables_fini(&variables);
    free(python);
    free(folder);
    return code;
}

cli_exit cli_torch(int argc, char **argv)
{
    torch_options options = {0};
    static const struct argp parser = {
        .options = option_list,
        .parser = parse_option,
        .args_doc = "build",
        .doc =
            "Builds the glue between unfrag and the torch of the active Python. 'unfrag run' does "
            "it by itself on first use; do it beforehand where many ranks start, or where "
            "machines that run have no compiler."
            "\vThe result is kept in ~/.cache/unfrag (XDG_CACHE_HOME), one file for each torch "
            "release, Python and version of unfrag. Exit code 4: there can be none; the message "
            "says what is missing."};
    if (argp_parse(&parser, argc, argv, 0, NULL, &options) != 0) {
        return CLI_EXIT_USAGE;
    }
    return build(&options);
}
