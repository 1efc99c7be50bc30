/* SPDX-License-Identifier: MIT
 *
 * Models fitted from made-up recordings answer for sizes that were not recorded. */
#include "advise/plan_fit.h"

#include <stdlib.h>
#include <string.h>

#include "advise/plan_stream.h"
#include "replay/program.h"
#include "suite.h"

/* A program of known formulas: weights, a kept tensor, a step with a workspace. */
typedef struct made {
    uint32_t ops[32];
    uint64_t bytes[16];
    uf_program program;
} made;

static uint32_t ask(made *of, uint64_t bytes)
{
    of->bytes[of->program.alloc_count] = bytes;
    of->ops[of->program.event_count++] = uf__op(UF_OP_ALLOC, of->program.alloc_count);
    return of->program.alloc_count++;
}

static void give(made *of, uint32_t id)
{
    of->ops[of->program.event_count++] = uf__op(UF_OP_FREE, id);
}

static void make(made *of, const uf_plan_shape *shape, bool has_extra)
{
    memset(of, 0, sizeof *of);
    of->program.ops = of->ops;
    of->program.alloc_bytes = of->bytes;
    uint64_t pixels = (uint64_t)shape->width * shape->height;
    (void)ask(of, 1 << 20);
    uint32_t latents = ask(of, pixels / 64 * 8 * shape->batch);
    uint32_t scratch = ask(of, pixels * 6 * shape->batch);
    give(of, ask(of, pixels * 4 * shape->batch + 147)); /* a workspace */
    if (has_extra) {
        uint32_t more = ask(of, 512);
        uint32_t last = ask(of, 512);
        give(of, more);
        give(of, last);
    }
    give(of, scratch);
    give(of, latents);
    of->ops[of->program.event_count++] = uf__op(UF_OP_EMPTY, 0);
    give(of, ask(of, 100));
}

static uf_status fit(made *made_ones, const uf_plan_shape *shapes, uint32_t count,
                     uf_plan_model **model, uf_plan_fit_report *report, uf_error *error)
{
    uf_plan_sample samples[8];
    char *text = NULL;
    size_t length = 0;
    for (uint32_t i = 0; i < count; i++) {
        samples[i] = (uf_plan_sample){.program = &made_ones[i].program,
                                      .name = i == 0 ? "first" : "other",
                                      .shape = shapes[i]};
    }
    uf_status status = uf__plan_fit(samples, count, "made", 8, &text, &length, report, error);
    if (status == UF_OK) {
        status = uf__plan_model_parse(text, length, model, error);
    }
    free(text);
    return status;
}

START_TEST(an_unseen_size_and_batch_get_the_made_program_s_peak)
{
    const uf_plan_shape shapes[] = {{512, 512, 1}, {1024, 1024, 1}, {768, 512, 2}, {512, 512, 4}};
    made ones[4];
    uf_plan_model *model = NULL;
    uf_plan_fit_report report;
    uf_error error = {0};
    for (int i = 0; i < 4; i++) {
        make(&ones[i], &shapes[i], false);
    }
    uf_status status = fit(ones, shapes, 4, &model, &report, &error);
    ck_assert_msg(status == UF_OK, "%s", error.text);
    ck_assert_uint_eq(report.family_count, 1);
    ck_assert_uint_eq(report.loose_count, 0);
    ck_assert_uint_eq(model->recorded_max_batch, 4);
    const uf_plan_job job = {.shape = {768, 768, 3}};
    uf_plan_stream stream;
    ck_assert_int_eq(uf__plan_stream_build(model, &job, &stream, &error), UF_OK);
    const uint64_t pixels = 768 * 768;
    ck_assert_uint_eq(stream.peak_bytes,
                      (1 << 20) + pixels / 64 * 8 * 3 + pixels * 6 * 3 + pixels * 4 * 3 + 512);
    uf__plan_stream_fini(&stream);
    uf__plan_model_destroy(model);
}
END_TEST

START_TEST(recordings_that_are_described_alike_must_request_alike)
{
    const uf_plan_shape shapes[] = {{512, 512, 1}, {1024, 1024, 1}};
    made ones[2];
    uf_plan_model *model = NULL;
    uf_plan_fit_report report;
    uf_error error = {0};
    make(&ones[0], &shapes[0], false);
    make(&ones[1], &shapes[1], true);
    ck_assert_int_eq(fit(ones, shapes, 2, &model, &report, &error), UF_ERROR_BAD_INPUT);
    ck_assert(strstr(error.text, "first and other") != NULL);
    ck_assert(strstr(error.text, "number 3 on") != NULL);
}
END_TEST

START_TEST(one_size_or_one_batch_above_1_tells_too_little)
{
    const uf_plan_shape same[] = {{512, 512, 1}, {512, 512, 1}};
    const uf_plan_shape batch[] = {{512, 512, 1}, {768, 768, 2}};
    made ones[2];
    uf_plan_model *model = NULL;
    uf_plan_fit_report report;
    uf_error error = {0};
    make(&ones[0], &same[0], false);
    make(&ones[1], &same[1], false);
    ck_assert_int_eq(fit(ones, same, 2, &model, &report, &error), UF_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(fit(ones, same, 1, &model, &report, &error), UF_ERROR_INVALID_ARGUMENT);
    make(&ones[1], &batch[1], false);
    ck_assert_int_eq(fit(ones, batch, 2, &model, &report, &error), UF_ERROR_INVALID_ARGUMENT);
    ck_assert(strstr(error.text, "batch of 2") != NULL);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {an_unseen_size_and_batch_get_the_made_program_s_peak,
                            recordings_that_are_described_alike_must_request_alike,
                            one_size_or_one_batch_above_1_tells_too_little, NULL};
    return suite_run("plan_fit", tests);
}
