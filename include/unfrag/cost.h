/* SPDX-License-Identifier: MIT
 *
 * Whose driver times a simulated device charges. */
#ifndef UNFRAG_COST_H
#define UNFRAG_COST_H

typedef enum uf_cost_model {
    UF_COST_H200 = 0, /* measured: an H200 with driver 580 on PCIe 5 */
    UF_COST_A100 = 1  /* the page calls of an A100, as measured for pages of 2 MiB; what was not
                         measured there is taken as said in docs/policy.md */
} uf_cost_model;

#endif
