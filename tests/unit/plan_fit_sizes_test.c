/* SPDX-License-Identifier: MIT
 *
 * Formulas are found again from the sizes that they give. */
#include <stdio.h>
#include <string.h>

#include "advise/plan_fit.h"
#include "suite.h"

static const uf_plan_shape shapes[] = {
    {512, 512, 1}, {768, 512, 2}, {1280, 720, 1}, {1024, 1024, 4}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static void set_terms(uf_plan_terms terms[SHAPES])
{
    for (int i = 0; i < SHAPES; i++) {
        uf__plan_terms_set(&terms[i], &shapes[i]);
    }
}

START_TEST(every_multiple_of_a_term_is_found)
{
    uf_plan_terms terms[SHAPES];
    set_terms(terms);
    for (uint32_t term = 0; term < UF_PLAN_TERM_COUNT - 2; term++) {
        uint64_t sizes[SHAPES];
        uf_plan_fitted fitted;
        for (int i = 0; i < SHAPES; i++) {
            sizes[i] = 2560 * terms[i].values[term];
        }
        uf__plan_fit_sizes(terms, sizes, SHAPES, false, &fitted);
        ck_assert(fitted.is_exact);
        ck_assert_uint_eq(fitted.formula.count, 1);
        for (int i = 0; i < SHAPES; i++) {
            ck_assert_uint_eq(uf__plan_formula_value(&fitted.formula, &terms[i]), sizes[i]);
        }
    }
}
END_TEST

START_TEST(a_term_and_a_constant_are_found)
{
    uf_plan_terms terms[SHAPES];
    uint64_t sizes[SHAPES];
    uf_plan_fitted fitted;
    set_terms(terms);
    for (int i = 0; i < SHAPES; i++) {
        sizes[i] = 1536 * terms[i].values[3] + 1179795;
    }
    uf__plan_fit_sizes(terms, sizes, SHAPES, true, &fitted);
    ck_assert(fitted.is_exact);
    ck_assert_uint_eq(fitted.formula.count, 2);
    ck_assert_int_eq(fitted.formula.numerator[1], 1179795);
}
END_TEST

START_TEST(what_follows_no_formula_is_never_below_what_was_seen)
{
    uf_plan_terms terms[SHAPES];
    const uint64_t padding[SHAPES] = {147, 6291827, 0, 7864979};
    uint64_t sizes[SHAPES];
    uf_plan_fitted fitted;
    set_terms(terms);
    for (int i = 0; i < SHAPES; i++) {
        sizes[i] = 1536 * terms[i].values[3] + padding[i];
    }
    uf__plan_fit_sizes(terms, sizes, SHAPES, true, &fitted);
    ck_assert(!fitted.is_exact);
    ck_assert_double_lt(fitted.error, 0.03);
    for (int i = 0; i < SHAPES; i++) {
        ck_assert_uint_ge(uf__plan_formula_value(&fitted.formula, &terms[i]), sizes[i]);
    }
}
END_TEST

START_TEST(two_sizes_with_one_image_make_tensors_grow_with_the_batch_and_weights_not)
{
    const uf_plan_shape two[] = {{512, 512, 1}, {1024, 1024, 1}}, asked = {768, 768, 3};
    uf_plan_terms terms[2], at;
    uf_plan_fitted fitted;
    uf__plan_terms_set(&terms[0], &two[0]);
    uf__plan_terms_set(&terms[1], &two[1]);
    uf__plan_terms_set(&at, &asked);
    const uint64_t tensor[] = {640 * 4096, 640 * 16384}, weight[] = {1000, 1000};
    uf__plan_fit_sizes(terms, tensor, 2, false, &fitted);
    ck_assert_uint_eq(uf__plan_formula_value(&fitted.formula, &at), 640 * 9216 * 3);
    uf__plan_fit_sizes(terms, weight, 2, false, &fitted);
    ck_assert_uint_eq(uf__plan_formula_value(&fitted.formula, &at), 1000);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        every_multiple_of_a_term_is_found, a_term_and_a_constant_are_found,
        what_follows_no_formula_is_never_below_what_was_seen,
        two_sizes_with_one_image_make_tensors_grow_with_the_batch_and_weights_not, NULL};
    return suite_run("plan_fit_sizes", tests);
}
