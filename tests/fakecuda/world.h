/* SPDX-License-Identifier: MIT
 *
 * What the files of the fake driver library share. Everything is guarded by world.mutex, which
 * fake_begin takes and fake_end gives; hosts have locks of their own.
 *
 *   setup.c     what UNFRAG_FAKE_GPU describes
 *   order.c     calls: counting, failing, delaying, corrupting; faults
 *   driver.c    devices and contexts
 *   memory.c    segments and copies
 *   vmm.c       address space, handles, mappings
 *   stream.c    streams, events, captures, graphs
 *   kernels.c   modules and kernels
 *
 * Memory, streams and the rules about them are those of the host device (unfrag/host.h), one for
 * each card. */
#ifndef UF_TESTS_FAKECUDA_WORLD_H
#define UF_TESTS_FAKECUDA_WORLD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "device/host.h"
#include "fake.h"
#include "setup.h"

#define EXPORT __attribute__((visibility("default")))

enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    DEINITIALIZED = 4,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    NOT_READY = 600,
    PEER_ACCESS_UNSUPPORTED = 217,
    PEER_ACCESS_ALREADY_ENABLED = 704,
    NOT_SUPPORTED = 801,
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_INVALIDATED = 901,
    CAPTURE_IMPLICIT = 906,
    CAPTURED_EVENT = 907,
    /* Of fake_begin: the call is to say SUCCESS, do nothing, and give out what is wrong. */
    LIE = -1
};

/* How a call stands to captures (order.c). */
typedef enum fake_kind {
    QUIET, /* allowed during any capture, and does not count */
    SAFE,  /* allowed during any capture */
    UNSAFE /* invalidates a capture unless the thread's mode is relaxed */
} fake_kind;

typedef struct fake_context {
    int card;
    bool is_there, is_primary;
} fake_context;

typedef struct fake_gpu {
    uf_host *host; /* NULL: no context was made yet */
    int retain_count;
    uint64_t peers;          /* bit i: card i has access to plain segments */
    uint64_t reserved_bytes; /* of address space */
    uint64_t others_bytes;
    uint64_t on_host_bytes; /* of handles that lie in the host's memory */
} fake_gpu;

enum { FAKE_CONTEXTS_MAX = 32 };

typedef struct fake_world {
    pthread_mutex_t mutex;
    fake_setup setup;
    bool is_initialised, is_over;
    fake_gpu gpus[FAKE_CARDS_MAX];
    fake_context contexts[FAKE_CONTEXTS_MAX]; /* the first FAKE_CARDS_MAX are the primary ones */
    uint64_t random;                          /* of others who take memory */
} fake_world;

extern fake_world world;
extern const fake_api fake_api_table;

/* order.c */

/* Takes the mutex and counts. SUCCESS: go on; LIE; else what to return. In any case fake_end. */
int fake_begin(const char *call, fake_kind kind);
/* Returns result (LIE as SUCCESS), for `return fake_end(result)`. */
int fake_end(int result);
void fake_fault(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* driver.c */

/* CUDA's numbers leave out the cards that are hidden from it: -1 if there is none. */
int fake_card_of(int device);
/* The card of the thread's current context; -1: there is none. */
int fake_current_card(void);
/* The card's host, with what others take meanwhile. */
uf_host *fake_current_host(void);
/* From 0 to limit, the same numbers in each run. */
uint64_t fake_random(uint64_t limit);
/* The driver's error number for a device's status. */
int fake_result(uf_status status);
bool fake_can_reach(int card, int peer);

/* stream.c */

/* Invalidates the captures that a call by this thread must not happen in; whether there was one. */
bool fake_capture_forbids(const char *call);
/* The host's handle of a stream; SUCCESS or an error. */
int fake_stream_find(void *stream, uint64_t *handle);
/* Runs it later, or puts it into a graph. */
int fake_launch(void *stream, const uf_host_job *job);
void fake_stream_counts(fake_counts *counts);
void fake_events_forget(void);

/* memory.c, vmm.c: for fake_api.forget */
void fake_segments_forget(void);
void fake_handles_forget(void) __attribute__((weak)); /* not in the old library */

#endif
