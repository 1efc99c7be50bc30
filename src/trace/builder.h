/* SPDX-License-Identifier: MIT
 *
 * Fills a uf_trace: owns the growing arrays and the interning of strings, frames, stacks and sites
 * while a reader runs. Every reader (snapshot, uft, JSON, script) goes through it. Not thread-safe:
 * one builder belongs to one reader. */
#ifndef UF_TRACE_BUILDER_H
#define UF_TRACE_BUILDER_H

#include <stddef.h>

#include <unfrag/trace.h>

typedef struct uf_builder uf_builder;

/* All return false only when the host has no memory left (or an id space of 2^32-1 is used up). */
uf_builder *uf__builder_create(void);
void uf__builder_destroy(uf_builder *builder); /* NULL accepted; drops an unfinished trace */

/* The trace under construction: a reader sets plain fields (settings, form, totals) directly. */
uf_trace *uf__builder_trace(uf_builder *builder);

/* Interning: the same content gives the same id. */
bool uf__builder_string(uf_builder *builder, const char *text, size_t length, uint32_t *id);
bool uf__builder_frame(uf_builder *builder, const uf_frame *frame, uint32_t *id);
bool uf__builder_stack(uf_builder *builder, const uint32_t *frame_ids, uint32_t count,
                       uint32_t *id);
bool uf__builder_site(uf_builder *builder, const uf_site *site, uint32_t *id);

/* Appending. Events belong to the device opened last. */
bool uf__builder_device(uf_builder *builder, int32_t device);
bool uf__builder_event(uf_builder *builder, const uf_event *event);
/* The caller sets everything but first_block and block_count; blocks follow and belong to it. */
bool uf__builder_segment(uf_builder *builder, const uf_trace_segment *segment);
bool uf__builder_block(uf_builder *builder, const uf_trace_block *block);
bool uf__builder_annotation(uf_builder *builder, const uf_annotation *annotation);

/* A reader that holds its events in one malloc'ed array, in device order, hands it over whole
 * (transferred) before any uf__builder_event; uf__builder_extend then gives the next count events
 * to the device opened last. Both return false when the calls come in the wrong order. */
bool uf__builder_adopt_events(uf_builder *builder, uf_event *events, uint64_t count);
bool uf__builder_extend(uf_builder *builder, uint64_t count);

/* Counts what contradicts itself (uf_trace_oddities) and hands the trace over; the builder is
 * destroyed, except when false is returned. */
bool uf__builder_finish(uf_builder *builder, uf_trace **trace);

#endif
