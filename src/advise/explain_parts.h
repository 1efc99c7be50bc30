/* SPDX-License-Identifier: MIT
 *
 * Shared by the parts of an explanation. Private to src/advise/explain*.c. */
#ifndef UF_ADVISE_EXPLAIN_PARTS_H
#define UF_ADVISE_EXPLAIN_PARTS_H

#include "advise/explain.h"
#include "base/size.h"

/* The figures, and what contradicts what. */
void uf__explain_reckon(uf_explanation *explanation);

/* The causes, most likely first, each with its reason. */
void uf__explain_causes(const uf_explain_request *request, uf_explanation *explanation);

/* What to do, most useful first. */
void uf__explain_advise(const uf_explain_request *request, uf_explanation *explanation);

bool uf__explain_has(const uf_explanation *explanation, uf_cause cause);

/* The figure of a message as a signed amount. */
uf_amount uf__explain_amount(const uf_message *message, uf_figure_kind kind);

/* A size as text in a caller's buffer; a negative one with its sign. */
typedef struct uf_size_text {
    char text[UF_SIZE_TEXT_CAPACITY + 1];
} uf_size_text;
uf_size_text uf__explain_size(int64_t bytes);

#endif
