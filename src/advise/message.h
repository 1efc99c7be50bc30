/* SPDX-License-Identifier: MIT
 *
 * Out-of-memory messages: what they are and where they stand in a text. Owns the list of wordings
 * and the figures a message carries; knows nothing of causes. A log of messages is filled by one
 * scan and read-only afterwards. */
#ifndef UF_ADVISE_MESSAGE_H
#define UF_ADVISE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <unfrag/status.h>

/* name, id, rank, sentence. The id is what users and scripts see (docs/explain.md). Of several
 * messages in a text the one of the highest rank is explained. */
#define UF_MESSAGE_FORM_LIST(X)                                                                \
    X(UF_MESSAGE_NONE, "none", 0, "no message about memory")                                   \
    X(UF_MESSAGE_T0, "T0", 4, "PyTorch 0.1 to 0.4, without figures")                           \
    X(UF_MESSAGE_T1, "T1", 9, "PyTorch 1.0 to 1.3")                                            \
    X(UF_MESSAGE_T2, "T2", 9, "PyTorch 1.4 to 1.9")                                            \
    X(UF_MESSAGE_T3, "T3", 9, "PyTorch 1.10 to 2.0")                                           \
    X(UF_MESSAGE_T4, "T4", 9, "PyTorch 2.1")                                                   \
    X(UF_MESSAGE_T5, "T5", 9, "PyTorch 2.2 or later")                                          \
    X(UF_MESSAGE_T5P, "T5p", 9, "PyTorch 2.2 or later, processes by number")                   \
    X(UF_MESSAGE_T6, "T6", 9, "PyTorch 2.4 or later, with private pools")                      \
    X(UF_MESSAGE_T7, "T7", 9, "PyTorch 2.10 or later")                                         \
    X(UF_MESSAGE_T8, "T8", 1, "warning of PyTorch 2.13 before it tries again")                 \
    X(UF_MESSAGE_H1, "H1", 9, "PyTorch on ROCm, up to 2.8")                                    \
    X(UF_MESSAGE_H2, "H2", 9, "PyTorch on ROCm, 2.9 or later")                                 \
    X(UF_MESSAGE_H3, "H3", 9, "PyTorch on ROCm, newest")                                       \
    X(UF_MESSAGE_X0, "X0", 9, "Intel's extension for PyTorch")                                 \
    X(UF_MESSAGE_X1, "X1", 9, "PyTorch on Intel GPUs, without the driver's figure")            \
    X(UF_MESSAGE_X2, "X2", 9, "PyTorch on Intel GPUs")                                         \
    X(UF_MESSAGE_P, "P", 9, "PyTorch on Apple GPUs")                                           \
    X(UF_MESSAGE_A, "A", 9, "PyTorch on cudaMallocAsync")                                      \
    X(UF_MESSAGE_SUMMARY, "summary", 8, "figures retold in other words")                       \
    X(UF_MESSAGE_BARE, "bare", 3, "out of memory, without figures")                            \
    X(UF_MESSAGE_BAD_SIZE, "bad-size", 8, "a request of 2^60 bytes or more")                   \
    X(UF_MESSAGE_DRIVER, "driver", 5, "the driver's own error, not the caching allocator's")   \
    X(UF_MESSAGE_LIBRARY, "library", 5, "a GPU library could not allocate its workspace")      \
    X(UF_MESSAGE_RMM, "rmm", 5, "RAPIDS memory manager")                                       \
    X(UF_MESSAGE_CUPY, "cupy", 5, "CuPy's memory pool")                                        \
    X(UF_MESSAGE_TENSORFLOW, "tensorflow", 5, "TensorFlow's allocator")                        \
    X(UF_MESSAGE_XLA, "xla", 5, "JAX or XLA")                                                  \
    X(UF_MESSAGE_ONNXRUNTIME, "onnxruntime", 5, "ONNX Runtime's arena")                        \
    X(UF_MESSAGE_VLLM, "vllm", 5, "vLLM's own accounting at start")                            \
    X(UF_MESSAGE_HOST, "host", 6, "main memory, not the GPU's")                                \
    X(UF_MESSAGE_KILLED, "killed", 7, "the process was killed from outside")                   \
    X(UF_MESSAGE_ABORT, "abort", 4, "the process aborted")                                     \
    X(UF_MESSAGE_HANG, "hang", 2, "loading stands still")                                      \
    X(UF_MESSAGE_GROWTH, "growth", 2, "memory grows from repetition to repetition")            \
    X(UF_MESSAGE_ERROR, "other-error", 1, "a GPU error that is not about memory running out")  \
    X(UF_MESSAGE_BUDGET, "budget", 0, "a line about how memory will be divided, not an error") \
    X(UF_MESSAGE_SNAPSHOT, "snapshot", 9, "the failed request recorded in a snapshot")

typedef enum uf_message_form {
#define UF_MESSAGE_FORM_ENUM(name, id, rank, text) name,
    UF_MESSAGE_FORM_LIST(UF_MESSAGE_FORM_ENUM)
#undef UF_MESSAGE_FORM_ENUM
        UF_MESSAGE_FORM_COUNT
} uf_message_form;

/* The figures a message may carry, as printed. */
typedef enum uf_figure_kind {
    UF_FIGURE_REQUESTED,   /* what could not be had: mostly a segment, not the tensor */
    UF_FIGURE_TOTAL,       /* the device's memory */
    UF_FIGURE_DEVICE_FREE, /* what the driver says is free */
    UF_FIGURE_ALLOCATED,   /* by the allocator; from 2.4 on with PRIVATE added */
    UF_FIGURE_RESERVED,    /* T2, T3, X0: allocated + cached */
    UF_FIGURE_CACHED,      /* T1: reserved - allocated */
    UF_FIGURE_UNALLOCATED, /* T4 and later: reserved - allocated - private */
    UF_FIGURE_PRIVATE,     /* called allocated in private pools; really their cached blocks */
    UF_FIGURE_ALLOWED,     /* a limit: a memory fraction, a pool's maximum, Apple's watermark */
    UF_FIGURE_PROCESS,     /* this process, everything included */
    UF_FIGURE_OTHERS,      /* processes named by number: one of them may be this one */
    UF_FIGURE_OUTSIDE,     /* P: the other allocations */
    UF_FIGURE_COUNT
} uf_figure_kind;

typedef struct uf_figure {
    bool is_known;
    uint64_t bytes;
    uint64_t rounding_bytes; /* the text was rounded: the truth is within so much of it */
} uf_figure;

/* What stands around a message and changes its meaning; bits of uf_message.signs. */
enum {
    UF_SIGN_CUT = 1,            /* ends before its usual end */
    UF_SIGN_PINNED = 2,         /* pinned host memory was asked for */
    UF_SIGN_BLOCK_4GB = 4,      /* the platform allows no block above 4 GB */
    UF_SIGN_OUT_OF_MEMORY = 8,  /* FORM_ERROR, FORM_ABORT: memory may still be the reason */
    UF_SIGN_SETTINGS = 16,      /* a settings string is named with it */
    UF_SIGN_HOST_KILLER = 32,   /* the kernel or a container runtime says why it killed */
    UF_SIGN_SHARED_MEMORY = 64, /* /dev/shm or a data loader's worker */
    UF_SIGN_POOL_LIMIT = 128,   /* the pool's own maximum */
    UF_SIGN_FROM_REPORT = 256,  /* total and driver-free stand elsewhere in the report */
    UF_SIGN_NEAR_WRONG = 512    /* a library's handle could not be made: often memory */
};

typedef struct uf_message {
    uf_message_form form;
    bool has_device;
    int32_t device;
    uf_figure figures[UF_FIGURE_COUNT];
    uint32_t signs;
    uint32_t process_count; /* processes named by number */
    char name[48];          /* of the error, for forms without figures; "" otherwise */
} uf_message;

/* Equal messages count as one. */
typedef struct uf_message_group {
    uf_message message;
    uint64_t count;
    uint64_t first_line; /* 1-based */
    uint64_t last_line;
} uf_message_group;

#define UF_MESSAGE_GROUP_CAPACITY 64
#define UF_GROWTH_SAMPLE_CAPACITY 16

/* A figure that a log repeats, thinned out to a few samples. */
typedef struct uf_growth {
    uint64_t key;
    uint64_t count, rise_count;
    uint64_t first_bytes, last_bytes, max_bytes;
    uint64_t samples[UF_GROWTH_SAMPLE_CAPACITY];
    uint32_t sample_count;
    uint64_t stride; /* every so many values one is kept */
    uint64_t first_line, last_line;
} uf_growth;

#define UF_GROWTH_CAPACITY 32

typedef struct uf_message_log {
    uf_message_group groups[UF_MESSAGE_GROUP_CAPACITY];
    uint32_t group_count;
    uint64_t message_count; /* all, also those that found no group */
    uf_growth growths[UF_GROWTH_CAPACITY];
    uint32_t growth_count;
    uf_growth failures; /* allocated bytes of messages with one and the same request */
    uint64_t failure_request_bytes;
    uint64_t byte_count, line_count, nul_count, control_count;
    bool is_utf16;
    bool is_snapshot; /* starts like a pickle or a .uft: no text at all */
    /* Signs of the whole text. */
    bool is_windows, is_wsl;
    bool has_loading; /* ends while something loads */
    uint64_t loading_line;
    uf_figure report_total, report_device_free; /* a device block of a crash report */
} uf_message_log;

const char *uf__message_form_id(uf_message_form form);
const char *uf__message_form_text(uf_message_form form);
unsigned uf__message_form_rank(uf_message_form form);

/* Reads "22.00 MiB", "0 bytes", "3.24 GB" (binary, too) in squeezed text (no blanks, lower case) at
 * [at, end). A number without unit counts as bytes if is_plain is allowed. Returns where it ends,
 * or NULL. A value of 2^64 or more is no figure: *figure is then unknown, and the end returned. */
const char *uf__figure_at(const char *at, const char *end, bool is_plain_allowed,
                          uf_figure *figure);

/* The same for a figure that ends right before `at`; start bounds the way back. */
bool uf__figure_before(const char *start, const char *at, uf_figure *figure);

struct uf__input;

/* Scans a text of any size in bounded memory. *log is owned by the caller (free). Returns what
 * reading returns; an empty input is no error here (byte_count). */
uf_status uf__message_scan(struct uf__input *input, uf_message_log **log,
                           uf_error *error) UF_MUST_USE;

/* The same over bytes in memory. */
uf_status uf__message_scan_memory(const void *data, size_t size_bytes, uf_message_log **log,
                                  uf_error *error) UF_MUST_USE;

/* The group to explain: highest rank, then the largest request, then the least free, then the
 * last. NULL if there is none. */
const uf_message_group *uf__message_worst(const uf_message_log *log);

/* Does this series grow to its end, as a leak does? */
bool uf__growth_is_steady(const uf_growth *growth, uint64_t least_count);

#endif
