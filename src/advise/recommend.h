/* SPDX-License-Identifier: MIT
 *
 * What settings the bundled recordings ask for on a card: the answers of tune, looked up in
 * data/cards.tsv, which scripts/card_table writes by replay. Computes no answer of its own. */
#ifndef UF_ADVISE_RECOMMEND_H
#define UF_ADVISE_RECOMMEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <unfrag/status.h>

/* One recording on one card. */
typedef struct uf_recommendation {
    char recording[96];   /* "zimage-1024" */
    char what[160];       /* in words */
    uint64_t class_bytes; /* the card that tune was asked about */
    bool fits;            /* with conf: its smallest limit and the allowance are on the card */
    bool default_fits;    /* without settings */
    bool is_known;        /* false: nothing completes on a card of the class */
    bool needs_limit;     /* only with a memory fraction set */
    char conf[256];       /* "" = PyTorch's defaults */
    uint64_t need_bytes;  /* smallest limit of conf, with the allowance */
    uint64_t default_need_bytes;
} uf_recommendation;

typedef struct uf_recommendations {
    uf_recommendation *items; /* in the table's order; owned */
    size_t count;
    uint64_t allowance_bytes; /* of a card, left to CUDA and its libraries */
} uf_recommendations;

/* path: data/cards.tsv. card_bytes: the memory of a card as it is sold, or as its driver tells it,
 * which is a little less. Of the classes of cards in the table the nearest is taken that is not
 * more than 6 % larger. Returns UF_OK; UF_ERROR_IO; UF_ERROR_BAD_INPUT (no such table);
 * UF_ERROR_HOST_MEMORY. The caller ends it with uf__recommendations_fini, whatever was returned. */
uf_status uf__recommendations_read(const char *path, uint64_t card_bytes,
                                   uf_recommendations *recommendations,
                                   uf_error *error) UF_MUST_USE;
void uf__recommendations_fini(uf_recommendations *recommendations);

/* The settings that most recordings fit with which do not fit, or fit less well, without; NULL if
 * the defaults will do, or nothing is known. Belongs to the recommendations. */
const char *uf__recommendations_conf(const uf_recommendations *recommendations);

#endif
