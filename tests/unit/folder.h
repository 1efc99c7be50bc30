/* SPDX-License-Identifier: MIT
 *
 * A folder that a test fills and that is gone afterwards. */
#ifndef UF_TESTS_FOLDER_H
#define UF_TESTS_FOLDER_H

#include <check.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static inline void folder_create(void)
{
    strcpy(folder, "/tmp/unfrag-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static inline int folder_remove_entry(const char *path, const struct stat *status, int type,
                                      struct FTW *walk)
{
    (void)status, (void)type, (void)walk;
    return remove(path);
}

static inline void folder_destroy(void)
{
    (void)nftw(folder, folder_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* The full path of a name below the folder; the folders above it are made. Static text. */
static inline const char *folder_path(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    for (char *at = path + strlen(folder) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        (void)mkdir(path, 0755);
        *at = '/';
    }
    return path;
}

static inline void folder_write(const char *name, const void *bytes, size_t size)
{
    int file = open(folder_path(name), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(write(file, bytes, size), (ssize_t)size);
    close(file);
}

static inline void folder_write_text(const char *name, const char *text)
{
    folder_write(name, text, strlen(text));
}

static inline void folder_link(const char *name, const char *target)
{
    ck_assert_int_eq(symlink(target, folder_path(name)), 0);
}

#endif
