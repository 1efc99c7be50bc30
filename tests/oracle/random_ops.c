/* SPDX-License-Identifier: MIT
 *
 * random_ops: seeded random operations on the oracle and on the core side by side. Prints the seed;
 * on a difference a minimised list of operations that shows it. Exit status 0 all equal, 1 not, 2
 * wrong usage. */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "oplog/core_model.h"
#include "oracle/generate.h"
#include "oracle/oracle.h"
#include "oracle/pair.h"

#define LAYOUT_EVERY 64
#define MINIMISE_RUNS 600

typedef struct arguments {
    uint64_t seed, count;
    setting own; /* from --conf, --limit, --card, --pools */
    const char *setting_name;
    bool has_own, is_listing;
    const model_vtable *second;
} arguments;

static pair_config config_of(const setting *from, const arguments *a, uint64_t id_count)
{
    return (pair_config){.first = &oracle_model,
                         .second = a->second,
                         .total_bytes = SETTING_TOTAL_BYTES,
                         .capacity_bytes = from->card_bytes,
                         .conf = from->confs[0],
                         .seed = a->seed,
                         .id_count = id_count};
}

/* Runs a list from scratch; true if it shows a difference, told by text. */
static bool list_differs(const setting *from, const arguments *a, const oplog *log, char *text,
                         size_t size)
{
    pair p;
    pair_config config = config_of(from, a, log->id_count);
    pair_init(&p, &config);
    bool is_equal = true;
    uf_status status = UF_OK;
    for (size_t i = 0; is_equal && i < log->count && status != UF_ERROR_HAZARD; i++) {
        is_equal = pair_step(&p, &log->ops[i], &status);
    }
    is_equal = is_equal && (status == UF_ERROR_HAZARD || pair_layout_equal(&p));
    if (!is_equal) {
        (void)snprintf(text, size, "%s", p.e.text);
    }
    pair_fini(&p);
    return !is_equal;
}

static oplog *copy_without(const oplog *log, size_t first, size_t count)
{
    oplog *copy = calloc(1, sizeof *copy);
    if (copy == NULL) {
        exit(5);
    }
    for (size_t i = 0; i < log->count; i++) {
        if (i < first || i >= first + count) {
            oplog_append(copy, &log->ops[i]);
        }
    }
    return copy;
}

/* Drops ever smaller pieces of the list as long as a difference remains. */
static oplog *minimise(const setting *from, const arguments *a, oplog *log, char *text, size_t size)
{
    size_t runs = 0;
    for (size_t piece = log->count / 2; piece > 0; piece /= 2) {
        for (size_t at = 0; at < log->count && runs < MINIMISE_RUNS; runs++) {
            oplog *smaller = copy_without(log, at, piece);
            if (list_differs(from, a, smaller, text, size)) {
                oplog_destroy(log);
                log = smaller;
            } else {
                oplog_destroy(smaller);
                at += piece;
            }
        }
    }
    (void)list_differs(from, a, log, text, size);
    return log;
}

static void report(const setting *from, const arguments *a, oplog *log, const char *text)
{
    char smallest[600];
    (void)printf("%s: seed %" PRIu64 ": operation %zu: %s\n", from->name, a->seed, log->count,
                 text);
    (void)fflush(stdout);
    (void)snprintf(smallest, sizeof smallest, "%s", text);
    log = minimise(from, a, log, smallest, sizeof smallest);
    (void)printf("smallest list, %zu operations, at creation \"%s\": %s\n", log->count,
                 from->confs[0], smallest);
    for (size_t i = 0; i < log->count; i++) {
        oplog_op_write(&log->ops[i], stdout);
    }
    oplog_destroy(log);
}

/* Generates and runs operations; true if all is equal. */
static bool setting_run(const setting *from, const arguments *a)
{
    generate g;
    pair p;
    pair_config config = config_of(from, a, a->count);
    oplog *log = calloc(1, sizeof *log);
    if (log == NULL) {
        exit(5);
    }
    generate_init(&g, from, a->seed);
    pair_init(&p, &config);
    bool is_equal = true;
    uf_status status = UF_OK;
    for (uint64_t i = 0; is_equal && i < a->count; i++) {
        oplog_op op;
        generate_next(&g, &op);
        oplog_append(log, &op);
        is_equal = pair_step(&p, &op, &status) &&
                   (status == UF_ERROR_HAZARD || i % LAYOUT_EVERY != 0 || pair_layout_equal(&p));
        if (status == UF_ERROR_HAZARD) {
            break;
        }
        generate_done(&g, &op, status);
    }
    is_equal = is_equal && (status == UF_ERROR_HAZARD || pair_layout_equal(&p));
    if (is_equal && status == UF_ERROR_HAZARD && !from->is_hazardous) {
        expect_differ(&p.e, "a hazard came up where there should be none");
        is_equal = false;
    }
    if (is_equal) {
        (void)printf("%s: seed %" PRIu64 ": %zu operations, %zu events, %" PRIu64
                     " out of memory, all equal%s\n",
                     from->name, a->seed, log->count, p.event_count,
                     p.status_counts[UF_ERROR_OUT_OF_MEMORY],
                     status == UF_ERROR_HAZARD ? ", up to the same hazard" : "");
        oplog_destroy(log);
    } else {
        report(from, a, log, p.e.text);
    }
    (void)fflush(stdout);
    pair_fini(&p);
    generate_fini(&g);
    return is_equal;
}

static int usage(const char *program)
{
    (void)fprintf(stderr,
                  "usage: %s [--seed S] [--count N] [--setting NAME] [--list]\n"
                  "       [--conf STRING] [--limit BYTES] [--card BYTES] [--pools]\n"
                  "       [--models oracle,core|oracle,oracle]\n"
                  "Without --setting, --conf, --limit or --card all settings are run.\n",
                  program);
    return 2;
}

static bool number_parse(const char *text, uint64_t *number)
{
    char *end = NULL;
    *number = strtoull(text, &end, 0);
    return *text != '\0' && *text != '-' && *end == '\0';
}

static bool option_parse(arguments *a, int option)
{
    switch (option) {
    case 's':
        return number_parse(optarg, &a->seed);
    case 'n':
        return number_parse(optarg, &a->count) && a->count > 0;
    case 'S':
        a->setting_name = optarg;
        return true;
    case 'L':
        a->is_listing = true;
        return true;
    case 'c':
        a->own.confs[0] = optarg;
        a->has_own = true;
        return true;
    case 'l':
        a->has_own = true;
        return number_parse(optarg, &a->own.limit_bytes) &&
               a->own.limit_bytes <= SETTING_TOTAL_BYTES / 2;
    case 'k':
        a->has_own = true;
        return number_parse(optarg, &a->own.card_bytes);
    case 'p':
        a->has_own = true;
        a->own.has_pools = true;
        return true;
    case 'm':
        a->second = strcmp(optarg, "oracle,oracle") == 0 ? &oracle_model : &core_model;
        return a->second == &oracle_model || strcmp(optarg, "oracle,core") == 0;
    default:
        return false;
    }
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"seed", required_argument, NULL, 's'},    {"count", required_argument, NULL, 'n'},
        {"setting", required_argument, NULL, 'S'}, {"list", no_argument, NULL, 'L'},
        {"conf", required_argument, NULL, 'c'},    {"limit", required_argument, NULL, 'l'},
        {"card", required_argument, NULL, 'k'},    {"pools", no_argument, NULL, 'p'},
        {"models", required_argument, NULL, 'm'},  {NULL, 0, NULL, 0},
    };
    arguments a = {.seed = 1,
                   .count = 20000,
                   .own = {.name = "own", .confs = {""}, .is_hazardous = true},
                   .second = &core_model};
    for (int option = 0; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (!option_parse(&a, option)) {
            return usage(argv[0]);
        }
    }
    if (optind < argc || (a.has_own && a.setting_name != NULL)) {
        return usage(argv[0]);
    }
    bool is_equal = true;
    bool has_run = a.has_own;
    if (a.has_own) {
        is_equal = setting_run(&a.own, &a);
    }
    for (size_t i = 0; !a.has_own && i < setting_count; i++) {
        if (a.is_listing) {
            (void)printf("%s\n", setting_list[i].name);
            has_run = true;
        } else if (a.setting_name == NULL || strcmp(a.setting_name, setting_list[i].name) == 0) {
            is_equal = setting_run(&setting_list[i], &a) && is_equal;
            has_run = true;
        }
    }
    if (!has_run) {
        (void)fprintf(stderr, "no setting named %s; see --list\n", a.setting_name);
        return 2;
    }
    return is_equal ? 0 : 1;
}
