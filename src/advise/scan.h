/* SPDX-License-Identifier: MIT
 *
 * Scanners: each reads one language and tells the check what it set up, in order, and what in the
 * text itself is wrong. They never fail on input. No lock. */
#ifndef UF_ADVISE_SCAN_H
#define UF_ADVISE_SCAN_H

#include "advise/check.h"

typedef struct uf_scan {
    uf_check *check;
    uint32_t source;
    uint32_t cell;       /* of a notebook; 0: none */
    uint32_t first_line; /* number of the text's first line */
    uint32_t scope;      /* of what is set; see uf_setup */
    bool is_nested;      /* a text within a text: a fix cannot show the whole line */
    const char *lost;    /* why nothing that is set here lasts; NULL: it does */
    unsigned depth;      /* of texts within texts */
} uf_scan;

/* Beyond this, texts within texts are left alone. */
#define UF_SCAN_DEPTH_MAX 4

/* Chooses the scanner by the file's name, and by its content where the name says nothing. The text
 * must live as long as the check. UF_ERROR_BAD_INPUT: a notebook that is none. */
uf_status uf__scan_file(uf_check *check, uint32_t source, const char *name, const char *text,
                        uf_error *error) UF_MUST_USE;

/* A text of mixed commands, such as a log of a terminal. */
void uf__scan_text(uf_check *check, uint32_t source, const char *text);

void uf__scan_shell(const uf_scan *scan, const char *text);
void uf__scan_cmd(const uf_scan *scan, const char *text);
void uf__scan_powershell(const uf_scan *scan, const char *text);
void uf__scan_yaml(const uf_scan *scan, const char *text);
void uf__scan_dotenv(const uf_scan *scan, const char *text);
void uf__scan_dockerfile(const uf_scan *scan, const char *text);
void uf__scan_systemd(const uf_scan *scan, const char *text);
void uf__scan_plain(const uf_scan *scan, const char *text);

/* For a line of the text, where it stands: one entry per line of the text, from its first. */
typedef struct uf_scan_line {
    uint32_t cell, line;
} uf_scan_line;

/* lines: NULL, or for each line of the text its place. */
void uf__scan_python(const uf_scan *scan, const char *text, const uf_scan_line *lines,
                     size_t line_count);
uf_status uf__scan_notebook(const uf_scan *scan, const char *name, const char *text,
                            uf_error *error) UF_MUST_USE;

/* What scanners share. */

uf_finding_place uf__scan_place(const uf_scan *scan, uint32_t line);

/* Adds a set-up; the scan's scope and loss are applied. */
void uf__scan_add(const uf_scan *scan, const uf_setup *setup);

/* Fills line, value_start, value_end of a set-up from offsets in the text: the line from its start
 * to code_end. */
void uf__scan_span(const uf_scan *scan, uf_setup *setup, const char *text, size_t value_start,
                   size_t value_end, size_t code_end);

/* The value of the set-up, corrected, in its line; NULL if there is none. */
const char *uf__check_corrected(uf_check *check, const uf_setup *setup);

/* True if an option's name, or nearly one, stands there, with what may follow a name. */
bool uf__scan_is_option(const char *text);

/* Adds the finding on `nvidia-smi --gpu-reset`. */
void uf__scan_add_reset(const uf_scan *scan, uint32_t line);
/* True if a command line, as words with blanks between, resets a GPU. */
bool uf__scan_is_reset(const char *command);

/* For line-based scanners: the line at *at without its end, as a text of the check; *at moves to
 * the next one. NULL at the end. */
const char *uf__scan_next_line(const uf_scan *scan, const char **at);

#endif
