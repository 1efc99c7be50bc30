/* SPDX-License-Identifier: MIT
 *
 * Findings about settings: the one list of their ids and severities, and a growing list of those
 * that were made, which owns their texts. Knows nothing of how one is found. No lock. */
#ifndef UF_ADVISE_FINDING_H
#define UF_ADVISE_FINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <unfrag/status.h>

typedef enum uf_severity {
    UF_SEVERITY_NOTE,    /* worth knowing */
    UF_SEVERITY_WARNING, /* accepted, but it does nothing, or harm */
    UF_SEVERITY_ERROR    /* refused, or it never takes effect, or it can corrupt */
} uf_severity;

/* Constant, id, severity; docs/check.md explains each id. */
#define UF_FINDING_LIST(X)                                               \
    X(UNKNOWN_OPTION, "unknown-option", ERROR)                           \
    X(NEWER_OPTION, "newer-option", ERROR)                               \
    X(WRONG_SEPARATOR, "wrong-separator", ERROR)                         \
    X(EMPTY_ITEM, "empty-item", ERROR)                                   \
    X(MISSING_VALUE, "missing-value", ERROR)                             \
    X(WRONG_VALUE, "wrong-value", ERROR)                                 \
    X(WRONG_BOOLEAN, "wrong-boolean", ERROR)                             \
    X(WRONG_BACKEND, "wrong-backend", ERROR)                             \
    X(QUOTES_INSIDE, "quotes-inside", ERROR)                             \
    X(FOREIGN_TEXT, "foreign-text", ERROR)                               \
    X(ABORTS_IMPORT, "aborts-import", ERROR)                             \
    X(UNCHECKED_SEPARATOR, "unchecked-separator", WARNING)               \
    X(DROPPED_TEXT, "dropped-text", WARNING)                             \
    X(HUGE_NUMBER, "huge-number", WARNING)                               \
    X(REPEATED_OPTION, "repeated-option", WARNING)                       \
    X(IGNORED_ITEM, "ignored-item", WARNING)                             \
    X(THRESHOLD_WITHOUT_FRACTION, "threshold-without-fraction", WARNING) \
    X(EXPANDABLE_WITH_SPLIT, "expandable-with-max-split", WARNING)       \
    X(ASYNC_IGNORES, "async-ignores-options", WARNING)                   \
    X(SMALL_SPLIT, "small-max-split", WARNING)                           \
    X(ROUNDUP_INERT, "roundup-inert", WARNING)                           \
    X(ROUNDING_WITHOUT_SPLIT, "rounding-without-split", WARNING)         \
    X(THREADS_WITHOUT_REGISTER, "threads-without-register", WARNING)     \
    X(SET_TWICE, "set-twice", WARNING)                                   \
    X(OTHER_NAME_WINS, "other-name-wins", WARNING)                       \
    X(NAME_NOT_READ, "name-not-read", ERROR)                             \
    X(MISSPELT_VARIABLE, "misspelt-variable", ERROR)                     \
    X(HIP_NAME, "hip-name", NOTE)                                        \
    X(CACHING_OFF, "caching-off", WARNING)                               \
    X(NOT_EXPORTED, "not-exported", ERROR)                               \
    X(SHELL_CUTS, "shell-cuts", ERROR)                                   \
    X(SHELL_BLANKS, "shell-blanks", ERROR)                               \
    X(WRONG_SHELL, "wrong-shell", ERROR)                                 \
    X(POWERSHELL_QUOTES, "powershell-quotes", ERROR)                     \
    X(YAML_BLANK, "yaml-blank", ERROR)                                   \
    X(LOST_AFTER_COMMAND, "lost-after-command", ERROR)                   \
    X(TOO_LATE, "too-late", ERROR)                                       \
    X(BACKEND_TOO_LATE, "backend-too-late", ERROR)                       \
    X(AFTER_IMPORT, "after-import", NOTE)                                \
    X(RUN_TIME_HAZARD, "run-time-hazard", ERROR)                         \
    X(RESET_BY_CALL, "reset-by-call", WARNING)                           \
    X(FRACTION_AT_RUN_TIME, "fraction-at-run-time", WARNING)             \
    X(FRACTION_ARGUMENT, "fraction-argument", ERROR)                     \
    X(QUERY_NOT_SETTING, "query-not-setting", ERROR)                     \
    X(UNKNOWN_ATTRIBUTE, "unknown-attribute", ERROR)                     \
    X(EMPTY_CACHE_IN_LOOP, "empty-cache-in-loop", WARNING)               \
    X(EMPTY_FORMULA, "empty-formula", WARNING)                           \
    X(FROZEN_STATISTIC, "frozen-statistic", WARNING)                     \
    X(ZERO_STATISTIC, "zero-statistic", WARNING)                         \
    X(ASYNC_SNAPSHOT, "async-snapshot", WARNING)                         \
    X(GPU_RESET, "gpu-reset", WARNING)

typedef enum uf_finding_id {
#define UF_FINDING_ENUM(constant, name, severity) UF_FINDING_##constant,
    UF_FINDING_LIST(UF_FINDING_ENUM)
#undef UF_FINDING_ENUM
        UF_FINDING_COUNT
} uf_finding_id;

/* Where something stands: an index into the sources, a line from 1 on (0: none), and the number of
 * the notebook's cell from 1 on (0: no notebook). */
typedef struct uf_finding_place {
    uint32_t source, line, cell;
} uf_finding_place;

/* All texts belong to the list. */
typedef struct uf_finding {
    uf_finding_id id;
    uf_severity severity;
    uf_finding_place place;
    const char *option;  /* the setting, variable or call it is about; never NULL */
    const char *message; /* what it really does */
    const char *fix;     /* the corrected line; empty: delete the line; NULL: none is known */
} uf_finding;

typedef struct uf__text_block uf__text_block;

/* Starts zero-initialised. */
typedef struct uf_findings {
    uf_finding *items;
    size_t count, capacity;
    uf__text_block *blocks; /* every text, freed together */
    bool has_failed;        /* the host had no memory at some point */
} uf_findings;

void uf__findings_fini(uf_findings *findings);

/* The id's name, such as "wrong-boolean", and its usual severity. */
const char *uf__finding_name(uf_finding_id id);
uf_severity uf__finding_severity(uf_finding_id id);
const char *uf__severity_name(uf_severity severity);

/* size bytes that live as long as the list, or NULL (and has_failed is set). */
void *uf__findings_allocate(uf_findings *findings, size_t size);

/* A copy, or a formatted text, that lives as long as the list; "" if the host has no memory. */
const char *uf__findings_copy(uf_findings *findings, const char *text, size_t length);
const char *uf__findings_print(uf_findings *findings, const char *format, ...) UF_PRINTF(2, 3);

/* Adds one with the usual severity. option, message and fix are borrowed for as long as the list
 * lives: literals, or texts of the list. Returns it for changes, or NULL (has_failed is set). */
uf_finding *uf__findings_add(uf_findings *findings, uf_finding_id id, uf_finding_place place,
                             const char *option, const char *message, const char *fix);

/* By source, cell, line; what is equal keeps its order. */
void uf__findings_sort(uf_findings *findings);

#endif
