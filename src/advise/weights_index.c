/* SPDX-License-Identifier: MIT
 *
 * Files that name others: *.index.json names the shard of each tensor, model_index.json the
 * components of a pipeline. Names that lead out of the folder are not followed. */
#include "advise/weights_parts.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIPELINE_NAME "model_index.json"

static json_t *load(const uf_weights *weights, const char *path, json_error_t *where)
{
    char *full = NULL;
    if (asprintf(&full, "%s/%s", weights->folder, path) < 0) {
        return NULL;
    }
    json_t *root = json_load_file(full, JSON_REJECT_DUPLICATES, where);
    free(full);
    return root;
}

static void say_index(uf_weights *weights, const char *path, uf_weight_state state,
                      const char *text)
{
    uf_weight_file *file = uf__weights_add(weights, path, UF_WEIGHT_INDEX, state);
    if (file != NULL) {
        uf__weights_say(file, state, "%s", text);
    }
}

/* The path of a file named beside `index`, or NULL if the name leads elsewhere. */
static char *beside(const char *index, const char *name)
{
    char *path = NULL;
    const char *slash = strrchr(index, '/');
    int length = slash != NULL ? (int)(slash - index + 1) : 0;
    if (name[0] == '\0' || name[0] == '/' || strstr(name, "..") != NULL ||
        asprintf(&path, "%.*s%s", length, index, name) < 0) {
        return NULL;
    }
    return path;
}

/* The tensors that the index expects in a shard are in its header. */
static void check_shard(uf_weights *weights, const json_t *map, const char *name,
                        uf_weight_file *shard)
{
    char *full = NULL;
    uint64_t header_bytes = 0;
    if (shard->format != UF_WEIGHT_SAFETENSORS || shard->state != UF_WEIGHT_COMPLETE ||
        asprintf(&full, "%s/%s", weights->folder, shard->path) < 0) {
        return;
    }
    int stream = open(full, O_RDONLY | O_CLOEXEC);
    free(full);
    json_t *header = NULL;
    if (stream >= 0) {
        header = uf__weights_safetensors_header(stream, shard, &header_bytes);
        close(stream);
    }
    const char *tensor;
    const json_t *value;
    void *iterator = header == NULL ? NULL : json_object_iter((json_t *)(uintptr_t)map);
    for (; iterator != NULL; iterator = json_object_iter_next((json_t *)(uintptr_t)map, iterator)) {
        tensor = json_object_iter_key(iterator);
        value = json_object_iter_value(iterator);
        const char *file = json_string_value(value);
        if (file != NULL && strcmp(file, name) == 0 && json_object_get(header, tensor) == NULL) {
            uf__weights_say(shard, UF_WEIGHT_DAMAGED,
                            "the index expects '%.80s' in it, and it is not there", tensor);
            break;
        }
    }
    json_decref(header);
}

static void follow(uf_weights *weights, const char *index, const json_t *map, const char *name)
{
    char *path = beside(index, name);
    if (path == NULL) {
        say_index(weights, index, UF_WEIGHT_DAMAGED, "it names a file outside its folder");
        return;
    }
    uf_weight_file *shard = uf__weights_find(weights, path);
    if (shard == NULL) {
        uf_weight_format format =
            strstr(name, ".safetensors") != NULL ? UF_WEIGHT_SAFETENSORS : UF_WEIGHT_PICKLE;
        shard = uf__weights_add(weights, path, format, UF_WEIGHT_MISSING);
        if (shard != NULL) {
            const char *slash = strrchr(index, '/');
            uf__weights_say(shard, UF_WEIGHT_MISSING, "%s names it",
                            slash != NULL ? slash + 1 : index);
        }
    } else {
        check_shard(weights, map, name, shard);
    }
    free(path);
}

void uf__weights_check_index(uf_weights *weights, const char *path)
{
    json_error_t where;
    json_t *root = load(weights, path, &where);
    const json_t *map = json_object_get(root, "weight_map");
    if (root == NULL) {
        say_index(weights, path, UF_WEIGHT_DAMAGED, "it is no JSON: it was cut, or is a web page");
    } else if (!json_is_object(map) || json_object_size(map) == 0) {
        say_index(weights, path, UF_WEIGHT_DAMAGED, "it has no weight_map");
    } else {
        json_t *seen = json_object();
        const char *tensor;
        json_t *value;
        json_object_foreach((json_t *)(uintptr_t)map, tensor, value)
        {
            const char *name = json_string_value(value);
            if (name != NULL && json_object_get(seen, name) == NULL) {
                (void)json_object_set_new(seen, name, json_true());
                follow(weights, path, map, name);
            }
        }
        json_decref(seen);
    }
    json_decref(root);
}

json_t *uf__weights_pipeline(const uf_weights *weights)
{
    json_error_t where;
    json_t *root = load(weights, PIPELINE_NAME, &where);
    if (!json_is_object(root)) {
        json_decref(root);
        return NULL;
    }
    return root;
}

static bool ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), count = strlen(ending);
    return length >= count && strcmp(text + length - count, ending) == 0;
}

/* "name": ["library", "Class"]; classes without weights are schedulers, tokenizers and the like. */
static bool has_weights(const json_t *component)
{
    static const char *const without[] = {"Scheduler",        "Tokenizer",      "TokenizerFast",
                                          "FeatureExtractor", "ImageProcessor", "Processor",
                                          "ProcessorFast",    "Guider"};
    const char *library = json_string_value(json_array_get(component, 0));
    const char *type = json_string_value(json_array_get(component, 1));
    if (library == NULL || type == NULL) {
        return false;
    }
    for (size_t i = 0; i < sizeof without / sizeof without[0]; i++) {
        if (ends_with(type, without[i])) {
            return false;
        }
    }
    return true;
}

bool uf__weights_is_component(const json_t *pipeline, const char *component)
{
    return pipeline == NULL || has_weights(json_object_get(pipeline, component));
}

static bool is_folder(const uf_weights *weights, const char *name)
{
    struct stat status;
    char *full = NULL;
    if (asprintf(&full, "%s/%s", weights->folder, name) < 0) {
        return true;
    }
    bool is = stat(full, &status) == 0 && S_ISDIR(status.st_mode);
    free(full);
    return is;
}

static bool has_files(const uf_weights *weights, const char *component)
{
    size_t length = strlen(component);
    for (size_t i = 0; i < weights->file_count; i++) {
        const uf_weight_file *file = &weights->files[i];
        if (strncmp(file->path, component, length) == 0 && file->path[length] == '/' &&
            file->state != UF_WEIGHT_LEFTOVER) {
            return true;
        }
    }
    return false;
}

void uf__weights_check_pipeline(uf_weights *weights)
{
    json_t *pipeline = uf__weights_pipeline(weights);
    const char *name;
    json_t *value;
    if (pipeline == NULL) {
        say_index(weights, PIPELINE_NAME, UF_WEIGHT_DAMAGED, "it is no JSON object");
        return;
    }
    json_object_foreach(pipeline, name, value)
    {
        const char *library = json_string_value(json_array_get(value, 0));
        if (name[0] == '_' || library == NULL || strchr(name, '/') != NULL) {
            continue;
        }
        bool is_there = is_folder(weights, name);
        if (!is_there && !has_weights(value)) {
            say_index(weights, name, UF_WEIGHT_MISSING,
                      "model_index.json names this folder, and it is not there");
        } else if (has_weights(value) && !has_files(weights, name)) {
            say_index(weights, name, UF_WEIGHT_MISSING,
                      is_there ? "this component of the pipeline has no weights"
                               : "model_index.json names this folder, and it is not there");
        }
    }
    json_decref(pipeline);
}
