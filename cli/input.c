/* SPDX-License-Identifier: MIT
 *
 * Finds inputs. Bundled recordings lie in $UNFRAG_DATA, else in the source tree beside the build
 * tree, else in the data folder of the installation. */
#include "input.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "nearest.h"
#include "progress.h"

#define INDEX_NAME "index.tsv"
#define MAX_RECORDINGS 64
#define DEFAULT_SUFFIX ".default"
#define LINE_BYTES 512

/* The bundled recordings, as index.tsv lists them. */
typedef struct catalogue {
    char *folder; /* owned */
    char *names[MAX_RECORDINGS];
    char *short_names[MAX_RECORDINGS];    /* without ".default" at the end */
    uint64_t limit_bytes[MAX_RECORDINGS]; /* 0 = none */
    size_t count;
} catalogue;

static uf_status no_memory(uf_error *error)
{
    return uf__error_set(error, UF_ERROR_HOST_MEMORY, "no host memory for a file name");
}

static bool is_readable(const char *path)
{
    return access(path, R_OK) == 0;
}

/* folder if it holds an index, NULL otherwise; owned by the caller. */
static char *folder_with_index(const char *folder)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s", folder, INDEX_NAME) < 0) {
        return NULL;
    }
    bool is_there = is_readable(path);
    free(path);
    return is_there ? strdup(folder) : NULL;
}

static char *folder_beside_program(const char *relative)
{
    char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0) {
        return NULL;
    }
    program[length] = '\0';
    char *slash = strrchr(program, '/');
    if (slash == NULL) {
        return NULL;
    }
    *slash = '\0';
    char *folder = NULL;
    if (asprintf(&folder, "%s/%s", program, relative) < 0) {
        return NULL;
    }
    char *found = folder_with_index(folder);
    free(folder);
    return found;
}

static char *find_folder(void)
{
    const char *chosen = getenv("UNFRAG_DATA");
    if (chosen != NULL && chosen[0] != '\0') {
        return folder_with_index(chosen);
    }
    char *found = folder_beside_program("../data");
    if (found == NULL) {
        found = folder_beside_program("../share/unfrag");
    }
    return found != NULL ? found : folder_with_index(CLI_INSTALLED_DATA_DIR);
}

static void catalogue_fini(catalogue *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->names[i]);
        free(list->short_names[i]);
    }
    free(list->folder);
}

/* A line is: name, conf, limit_bytes or "none", more; separated by tabs. The first is the head. */
static bool catalogue_add(catalogue *list, const char *line)
{
    size_t name_length = strcspn(line, "\t\n");
    const char *conf = line[name_length] == '\t' ? line + name_length + 1 : "";
    size_t conf_length = strcspn(conf, "\t\n");
    const char *limit = conf[conf_length] == '\t' ? conf + conf_length + 1 : "";
    size_t suffix_length = strlen(DEFAULT_SUFFIX);
    bool is_default = name_length > suffix_length && strncmp(line + name_length - suffix_length,
                                                             DEFAULT_SUFFIX, suffix_length) == 0;
    char *name = strndup(line, name_length);
    char *short_name = strndup(line, name_length - (is_default ? suffix_length : 0));
    if (name == NULL || short_name == NULL) {
        free(name);
        free(short_name);
        return false;
    }
    list->names[list->count] = name;
    list->short_names[list->count] = short_name;
    list->limit_bytes[list->count] = strtoull(limit, NULL, 10);
    list->count += 1;
    return true;
}

static uf_status catalogue_read(catalogue *list, uf_error *error)
{
    memset(list, 0, sizeof *list);
    list->folder = find_folder();
    if (list->folder == NULL) {
        return uf__error_set(error, UF_ERROR_IO,
                             "the bundled recordings were not found: set UNFRAG_DATA to the folder "
                             "that holds their " INDEX_NAME);
    }
    char *path = NULL;
    if (asprintf(&path, "%s/%s", list->folder, INDEX_NAME) < 0) {
        return no_memory(error);
    }
    FILE *file = fopen(path, "r");
    int open_errno = errno;
    uf_status status = UF_OK;
    if (file == NULL) {
        status = uf__error_set(error, UF_ERROR_IO, "%s: %s", path, strerror(open_errno));
    } else {
        char line[LINE_BYTES];
        bool is_head = true;
        while (status == UF_OK && list->count < MAX_RECORDINGS &&
               fgets(line, sizeof line, file) != NULL) {
            if (!is_head && line[0] != '\n' && !catalogue_add(list, line)) {
                status = no_memory(error);
            }
            is_head = false;
        }
        fclose(file);
    }
    free(path);
    return status;
}

/* NAME itself, or NAME.default: "@zimage-1024" is the recording under default settings. */
static size_t catalogue_find(const catalogue *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->names[i], name) == 0 || strcmp(list->short_names[i], name) == 0) {
            return i;
        }
    }
    return list->count;
}

static uf_status no_recording(const catalogue *list, const char *name, uf_error *error)
{
    char names[sizeof error->text] = "";
    size_t length = 0;
    for (size_t i = 0; i < list->count && length < sizeof names; i++) {
        int count = snprintf(names + length, sizeof names - length, " @%s", list->names[i]);
        length += count > 0 ? (size_t)count : 0;
    }
    const char *near = cli_nearest(name, (const char *const *)list->names, list->count);
    if (near == NULL) {
        near = cli_nearest(name, (const char *const *)list->short_names, list->count);
    }
    return uf__error_set(error, UF_ERROR_NOT_FOUND,
                         "there is no recording '@%s'%s%s%s; there are:%s", name,
                         near != NULL ? ", did you mean '@" : "", near != NULL ? near : "",
                         near != NULL ? "'?" : "", names);
}

static uf_status find_bundled(const char *name, cli_input *input, uf_error *error)
{
    catalogue list;
    uf_status status = catalogue_read(&list, error);
    if (status != UF_OK) {
        catalogue_fini(&list);
        return status;
    }
    size_t index = catalogue_find(&list, name);
    if (index == list.count) {
        status = no_recording(&list, name, error);
    } else if (asprintf(&input->path, "%s/%s.pickle.xz", list.folder, list.names[index]) < 0) {
        input->path = NULL;
        status = no_memory(error);
    } else {
        input->is_bundled = true;
        input->limit_bytes = list.limit_bytes[index];
    }
    catalogue_fini(&list);
    return status;
}

/* NAME.stats.json beside NAME.pickle, NAME.pickle.xz and so on. */
static char *find_stats(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash != NULL ? slash + 1 : path;
    const char *end = NULL;
    for (const char *at = strstr(base, ".pickle"); at != NULL; at = strstr(at + 1, ".pickle")) {
        end = at;
    }
    char *stats = NULL;
    if (end == NULL || asprintf(&stats, "%.*s.stats.json", (int)(end - path), path) < 0) {
        return NULL;
    }
    if (!is_readable(stats)) {
        free(stats);
        return NULL;
    }
    return stats;
}

uf_status cli_input_find(const char *argument, cli_input *input, uf_error *error)
{
    memset(input, 0, sizeof *input);
    if (argument[0] == '@') {
        uf_status status = find_bundled(argument + 1, input, error);
        if (status != UF_OK) {
            return status;
        }
    } else {
        input->path = strdup(argument);
        if (input->path == NULL) {
            return no_memory(error);
        }
    }
    input->stats_path = find_stats(input->path);
    return UF_OK;
}

char *cli_input_data_file(const char *name)
{
    char *folder = find_folder(), *path = NULL;
    if (folder == NULL || asprintf(&path, "%s/%s", folder, name) < 0) {
        path = NULL;
    }
    free(folder);
    if (path != NULL && !is_readable(path)) {
        free(path);
        path = NULL;
    }
    return path;
}

void cli_input_fini(cli_input *input)
{
    free(input->path);
    free(input->stats_path);
    memset(input, 0, sizeof *input);
}

uf_status cli_input_read(const cli_input *input, bool skip_stacks, uf_trace **trace,
                         uf_error *error)
{
    cli_progress progress;
    cli_progress_init(&progress, "reading");
    uf_trace_read_options options = {.struct_size_bytes = sizeof options,
                                     .skip_stacks = skip_stacks,
                                     .progress = cli_progress_update,
                                     .progress_context = &progress};
    uf_status status = uf_trace_read(input->path, &options, trace, error);
    cli_progress_fini(&progress);
    return status;
}
