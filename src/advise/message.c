/* SPDX-License-Identifier: MIT
 *
 * Groups of equal messages, the worst of them, and series of figures that a log repeats. */
#include "advise/message.h"

#include <string.h>

#include "advise/message_parts.h"
#include "base/size.h"

/* A series that grew by less than this, or by less than a tenth, is no leak. */
#define LEAST_GROWTH_BYTES (32 * UF_MIB)

typedef struct form_entry {
    const char *id;
    unsigned rank;
    const char *text;
} form_entry;

static const form_entry forms[UF_MESSAGE_FORM_COUNT] = {
#define UF_MESSAGE_FORM_ENTRY(name, id, rank, text) [name] = {id, rank, text},
    UF_MESSAGE_FORM_LIST(UF_MESSAGE_FORM_ENTRY)
#undef UF_MESSAGE_FORM_ENTRY
};

const char *uf__message_form_id(uf_message_form form)
{
    return forms[form].id;
}

const char *uf__message_form_text(uf_message_form form)
{
    return forms[form].text;
}

unsigned uf__message_form_rank(uf_message_form form)
{
    return forms[form].rank;
}

static bool is_equal(const uf_message *a, const uf_message *b)
{
    if (a->form != b->form || a->has_device != b->has_device || a->device != b->device ||
        a->signs != b->signs || strcmp(a->name, b->name) != 0) {
        return false;
    }
    for (size_t i = 0; i < UF_FIGURE_COUNT; i++) {
        if (a->figures[i].is_known != b->figures[i].is_known ||
            a->figures[i].bytes != b->figures[i].bytes) {
            return false;
        }
    }
    return true;
}

static uint64_t bytes_of(const uf_message *message, uf_figure_kind kind, uint64_t unknown)
{
    return message->figures[kind].is_known ? message->figures[kind].bytes : unknown;
}

/* Is a worse than, or as bad as, b? */
static bool is_as_bad(const uf_message *a, const uf_message *b)
{
    unsigned rank_a = forms[a->form].rank, rank_b = forms[b->form].rank;
    if (rank_a != rank_b) {
        return rank_a > rank_b;
    }
    bool is_cut_a = (a->signs & UF_SIGN_CUT) != 0, is_cut_b = (b->signs & UF_SIGN_CUT) != 0;
    if (is_cut_a != is_cut_b) {
        return is_cut_b;
    }
    uint64_t asked_a = bytes_of(a, UF_FIGURE_REQUESTED, 0);
    uint64_t asked_b = bytes_of(b, UF_FIGURE_REQUESTED, 0);
    if (asked_a != asked_b) {
        return asked_a > asked_b;
    }
    return bytes_of(a, UF_FIGURE_DEVICE_FREE, UINT64_MAX) <=
           bytes_of(b, UF_FIGURE_DEVICE_FREE, UINT64_MAX);
}

const uf_message_group *uf__message_worst(const uf_message_log *log)
{
    const uf_message_group *worst = NULL;
    for (uint32_t i = 0; i < log->group_count; i++) {
        const uf_message_group *group = &log->groups[i];
        if (worst == NULL || is_as_bad(&group->message, &worst->message)) {
            worst = group;
        }
    }
    return worst;
}

/* The series: the newest value always counts, kept samples are spread over all. */
static void growth_append(uf_growth *growth, uint64_t bytes, uint64_t line)
{
    if (growth->count == 0) {
        growth->stride = 1;
        growth->first_bytes = bytes;
        growth->first_line = line;
    }
    growth->rise_count += growth->count > 0 && bytes > growth->last_bytes;
    if (growth->count % growth->stride == 0) {
        if (growth->sample_count == UF_GROWTH_SAMPLE_CAPACITY) {
            for (uint32_t i = 0; i < UF_GROWTH_SAMPLE_CAPACITY / 2; i++) {
                growth->samples[i] = growth->samples[2 * i];
            }
            growth->sample_count /= 2;
            growth->stride *= 2;
        }
        if (growth->count % growth->stride == 0) {
            growth->samples[growth->sample_count++] = bytes;
        }
    }
    growth->count++;
    growth->last_bytes = bytes;
    growth->last_line = line;
    growth->max_bytes = bytes > growth->max_bytes ? bytes : growth->max_bytes;
}

void uf__growth_add(uf_message_log *log, uint64_t key, uint64_t bytes, uint64_t line)
{
    for (uint32_t i = 0; i < log->growth_count; i++) {
        if (log->growths[i].key == key) {
            growth_append(&log->growths[i], bytes, line);
            return;
        }
    }
    if (log->growth_count < UF_GROWTH_CAPACITY) {
        uf_growth *growth = &log->growths[log->growth_count++];
        *growth = (uf_growth){.key = key};
        growth_append(growth, bytes, line);
    }
}

bool uf__growth_is_steady(const uf_growth *growth, uint64_t least_count)
{
    uint64_t rise =
        growth->last_bytes > growth->first_bytes ? growth->last_bytes - growth->first_bytes : 0;
    if (growth->count < least_count || rise < LEAST_GROWTH_BYTES ||
        rise < growth->first_bytes / 10 || growth->last_bytes < growth->max_bytes) {
        return false;
    }
    /* Never clearly down, and still growing in the second half. */
    for (uint32_t i = 1; i < growth->sample_count; i++) {
        if (growth->samples[i] + rise / 20 < growth->samples[i - 1]) {
            return false;
        }
    }
    uint64_t middle = growth->samples[growth->sample_count / 2];
    return growth->sample_count >= 3 && middle > growth->first_bytes &&
           growth->last_bytes - middle >= rise / 5;
}

/* Failures of one and the same request, with more allocated each time. */
static void note_failure(uf_message_log *log, const uf_message *message, uint64_t line)
{
    const uf_figure *asked = &message->figures[UF_FIGURE_REQUESTED];
    const uf_figure *allocated = &message->figures[UF_FIGURE_ALLOCATED];
    if (!asked->is_known || !allocated->is_known || forms[message->form].rank < 8) {
        return;
    }
    if (asked->bytes != log->failure_request_bytes) {
        log->failure_request_bytes = asked->bytes;
        log->failures = (uf_growth){0};
    }
    growth_append(&log->failures, allocated->bytes, line);
}

/* The slot of the least bad group, if the message is worse than it. */
static uf_message_group *least_bad(uf_message_log *log, const uf_message *message)
{
    uf_message_group *least = &log->groups[0];
    for (uint32_t i = 1; i < log->group_count; i++) {
        if (is_as_bad(&least->message, &log->groups[i].message)) {
            least = &log->groups[i];
        }
    }
    return is_as_bad(message, &least->message) ? least : NULL;
}

void uf__message_add(const uf__hit *hit, const uf_message *message)
{
    uf_message_log *log = hit->log;
    log->message_count++;
    log->has_loading = false; /* it went on */
    note_failure(log, message, hit->line);
    for (uint32_t i = 0; i < log->group_count; i++) {
        if (is_equal(&log->groups[i].message, message)) {
            log->groups[i].count++;
            log->groups[i].last_line = hit->line;
            return;
        }
    }
    uf_message_group *slot = log->group_count < UF_MESSAGE_GROUP_CAPACITY
                                 ? &log->groups[log->group_count++]
                                 : least_bad(log, message);
    if (slot != NULL) {
        *slot = (uf_message_group){
            .message = *message, .count = 1, .first_line = hit->line, .last_line = hit->line};
    }
}
