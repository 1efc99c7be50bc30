/* SPDX-License-Identifier: MIT
 *
 * The allocator's settings and the parsers of PYTORCH_CUDA_ALLOC_CONF strings (PyTorch 1.10 to 2.11
 * behaviour): the same strings are accepted and refused, with the same effective values. The table
 * of options is in conf_option.h. Knows nothing of allocators. Pure functions, no lock. */
#ifndef UF_ALLOC_CONF_H
#define UF_ALLOC_CONF_H

#include <stdbool.h>
#include <stddef.h>
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
    bool is_expandable;        /* expandable_segments */
    bool can_reuse_in_capture; /* graph_capture_record_stream_reuse */
    bool has_background_threads, has_host_register, can_release_lock;
    uint64_t pinned_num_register_threads, pinned_reserve_segment_mb;
    bool is_async_backend; /* backend:cudaMallocAsync */
} uf_conf;

/* Grammar families: which PyTorch releases read a string in which way. */
typedef enum uf_conf_grammar {
    UF_CONF_2_11 = 0, /* 2.11 and later */
    UF_CONF_2_10,     /* 2.10: as 2.11 without large_segment_size_mb */
    UF_CONF_2_0,      /* 2.0 to 2.9: strict separators, 32-bit integers */
    UF_CONF_1_10      /* 1.10 to 1.13: options without ':' are ignored */
} uf_conf_grammar;

/* The options, in the order of the table. */
typedef enum uf_conf_option_id {
    UF_CONF_LARGE_SEGMENT_SIZE,
    UF_CONF_MAX_SPLIT_SIZE,
    UF_CONF_MAX_NON_SPLIT_ROUNDING,
    UF_CONF_GARBAGE_COLLECTION_THRESHOLD,
    UF_CONF_ROUNDUP_POWER2_DIVISIONS,
    UF_CONF_EXPANDABLE_SEGMENTS,
    UF_CONF_PINNED_USE_BACKGROUND_THREADS,
    UF_CONF_BACKEND,
    UF_CONF_RELEASE_LOCK,
    UF_CONF_PINNED_USE_HOST_REGISTER,
    UF_CONF_PINNED_NUM_REGISTER_THREADS,
    UF_CONF_PINNED_RESERVE_SEGMENT_SIZE,
    UF_CONF_GRAPH_CAPTURE_REUSE,
    UF_CONF_PER_PROCESS_MEMORY_FRACTION,
    UF_CONF_OPTION_COUNT,
    UF_CONF_OPTION_NONE = UF_CONF_OPTION_COUNT
} uf_conf_option_id;

/* What was wrong with a string. */
typedef enum uf_conf_fault {
    UF_CONF_FAULT_NONE = 0,
    UF_CONF_FAULT_UNKNOWN_OPTION,
    UF_CONF_FAULT_MISSING_TOKEN, /* the string ends where a value or ']' must stand */
    UF_CONF_FAULT_SEPARATOR,     /* before 2.10 only: another separator is expected */
    UF_CONF_FAULT_NOT_A_NUMBER,
    UF_CONF_FAULT_NUMBER_OVERFLOW,
    UF_CONF_FAULT_RANGE,   /* a number the option does not take */
    UF_CONF_FAULT_BOOLEAN, /* neither True nor False */
    UF_CONF_FAULT_BACKEND  /* unknown, or not the one that is active */
} uf_conf_fault;

/* The Python exception a PyTorch user sees for it. */
typedef enum uf_conf_exception {
    UF_CONF_RAISES_NOTHING = 0,
    UF_CONF_RAISES_VALUE_ERROR,
    UF_CONF_RAISES_INDEX_ERROR,
    UF_CONF_RAISES_RUNTIME_ERROR,
    UF_CONF_ABORTS_IMPORT /* no exception: the process dies in `import torch` */
} uf_conf_exception;

/* How an accepted item differs from what its author probably meant; bits of uf_conf_item.oddities.
 */
enum {
    UF_CONF_ODD_SEPARATOR = 1,   /* a separator other than the usual one stood there */
    UF_CONF_ODD_TRAILING = 2,    /* characters behind the number were dropped: 128MB, 128;x */
    UF_CONF_ODD_WRAPPED = 4,     /* a negative number became a huge one */
    UF_CONF_ODD_CLAMPED = 8,     /* the number was cut to the largest one possible */
    UF_CONF_ODD_REPEATED = 16,   /* the option was named before; the last one counts */
    UF_CONF_ODD_IGNORED = 32,    /* 1.10 to 1.13: no ':' in it, so the item does nothing */
    UF_CONF_ODD_INNER_BLANK = 64 /* blanks inside a word were dropped: T r u e */
};

/* One item of a string that was accepted. */
typedef struct uf_conf_item {
    uf_conf_option_id option; /* UF_CONF_OPTION_NONE for an ignored item */
    size_t offset_bytes;      /* of the key in the string */
    size_t value_offset_bytes, end_offset_bytes;
    unsigned oddities;
} uf_conf_item;

typedef struct uf_conf_report {
    uf_conf_fault fault;
    uf_conf_exception exception;
    uf_conf_option_id option; /* the faulty one; UF_CONF_OPTION_NONE if it is not known */
    size_t offset_bytes;      /* where in the string; its length if something is missing */
    uint32_t named;           /* bit (1 << id): the option was set from the string */
    unsigned oddities;        /* of all accepted items together */
} uf_conf_report;

/* How to read a string; zero-initialised is what uf__conf_parse does with UF_CONF_2_11. */
typedef struct uf_conf_reading {
    uf_conf_grammar grammar;
    uint16_t release; /* 206 is 2.6: options that came later are unknown; 0: the grammar's newest */
    /* The string is in the environment when PyTorch is imported: `backend` is decided by it, and
     * from 2.10 on the CUDA reader comes first. Otherwise: a call while the program runs. */
    bool is_at_import;
    void (*on_item)(void *context, const uf_conf_item *item); /* may be NULL */
    void *context;
} uf_conf_reading;

/* Fills in the defaults. */
void uf__conf_init(uf_conf *conf);

/* Applies a settings string to *conf with the semantics of a run-time call: some options are first
 * reset to default, others keep their value. On UF_ERROR_CONF everything before the bad item stays
 * applied, as in PyTorch, and the error's text names option, value, what is allowed, the nearest
 * valid spelling, and the offset. `backend` must then be the one of *conf; a string from the
 * environment is read by uf__conf_read with is_at_import. */
uf_status uf__conf_parse(uf_conf *conf, const char *text, uf_conf_grammar grammar,
                         uf_error *error) UF_MUST_USE;

/* The same with all choices and all answers. report: receives the details on success and on
 * UF_ERROR_CONF; may be NULL. */
uf_status uf__conf_read(uf_conf *conf, const char *text, const uf_conf_reading *reading,
                        uf_conf_report *report, uf_error *error) UF_MUST_USE;

/* Maps "2.11", "2.10.1", "1.13", "2.9.0+cu128" ... to a grammar. UF_ERROR_INVALID_ARGUMENT if it is
 * no version or older than 1.10 (no settings string existed). Releases after 2.11 read as 2.11. */
uf_status uf__conf_grammar_find(const char *version, uf_conf_grammar *grammar,
                                uf_error *error) UF_MUST_USE;

/* The same, and the release as a number: 206 for "2.6.1". */
uf_status uf__conf_release_find(const char *version, uf_conf_grammar *grammar, uint16_t *release,
                                uf_error *error) UF_MUST_USE;

/* What 2.10 and later do with the environment's string when torch is imported, before anything can
 * catch an error: look for `backend`. UF_ERROR_CONF: the process would abort (exit code 134), and
 * the error says where and why. *is_async: cudaMallocAsync was chosen; may be NULL. */
uf_status uf__conf_backend_scan(const char *text, bool *is_async, uf_error *error) UF_MUST_USE;

/* Room for every text uf__conf_format writes. */
#define UF_CONF_TEXT_CAPACITY 2048

/* Writes the shortest string that turns default settings into *conf when it is read with the 2.11
 * grammar (at import, if the backend is cudaMallocAsync); empty for the defaults.
 * UF_ERROR_INVALID_ARGUMENT if no string does (a size that is no whole MB, a value out of range) or
 * capacity is too small. */
uf_status uf__conf_format(const uf_conf *conf, char *buffer, size_t capacity,
                          uf_error *error) UF_MUST_USE;

/* True if the two have the same value in every setting. */
bool uf__conf_is_equal(const uf_conf *a, const uf_conf *b);

#endif
