/* SPDX-License-Identifier: MIT
 *
 * Finding and reading pages. */
#include "monitor/pages.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "publish/page_file.h"

enum { PAGES_MAX = 1024, NAMES_MAX = 8192 };

static uf_status add_page(uf_pages *pages, const uf_monitor_page *page, int64_t now_ns,
                          uf_error *error)
{
    if (pages->count == pages->capacity) {
        size_t capacity = pages->capacity == 0 ? 16 : 2 * pages->capacity;
        uf_seen *grown = realloc(pages->items, capacity * sizeof *grown);
        if (grown == NULL) {
            return uf__error_set(error, UF_ERROR_HOST_MEMORY, "no host memory to read pages");
        }
        pages->items = grown;
        pages->capacity = capacity;
    }
    uf_seen *seen = &pages->items[pages->count++];
    seen->page = *page;
    uf__seen_judge(seen, now_ns);
    return UF_OK;
}

static uf_status read_names(DIR *listing, uf_pages *pages, int64_t now_ns, uf_error *error)
{
    uf_monitor_page page;
    uf_status status = UF_OK;
    const struct dirent *entry;
    for (int i = 0; i < NAMES_MAX && pages->count < PAGES_MAX && status == UF_OK &&
                    (entry = readdir(listing)) != NULL;
         i++) {
        uint32_t pid;
        if (uf__page_name_parse(entry->d_name, &pid) &&
            uf__page_file_read(dirfd(listing), entry->d_name, &page) != UF_PAGE_NONE &&
            page.pid == pid && !uf__page_is_dead(&page)) {
            status = add_page(pages, &page, now_ns, error);
        }
    }
    return status;
}

/* A directory that is not there has no pages. */
static uf_status read_directory(const char *path, bool is_named, uf_pages *pages, int64_t now_ns,
                                uf_error *error)
{
    int opened = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (is_named ? 0 : O_NOFOLLOW));
    DIR *listing = opened >= 0 ? fdopendir(opened) : NULL;
    if (listing == NULL) {
        int code = errno;
        if (opened >= 0) {
            close(opened);
        }
        return !is_named || code == ENOENT
                   ? UF_OK
                   : uf__error_set(error, UF_ERROR_IO, "the directory of pages %s: %s", path,
                                   strerror(code));
    }
    uf_status status = read_names(listing, pages, now_ns, error);
    closedir(listing);
    return status;
}

static uf_status read_shared_memory(uf_pages *pages, int64_t now_ns, uf_error *error)
{
    char path[UF_PAGE_PATH_CAPACITY];
    DIR *listing = opendir("/dev/shm");
    uf_status status = UF_OK;
    const struct dirent *entry;
    for (int i = 0;
         listing != NULL && i < NAMES_MAX && status == UF_OK && (entry = readdir(listing)) != NULL;
         i++) {
        if (strncmp(entry->d_name, "unfrag-", 7) == 0) {
            snprintf(path, sizeof path, "/dev/shm/%s", entry->d_name);
            status = read_directory(path, false, pages, now_ns, error);
        }
    }
    if (listing != NULL) {
        closedir(listing);
    }
    return status;
}

static int compare_seen(const void *left, const void *right)
{
    const uf_monitor_page *a = &((const uf_seen *)left)->page, *b = &((const uf_seen *)right)->page;
    if (a->pid != b->pid) {
        return a->pid < b->pid ? -1 : 1;
    }
    if (a->device_index != b->device_index) {
        return a->device_index < b->device_index ? -1 : 1;
    }
    return (a->opened_unix_ns > b->opened_unix_ns) - (a->opened_unix_ns < b->opened_unix_ns);
}

uf_status uf__pages_read(const char *given, uf_pages *pages, uf_error *error)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t now_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    const char *named = given != NULL ? given : getenv("UNFRAG_MONITOR_DIR");
    pages->count = 0;
    uf_status status;
    if (named != NULL && named[0] != '\0') {
        uf__page_directory_sweep(named);
        status = read_directory(named, true, pages, now_ns, error);
    } else {
        char path[UF_PAGE_PATH_CAPACITY];
        const char *runtime = getenv("XDG_RUNTIME_DIR");
        status = uf__page_directory(NULL, path, error);
        if (status == UF_OK) {
            uf__page_directory_sweep(path);
            status = read_shared_memory(pages, now_ns, error);
        }
        if (status == UF_OK && runtime != NULL && runtime[0] == '/') {
            snprintf(path, sizeof path, "%s/unfrag", runtime);
            status = read_directory(path, false, pages, now_ns, error);
        }
        if (status == UF_OK) {
            snprintf(path, sizeof path, "/tmp/unfrag-%u", (unsigned)geteuid());
            status = read_directory(path, false, pages, now_ns, error);
        }
    }
    if (pages->count > 1) {
        qsort(pages->items, pages->count, sizeof *pages->items, compare_seen);
    }
    return status;
}

void uf__pages_fini(uf_pages *pages)
{
    free(pages->items);
    memset(pages, 0, sizeof *pages);
}
