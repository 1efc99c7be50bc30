/* SPDX-License-Identifier: MIT
 *
 * Reads data/cards.tsv: a head, then one line per recording and class of cards. */
#include "advise/recommend.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define LINE_BYTES 1024
#define FIELD_COUNT 10
#define HEAD "recording\twhat\tcard_bytes\tconf\t"

/* What a driver tells is up to 6 % less than what a card is sold as. */
static bool is_class_of(uint64_t class_bytes, uint64_t card_bytes)
{
    return class_bytes <= card_bytes || class_bytes - card_bytes <= class_bytes / 100 * 6;
}

static void copy_conf(uf_recommendation *row, const char *text)
{
    snprintf(row->conf, sizeof row->conf, "%s", strcmp(text, "(default)") == 0 ? "" : text);
}

static bool read_row(char *line, uint64_t card_bytes, uf_recommendation *row,
                     uint64_t *allowance_bytes)
{
    char *fields[FIELD_COUNT];
    size_t count = 0;
    line[strcspn(line, "\n")] = '\0';
    for (char *at = line; at != NULL && count < FIELD_COUNT;) {
        fields[count++] = strsep(&at, "\t");
    }
    if (count < FIELD_COUNT) {
        return false;
    }
    *row = (uf_recommendation){.class_bytes = strtoull(fields[2], NULL, 10)};
    snprintf(row->recording, sizeof row->recording, "%s", fields[0]);
    snprintf(row->what, sizeof row->what, "%s", fields[1]);
    row->is_known = strcmp(fields[3], "(none)") != 0;
    copy_conf(row, row->is_known ? fields[3] : "(default)");
    row->needs_limit = fields[4][0] == '1';
    uint64_t allowance = strtoull(fields[7], NULL, 10);
    row->need_bytes = strtoull(fields[5], NULL, 10) + allowance;
    row->default_need_bytes = strtoull(fields[6], NULL, 10) + allowance;
    row->fits = row->is_known && row->need_bytes <= card_bytes;
    uint64_t least_bytes = strtoull(fields[9], NULL, 10) + allowance;
    if (!row->fits && row->need_bytes > least_bytes) {
        copy_conf(row, fields[8]); /* the class is a little larger than the card */
        row->needs_limit = false;
        row->need_bytes = least_bytes;
        row->fits = row->is_known && least_bytes <= card_bytes;
    }
    row->default_fits = row->default_need_bytes <= card_bytes;
    *allowance_bytes = allowance;
    return row->class_bytes > 0 && allowance > 0;
}

static uf_recommendation *find(uf_recommendations *list, const char *recording)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->items[i].recording, recording) == 0) {
            return &list->items[i];
        }
    }
    return NULL;
}

/* The largest class that the card belongs to; the smallest of all where it belongs to none. */
static bool is_better(const uf_recommendation *row, const uf_recommendation *known,
                      uint64_t card_bytes)
{
    bool is_row = is_class_of(row->class_bytes, card_bytes);
    bool is_known = is_class_of(known->class_bytes, card_bytes);
    return is_row != is_known ? is_row : is_row == (row->class_bytes > known->class_bytes);
}

static uf_status add(uf_recommendations *list, const uf_recommendation *row, uint64_t card_bytes,
                     uf_error *error)
{
    uf_recommendation *known = find(list, row->recording);
    if (known != NULL) {
        if (is_better(row, known, card_bytes)) {
            *known = *row;
        }
        return UF_OK;
    }
    uf_recommendation *items = realloc(list->items, (list->count + 1) * sizeof *items);
    if (items == NULL) {
        return uf__error_set(error, UF_ERROR_HOST_MEMORY, "no host memory for recommendations");
    }
    list->items = items;
    items[list->count++] = *row;
    return UF_OK;
}

uf_status uf__recommendations_read(const char *path, uint64_t card_bytes, uf_recommendations *list,
                                   uf_error *error)
{
    char line[LINE_BYTES];
    uf_recommendation row;
    memset(list, 0, sizeof *list);
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return uf__error_set(error, UF_ERROR_IO, "%s: %s", path, strerror(errno));
    }
    uf_status status = UF_OK;
    if (fgets(line, sizeof line, file) == NULL || strncmp(line, HEAD, sizeof HEAD - 1) != 0) {
        status = uf__error_set(error, UF_ERROR_BAD_INPUT, "%s: not a table of cards", path);
    }
    while (status == UF_OK && fgets(line, sizeof line, file) != NULL) {
        status = read_row(line, card_bytes, &row, &list->allowance_bytes)
                     ? add(list, &row, card_bytes, error)
                     : uf__error_set(error, UF_ERROR_BAD_INPUT, "%s: not a table of cards", path);
    }
    fclose(file);
    return status;
}

void uf__recommendations_fini(uf_recommendations *list)
{
    free(list->items);
    memset(list, 0, sizeof *list);
}

const char *uf__recommendations_conf(const uf_recommendations *list)
{
    const char *best = NULL;
    size_t best_count = 0;
    for (size_t i = 0; i < list->count; i++) {
        size_t count = 0;
        for (size_t k = 0; k < list->count && list->items[i].fits; k++) {
            count += list->items[k].fits && !list->items[k].needs_limit &&
                     strcmp(list->items[i].conf, list->items[k].conf) == 0;
        }
        if (count > best_count) {
            best = list->items[i].conf;
            best_count = count;
        }
    }
    return best != NULL && best[0] != '\0' ? best : NULL;
}
