/* SPDX-License-Identifier: MIT
 *
 * A small model of plan that can be reckoned by hand. In bytes, at 64x64 and one image:
 *   weights  net 3 x 1024, vae 2 x 512, vae_wide 2 x 1024
 *   text     2048 kept                     step  p0 kept, 2 p0 in between, a workspace of p3 + 100
 *   decode   the tile's image: 3 * pixels (1 byte an element) */
#ifndef UF_TESTS_PLAN_SAMPLE_H
#define UF_TESTS_PLAN_SAMPLE_H

#include <check.h>
#include <string.h>

#include "advise/plan_model.h"

static const char plan_sample_text[] =
    "unfrag-model 1\n"
    "# a comment\n"
    "name sample\n"
    "title A sample\n"
    "origin by hand\n"
    "dtype fp16\n"
    "multiple 8\n"
    "recorded 64 256 4096 65536 4\n"
    "choices attention-slicing batch padded\n"
    "program text/text step/step before/decode body/decode after/decode\n"
    "decoder 128 96 1\n"
    "option offload\n"
    "option vae-slicing\n"
    "option vae-tiling\n"
    "option attention-slicing inert\n"
    "module net resident\n1024*3\nend\n"
    "module vae resident\n512 512\nend\n"
    "module vae_wide cast\n1024*2\nend\n"
    "formula 2048\n"
    "formula 1*p0b\n"
    "formula 2*p0b\n"
    "formula 1*p3 100\n"
    "formula 3*p0b\n"
    "block text 0 1 2 3 4 5 6 7\n+net a0\nend\n"
    "block step 0 2 4 6\na1 a2 w3?p4%2 f1 -net\nend\n"
    "block before 0 2 4 6\n!=vae>vae_wide +vae_wide\nend\n"
    "block body 0 2 4 6\na1 a4 f2\nend\n"
    "block after 0 2 4 6\n=vae_wide>vae xbody.0 xstep.0 xtext.0 -vae\nend\n";

static inline uf_plan_model *plan_sample_open(void)
{
    uf_plan_model *model = NULL;
    uf_error error = {0};
    uf_status status =
        uf__plan_model_parse(plan_sample_text, strlen(plan_sample_text), &model, &error);
    ck_assert_msg(status == UF_OK, "%s", error.text);
    return model;
}

#endif
