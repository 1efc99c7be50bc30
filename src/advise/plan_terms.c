/* SPDX-License-Identifier: MIT
 *
 * Terms and formulas of a model file. Pure functions. */
#include <string.h>

#include "advise/plan_model.h"

#define ELEMENTS_MAX UINT64_C(0x7fffffff)
#define BYTES_MAX 1e15 /* no card has so much; sums of it do not wrap */

static uint64_t scaled(const uf_plan_shape *shape, uint32_t shift)
{
    uint64_t width = ((uint64_t)shape->width + (UINT64_C(1) << shift) - 1) >> shift;
    uint64_t height = ((uint64_t)shape->height + (UINT64_C(1) << shift) - 1) >> shift;
    return width * height;
}

static uint64_t capped(uint64_t pixels, uint64_t channels, uint64_t batch)
{
    uint64_t images = pixels == 0 ? batch : ELEMENTS_MAX / (pixels * channels);
    images = images == 0 ? 1 : images;
    return pixels * (images < batch ? images : batch);
}

void uf__plan_terms_set(uf_plan_terms *terms, const uf_plan_shape *shape)
{
    uint64_t base[UF_PLAN_BASE_COUNT] = {1};
    for (uint32_t shift = 0; shift < 6; shift++) {
        base[1 + shift] = scaled(shape, shift);
    }
    base[7] = (base[5] + 31) / 32 * 32;
    base[8] = base[7] + 32;
    base[9] = base[5] * base[5];
    base[10] = base[6] * base[6];
    for (uint32_t i = 0; i < UF_PLAN_BASE_COUNT; i++) {
        terms->values[2 * i] = base[i];
        terms->values[2 * i + 1] = base[i] * shape->batch;
    }
    terms->values[2 * UF_PLAN_BASE_COUNT] = capped(base[1], 256, shape->batch);
    terms->values[2 * UF_PLAN_BASE_COUNT + 1] = capped(base[2], 512, shape->batch);
    terms->is_over = base[1] * 256 * shape->batch > ELEMENTS_MAX;
}

const char *uf__plan_term_name(uint32_t term)
{
#define BASE_NAMES(name) #name, #name "b",
    static const char *const names[] = {UF_PLAN_BASE_LIST(BASE_NAMES) "m0", "m1"};
#undef BASE_NAMES
    return term < UF_PLAN_TERM_COUNT ? names[term] : "";
}

uint64_t uf__plan_formula_value(const uf_plan_formula *formula, const uf_plan_terms *terms)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < formula->count; i++) {
        sum += (double)formula->numerator[i] * (double)terms->values[formula->term[i]] /
               (double)formula->denominator[i];
    }
    return sum < 1.0 ? 1 : sum > BYTES_MAX ? (uint64_t)BYTES_MAX : (uint64_t)(sum + 0.5);
}

static const char *const option_names[] = {
#define OPTION_NAME(name, text) text,
    UF_PLAN_OPTION_LIST(OPTION_NAME)
#undef OPTION_NAME
};

const char *uf__plan_option_name(uf_plan_option option)
{
    return option_names[option];
}

uf_plan_option uf__plan_option_find(const char *name)
{
    uint32_t option = 0;
    while (option < UF_PLAN_OPTION_COUNT && strcmp(option_names[option], name) != 0) {
        option++;
    }
    return (uf_plan_option)option;
}
