/* SPDX-License-Identifier: MIT
 *
 * A formula for one size seen in several recordings. Fractions are exact: sizes are below 2^44 and
 * terms below 2^50, so products fit 128 bits. Pure functions. */
#include "advise/plan_fit.h"

#include <string.h>

__extension__ typedef __int128 wide;

/* A term must do so much better than one before it. */
#define ERROR_SLACK 1e-3

enum { TERM_M0 = 2 * UF_PLAN_BASE_COUNT, SLOPE_UNIT = 64 };

static wide absolute(wide value)
{
    return value < 0 ? -value : value;
}

static bool reduce(wide numerator, wide denominator, int64_t *top, int64_t *bottom)
{
    wide a = absolute(numerator), b = absolute(denominator);
    while (b != 0) {
        wide rest = a % b;
        a = b;
        b = rest;
    }
    a = a == 0 ? 1 : a;
    wide sign = denominator < 0 ? -1 : 1;
    wide reduced_top = sign * numerator / a, reduced_bottom = absolute(denominator) / a;
    if (absolute(reduced_top) > INT64_MAX || reduced_bottom > INT64_MAX) {
        return false;
    }
    *top = (int64_t)reduced_top;
    *bottom = (int64_t)reduced_bottom;
    return true;
}

/* What does not depend on the size is taken not to depend on the batch, and what does to grow with
 * it, unless the recordings show otherwise. */
static uint32_t term_at(uint32_t index)
{
    return index == 0                       ? 0
           : index < UF_PLAN_BASE_COUNT     ? 2 * index + 1
           : index == UF_PLAN_BASE_COUNT    ? 1
           : index < 2 * UF_PLAN_BASE_COUNT ? 2 * (index - UF_PLAN_BASE_COUNT)
                                            : index;
}

static bool is_usable(uint32_t term, bool is_work)
{
    return is_work || term < TERM_M0;
}

static bool fit_single(const uf_plan_terms *terms, const uint64_t *sizes, uint32_t count,
                       bool is_work, uf_plan_formula *best)
{
    bool is_found = false;
    for (uint32_t index = 0; index < UF_PLAN_TERM_COUNT; index++) {
        uint32_t term = term_at(index);
        bool is_good = is_usable(term, is_work);
        for (uint32_t i = 1; i < count && is_good; i++) {
            is_good =
                (wide)sizes[i] * terms[0].values[term] == (wide)sizes[0] * terms[i].values[term];
        }
        uf_plan_formula formula = {.count = 1, .term = {(uint8_t)term}};
        is_good = is_good && reduce((wide)sizes[0], (wide)terms[0].values[term],
                                    &formula.numerator[0], &formula.denominator[0]);
        if (is_good && (!is_found || formula.denominator[0] < best->denominator[0])) {
            *best = formula;
            is_found = true;
        }
    }
    return is_found;
}

/* a * term + c * constant through two of the recordings; false if they do not tell. */
static bool solve(const uf_plan_terms *one, const uf_plan_terms *two, uint64_t size_one,
                  uint64_t size_two, uf_plan_formula *formula)
{
    uint32_t term = formula->term[0], constant = formula->term[1];
    wide x1 = (wide)one->values[term], x2 = (wide)two->values[term];
    wide c1 = (wide)one->values[constant], c2 = (wide)two->values[constant];
    wide det = x1 * c2 - x2 * c1;
    if (det == 0) {
        return false;
    }
    formula->count = 2;
    return reduce((wide)size_one * c2 - (wide)size_two * c1, det, &formula->numerator[0],
                  &formula->denominator[0]) &&
           reduce((wide)size_two * x1 - (wide)size_one * x2, det, &formula->numerator[1],
                  &formula->denominator[1]) &&
           formula->numerator[0] > 0;
}

static bool is_exact(const uf_plan_formula *formula, const uf_plan_terms *terms,
                     const uint64_t *sizes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (uf__plan_formula_value(formula, &terms[i]) != sizes[i]) {
            return false;
        }
    }
    return true;
}

/* A line goes through any two points: that proves nothing. */
static bool has_three_shapes(const uf_plan_terms *terms, uint32_t count)
{
    uint32_t distinct = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool is_new = true;
        for (uint32_t j = 0; j < i; j++) {
            is_new =
                is_new && memcmp(terms[i].values, terms[j].values, sizeof terms[i].values) != 0;
        }
        distinct += is_new ? 1 : 0;
    }
    return distinct >= 3;
}

static bool fit_double(const uf_plan_terms *terms, const uint64_t *sizes, uint32_t count,
                       bool is_work, uf_plan_formula *best)
{
    bool is_found = false;
    int64_t best_rank = INT64_MAX;
    if (!has_three_shapes(terms, count)) {
        return false;
    }
    for (uint32_t index = 0; index < 2 * UF_PLAN_TERM_COUNT; index++) {
        uint32_t term = term_at(index % UF_PLAN_TERM_COUNT);
        uf_plan_formula formula = {.term = {(uint8_t)term, index < UF_PLAN_TERM_COUNT ? 0 : 1}};
        bool is_solved = false;
        for (uint32_t i = 1; i < count && !is_solved && is_usable(term, is_work); i++) {
            is_solved = solve(&terms[i - 1], &terms[i], sizes[i - 1], sizes[i], &formula);
        }
        if (is_solved && is_exact(&formula, terms, sizes, count)) {
            int64_t rank = formula.denominator[0] / 2 + formula.denominator[1] / 2;
            is_found = true;
            if (rank < best_rank) {
                best_rank = rank;
                *best = formula;
            }
        }
    }
    return is_found;
}

static double error_of(const uf_plan_formula *formula, const uf_plan_terms *terms,
                       const uint64_t *sizes, uint32_t count)
{
    double worst = 0.0;
    for (uint32_t i = 0; i < count; i++) {
        double value = (double)uf__plan_formula_value(formula, &terms[i]);
        double share = (value - (double)sizes[i]) / (double)sizes[i];
        share = share < 0.0 ? -share : share;
        worst = share > worst ? share : worst;
    }
    return worst;
}

/* The least-squares slope of a term, as a whole number of bytes (of 64 where it is above that:
 * channels times bytes), and the constant that leaves no recorded size above the line. */
static bool fit_line(const uf_plan_terms *terms, const uint64_t *sizes, uint32_t count,
                     uint32_t term, uf_plan_formula *formula)
{
    double mean_x = 0.0, mean_y = 0.0, covariance = 0.0, variance = 0.0;
    for (uint32_t i = 0; i < count; i++) {
        mean_x += (double)terms[i].values[term] / count;
        mean_y += (double)sizes[i] / count;
    }
    for (uint32_t i = 0; i < count; i++) {
        double x = (double)terms[i].values[term] - mean_x;
        covariance += x * ((double)sizes[i] - mean_y);
        variance += x * x;
    }
    if (variance == 0.0 || covariance <= 0.0) {
        return false;
    }
    double slope = covariance / variance;
    int64_t unit = slope >= SLOPE_UNIT ? SLOPE_UNIT : 1;
    int64_t scale = slope < 1.0 ? 1024 : 1;
    int64_t numerator = (int64_t)(slope * (double)scale / (double)unit + 0.5) * unit;
    *formula = (uf_plan_formula){.count = 2,
                                 .term = {(uint8_t)term, 0},
                                 .numerator = {numerator, 0},
                                 .denominator = {scale, 1}};
    double top = -1e300;
    for (uint32_t i = 0; i < count; i++) {
        double rest =
            (double)sizes[i] - (double)numerator * (double)terms[i].values[term] / (double)scale;
        top = rest > top ? rest : top;
    }
    formula->numerator[1] = (int64_t)(top + (top < 0.0 ? -0.5 : 0.5));
    return true;
}

static void fit_loose(const uf_plan_terms *terms, const uint64_t *sizes, uint32_t count,
                      bool is_work, uf_plan_fitted *fitted)
{
    uint64_t largest = 1;
    for (uint32_t i = 0; i < count; i++) {
        largest = sizes[i] > largest ? sizes[i] : largest;
    }
    *fitted = (uf_plan_fitted){
        .formula = {.count = 1, .numerator = {(int64_t)largest}, .denominator = {1}}};
    fitted->error = error_of(&fitted->formula, terms, sizes, count);
    for (uint32_t index = 0; index < UF_PLAN_TERM_COUNT; index++) {
        uint32_t term = term_at(index);
        uf_plan_formula formula;
        if (is_usable(term, is_work) && fit_line(terms, sizes, count, term, &formula)) {
            double error = error_of(&formula, terms, sizes, count);
            if (error < fitted->error * (1.0 - ERROR_SLACK) - ERROR_SLACK) {
                fitted->formula = formula;
                fitted->error = error;
            }
        }
    }
}

void uf__plan_fit_sizes(const uf_plan_terms *terms, const uint64_t *sizes, uint32_t count,
                        bool is_work, uf_plan_fitted *fitted)
{
    memset(fitted, 0, sizeof *fitted);
    fitted->is_exact = fit_single(terms, sizes, count, is_work, &fitted->formula) ||
                       fit_double(terms, sizes, count, is_work, &fitted->formula);
    if (!fitted->is_exact) {
        fit_loose(terms, sizes, count, is_work, fitted);
        for (uint32_t i = 0; i < count; i++) {
            uint64_t value = uf__plan_formula_value(&fitted->formula, &terms[i]);
            uint64_t off = value > sizes[i] ? value - sizes[i] : sizes[i] - value;
            fitted->error_bytes = off > fitted->error_bytes ? off : fitted->error_bytes;
        }
    }
}
