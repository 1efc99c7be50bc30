/* SPDX-License-Identifier: MIT
 *
 * Weight files: what is in them and whether they are whole, by their headers, indexes and sizes
 * alone. Nothing in them is loaded or executed. One thread per scan. */
#ifndef UF_ADVISE_WEIGHTS_H
#define UF_ADVISE_WEIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <unfrag/status.h>

/* Constant, name as safetensors has it, bits of an element (0: it depends). */
#define UF_DTYPE_LIST(X)         \
    X(F64, "F64", 64)            \
    X(F32, "F32", 32)            \
    X(F16, "F16", 16)            \
    X(BF16, "BF16", 16)          \
    X(F8_E4M3, "F8_E4M3", 8)     \
    X(F8_E5M2, "F8_E5M2", 8)     \
    X(F8_E8M0, "F8_E8M0", 8)     \
    X(F6_E2M3, "F6_E2M3", 6)     \
    X(F6_E3M2, "F6_E3M2", 6)     \
    X(F4, "F4", 4)               \
    X(C64, "C64", 64)            \
    X(I64, "I64", 64)            \
    X(U64, "U64", 64)            \
    X(I32, "I32", 32)            \
    X(U32, "U32", 32)            \
    X(I16, "I16", 16)            \
    X(U16, "U16", 16)            \
    X(I8, "I8", 8)               \
    X(U8, "U8", 8)               \
    X(BOOL, "BOOL", 8)           \
    X(QUANTIZED, "quantized", 0) \
    X(OTHER, "other", 0)

typedef enum uf_dtype {
#define UF_DTYPE_ENUM(constant, name, bits) UF_DTYPE_##constant,
    UF_DTYPE_LIST(UF_DTYPE_ENUM)
#undef UF_DTYPE_ENUM
        UF_DTYPE_COUNT
} uf_dtype;

const char *uf__dtype_name(uf_dtype dtype);

typedef struct uf_weights_sum {
    uint64_t tensor_count, data_bytes, parameter_count;
    uint64_t dtype_bytes[UF_DTYPE_COUNT];
    uint64_t dtype_parameters[UF_DTYPE_COUNT];
} uf_weights_sum;

typedef enum uf_weight_format {
    UF_WEIGHT_SAFETENSORS,
    UF_WEIGHT_GGUF,
    UF_WEIGHT_PICKLE, /* .bin, .pt, .pth, .ckpt */
    UF_WEIGHT_INDEX   /* *.index.json, model_index.json */
} uf_weight_format;

typedef enum uf_weight_state {
    UF_WEIGHT_COMPLETE,
    UF_WEIGHT_UNCHECKED, /* its format does not tell: text says why */
    UF_WEIGHT_ABSENT,    /* an index names it; another variant or format is there instead */
    UF_WEIGHT_LEFTOVER,  /* of a download, and the file itself is there: no fault */
    /* From here on: faults. */
    UF_WEIGHT_CUT,         /* it ends too early */
    UF_WEIGHT_DAMAGED,     /* it contradicts itself */
    UF_WEIGHT_PLACEHOLDER, /* a Git LFS pointer or a web page instead of weights */
    UF_WEIGHT_MISSING,     /* something names it, and it is not there */
    UF_WEIGHT_UNFINISHED   /* a download that is not done */
} uf_weight_state;

static inline bool uf__weight_is_fault(uf_weight_state state)
{
    return state >= UF_WEIGHT_CUT;
}

typedef struct uf_weight_file {
    char *path; /* below the folder; owned */
    uf_weight_format format;
    uf_weight_state state;
    uint64_t file_bytes;     /* what is there */
    uint64_t expected_bytes; /* what should be; 0 = not known */
    bool has_sum;            /* the header could be read whole */
    uf_weights_sum sum;
    char *text; /* what is wrong, or worth knowing; NULL: nothing; owned */
} uf_weight_file;

/* Files that are loaded together: the shards of one component in one variant and format. */
typedef struct uf_weight_set {
    char *component; /* folder below the model's; "" = the model's own; owned */
    char *name;      /* without shard number and ending, such as "model.fp16"; owned */
    uf_weight_format format;
    uint32_t file_count;
    uint32_t fault_count;
    uint32_t missing_count;
    bool is_absent; /* no file of it is there, and another variant is */
    bool is_chosen; /* what a program loads by default; another variant or format is not */
    bool has_sum;   /* of all its files */
    uint64_t file_bytes;
    uf_weights_sum sum;
} uf_weight_set;

typedef struct uf_weights {
    char *folder; /* as looked into: for a Hugging Face cache the snapshot; owned */
    uf_weight_file *files;
    size_t file_count, file_capacity;
    uf_weight_set *sets; /* by component and name */
    size_t set_count, set_capacity;
    uint32_t fault_count; /* of files */
    bool is_pipeline;     /* there is a model_index.json */
    bool has_sum;         /* sum is of all chosen sets */
    uf_weights_sum sum;
    bool is_truncated; /* there was more than UF_WEIGHTS_FILES_MAX files, or deeper folders */
} uf_weights;

#define UF_WEIGHTS_FILES_MAX 20000u

/* Scans a folder (a model of Transformers or Diffusers, a folder of checkpoints, a folder
 * models--* of the Hugging Face cache) or one file. Returns UF_OK, also if nothing is whole;
 * UF_ERROR_IO (it cannot be read); UF_ERROR_HOST_MEMORY. The caller ends *weights with
 * uf__weights_fini, whatever was returned. */
uf_status uf__weights_scan(const char *path, uf_weights *weights, uf_error *error) UF_MUST_USE;
void uf__weights_fini(uf_weights *weights);

/* True if weights were found and nothing is at fault. */
bool uf__weights_is_complete(const uf_weights *weights);

/* "cut", "missing" ...; static text. */
const char *uf__weight_state_name(uf_weight_state state);
const char *uf__weight_format_name(uf_weight_format format);

#endif
