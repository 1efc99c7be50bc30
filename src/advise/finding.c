/* SPDX-License-Identifier: MIT
 *
 * The list of findings and its texts. No lock. */
#include "advise/finding.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Texts are carved from blocks that are freed together. */
struct uf__text_block {
    uf__text_block *next;
    size_t size, filled;
    max_align_t bytes[];
};

#define BLOCK_BYTES 16384

static const struct {
    const char *name;
    uf_severity severity;
} kinds[UF_FINDING_COUNT] = {
#define UF_FINDING_ROW(constant, text, level) [UF_FINDING_##constant] = {text, UF_SEVERITY_##level},
    UF_FINDING_LIST(UF_FINDING_ROW)
#undef UF_FINDING_ROW
};

const char *uf__finding_name(uf_finding_id id)
{
    return kinds[id].name;
}

uf_severity uf__finding_severity(uf_finding_id id)
{
    return kinds[id].severity;
}

const char *uf__severity_name(uf_severity severity)
{
    static const char *const names[] = {[UF_SEVERITY_NOTE] = "note",
                                        [UF_SEVERITY_WARNING] = "warning",
                                        [UF_SEVERITY_ERROR] = "error"};
    return names[severity];
}

void uf__findings_fini(uf_findings *findings)
{
    while (findings->blocks != NULL) {
        uf__text_block *next = findings->blocks->next;
        free(findings->blocks);
        findings->blocks = next;
    }
    free(findings->items);
    memset(findings, 0, sizeof *findings);
}

void *uf__findings_allocate(uf_findings *findings, size_t size)
{
    size_t aligned = (size + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    uf__text_block *block = findings->blocks;
    if (aligned < size || aligned > SIZE_MAX / 2) {
        findings->has_failed = true;
        return NULL;
    }
    if (block == NULL || block->size - block->filled < aligned) {
        size_t room = aligned > BLOCK_BYTES ? aligned : BLOCK_BYTES;
        block = malloc(sizeof *block + room);
        if (block == NULL) {
            findings->has_failed = true;
            return NULL;
        }
        block->next = findings->blocks;
        block->size = room;
        block->filled = 0;
        findings->blocks = block;
    }
    void *result = (char *)block->bytes + block->filled;
    block->filled += aligned;
    return result;
}

const char *uf__findings_copy(uf_findings *findings, const char *text, size_t length)
{
    char *copy = uf__findings_allocate(findings, length + 1);
    if (copy == NULL) {
        return "";
    }
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

const char *uf__findings_print(uf_findings *findings, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    char *text = length < 0 ? NULL : uf__findings_allocate(findings, (size_t)length + 1);
    if (text != NULL) {
        vsnprintf(text, (size_t)length + 1, format, again);
    }
    va_end(again);
    va_end(arguments);
    return text == NULL ? "" : text;
}

uf_finding *uf__findings_add(uf_findings *findings, uf_finding_id id, uf_finding_place place,
                             const char *option, const char *message, const char *fix)
{
    if (findings->count == findings->capacity) {
        size_t capacity = findings->capacity == 0 ? 16 : findings->capacity * 2;
        uf_finding *items = realloc(findings->items, capacity * sizeof *items);
        if (items == NULL) {
            findings->has_failed = true;
            return NULL;
        }
        findings->items = items;
        findings->capacity = capacity;
    }
    uf_finding *finding = &findings->items[findings->count++];
    *finding = (uf_finding){id, kinds[id].severity, place, option, message, fix};
    return finding;
}

static int compare_places(const uf_finding_place *a, const uf_finding_place *b)
{
    if (a->source != b->source) {
        return a->source < b->source ? -1 : 1;
    }
    if (a->cell != b->cell) {
        return a->cell < b->cell ? -1 : 1;
    }
    return (a->line > b->line) - (a->line < b->line);
}

/* Merges the sorted halves of items[0, count) by way of `room`. */
static void sort_range(uf_finding *items, uf_finding *room, size_t count)
{
    if (count < 2) {
        return;
    }
    size_t half = count / 2;
    sort_range(items, room, half);
    sort_range(items + half, room, count - half);
    memcpy(room, items, half * sizeof *items);
    size_t left = 0, right = half;
    for (size_t i = 0; left < half; i++) {
        bool is_right = right < count && compare_places(&items[right].place, &room[left].place) < 0;
        items[i] = is_right ? items[right++] : room[left++];
    }
}

void uf__findings_sort(uf_findings *findings)
{
    uf_finding *room = malloc(findings->count * sizeof *room + 1);
    if (room == NULL) {
        findings->has_failed = true;
        return;
    }
    sort_range(findings->items, room, findings->count);
    free(room);
}
