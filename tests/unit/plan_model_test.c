/* SPDX-License-Identifier: MIT
 *
 * Reading model files: what is in them, and that nothing else is let in. */
#include "advise/plan_model.h"

#include <stdio.h>
#include <stdlib.h>

#include "plan_sample.h"
#include "suite.h"

START_TEST(a_model_file_is_read_whole)
{
    uf_plan_model *model = plan_sample_open();
    ck_assert_str_eq(model->name, "sample");
    ck_assert_uint_eq(model->module_count, 3);
    ck_assert_uint_eq(model->modules[0].bytes, 3072);
    ck_assert_uint_eq(model->modules[0].size_count, 3);
    ck_assert(!model->modules[2].is_resident);
    ck_assert_uint_eq(model->formula_count, 5);
    ck_assert_uint_eq(model->phase_count, 4);
    ck_assert_str_eq(model->phase_names[0], "load");
    ck_assert_str_eq(model->phase_names[3], "decode");
    ck_assert(model->has_option[UF_PLAN_OFFLOAD]);
    ck_assert(model->is_inert[UF_PLAN_ATTENTION_SLICING]);
    const uf_plan_block *step =
        uf__plan_model_block(model, uf__plan_model_block_name(model, "step"), 2);
    ck_assert_ptr_nonnull(step);
    ck_assert_uint_eq(step->alloc_count, 2);
    ck_assert_uint_eq(step->export_count, 1);
    ck_assert_ptr_null(uf__plan_model_block(model, step->name, 1));
    uf__plan_model_destroy(model);
}
END_TEST

/* Replaces the first `from` in the sample. */
static uf_status parse_changed(const char *from, const char *to, uf_error *error)
{
    char text[4096];
    const char *at = strstr(plan_sample_text, from);
    ck_assert_ptr_nonnull(at);
    int length = snprintf(text, sizeof text, "%.*s%s%s", (int)(at - plan_sample_text),
                          plan_sample_text, to, at + strlen(from));
    uf_plan_model *model = NULL;
    uf_status status = uf__plan_model_parse(text, (size_t)length, &model, error);
    ck_assert((status == UF_OK) == (model != NULL));
    uf__plan_model_destroy(model);
    return status;
}

START_TEST(what_is_wrong_is_refused_with_its_line)
{
    static const struct {
        const char *from, *to, *told;
    } cases[] = {{"unfrag-model 1", "unfrag-model 2", "does not begin"},
                 {"a0\nend", "a9\nend", "no such formula"},
                 {"f1 -net", "f3 -net", "no request that far back"},
                 {"f1 -net", "f1 f1", "given back twice"},
                 {"f1 -net", "f1 -ned", "no such module"},
                 {"w3?p4%2", "w3?p9%2", "no condition"},
                 {"w3?p4%2", "w3?p4%0", "no condition"},
                 {"formula 2048", "formula 2048/0", "no fraction"},
                 {"formula 2048", "formula 2048*z", "no term"},
                 {"formula 2048", "formula 1 2 3", "no part"},
                 {"1024*3\n", "1024*3000000000\n", "no size"},
                 {"multiple 8", "multiple 0", "not the number expected"},
                 {"option offload", "option ofload", "no option"},
                 {"choices attention", "choices attenion", "no choice"},
                 {"name sample", "nome sample", "no such line"},
                 {"name sample", "", "lacks one of"},
                 {"block step 0", "block stop 0", "no block of the program"},
                 {"-vae\nend\n", "-vae\n", "no end of block"},
                 {"!=vae>vae_wide", "!=vae>net", "different tensors"},
                 {"block text 0", "block text 64", "no variant"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uf_error error = {0};
        ck_assert_int_eq(parse_changed(cases[i].from, cases[i].to, &error), UF_ERROR_BAD_INPUT);
        ck_assert_msg(strstr(error.text, cases[i].told) != NULL, "case %zu: %s", i, error.text);
    }
}
END_TEST

START_TEST(a_file_cut_anywhere_is_refused_or_whole)
{
    uint32_t whole = 0;
    for (size_t length = 0; length < strlen(plan_sample_text); length++) {
        uf_plan_model *model = NULL;
        uf_error error = {0};
        whole += uf__plan_model_parse(plan_sample_text, length, &model, &error) == UF_OK ? 1 : 0;
        uf__plan_model_destroy(model);
    }
    ck_assert_uint_eq(whole, 1); /* without the last line's end */
}
END_TEST

START_TEST(the_bundled_models_are_read_and_hold_their_weights)
{
    static const struct {
        const char *name;
        uint64_t bytes; /* of parameters: from the architectures */
    } models[] = {{"sdxl", UINT64_C(6937676966)}, {"z-image-turbo", UINT64_C(20522393542)}};
    for (size_t i = 0; i < 2; i++) {
        char path[512];
        uf_plan_model *model = NULL;
        uf_error error = {0};
        snprintf(path, sizeof path, "%s/models/%s.model.xz", PROJECT_DATA_DIR, models[i].name);
        ck_assert_int_eq(uf__plan_model_read(path, &model, &error), UF_OK);
        ck_assert_str_eq(model->name, models[i].name);
        uint64_t bytes = 0;
        for (uint32_t j = 0; j < model->module_count; j++) {
            bytes += model->modules[j].is_resident ? model->modules[j].bytes : 0;
        }
        ck_assert_uint_eq(bytes, models[i].bytes);
        uf__plan_model_destroy(model);
    }
}
END_TEST

int main(void)
{
    const TTest *tests[] = {a_model_file_is_read_whole, what_is_wrong_is_refused_with_its_line,
                            a_file_cut_anywhere_is_refused_or_whole,
                            the_bundled_models_are_read_and_hold_their_weights, NULL};
    return suite_run("plan_model", tests);
}
