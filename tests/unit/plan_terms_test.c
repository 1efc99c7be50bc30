/* SPDX-License-Identifier: MIT
 *
 * Terms against sizes worked out by hand. */
#include "advise/plan_model.h"

#include <string.h>

#include "suite.h"

static uint64_t value(const char *name, uint32_t width, uint32_t height, uint32_t batch)
{
    const uf_plan_shape shape = {width, height, batch};
    uf_plan_terms terms;
    uf__plan_terms_set(&terms, &shape);
    for (uint32_t i = 0; i < UF_PLAN_TERM_COUNT; i++) {
        if (strcmp(uf__plan_term_name(i), name) == 0) {
            return terms.values[i];
        }
    }
    ck_abort_msg("no term %s", name);
    return 0;
}

START_TEST(odd_halves_are_rounded_up)
{
    ck_assert_uint_eq(value("p3", 1280, 720, 1), 160 * 90);
    ck_assert_uint_eq(value("p4", 1280, 720, 1), 80 * 45);
    ck_assert_uint_eq(value("p5", 1280, 720, 1), 40 * 23);
    ck_assert_uint_eq(value("p5b", 1280, 720, 3), 3 * 40 * 23);
    ck_assert_uint_eq(value("s5", 1280, 720, 3), UINT64_C(920) * 920);
}
END_TEST

START_TEST(tokens_are_padded_to_32)
{
    ck_assert_uint_eq(value("r4", 1280, 720, 1), 3616);
    ck_assert_uint_eq(value("q4", 1280, 720, 1), 3648);
    ck_assert_uint_eq(value("r4", 1024, 1024, 2), 4096);
}
END_TEST

START_TEST(a_convolution_takes_as_many_images_as_2_31_elements_hold)
{
    ck_assert_uint_eq(value("m0", 1536, 1536, 4), UINT64_C(3) * 1536 * 1536);
    ck_assert_uint_eq(value("m0", 1536, 1536, 2), UINT64_C(2) * 1536 * 1536);
    ck_assert_uint_eq(value("m1", 1536, 1536, 4), UINT64_C(4) * 768 * 768);
}
END_TEST

START_TEST(formulas_sum_round_and_never_ask_for_nothing)
{
    const uf_plan_shape shape = {64, 64, 2};
    uf_plan_terms terms;
    uf__plan_terms_set(&terms, &shape);
    uf_plan_formula formula = {
        .count = 2, .term = {2, 0}, .numerator = {3, 7}, .denominator = {2, 1}};
    ck_assert_str_eq(uf__plan_term_name(2), "p0");
    ck_assert_uint_eq(uf__plan_formula_value(&formula, &terms), 3 * 4096 / 2 + 7);
    formula.numerator[1] = -100000;
    ck_assert_uint_eq(uf__plan_formula_value(&formula, &terms), 1);
}
END_TEST

START_TEST(options_are_found_by_name)
{
    ck_assert_int_eq(uf__plan_option_find("offload"), UF_PLAN_OFFLOAD);
    ck_assert_int_eq(uf__plan_option_find("ofload"), UF_PLAN_OPTION_COUNT);
    ck_assert_str_eq(uf__plan_option_name(UF_PLAN_VAE_TILING), "vae-tiling");
}
END_TEST

int main(void)
{
    const TTest *tests[] = {odd_halves_are_rounded_up,
                            tokens_are_padded_to_32,
                            a_convolution_takes_as_many_images_as_2_31_elements_hold,
                            formulas_sum_round_and_never_ask_for_nothing,
                            options_are_found_by_name,
                            NULL};
    return suite_run("plan_terms", tests);
}
