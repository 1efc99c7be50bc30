/* SPDX-License-Identifier: MIT
 *
 * Findings on one settings string: first what the parser refuses, or else what it accepts with a
 * twist, then what accepted options do together. No lock. */
#include "advise/check_conf.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "advise/check_repair.h"
#include "base/size.h"

/* At and below this, max_split_size_mb costs more than it saves. */
#define SMALL_SPLIT_BYTES (64 * UF_MIB)
#define ITEM_MAX 64

typedef struct judge {
    uf_check *check;
    const uf_setup *setup;
    const char *text;
    bool is_at_import;
    const char *fix;
    uint32_t said; /* bit (1 << id) of finding ids below 32 that were said */
    uf_conf_item items[ITEM_MAX];
    size_t item_count;
} judge;

static const char *say(judge *at, uf_finding_id id, const char *option, const char *message)
{
    uf__findings_add(&at->check->findings, id, at->setup->place, option, message, at->fix);
    at->said |= id < 32 ? UINT32_C(1) << id : 0;
    return message;
}

static bool has_said(const judge *at, uf_finding_id id)
{
    return id < 32 && (at->said & (UINT32_C(1) << id)) != 0;
}

static bool has_quotes(const char *text)
{
    return strpbrk(text, "\"'`") != NULL || strstr(text, "\xE2\x80\x9C") != NULL ||
           strstr(text, "\xE2\x80\x9D") != NULL || strstr(text, "\xE2\x80\x98") != NULL ||
           strstr(text, "\xE2\x80\x99") != NULL;
}

/* No option in it, and something of a path or sentence. */
static bool is_foreign(const char *text)
{
    uf_meaning meaning;
    uf__meaning_read(text, &meaning);
    for (size_t i = 0; i < meaning.count; i++) {
        if (meaning.items[i].option != NULL) {
            return false;
        }
    }
    return strpbrk(text, "/\\") != NULL || meaning.count > 3;
}

/* What a user sees of a fault, and when. */
static const char *consequence(judge *at, uf_conf_exception exception)
{
    static const char *const names[] = {
        [UF_CONF_RAISES_NOTHING] = "an error",
        [UF_CONF_RAISES_VALUE_ERROR] = "ValueError",
        [UF_CONF_RAISES_INDEX_ERROR] = "IndexError",
        [UF_CONF_RAISES_RUNTIME_ERROR] = "RuntimeError",
        [UF_CONF_ABORTS_IMPORT] = "an abort",
    };
    uf_findings *texts = &at->check->findings;
    const char *version = at->check->version;
    if (exception == UF_CONF_ABORTS_IMPORT) {
        return uf__findings_print(texts,
                                  "PyTorch %s aborts the process in `import torch` (SIGABRT, exit "
                                  "code 134)",
                                  version);
    }
    return uf__findings_print(texts, "PyTorch %s raises %s %s", version, names[exception],
                              at->is_at_import ? "when CUDA is initialised" : "in this call");
}

/* The parser's own words, without where it says it. */
static const char *detail_of(const uf_error *error)
{
    const char *colon = strstr(error->text, ": ");
    return strncmp(error->text, "settings string, offset", 23) == 0 && colon != NULL ? colon + 2
                                                                                     : error->text;
}

static size_t word_end(const char *text, size_t at)
{
    while (text[at] != '\0' && strchr(",:[]", text[at]) == NULL) {
        at++;
    }
    return at;
}

/* The name to show for the item at an offset of the string. */
static const char *name_at(judge *at, size_t offset)
{
    size_t length = strlen(at->text);
    offset = offset > length ? length : offset;
    offset += strspn(at->text + offset, "\"'`");
    size_t end = word_end(at->text, offset);
    size_t stop = offset + strcspn(at->text + offset, "=; \"'");
    end = stop < end ? stop : end;
    end = end - offset > 60 ? offset + 60 : end;
    return uf__findings_copy(&at->check->findings, at->text + offset, end - offset);
}

/* Options with nothing but blanks between them. */
static bool has_blanks_between(const char *text, const uf_meaning *meaning)
{
    for (size_t i = 1; i < meaning->count; i++) {
        size_t at = meaning->items[i].name_offset;
        size_t end = meaning->items[i - 1].value_offset + meaning->items[i - 1].value_length;
        if (end < at && strspn(text + end, " \t") == at - end) {
            return true;
        }
    }
    return false;
}

/* Says that the process aborts, and by which slip. */
static void say_abort(judge *at, const uf_conf_report *report)
{
    uf_findings *texts = &at->check->findings;
    const char *what = consequence(at, UF_CONF_ABORTS_IMPORT);
    const char *equals = strchr(at->text, '=');
    uf_meaning meaning;
    uf__meaning_read(at->text, &meaning);
    const char *name = name_at(at, 0);
    for (size_t i = 0; i < meaning.count; i++) {
        if (meaning.items[i].option != NULL && meaning.items[i].value_length == 0) {
            name = meaning.items[i].option->name;
        }
    }
    const char *why;
    if (strchr(at->text, ';') != NULL) {
        why = "options are separated by ',' and not by ';'";
    } else if (equals != NULL) {
        why = "name and value are separated by ':' and not by '='";
    } else if (has_blanks_between(at->text, &meaning)) {
        why = "blanks are dropped and separate nothing; options are separated by ','";
    } else if (strchr(at->text, '[') != NULL && strchr(at->text, ']') == NULL) {
        why = "a list needs the ']' that ends it";
    } else if (strstr(at->text, ",,") != NULL || at->text[0] == ',') {
        why = "there is a ',' too many, which shifts all that follows";
    } else {
        why =
            uf__findings_print(texts, "%s has no value; every option is written name:value", name);
    }
    (void)report;
    say(at, UF_FINDING_ABORTS_IMPORT, name, uf__findings_print(texts, "%s: %s", what, why));
}

/* Which finding an unknown name is. */
static uf_finding_id unknown_kind(const judge *at, size_t offset)
{
    const char *word = at->text + offset;
    size_t length = word_end(at->text, offset) - offset;
    size_t name_length = strcspn(word, "=; \t");
    name_length = name_length > length ? length : name_length;
    const uf_conf_option *known = uf__conf_option_find(word, name_length, UF_CONF_2_11, 0);
    if (length == 0) {
        return UF_FINDING_EMPTY_ITEM;
    }
    if (known != NULL && !uf__conf_option_exists(known, at->check->grammar, at->check->release)) {
        return UF_FINDING_NEWER_OPTION;
    }
    bool has_wrong = memchr(word, '=', length) != NULL || memchr(word, ';', length) != NULL;
    bool follows_semicolon = offset > 0 && strchr(at->text, ';') != NULL;
    return (has_wrong && (known != NULL || name_length < length)) || follows_semicolon
               ? UF_FINDING_WRONG_SEPARATOR
               : UF_FINDING_UNKNOWN_OPTION;
}

static uf_finding_id fault_kind(const judge *at, const uf_conf_report *report)
{
    const char *rest = at->text + report->offset_bytes;
    size_t length = word_end(at->text, report->offset_bytes) - report->offset_bytes;
    switch (report->fault) {
    case UF_CONF_FAULT_UNKNOWN_OPTION:
        return unknown_kind(at, report->offset_bytes);
    case UF_CONF_FAULT_MISSING_TOKEN:
        return strchr(at->text, '=') != NULL ? UF_FINDING_WRONG_SEPARATOR
                                             : UF_FINDING_MISSING_VALUE;
    case UF_CONF_FAULT_SEPARATOR:
        return UF_FINDING_WRONG_SEPARATOR;
    case UF_CONF_FAULT_BOOLEAN:
        return memchr(rest, ';', length) != NULL ? UF_FINDING_WRONG_SEPARATOR
                                                 : UF_FINDING_WRONG_BOOLEAN;
    case UF_CONF_FAULT_BACKEND:
        return at->is_at_import ? UF_FINDING_WRONG_BACKEND : UF_FINDING_BACKEND_TOO_LATE;
    case UF_CONF_FAULT_NOT_A_NUMBER:
    case UF_CONF_FAULT_NUMBER_OVERFLOW:
    case UF_CONF_FAULT_RANGE:
    case UF_CONF_FAULT_NONE:
        break;
    }
    return UF_FINDING_WRONG_VALUE;
}

static void say_fault(judge *at, const uf_conf_report *report, const uf_error *error)
{
    uf_findings *texts = &at->check->findings;
    const char *what = consequence(at, report->exception);
    if (is_foreign(at->text)) {
        say(at, UF_FINDING_FOREIGN_TEXT, "",
            uf__findings_print(texts,
                               "%s: this is no settings string but a path or some other text; the "
                               "variable holds name:value,name:value",
                               report->exception == UF_CONF_ABORTS_IMPORT
                                   ? consequence(at, UF_CONF_ABORTS_IMPORT)
                                   : what));
        return;
    }
    if (has_quotes(at->text)) {
        say(at, UF_FINDING_QUOTES_INSIDE, name_at(at, 0),
            uf__findings_print(texts,
                               "%s: the quotes reach PyTorch as part of the string; they must "
                               "stand around it for the shell, or not at all",
                               what));
        return;
    }
    if (report->exception == UF_CONF_ABORTS_IMPORT) {
        say_abort(at, report);
        return;
    }
    uf_finding_id id = fault_kind(at, report);
    const char *option = report->option != UF_CONF_OPTION_NONE
                             ? uf__conf_option_at(report->option)->name
                             : name_at(at, report->offset_bytes);
    const char *extra = "";
    const char *detail = detail_of(error);
    if (id == UF_FINDING_WRONG_SEPARATOR && strchr(at->text, ';') != NULL &&
        strstr(detail, "';'") == NULL) {
        extra = "; options are separated by ',' and not by ';'";
    } else if (id == UF_FINDING_WRONG_SEPARATOR && strchr(at->text, '=') != NULL &&
               strstr(detail, "':'") == NULL) {
        extra = "; name and value are separated by ':' and not by '='";
    }
    say(at, id, option, uf__findings_print(texts, "%s: %s%s", what, detail, extra));
}

/* The parser stops at its first fault: what other items would be refused alone, too? */
static void say_further_faults(judge *at, const uf_conf_report *first)
{
    uf_meaning meaning;
    uf_findings *texts = &at->check->findings;
    uf__meaning_read(at->text, &meaning);
    for (size_t i = 0; i < meaning.count; i++) {
        const uf_meant *item = &meaning.items[i];
        size_t end = item->value_offset + item->value_length;
        bool is_first = first->offset_bytes >= item->name_offset &&
                        (first->offset_bytes < end || item->value_length == 0);
        if (item->option == NULL || item->value_length == 0 || is_first) {
            continue;
        }
        const char *alone = uf__findings_print(
            texts, "%.*s:%.*s", (int)item->name_length, at->text + item->name_offset,
            (int)item->value_length, at->text + item->value_offset);
        uf_conf conf;
        uf_conf_report report;
        uf_error error = {0};
        uf_conf_reading reading = {.grammar = at->check->grammar,
                                   .release = at->check->release,
                                   .is_at_import = at->is_at_import};
        uf__conf_init(&conf);
        if (uf__conf_read(&conf, alone, &reading, &report, &error) != UF_ERROR_CONF) {
            continue;
        }
        const char *whole = at->text;
        at->text = alone;
        uf_finding_id id = fault_kind(at, &report);
        at->text = whole;
        if (report.exception != UF_CONF_ABORTS_IMPORT) {
            const char *name = report.option != UF_CONF_OPTION_NONE
                                   ? uf__conf_option_at(report.option)->name
                                   : item->option->name;
            say(at, id, name,
                uf__findings_print(texts, "this would be refused as well: %s", detail_of(&error)));
        }
    }
}

static void collect_item(void *context, const uf_conf_item *item)
{
    judge *at = context;
    if (at->item_count < ITEM_MAX) {
        at->items[at->item_count++] = *item;
    }
}

static const char *span(judge *at, size_t start, size_t end)
{
    return uf__findings_copy(&at->check->findings, at->text + start, end - start);
}

/* What an accepted item means other than it says. */
static void say_oddities(judge *at, const uf_conf_item *item)
{
    uf_findings *texts = &at->check->findings;
    const char *whole = span(at, item->offset_bytes, item->end_offset_bytes);
    if ((item->oddities & UF_CONF_ODD_IGNORED) != 0) {
        say(at, UF_FINDING_IGNORED_ITEM, whole,
            uf__findings_print(texts,
                               "PyTorch %s ignores '%s' without a word, because there is no ':' "
                               "and value in it",
                               at->check->version, whole));
        return;
    }
    const char *name = uf__conf_option_at(item->option)->name;
    const char *value = span(at, item->value_offset_bytes, item->end_offset_bytes);
    if ((item->oddities & UF_CONF_ODD_SEPARATOR) != 0 &&
        !has_said(at, UF_FINDING_UNCHECKED_SEPARATOR)) {
        say(at, UF_FINDING_UNCHECKED_SEPARATOR, name,
            uf__findings_print(texts,
                               "PyTorch %s does not look at separators, so this works by accident; "
                               "2.9 and before refuse it. Write name:value,name:value",
                               at->check->version));
    }
    if ((item->oddities & UF_CONF_ODD_WRAPPED) != 0) {
        say(at, UF_FINDING_HUGE_NUMBER, name,
            uf__findings_print(texts,
                               "the negative number '%s' is read as a huge one, so %s is "
                               "practically unlimited",
                               value, name));
    } else if ((item->oddities & UF_CONF_ODD_CLAMPED) != 0) {
        say(at, UF_FINDING_HUGE_NUMBER, name,
            uf__findings_print(texts,
                               "'%s' MB is cut to the largest number possible, which is no "
                               "limit at all",
                               value));
    } else if ((item->oddities & UF_CONF_ODD_TRAILING) != 0) {
        size_t digits = strspn(value, "+-.0123456789eE");
        say(at, UF_FINDING_DROPPED_TEXT, name,
            uf__findings_print(
                texts,
                "only '%.*s' of '%s' is read, the rest is dropped without a "
                "word%s",
                (int)digits, value, value,
                strchr(value, ';') != NULL ? "; options are separated by ',' and not by ';'" : ""));
    }
    if ((item->oddities & UF_CONF_ODD_REPEATED) != 0) {
        say(at, UF_FINDING_REPEATED_OPTION, name,
            uf__findings_print(texts, "%s is set twice in this string; the last one, %s, counts",
                               name, value));
    }
}

static bool is_named(const uf_conf_report *report, uf_conf_option_id id)
{
    return (report->named & (UINT32_C(1) << id)) != 0;
}

static bool has_effect_of_division(const uf_conf *conf)
{
    for (size_t i = 0; i < UF_CONF_DIVISION_COUNT; i++) {
        if (conf->roundup_power2_divisions[i] > 1) {
            return true;
        }
    }
    return false;
}

static void say_ignored_by_async(judge *at, const uf_conf_report *report)
{
    uf_findings *texts = &at->check->findings;
    const char *names = "";
    const char *first = NULL;
    for (unsigned id = 0; id < UF_CONF_OPTION_COUNT; id++) {
        const uf_conf_option *option = uf__conf_option_at(id);
        bool is_host = id == UF_CONF_PINNED_USE_BACKGROUND_THREADS;
        if (is_named(report, option->id) && option->part == UF_CONF_PART_GENERIC && !is_host) {
            names =
                uf__findings_print(texts, "%s%s%s", names, first == NULL ? "" : ", ", option->name);
            first = first == NULL ? option->name : first;
        }
    }
    if (first != NULL) {
        say(at, UF_FINDING_ASYNC_IGNORES, first,
            uf__findings_print(texts,
                               "with backend:cudaMallocAsync the driver manages the memory; %s "
                               "is ignored and has no effect",
                               names));
    }
}

static void say_split(judge *at, const uf_conf *conf, const uf_conf_report *report)
{
    uf_findings *texts = &at->check->findings;
    bool has_split = is_named(report, UF_CONF_MAX_SPLIT_SIZE);
    if (conf->is_expandable && has_split) {
        say(at, UF_FINDING_EXPANDABLE_WITH_SPLIT, "max_split_size_mb",
            "with expandable_segments:True, max_split_size_mb is mostly pointless: there are no "
            "separate segments to keep whole, and what it still does is to refuse cached blocks to "
            "smaller requests. Leave it out");
    } else if (has_split && conf->max_split_size_bytes <= SMALL_SPLIT_BYTES) {
        unsigned long long mib = conf->max_split_size_bytes / UF_MIB;
        say(at, UF_FINDING_SMALL_SPLIT, "max_split_size_mb",
            uf__findings_print(
                texts,
                "accepted, but harmful as a default: every request of %llu MiB or more gets a "
                "segment of its own, which only requests up to %llu MiB smaller may reuse, so "
                "reserved memory and driver calls grow; smaller requests behave as before",
                mib, (unsigned long long)(conf->max_non_split_rounding_bytes / UF_MIB)));
    }
    if (is_named(report, UF_CONF_MAX_NON_SPLIT_ROUNDING) &&
        conf->max_split_size_bytes == UF_UNLIMITED) {
        say(at, UF_FINDING_ROUNDING_WITHOUT_SPLIT, "max_non_split_rounding_mb",
            "does nothing without max_split_size_mb: every block may be split");
    }
}

static void say_threshold(judge *at, const uf_conf *conf, const uf_conf_report *report)
{
    uf_findings *texts = &at->check->findings;
    /* before 2.10 a fraction of 1.0 arms it as well, but no string can set one */
    bool has_limit = conf->per_process_memory_fraction < 1.0 || at->check->has_fraction;
    if (!is_named(report, UF_CONF_GARBAGE_COLLECTION_THRESHOLD) || has_limit) {
        return;
    }
    bool has_option =
        uf__conf_option_exists(uf__conf_option_at(UF_CONF_PER_PROCESS_MEMORY_FRACTION),
                               at->check->grammar, at->check->release);
    say(at, UF_FINDING_THRESHOLD_WITHOUT_FRACTION, "garbage_collection_threshold",
        uf__findings_print(
            texts,
            "does nothing (inert): it is a share of the memory limit and needs a "
            "memory fraction below 1, by %s"
            "torch.cuda.set_per_process_memory_fraction(0.95). It does not keep usage "
            "below %g %% of the GPU either%s",
            has_option ? "per_process_memory_fraction:0.95 or " : "",
            conf->garbage_collection_threshold * 100,
            conf->is_expandable ? ", and expandable segments are none of what it gives back" : ""));
}

/* What accepted options really do, alone and together. */
static void say_effects(judge *at, const uf_conf *conf, const uf_conf_report *report)
{
    if (conf->is_async_backend) {
        say_ignored_by_async(at, report);
        return;
    }
    say_split(at, conf, report);
    say_threshold(at, conf, report);
    if (is_named(report, UF_CONF_ROUNDUP_POWER2_DIVISIONS) && !has_effect_of_division(conf)) {
        say(at, UF_FINDING_ROUNDUP_INERT, "roundup_power2_divisions",
            "does nothing: 0 and 1 round to 512 bytes, as without it; 2, 4 or 8 steps between two "
            "powers of two do something");
    }
    if (is_named(report, UF_CONF_PINNED_NUM_REGISTER_THREADS) && !conf->has_host_register) {
        say(at, UF_FINDING_THREADS_WITHOUT_REGISTER, "pinned_num_register_threads",
            "does nothing without pinned_use_cuda_host_register:True");
    }
    if (!at->is_at_import && is_named(report, UF_CONF_PER_PROCESS_MEMORY_FRACTION)) {
        say(at, UF_FINDING_FRACTION_AT_RUN_TIME, "per_process_memory_fraction",
            "checked, and without effect: it is applied only when a device is set up; call "
            "torch.cuda.set_per_process_memory_fraction instead");
    }
}

bool uf__check_conf(uf_check *check, const uf_setup *setup, bool is_at_import, uf_conf *conf,
                    uf_conf_report *report)
{
    judge at = {.check = check, .setup = setup, .text = setup->value, .is_at_import = is_at_import};
    const char *meant = setup->intended != NULL ? setup->intended : setup->value;
    uf_repair repair = {check->grammar, check->release, is_at_import, check->has_fraction};
    uf_conf_reading reading = {.grammar = check->grammar,
                               .release = check->release,
                               .is_at_import = is_at_import,
                               .on_item = collect_item,
                               .context = &at};
    uf_error error = {0};
    at.fix = uf__setup_fix(&check->findings, setup, uf__repair(&repair, meant, &check->findings));
    uf_status status = uf__conf_read(conf, setup->value, &reading, report, &error);
    if (status == UF_ERROR_HOST_MEMORY) {
        check->findings.has_failed = true;
        return false;
    }
    if (status != UF_OK) {
        say_fault(&at, report, &error);
        if (!has_said(&at, UF_FINDING_FOREIGN_TEXT)) {
            say_further_faults(&at, report);
        }
        return false;
    }
    for (size_t i = 0; i < at.item_count; i++) {
        say_oddities(&at, &at.items[i]);
    }
    say_effects(&at, conf, report);
    return true;
}
