/* SPDX-License-Identifier: MIT
 *
 * From an out-of-memory message to its causes and cures. Owns the arithmetic, the causes and the
 * advice; how messages are found is message.h's business, what a snapshot adds is
 * explain_snapshot.h's. Pure functions of their input. */
#ifndef UF_ADVISE_EXPLAIN_H
#define UF_ADVISE_EXPLAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "advise/explain_snapshot.h"
#include "advise/message.h"
#include "alloc/conf.h"

/* name, id. docs/explain.md has a chapter for each id. */
#define UF_CAUSE_LIST(X)                                             \
    X(UF_CAUSE_FRAGMENTATION, "fragmentation")                       \
    X(UF_CAUSE_OUTSIDE_MEMORY, "outside_memory")                     \
    X(UF_CAUSE_TOO_LARGE_FOR_CARD, "too_large_for_card")             \
    X(UF_CAUSE_REFUSED_WITH_FREE_MEMORY, "refused_with_free_memory") \
    X(UF_CAUSE_HOST_SPILL, "host_spill")                             \
    X(UF_CAUSE_SIMPLY_FULL, "simply_full")                           \
    X(UF_CAUSE_LIMIT, "limit")                                       \
    X(UF_CAUSE_LEAK, "leak")                                         \
    X(UF_CAUSE_HOST_MEMORY, "host_memory")                           \
    X(UF_CAUSE_NOT_AN_OOM, "not_an_oom")                             \
    X(UF_CAUSE_INCOMPLETE_MESSAGE, "incomplete_message")

typedef enum uf_cause {
#define UF_CAUSE_ENUM(name, id) name,
    UF_CAUSE_LIST(UF_CAUSE_ENUM)
#undef UF_CAUSE_ENUM
        UF_CAUSE_COUNT
} uf_cause;

const char *uf__cause_id(uf_cause cause);

/* An amount that may be unknown, and may be negative where a message contradicts itself. */
typedef struct uf_amount {
    bool is_known;
    int64_t bytes;
} uf_amount;

/* What follows from the printed figures. */
typedef struct uf_reckoning {
    uf_amount reserved;    /* held by the allocator */
    uf_amount cached;      /* reserved, and in no tensor: unallocated + private pools' share */
    uf_amount allocated;   /* without the private pools' cached blocks that were counted in */
    uf_amount gap;         /* total - driver-free - reserved, signed */
    uf_amount outside;     /* the gap if it makes sense, else unknown */
    uf_amount covering;    /* driver-free + unallocated: the most that defragmenting could give */
    uf_amount missing;     /* requested - driver-free, if positive */
    uf_amount limit;       /* a cap below the card, printed or inferred */
    uf_amount own_outside; /* this process, beyond the allocator: context and libraries */
    uf_amount foreign;     /* other processes */
    uf_amount least_wanted, most_wanted; /* the tensor behind a segment-sized request */
    int64_t rounding_bytes;              /* of the sums: printed figures are rounded */
    bool is_limit_inferred;
    double limit_fraction; /* inferred */
    bool is_segment;       /* the printed request is a segment, not the tensor */
} uf_reckoning;

#define UF_EXPLAIN_TEXT 400
#define UF_EXPLAIN_ADVICE_CAPACITY 8
#define UF_EXPLAIN_CONTRADICTION_CAPACITY 4

typedef struct uf_explain_request {
    const uf_message_log *log;         /* may be NULL: the snapshot alone */
    const uf_snapshot_state *snapshot; /* may be NULL */
    const uf_conf *conf;               /* settings in force; NULL = unknown */
    uint32_t named;                    /* options that conf sets: bits (1 << id) */
} uf_explain_request;

typedef struct uf_explanation {
    uf_message message; /* the one explained; form UF_MESSAGE_NONE if there is none */
    uint64_t count;     /* how often it stands in the text */
    uint64_t first_line, last_line;
    uf_reckoning reckoning;
    uf_cause causes[UF_CAUSE_COUNT];
    char reasons[UF_CAUSE_COUNT][UF_EXPLAIN_TEXT]; /* by position in causes */
    uint32_t cause_count;
    char advice[UF_EXPLAIN_ADVICE_CAPACITY][UF_EXPLAIN_TEXT];
    uint32_t advice_count;
    char contradictions[UF_EXPLAIN_CONTRADICTION_CAPACITY][UF_EXPLAIN_TEXT];
    uint32_t contradiction_count;
    const uf_growth *growth; /* borrowed from the log: what shows a leak; or NULL */
    bool is_oom;             /* false: not_an_oom comes first, or nothing was found */
} uf_explanation;

/* Explains the worst message of a log, or what a snapshot recorded. Thread-safe. */
void uf__explain(const uf_explain_request *request, uf_explanation *explanation);

/* Reserved and not allocated, as the message has it: printed, or reserved - allocated. */
uf_amount uf__explain_unallocated(const uf_explanation *explanation);

#endif
