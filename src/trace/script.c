/* SPDX-License-Identifier: MIT
 *
 * Reads scripts (docs/script.md) into a builder. Owns the names of a script and what they stand
 * for at the line being read. Must not know the allocator: it writes down requests, the replay
 * decides. No lock: one reader, one thread. */
#include "trace/script.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "trace/array.h"

#define LINE_MAX_BYTES ((size_t)4096)
#define FIRST_ADDR UINT64_C(0x7f0000000000)
#define ADDR_END (UINT64_C(1) << 63)
#define ADDR_GRANULE_BYTES UINT64_C(512)
#define SEGMENT_MIN_BYTES (10 * UF_MIB) /* from here on a request gets a segment of its own */
#define SEGMENT_GRANULE_BYTES (2 * UF_MIB)

/* Words of a command, its own name not counted. */
enum { ARGUMENTS_MAX = 2 };

/* What a name stands for; line numbers for messages. */
typedef struct holding {
    uint64_t addr;
    uint64_t size_bytes;
    uint64_t stream;
    uint32_t site;
    bool is_allocated;
    bool is_used_elsewhere; /* on another stream: its free completes at the next sync */
    uint64_t alloc_line;    /* 0 = never */
    uint64_t free_line;     /* 0 = never */
} holding;

typedef struct range {
    uint64_t addr;
    uint64_t size_bytes;
    uint32_t site;
} range;

typedef struct ranges {
    range *items;
    uint64_t count;
    uint64_t capacity;
} ranges;

typedef struct script {
    uf__input *input;
    uf_builder *builder;
    uf_error *error;
    uint64_t line; /* 1 = first */
    char text[LINE_MAX_BYTES + 1];
    char *arguments[ARGUMENTS_MAX];
    uint64_t stream;
    uint64_t next_addr;
    holding *holdings; /* by the string id of the name */
    uint64_t holding_count;
    uint64_t holding_capacity;
    ranges segments; /* the free-segment lines, until the first other event */
    ranges waiting;  /* freed while in use on another stream */
    uint64_t card_line, limit_line, conf_line;
    bool has_events;
} script;

static uf_status fail_host_memory(script *s)
{
    return uf__error_set(s->error, UF_ERROR_HOST_MEMORY,
                         "line %" PRIu64 " of the script: the host has no memory left", s->line);
}

static bool ranges_add(ranges *list, range item)
{
    if (list->count == list->capacity) {
        range *items = uf__array_grow(list->items, &list->capacity, list->count + 1, sizeof item);
        if (items == NULL) {
            return false;
        }
        list->items = items;
    }
    list->items[list->count++] = item;
    return true;
}

/* A site of the current stream; label is a string id that becomes its metadata, so that viewers
 * show the name. */
static bool make_site(script *s, uint64_t stream, uint32_t label, uint32_t action_name,
                      uint32_t *id)
{
    uf_site site;
    memset(&site, 0, sizeof site);
    site.stream = stream;
    site.stack = UF_NONE;
    site.compile_context = UF_NONE;
    site.user_metadata = label;
    site.action_name = action_name;
    return uf__builder_site(s->builder, &site, id);
}

static bool add_event(script *s, uf_action action, range item)
{
    uf_event event = {.addr = item.addr,
                      .size_bytes = item.size_bytes,
                      .time_us = UF_TIME_UNKNOWN,
                      .site = item.site,
                      .action = (uint8_t)action};
    return uf__builder_event(s->builder, &event);
}

/* The segments that exist at the start: all of them requested, then all of them freed. Each is of a
 * size that gets a segment of its own, so they end up cached and wholly free. */
static uf_status flush_segments(script *s)
{
    static const uf_action ACTIONS[] = {UF_ACTION_FREE_REQUESTED, UF_ACTION_FREE_COMPLETED};
    bool is_stored = true;
    s->has_events = true;
    for (uint64_t i = 0; is_stored && i < s->segments.count; i++) {
        is_stored = add_event(s, UF_ACTION_ALLOC, s->segments.items[i]);
    }
    for (uint64_t i = 0; is_stored && i < s->segments.count; i++) {
        for (size_t j = 0; is_stored && j < 2; j++) {
            is_stored = add_event(s, ACTIONS[j], s->segments.items[i]);
        }
    }
    s->segments.count = 0;
    return is_stored ? UF_OK : fail_host_memory(s);
}

static uf_status parse_size(script *s, const char *command, const char *text, uint64_t *bytes)
{
    uf_error reason = {.status = UF_OK};
    uint64_t parsed;
    uf_status status = uf__size_parse(text, &parsed, &reason);
    if (status != UF_OK) {
        return uf__error_set(s->error, UF_ERROR_BAD_INPUT, "line %" PRIu64 ": %s: %.200s", s->line,
                             command, reason.text);
    }
    if (parsed == 0) {
        return uf__error_set(s->error, UF_ERROR_BAD_INPUT,
                             "line %" PRIu64 ": %s: a size must be at least 1 byte", s->line,
                             command);
    }
    *bytes = parsed;
    return UF_OK;
}

static uf_status parse_stream(script *s, const char *command, const char *text, uint64_t *stream)
{
    uint64_t value = 0;
    bool is_number = text[0] != '\0';
    for (const char *at = text; is_number && *at != '\0'; at++) {
        is_number = *at >= '0' && *at <= '9' && uf__multiply_checked(value, 10, &value) &&
                    uf__add_checked(value, (uint64_t)(*at - '0'), &value);
    }
    if (!is_number) {
        return uf__error_set(s->error, UF_ERROR_BAD_INPUT,
                             "line %" PRIu64 ": %s: '%.80s' is no stream; streams are whole "
                             "numbers, 0 is the default stream",
                             s->line, command, text);
    }
    *stream = value;
    return UF_OK;
}

/* Hands out device addresses that never overlap. */
static uf_status take_addr(script *s, uint64_t size_bytes, uint64_t *addr)
{
    uint64_t end;
    if (!uf__round_up_checked(size_bytes, ADDR_GRANULE_BYTES, &end) ||
        end > ADDR_END - s->next_addr) {
        return uf__error_set(s->error, UF_ERROR_BAD_INPUT,
                             "line %" PRIu64 ": with these %" PRIu64
                             " bytes the script has asked for more than 2^63 bytes in all",
                             s->line, size_bytes);
    }
    *addr = s->next_addr;
    s->next_addr += end;
    return UF_OK;
}

/* Finds or creates what a name stands for; the pointer is good until the next call. */
static uf_status find_holding(script *s, const char *name, uint32_t *label, holding **found)
{
    if (!uf__builder_string(s->builder, name, strlen(name), label)) {
        return fail_host_memory(s);
    }
    if (*label >= s->holding_capacity) {
        holding *grown =
            uf__array_grow(s->holdings, &s->holding_capacity, *label + UINT64_C(1), sizeof *grown);
        if (grown == NULL) {
            return fail_host_memory(s);
        }
        s->holdings = grown;
    }
    while (s->holding_count <= *label) {
        s->holdings[s->holding_count++] = (holding){.addr = 0};
    }
    *found = &s->holdings[*label];
    return UF_OK;
}

/* The same for a command that needs the name to be allocated. */
static uf_status find_allocated(script *s, const char *command, const char *name, holding **found)
{
    uint32_t label;
    holding *h = NULL;
    uf_status status = find_holding(s, name, &label, &h);
    if (status != UF_OK) {
        return status;
    }
    if (h->is_allocated) {
        *found = h;
        return UF_OK;
    }
    if (h->alloc_line == 0) {
        return uf__error_set(s->error, UF_ERROR_BAD_INPUT,
                             "line %" PRIu64 ": %s %.80s: nothing of that name has been "
                             "allocated; 'alloc %.80s SIZE' must come first",
                             s->line, command, name, name);
    }
    return uf__error_set(s->error, UF_ERROR_BAD_INPUT,
                         "line %" PRIu64 ": %s %.80s: it was freed in line %" PRIu64
                         " already; 'alloc %.80s SIZE' may use the name again",
                         s->line, command, name, h->free_line, name);
}

/* A setting that may stand once. */
static uf_status claim_once(script *s, const char *command, uint64_t *claimed_line)
{
    if (*claimed_line != 0) {
        return uf__error_set(s->error, UF_ERROR_BAD_INPUT,
                             "line %" PRIu64 ": %s was given in line %" PRIu64
                             " already; a script says it once",
                             s->line, command, *claimed_line);
    }
    *claimed_line = s->line;
    return UF_OK;
}

static uf_status do_card(script *s)
{
    uf_status status = claim_once(s, "card", &s->card_line);
    return status != UF_OK ? status
                           : parse_size(s, "card", s->arguments[0],
                                        &uf__builder_trace(s->builder)->script_card_bytes);
}

static uf_status do_limit(script *s)
{
    uf_status status = claim_once(s, "limit", &s->limit_line);
    return status != UF_OK ? status
                           : parse_size(s, "limit", s->arguments[0],
                                        &uf__builder_trace(s->builder)->script_limit_bytes);
}

static uf_status do_conf(script *s)
{
    uf_status status = claim_once(s, "conf", &s->conf_line);
    if (status != UF_OK) {
        return status;
    }
    uf_trace_settings *settings = &uf__builder_trace(s->builder)->settings;
    const char *text = s->arguments[0];
    if (!uf__builder_string(s->builder, text, strlen(text), &settings->conf)) {
        return fail_host_memory(s);
    }
    settings->is_present = true;
    settings->has_conf = true;
    return UF_OK;
}

static uf_status do_stream(script *s)
{
    return parse_stream(s, "stream", s->arguments[0], &s->stream);
}

static uf_status do_free_segment(script *s)
{
    if (s->has_events) {
        return uf__error_set(s->error, UF_ERROR_BAD_INPUT,
                             "line %" PRIu64 ": free-segment: these lines describe the start and "
                             "stand before the first alloc, empty-cache and sync",
                             s->line);
    }
    range item;
    uf_status status = parse_size(s, "free-segment", s->arguments[0], &item.size_bytes);
    if (status != UF_OK) {
        return status;
    }
    if (item.size_bytes < SEGMENT_MIN_BYTES || item.size_bytes % SEGMENT_GRANULE_BYTES != 0) {
        return uf__error_set(s->error, UF_ERROR_BAD_INPUT,
                             "line %" PRIu64 ": free-segment %.80s: a segment that one request "
                             "can leave behind is a multiple of 2 MiB, from 10 MiB up",
                             s->line, s->arguments[0]);
    }
    status = take_addr(s, item.size_bytes, &item.addr);
    if (status != UF_OK) {
        return status;
    }
    uint32_t label;
    if (!uf__builder_string(s->builder, "free-segment", strlen("free-segment"), &label) ||
        !make_site(s, s->stream, label, UF_NONE, &item.site) || !ranges_add(&s->segments, item)) {
        return fail_host_memory(s);
    }
    return UF_OK;
}

static uf_status do_alloc(script *s)
{
    const char *name = s->arguments[0];
    uint32_t label;
    holding *h = NULL;
    uint64_t size_bytes = 0;
    uint64_t addr = 0;
    uf_status status = find_holding(s, name, &label, &h);
    if (status == UF_OK && h->is_allocated) {
        status = uf__error_set(s->error, UF_ERROR_BAD_INPUT,
                               "line %" PRIu64 ": alloc %.80s: it is allocated since line %" PRIu64
                               "; free it first or take another name",
                               s->line, name, h->alloc_line);
    }
    if (status == UF_OK) {
        status = parse_size(s, "alloc", s->arguments[1], &size_bytes);
    }
    if (status == UF_OK) {
        status = take_addr(s, size_bytes, &addr);
    }
    if (status == UF_OK) {
        status = flush_segments(s);
    }
    if (status != UF_OK) {
        return status;
    }
    *h = (holding){.addr = addr,
                   .size_bytes = size_bytes,
                   .stream = s->stream,
                   .is_allocated = true,
                   .alloc_line = s->line};
    if (!make_site(s, s->stream, label, UF_NONE, &h->site) ||
        !add_event(s, UF_ACTION_ALLOC, (range){addr, size_bytes, h->site})) {
        return fail_host_memory(s);
    }
    return UF_OK;
}

static uf_status do_free(script *s)
{
    holding *h = NULL;
    uf_status status = find_allocated(s, "free", s->arguments[0], &h);
    if (status != UF_OK) {
        return status;
    }
    range item = {h->addr, h->size_bytes, h->site};
    bool is_stored = add_event(s, UF_ACTION_FREE_REQUESTED, item) &&
                     (h->is_used_elsewhere ? ranges_add(&s->waiting, item)
                                           : add_event(s, UF_ACTION_FREE_COMPLETED, item));
    h->is_allocated = false;
    h->free_line = s->line;
    return is_stored ? UF_OK : fail_host_memory(s);
}

static uf_status do_use_on(script *s)
{
    holding *h = NULL;
    uint64_t stream = 0;
    uf_status status = find_allocated(s, "use-on", s->arguments[0], &h);
    if (status == UF_OK) {
        status = parse_stream(s, "use-on", s->arguments[1], &stream);
    }
    if (status == UF_OK && stream != h->stream) {
        h->is_used_elsewhere = true; /* the own stream needs no waiting */
    }
    return status;
}

static uf_status do_sync(script *s)
{
    uf_status status = flush_segments(s);
    for (uint64_t i = 0; status == UF_OK && i < s->waiting.count; i++) {
        if (!add_event(s, UF_ACTION_FREE_COMPLETED, s->waiting.items[i])) {
            status = fail_host_memory(s);
        }
    }
    s->waiting.count = 0;
    return status;
}

static uf_status do_empty_cache(script *s)
{
    uf_status status = flush_segments(s);
    if (status != UF_OK) {
        return status;
    }
    uint32_t action_name;
    uint32_t site;
    if (!uf__builder_string(s->builder, UF_SCRIPT_EMPTY_CACHE, strlen(UF_SCRIPT_EMPTY_CACHE),
                            &action_name) ||
        !make_site(s, s->stream, UF_NONE, action_name, &site) ||
        !add_event(s, UF_ACTION_OTHER, (range){0, 0, site})) {
        return fail_host_memory(s);
    }
    return UF_OK;
}

/* The language. takes_line: the last argument is the rest of the line, blanks included. */
static const struct command {
    const char *name;
    int argument_count;
    bool takes_line;
    uf_status (*run)(script *);
    const char *usage;
} COMMANDS[] = {
    {"card", 1, true, do_card, "card SIZE"},
    {"limit", 1, true, do_limit, "limit SIZE"},
    {"conf", 1, true, do_conf, "conf SETTINGS"},
    {"stream", 1, false, do_stream, "stream NUMBER"},
    {"free-segment", 1, true, do_free_segment, "free-segment SIZE"},
    {"segment", 1, true, do_free_segment, "segment SIZE"},
    {"alloc", 2, true, do_alloc, "alloc NAME SIZE"},
    {"free", 1, false, do_free, "free NAME"},
    {"use-on", 2, false, do_use_on, "use-on NAME STREAM"},
    {"sync", 0, false, do_sync, "sync"},
    {"empty-cache", 0, false, do_empty_cache, "empty-cache"},
};
enum { COMMAND_COUNT = sizeof COMMANDS / sizeof COMMANDS[0] };

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Ends the line where a comment begins ('#' at its start or after a blank), and before the blanks
 * and the carriage return at its end. */
static void strip_line(char *text)
{
    size_t length = 0;
    while (text[length] != '\0' &&
           !(text[length] == '#' && (length == 0 || is_blank(text[length - 1])))) {
        length++;
    }
    while (length > 0 && (is_blank(text[length - 1]) || text[length - 1] == '\r')) {
        length--;
    }
    text[length] = '\0';
}

/* Cuts the next word off; "" at the end. */
static char *take_word(char **rest)
{
    char *word = *rest;
    while (is_blank(*word)) {
        word++;
    }
    char *end = word;
    while (*end != '\0' && !is_blank(*end)) {
        end++;
    }
    *rest = end;
    if (*end != '\0') {
        *end = '\0';
        *rest = end + 1;
    }
    return word;
}

static char *take_rest(char **rest)
{
    char *text = *rest;
    while (is_blank(*text)) {
        text++;
    }
    *rest = text + strlen(text);
    return text;
}

static uf_status fail_command(script *s, const char *name)
{
    char allowed[200];
    size_t length = 0;
    for (size_t i = 0; i < COMMAND_COUNT && length < sizeof allowed; i++) {
        length += (size_t)snprintf(allowed + length, sizeof allowed - length, "%s%s",
                                   i == 0 ? "" : ", ", COMMANDS[i].name);
    }
    return uf__error_set(s->error, UF_ERROR_BAD_INPUT,
                         "line %" PRIu64 ": '%.80s' is no command of a script; there are %s",
                         s->line, name, allowed);
}

static uf_status run_line(script *s)
{
    strip_line(s->text);
    char *rest = s->text;
    const char *name = take_word(&rest);
    if (name[0] == '\0') {
        return UF_OK;
    }
    const struct command *command = COMMANDS;
    while (command < COMMANDS + COMMAND_COUNT && strcmp(name, command->name) != 0) {
        command++;
    }
    if (command == COMMANDS + COMMAND_COUNT) {
        return fail_command(s, name);
    }
    bool has_arguments = true;
    for (int i = 0; i < command->argument_count; i++) {
        bool is_rest = command->takes_line && i == command->argument_count - 1;
        s->arguments[i] = is_rest ? take_rest(&rest) : take_word(&rest);
        has_arguments = has_arguments && s->arguments[i][0] != '\0';
    }
    const char *extra = take_word(&rest);
    if (!has_arguments || extra[0] != '\0') {
        return uf__error_set(s->error, UF_ERROR_BAD_INPUT,
                             "line %" PRIu64 ": %s%.80s; it is written '%s'", s->line,
                             has_arguments ? "too much: " : "something is missing",
                             has_arguments ? extra : "", command->usage);
    }
    return command->run(s);
}

/* Copies the next line, without its end, to s->text. */
static uf_status next_line(script *s, bool *is_there)
{
    uf_status status = uf__input_ensure(s->input, LINE_MAX_BYTES + 1, s->error);
    if (status != UF_OK) {
        return status;
    }
    size_t at_hand = uf__input_at_hand(s->input);
    *is_there = at_hand > 0;
    if (at_hand == 0) {
        return UF_OK;
    }
    s->line++;
    const uint8_t *end = memchr(s->input->cursor, '\n', at_hand);
    size_t length = end != NULL ? (size_t)(end - s->input->cursor) : at_hand;
    if (length > LINE_MAX_BYTES) {
        return uf__error_set(s->error, UF_ERROR_BAD_INPUT,
                             "line %" PRIu64 " of the script is longer than %zu bytes", s->line,
                             LINE_MAX_BYTES);
    }
    memcpy(s->text, s->input->cursor, length);
    s->text[length] = '\0';
    s->input->cursor += length + (end != NULL ? 1 : 0);
    for (size_t i = 0; i < length; i++) {
        uint8_t byte = (uint8_t)s->text[i];
        if ((byte < 0x20 && byte != '\t' && byte != '\r') || byte == 0x7f) {
            return uf__error_set(s->error, UF_ERROR_BAD_INPUT,
                                 "line %" PRIu64 " is no text (byte 0x%02x in column %zu); this "
                                 "is neither a trace nor a script",
                                 s->line, byte, i + 1);
        }
    }
    return UF_OK;
}

/* Editors on some systems put this mark in front of text. */
static uf_status skip_byte_order_mark(script *s)
{
    uf_status status = uf__input_ensure(s->input, 3, s->error);
    if (status == UF_OK && uf__input_at_hand(s->input) >= 3 &&
        memcmp(s->input->cursor, "\xef\xbb\xbf", 3) == 0) {
        s->input->cursor += 3;
    }
    return status;
}

static uf_status read_all(script *s)
{
    if (!uf__builder_device(s->builder, 0)) {
        return fail_host_memory(s);
    }
    uf_status status = skip_byte_order_mark(s);
    while (status == UF_OK) {
        bool is_there;
        status = next_line(s, &is_there);
        if (status == UF_OK && !is_there) {
            return flush_segments(s);
        }
        if (status == UF_OK) {
            status = run_line(s);
        }
    }
    return status;
}

uf_status uf__script_read(uf__input *input, uf_builder *builder, uf_error *error)
{
    script *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return uf__error_set(error, UF_ERROR_HOST_MEMORY,
                             "reading the script: the host has no memory left");
    }
    s->input = input;
    s->builder = builder;
    s->error = error;
    s->next_addr = FIRST_ADDR;
    uf_trace *trace = uf__builder_trace(builder);
    trace->form = UF_FORM_SCRIPT;
    trace->has_device_traces = true;
    uf_status status = read_all(s);
    free(s->holdings);
    free(s->segments.items);
    free(s->waiting.items);
    free(s);
    return status;
}
