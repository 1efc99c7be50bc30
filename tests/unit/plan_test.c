/* SPDX-License-Identifier: MIT
 *
 * Questions and answers: on a small model, and on the bundled ones. */
#include "advise/plan.h"

#include <stdio.h>

#include "plan_sample.h"
#include "suite.h"

static const uint64_t GIB = UINT64_C(1) << 30;

static uf_plan_model *open_bundled(const char *name)
{
    char path[512];
    uf_plan_model *model = NULL;
    uf_error error = {0};
    snprintf(path, sizeof path, "%s/models/%s.model.xz", PROJECT_DATA_DIR, name);
    ck_assert_int_eq(uf__plan_model_read(path, &model, &error), UF_OK);
    return model;
}

static void ask(const uf_plan_model *model, const uf_plan_question *question,
                uf_plan_answer *answer)
{
    uf_error error = {0};
    uf_status status = uf__plan(model, question, answer, &error);
    ck_assert_msg(status == UF_OK, "%s", error.text);
}

START_TEST(what_is_not_allowed_is_refused_with_what_is)
{
    static const struct {
        uf_plan_shape shape;
        uint32_t options;
        const char *told;
    } cases[] = {{{100, 64, 1}, 0, "multiples of 8, such as 96x64 or 104x64"},
                 {{1024, 1024, 1}, 0, "far outside"},
                 {{24, 64, 1}, 0, "sides from 32 to 512"},
                 {{64, 64, 9}, 0, "1 to 8 are answered (recorded: 1 to 4)"},
                 {{64, 64, 0}, 0, "a batch of 0"}};
    uf_plan_model *model = plan_sample_open();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const uf_plan_job job = {.shape = cases[i].shape, .options = cases[i].options};
        uf_error error = {0};
        ck_assert_int_eq(uf__plan_check(model, &job, &error), UF_ERROR_INVALID_ARGUMENT);
        ck_assert_msg(strstr(error.text, cases[i].told) != NULL, "%s", error.text);
    }
    const uf_plan_job inert = {.shape = {64, 64, 1}, .options = 1u << UF_PLAN_ATTENTION_SLICING};
    uf_error error = {0};
    ck_assert_int_eq(uf__plan_check(model, &inert, &error), UF_OK);
    model->is_inert[UF_PLAN_ATTENTION_SLICING] = false;
    ck_assert_int_eq(uf__plan_check(model, &inert, &error), UF_ERROR_INVALID_ARGUMENT);
    ck_assert(strstr(error.text, "--vae-slicing, --vae-tiling, --offload") != NULL);
    uf__plan_model_destroy(model);
}
END_TEST

START_TEST(a_card_fits_from_exactly_what_is_needed)
{
    uf_plan_model *model = plan_sample_open();
    uf_plan_question question = {.job = {.shape = {64, 64, 1}}, .allowance_bytes = 1000};
    uf_plan_answer answer;
    ask(model, &question, &answer);
    /* one segment of 2 MiB for small requests; 1 % of it is the margin */
    ck_assert_uint_eq(answer.asked.reserved_bytes, 2 << 20);
    ck_assert_uint_eq(answer.asked.needed_bytes, (2 << 20) + 20971 + 1000);
    question.card_bytes = answer.asked.needed_bytes;
    ask(model, &question, &answer);
    ck_assert(answer.fits);
    ck_assert_int_eq(answer.margin_bytes, 0);
    ck_assert(answer.has_cheapest);
    ck_assert_uint_eq(answer.cheapest.options, 0);
    question.card_bytes--;
    ask(model, &question, &answer);
    ck_assert(!answer.fits);
    ck_assert_int_eq(answer.margin_bytes, -1);
    uf__plan_model_destroy(model);
}
END_TEST

START_TEST(attention_slicing_does_not_lower_sdxl_s_peak_and_offload_does)
{
    uf_plan_model *model = open_bundled("sdxl");
    const uf_plan_question question = {.job = {.shape = {1024, 1024, 1}},
                                       .card_bytes = 12 * GIB,
                                       .allowance_bytes = UF_PLAN_ALLOWANCE_BYTES};
    uf_plan_answer answer;
    ask(model, &question, &answer);
    ck_assert_str_eq(model->phase_names[answer.peak_phase], "decode");
    ck_assert_uint_eq(answer.asked.peak_bytes, UINT64_C(12260145664)); /* as measured */
    const uf_plan_effect *attention = &answer.effects[UF_PLAN_ATTENTION_SLICING];
    ck_assert(attention->is_there);
    ck_assert_uint_eq(attention->other.peak_bytes, answer.asked.peak_bytes);
    ck_assert_uint_lt(answer.effects[UF_PLAN_OFFLOAD].other.peak_bytes,
                      answer.asked.peak_bytes / 2);
    ck_assert(!answer.fits);
    ck_assert(answer.has_cheapest);
    ck_assert_uint_eq(answer.cheapest.options, 1u << UF_PLAN_OFFLOAD);
    ck_assert(answer.has_unfrag);
    ck_assert_uint_ge(answer.unfrag_reserved_bytes, answer.asked.peak_bytes);
    ck_assert_uint_lt(answer.unfrag_reserved_bytes, answer.expandable_reserved_bytes);
    uf__plan_model_destroy(model);
}
END_TEST

static uint64_t peak_of(const uf_plan_model *model, uint32_t width, uint32_t height, uint32_t batch,
                        uint32_t options)
{
    const uf_plan_question question = {
        .job = {.shape = {width, height, batch}, .options = options}};
    uf_plan_figure figure;
    uf_error error = {0};
    ck_assert_int_eq(uf__plan_figure(model, &question, &figure, &error), UF_OK);
    return figure.peak_bytes;
}

static void check_batches(const uf_plan_model *model, uint32_t options)
{
    uint64_t last_bytes = 0;
    for (uint32_t batch = 1; batch <= 8; batch++) {
        uint64_t high_bytes = peak_of(model, 832, 1216, batch, options);
        double ratio = (double)peak_of(model, 1216, 832, batch, options) / (double)high_bytes;
        ck_assert_uint_ge(high_bytes, last_bytes);
        ck_assert_double_gt(ratio, 0.97); /* tiles differ by way */
        ck_assert_double_lt(ratio, 1.03);
        last_bytes = high_bytes;
    }
}

START_TEST(turning_an_image_does_not_change_its_peak_and_more_images_never_lower_it)
{
    static const char *const names[] = {"sdxl", "z-image-turbo"};
    for (size_t i = 0; i < 2; i++) {
        uf_plan_model *model = open_bundled(names[i]);
        for (uint32_t options = 0; options < 1u << UF_PLAN_OPTION_COUNT; options++) {
            check_batches(model, options);
        }
        uf__plan_model_destroy(model);
    }
}
END_TEST

START_TEST(the_largest_batch_fits_and_the_next_does_not)
{
    uf_plan_model *model = open_bundled("sdxl");
    uf_plan_question question = {.job = {.shape = {768, 768, 1}},
                                 .conf = "expandable_segments:True",
                                 .card_bytes = 16 * GIB,
                                 .allowance_bytes = UF_PLAN_ALLOWANCE_BYTES};
    uint32_t batch = 0;
    uf_plan_figure figure;
    uf_error error = {0};
    ck_assert_int_eq(uf__plan_largest_batch(model, &question, &batch, &error), UF_OK);
    ck_assert_uint_eq(batch, 2);
    question.job.shape.batch = batch;
    ck_assert_int_eq(uf__plan_figure(model, &question, &figure, &error), UF_OK);
    ck_assert_uint_le(figure.needed_bytes, question.card_bytes);
    question.job.shape.batch = batch + 1;
    ck_assert_int_eq(uf__plan_figure(model, &question, &figure, &error), UF_OK);
    ck_assert_uint_gt(figure.needed_bytes, question.card_bytes);
    uf_plan_shape sizes[UF_PLAN_SIZES_MAX];
    ck_assert_uint_eq(uf__plan_usual_sizes(model, sizes), 10);
    uf__plan_model_destroy(model);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        what_is_not_allowed_is_refused_with_what_is,
        a_card_fits_from_exactly_what_is_needed,
        attention_slicing_does_not_lower_sdxl_s_peak_and_offload_does,
        turning_an_image_does_not_change_its_peak_and_more_images_never_lower_it,
        the_largest_batch_fits_and_the_next_does_not,
        NULL};
    return suite_run("plan", tests);
}
