/* SPDX-License-Identifier: MIT
 *
 * Operation logs: what was done to an allocator, one operation a line. Owns reading and writing
 * them and the statistics recorded beside them; knows no allocator. Single-threaded. */
#ifndef OPLOG_OPLOG_H
#define OPLOG_OPLOG_H

#include <stdio.h>

#include "oplog/model.h"

typedef enum oplog_kind {
    OPLOG_ALLOC,
    OPLOG_FREE,
    OPLOG_RECORD_STREAM,
    OPLOG_SYNCHRONIZE,
    OPLOG_EMPTY_CACHE,
    OPLOG_SET_FRACTION,
    OPLOG_SET_CONF,
    OPLOG_POOL_CREATE,
    OPLOG_POOL_BEGIN,
    OPLOG_POOL_END,
    OPLOG_POOL_DESTROY,
    OPLOG_KIND_COUNT
} oplog_kind;

typedef struct oplog_op {
    oplog_kind kind;
    uint64_t id; /* of the allocation: alloc, free, record_stream */
    uint64_t bytes, stream;
    uint64_t addr;      /* 0 = the recorded request ran out of memory */
    bool is_one_stream; /* synchronize: only stream's events are complete */
    double fraction;
    char *conf;       /* owned by the log */
    uint64_t pool[2]; /* pool_end: filled in by the reader from the pool_begin it ends */
    model_pool_options pool_options;
} oplog_op;

typedef struct oplog {
    uint64_t total_bytes;
    oplog_op *ops;
    size_t count, capacity;
    uint64_t id_count; /* ids are below it */
} oplog;

/* Reads BASE.ops.jsonl or BASE.ops.jsonl.xz. The log is owned by the caller (oplog_destroy).
 * Returns UF_OK, UF_ERROR_IO or UF_ERROR_BAD_INPUT with the line in the error's text. */
uf_status oplog_read(const char *base, oplog **log, uf_error *error);
void oplog_destroy(oplog *log);

/* Appends a copy. */
void oplog_append(oplog *log, const oplog_op *op);

/* Writes the operation as one line of a log. */
void oplog_op_write(const oplog_op *op, FILE *stream);

/* Recorded statistics: value and presence by the numbering of model.h. */
typedef struct oplog_stats {
    int64_t values[MODEL_STAT_COUNT];
    bool is_recorded[MODEL_STAT_COUNT];
    size_t count;
} oplog_stats;

/* Reads BASE.stats.json[.xz]. An unknown key is UF_ERROR_BAD_INPUT. */
uf_status oplog_stats_read(const char *base, oplog_stats *stats, uf_error *error);

/* Finds BASE + suffix, or that + ".xz"; path holds size bytes. UF_ERROR_IO if neither exists. */
uf_status oplog_path(const char *base, const char *suffix, char *path, size_t size,
                     uf_error *error);

#endif
