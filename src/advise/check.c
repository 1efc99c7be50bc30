/* SPDX-License-Identifier: MIT
 *
 * A check from start to end: what is added, and the judgement over all set-ups in their order. Each
 * source starts with an empty environment; what a shell sets, its programs see. No lock. */
#include "advise/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "advise/check_conf.h"
#include "advise/check_repair.h"
#include "advise/scan.h"
#include "base/error.h"
#include "base/size.h"

/* The environment at one point of a source. */
typedef struct environment {
    const uf_setup *set[UF_VARIABLE_COUNT]; /* NULL: not set */
    bool is_fresh[UF_VARIABLE_COUNT];       /* no program has started since */
    bool is_exported[UF_VARIABLE_COUNT];
    const char *overridden[UF_VARIABLE_COUNT]; /* lines that set it before, for nothing */
    const uf_setup *told[UF_VARIABLE_COUNT];   /* that another name wins over it */
    uf_conf conf;                              /* of the running program, for its calls */
    const uf_setup *init;                      /* what it was set by */
    bool had_call;
} environment;

uf_status uf__check_init(uf_check *check, const char *version, uf_error *error)
{
    memset(check, 0, sizeof *check);
    uf__conf_init(&check->effective);
    uf_status status = uf__conf_release_find(version, &check->grammar, &check->release, error);
    if (status == UF_OK) {
        snprintf(check->version, sizeof check->version, "%u.%u", check->release / 100u,
                 check->release % 100u);
    }
    return status;
}

void uf__check_fini(uf_check *check)
{
    uf__setups_fini(&check->setups);
    uf__findings_fini(&check->findings);
    free(check->source_names);
    memset(check, 0, sizeof *check);
}

static uint32_t add_source(uf_check *check, const char *name)
{
    const char **names = realloc(check->source_names, (check->source_count + 1) * sizeof *names);
    if (names == NULL) {
        check->findings.has_failed = true;
        return 0;
    }
    check->source_names = names;
    names[check->source_count] = uf__findings_copy(&check->findings, name, strlen(name));
    return check->source_count++;
}

void uf__check_add_conf(uf_check *check, const char *conf)
{
    uint32_t source = add_source(check, "");
    if (strstr(conf, "PYTORCH_") != NULL && strstr(conf, "ALLOC_CONF") != NULL) {
        uf__scan_text(check, source, conf);
        return;
    }
    uf_setup setup = {.kind = UF_SETUP_CONF,
                      .variable = UF_VARIABLE_CUDA,
                      .place = {source, 1, 0},
                      .name = "",
                      .value = uf__findings_copy(&check->findings, conf, strlen(conf))};
    uf__setups_add(&check->setups, &check->findings, &setup);
}

static void add_variable(uf_check *check, uint32_t source, const char *text, uf_variable wanted)
{
    const char *equals = strchr(text, '=');
    size_t length = equals == NULL ? 0 : (size_t)(equals - text);
    if (equals == NULL || uf__variable_find(text, length, NULL) != wanted) {
        return;
    }
    uf_setup setup = {.kind = UF_SETUP_SET,
                      .variable = wanted,
                      .place = {source, 0, 0},
                      .name = uf__findings_copy(&check->findings, text, length),
                      .value = uf__findings_copy(&check->findings, equals + 1, strlen(equals + 1))};
    uf__setups_add(&check->setups, &check->findings, &setup);
}

void uf__check_add_environment(uf_check *check, const char *const *variables, size_t count)
{
    uint32_t source = add_source(check, "environment");
    /* the names in the order they are read, whatever the environment's order */
    for (unsigned wanted = 0; wanted <= UF_VARIABLE_MISSPELT; wanted++) {
        for (size_t i = 0; i < count; i++) {
            add_variable(check, source, variables[i], (uf_variable)wanted);
        }
    }
}

uf_status uf__check_add_file(uf_check *check, const char *name, const char *bytes, size_t length,
                             uf_error *error)
{
    if (memchr(bytes, '\0', length) != NULL) {
        return uf__error_set(error, UF_ERROR_BAD_INPUT,
                             "%s: binary data; check reads text: scripts, settings, notebooks",
                             name);
    }
    uint32_t source = add_source(check, name);
    uf_status status = uf__scan_file(check, source, name,
                                     uf__findings_copy(&check->findings, bytes, length), error);
    if (status == UF_OK && check->findings.has_failed) {
        status = uf__error_set(error, UF_ERROR_HOST_MEMORY, "no host memory to check %s", name);
    }
    return status;
}

/* 0 is read first; a larger number is read only if those before are not set. */
static int rank_of(const uf_check *check, uf_variable variable)
{
    if (check->grammar == UF_CONF_2_11 || check->grammar == UF_CONF_2_10) {
        return (int)variable;
    }
    return variable == UF_VARIABLE_GENERIC ? -1 : (int)variable; /* -1: never reaches CUDA */
}

static uf_finding *say(uf_check *check, uf_finding_id id, const uf_setup *setup,
                       const char *message, const char *fix)
{
    return uf__findings_add(&check->findings, id, setup->place, setup->name, message, fix);
}

/* The value corrected, in its line. */
const char *uf__check_corrected(uf_check *check, const uf_setup *setup)
{
    uf_repair repair = {check->grammar, check->release, true, check->has_fraction};
    const char *meant = setup->intended != NULL ? setup->intended : setup->value;
    const char *value = meant == NULL ? NULL : uf__repair(&repair, meant, &check->findings);
    return uf__setup_fix(&check->findings, setup, value);
}

/* The line with another variable's name, or NULL. */
static const char *renamed(uf_check *check, const uf_setup *setup, const char *name)
{
    const char *at = setup->line == NULL ? NULL : strstr(setup->line, setup->name);
    if (at == NULL) {
        return NULL;
    }
    return uf__findings_print(&check->findings, "%.*s%s%s", (int)(at - setup->line), setup->line,
                              name, at + strlen(setup->name));
}

static bool says_misspelt(uf_check *check, const uf_setup *setup)
{
    if (setup->variable != UF_VARIABLE_MISSPELT) {
        return false;
    }
    const char *meant = "";
    (void)uf__variable_find(setup->name, strlen(setup->name), &meant);
    say(check, UF_FINDING_MISSPELT_VARIABLE, setup,
        uf__findings_print(&check->findings,
                           "nothing reads a variable of this name, so it does nothing; did you "
                           "mean %s?",
                           meant),
        renamed(check, setup, meant));
    return true;
}

static bool says_not_read(uf_check *check, const uf_setup *setup)
{
    if (setup->variable == UF_VARIABLE_GENERIC && rank_of(check, setup->variable) < 0) {
        say(check, UF_FINDING_NAME_NOT_READ, setup,
            uf__findings_print(&check->findings,
                               "PyTorch %s %s; the CUDA allocator reads PYTORCH_CUDA_ALLOC_CONF "
                               "only",
                               check->version,
                               check->release == 209 ? "accepts this name, but it does not reach "
                                                       "the CUDA allocator"
                                                     : "does not know this name and ignores it"),
            renamed(check, setup, "PYTORCH_CUDA_ALLOC_CONF"));
        return true;
    }
    return false;
}

static void note_hip(uf_check *check, const uf_setup *setup)
{
    if (setup->variable == UF_VARIABLE_HIP) {
        say(check, UF_FINDING_HIP_NAME, setup,
            rank_of(check, UF_VARIABLE_GENERIC) < 0
                ? "read by ROCm builds only; a CUDA build ignores it"
                : "made for ROCm; a CUDA build takes only the options of all accelerators from it "
                  "and ignores those of CUDA, such as backend and per_process_memory_fraction",
            NULL);
    }
}

static bool says_caching_off(uf_check *check, const uf_setup *setup)
{
    if (setup->variable != UF_VARIABLE_NO_CACHING) {
        return false;
    }
    bool is_zero =
        setup->value != NULL && (setup->value[0] == '\0' || strcmp(setup->value, "0") == 0);
    say(check, UF_FINDING_CACHING_OFF, setup,
        uf__findings_print(
            &check->findings,
            "switches the caching allocator off%s: every allocation is a cudaMalloc "
            "and every release a cudaFree that waits for the GPU, statistics stay 0, "
            "and all settings are without effect. For debugging only",
            is_zero ? " (it counts as soon as it is set, whatever its value)" : ""),
        "");
    return true;
}

/* Timing of a Python program: was it read before? */
static bool says_late(uf_check *check, const uf_setup *setup)
{
    if (setup->init_line != 0) {
        say(check, UF_FINDING_TOO_LATE, setup,
            uf__findings_print(&check->findings,
                               "too late, this has no effect: CUDA was initialised in line %u, and "
                               "the settings are read once, at that moment. Move it to the top, "
                               "before `import torch`",
                               setup->init_line),
            uf__check_corrected(check, setup));
        return true;
    }
    if (setup->import_line == 0 || setup->value == NULL) {
        return false;
    }
    if (strstr(setup->value, "backend") != NULL && strstr(setup->value, "native") == NULL) {
        say(check, UF_FINDING_BACKEND_TOO_LATE, setup,
            uf__findings_print(&check->findings,
                               "backend is decided while torch is imported, in line %u; naming "
                               "another one afterwards raises an error when CUDA is initialised. "
                               "Move it before the import",
                               setup->import_line),
            uf__check_corrected(check, setup));
        return true;
    }
    say(check, UF_FINDING_AFTER_IMPORT, setup,
        uf__findings_print(&check->findings,
                           "works only as long as nothing has initialised CUDA, which any library "
                           "may do; the safe place is before `import torch` (line %u)",
                           setup->import_line),
        uf__check_corrected(check, setup));
    return false;
}

/* What a CUDA build takes from the variable for ROCm: the options of all accelerators, or nothing
 * before 2.10. */
static void keep_what_hip_gives(const uf_check *check, uf_conf *conf)
{
    uf_conf kept;
    uf__conf_init(&kept);
    if (rank_of(check, UF_VARIABLE_GENERIC) >= 0) {
        kept.large_segment_bytes = conf->large_segment_bytes;
        kept.max_split_size_bytes = conf->max_split_size_bytes;
        kept.max_non_split_rounding_bytes = conf->max_non_split_rounding_bytes;
        kept.garbage_collection_threshold = conf->garbage_collection_threshold;
        memcpy(kept.roundup_power2_divisions, conf->roundup_power2_divisions,
               sizeof kept.roundup_power2_divisions);
        kept.is_expandable = conf->is_expandable;
        kept.has_background_threads = conf->has_background_threads;
    }
    *conf = kept;
}

/* Judges the string of a variable that counts, and keeps what it leads to. */
static void judge_value(uf_check *check, environment *now, const uf_setup *setup)
{
    if (setup->value == NULL) {
        return;
    }
    uf_conf_report report;
    uf_conf conf;
    uf_conf_reading reading = {
        .grammar = check->grammar, .release = check->release, .is_at_import = true};
    uf__conf_init(&conf);
    /* what a shell has cut was told already, with what is left of it */
    bool is_good = setup->intended != NULL
                       ? uf__conf_read(&conf, setup->value, &reading, NULL, NULL) == UF_OK
                       : uf__check_conf(check, setup, true, &conf, &report);
    if (setup->variable == UF_VARIABLE_HIP) {
        keep_what_hip_gives(check, &conf);
    }
    if (is_good) {
        now->conf = conf;
    }
    check->effective = conf;
    check->has_effective = true;
    check->effective_text = setup->value;
}

/* A variable was set again and again before any program started: says so where the last one is. */
static void say_twice(uf_check *check, environment *now, uf_variable variable)
{
    const uf_setup *setup = now->set[variable];
    if (now->overridden[variable] != NULL && setup != NULL) {
        say(check, UF_FINDING_SET_TWICE, setup,
            uf__findings_print(
                &check->findings,
                "%s was set in line%s %s already; strings do not add up, so only what "
                "this line says counts",
                setup->name, strchr(now->overridden[variable], ',') != NULL ? "s" : "",
                now->overridden[variable]),
            NULL);
    }
    now->overridden[variable] = NULL;
}

static void note_overridden(uf_check *check, environment *now, const uf_setup *before)
{
    const char *known = now->overridden[before->variable];
    now->overridden[before->variable] =
        uf__findings_print(&check->findings, "%s%s%u", known == NULL ? "" : known,
                           known == NULL ? "" : ", ", before->place.line);
}

/* Of two names that are both set, one is read: says which. True if it is not `setup`. */
static bool says_precedence(uf_check *check, environment *now, const uf_setup *setup)
{
    int rank = rank_of(check, setup->variable);
    for (unsigned other = 0; other < UF_VARIABLE_CONF_COUNT; other++) {
        const uf_setup *set = now->set[other];
        int other_rank = rank_of(check, (uf_variable)other);
        if (set == NULL || other == (unsigned)setup->variable || other_rank < 0 || rank < 0 ||
            set->is_conditional || setup->is_conditional) {
            continue;
        }
        bool loses = other_rank < rank;
        const uf_setup *winner = loses ? set : setup;
        const uf_setup *loser = loses ? setup : set;
        if (now->told[loser->variable] == loser) {
            return loses;
        }
        now->told[loser->variable] = loser;
        uf__findings_add(
            &check->findings, UF_FINDING_OTHER_NAME_WINS, loser->place, loser->name,
            uf__findings_print(
                &check->findings,
                "ignored: %s is set as well%s, and in PyTorch %s it wins; of several names only "
                "the first that is set is read: PYTORCH_CUDA_ALLOC_CONF, PYTORCH_HIP_ALLOC_CONF, "
                "PYTORCH_ALLOC_CONF",
                winner->name,
                winner->place.line != 0 && winner->place.line != loser->place.line
                    ? uf__findings_print(&check->findings, " (line %u)", winner->place.line)
                    : "",
                check->version),
            "");
        return loses;
    }
    return false;
}

static bool is_conf_variable(uf_variable variable)
{
    return variable < UF_VARIABLE_CONF_COUNT;
}

/* A variable enters the environment. */
static void judge_set(uf_check *check, environment *now, const uf_setup *setup)
{
    if (says_misspelt(check, setup) || says_caching_off(check, setup) ||
        says_not_read(check, setup)) {
        return;
    }
    if (setup->init_line != 0) {
        (void)says_late(check, setup);
        return;
    }
    const uf_setup *before = now->set[setup->variable];
    bool is_certain = before != NULL && now->is_fresh[setup->variable] && !before->is_conditional &&
                      !setup->is_conditional && before->scope == setup->scope &&
                      setup->value != NULL && !setup->is_default;
    if (!is_certain && before != NULL) {
        say_twice(check, now, setup->variable);
    }
    if (is_certain) {
        note_overridden(check, now, before);
    }
    if (setup->is_default && before != NULL) {
        return; /* setdefault: what is set stays */
    }
    bool loses = says_precedence(check, now, setup);
    now->set[setup->variable] = setup;
    now->is_fresh[setup->variable] = true;
    if (!loses) {
        note_hip(check, setup);
    }
    if (!loses && !says_late(check, setup)) {
        judge_value(check, now, setup);
    }
}

/* Variables for one command: it sees them on top of the environment. */
static size_t judge_command(uf_check *check, const environment *now, const uf_setup *setups,
                            size_t count)
{
    environment inner = *now;
    size_t i = 0;
    for (unsigned v = 0; v < UF_VARIABLE_COUNT; v++) {
        inner.is_fresh[v] = false;
    }
    const uf_setup *mine[UF_VARIABLE_COUNT] = {0};
    for (;
         i < count && setups[i].kind == UF_SETUP_COMMAND && setups[i].command == setups[0].command;
         i++) {
        const uf_setup *setup = &setups[i];
        if (says_misspelt(check, setup) || says_caching_off(check, setup) ||
            says_not_read(check, setup)) {
            continue;
        }
        mine[setup->variable] = setup;
        inner.set[setup->variable] = NULL;
    }
    for (unsigned v = 0; v < UF_VARIABLE_CONF_COUNT; v++) {
        if (mine[v] != NULL) {
            bool loses = says_precedence(check, &inner, mine[v]);
            inner.set[v] = mine[v];
            if (!loses) {
                note_hip(check, mine[v]);
                judge_value(check, &inner, mine[v]);
            }
        }
    }
    return i;
}

static bool is_exported_later(const uf_check *check, const uf_setup *setup)
{
    for (size_t i = 0; i < check->setups.count; i++) {
        const uf_setup *other = &check->setups.items[i];
        if (other->kind == UF_SETUP_EXPORT && other->place.source == setup->place.source &&
            other->variable == setup->variable) {
            return true;
        }
    }
    return false;
}

static void judge_local(uf_check *check, environment *now, const uf_setup *setup)
{
    bool is_known = setup->variable < UF_VARIABLE_COUNT;
    if (is_known && !setup->is_never_exported &&
        (now->is_exported[setup->variable] || is_exported_later(check, setup))) {
        judge_set(check, now, setup);
        return;
    }
    if (says_misspelt(check, setup)) {
        return;
    }
    const char *line = uf__check_corrected(check, setup);
    line = line != NULL && line[0] == '\0' ? setup->line : line;
    const char *at = line == NULL ? NULL : strstr(line, setup->name);
    bool is_powershell = at != NULL && at > line && at[-1] == '$';
    const char *fix = NULL;
    if (at != NULL) {
        fix = uf__findings_print(&check->findings, "%.*s%s%s", (int)(at - line), line,
                                 is_powershell ? "env:" : "export ", at);
    }
    say(check, UF_FINDING_NOT_EXPORTED, setup,
        uf__findings_print(&check->findings,
                           "a variable of the shell only: programs it starts do not see it, so it "
                           "does nothing. %s",
                           is_powershell ? "Environment variables are written $env:NAME"
                                         : "Export it, or write it in front of the command on the "
                                           "same line"),
        fix);
}

static void judge_lost(uf_check *check, const uf_setup *setup)
{
    if (says_misspelt(check, setup)) {
        return;
    }
    say(check, UF_FINDING_LOST_AFTER_COMMAND, setup,
        setup->intended != NULL
            ? setup->intended
            : "set in a process of its own that ends with this command; the program never sees it",
        NULL);
}

/* A hazard outweighs what the value costs: takes that finding back. */
static void drop_small_split(uf_check *check, size_t first)
{
    uf_findings *findings = &check->findings;
    size_t kept = first;
    for (size_t i = first; i < findings->count; i++) {
        if (findings->items[i].id != UF_FINDING_SMALL_SPLIT) {
            findings->items[kept++] = findings->items[i];
        }
    }
    findings->count = kept;
}

/* A call of the running program that changes its settings. */
static void judge_call(uf_check *check, environment *now, const uf_setup *setup)
{
    uf_findings *texts = &check->findings;
    if (setup->value == NULL) {
        return;
    }
    uf_conf before = now->conf, after = now->conf;
    uf_conf_report report;
    size_t first = texts->count;
    if (!uf__check_conf(check, setup, false, &after, &report)) {
        return;
    }
    bool is_running = setup->init_line != 0 || setup->scope != 0 || now->had_call;
    bool has_split = after.max_split_size_bytes != UF_UNLIMITED;
    uf_repair repair = {check->grammar, check->release, true, check->has_fraction};
    const char *fixed = uf__repair(&repair, setup->value, texts);
    const char *safe = uf__findings_print(texts, "os.environ[\"PYTORCH_CUDA_ALLOC_CONF\"] = \"%s\"",
                                          fixed == NULL || fixed[0] == '\0' ? setup->value : fixed);
    if (is_running && after.max_split_size_bytes < before.max_split_size_bytes) {
        drop_small_split(check, first);
        uf__findings_add(
            texts, UF_FINDING_RUN_TIME_HAZARD, setup->place, "max_split_size_mb",
            "lowering or first setting max_split_size_mb while the program runs can free memory "
            "under a live tensor: parts of segments that were split before can be released as "
            "whole segments (illegal memory access). Set it before `import torch`, once",
            safe);
    } else if (is_running && has_split && after.is_expandable && !before.is_expandable) {
        uf__findings_add(
            texts, UF_FINDING_RUN_TIME_HAZARD, setup->place, "expandable_segments",
            "switching expandable_segments on while max_split_size_mb is set and the program runs "
            "can free memory under a live tensor: old segments are split that the limit protected. "
            "Set it before `import torch`, once",
            safe);
    }
    if (before.max_split_size_bytes != UF_UNLIMITED && !has_split && now->init != NULL) {
        uf__findings_add(texts, UF_FINDING_RESET_BY_CALL, setup->place, "max_split_size_mb",
                         uf__findings_print(texts,
                                            "a call does not add up with what was set in line %u: "
                                            "options that it does not name, such as "
                                            "max_split_size_mb, go back to their default",
                                            now->init->place.line),
                         NULL);
    }
    now->conf = after;
    now->had_call = now->had_call || setup->init_line != 0;
    now->init = setup;
    check->effective = after;
    check->has_effective = true;
    check->effective_text = setup->value;
}

/* What a program reads under settings that make it meaningless. */
static void judge_observation(uf_check *check, const environment *now, const uf_setup *setup)
{
    if (setup->value == NULL) {
        return;
    }
    if (strcmp(setup->value, "snapshot") == 0 && now->conf.is_async_backend) {
        say(check, UF_FINDING_ASYNC_SNAPSHOT, setup,
            "with backend:cudaMallocAsync there are no snapshots: this raises an error", NULL);
    } else if (strcmp(setup->value, "statistic") == 0 && now->conf.is_expandable) {
        say(check, UF_FINDING_ZERO_STATISTIC, setup,
            "stays 0 with expandable_segments:True: segments and inactive splits are counted for "
            "ordinary segments only. (reserved - active) / reserved tells the cached share",
            NULL);
    }
}

/* A program starts, or the source ends: what was set so far was set for it. */
static void judge_start(uf_check *check, environment *now)
{
    for (unsigned v = 0; v < UF_VARIABLE_COUNT; v++) {
        say_twice(check, now, (uf_variable)v);
        now->is_fresh[v] = false;
    }
}

static size_t judge_one(uf_check *check, environment *now, size_t index)
{
    const uf_setup *setup = &check->setups.items[index];
    bool is_known = setup->variable < UF_VARIABLE_COUNT;
    switch (setup->kind) {
    case UF_SETUP_CONF:
        judge_value(check, now, setup);
        break;
    case UF_SETUP_SET:
        judge_set(check, now, setup);
        now->init = is_known && is_conf_variable(setup->variable) && setup->init_line == 0
                        ? setup
                        : now->init;
        if (is_known) {
            now->is_exported[setup->variable] = true;
        }
        break;
    case UF_SETUP_COMMAND:
        return judge_command(check, now, setup, check->setups.count - index);
    case UF_SETUP_LOCAL:
        judge_local(check, now, setup);
        break;
    case UF_SETUP_EXPORT:
        if (is_known) {
            now->is_exported[setup->variable] = true;
        }
        break;
    case UF_SETUP_UNSET:
        if (is_known) {
            say_twice(check, now, setup->variable);
            now->set[setup->variable] = NULL;
            now->is_exported[setup->variable] = false;
        }
        break;
    case UF_SETUP_LOST:
        judge_lost(check, setup);
        break;
    case UF_SETUP_RUN:
        judge_start(check, now);
        break;
    case UF_SETUP_CALL:
        judge_call(check, now, setup);
        break;
    case UF_SETUP_OBSERVE:
        judge_observation(check, now, setup);
        break;
    case UF_SETUP_FRACTION:
        break;
    }
    return 1;
}

uf_status uf__check_finish(uf_check *check, uf_error *error)
{
    environment now = {0};
    uint32_t source = UINT32_MAX;
    for (size_t i = 0; i < check->setups.count; i++) {
        check->has_fraction =
            check->has_fraction || check->setups.items[i].kind == UF_SETUP_FRACTION;
    }
    for (size_t i = 0; i < check->setups.count;) {
        if (check->setups.items[i].place.source != source) {
            source = check->setups.items[i].place.source;
            judge_start(check, &now);
            memset(&now, 0, sizeof now);
            uf__conf_init(&now.conf);
        }
        i += judge_one(check, &now, i);
    }
    judge_start(check, &now);
    uf__findings_sort(&check->findings);
    if (check->findings.has_failed) {
        return uf__error_set(error, UF_ERROR_HOST_MEMORY, "no host memory for a check");
    }
    return UF_OK;
}

bool uf__check_is_valid(const uf_check *check)
{
    for (size_t i = 0; i < check->findings.count; i++) {
        if (check->findings.items[i].severity == UF_SEVERITY_ERROR) {
            return false;
        }
    }
    return true;
}
