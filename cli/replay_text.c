/* SPDX-License-Identifier: MIT
 *
 * Words of the replay reports. */
#include "replay_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *replay_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

const char *replay_stream_text(stream_text buffer, uint64_t stream)
{
    if (stream == 0) {
        snprintf(buffer, sizeof(stream_text), "default");
    } else {
        snprintf(buffer, sizeof(stream_text), "0x%" PRIx64, stream);
    }
    return buffer;
}

const char *replay_size_argument(size_text buffer, uint64_t bytes)
{
    if (bytes % UF_GIB == 0) {
        snprintf(buffer, sizeof(size_text), "%" PRIu64 "GiB", bytes / UF_GIB);
    } else if (bytes % UF_MIB == 0) {
        snprintf(buffer, sizeof(size_text), "%" PRIu64 "MiB", bytes / UF_MIB);
    } else {
        snprintf(buffer, sizeof(size_text), "%" PRIu64, bytes);
    }
    return buffer;
}

void replay_print_word(const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "@%+=:,./_-";
    if (word[0] != '\0' && strspn(word, plain) == strlen(word)) {
        fputs(word, stdout);
        return;
    }
    fputc('\'', stdout);
    for (; *word != '\0'; word++) {
        if (*word == '\'') {
            fputs("'\\''", stdout);
        } else {
            fputc(*word, stdout);
        }
    }
    fputc('\'', stdout);
}

void replay_print_tune(uint64_t card_bytes, uint64_t limit_bytes, const char *input)
{
    size_text card, limit;
    printf("unfrag tune ");
    if (card_bytes != 0) {
        printf("--card %s ", replay_size_argument(card, card_bytes));
    }
    if (limit_bytes != 0) {
        printf("--limit %s ", replay_size_argument(limit, limit_bytes));
    }
    replay_print_word(input);
}
