/* SPDX-License-Identifier: MIT
 *
 * Divides settings strings by meaning and corrects them. No lock.
 *
 *   max_split_size_mb=128; expandable_segments = true
 *   [name]           |[val] [name]             |[val]      whatever stands between */
#include "advise/check_repair.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/size.h"

#define VALUE_CAPACITY 256
#define TEXT_CAPACITY 2048
/* What is written where max_split_size_mb was so small that it does harm. */
#define USEFUL_SPLIT_MB 64

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool is_quote(char c)
{
    return c == '"' || c == '\'' || c == '`';
}

/* Blanks, quotes, and typographic quotes (three bytes each). */
static size_t skip_dross(const char *text, size_t at)
{
    for (;;) {
        if (isspace((unsigned char)text[at]) || is_quote(text[at])) {
            at++;
        } else if (strncmp(text + at, "\xE2\x80", 2) == 0 && text[at + 2] != '\0') {
            at += 3;
        } else {
            return at;
        }
    }
}

static const uf_conf_option *find_option(const char *name, size_t length, bool *is_exact)
{
    const uf_conf_option *option = uf__conf_option_find(name, length, UF_CONF_2_11, 0);
    *is_exact = option != NULL;
    return option != NULL ? option : uf__conf_option_nearest(name, length, UF_CONF_2_11, 0);
}

/* The end of the value at `at`: of its list, or of its word. */
static size_t value_end(const char *text, size_t at)
{
    if (text[at] == '[') {
        while (text[at] != '\0' && text[at] != ']' && text[at] != ';') {
            at++;
        }
        return text[at] == ']' ? at + 1 : at;
    }
    while (text[at] != '\0' && strchr(",:;=[]&|", text[at]) == NULL && !is_quote(text[at]) &&
           !isspace((unsigned char)text[at]) && strncmp(text + at, "\xE2\x80", 2) != 0) {
        at++;
    }
    return at;
}

static bool starts_option(const char *text, size_t at)
{
    size_t end = at;
    bool is_exact;
    while (is_word(text[end])) {
        end++;
    }
    return end > at && isalpha((unsigned char)text[at]) &&
           find_option(text + at, end - at, &is_exact) != NULL;
}

void uf__meaning_read(const char *text, uf_meaning *meaning)
{
    meaning->count = 0;
    size_t at = 0;
    while (meaning->count < UF_MEANT_MAX) {
        at = skip_dross(text, at);
        while (text[at] != '\0' && !is_word(text[at])) {
            at++;
        }
        if (text[at] == '\0') {
            return;
        }
        uf_meant *item = &meaning->items[meaning->count++];
        memset(item, 0, sizeof *item);
        item->name_offset = at;
        while (is_word(text[at]) || text[at] == '-' || text[at] == '.') {
            at++;
        }
        item->name_length = at - item->name_offset;
        item->option = find_option(text + item->name_offset, item->name_length, &item->is_exact);
        at = skip_dross(text, at);
        bool has_separator = text[at] != '\0' && strchr(":=,[|", text[at]) != NULL;
        size_t value = skip_dross(text, has_separator && text[at] != '[' ? at + 1 : at);
        if (has_separator && text[at] == '[' && memchr(text + at, ']', strlen(text + at)) == NULL &&
            item->option != NULL && item->option->type != UF_CONF_TYPE_DIVISIONS) {
            value = at + 1;
        }
        /* a comma ends an option without value, unless what follows is one */
        if (!has_separator ||
            ((text[at] == ',' || text[at] == '|') && starts_option(text, value))) {
            continue;
        }
        item->separator = text[at];
        item->value_offset = value;
        at = value_end(text, value);
        item->value_length = at - value;
    }
}

static bool is_value(const char *value, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (strcasecmp(value, *words) == 0) {
            return true;
        }
    }
    return false;
}

static bool repair_boolean(char *value)
{
    static const char *const yes[] = {"true", "1",      "yes",     "on", "t",
                                      "y",    "enable", "enabled", NULL};
    static const char *const no[] = {"false", "0",       "no",       "off", "f",
                                     "n",     "disable", "disabled", NULL};
    if (!is_value(value, yes) && !is_value(value, no)) {
        return false;
    }
    snprintf(value, VALUE_CAPACITY, "%s", is_value(value, yes) ? "True" : "False");
    return true;
}

static uint64_t power2_from(uint64_t number)
{
    return number <= 1 ? 1 : UINT64_C(1) << (uf__floor_log2(number - 1) + 1);
}

static bool repair_integer(const uf_repair *repair, const uf_conf_option *option, char *value)
{
    char *end;
    if (!isdigit((unsigned char)value[0])) {
        return false;
    }
    unsigned long long number = strtoull(value, &end, 10);
    if (option->type == UF_CONF_TYPE_MIB && (*end == 'g' || *end == 'G') && number < 1000000) {
        number *= 1024;
    } else if (*end == '.' && option->type != UF_CONF_TYPE_MIB) {
        return false;
    }
    if (option->type == UF_CONF_TYPE_MIB && number >= 1048576 && number % 1048576 == 0) {
        number /= 1048576; /* bytes */
    }
    uint64_t minimum = uf__conf_option_minimum(option, repair->grammar, UINT64_C(20) * UF_MIB);
    number = number < minimum ? minimum : number;
    if (option->type == UF_CONF_TYPE_POWER2) {
        number = number >= option->maximum ? option->maximum : power2_from(number);
    }
    uint64_t maximum = repair->grammar == UF_CONF_2_0 || repair->grammar == UF_CONF_1_10
                           ? INT32_MAX
                           : option->maximum;
    snprintf(value, VALUE_CAPACITY, "%llu", number);
    return number <= maximum;
}

static bool repair_share(const uf_conf_option *option, char *value)
{
    char *comma = strchr(value, ',');
    if (comma != NULL) {
        *comma = '.';
    }
    char *end;
    double share = strtod(value, &end);
    if (end == value) {
        return false;
    }
    if (*end == '%' || (share > 1.0 && share <= 100.0)) {
        share /= 100.0;
    }
    bool is_allowed =
        option->is_open_range ? share > 0.0 && share < 1.0 : share >= 0.0 && share <= 1.0;
    if (is_allowed) {
        snprintf(value, VALUE_CAPACITY, "%.6g", share);
    }
    return is_allowed;
}

static bool repair_backend(char *value)
{
    size_t length = strlen(value);
    if (strcasecmp(value, "native") == 0) {
        snprintf(value, VALUE_CAPACITY, "native");
        return true;
    }
    if (length >= 5 && (strcasestr(value, "async") != NULL)) {
        snprintf(value, VALUE_CAPACITY, "cudaMallocAsync");
        return true;
    }
    return false;
}

/* One pair of a list of divisions, or false: it cannot be read. */
static bool repair_pair(const char *pair, char *out, size_t capacity, size_t *length)
{
    char boundary[24];
    const char *at = pair + strspn(pair, " \t");
    if (*at == '>') {
        snprintf(boundary, sizeof boundary, ">");
        at++;
    } else if (isdigit((unsigned char)*at)) {
        char *end;
        unsigned long long number = strtoull(at, &end, 10);
        number = number > (1ULL << 40) ? 1ULL << 40 : power2_from(number);
        snprintf(boundary, sizeof boundary, "%llu", number);
        at = end;
    } else {
        return false;
    }
    at += strspn(at, " \t:=");
    if (!isdigit((unsigned char)*at)) {
        return false;
    }
    unsigned long long divisions = strtoull(at, NULL, 10);
    divisions = divisions > 1024 ? 1024 : divisions == 0 ? 0 : power2_from(divisions);
    int written = snprintf(out + *length, capacity - *length, "%s%s:%llu", *length <= 1 ? "" : ",",
                           boundary, divisions);
    if (written < 0 || (size_t)written >= capacity - *length) {
        return false;
    }
    *length += (size_t)written;
    return true;
}

static bool repair_divisions(const uf_repair *repair, char *value)
{
    if (value[0] != '[') {
        char *end;
        unsigned long long number = strtoull(value, &end, 10);
        if (end == value || !isdigit((unsigned char)value[0]) || number > 1024) {
            return false;
        }
        snprintf(value, VALUE_CAPACITY, "%llu", (unsigned long long)power2_from(number));
        return true;
    }
    if (repair->grammar == UF_CONF_1_10) {
        return false; /* lists do not exist there */
    }
    char list[VALUE_CAPACITY] = "[";
    size_t length = 1;
    char *rest = value + 1;
    for (char *pair = strsep(&rest, ",]"); pair != NULL; pair = strsep(&rest, ",]")) {
        if (pair[strspn(pair, " \t")] == '\0') {
            continue;
        }
        if (!repair_pair(pair, list, sizeof list - 1, &length)) {
            return false;
        }
    }
    list[length] = '\0'; /* repair_pair has left room for the bracket */
    snprintf(value, VALUE_CAPACITY, "%.*s]", VALUE_CAPACITY - 2, list);
    return true;
}

static bool repair_value(const uf_repair *repair, const uf_conf_option *option, char *value)
{
    switch (option->type) {
    case UF_CONF_TYPE_BOOLEAN:
        return repair_boolean(value);
    case UF_CONF_TYPE_MIB:
    case UF_CONF_TYPE_INTEGER:
    case UF_CONF_TYPE_POWER2:
        return repair_integer(repair, option, value);
    case UF_CONF_TYPE_SHARE:
        return repair_share(option, value);
    case UF_CONF_TYPE_BACKEND:
        return repair_backend(value);
    case UF_CONF_TYPE_DIVISIONS:
        break;
    }
    return repair_divisions(repair, value);
}

typedef struct repaired {
    char values[UF_CONF_OPTION_COUNT][VALUE_CAPACITY];
    bool has[UF_CONF_OPTION_COUNT];
    uf_conf_option_id order[UF_CONF_OPTION_COUNT];
    size_t count;
} repaired;

static void keep(repaired *kept, uf_conf_option_id id, const char *value)
{
    if (!kept->has[id]) {
        kept->order[kept->count++] = id;
    }
    kept->has[id] = true;
    snprintf(kept->values[id], VALUE_CAPACITY, "%s", value);
}

static void drop(repaired *kept, uf_conf_option_id id)
{
    kept->has[id] = false;
    for (size_t i = 0; i < kept->count; i++) {
        if (kept->order[i] == id) {
            memmove(&kept->order[i], &kept->order[i + 1],
                    (kept->count - i - 1) * sizeof kept->order[0]);
            kept->count--;
            return;
        }
    }
}

static bool exists(const uf_repair *repair, uf_conf_option_id id)
{
    return uf__conf_option_exists(uf__conf_option_at(id), repair->grammar, repair->release);
}

/* Takes out what does nothing or harm, and adds what makes the rest work. */
static void improve(const uf_repair *repair, repaired *kept)
{
    if (!repair->is_at_import) { /* a call has no say in these */
        drop(kept, UF_CONF_BACKEND);
        drop(kept, UF_CONF_PER_PROCESS_MEMORY_FRACTION);
    }
    bool is_async =
        kept->has[UF_CONF_BACKEND] && strcmp(kept->values[UF_CONF_BACKEND], "cudaMallocAsync") == 0;
    for (unsigned id = 0; is_async && id < UF_CONF_OPTION_COUNT; id++) {
        if (uf__conf_option_at(id)->part == UF_CONF_PART_GENERIC &&
            id != UF_CONF_PINNED_USE_BACKGROUND_THREADS) {
            drop(kept, (uf_conf_option_id)id);
        }
    }
    bool is_expandable = kept->has[UF_CONF_EXPANDABLE_SEGMENTS] &&
                         strcmp(kept->values[UF_CONF_EXPANDABLE_SEGMENTS], "True") == 0;
    if (is_expandable) {
        drop(kept, UF_CONF_MAX_SPLIT_SIZE);
        drop(kept, UF_CONF_MAX_NON_SPLIT_ROUNDING);
    }
    if (kept->has[UF_CONF_MAX_SPLIT_SIZE] &&
        strtoull(kept->values[UF_CONF_MAX_SPLIT_SIZE], NULL, 10) <= USEFUL_SPLIT_MB) {
        drop(kept, UF_CONF_MAX_SPLIT_SIZE);
        if (exists(repair, UF_CONF_EXPANDABLE_SEGMENTS) && repair->is_at_import) {
            keep(kept, UF_CONF_EXPANDABLE_SEGMENTS, "True");
            is_expandable = true;
        }
    }
    if (!kept->has[UF_CONF_MAX_SPLIT_SIZE]) {
        drop(kept, UF_CONF_MAX_NON_SPLIT_ROUNDING);
    }
    bool has_fraction = repair->has_fraction ||
                        (kept->has[UF_CONF_PER_PROCESS_MEMORY_FRACTION] &&
                         strtod(kept->values[UF_CONF_PER_PROCESS_MEMORY_FRACTION], NULL) < 1);
    if (kept->has[UF_CONF_GARBAGE_COLLECTION_THRESHOLD] && !has_fraction) {
        if (is_expandable || !exists(repair, UF_CONF_PER_PROCESS_MEMORY_FRACTION) ||
            !repair->is_at_import) {
            drop(kept, UF_CONF_GARBAGE_COLLECTION_THRESHOLD);
        } else {
            keep(kept, UF_CONF_PER_PROCESS_MEMORY_FRACTION, "0.95");
        }
    }
    if (kept->has[UF_CONF_ROUNDUP_POWER2_DIVISIONS] &&
        strcmp(kept->values[UF_CONF_ROUNDUP_POWER2_DIVISIONS], "1") == 0) {
        drop(kept, UF_CONF_ROUNDUP_POWER2_DIVISIONS);
    }
    if (!kept->has[UF_CONF_PINNED_USE_HOST_REGISTER]) {
        drop(kept, UF_CONF_PINNED_NUM_REGISTER_THREADS);
    }
}

const char *uf__repair(const uf_repair *repair, const char *text, uf_findings *findings)
{
    uf_meaning meaning;
    repaired kept = {.count = 0};
    size_t known_count = 0;
    uf__meaning_read(text, &meaning);
    for (size_t i = 0; i < meaning.count; i++) {
        const uf_meant *item = &meaning.items[i];
        char value[VALUE_CAPACITY];
        known_count += item->option != NULL;
        if (item->option == NULL || !exists(repair, item->option->id) ||
            item->value_length >= sizeof value) {
            continue;
        }
        memcpy(value, text + item->value_offset, item->value_length);
        value[item->value_length] = '\0';
        if (item->value_length == 0 && item->option->type == UF_CONF_TYPE_BOOLEAN) {
            snprintf(value, sizeof value, "True"); /* whoever names it wants it */
        }
        if (repair_value(repair, item->option, value)) {
            keep(&kept, item->option->id, value);
        }
    }
    size_t kept_count = kept.count;
    improve(repair, &kept);
    if (kept.count == 0) {
        return known_count == 0 || kept_count == 0 ? NULL : "";
    }
    char out[TEXT_CAPACITY];
    size_t length = 0;
    for (size_t i = 0; i < kept.count && length < sizeof out; i++) {
        length +=
            (size_t)snprintf(out + length, sizeof out - length, "%s%s:%s", i == 0 ? "" : ",",
                             uf__conf_option_at(kept.order[i])->name, kept.values[kept.order[i]]);
    }
    uf_conf conf;
    uf_conf_reading reading = {
        .grammar = repair->grammar, .release = repair->release, .is_at_import = true};
    uf__conf_init(&conf);
    if (length >= sizeof out || uf__conf_read(&conf, out, &reading, NULL, NULL) != UF_OK) {
        return NULL;
    }
    return uf__findings_copy(findings, out, length);
}
