/* SPDX-License-Identifier: MIT
 *
 * The numbers of the .uft trace format, shared by its reader and its writer, and the reader's
 * entry. docs/uft.md describes the format byte by byte; whoever changes one changes the other.
 * Knows nothing of files and compression. No state, no lock. */
#ifndef UF_TRACE_UFT_H
#define UF_TRACE_UFT_H

#include <unfrag/trace.h>

#include "trace/builder.h"
#include "trace/input.h"

/* The first bytes of every file. The first is no ASCII, so that no text looks like it; the line
 * ends show when a transfer has translated them. */
#define UF_UFT_MAGIC "\x89UFT\r\n\x1a\n"
#define UF_UFT_MAGIC_BYTES 8

/* A reader refuses a larger major; a larger minor only adds sections, and bytes at the end of META
 * and SETT. */
#define UF_UFT_MAJOR 1
#define UF_UFT_MINOR 0

#define UF_UFT_HEADER_BYTES 16  /* magic, major, minor, CRC */
#define UF_UFT_SECTION_BYTES 12 /* tag, payload bytes, CRC */
#define UF_UFT_PAYLOAD_MAX_BYTES UINT32_C(0x7fffffff)

/* Section tags, as four characters. */
#define UF_UFT_TAG_LIST(X)        \
    X(UF_UFT_META, "META")        \
    X(UF_UFT_STRINGS, "STRS")     \
    X(UF_UFT_FRAMES, "FRAM")      \
    X(UF_UFT_STACKS, "STAK")      \
    X(UF_UFT_SITES, "SITE")       \
    X(UF_UFT_SETTINGS, "SETT")    \
    X(UF_UFT_SEGMENTS, "SEGS")    \
    X(UF_UFT_ANNOTATIONS, "ANNO") \
    X(UF_UFT_DEVICE, "DEVI")      \
    X(UF_UFT_EVENTS, "EVTS")      \
    X(UF_UFT_END, "END.")

typedef enum uf_uft_tag {
#define UF_UFT_TAG_ENUM(name, text) name,
    UF_UFT_TAG_LIST(UF_UFT_TAG_ENUM)
#undef UF_UFT_TAG_ENUM
        UF_UFT_TAG_COUNT
} uf_uft_tag;

/* META flags. */
#define UF_UFT_META_HAS_DEVICE_TRACES 0x01u

/* SETT flags: what is there, then the values that are bits. */
#define UF_UFT_SET_IS_PRESENT 0x0001u
#define UF_UFT_SET_HAS_CONF 0x0002u
#define UF_UFT_SET_HAS_MAX_SPLIT 0x0004u
#define UF_UFT_SET_HAS_GC 0x0008u
#define UF_UFT_SET_HAS_EXPANDABLE 0x0010u
#define UF_UFT_SET_HAS_DIVISIONS 0x0020u
#define UF_UFT_SET_IS_EXPANDABLE 0x0040u
#define UF_UFT_SET_RELEASE_LOCK 0x0080u
#define UF_UFT_SET_PINNED_REGISTER 0x0100u
#define UF_UFT_SET_CAPTURE_REUSE 0x0200u
#define UF_UFT_SET_OTHER_SHIFT 10 /* four bits: uf_trace_settings.has_other */

/* Site flags. */
#define UF_UFT_SITE_HAS_POOL 0x01u
#define UF_UFT_SITE_HAS_STACK 0x02u
#define UF_UFT_SITE_HAS_CONTEXT 0x04u
#define UF_UFT_SITE_HAS_METADATA 0x08u
#define UF_UFT_SITE_HAS_ACTION_NAME 0x10u

/* SEGS: the lowest bit of a record's first byte tells segments from blocks. */
#define UF_UFT_IS_BLOCK 0x01u
#define UF_UFT_SEG_IS_LARGE 0x02u
#define UF_UFT_SEG_IS_EXPANDABLE 0x04u
#define UF_UFT_SEG_HAS_POOL 0x08u
#define UF_UFT_SEG_HAS_REQUESTED 0x10u
#define UF_UFT_SEG_HAS_STACK 0x20u
#define UF_UFT_BLK_STATE_SHIFT 1 /* two bits: a uf_block_state */
#define UF_UFT_BLK_HAS_REQUESTED 0x08u
#define UF_UFT_BLK_HAS_STACK 0x10u
#define UF_UFT_BLK_FOLLOWS 0x20u /* starts where its predecessor ends: no address */
#define UF_UFT_BLK_IS_FULL 0x40u /* requested equals size: no requested bytes */

/* Annotation flags. */
#define UF_UFT_ANN_HAS_TIME 0x01u

/* An event's first byte. */
#define UF_UFT_EV_ACTION_MASK 0x0fu
#define UF_UFT_EV_SAME_RANGE 0x10u /* address and size are the predecessor's */
#define UF_UFT_EV_SAME_SITE 0x20u  /* the site is the predecessor's */
#define UF_UFT_EV_TIMELESS 0x40u   /* no time was recorded */
#define UF_UFT_EV_IN_BYTES 0x80u   /* the address difference is in bytes, not in 512s */
#define UF_UFT_EV_SHIFT 9

/* Reads a .uft file into a builder, which the caller then finishes. The input stands at its first
 * byte. Returns UF_OK; UF_ERROR_BAD_INPUT (truncated, damaged or contradictory; error names the
 * offset); UF_ERROR_UNSUPPORTED (a newer major version); UF_ERROR_IO, UF_ERROR_INTERRUPTED (from
 * the input); UF_ERROR_HOST_MEMORY. */
uf_status uf__uft_read(uf__input *input, uf_builder *builder, uf_error *error) UF_MUST_USE;

#endif
