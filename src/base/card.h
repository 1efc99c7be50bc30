/* SPDX-License-Identifier: MIT
 *
 * Graphics cards by name, with their nominal memory. Owns the one table of cards; static data, no
 * lock. */
#ifndef UF_BASE_CARD_H
#define UF_BASE_CARD_H

#include <stddef.h>
#include <stdint.h>

#include <unfrag/status.h>

typedef struct uf_card {
    const char *name;      /* without "NVIDIA" and "GeForce", such as "RTX 3060 Ti" */
    uint64_t memory_bytes; /* nominal: what the box says, in GiB; a driver reports 1-3 % less */
} uf_card;

/* Finds a card by name: "RTX 3060", "rtx3060ti", "4090", "NVIDIA GeForce RTX 3080 Laptop GPU",
 * "A100-SXM4-80GB". Case, punctuation, and words that do not tell cards apart (NVIDIA, GeForce,
 * GPU, PCIe, SXM4, HBM3 ...) do not matter. Where a name was sold with several sizes, the most
 * common one is found, and a size in the name chooses: "RTX 3080 12GB".
 * *card: static. Returns UF_OK, or UF_ERROR_NOT_FOUND with the nearest names, or with the sizes
 * that exist for the name. */
uf_status uf__card_find(const char *name, const uf_card **card, uf_error *error) UF_MUST_USE;

size_t uf__card_count(void);

/* The card at an index below uf__card_count(), from old to new. */
const uf_card *uf__card_at(size_t index);

#endif
