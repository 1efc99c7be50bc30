/* SPDX-License-Identifier: MIT
 *
 * Safe writing of files: create without a name, write, sync, name. Knows nothing of what is
 * written. No lock: one thread owns an output. */
#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

enum { TEMPORARY_NAME_ATTEMPTS = 100 };

/* What stands at the path before we write. */
typedef struct target {
    bool exists;
    mode_t mode;
} target;

static uf_status fail_host_memory(uf_error *error)
{
    return uf__error_set(error, UF_ERROR_HOST_MEMORY,
                         "opening an output: the host has no memory left");
}

static uf_status fail_exists(const char *path, uf_error *error)
{
    return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                         "%s exists; choose another name or ask for it to be overwritten", path);
}

/* A hidden name beside the target, "DIRECTORY/.NAME.PID-N.part"; the caller owns it. */
static char *temporary_name(const char *path, int attempt)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    size_t capacity = strlen(path) + 48;
    char *text = malloc(capacity);
    if (text != NULL) {
        snprintf(text, capacity, "%.*s.%s.%ld-%d.part", (int)(name - path), path, name,
                 (long)getpid(), attempt);
    }
    return text;
}

/* Runs make(context, name) with fresh names until one is not taken. Returns what it returned, and
 * the name (owned by the caller) when that is not negative. */
static int with_temporary_name(const char *path, int (*make)(int, const char *), int descriptor,
                               char **name)
{
    for (int attempt = 0; attempt < TEMPORARY_NAME_ATTEMPTS; attempt++) {
        char *text = temporary_name(path, attempt);
        if (text == NULL) {
            errno = ENOMEM;
            return -1;
        }
        int result = make(descriptor, text);
        if (result >= 0) {
            *name = text;
            return result;
        }
        free(text);
        if (errno != EEXIST) {
            return -1;
        }
    }
    return -1;
}

static int make_file(int unused, const char *name)
{
    (void)unused;
    return open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

/* Gives a nameless file its name; fails with EEXIST instead of replacing. */
static int make_link(int descriptor, const char *name)
{
    char source[64];
    snprintf(source, sizeof source, "/proc/self/fd/%d", descriptor);
    return linkat(AT_FDCWD, source, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

static int open_nameless(const char *path)
{
    if (access("/proc/self/fd", X_OK) != 0) {
        return -1; /* could not be named later */
    }
    const char *slash = strrchr(path, '/');
    if (slash == NULL) {
        return open(".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
    }
    char *directory = strndup(path, (size_t)(slash - path) + 1);
    if (directory == NULL) {
        return -1;
    }
    int descriptor = open(directory, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
    free(directory);
    return descriptor;
}

/* Fills output->stream with a file that will be named output->path. */
static uf_status open_new(uf_output *output, const target *old, uf_error *error)
{
    int descriptor = open_nameless(output->path);
    if (descriptor < 0) {
        descriptor = with_temporary_name(output->path, make_file, -1, &output->temporary);
    }
    if (descriptor < 0) {
        return uf__error_set(error, UF_ERROR_IO, "%s cannot be created: %s", output->path,
                             strerror(errno));
    }
    if (old->exists) {
        (void)!fchmod(descriptor, old->mode & 07777); /* nicety: not having it is no failure */
    }
    output->stream = fdopen(descriptor, "wb");
    if (output->stream == NULL) {
        close(descriptor);
        return fail_host_memory(error);
    }
    return UF_OK;
}

/* Devices and pipes have no content to protect, and replacing them would be a disaster. */
static uf_status open_direct(uf_output *output, const char *path, uf_error *error)
{
    output->stream = fopen(path, "wbe");
    if (output->stream == NULL) {
        return uf__error_set(error, UF_ERROR_IO, "%s cannot be opened for writing: %s", path,
                             strerror(errno));
    }
    return UF_OK;
}

uf_status uf__output_open(uf_output *output, const char *path, bool is_forced, uf_error *error)
{
    uf_output opened = {.is_forced = is_forced};
    if (path[0] == '\0') {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "an output needs a name; \"-\" is standard output");
    }
    if (strcmp(path, "-") == 0) {
        opened.stream = stdout;
        opened.is_standard = true;
        *output = opened;
        return UF_OK;
    }
    struct stat status;
    target old = {.exists = stat(path, &status) == 0};
    if (old.exists) {
        old.mode = status.st_mode;
    }
    if (old.exists && S_ISDIR(old.mode)) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "%s is a directory; an output needs a file name", path);
    }
    uf_status result;
    if (old.exists && !S_ISREG(old.mode)) {
        result = open_direct(&opened, path, error);
    } else if (old.exists && !is_forced) {
        result = fail_exists(path, error);
    } else {
        opened.path = old.exists ? realpath(path, NULL) : strdup(path);
        result = opened.path == NULL ? fail_host_memory(error) : open_new(&opened, &old, error);
    }
    if (result != UF_OK) {
        uf__output_abandon(&opened);
        return result;
    }
    *output = opened;
    return UF_OK;
}

/* Renames a temporary; fails with EEXIST instead of replacing. */
static int rename_new(const char *temporary, const char *path)
{
    if (renameat2(AT_FDCWD, temporary, AT_FDCWD, path, RENAME_NOREPLACE) == 0) {
        return 0;
    }
    if (errno != EINVAL && errno != ENOSYS) {
        return -1;
    }
    if (access(path, F_OK) == 0) { /* the file system cannot do both at once */
        errno = EEXIST;
        return -1;
    }
    return rename(temporary, path);
}

/* Names the finished file. A nameless one is linked to the path directly, or, to replace a file,
 * to a temporary name first; a rename is what replaces. */
static int name_file(uf_output *output)
{
    if (output->temporary == NULL) {
        int descriptor = fileno(output->stream);
        if (make_link(descriptor, output->path) == 0) {
            return 0;
        }
        if (errno != EEXIST || !output->is_forced ||
            with_temporary_name(output->path, make_link, descriptor, &output->temporary) < 0) {
            return -1;
        }
    }
    int result = output->is_forced ? rename(output->temporary, output->path)
                                   : rename_new(output->temporary, output->path);
    if (result == 0) {
        free(output->temporary);
        output->temporary = NULL;
    }
    return result;
}

uf_status uf__output_commit(uf_output *output, uf_error *error)
{
    const char *name = output->is_standard ? "standard output"
                       : output->path      ? output->path
                                           : "the output";
    uf_status result = UF_OK;
    bool has_failed = ferror(output->stream) != 0;
    if (fflush(output->stream) != 0) {
        result = uf__error_set(error, UF_ERROR_IO, "writing %s failed: %s", name, strerror(errno));
    } else if (has_failed) {
        result = uf__error_set(error, UF_ERROR_IO, "writing %s failed", name);
    } else if (output->path != NULL) {
        if (fsync(fileno(output->stream)) != 0) {
            result =
                uf__error_set(error, UF_ERROR_IO, "writing %s failed: %s", name, strerror(errno));
        } else if (name_file(output) != 0) {
            result = errno == EEXIST ? fail_exists(name, error)
                                     : uf__error_set(error, UF_ERROR_IO, "%s cannot be named: %s",
                                                     name, strerror(errno));
        }
    }
    uf__output_abandon(output); /* what is named stays: only temporaries are dropped */
    return result;
}

void uf__output_abandon(uf_output *output)
{
    if (output->stream != NULL && !output->is_standard) {
        fclose(output->stream);
    }
    if (output->temporary != NULL) {
        unlink(output->temporary);
    }
    free(output->temporary);
    free(output->path);
    *output = (uf_output){.stream = NULL};
}
