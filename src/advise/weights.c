/* SPDX-License-Identifier: MIT
 *
 * Scans a folder for weight files, groups them into sets, and adds up what a program would load. */
#include "advise/weights.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "advise/weights_parts.h"
#include "base/error.h"
#include "base/size.h"

#define DEPTH_MAX 8u

const char *uf__weight_state_name(uf_weight_state state)
{
    static const char *const names[] = {
        [UF_WEIGHT_COMPLETE] = "complete",
        [UF_WEIGHT_UNCHECKED] = "unchecked",
        [UF_WEIGHT_ABSENT] = "absent",
        [UF_WEIGHT_LEFTOVER] = "leftover",
        [UF_WEIGHT_CUT] = "cut",
        [UF_WEIGHT_DAMAGED] = "damaged",
        [UF_WEIGHT_PLACEHOLDER] = "placeholder",
        [UF_WEIGHT_MISSING] = "missing",
        [UF_WEIGHT_UNFINISHED] = "unfinished",
    };
    return names[state];
}

const char *uf__weight_format_name(uf_weight_format format)
{
    static const char *const names[] = {[UF_WEIGHT_SAFETENSORS] = "safetensors",
                                        [UF_WEIGHT_GGUF] = "gguf",
                                        [UF_WEIGHT_PICKLE] = "pickle",
                                        [UF_WEIGHT_INDEX] = "index"};
    return names[format];
}

void uf__weights_say(uf_weight_file *file, uf_weight_state state, const char *format, ...)
{
    va_list arguments;
    free(file->text);
    va_start(arguments, format);
    if (vasprintf(&file->text, format, arguments) < 0) {
        file->text = NULL;
    }
    va_end(arguments);
    file->state = state;
}

bool uf__weights_read(int stream, uint64_t offset_bytes, void *bytes, size_t size_bytes)
{
    size_t done = 0;
    while (done < size_bytes) {
        ssize_t count =
            pread(stream, (char *)bytes + done, size_bytes - done, (off_t)(offset_bytes + done));
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            return false;
        }
        done += (size_t)count;
    }
    return true;
}

uf_weight_file *uf__weights_add(uf_weights *weights, const char *path, uf_weight_format format,
                                uf_weight_state state)
{
    if (weights->file_count == UF_WEIGHTS_FILES_MAX) {
        weights->is_truncated = true;
        return NULL;
    }
    if (weights->file_count == weights->file_capacity) {
        size_t capacity = weights->file_capacity == 0 ? 16 : weights->file_capacity * 2;
        uf_weight_file *files = realloc(weights->files, capacity * sizeof *files);
        if (files == NULL) {
            weights->is_truncated = true;
            return NULL;
        }
        weights->files = files;
        weights->file_capacity = capacity;
    }
    char *copy = strdup(path);
    if (copy == NULL) {
        weights->is_truncated = true;
        return NULL;
    }
    uf_weight_file *file = &weights->files[weights->file_count++];
    *file = (uf_weight_file){.path = copy, .format = format, .state = state};
    return file;
}

uf_weight_file *uf__weights_find(uf_weights *weights, const char *path)
{
    for (size_t i = 0; i < weights->file_count; i++) {
        if (strcmp(weights->files[i].path, path) == 0) {
            return &weights->files[i];
        }
    }
    return NULL;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static bool ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), count = strlen(ending);
    return length > count && strcasecmp(text + length - count, ending) == 0;
}

/* Files that training leaves beside weights. */
static bool is_other_pickle(const char *name)
{
    static const char *const names[] = {"training_args.bin", "optimizer.bin", "optimizer.pt",
                                        "scheduler.bin",     "scheduler.pt",  "scaler.pt",
                                        "tokenizer.bin"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return strncmp(name, "rng_state", 9) == 0;
}

static bool find_format(const char *name, uf_weight_format *format)
{
    if (ends_with(name, ".safetensors") || ends_with(name, ".sft")) {
        *format = UF_WEIGHT_SAFETENSORS;
    } else if (ends_with(name, ".gguf")) {
        *format = UF_WEIGHT_GGUF;
    } else if ((ends_with(name, ".bin") || ends_with(name, ".ckpt") || ends_with(name, ".pt") ||
                ends_with(name, ".pth")) &&
               !is_other_pickle(name)) {
        *format = UF_WEIGHT_PICKLE;
    } else {
        return false;
    }
    return true;
}

/* The length of a name without the ending of an unfinished download; 0 if it is none. */
static size_t unfinished_length(const char *name)
{
    static const char *const endings[] = {".incomplete", ".part",     ".partial", ".aria2",
                                          ".crdownload", ".download", ".!qb",     ".tmp"};
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        if (ends_with(name, endings[i])) {
            return strlen(name) - strlen(endings[i]);
        }
    }
    return 0;
}

static void check_file(uf_weights *weights, const char *full, const char *path,
                       uf_weight_format format)
{
    struct stat status;
    uf_weight_file *file = uf__weights_add(weights, path, format, UF_WEIGHT_COMPLETE);
    if (file == NULL) {
        return;
    }
    int stream = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (stream < 0 || fstat(stream, &status) != 0 || !S_ISREG(status.st_mode)) {
        int reason = errno;
        bool is_link = lstat(full, &status) == 0 && S_ISLNK(status.st_mode) && reason == ENOENT;
        uf__weights_say(file, is_link ? UF_WEIGHT_MISSING : UF_WEIGHT_UNCHECKED, "%s",
                        is_link ? "a link to a file that is not there" : strerror(reason));
    } else {
        file->file_bytes = (uint64_t)status.st_size;
        if (uf__weights_is_placeholder(stream, file)) {
            /* it is told */
        } else if (format == UF_WEIGHT_SAFETENSORS) {
            uf__weights_check_safetensors(stream, file);
        } else if (format == UF_WEIGHT_GGUF) {
            uf__weights_check_gguf(stream, file);
        } else {
            uf__weights_check_pickle(stream, file);
        }
    }
    if (stream >= 0) {
        close(stream);
    }
}

/* What a broken-off download left. aria2 makes room for the whole file first, so the file beside
 * its note is not whole either. */
static void check_unfinished(uf_weights *weights, const char *full, const char *path,
                             size_t name_length)
{
    struct stat status;
    uf_weight_format format;
    const char *name = base_name(path);
    char *target = strndup(full, strlen(full) - (strlen(name) - name_length));
    char *target_name = strndup(name, name_length);
    bool is_weights = target_name != NULL && find_format(target_name, &format);
    bool is_cache = ends_with(name, ".incomplete");
    if (target != NULL && (is_weights || is_cache)) {
        bool is_done = access(target, F_OK) == 0 && !ends_with(name, ".aria2");
        /* In a cache's own folder the name of the file that was meant is not to be seen. */
        bool is_hidden = strncmp(path, ".cache/", 7) == 0;
        uf_weight_file *file = uf__weights_add(
            weights, path, is_weights ? format : UF_WEIGHT_SAFETENSORS, UF_WEIGHT_LEFTOVER);
        if (file != NULL) {
            file->file_bytes = stat(full, &status) == 0 ? (uint64_t)status.st_size : 0;
            uf__weights_say(file, is_done || is_hidden ? UF_WEIGHT_LEFTOVER : UF_WEIGHT_UNFINISHED,
                            is_done || is_hidden ? "left over by a download"
                                                 : "a download that is not done");
        }
    }
    free(target);
    free(target_name);
}

typedef struct tree {
    uf_weights *weights;
    char **indexes; /* paths of *.index.json; owned */
    size_t index_count, index_capacity;
} tree;

static void note_index(tree *walk, const char *path)
{
    if (walk->index_count == walk->index_capacity) {
        size_t capacity = walk->index_capacity == 0 ? 8 : walk->index_capacity * 2;
        char **larger = realloc(walk->indexes, capacity * sizeof *larger);
        if (larger == NULL) {
            walk->weights->is_truncated = true;
            return;
        }
        walk->indexes = larger;
        walk->index_capacity = capacity;
    }
    char *copy = strdup(path);
    walk->weights->is_truncated = walk->weights->is_truncated || copy == NULL;
    walk->index_count += copy != NULL;
    if (copy != NULL) {
        walk->indexes[walk->index_count - 1] = copy;
    }
}

static void walk_folder(tree *walk, const char *path, unsigned depth);

static void visit(tree *walk, const char *path, unsigned depth)
{
    struct stat status;
    uf_weight_format format;
    char *full = NULL;
    const char *name = base_name(path);
    if (asprintf(&full, "%s/%s", walk->weights->folder, path) < 0) {
        walk->weights->is_truncated = true;
        return;
    }
    if (stat(full, &status) == 0 && S_ISDIR(status.st_mode)) {
        bool is_hidden = name[0] == '.' && strcmp(path, ".cache") != 0;
        if (depth >= DEPTH_MAX) {
            walk->weights->is_truncated = true;
        } else if (!is_hidden) {
            walk_folder(walk, path, depth + 1);
        }
    } else if (unfinished_length(name) > 0) {
        check_unfinished(walk->weights, full, path, unfinished_length(name));
    } else if (strncmp(path, ".cache/", 7) == 0) {
        /* only what is unfinished there matters */
    } else if (find_format(name, &format)) {
        check_file(walk->weights, full, path, format);
    } else if (ends_with(name, ".index.json")) {
        note_index(walk, path);
    } else if (strcmp(path, "model_index.json") == 0) {
        walk->weights->is_pipeline = true;
    }
    free(full);
}

/* Entries in the order of their names, so that the result does not depend on the file system. */
static void walk_folder(tree *walk, const char *path, unsigned depth)
{
    struct dirent **entries = NULL;
    char *full = NULL;
    if (asprintf(&full, "%s%s%s", walk->weights->folder, path[0] == '\0' ? "" : "/", path) < 0) {
        walk->weights->is_truncated = true;
        return;
    }
    int count = scandir(full, &entries, NULL, alphasort);
    free(full);
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        char *inner = NULL;
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
            asprintf(&inner, "%s%s%s", path, path[0] == '\0' ? "" : "/", name) >= 0) {
            visit(walk, inner, depth);
            free(inner);
        }
        free(entries[i]);
    }
    free(entries);
}

/* "-00002-of-00005" within a name: where it begins and its length; 0 if there is none. */
static size_t find_shard(const char *name, size_t *start, unsigned long *number,
                         unsigned long *count)
{
    for (const char *at = strchr(name, '-'); at != NULL; at = strchr(at + 1, '-')) {
        char *end = NULL;
        if (!isdigit((unsigned char)at[1])) {
            continue;
        }
        *number = strtoul(at + 1, &end, 10);
        if (strncmp(end, "-of-", 4) != 0 || !isdigit((unsigned char)end[4])) {
            continue;
        }
        *count = strtoul(end + 4, &end, 10);
        *start = (size_t)(at - name);
        return (size_t)(end - at);
    }
    return 0;
}

/* "unet/model.fp16-00001-of-00002.safetensors" -> "unet", "model.fp16" */
static bool split(const char *path, char **component, char **name)
{
    const char *base = base_name(path);
    size_t start = 0;
    unsigned long number = 0, count = 0;
    size_t length = find_shard(base, &start, &number, &count);
    const char *dot = strrchr(base, '.');
    size_t stem = dot != NULL ? (size_t)(dot - base) : strlen(base);
    size_t before = length > 0 ? start : stem, after = length > 0 ? start + length : stem;
    *component = strndup(path, base > path ? (size_t)(base - path - 1) : 0);
    if (asprintf(name, "%.*s%.*s", (int)before, base, (int)(stem > after ? stem - after : 0),
                 base + after) < 0) {
        *name = NULL;
    }
    return *component != NULL && *name != NULL;
}

static uf_weight_set *find_set(uf_weights *weights, const char *component, const char *name,
                               uf_weight_format format)
{
    for (size_t i = 0; i < weights->set_count; i++) {
        uf_weight_set *set = &weights->sets[i];
        if (set->format == format && strcmp(set->component, component) == 0 &&
            strcmp(set->name, name) == 0) {
            return set;
        }
    }
    return NULL;
}

static bool add_sums(uf_weights_sum *total, const uf_weights_sum *part)
{
    if (!uf__add_checked(total->data_bytes, part->data_bytes, &total->data_bytes) ||
        !uf__add_checked(total->parameter_count, part->parameter_count, &total->parameter_count)) {
        return false;
    }
    total->tensor_count += part->tensor_count;
    for (unsigned i = 0; i < UF_DTYPE_COUNT; i++) {
        total->dtype_bytes[i] += part->dtype_bytes[i];
        total->dtype_parameters[i] += part->dtype_parameters[i];
    }
    return true;
}

/* Takes component and name over. */
static uf_status add_to_set(uf_weights *weights, const uf_weight_file *file, char *component,
                            char *name, uf_error *error)
{
    uf_weight_set *set = find_set(weights, component, name, file->format);
    if (set == NULL && weights->set_count == weights->set_capacity) {
        size_t capacity = weights->set_capacity == 0 ? 8 : weights->set_capacity * 2;
        uf_weight_set *sets = realloc(weights->sets, capacity * sizeof *sets);
        if (sets == NULL) {
            free(component);
            free(name);
            return uf__error_set(error, UF_ERROR_HOST_MEMORY, "no host memory to list weights");
        }
        weights->sets = sets;
        weights->set_capacity = capacity;
    }
    if (set == NULL) {
        set = &weights->sets[weights->set_count++];
        *set = (uf_weight_set){
            .component = component, .name = name, .format = file->format, .has_sum = true};
    } else {
        free(component);
        free(name);
    }
    set->file_count++;
    set->file_bytes += file->file_bytes;
    set->fault_count += uf__weight_is_fault(file->state);
    set->missing_count += file->state == UF_WEIGHT_MISSING;
    set->has_sum = set->has_sum && file->has_sum && add_sums(&set->sum, &file->sum);
    return UF_OK;
}

static uf_status make_sets(uf_weights *weights, uf_error *error)
{
    uf_status status = UF_OK;
    for (size_t i = 0; i < weights->file_count && status == UF_OK; i++) {
        const uf_weight_file *file = &weights->files[i];
        char *component = NULL, *name = NULL;
        if (file->format == UF_WEIGHT_INDEX || file->state == UF_WEIGHT_LEFTOVER ||
            file->state == UF_WEIGHT_UNFINISHED) {
            continue;
        }
        if (!split(file->path, &component, &name)) {
            free(component);
            free(name);
            return uf__error_set(error, UF_ERROR_HOST_MEMORY, "no host memory to list weights");
        }
        status = add_to_set(weights, file, component, name, error);
    }
    return status;
}

/* A name without its variant and the format's prefix: what two sets have in common that a program
 * chooses between. *variant_rank: 0 for none, else by habit. */
static void split_variant(const char *name, char *stem, size_t capacity, unsigned *variant_rank)
{
    static const char *const variants[] = {".fp16", ".bf16", ".fp32", ".ema", ".non_ema", ".fp8"};
    const char *known = strncmp(name, "pytorch_model", 13) == 0 ? name + 8 : name;
    snprintf(stem, capacity, "%s", known);
    *variant_rank = 0;
    for (unsigned i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        size_t length = strlen(stem), count = strlen(variants[i]);
        if (length > count && strcmp(stem + length - count, variants[i]) == 0) {
            stem[length - count] = '\0';
            *variant_rank = i + 1;
            return;
        }
    }
}

/* Do two sets hold the same model, in other variants or formats? *preference: above 0 if a program
 * would rather load the first. */
static bool are_alternatives(const uf_weight_set *set, const uf_weight_set *other, int *preference)
{
    char stem[256], other_stem[256];
    unsigned rank, other_rank;
    split_variant(set->name, stem, sizeof stem, &rank);
    split_variant(other->name, other_stem, sizeof other_stem, &other_rank);
    *preference =
        other_rank != rank ? (int)other_rank - (int)rank : (int)other->format - (int)set->format;
    return set != other && strcmp(set->component, other->component) == 0 &&
           strcmp(stem, other_stem) == 0;
}

/* An index of a variant that was never fetched is no fault while another variant is whole. */
static void excuse_absent(uf_weights *weights, uf_weight_set *set)
{
    const uf_weight_set *instead = NULL;
    int preference;
    for (size_t i = 0; i < weights->set_count && instead == NULL; i++) {
        const uf_weight_set *other = &weights->sets[i];
        if (other->fault_count == 0 && are_alternatives(set, other, &preference)) {
            instead = other;
        }
    }
    for (size_t i = 0; i < weights->file_count && instead != NULL; i++) {
        uf_weight_file *file = &weights->files[i];
        char *component = NULL, *name = NULL;
        if (file->state == UF_WEIGHT_MISSING && file->format == set->format &&
            split(file->path, &component, &name) && strcmp(component, set->component) == 0 &&
            strcmp(name, set->name) == 0) {
            uf__weights_say(file, UF_WEIGHT_ABSENT, "not here; '%s' (%s) is", instead->name,
                            uf__weight_format_name(instead->format));
        }
        free(component);
        free(name);
    }
    set->is_absent = instead != NULL;
}

static void choose_sets(uf_weights *weights)
{
    json_t *pipeline = weights->is_pipeline ? uf__weights_pipeline(weights) : NULL;
    weights->has_sum = false;
    for (size_t i = 0; i < weights->set_count; i++) {
        if (weights->sets[i].missing_count == weights->sets[i].file_count) {
            excuse_absent(weights, &weights->sets[i]);
        }
    }
    for (size_t i = 0; i < weights->set_count; i++) {
        uf_weight_set *set = &weights->sets[i];
        int preference;
        set->is_chosen = !set->is_absent && uf__weights_is_component(pipeline, set->component);
        for (size_t k = 0; k < weights->set_count && set->is_chosen; k++) {
            const uf_weight_set *other = &weights->sets[k];
            set->is_chosen =
                other->is_absent || !are_alternatives(set, other, &preference) || preference > 0;
        }
    }
    bool is_known = true, has_any = false;
    for (size_t i = 0; i < weights->set_count; i++) {
        const uf_weight_set *set = &weights->sets[i];
        if (set->is_chosen) {
            has_any = true;
            is_known = is_known && set->has_sum && add_sums(&weights->sum, &set->sum);
        }
    }
    weights->has_sum = is_known && has_any;
    json_decref(pipeline);
}

/* Shards that number themselves "-of-N" and have no index: each of 1 to N is there. */
static void check_numbers(uf_weights *weights)
{
    size_t count = weights->file_count;
    for (size_t i = 0; i < count; i++) {
        size_t start = 0;
        unsigned long number = 0, total = 0;
        char *path = weights->files[i].path;
        size_t base = (size_t)(base_name(path) - path);
        size_t length = find_shard(path + base, &start, &number, &total);
        if (length == 0 || total > UF_WEIGHTS_FILES_MAX ||
            weights->files[i].format == UF_WEIGHT_INDEX ||
            weights->files[i].state == UF_WEIGHT_LEFTOVER ||
            weights->files[i].state == UF_WEIGHT_UNFINISHED) {
            continue;
        }
        int width = (int)strcspn(path + base + start + 1, "-");
        for (unsigned long k = 1; k <= total; k++) {
            char *other = NULL;
            path = weights->files[i].path;
            if (asprintf(&other, "%.*s-%0*lu%s", (int)(base + start), path, width, k,
                         path + base + start + 1 + (size_t)width) < 0) {
                return;
            }
            uf_weight_format format = weights->files[i].format;
            uf_weight_file *file = uf__weights_find(weights, other) == NULL
                                       ? uf__weights_add(weights, other, format, UF_WEIGHT_MISSING)
                                       : NULL;
            if (file != NULL) {
                uf__weights_say(file, UF_WEIGHT_MISSING, "the others count %lu of them", total);
            }
            free(other);
        }
    }
}

/* A Hugging Face cache keeps a model in models--OWNER--NAME/snapshots/COMMIT; refs/main names it.
 */
static char *find_snapshot(const char *folder)
{
    char *path = NULL, *snapshot = NULL;
    char commit[128] = "";
    if (asprintf(&path, "%s/refs/main", folder) < 0) {
        return NULL;
    }
    FILE *file = fopen(path, "r");
    free(path);
    if (file == NULL) {
        return NULL;
    }
    size_t length = fread(commit, 1, sizeof commit - 1, file);
    fclose(file);
    commit[length] = '\0';
    commit[strspn(commit, "0123456789abcdefABCDEF")] = '\0';
    if (commit[0] == '\0' || asprintf(&snapshot, "%s/snapshots/%s", folder, commit) < 0) {
        return NULL;
    }
    if (access(snapshot, F_OK) != 0) {
        free(snapshot);
        return NULL;
    }
    return snapshot;
}

/* Downloads into the cache that were broken off: blobs/HASH.incomplete. */
static void check_blobs(uf_weights *weights, const char *cache)
{
    char *path = NULL;
    if (asprintf(&path, "%s/blobs", cache) < 0) {
        return;
    }
    DIR *folder = opendir(path);
    struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        char *full = NULL, *shown = NULL;
        size_t length = unfinished_length(entry->d_name);
        if (length > 0 && asprintf(&full, "%s/%s", path, entry->d_name) >= 0 &&
            asprintf(&shown, "blobs/%s", entry->d_name) >= 0) {
            check_unfinished(weights, full, shown, length);
        }
        free(full);
        free(shown);
    }
    if (folder != NULL) {
        closedir(folder);
    }
    free(path);
}

static uf_status finish(uf_weights *weights, uf_error *error)
{
    check_numbers(weights);
    if (weights->is_pipeline) {
        uf__weights_check_pipeline(weights);
    }
    uf_status status = make_sets(weights, error);
    if (status == UF_OK) {
        choose_sets(weights);
    }
    for (size_t i = 0; i < weights->file_count; i++) {
        weights->fault_count += uf__weight_is_fault(weights->files[i].state);
    }
    return status;
}

static uf_status scan_one(const char *path, uf_weights *weights, uf_error *error)
{
    uf_weight_format format;
    const char *name = base_name(path);
    size_t length = (size_t)(name - path);
    weights->folder =
        strndup(length > 1 ? path : (length == 1 ? "/" : "."), length > 1 ? length - 1 : 1);
    if (weights->folder == NULL) {
        return uf__error_set(error, UF_ERROR_HOST_MEMORY, "no host memory to look at %s", path);
    }
    if (!find_format(name, &format)) {
        return uf__error_set(error, UF_ERROR_BAD_INPUT,
                             "%s: neither a folder nor a weight file (.safetensors, .gguf, .bin, "
                             ".pt, .pth, .ckpt)",
                             path);
    }
    check_file(weights, path, name, format);
    uf_status status = make_sets(weights, error);
    if (status == UF_OK) {
        choose_sets(weights);
    }
    weights->fault_count = weights->file_count > 0 && uf__weight_is_fault(weights->files[0].state);
    return status;
}

uf_status uf__weights_scan(const char *path, uf_weights *weights, uf_error *error)
{
    struct stat status;
    memset(weights, 0, sizeof *weights);
    if (stat(path, &status) != 0) {
        return uf__error_set(error, UF_ERROR_IO, "%s: cannot be read: %s", path, strerror(errno));
    }
    if (!S_ISDIR(status.st_mode)) {
        return scan_one(path, weights, error);
    }
    if (access(path, R_OK | X_OK) != 0) {
        return uf__error_set(error, UF_ERROR_IO, "%s: cannot be read: %s", path, strerror(errno));
    }
    char *snapshot = find_snapshot(path);
    weights->folder = snapshot != NULL ? snapshot : strdup(path);
    if (weights->folder == NULL) {
        return uf__error_set(error, UF_ERROR_HOST_MEMORY, "no host memory to look at %s", path);
    }
    tree walk = {.weights = weights};
    walk_folder(&walk, "", 0);
    for (size_t i = 0; i < walk.index_count; i++) {
        uf__weights_check_index(weights, walk.indexes[i]);
        free(walk.indexes[i]);
    }
    free(walk.indexes);
    if (snapshot != NULL) {
        check_blobs(weights, path);
    }
    return finish(weights, error);
}

void uf__weights_fini(uf_weights *weights)
{
    for (size_t i = 0; i < weights->file_count; i++) {
        free(weights->files[i].path);
        free(weights->files[i].text);
    }
    for (size_t i = 0; i < weights->set_count; i++) {
        free(weights->sets[i].component);
        free(weights->sets[i].name);
    }
    free(weights->files);
    free(weights->sets);
    free(weights->folder);
    memset(weights, 0, sizeof *weights);
}

bool uf__weights_is_complete(const uf_weights *weights)
{
    size_t found = 0;
    for (size_t i = 0; i < weights->file_count; i++) {
        found += weights->files[i].format != UF_WEIGHT_INDEX &&
                 weights->files[i].state != UF_WEIGHT_LEFTOVER;
    }
    return found > 0 && weights->fault_count == 0;
}
