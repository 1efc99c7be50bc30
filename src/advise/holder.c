/* SPDX-License-Identifier: MIT
 *
 * Reads /proc/PID/stat, cgroup, cmdline and fd. A number the driver gives may be the host's, while
 * /proc numbers our container's processes: a process that has no device file open is not the one.
 */
#include "advise/holder.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

/* The inode of the first PID namespace, fixed in Linux. */
#define FIRST_PID_NAMESPACE "pid:[4026531836]"
#define CONTAINER_ID_SHOWN 12
#define CONTAINER_ID_LEAST 32

typedef enum sight { SIGHT_UNKNOWN, SIGHT_NO, SIGHT_YES } sight;

/* Reads a file of /proc/PID, at most capacity - 1 bytes, NUL behind. False if it cannot be read. */
static bool read_entry(const char *root, uint32_t pid, const char *entry, char *text,
                       size_t capacity, size_t *length)
{
    char path[512];
    snprintf(path, sizeof path, "%s/proc/%u/%s", root, pid, entry);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    size_t filled = 0;
    ssize_t count;
    while (filled + 1 < capacity &&
           (count = read(file, text + filled, capacity - 1 - filled)) > 0) {
        filled += (size_t)count;
    }
    close(file);
    text[filled] = '\0';
    *length = filled;
    return true;
}

/* "7 (a (b) c) S 1 ...": the name may hold anything, so the last ')' ends it. */
static bool read_stat(const char *root, uf_holder *holder, char *state)
{
    char text[1024];
    size_t length = 0;
    if (!read_entry(root, holder->pid, "stat", text, sizeof text, &length)) {
        return false;
    }
    char *open = strchr(text, '('), *close = strrchr(text, ')');
    if (open == NULL || close == NULL || close < open || close[1] != ' ' || close[2] == '\0') {
        return false;
    }
    *state = close[2];
    holder->parent_pid = (uint32_t)strtoul(close + 3, NULL, 10);
    snprintf(holder->name, sizeof holder->name, "%.*s", (int)(close - open - 1), open + 1);
    return true;
}

static void read_command(const char *root, uf_holder *holder)
{
    size_t length = 0;
    if (!read_entry(root, holder->pid, "cmdline", holder->command, sizeof holder->command,
                    &length)) {
        return;
    }
    while (length > 0 && holder->command[length - 1] == '\0') {
        length--;
    }
    for (size_t i = 0; i < length; i++) {
        unsigned char letter = (unsigned char)holder->command[i];
        if (letter < ' ' || letter == 127) {
            holder->command[i] = ' ';
        }
    }
    holder->command[length] = '\0';
}

/* The id in a path of control groups: a run of at least 32 hexadecimal digits (Docker, Kubernetes,
 * Podman, containerd). Empty if there is none. */
static void find_container(const char *cgroup, char *id, size_t capacity)
{
    id[0] = '\0';
    for (const char *at = cgroup; *at != '\0';) {
        size_t run = strspn(at, "0123456789abcdef");
        if (run >= CONTAINER_ID_LEAST) {
            snprintf(id, capacity, "%.*s", CONTAINER_ID_SHOWN, at);
            return;
        }
        at += run + (at[run] != '\0' ? 1 : 0);
    }
}

static void read_container(const char *root, uint32_t pid, char *id, size_t capacity)
{
    char text[4096];
    size_t length = 0;
    id[0] = '\0';
    if (read_entry(root, pid, "cgroup", text, sizeof text, &length)) {
        find_container(text, id, capacity);
    }
}

static bool is_device_file(const char *target)
{
    return (strncmp(target, "/dev/nvidia", 11) == 0 &&
            (isdigit((unsigned char)target[11]) || strncmp(target + 11, "-uvm", 4) == 0 ||
             strcmp(target + 11, "ctl") == 0)) ||
           strncmp(target, "/dev/nvidia-caps/", 17) == 0 || strcmp(target, "/dev/dxg") == 0;
}

/* Has the process a card's device file open? *card: its number where the name tells it. */
static sight sees_device(const char *root, uint32_t pid, int *card)
{
    char path[512];
    snprintf(path, sizeof path, "%s/proc/%u/fd", root, pid);
    DIR *folder = opendir(path);
    if (folder == NULL) {
        return SIGHT_UNKNOWN;
    }
    sight found = SIGHT_NO;
    struct dirent *entry;
    while ((entry = readdir(folder)) != NULL) {
        char target[256];
        ssize_t length = readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1);
        if (length <= 0) {
            continue;
        }
        target[length] = '\0';
        if (is_device_file(target)) {
            found = SIGHT_YES;
            if (isdigit((unsigned char)target[11]) && strncmp(target, "/dev/nvidia", 11) == 0) {
                *card = *card < 0 ? atoi(target + 11) : *card;
            }
        }
    }
    closedir(folder);
    return found;
}

static void describe(const char *root, const char *own_container, uf_holder *holder)
{
    char state = '?';
    int card = -1;
    struct stat status;
    char path[512];
    if (!read_stat(root, holder, &state)) {
        holder->kind = UF_HOLDER_UNSEEN;
        return;
    }
    bool is_dead = state == 'Z' || state == 'X';
    if (!is_dead && sees_device(root, holder->pid, &card) == SIGHT_NO) {
        holder->kind = UF_HOLDER_UNSEEN; /* another process of the same number */
        holder->name[0] = '\0';
        holder->parent_pid = 0;
        return;
    }
    read_command(root, holder);
    read_container(root, holder->pid, holder->container, sizeof holder->container);
    snprintf(path, sizeof path, "%s/proc/%u", root, holder->pid);
    holder->has_user = stat(path, &status) == 0;
    holder->user_id = holder->has_user ? status.st_uid : 0;
    if (is_dead) {
        holder->kind = UF_HOLDER_ZOMBIE;
    } else if (state == 'D') {
        holder->kind = UF_HOLDER_STUCK;
    } else if (state == 'T' || state == 't') {
        holder->kind = UF_HOLDER_STOPPED;
    } else if (holder->container[0] != '\0' && strcmp(holder->container, own_container) != 0) {
        holder->kind = UF_HOLDER_CONTAINER;
    } else {
        holder->kind = UF_HOLDER_PLAIN;
    }
}

static uf_status add(uf_holders *holders, const uf_holder *holder, uf_error *error)
{
    if (holders->count == holders->capacity) {
        size_t capacity = holders->capacity == 0 ? 16 : holders->capacity * 2;
        uf_holder *items = realloc(holders->items, capacity * sizeof *items);
        if (items == NULL) {
            return uf__error_set(error, UF_ERROR_HOST_MEMORY, "no host memory to list processes");
        }
        holders->items = items;
        holders->capacity = capacity;
    }
    holders->items[holders->count++] = *holder;
    return UF_OK;
}

static uf_status read_lists(const uf_nvml *nvml, const uf_holder_place *place,
                            const char *own_container, uf_holders *holders, uf_error *error)
{
    uf_status status = UF_OK;
    for (uint32_t i = 0; i < nvml->card_count && status == UF_OK; i++) {
        const uf_nvml_card *card = &nvml->cards[i];
        for (size_t k = 0; k < card->process_count && status == UF_OK; k++) {
            const uf_nvml_process *process = &card->processes[k];
            if (process->pid == place->own_pid && place->own_pid != 0) {
                continue;
            }
            uf_holder holder = {.pid = process->pid,
                                .card = (int)i,
                                .has_bytes = process->has_bytes,
                                .bytes = process->bytes,
                                .is_graphics = process->is_graphics};
            describe(place->root, own_container, &holder);
            status = add(holders, &holder, error);
        }
    }
    return status;
}

static uf_status read_files(const uf_holder_place *place, const char *own_container,
                            uf_holders *holders, uf_error *error)
{
    char path[512];
    snprintf(path, sizeof path, "%s/proc", place->root);
    holders->is_by_files = true;
    DIR *folder = opendir(path);
    uf_status status = UF_OK;
    struct dirent *entry;
    while (folder != NULL && status == UF_OK && (entry = readdir(folder)) != NULL) {
        uf_holder holder = {.pid = (uint32_t)strtoul(entry->d_name, NULL, 10), .card = -1};
        if (holder.pid == 0 || holder.pid == place->own_pid) {
            continue;
        }
        sight seen = sees_device(place->root, holder.pid, &holder.card);
        holders->hidden_count += seen == SIGHT_UNKNOWN;
        if (seen == SIGHT_YES) {
            describe(place->root, own_container, &holder);
            status = add(holders, &holder, error);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return status;
}

static int compare(const void *left, const void *right)
{
    const uf_holder *a = left, *b = right;
    if (a->card != b->card) {
        return a->card < b->card ? -1 : 1;
    }
    if (a->has_bytes != b->has_bytes) {
        return a->has_bytes ? -1 : 1;
    }
    if (a->bytes != b->bytes) {
        return a->bytes > b->bytes ? -1 : 1;
    }
    return a->pid < b->pid ? -1 : a->pid > b->pid;
}

static bool exists(const char *root, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s%s", root, name);
    return access(path, F_OK) == 0;
}

static void look_around(const uf_holder_place *place, uf_holders *holders, char *own_container,
                        size_t capacity)
{
    char path[512], target[64];
    snprintf(path, sizeof path, "%s/proc/self/ns/pid", place->root);
    ssize_t length = readlink(path, target, sizeof target - 1);
    target[length > 0 ? length : 0] = '\0';
    holders->is_whole_host = strcmp(target, FIRST_PID_NAMESPACE) == 0;
    char text[4096];
    size_t filled = 0;
    own_container[0] = '\0';
    snprintf(path, sizeof path, "%s/proc/self/cgroup", place->root);
    FILE *file = fopen(path, "r");
    if (file != NULL) {
        filled = fread(text, 1, sizeof text - 1, file);
        fclose(file);
        text[filled] = '\0';
        find_container(text, own_container, capacity);
    }
    holders->is_container = own_container[0] != '\0' || exists(place->root, "/.dockerenv") ||
                            exists(place->root, "/run/.containerenv");
}

static bool has_lists(const uf_nvml *nvml)
{
    for (uint32_t i = 0; i < nvml->card_count; i++) {
        if ((nvml->cards[i].valid & UF_NVML_HAS_PROCESSES) != 0) {
            return true;
        }
    }
    return false;
}

uf_status uf__holders_read(const uf_nvml *nvml, const uf_holder_place *place, uf_holders *holders,
                           uf_error *error)
{
    char own_container[16];
    memset(holders, 0, sizeof *holders);
    look_around(place, holders, own_container, sizeof own_container);
    uf_status status = has_lists(nvml) ? read_lists(nvml, place, own_container, holders, error)
                                       : read_files(place, own_container, holders, error);
    if (holders->count > 1) {
        qsort(holders->items, holders->count, sizeof *holders->items, compare);
    }
    return status;
}

void uf__holders_fini(uf_holders *holders)
{
    free(holders->items);
    memset(holders, 0, sizeof *holders);
}

const char *uf__holder_kind_name(const uf_holders *holders, const uf_holder *holder)
{
    switch (holder->kind) {
    case UF_HOLDER_ZOMBIE:
        return "zombie";
    case UF_HOLDER_STUCK:
        return "stuck in the kernel";
    case UF_HOLDER_STOPPED:
        return "stopped";
    case UF_HOLDER_CONTAINER:
        return "in a container";
    case UF_HOLDER_UNSEEN:
        return holders->is_whole_host ? "has ended" : "outside this container";
    case UF_HOLDER_PLAIN:
        break;
    }
    return "";
}
