/* SPDX-License-Identifier: MIT
 *
 * unfrag check: what settings really do, in a string, in files, in this environment. Owns the
 * choice between them and the reading of files. */
#include "verb.h"

#include <argp.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "advise/check.h"
#include "base/error.h"
#include "check_report.h"
#include "exit_code.h"

/* Scripts and notebooks; more is data. */
#define MAX_FILE_BYTES (64L << 20)

typedef struct check_options {
    char *version;
    char **arguments;
    size_t count;
    bool is_env;
    bool is_json;
} check_options;

static const struct argp_option option_list[] = {
    {"torch", 't', "VERSION", 0, "Judge for this release of PyTorch (1.10 and later; 2.11)", 0},
    {"env", 'e', NULL, 0, "Check the variables of this environment", 0},
    {"json", 'j', NULL, 0, "Print one JSON object", 0},
    {0},
};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    check_options *options = state->input;
    switch (key) {
    case 't':
        options->version = argument;
        return 0;
    case 'e':
        options->is_env = true;
        return 0;
    case 'j':
        options->is_json = true;
        return 0;
    case ARGP_KEY_ARGS:
        options->arguments = state->argv + state->next;
        options->count = (size_t)(state->argc - state->next);
        return 0;
    case ARGP_KEY_END:
        if (options->count == 0 && !options->is_env) {
            argp_error(state, "what? A settings string, files, or --env");
        }
        if (options->count > 0 && options->is_env) {
            argp_error(state, "--env, or '%s'? One of them", options->arguments[0]);
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* Reads a stream into memory; *length without the NUL behind it. */
static uf_status read_stream(FILE *stream, const char *name, char **bytes, size_t *length,
                             uf_error *error)
{
    size_t capacity = 65536, filled = 0;
    char *text = malloc(capacity);
    while (text != NULL) {
        filled += fread(text + filled, 1, capacity - filled - 1, stream);
        if (filled + 1 < capacity) {
            break;
        }
        if (capacity > (size_t)MAX_FILE_BYTES) {
            free(text);
            return uf__error_set(error, UF_ERROR_BAD_INPUT,
                                 "%s: more than %ld MiB; that is no script", name,
                                 MAX_FILE_BYTES >> 20);
        }
        capacity *= 2;
        char *larger = realloc(text, capacity);
        if (larger == NULL) {
            free(text);
        }
        text = larger;
    }
    if (text == NULL) {
        return uf__error_set(error, UF_ERROR_HOST_MEMORY, "no host memory to read %s", name);
    }
    if (ferror(stream)) {
        free(text);
        return uf__error_set(error, UF_ERROR_IO, "%s: reading failed: %s", name, strerror(errno));
    }
    text[filled] = '\0';
    *bytes = text;
    *length = filled;
    return UF_OK;
}

static uf_status add_file(uf_check *check, const char *name, uf_error *error)
{
    struct stat status;
    bool is_standard = strcmp(name, "-") == 0;
    FILE *stream = is_standard ? stdin : fopen(name, "rb");
    if (stream == NULL) {
        return uf__error_set(error, UF_ERROR_IO, "%s: cannot be read: %s", name, strerror(errno));
    }
    char *bytes = NULL;
    size_t length = 0;
    uf_status result;
    if (fstat(fileno(stream), &status) == 0 && S_ISDIR(status.st_mode)) {
        result = uf__error_set(error, UF_ERROR_IO, "%s: is a folder; name the files in it", name);
    } else {
        result = read_stream(stream, name, &bytes, &length, error);
    }
    if (result == UF_OK) {
        result =
            uf__check_add_file(check, is_standard ? "standard input" : name, bytes, length, error);
    }
    free(bytes);
    if (!is_standard) {
        fclose(stream);
    }
    return result;
}

/* True for a name that was meant as a file, although there is none. */
static bool is_file_name(const char *text)
{
    static const char *const endings[] = {".py",   ".sh",  ".bat",    ".cmd",   ".ps1",
                                          ".yaml", ".yml", ".env",    ".ipynb", ".json",
                                          ".txt",  ".log", ".service"};
    size_t length = strlen(text);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t ending = strlen(endings[i]);
        if (length >= ending && strcmp(text + length - ending, endings[i]) == 0) {
            return true;
        }
    }
    return strcmp(text, "-") == 0 || strcmp(text, "Dockerfile") == 0 ||
           (strchr(text, '/') != NULL && strpbrk(text, ":=,") == NULL);
}

static uf_status add_inputs(uf_check *check, const check_options *options, uf_error *error)
{
    if (options->is_env) {
        size_t count = 0;
        while (environ[count] != NULL) {
            count++;
        }
        uf__check_add_environment(check, (const char *const *)environ, count);
        return UF_OK;
    }
    if (options->count == 1 && options->arguments[0][0] == '\0') {
        uf__check_add_conf(check, "");
        return UF_OK;
    }
    for (size_t i = 0; i < options->count; i++) {
        const char *argument = options->arguments[i];
        bool is_file = options->count > 1 || access(argument, F_OK) == 0 || is_file_name(argument);
        if (!is_file) {
            uf__check_add_conf(check, argument);
            continue;
        }
        uf_status status = add_file(check, argument, error);
        if (status != UF_OK) {
            return status;
        }
    }
    return UF_OK;
}

static cli_exit report(const check_options *options, const uf_check *check)
{
    if (options->is_json) {
        cli_exit code = cli_check_print_json(check);
        if (code != CLI_EXIT_DONE) {
            return code;
        }
    } else {
        cli_check_print(check);
    }
    return uf__check_is_valid(check) ? CLI_EXIT_DONE : CLI_EXIT_NO;
}

cli_exit cli_check(int argc, char **argv)
{
    char version[] = "2.11";
    check_options options = {.version = version};
    static const struct argp parser = {
        .options = option_list,
        .parser = parse_option,
        .args_doc = "CONF\nFILE...\n--env",
        .doc = "Says what settings of PyTorch's allocator really do, and corrects them."
               "\vCONF is a settings string such as max_split_size_mb:128. An argument that exists "
               "as a file is a FILE: Python, notebooks, shells, batch files, PowerShell, YAML, "
               ".env, Dockerfiles, systemd units, logs. The exit code is 1 if there is an error."};
    if (argp_parse(&parser, argc, argv, 0, NULL, &options) != 0) {
        return CLI_EXIT_USAGE;
    }
    uf_error error = {0};
    uf_check check;
    cli_exit code;
    if (uf__check_init(&check, options.version, &error) != UF_OK ||
        add_inputs(&check, &options, &error) != UF_OK ||
        uf__check_finish(&check, &error) != UF_OK) {
        code = cli_fail("check", &error);
    } else {
        code = report(&options, &check);
    }
    uf__check_fini(&check);
    return code;
}
