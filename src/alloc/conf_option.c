/* SPDX-License-Identifier: MIT
 *
 * The table of settings and its look-ups. Static data, no lock. */
#include "alloc/conf_option.h"

#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "base/spelling.h"

#define FIELD(name) offsetof(uf_conf, name)
#define NO_MAXIMUM UINT64_MAX
#define MAXIMUM_MIB ((UINT64_C(1) << 44) - 1) /* the largest number of MB below 2^64 bytes */

/* The row order is that of uf_conf_option_id. */
static const uf_conf_option options[UF_CONF_OPTION_COUNT] = {
    [UF_CONF_LARGE_SEGMENT_SIZE] =
        {.id = UF_CONF_LARGE_SEGMENT_SIZE,
         .name = "large_segment_size_mb",
         .since = 211,
         .is_since_certain = true,
         .type = UF_CONF_TYPE_MIB,
         .part = UF_CONF_PART_GENERIC,
         .offset = FIELD(large_segment_bytes),
         .unit = "MB",
         .minimum = 11,
         .minimum_old = 11,
         .maximum = MAXIMUM_MIB,
         .is_replayed = true,
         .default_text = "20",
         .help = "size of the segments that requests between 1 MiB and 10 MiB share, and of the "
                 "mapping pages of expandable segments"},
    [UF_CONF_MAX_SPLIT_SIZE] =
        {.id = UF_CONF_MAX_SPLIT_SIZE,
         .name = "max_split_size_mb",
         .since = 110,
         .is_since_certain = true,
         .type = UF_CONF_TYPE_MIB,
         .part = UF_CONF_PART_GENERIC,
         .offset = FIELD(max_split_size_bytes),
         .unit = "MB",
         .minimum = 20,
         .minimum_old = 21,
         .maximum = MAXIMUM_MIB,
         .is_minimum_large_segment = true,
         .is_reset = true,
         .is_replayed = true,
         .default_text = "unlimited",
         .help = "blocks of this size and above are never split, and never serve requests below "
                 "it"},
    [UF_CONF_MAX_NON_SPLIT_ROUNDING] =
        {.id = UF_CONF_MAX_NON_SPLIT_ROUNDING,
         .name = "max_non_split_rounding_mb",
         .since = 206,
         .is_since_certain = false,
         .type = UF_CONF_TYPE_MIB,
         .part = UF_CONF_PART_GENERIC,
         .offset = FIELD(max_non_split_rounding_bytes),
         .unit = "MB",
         .minimum = 20,
         .minimum_old = 21,
         .maximum = MAXIMUM_MIB,
         .is_minimum_large_segment = true,
         .is_reset = true,
         .is_replayed = true,
         .default_text = "large_segment_size_mb",
         .help = "how much larger than the request a block that is never split may be to serve "
                 "it"},
    [UF_CONF_GARBAGE_COLLECTION_THRESHOLD] =
        {.id = UF_CONF_GARBAGE_COLLECTION_THRESHOLD,
         .name = "garbage_collection_threshold",
         .since = 112,
         .is_since_certain = true,
         .type = UF_CONF_TYPE_SHARE,
         .part = UF_CONF_PART_GENERIC,
         .offset = FIELD(garbage_collection_threshold),
         .unit = "of the limit",
         .is_open_range = true,
         .is_reset = true,
         .is_replayed = true,
         .default_text = "off",
         .help = "above this share of the memory limit, long unused cached segments are given "
                 "back before new memory is taken; does nothing without a memory fraction below "
                 "1"},
    [UF_CONF_ROUNDUP_POWER2_DIVISIONS] =
        {.id = UF_CONF_ROUNDUP_POWER2_DIVISIONS,
         .name = "roundup_power2_divisions",
         .since = 112,
         .is_since_certain = false,
         .type = UF_CONF_TYPE_DIVISIONS,
         .part = UF_CONF_PART_GENERIC,
         .offset = FIELD(roundup_power2_divisions),
         .unit = "steps per power of two",
         .minimum = 1,
         .minimum_old = 1,
         .maximum = NO_MAXIMUM,
         .is_reset = true,
         .is_replayed = true,
         .default_text = "0",
         .help = "requests are rounded up to one of this many steps between two powers of two; 0 "
                 "and 1 do nothing"},
    [UF_CONF_EXPANDABLE_SEGMENTS] =
        {.id = UF_CONF_EXPANDABLE_SEGMENTS,
         .name = "expandable_segments",
         .since = 201,
         .is_since_certain = true,
         .type = UF_CONF_TYPE_BOOLEAN,
         .part = UF_CONF_PART_GENERIC,
         .offset = FIELD(is_expandable),
         .unit = "-",
         .is_replayed = true,
         .default_text = "False",
         .help = "segments grow by mapping pages into a reserved address range"},
    [UF_CONF_PINNED_USE_BACKGROUND_THREADS] =
        {.id = UF_CONF_PINNED_USE_BACKGROUND_THREADS,
         .name = "pinned_use_background_threads",
         .since = 206,
         .is_since_certain = false,
         .type = UF_CONF_TYPE_BOOLEAN,
         .part = UF_CONF_PART_GENERIC,
         .offset = FIELD(has_background_threads),
         .unit = "-",
         .default_text = "False",
         .help = "host memory only: a thread of its own completes freed pinned blocks"},
    [UF_CONF_BACKEND] =
        {.id = UF_CONF_BACKEND,
         .name = "backend",
         .since = 200,
         .is_since_certain = true,
         .type = UF_CONF_TYPE_BACKEND,
         .part = UF_CONF_PART_CUDA,
         .offset = FIELD(is_async_backend),
         .unit = "-",
         .default_text = "native",
         .help = "native is PyTorch's own allocator; cudaMallocAsync is the driver's, which "
                 "ignores most other options. Fixed when torch is imported"},
    [UF_CONF_RELEASE_LOCK] = {.id = UF_CONF_RELEASE_LOCK,
                              .name = "release_lock_on_cudamalloc",
                              .alias = "release_lock_on_hipmalloc",
                              .since = 201,
                              .is_since_certain = false,
                              .type = UF_CONF_TYPE_BOOLEAN,
                              .part = UF_CONF_PART_CUDA,
                              .offset = FIELD(can_release_lock),
                              .unit = "-",
                              .default_text = "False",
                              .help = "other threads may allocate while one waits for the driver"},
    [UF_CONF_PINNED_USE_HOST_REGISTER] =
        {.id = UF_CONF_PINNED_USE_HOST_REGISTER,
         .name = "pinned_use_cuda_host_register",
         .alias = "pinned_use_hip_host_register",
         .since = 201,
         .is_since_certain = true,
         .type = UF_CONF_TYPE_BOOLEAN,
         .part = UF_CONF_PART_CUDA,
         .offset = FIELD(has_host_register),
         .unit = "-",
         .default_text = "False",
         .help = "host memory only: pinned memory is allocated first and registered with the "
                 "driver afterwards"},
    [UF_CONF_PINNED_NUM_REGISTER_THREADS] =
        {.id = UF_CONF_PINNED_NUM_REGISTER_THREADS,
         .name = "pinned_num_register_threads",
         .since = 201,
         .is_since_certain = true,
         .type = UF_CONF_TYPE_POWER2,
         .part = UF_CONF_PART_CUDA,
         .offset = FIELD(pinned_num_register_threads),
         .unit = "threads",
         .minimum = 1,
         .minimum_old = 1,
         .maximum = 128,
         .default_text = "1",
         .help = "host memory only: threads that touch pages before registration"},
    [UF_CONF_PINNED_RESERVE_SEGMENT_SIZE] =
        {.id = UF_CONF_PINNED_RESERVE_SEGMENT_SIZE,
         .name = "pinned_reserve_segment_size_mb",
         .since = 209,
         .is_since_certain = false,
         .type = UF_CONF_TYPE_INTEGER,
         .part = UF_CONF_PART_CUDA,
         .offset = FIELD(pinned_reserve_segment_mb),
         .unit = "MB",
         .minimum = 1,
         .minimum_old = 1,
         .maximum = NO_MAXIMUM,
         .default_text = "off",
         .help = "host memory only: one pinned segment of this size is reserved at the start"},
    [UF_CONF_GRAPH_CAPTURE_REUSE] =
        {.id = UF_CONF_GRAPH_CAPTURE_REUSE,
         .name = "graph_capture_record_stream_reuse",
         .since = 209,
         .is_since_certain = false,
         .type = UF_CONF_TYPE_BOOLEAN,
         .part = UF_CONF_PART_CUDA,
         .offset = FIELD(can_reuse_in_capture),
         .unit = "-",
         .is_replayed = true,
         .default_text = "False",
         .help = "while a graph is captured, blocks freed on other streams may be reused where "
                 "the graph proves it safe"},
    [UF_CONF_PER_PROCESS_MEMORY_FRACTION] =
        {.id = UF_CONF_PER_PROCESS_MEMORY_FRACTION,
         .name = "per_process_memory_fraction",
         .since = 210,
         .is_since_certain = true,
         .type = UF_CONF_TYPE_SHARE,
         .part = UF_CONF_PART_CUDA,
         .offset = FIELD(per_process_memory_fraction),
         .unit = "of the device total",
         .is_replayed = true,
         .default_text = "1.0",
         .help = "limits the allocator to this share of the card, which also arms "
                 "garbage_collection_threshold; read once, when the device is set up"},
};

const uf_conf_option *uf__conf_option_at(size_t index)
{
    return &options[index];
}

bool uf__conf_option_exists(const uf_conf_option *option, uf_conf_grammar grammar, uint16_t release)
{
    static const uint16_t newest[] = {[UF_CONF_2_11] = UINT16_MAX,
                                      [UF_CONF_2_10] = 210,
                                      [UF_CONF_2_0] = 209,
                                      [UF_CONF_1_10] = 113};
    uint16_t last = newest[grammar];
    return option->since <= (release != 0 && release < last ? release : last);
}

static bool is_name(const char *name, size_t length, const char *word)
{
    return word != NULL && strlen(word) == length && memcmp(word, name, length) == 0;
}

const uf_conf_option *uf__conf_option_find(const char *name, size_t length, uf_conf_grammar grammar,
                                           uint16_t release)
{
    for (size_t i = 0; i < UF_CONF_OPTION_COUNT; i++) {
        const uf_conf_option *option = &options[i];
        if ((is_name(name, length, option->name) || is_name(name, length, option->alias)) &&
            uf__conf_option_exists(option, grammar, release)) {
            return option;
        }
    }
    return NULL;
}

const uf_conf_option *uf__conf_option_nearest(const char *name, size_t length,
                                              uf_conf_grammar grammar, uint16_t release)
{
    const uf_conf_option *nearest = NULL;
    size_t smallest = SIZE_MAX;
    for (size_t i = 0; i < UF_CONF_OPTION_COUNT; i++) {
        if (!uf__conf_option_exists(&options[i], grammar, release)) {
            continue;
        }
        size_t distance = uf__spelling_distance(name, length, options[i].name);
        bool is_start = length >= 4 && strncmp(options[i].name, name, length) == 0;
        if (distance < smallest &&
            (is_start || uf__spelling_is_near(length, options[i].name, distance))) {
            smallest = distance;
            nearest = &options[i];
        }
    }
    return nearest;
}

uint64_t uf__conf_option_minimum(const uf_conf_option *option, uf_conf_grammar grammar,
                                 uint64_t large_segment_bytes)
{
    if (grammar == UF_CONF_2_0 || grammar == UF_CONF_1_10) {
        return option->minimum_old;
    }
    return option->is_minimum_large_segment ? large_segment_bytes / UF_MIB : option->minimum;
}

const char *uf__conf_option_range(const uf_conf_option *option, uf_conf_grammar grammar,
                                  uint64_t large_segment_bytes, char *buffer, size_t capacity)
{
    unsigned long long minimum = uf__conf_option_minimum(option, grammar, large_segment_bytes);
    switch (option->type) {
    case UF_CONF_TYPE_MIB:
    case UF_CONF_TYPE_INTEGER:
        snprintf(buffer, capacity, "an integer of at least %llu%s%s", minimum,
                 option->unit[0] == '-' ? "" : " ", option->unit[0] == '-' ? "" : option->unit);
        break;
    case UF_CONF_TYPE_POWER2:
        snprintf(buffer, capacity, "a power of two from %llu to %llu", minimum,
                 (unsigned long long)option->maximum);
        break;
    case UF_CONF_TYPE_SHARE:
        snprintf(buffer, capacity,
                 option->is_open_range ? "a number above 0 and below 1, such as 0.8"
                                       : "a number from 0 to 1, such as 0.9");
        break;
    case UF_CONF_TYPE_BOOLEAN:
        snprintf(buffer, capacity, "True or False, spelt like that");
        break;
    case UF_CONF_TYPE_DIVISIONS:
        snprintf(buffer, capacity,
                 grammar == UF_CONF_1_10
                     ? "a power of two"
                     : "a power of two, or a list such as [256:1,512:2,>:4] of a power of two in "
                       "MB (or >) and 0 or a power of two");
        break;
    case UF_CONF_TYPE_BACKEND:
        snprintf(buffer, capacity, "native or cudaMallocAsync");
        break;
    }
    return buffer;
}
