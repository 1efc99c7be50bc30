/* SPDX-License-Identifier: MIT
 *
 * Small traces written down event by event, for tests of replay. Owns its arrays; nothing is on the
 * heap. Single-threaded. */
#ifndef UF_TESTS_TRACE_MAKER_H
#define UF_TESTS_TRACE_MAKER_H

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <unfrag/trace.h>

#include "replay/program.h"

#define MAKER_MIB (UINT64_C(1) << 20)
#define MAKER_BASE UINT64_C(0x7f0000000000)

/* Sites: the default stream, streams 7 and 9, and a private pool on the default stream. */
enum { MAKER_STREAM_0, MAKER_STREAM_7, MAKER_STREAM_9, MAKER_POOL_5, MAKER_SITES };

typedef struct maker {
    uf_trace trace;
    uf_event events[512];
    uf_site sites[MAKER_SITES];
    uf_trace_device devices[2];
    uf_trace_segment segments[16];
    uf_trace_block blocks[64];
} maker;

static inline void maker_init(maker *m)
{
    memset(m, 0, sizeof *m);
    for (int i = 0; i < MAKER_SITES; i++) {
        m->sites[i].stack = m->sites[i].compile_context = UF_NONE;
        m->sites[i].user_metadata = m->sites[i].action_name = UF_NONE;
    }
    m->sites[MAKER_STREAM_7].stream = 7;
    m->sites[MAKER_STREAM_9].stream = 9;
    m->sites[MAKER_POOL_5].has_pool_id = true;
    m->sites[MAKER_POOL_5].pool_id[1] = 5;
    m->trace = (uf_trace){.form = UF_FORM_PICKLE,
                          .events = m->events,
                          .devices = m->devices,
                          .device_count = 1,
                          .sites = m->sites,
                          .site_count = MAKER_SITES,
                          .segments = m->segments,
                          .blocks = m->blocks,
                          .has_device_traces = true};
}

static inline void maker_event_at(maker *m, uf_action action, uint64_t addr, uint64_t size_bytes,
                                  uint32_t site)
{
    ck_assert_uint_lt(m->trace.event_count, 512);
    m->events[m->trace.event_count++] = (uf_event){.addr = addr,
                                                   .size_bytes = size_bytes,
                                                   .time_us = UF_TIME_UNKNOWN,
                                                   .site = site,
                                                   .action = (uint8_t)action};
    m->devices[0].count++;
}

static inline void maker_event(maker *m, uf_action action, uint64_t addr, uint64_t size_bytes)
{
    maker_event_at(m, action, addr, size_bytes, MAKER_STREAM_0);
}

static inline void maker_free(maker *m, uint64_t addr, uint64_t size_bytes)
{
    maker_event(m, UF_ACTION_FREE_REQUESTED, addr, size_bytes);
    maker_event(m, UF_ACTION_FREE_COMPLETED, addr, size_bytes);
}

/* A final segment; its blocks follow. */
static inline uf_trace_segment *maker_segment(maker *m, uint64_t addr, bool is_large)
{
    uf_trace_segment *segment = &m->segments[m->trace.segment_count++];
    *segment = (uf_trace_segment){.addr = addr,
                                  .first_block = m->trace.block_count,
                                  .stack = UF_NONE,
                                  .is_large = is_large,
                                  .has_pool_id = true,
                                  .has_requested = true};
    return segment;
}

static inline uf_trace_block *maker_block(maker *m, uint64_t size_bytes, uint64_t requested_bytes,
                                          uf_block_state state)
{
    uf_trace_segment *segment = &m->segments[m->trace.segment_count - 1];
    uf_trace_block *block = &m->blocks[m->trace.block_count++];
    *block = (uf_trace_block){.addr = segment->addr + segment->total_bytes,
                              .size_bytes = size_bytes,
                              .requested_bytes = requested_bytes,
                              .stack = UF_NONE,
                              .state = (uint8_t)state,
                              .has_requested = true};
    segment->total_bytes += size_bytes;
    segment->block_count++;
    if (state != UF_BLOCK_INACTIVE) {
        segment->active_bytes += size_bytes;
        segment->requested_bytes += requested_bytes;
        segment->allocated_bytes += state == UF_BLOCK_ACTIVE_ALLOCATED ? size_bytes : 0;
    }
    return block;
}

/* A sound trace of seven events: 3 MiB and 2 MiB in a segment of 20 MiB, the first freed, the hole
 * in part taken by 1.5 MiB. */
static inline void maker_sample(maker *m)
{
    maker_init(m);
    maker_event(m, UF_ACTION_SEGMENT_ALLOC, MAKER_BASE, 20 * MAKER_MIB);
    maker_event(m, UF_ACTION_ALLOC, MAKER_BASE, 3 * MAKER_MIB);
    maker_event(m, UF_ACTION_ALLOC, MAKER_BASE + 3 * MAKER_MIB, 2 * MAKER_MIB);
    maker_free(m, MAKER_BASE, 3 * MAKER_MIB);
    maker_event(m, UF_ACTION_ALLOC, MAKER_BASE, 1572864 - 100);
    maker_event(m, UF_ACTION_SNAPSHOT, 0, 20 * MAKER_MIB);
    maker_segment(m, MAKER_BASE, true);
    maker_block(m, 1572864, 1572864 - 100, UF_BLOCK_ACTIVE_ALLOCATED);
    maker_block(m, 1572864, 3 * MAKER_MIB, UF_BLOCK_INACTIVE);
    maker_block(m, 2 * MAKER_MIB, 2 * MAKER_MIB, UF_BLOCK_ACTIVE_ALLOCATED);
    maker_block(m, 15 * MAKER_MIB, 0, UF_BLOCK_INACTIVE);
}

/* A program of it, following included. Destroy it. */
static inline uf_program *maker_program(maker *m, const uf_program_options *options)
{
    uf_program *program;
    uf_error error = {UF_OK, ""};
    if (uf_program_create(&m->trace, options, &program, &error) != UF_OK) {
        ck_abort_msg("%s", error.text);
    }
    return program;
}

/* A program that is linked and not followed. Destroy it. */
static inline uf_program *maker_link(maker *m)
{
    uf_error error = {UF_OK, ""};
    uf_program *program = calloc(1, sizeof *program);
    ck_assert_ptr_nonnull(program);
    program->trace = &m->trace;
    program->events = m->events;
    program->event_count = m->devices[0].count;
    program->options.num_alloc_retries = -1;
    program->options.total_bytes = UF_RECORDED_TOTAL_BYTES;
    uf__conf_init(&program->conf);
    if (uf__program_link(program, &error) != UF_OK) {
        ck_abort_msg("%s", error.text);
    }
    return program;
}

#endif
