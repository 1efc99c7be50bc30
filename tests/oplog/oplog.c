/* SPDX-License-Identifier: MIT
 *
 * Reading and writing operation logs. See oplog.h. */
#include "oplog/oplog.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/error.h"
#include "trace/input.h"

static const char *const kind_names[OPLOG_KIND_COUNT] = {
    "alloc",    "free",        "record_stream", "synchronize", "empty_cache",  "set_fraction",
    "set_conf", "pool_create", "pool_begin",    "pool_end",    "pool_destroy",
};

uf_status oplog_path(const char *base, const char *suffix, char *path, size_t size, uf_error *error)
{
    static const char *const endings[] = {"", ".xz"};
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(path, size, "%s%s%s", base, suffix, endings[i]);
        if (access(path, R_OK) == 0) {
            return UF_OK;
        }
    }
    return uf__error_set(error, UF_ERROR_IO, "cannot read %s%s, with or without .xz", base, suffix);
}

/* The whole decompressed file with a NUL behind; the caller frees it. */
static uf_status read_all(const char *path, char **text, size_t *length, uf_error *error)
{
    uf__input *input = NULL;
    uf_status status = uf__input_open(path, NULL, &input, error);
    char *bytes = NULL;
    size_t count = 0;
    size_t capacity = 0;
    while (status == UF_OK) {
        status = uf__input_ensure(input, 1, error);
        size_t more = status == UF_OK ? uf__input_at_hand(input) : 0;
        while (capacity < count + more + 1) {
            bytes = model_grow(bytes, capacity, &capacity, 1);
        }
        if (status != UF_OK || more == 0) {
            break;
        }
        memcpy(bytes + count, input->cursor, more);
        input->cursor += more;
        count += more;
    }
    uf__input_close(input);
    if (status != UF_OK) {
        free(bytes);
        return status;
    }
    bytes[count] = '\0';
    *text = bytes;
    *length = count;
    return UF_OK;
}

void oplog_append(oplog *log, const oplog_op *op)
{
    log->ops = model_grow(log->ops, log->count, &log->capacity, sizeof *log->ops);
    oplog_op *copy = &log->ops[log->count++];
    *copy = *op;
    if (op->conf != NULL) {
        copy->conf = strdup(op->conf);
    }
    bool has_id = op->kind <= OPLOG_RECORD_STREAM;
    if (has_id && op->id >= log->id_count) {
        log->id_count = op->id + 1;
    }
}

void oplog_destroy(oplog *log)
{
    if (log == NULL) {
        return;
    }
    for (size_t i = 0; i < log->count; i++) {
        free(log->ops[i].conf);
    }
    free(log->ops);
    free(log);
}

static uint64_t integer_of(const json_t *object, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(object, key));
}

static bool is_true(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

/* Fills op from a line's object; false if the operation is unknown. op->conf is borrowed. */
static bool op_parse(const json_t *object, oplog_op *op)
{
    const char *name = json_string_value(json_object_get(object, "op"));
    *op = (oplog_op){.kind = OPLOG_KIND_COUNT};
    for (int i = 0; name != NULL && i < OPLOG_KIND_COUNT; i++) {
        if (strcmp(name, kind_names[i]) == 0) {
            op->kind = (oplog_kind)i;
        }
    }
    op->id = integer_of(object, "id");
    op->bytes = integer_of(object, "bytes");
    op->stream = integer_of(object, "stream");
    op->addr = integer_of(object, "addr");
    op->is_one_stream = op->kind == OPLOG_SYNCHRONIZE && json_object_get(object, "stream") != NULL;
    op->fraction = json_number_value(json_object_get(object, "fraction"));
    op->conf = (char *)(uintptr_t)json_string_value(json_object_get(object, "conf"));
    const json_t *pool = json_object_get(object, "pool");
    op->pool[0] = (uint64_t)json_integer_value(json_array_get(pool, 0));
    op->pool[1] = (uint64_t)json_integer_value(json_array_get(pool, 1));
    op->pool_options.is_use_on_oom = is_true(object, "use_on_oom");
    op->pool_options.is_no_split = is_true(object, "no_split");
    op->pool_options.is_never_expandable = is_true(object, "never_expandable");
    return op->kind != OPLOG_KIND_COUNT && (op->kind != OPLOG_SET_CONF || op->conf != NULL);
}

static uf_status line_parse(oplog *log, const char *line, size_t length, size_t number,
                            uint64_t open_pool[2], uf_error *error)
{
    json_error_t problem;
    json_t *object = json_loadb(line, length, 0, &problem);
    oplog_op op;
    uf_status status = UF_OK;
    if (object == NULL) {
        return uf__error_set(error, UF_ERROR_BAD_INPUT, "line %zu: %s", number, problem.text);
    }
    if (number == 1) {
        log->total_bytes = integer_of(object, "total_bytes");
    } else if (!op_parse(object, &op)) {
        status = uf__error_set(error, UF_ERROR_BAD_INPUT, "line %zu: no known operation", number);
    } else {
        if (op.kind == OPLOG_POOL_BEGIN) {
            memcpy(open_pool, op.pool, sizeof op.pool);
        } else if (op.kind == OPLOG_POOL_END && json_object_get(object, "pool") == NULL) {
            memcpy(op.pool, open_pool, sizeof op.pool);
        }
        oplog_append(log, &op);
    }
    json_decref(object);
    return status;
}

uf_status oplog_read(const char *base, oplog **result, uf_error *error)
{
    char path[4096];
    char *text = NULL;
    size_t length = 0;
    uf_status status = oplog_path(base, ".ops.jsonl", path, sizeof path, error);
    if (status == UF_OK) {
        status = read_all(path, &text, &length, error);
    }
    if (status != UF_OK) {
        return status;
    }
    oplog *log = calloc(1, sizeof *log);
    uint64_t open_pool[2] = {0, 0};
    size_t number = 1;
    for (size_t at = 0; log != NULL && status == UF_OK && at < length; number++) {
        const char *end = memchr(text + at, '\n', length - at);
        size_t line_length = end == NULL ? length - at : (size_t)(end - text) - at;
        status = line_parse(log, text + at, line_length, number, open_pool, error);
        at += line_length + 1;
    }
    free(text);
    if (log == NULL) {
        return UF_ERROR_HOST_MEMORY;
    }
    if (status == UF_OK && (number == 1 || log->total_bytes == 0)) {
        status = uf__error_set(error, UF_ERROR_BAD_INPUT, "%s has no header line", path);
    }
    if (status != UF_OK) {
        oplog_destroy(log);
        return status;
    }
    *result = log;
    return UF_OK;
}

void oplog_op_write(const oplog_op *op, FILE *stream)
{
    (void)fprintf(stream, "{\"op\": \"%s\"", kind_names[op->kind]);
    if (op->kind <= OPLOG_RECORD_STREAM) {
        (void)fprintf(stream, ", \"id\": %" PRIu64, op->id);
    }
    if (op->kind == OPLOG_ALLOC) {
        (void)fprintf(stream, ", \"bytes\": %" PRIu64, op->bytes);
    }
    if (op->kind == OPLOG_ALLOC || op->kind == OPLOG_RECORD_STREAM || op->is_one_stream) {
        (void)fprintf(stream, ", \"stream\": %" PRIu64, op->stream);
    }
    if (op->kind == OPLOG_SET_FRACTION) {
        (void)fprintf(stream, ", \"fraction\": %.17g", op->fraction);
    }
    if (op->kind == OPLOG_SET_CONF) {
        (void)fprintf(stream, ", \"conf\": \"%s\"", op->conf);
    }
    if (op->kind >= OPLOG_POOL_CREATE) {
        (void)fprintf(stream, ", \"pool\": [%" PRIu64 ", %" PRIu64 "]", op->pool[0], op->pool[1]);
    }
    if (op->pool_options.is_use_on_oom) {
        (void)fprintf(stream, ", \"use_on_oom\": true");
    }
    if (op->pool_options.is_no_split) {
        (void)fprintf(stream, ", \"no_split\": true");
    }
    if (op->pool_options.is_never_expandable) {
        (void)fprintf(stream, ", \"never_expandable\": true");
    }
    (void)fprintf(stream, "}\n");
}

static bool stats_find(const char *key, size_t *index)
{
    for (size_t i = 0; i < MODEL_STAT_COUNT; i++) {
        char name[64];
        model_stat_name(i, name);
        if (strcmp(name, key) == 0) {
            *index = i;
            return true;
        }
    }
    return false;
}

uf_status oplog_stats_read(const char *base, oplog_stats *stats, uf_error *error)
{
    char path[4096];
    char *text = NULL;
    size_t length = 0;
    uf_status status = oplog_path(base, ".stats.json", path, sizeof path, error);
    if (status == UF_OK) {
        status = read_all(path, &text, &length, error);
    }
    if (status != UF_OK) {
        return status;
    }
    json_error_t problem;
    json_t *object = json_loadb(text, length, 0, &problem);
    free(text);
    if (object == NULL) {
        return uf__error_set(error, UF_ERROR_BAD_INPUT, "%s: %s", path, problem.text);
    }
    *stats = (oplog_stats){0};
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach(object, key, value)
    {
        size_t index = 0;
        if (!stats_find(key, &index)) {
            status =
                uf__error_set(error, UF_ERROR_BAD_INPUT, "%s: unknown statistic %s", path, key);
            break;
        }
        stats->values[index] = json_integer_value(value);
        stats->is_recorded[index] = true;
        stats->count++;
    }
    json_decref(object);
    return status;
}
