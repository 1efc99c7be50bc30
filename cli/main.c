/* SPDX-License-Identifier: MIT
 *
 * The command line's frame: finds the verb, hands over, and reports a result that could not be
 * written. Knows nothing of what a verb does. */
#include <argp.h>
#include <errno.h>
#include <locale.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "exit_code.h"
#include "interrupt.h"
#include "nearest.h"
#include "verb.h"

/* argp looks these up by name: they must be visible to the C library. */
UF_API const char *argp_program_version = "unfrag " UF_VERSION;
UF_API error_t argp_err_exit_status = CLI_EXIT_USAGE;

static const cli_verb verbs[] = {
    {"explain", "from an out-of-memory message to its cause and cure", cli_explain},
    {"replay", "play a recording again, exactly or under other settings", cli_replay},
    {"tune", "find the best settings and the smallest card, with proof", cli_tune},
    {"report", "make one page of a recording: timeline, memory map, causes", cli_report},
    {"plan", "will a model fit a card, at a size, batch and set of options", cli_plan},
    {"check", "say what settings really do, in a string, files, the environment", cli_check},
    {"doctor", "examine this machine: driver, cards, settings, torch, a model's files", cli_doctor},
    {"top", "watch the memory of running processes", cli_top},
    {"export", "the same numbers for Prometheus", cli_export},
    {"convert", "convert a recording between trace formats", cli_convert},
    {"run", "run a PyTorch program on unfrag's allocator", cli_run},
    {"env", "shell lines that switch unfrag on", cli_env},
    {"torch", "build the glue for the active Python's torch", cli_torch},
    {"record", "a snapshot with history from an unchanged PyTorch program", cli_record},
    {"trial", "run a program repeatedly under several settings and compare", cli_trial},
};

#define VERB_COUNT (sizeof verbs / sizeof verbs[0])

static void print_usage(FILE *stream)
{
    fputs("Usage: unfrag VERB [OPTIONS] INPUT...\n\n"
          "Explains, predicts and tunes GPU memory of PyTorch programs.\n\n"
          "Verbs:\n",
          stream);
    for (size_t i = 0; i < VERB_COUNT; i++) {
        fprintf(stream, "  %-10s %s\n", verbs[i].name, verbs[i].summary);
    }
    fputs(
        "\n'unfrag help VERB' lists a verb's options; 'man unfrag' tells more.\n"
        "INPUT is a file, - for standard input, or @NAME for a recording that comes with unfrag.\n"
        "Exit code: 0 done, 1 the answer is no, 2 usage, 3 bad input, 4 environment, 5 internal.\n",
        stream);
}

static const cli_verb *find_verb(const char *name)
{
    for (size_t i = 0; i < VERB_COUNT; i++) {
        if (strcmp(verbs[i].name, name) == 0) {
            return &verbs[i];
        }
    }
    return NULL;
}

static cli_exit unknown_verb(const char *name)
{
    const char *names[VERB_COUNT];
    for (size_t i = 0; i < VERB_COUNT; i++) {
        names[i] = verbs[i].name;
    }
    const char *near = cli_nearest(name, names, VERB_COUNT);
    const char *kind = name[0] == '-' ? "option" : "verb";
    fprintf(stderr, "unfrag: there is no %s '%s'", kind, name);
    if (near != NULL) {
        fprintf(stderr, ", did you mean '%s'?\n", near);
    } else {
        fputs("; 'unfrag --help' lists the verbs\n", stderr);
    }
    return CLI_EXIT_USAGE;
}

static cli_exit run_verb(const cli_verb *verb, int argc, char **argv)
{
    char name[64];
    snprintf(name, sizeof name, "unfrag %s", verb->name);
    argv[0] = name;
    char help[] = "--help";
    if (argc > 1 && strcmp(argv[1], "-h") == 0) {
        argv[1] = help;
    }
    return verb->run(argc, argv);
}

/* unfrag help [VERB] */
static cli_exit run_help(int argc, char **argv)
{
    if (argc < 2) {
        print_usage(stdout);
        return CLI_EXIT_DONE;
    }
    const cli_verb *verb = find_verb(argv[1]);
    if (verb == NULL) {
        return unknown_verb(argv[1]);
    }
    char help[] = "--help";
    char *words[] = {argv[0], help, NULL};
    return run_verb(verb, 2, words);
}

static cli_exit run(int argc, char **argv)
{
    if (argc < 2) {
        print_usage(stderr);
        return CLI_EXIT_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-?") == 0 || strcmp(name, "-h") == 0) {
        print_usage(stdout);
        return CLI_EXIT_DONE;
    }
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        printf("%s\n", argp_program_version);
        return CLI_EXIT_DONE;
    }
    if (strcmp(name, "help") == 0) {
        return run_help(argc - 1, argv + 1);
    }
    const cli_verb *verb = find_verb(name);
    return verb != NULL ? run_verb(verb, argc - 1, argv + 1) : unknown_verb(name);
}

/* Large arrays go back to the system when they are freed. By itself glibc would keep what is freed
 * once, and a replay of a long recording took up to a tenth more memory. */
static void give_large_arrays_back(void)
{
#ifdef M_MMAP_THRESHOLD
    (void)mallopt(M_MMAP_THRESHOLD, 128 << 10);
#endif
}

int main(int argc, char **argv)
{
    /* Characters only, so that tables count columns rightly; numbers keep the C locale's point. */
    if (setlocale(LC_CTYPE, "C.UTF-8") == NULL) {
        (void)setlocale(LC_CTYPE, "");
    }
    give_large_arrays_back();
    cli_interrupt_install();
    cli_exit code = run(argc, argv);
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        if (code == CLI_EXIT_ENVIRONMENT) {
            return (int)code; /* it was told */
        }
        fprintf(stderr, "unfrag: the result could not be written: %s\n", strerror(errno));
        return CLI_EXIT_ENVIRONMENT;
    }
    return (int)code;
}
