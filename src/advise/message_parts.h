/* SPDX-License-Identifier: MIT
 *
 * What the parts of the message scan share: the squeezed text at a hit, and where to put what was
 * found there. Private to src/advise/message*.c. */
#ifndef UF_ADVISE_MESSAGE_PARTS_H
#define UF_ADVISE_MESSAGE_PARTS_H

#include "advise/message.h"

/* How far a message may reach behind its first words, and what is looked at in front of them, in
 * squeezed bytes. */
#define UF__MESSAGE_AHEAD_BYTES 8192
#define UF__MESSAGE_BEHIND_BYTES 1024

/* The words that may begin or betray a message. Every word has at least UF__TRIGGER_LEAST bytes. */
typedef enum uf__trigger_kind {
    UF__TRIGGER_TRIED,     /* "tried to allocate" */
    UF__TRIGGER_OOM,       /* "out of memory" */
    UF__TRIGGER_ASYNC,     /* "allocation on device" */
    UF__TRIGGER_RETRY,     /* T8 */
    UF__TRIGGER_DRIVER,    /* an error code of a driver */
    UF__TRIGGER_LIBRARY,   /* an error code of a library */
    UF__TRIGGER_NEAR,      /* codes that often, not always, mean memory */
    UF__TRIGGER_RMM,       /* RMM's own words */
    UF__TRIGGER_FRAMEWORK, /* TensorFlow, XLA, ONNX Runtime, vLLM, llama.cpp */
    UF__TRIGGER_HOST,      /* main memory */
    UF__TRIGGER_KILLED,    /* killed from outside */
    UF__TRIGGER_SHELL,     /* a shell tells how a program of a script ended */
    UF__TRIGGER_EXIT,      /* an exit code follows */
    UF__TRIGGER_ABORT,
    UF__TRIGGER_ERROR,  /* other GPU errors */
    UF__TRIGGER_BUDGET, /* memory being divided */
    UF__TRIGGER_GROWTH, /* a figure that may be repeated */
    UF__TRIGGER_LOADING,
    UF__TRIGGER_HANG,
    UF__TRIGGER_SIGN /* about the whole text */
} uf__trigger_kind;

typedef struct uf__trigger {
    const char *word;
    uf__trigger_kind kind;
} uf__trigger;

#define UF__TRIGGER_LEAST 7

/* One hit. [start, end) is the squeezed text at hand around it. */
typedef struct uf__hit {
    const char *start, *at, *end;
    const char *line_start; /* of the hit's line in the squeezed text */
    const uf__trigger *trigger;
    uint64_t line;
    uf_message_log *log;
} uf__hit;

/* Each returns the end of what it took, at least hit->at + 1; later hits begin behind it. */
const char *uf__message_tried(const uf__hit *hit);
const char *uf__message_mps(const uf__hit *hit);
const char *uf__message_async(const uf__hit *hit);
const char *uf__message_retry(const uf__hit *hit);
const char *uf__message_other(const uf__hit *hit);

/* Adds a message to its group. */
void uf__message_add(const uf__hit *hit, const uf_message *message);
void uf__growth_add(uf_message_log *log, uint64_t key, uint64_t bytes, uint64_t line);

/* The first needle in [from, end), or NULL. */
const char *uf__find(const char *from, const char *end, const char *needle);
/* Does the text at `at` begin with the words? And does the text before `at` end with them? */
bool uf__begins(const char *at, const char *end, const char *words);
bool uf__ends(const char *start, const char *at, const char *words);
/* Is the needle among the reach bytes before `at`? */
bool uf__is_behind(const uf__hit *hit, size_t reach, const char *needle);
bool uf__is_ahead(const uf__hit *hit, size_t reach, const char *needle);
/* The smaller of at + reach and end. */
const char *uf__reach(const char *at, const char *end, size_t reach);

#endif
