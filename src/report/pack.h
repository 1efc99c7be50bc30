/* SPDX-License-Identifier: MIT
 *
 * A growing string of bytes for numbers, seven bits a byte with the lowest first, and its way into
 * a page: gzip, then base64. Owns its bytes. A failure is remembered until the end. */
#ifndef UF_REPORT_PACK_H
#define UF_REPORT_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <unfrag/status.h>

typedef struct uf_pack {
    unsigned char *bytes;
    size_t count, capacity;
    bool has_failed; /* the host had no memory */
} uf_pack;

void uf__pack_fini(uf_pack *pack);

void uf__pack_number(uf_pack *pack, uint64_t value);

/* Small in both directions: 0, -1, 1, -2, 2 ... become 0, 1, 2, 3, 4 ... */
void uf__pack_signed(uf_pack *pack, int64_t value);

/* to - from, as 64-bit numbers that wrap: what is read back is right for any two. */
static inline void uf__pack_step(uf_pack *pack, uint64_t from, uint64_t to)
{
    uf__pack_signed(pack, (int64_t)(to - from));
}

/* Writes gzip of the bytes in base64 to the stream. *written_bytes: how many characters. UF_OK,
 * UF_ERROR_HOST_MEMORY (also if the pack has failed) or UF_ERROR_IO. */
uf_status uf__pack_write(const uf_pack *pack, FILE *stream, size_t *written_bytes) UF_MUST_USE;

#endif
