/* SPDX-License-Identifier: MIT
 *
 * Squeezes text: lower case, without blanks, line breaks, escape sequences, quotes, box drawings
 * and log prefixes; keeps where lines begin. Works in a buffer of the caller's, which slides. Knows
 * nothing of messages. One thread each. */
#ifndef UF_ADVISE_MESSAGE_SQUEEZE_H
#define UF_ADVISE_MESSAGE_SQUEEZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a shell prints for a killed program, a line with nothing but "Killed", becomes this word. */
#define UF__SQUEEZE_KILLED "\x01killed"

typedef struct uf__squeeze_start {
    uint32_t offset; /* in the squeezed text */
    uint64_t line;
} uf__squeeze_start;

typedef struct uf__squeeze {
    char *text; /* borrowed */
    size_t length, capacity;
    uf__squeeze_start *starts; /* of lines that left something; ascending */
    size_t start_count;
    uint64_t line; /* 1-based, of the next byte; 0 before the first */
    bool is_at_line_start, is_line_noted;
    unsigned escape; /* inside an escape sequence: which part */
    uint64_t nul_count, control_count;
    uint8_t classes[256]; /* what becomes of each byte */
    char letters[256];
} uf__squeeze;

/* Returns false if the host has no memory. */
bool uf__squeeze_init(uf__squeeze *squeeze, char *text, size_t capacity);
void uf__squeeze_fini(uf__squeeze *squeeze);

/* Takes raw bytes and returns how many: all if is_last, else all but a few whose meaning depends on
 * what follows. The buffer must have room for size more bytes. */
size_t uf__squeeze_add(uf__squeeze *squeeze, const uint8_t *data, size_t size, bool is_last);

/* Removes bytes from the buffer's front. */
void uf__squeeze_drop(uf__squeeze *squeeze, size_t count);

/* The line of a squeezed byte, and where that line begins in the buffer (0 if before it). */
void uf__squeeze_line(const uf__squeeze *squeeze, size_t offset, uint64_t *line,
                      size_t *line_offset);

#endif
