/* SPDX-License-Identifier: MIT
 *
 * What a test asks of the fake driver library, beyond what a driver offers: found by the symbol
 * "fake_api_table" in the loaded library. Names of calls are those of the library, such as
 * "cuMemCreate".
 */
#ifndef UF_TESTS_FAKECUDA_FAKE_H
#define UF_TESTS_FAKECUDA_FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <unfrag/host.h>

/* What was not given back, over all cards. */
typedef struct fake_counts {
    uint64_t in_use_bytes, segment_count, range_count, handle_count, mapping_count;
    uint64_t event_count, stream_count, context_count, graph_count;
} fake_counts;

typedef struct fake_api {
    /* The memory and the streams of a card, over which kernels are launched and run by the
     * functions of unfrag/host.h; made with the card's first context. */
    uf_host *(*host)(int card);
    /* The call with number at from now (1 = the next one) fails with the driver's error number
     * `result`, and all later ones too if is_lasting. call NULL: of all calls that count. */
    void (*refuse)(const char *call, uint64_t at, bool is_lasting, int result);
    /* It takes so long. */
    void (*delay)(const char *call, uint64_t at, bool is_lasting, unsigned microseconds);
    /* It does nothing, says that all is well, and what it gives out is wrong. */
    void (*corrupt)(const char *call, uint64_t at, bool is_lasting);
    /* Ends all orders. */
    void (*obey_nothing)(void);
    /* Calls so far; of all that count if call is NULL. */
    uint64_t (*call_count)(const char *call);
    /* The name of the call with that index, in the order of their first times; NULL: no more. */
    const char *(*call_name)(uint32_t index);
    /* Rules that were broken so far; text receives the newest. */
    uint64_t (*fault_count)(char *text, size_t capacity);
    void (*counts)(fake_counts *counts);
    /* Other processes hold so many bytes of the card now, or as many as there are. */
    void (*others)(int card, uint64_t bytes);
    /* Throws away all that cards have handed out, but for streams, and all faults. */
    void (*forget)(void);
    /* From now on every call returns CUDA_ERROR_DEINITIALIZED, as in a process that ends. */
    void (*deinitialize)(void);
} fake_api;

#endif
