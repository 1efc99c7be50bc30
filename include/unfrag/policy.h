/* SPDX-License-Identifier: MIT
 *
 * How an allocator decides. */
#ifndef UNFRAG_POLICY_H
#define UNFRAG_POLICY_H

typedef enum uf_policy {
    UF_POLICY_DEFAULT = 0, /* today UF_POLICY_TORCH */
    UF_POLICY_TORCH = 1,   /* as PyTorch 2.11's allocator, decision by decision */
    UF_POLICY_UNFRAG = 2   /* moves pages under cached memory, so that it does not fragment */
} uf_policy;

#endif
