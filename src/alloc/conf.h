/* SPDX-License-Identifier: MIT
 *
 * The allocator's settings and the parser of PYTORCH_CUDA_ALLOC_CONF strings (spec section 9).
 * Owns the one table of options; knows nothing of allocators. Pure functions, no lock. */
#ifndef UF_ALLOC_CONF_H
#define UF_ALLOC_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include <unfrag/status.h>

#define UF_CONF_DIVISION_COUNT 16
#define UF_UNLIMITED UINT64_MAX

typedef struct uf_conf {
    uint64_t max_split_size_bytes;         /* UF_UNLIMITED = no limit */
    uint64_t max_non_split_rounding_bytes; /* LARGE_SEGMENT by default */
    uint64_t large_segment_bytes;          /* 20 MiB by default */
    double garbage_collection_threshold;   /* of the limit; 0 = off */
    double per_process_memory_fraction;    /* of the device total; 1.0 = no limit */
    uint64_t roundup_power2_divisions[UF_CONF_DIVISION_COUNT];
    bool is_expandable; /* expandable_segments */
    bool can_reuse_in_capture; /* graph_capture_record_stream_reuse */
    bool has_background_threads, has_host_register, can_release_lock;
    uint64_t pinned_num_register_threads, pinned_reserve_segment_mb;
    bool is_async_backend; /* backend:cudaMallocAsync */
} uf_conf;

/* Grammar families: which PyTorch releases read a string in which way. */
typedef enum uf_conf_grammar {
    UF_CONF_2_11 = 0, /* 2.11: spec 9.3-9.7 */
    UF_CONF_2_10,     /* 2.10: as 2.11 without large_segment_size_mb */
    UF_CONF_2_0,      /* 2.0 to 2.9: spec 9.8 */
    UF_CONF_1_10      /* 1.10 to 1.13 */
} uf_conf_grammar;

/* Fills in the defaults of the grammar's releases. */
void uf__conf_init(uf_conf *conf);

/* Applies a settings string to *conf with the semantics of a run-time call (spec 9.7): some options
 * are first reset to default, others keep their value. On UF_ERROR_CONF everything before the bad
 * item stays applied, as in PyTorch, and the error's text names option, value, what is allowed, the
 * nearest valid spelling, and the offset. */
uf_status uf__conf_parse(uf_conf *conf, const char *text, uf_conf_grammar grammar,
                         uf_error *error) UF_MUST_USE;

/* Maps "2.11", "2.10.1", "1.13", "2.9" ... to a grammar. UF_ERROR_INVALID_ARGUMENT if it is no
 * version or older than 1.10 (no settings string existed). Releases after 2.11 read as 2.11. */
uf_status uf__conf_grammar_find(const char *version, uf_conf_grammar *grammar,
                                uf_error *error) UF_MUST_USE;

#endif
