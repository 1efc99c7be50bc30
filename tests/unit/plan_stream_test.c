/* SPDX-License-Identifier: MIT
 *
 * Layouts of a small model against sums made by hand. */
#include "advise/plan_stream.h"

#include "plan_sample.h"
#include "suite.h"

static void build(uf_plan_model *model, uint32_t side, uint32_t batch, uint32_t options,
                  uf_plan_stream *stream)
{
    const uf_plan_job job = {.shape = {side, side, batch}, .options = options};
    uf_error error = {0};
    uf_status status = uf__plan_stream_build(model, &job, stream, &error);
    ck_assert_msg(status == UF_OK, "%s", error.text);
}

START_TEST(phases_peak_where_the_sums_say)
{
    uf_plan_model *model = plan_sample_open();
    uf_plan_stream stream;
    build(model, 64, 1, 0, &stream);
    ck_assert_uint_eq(stream.weights_bytes, 4096);
    ck_assert_uint_eq(stream.phases[0].peak_bytes, 4096);
    ck_assert_uint_eq(stream.phases[1].peak_bytes, 4096 + 2048);
    /* p0, 2 p0, and the workspace of 64 + 100 in 512 */
    ck_assert_uint_eq(stream.phases[2].peak_bytes, 6144 + 4096 + 8192 + 512);
    /* weights cast to 2 x 1024, text, step's p0, p0 of the decoder and its image of 3 p0 */
    ck_assert_uint_eq(stream.phases[3].peak_bytes, 3072 + 2048 + 2048 + 4096 + 4096 + 12288);
    ck_assert_uint_eq(stream.phases[3].weights_bytes, 3072 + 2048);
    ck_assert_uint_eq(stream.peak_phase, 3);
    ck_assert_uint_eq(stream.peak_bytes, stream.phases[3].peak_bytes);
    uf__plan_stream_fini(&stream);
    uf__plan_model_destroy(model);
}
END_TEST

START_TEST(offload_holds_one_module_at_a_time)
{
    uf_plan_model *model = plan_sample_open();
    uf_plan_stream stream;
    build(model, 64, 1, 1u << UF_PLAN_OFFLOAD, &stream);
    ck_assert_uint_eq(stream.weights_bytes, 4096);
    ck_assert_uint_eq(stream.most_weights_bytes, 3072);
    ck_assert_uint_eq(stream.phases[0].peak_bytes, 0);
    ck_assert_uint_eq(stream.phases[1].peak_bytes, 3072 + 2048);
    ck_assert_uint_eq(stream.phases[3].weights_bytes, 2048);
    ck_assert_uint_eq(stream.phases[3].peak_bytes, 2048 + 4096 + 2048 + 4096 + 12288);
    uf__plan_stream_fini(&stream);
    uf__plan_model_destroy(model);
}
END_TEST

START_TEST(slices_are_decoded_one_by_one_and_kept)
{
    uf_plan_model *model = plan_sample_open();
    uf_plan_stream stream;
    build(model, 64, 3, 1u << UF_PLAN_OFFLOAD | 1u << UF_PLAN_VAE_SLICING, &stream);
    ck_assert(stream.is_sliced);
    /* three images of 3 p0, and all of them once more in one piece */
    ck_assert_uint_eq(stream.phases[3].peak_bytes, 2048 + 3 * 4096 + 2048 + 3 * 12288 + 3 * 12288);
    uf__plan_stream_fini(&stream);
    uf__plan_model_destroy(model);
}
END_TEST

START_TEST(tiles_are_used_above_their_side_only)
{
    uf_plan_model *model = plan_sample_open();
    uf_plan_stream stream;
    build(model, 128, 1, 1u << UF_PLAN_VAE_TILING, &stream);
    ck_assert(!stream.is_tiled);
    uf__plan_stream_fini(&stream);
    build(model, 256, 1, 1u << UF_PLAN_VAE_TILING | 1u << UF_PLAN_OFFLOAD, &stream);
    ck_assert(stream.is_tiled);
    /* 3x3 tiles of 128, 128 and 64 a side: 320 x 320 pixels in all; three rows of 96, 96 and 64;
     * the image */
    ck_assert_uint_eq(stream.phases[3].peak_bytes,
                      2048 + 65536 + 2048 + 3 * 320 * 320 + 3 * 256 * 256 + 3 * 256 * 256);
    uf__plan_stream_fini(&stream);
    uf__plan_model_destroy(model);
}
END_TEST

START_TEST(the_replay_of_a_layout_has_its_live_peak_and_all_is_given_back)
{
    uf_plan_model *model = plan_sample_open();
    for (uint32_t options = 0; options < 1u << UF_PLAN_OPTION_COUNT; options++) {
        uf_plan_stream stream;
        uf_replay_result result;
        uf_error error = {0};
        build(model, 256, 2, options, &stream);
        ck_assert_int_eq(uf__plan_stream_replay(&stream, UF_POLICY_TORCH,
                                                "expandable_segments:True", 0, &result, &error),
                         UF_OK);
        ck_assert_uint_eq(result.peak_active_bytes, stream.peak_bytes);
        bool is_offloaded = (options >> UF_PLAN_OFFLOAD & 1) != 0;
        ck_assert_uint_eq(result.end_active_bytes, is_offloaded ? 0 : 4096);
        uf__plan_stream_fini(&stream);
    }
    uf__plan_model_destroy(model);
}
END_TEST

START_TEST(another_dtype_scales_and_casts_nothing)
{
    uf_plan_model *model = plan_sample_open();
    const uf_plan_job job = {.shape = {64, 64, 1}, .dtype = UF_PLAN_DTYPE_FP32};
    uf_plan_stream stream;
    uf_error error = {0};
    ck_assert_int_eq(uf__plan_stream_build(model, &job, &stream, &error), UF_OK);
    ck_assert(stream.is_scaled);
    ck_assert_uint_eq(stream.weights_bytes, 8192);
    ck_assert_uint_eq(stream.phases[3].weights_bytes, 8192);
    uf__plan_stream_fini(&stream);
    uf__plan_model_destroy(model);
}
END_TEST

START_TEST(what_no_recording_shows_is_refused)
{
    uf_plan_model *model = plan_sample_open();
    model->has_option[UF_PLAN_ATTENTION_SLICING] = true; /* but no block serves it */
    const uf_plan_job job = {.shape = {64, 64, 1}, .options = 1u << UF_PLAN_ATTENTION_SLICING};
    uf_plan_stream stream;
    uf_error error = {0};
    ck_assert_int_eq(uf__plan_stream_build(model, &job, &stream, &error), UF_ERROR_UNSUPPORTED);
    ck_assert(strstr(error.text, "step") != NULL);
    uf__plan_stream_fini(&stream);
    uf__plan_model_destroy(model);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {phases_peak_where_the_sums_say,
                            offload_holds_one_module_at_a_time,
                            slices_are_decoded_one_by_one_and_kept,
                            tiles_are_used_above_their_side_only,
                            the_replay_of_a_layout_has_its_live_peak_and_all_is_given_back,
                            another_dtype_scales_and_casts_nothing,
                            what_no_recording_shows_is_refused,
                            NULL};
    return suite_run("plan_stream", tests);
}
