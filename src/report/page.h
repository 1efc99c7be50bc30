/* SPDX-License-Identifier: MIT
 *
 * The page as a file: the template with style, scripts and data put in. Everything is in the one
 * file; nothing in it refers to anything outside. The parts are compiled into the program. */
#ifndef UF_REPORT_PAGE_H
#define UF_REPORT_PAGE_H

#include "report/pack.h"

typedef struct uf_page {
    const char *title; /* any bytes; escaped here */
    const char *data;  /* a JSON document; escaped here for its place in the page */
    size_t data_bytes;
    const uf_pack *packs; /* one for each recording, in order */
    uint32_t pack_count;
} uf_page;

/* Writes the page to a stream that is open. UF_OK; UF_ERROR_IO; UF_ERROR_HOST_MEMORY. */
uf_status uf__page_write(const uf_page *page, FILE *stream, uf_error *error) UF_MUST_USE;

/* A part of the page that was compiled in. */
typedef struct uf_page_asset {
    const char *name;
    const unsigned char *bytes;
    size_t size_bytes;
} uf_page_asset;

/* In the order in which they stand in the page; ends with a NULL name. Made by the build
 * (src/report/assets.cmake). */
extern const uf_page_asset uf__page_assets[];

#endif
