/* SPDX-License-Identifier: MIT
 *
 * The files that pages live in. Nothing read here is believed: files may be cut, replaced or full
 * of anything at any time. */
#include "publish/page_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "publish/process.h"

enum { PAGES_PER_PROCESS = 1024, SWEEP_NAMES_MAX = 4096, READ_TRIES = 100 };

static bool is_directory(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 && S_ISDIR(found.st_mode) && access(path, W_OK | X_OK) == 0;
}

uf_status uf__page_directory(const char *given, char path[UF_PAGE_PATH_CAPACITY], uf_error *error)
{
    const char *wanted = given != NULL ? given : getenv("UNFRAG_MONITOR_DIR");
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    unsigned user = (unsigned)geteuid();
    int length;
    if (wanted != NULL && wanted[0] != '\0') {
        length = snprintf(path, UF_PAGE_PATH_CAPACITY, "%s", wanted);
    } else if (is_directory("/dev/shm")) {
        length = snprintf(path, UF_PAGE_PATH_CAPACITY, "/dev/shm/unfrag-%u", user);
    } else if (runtime != NULL && runtime[0] == '/') {
        length = snprintf(path, UF_PAGE_PATH_CAPACITY, "%s/unfrag", runtime);
    } else {
        length = snprintf(path, UF_PAGE_PATH_CAPACITY, "/tmp/unfrag-%u", user);
    }
    if (length < 0 || length > UF_PAGE_PATH_CAPACITY - 40) {
        return uf__error_set(error, UF_ERROR_IO,
                             "the directory for pages has a name of %d bytes, and at most %d fit",
                             length, UF_PAGE_PATH_CAPACITY - 40);
    }
    return UF_OK;
}

static uf_status check_directory(const char *path, int directory, uf_error *error)
{
    struct stat found;
    if (fstat(directory, &found) != 0) {
        return uf__error_set(error, UF_ERROR_IO, "%s: %s", path, strerror(errno));
    }
    if (found.st_uid != geteuid() || (found.st_mode & 022) != 0) {
        return uf__error_set(error, UF_ERROR_IO,
                             "the directory %s (owner %u, mode %03o) must belong to user %u and be "
                             "writable by nobody else; UNFRAG_MONITOR_DIR names another",
                             path, (unsigned)found.st_uid, (unsigned)found.st_mode & 0777,
                             (unsigned)geteuid());
    }
    return UF_OK;
}

/* The directory, made if need be, and this user's alone. */
static uf_status open_directory(const char *path, int *directory, uf_error *error)
{
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        return uf__error_set(error, UF_ERROR_IO,
                             "the directory %s for the monitor's page cannot be made: %s; "
                             "UNFRAG_MONITOR_DIR names another",
                             path, strerror(errno));
    }
    int opened = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (opened < 0) {
        return uf__error_set(error, UF_ERROR_IO, "%s cannot be opened as a directory: %s", path,
                             strerror(errno));
    }
    uf_status status = check_directory(path, opened, error);
    if (status != UF_OK) {
        close(opened);
        return status;
    }
    *directory = opened;
    return UF_OK;
}

static uf_status map_file(int opened, uf_page_file *file, uf_error *error)
{
    int code = posix_fallocate(opened, 0, (off_t)sizeof *file->page);
    if (code != 0) {
        return uf__error_set(error, UF_ERROR_IO, "%s: no room for a page of %zu bytes: %s",
                             file->path, sizeof *file->page, strerror(code));
    }
    void *mapped = mmap(NULL, sizeof *file->page, PROT_READ | PROT_WRITE, MAP_SHARED, opened, 0);
    if (mapped == MAP_FAILED) {
        return uf__error_set(error, UF_ERROR_IO, "%s cannot be mapped: %s", file->path,
                             strerror(errno));
    }
    file->page = mapped;
    return UF_OK;
}

static uf_status create_in(int directory, const char *path, uf_page_file *file, uf_error *error)
{
    char name[32];
    int opened = -1;
    for (int i = 0; i < PAGES_PER_PROCESS && opened < 0; i++) {
        snprintf(name, sizeof name, "%ld-%d", (long)getpid(), i);
        opened = openat(directory, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (opened < 0 && errno != EEXIST) {
            break;
        }
    }
    snprintf(file->path, sizeof file->path, "%s/%s", path, name);
    if (opened < 0) {
        return uf__error_set(error, UF_ERROR_IO, "%s cannot be made: %s", file->path,
                             strerror(errno));
    }
    uf_status status = map_file(opened, file, error);
    close(opened);
    if (status != UF_OK) {
        (void)unlinkat(directory, name, 0);
    }
    return status;
}

uf_status uf__page_file_create(const char *path, uf_page_file *file, uf_error *error)
{
    int directory = -1;
    uf_status status = open_directory(path, &directory, error);
    if (status != UF_OK) {
        return status;
    }
    status = create_in(directory, path, file, error);
    close(directory);
    if (status == UF_OK) {
        uf_monitor_page *page = file->page;
        page->version = UF_MONITOR_VERSION;
        page->page_bytes = (uint32_t)sizeof *page;
        page->pid = (uint32_t)getpid();
        page->pid_namespace = uf__process_namespace();
        (void)uf__process_start(page->pid, &page->start_ticks);
    }
    return status;
}

void uf__page_file_close(uf_page_file *file, bool is_owner)
{
    if (is_owner) {
        (void)unlink(file->path);
    }
    (void)munmap(file->page, sizeof *file->page);
    file->page = NULL;
}

static void end_text(char *text, size_t capacity)
{
    text[capacity - 1] = '\0';
}

static void cut_count(uint32_t *count, uint32_t most)
{
    *count = *count < most ? *count : most;
}

static void tame(uf_monitor_page *page)
{
    end_text(page->policy, sizeof page->policy);
    end_text(page->device_uuid, sizeof page->device_uuid);
    end_text(page->device_name, sizeof page->device_name);
    end_text(page->command, sizeof page->command);
    end_text(page->conf, sizeof page->conf);
    cut_count(&page->pool_row_count, UF_MONITOR_POOL_ROWS);
    cut_count(&page->stream_row_count, UF_MONITOR_STREAM_ROWS);
    cut_count(&page->history_count, UF_MONITOR_HISTORY);
    page->history_next %= UF_MONITOR_HISTORY;
}

static bool is_page(const uf_monitor_page *page)
{
    return memcmp(page->magic, UF_MONITOR_MAGIC, sizeof page->magic) == 0 &&
           page->version == UF_MONITOR_VERSION && page->page_bytes == sizeof *page &&
           page->pid != 0;
}

static uf_page_reading read_page(int file, uf_monitor_page *page)
{
    const off_t at = (off_t)offsetof(uf_monitor_page, sequence);
    const struct timespec pause = {.tv_nsec = 50000};
    for (int i = 0; i < READ_TRIES; i++) {
        uint64_t after;
        if (pread(file, page, sizeof *page, 0) != (ssize_t)sizeof *page || !is_page(page)) {
            return UF_PAGE_NONE;
        }
        atomic_thread_fence(memory_order_acquire);
        if (pread(file, &after, sizeof after, at) != (ssize_t)sizeof after) {
            return UF_PAGE_NONE;
        }
        if ((page->sequence & 1) == 0 && page->sequence == after) {
            return UF_PAGE_STEADY;
        }
        if (i > 8) {
            (void)nanosleep(&pause, NULL);
        }
    }
    return UF_PAGE_TORN;
}

uf_page_reading uf__page_file_read(int directory, const char *name, uf_monitor_page *page)
{
    struct stat found;
    int file = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) {
        return UF_PAGE_NONE;
    }
    uf_page_reading reading = UF_PAGE_NONE;
    if (fstat(file, &found) == 0 && S_ISREG(found.st_mode) &&
        found.st_size == (off_t)sizeof *page) {
        reading = read_page(file, page);
    }
    close(file);
    if (reading != UF_PAGE_NONE) {
        tame(page);
    }
    return reading;
}

bool uf__page_is_dead(const uf_monitor_page *page)
{
    uint64_t own = uf__process_namespace(), start_ticks;
    if (own == 0 || (page->pid_namespace != 0 && page->pid_namespace != own)) {
        return false;
    }
    return !uf__process_start(page->pid, &start_ticks) ||
           (page->start_ticks != 0 && start_ticks != page->start_ticks);
}

bool uf__page_name_parse(const char *name, uint32_t *pid)
{
    if (name[0] < '1' || name[0] > '9' || strlen(name) > 24) {
        return false;
    }
    char *end;
    unsigned long value = strtoul(name, &end, 10);
    if (value > INT32_MAX || end[0] != '-' || end[1] == '\0' ||
        end[1 + strspn(end + 1, "0123456789")] != '\0') {
        return false;
    }
    *pid = (uint32_t)value;
    return true;
}

/* A file that never became a page, because its process was killed while it made it. */
static bool is_unfinished(int directory, const char *name, uint32_t pid)
{
    enum { SECONDS_TO_FINISH = 60 };
    char magic[sizeof UF_MONITOR_MAGIC - 1] = {0}, none[sizeof magic] = {0};
    struct stat found;
    struct timespec now;
    uint64_t start_ticks;
    int file = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    bool is_ours = fstat(file, &found) == 0 && S_ISREG(found.st_mode) &&
                   found.st_size <= (off_t)sizeof(uf_monitor_page) && found.st_uid == geteuid();
    bool is_begun =
        pread(file, magic, sizeof magic, 0) != 0 && memcmp(magic, none, sizeof none) != 0;
    close(file);
    return is_ours && !is_begun && clock_gettime(CLOCK_REALTIME, &now) == 0 &&
           now.tv_sec - found.st_mtim.tv_sec > SECONDS_TO_FINISH &&
           !uf__process_start(pid, &start_ticks);
}

void uf__page_directory_sweep(const char *path)
{
    uf_monitor_page page;
    int opened = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *listing = opened >= 0 ? fdopendir(opened) : NULL;
    if (listing == NULL) {
        if (opened >= 0) {
            close(opened);
        }
        return;
    }
    const struct dirent *entry;
    for (int i = 0; i < SWEEP_NAMES_MAX && (entry = readdir(listing)) != NULL; i++) {
        uint32_t pid;
        if (!uf__page_name_parse(entry->d_name, &pid)) {
            continue;
        }
        bool is_stale = uf__page_file_read(opened, entry->d_name, &page) != UF_PAGE_NONE
                            ? page.pid == pid && uf__page_is_dead(&page)
                            : is_unfinished(opened, entry->d_name, pid);
        if (is_stale) {
            (void)unlinkat(opened, entry->d_name, 0);
        }
    }
    closedir(listing);
}
