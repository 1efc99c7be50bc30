/* SPDX-License-Identifier: MIT
 *
 * The files that pages live in: where they are, how they are named, made, read and swept. Knows
 * nothing of what the numbers on a page mean. A uf_page_file belongs to one thread; no lock.
 *
 *   DIRECTORY/PID-N    N: 0, 1, ... for the pages of one process */
#ifndef UF_PUBLISH_PAGE_FILE_H
#define UF_PUBLISH_PAGE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <unfrag/monitor.h>
#include <unfrag/status.h>

#define UF_PAGE_PATH_CAPACITY 512

typedef struct uf_page_file {
    uf_monitor_page *page; /* the file, mapped */
    char path[UF_PAGE_PATH_CAPACITY];
} uf_page_file;

typedef enum uf_page_reading {
    UF_PAGE_NONE,  /* not a page of this version, or not one yet */
    UF_PAGE_TORN,  /* a page, but its writer was in the middle of it whenever it was read */
    UF_PAGE_STEADY /* all of one moment */
} uf_page_reading;

/* The directory of this user's pages, which need not exist. UF_ERROR_IO if its name is too long. */
uf_status uf__page_directory(const char *given, char path[UF_PAGE_PATH_CAPACITY],
                             uf_error *error) UF_MUST_USE;

/* Makes a page file, all zero but for version, size, pid, start and namespace of this process, with
 * its memory reserved: a full file system fails here and never later. UF_ERROR_IO. */
uf_status uf__page_file_create(const char *directory, uf_page_file *file,
                               uf_error *error) UF_MUST_USE;

/* Unmaps the page; is_owner: the file is removed too. */
void uf__page_file_close(uf_page_file *file, bool is_owner);

/* Reads one page file. What it gives is safe to use, but not to believe: texts end, counts are
 * inside their arrays, numbers may be anything. Never maps the file: it may shrink meanwhile. */
uf_page_reading uf__page_file_read(int directory, const char *name, uf_monitor_page *page);

/* Whether the process that made a page is known to have ended. A page of another pid namespace is
 * never known to be dead. */
bool uf__page_is_dead(const uf_monitor_page *page);

/* Removes the pages of dead processes. What is no page is left alone, but for files that a dead
 * process never finished. Looks at 4096 names at most. */
void uf__page_directory_sweep(const char *directory);

/* The pid in a file name "PID-N"; false for other names. */
bool uf__page_name_parse(const char *name, uint32_t *pid);

#endif
