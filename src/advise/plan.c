/* SPDX-License-Identifier: MIT
 *
 * Questions and answers of plan. Each set of options is laid out and replayed on its own; nothing
 * is interpolated between answers. */
#include "advise/plan.h"

#include <inttypes.h>
#include <string.h>

#include "alloc/conf.h"
#include "base/error.h"
#include "base/size.h"

/* Room beside 1 % for pages at the edges of blocks. */
#define UNFRAG_ROOM_BYTES (UINT64_C(64) << 20)

#define EXPANDABLE "expandable_segments:True"

static bool is_on(uint32_t options, uint32_t option)
{
    return (options >> option & 1) != 0;
}

uint32_t uf__plan_batch_limit(const uf_plan_model *model)
{
    uint32_t twice = 2 * model->recorded_max_batch;
    if (model->recorded_max_batch == 1) {
        return 1;
    }
    return twice > UF_PLAN_BATCH_MAX ? twice : UF_PLAN_BATCH_MAX;
}

static uint64_t pixels_of(const uf_plan_shape *shape)
{
    return (uint64_t)shape->width * shape->height;
}

static bool is_beyond(const uf_plan_model *model, const uf_plan_shape *shape)
{
    uint64_t pixels = pixels_of(shape);
    return pixels < model->recorded_min_pixels || pixels > model->recorded_max_pixels ||
           shape->batch > model->recorded_max_batch;
}

/* The nearest sizes on either side that are multiples. */
static uf_status refuse_multiple(const uf_plan_model *model, const uf_plan_shape *shape,
                                 uf_error *error)
{
    uint32_t n = model->multiple;
    uint32_t down_width = shape->width / n * n, down_height = shape->height / n * n;
    uint32_t up_width = (shape->width + n - 1) / n * n, up_height = (shape->height + n - 1) / n * n;
    return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                         "%" PRIu32 "x%" PRIu32 ": %s needs a width and height that are multiples "
                         "of %" PRIu32 ", such as %" PRIu32 "x%" PRIu32 " or %" PRIu32 "x%" PRIu32,
                         shape->width, shape->height, model->name, n, down_width, down_height,
                         up_width, up_height);
}

static uf_status check_size(const uf_plan_model *model, const uf_plan_shape *shape, uf_error *error)
{
    uint64_t pixels = pixels_of(shape);
    uint64_t least = model->recorded_min_pixels / 4, most = model->recorded_max_pixels * 2;
    uint32_t side_least = model->recorded_min_side / 2, side_most = model->recorded_max_side * 2;
    bool is_side_good = shape->width >= side_least && shape->height >= side_least &&
                        shape->width <= side_most && shape->height <= side_most;
    if (!is_side_good || pixels < least || pixels > most) {
        return uf__error_set(
            error, UF_ERROR_INVALID_ARGUMENT,
            "%" PRIu32 "x%" PRIu32 " is far outside what %s was recorded at: sides from %" PRIu32
            " to %" PRIu32 " are answered, and %.2f to %.2f megapixels (recorded: %.2f to %.2f)",
            shape->width, shape->height, model->name, side_least, side_most, (double)least / 1e6,
            (double)most / 1e6, (double)model->recorded_min_pixels / 1e6,
            (double)model->recorded_max_pixels / 1e6);
    }
    return UF_OK;
}

static uf_status check_options(const uf_plan_model *model, uint32_t options, uf_error *error)
{
    char names[160] = "";
    for (uint32_t i = 0; i < UF_PLAN_OPTION_COUNT; i++) {
        if (model->has_option[i]) {
            strcat(names, names[0] == '\0' ? "--" : ", --");
            strcat(names, uf__plan_option_name((uf_plan_option)i));
        }
    }
    for (uint32_t i = 0; i < UF_PLAN_OPTION_COUNT; i++) {
        if (is_on(options, i) && !model->has_option[i] && !model->is_inert[i]) {
            return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                                 "%s has no recording with --%s; recorded options: %s", model->name,
                                 uf__plan_option_name((uf_plan_option)i),
                                 names[0] == '\0' ? "none" : names);
        }
    }
    return UF_OK;
}

uf_status uf__plan_check(const uf_plan_model *model, const uf_plan_job *job, uf_error *error)
{
    const uf_plan_shape *shape = &job->shape;
    if (shape->width % model->multiple != 0 || shape->height % model->multiple != 0) {
        return refuse_multiple(model, shape, error);
    }
    uf_status status = check_size(model, shape, error);
    uint32_t limit = uf__plan_batch_limit(model);
    if (status == UF_OK && (shape->batch == 0 || shape->batch > limit)) {
        status =
            uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                          "a batch of %" PRIu32 " is far outside what %s was recorded at: 1 to "
                          "%" PRIu32 " are answered (recorded: 1 to %" PRIu32 ")",
                          shape->batch, model->name, limit, model->recorded_max_batch);
    }
    return status == UF_OK ? check_options(model, job->options, error) : status;
}

static double margin_of(const uf_plan_model *model, const uf_plan_shape *shape)
{
    return is_beyond(model, shape) ? UF_PLAN_MARGIN_BEYOND : UF_PLAN_MARGIN;
}

static uint64_t needed_bytes(const uf_plan_model *model, const uf_plan_question *question,
                             uint64_t reserved_bytes)
{
    double margin = margin_of(model, &question->job.shape);
    return reserved_bytes + (uint64_t)((double)reserved_bytes * margin) + question->allowance_bytes;
}

/* What is reserved at most. The unfrag policy takes what it may have before it moves memory, so it
 * is asked on a card that is little larger than the live peak; where that fails, on one that is
 * large enough. */
static uf_status find_reserved(const uf_plan_stream *stream, uf_policy policy, const char *conf,
                               uint64_t *reserved_bytes, uf_error *error)
{
    uint64_t tight_bytes = stream->peak_bytes + stream->peak_bytes / 100 + UNFRAG_ROOM_BYTES;
    uf_replay_result result;
    uf_status status = uf__plan_stream_replay(
        stream, policy, conf, policy == UF_POLICY_UNFRAG ? tight_bytes : 0, &result, error);
    if (status == UF_OK && policy == UF_POLICY_UNFRAG && result.has_oom) {
        status = uf__plan_stream_replay(stream, policy, conf, 0, &result, error);
    }
    if (status == UF_OK) {
        *reserved_bytes = result.peak_reserved_bytes;
    }
    return status;
}

static uf_status fill_figure(const uf_plan_model *model, const uf_plan_question *question,
                             const uf_plan_stream *stream, uf_plan_figure *figure, uf_error *error)
{
    uint64_t reserved_bytes;
    uf_status status =
        find_reserved(stream, question->policy, question->conf, &reserved_bytes, error);
    if (status == UF_OK) {
        *figure = (uf_plan_figure){.options = question->job.options,
                                   .peak_bytes = stream->peak_bytes,
                                   .reserved_bytes = reserved_bytes,
                                   .needed_bytes = needed_bytes(model, question, reserved_bytes)};
    }
    return status;
}

uf_status uf__plan_figure(const uf_plan_model *model, const uf_plan_question *question,
                          uf_plan_figure *figure, uf_error *error)
{
    uf_plan_stream stream;
    uf_status status = uf__plan_stream_build(model, &question->job, &stream, error);
    if (status == UF_OK) {
        status = fill_figure(model, question, &stream, figure, error);
    }
    uf__plan_stream_fini(&stream);
    return status;
}

static uf_status figure_with(const uf_plan_model *model, const uf_plan_question *question,
                             uint32_t options, uf_plan_figure *figure, uf_error *error)
{
    uf_plan_question other = *question;
    other.job.options = options;
    return uf__plan_figure(model, &other, figure, error);
}

/* Models from recordings may lack some combinations: these are passed over. */
static uf_status fill_sets(const uf_plan_model *model, const uf_plan_question *question,
                           uf_plan_answer *answer, uf_error *error)
{
    uint32_t set_count = UINT32_C(1) << UF_PLAN_OPTION_COUNT, asked = 0;
    for (uint32_t i = 0; i < UF_PLAN_OPTION_COUNT; i++) {
        asked |= model->has_option[i] ? question->job.options & (UINT32_C(1) << i) : 0;
    }
    for (uint32_t options = 0; options < set_count; options++) {
        bool is_there = true;
        for (uint32_t i = 0; i < UF_PLAN_OPTION_COUNT; i++) {
            is_there = is_there && (!is_on(options, i) || model->has_option[i]);
        }
        uf_plan_figure figure;
        uf_status status =
            is_there ? figure_with(model, question, options, &figure, error) : UF_ERROR_UNSUPPORTED;
        if (status == UF_ERROR_UNSUPPORTED) {
            continue;
        }
        if (status != UF_OK) {
            return status;
        }
        uint32_t flipped = options ^ asked;
        if (flipped != 0 && (flipped & (flipped - 1)) == 0) {
            answer->effects[__builtin_ctz(flipped)].is_there = true;
            answer->effects[__builtin_ctz(flipped)].other = figure;
        }
        if (!answer->has_leanest || figure.needed_bytes < answer->leanest.needed_bytes) {
            answer->has_leanest = true;
            answer->leanest = figure;
        }
        if (!answer->has_cheapest && question->card_bytes != 0 &&
            figure.needed_bytes <= question->card_bytes) {
            answer->has_cheapest = true;
            answer->cheapest = figure;
        }
    }
    return UF_OK;
}

static uint64_t smallest_card(uint64_t bytes)
{
    static const uint64_t sizes_gib[] = {4, 6, 8, 10, 11, 12, 16, 20, 24, 32, 40, 48, 80, 96, 141};
    for (size_t i = 0; i < sizeof sizes_gib / sizeof sizes_gib[0]; i++) {
        if (sizes_gib[i] * UF_GIB >= bytes) {
            return sizes_gib[i] * UF_GIB;
        }
    }
    return 0;
}

static uf_status fill_answer(const uf_plan_model *model, const uf_plan_question *question,
                             const uf_plan_stream *stream, uf_plan_answer *answer, uf_error *error)
{
    memcpy(answer->phases, stream->phases, sizeof answer->phases);
    answer->peak_phase = stream->peak_phase;
    answer->weights_bytes = stream->weights_bytes;
    answer->most_weights_bytes = stream->most_weights_bytes;
    answer->is_over = stream->is_over;
    answer->is_beyond = is_beyond(model, &question->job.shape);
    answer->margin = margin_of(model, &question->job.shape);
    answer->is_dtype_scaled = stream->is_scaled;
    uf_status status = fill_figure(model, question, stream, &answer->asked, error);
    if (status == UF_OK) {
        status = find_reserved(stream, UF_POLICY_TORCH, "", &answer->default_reserved_bytes, error);
    }
    if (status == UF_OK) {
        status = find_reserved(stream, UF_POLICY_TORCH, EXPANDABLE,
                               &answer->expandable_reserved_bytes, error);
    }
    if (status == UF_OK) {
        status =
            find_reserved(stream, UF_POLICY_UNFRAG, NULL, &answer->unfrag_reserved_bytes, error);
        answer->has_unfrag = status == UF_OK;
    }
    if (status == UF_OK) {
        answer->fits = answer->asked.needed_bytes <= question->card_bytes;
        answer->margin_bytes = (int64_t)question->card_bytes - (int64_t)answer->asked.needed_bytes;
        answer->smallest_card_bytes = smallest_card(answer->asked.needed_bytes);
        status = fill_sets(model, question, answer, error);
    }
    return status;
}

uf_status uf__plan(const uf_plan_model *model, const uf_plan_question *question,
                   uf_plan_answer *answer, uf_error *error)
{
    uf_status status = uf__plan_check(model, &question->job, error);
    if (status != UF_OK) {
        return status;
    }
    uf_plan_answer filled = {0};
    for (uint32_t i = 0; i < UF_PLAN_OPTION_COUNT; i++) {
        filled.effects[i].is_asked = is_on(question->job.options, i);
    }
    uf_plan_stream stream;
    status = uf__plan_stream_build(model, &question->job, &stream, error);
    if (status == UF_OK) {
        status = fill_answer(model, question, &stream, &filled, error);
    }
    uf__plan_stream_fini(&stream);
    if (status == UF_OK) {
        *answer = filled;
    } else if (status == UF_ERROR_UNSUPPORTED && error != NULL) {
        error->status = UF_ERROR_INVALID_ARGUMENT; /* the question's fault, not the machine's */
        status = UF_ERROR_INVALID_ARGUMENT;
    }
    return status;
}

uf_status uf__plan_largest_batch(const uf_plan_model *model, const uf_plan_question *question,
                                 uint32_t *batch, uf_error *error)
{
    /* From above: reserved memory need not grow with the batch. */
    uf_plan_question tried = *question;
    *batch = 0;
    for (uint32_t n = uf__plan_batch_limit(model); n > 0 && *batch == 0; n--) {
        uf_plan_stream stream;
        uf_plan_figure figure = {.needed_bytes = UINT64_MAX};
        tried.job.shape.batch = n;
        uf_status status = uf__plan_stream_build(model, &tried.job, &stream, error);
        if (status == UF_OK &&
            stream.peak_bytes + question->allowance_bytes <= question->card_bytes) {
            status = fill_figure(model, &tried, &stream, &figure, error);
        }
        uf__plan_stream_fini(&stream);
        if (status != UF_OK) {
            return status;
        }
        *batch = figure.needed_bytes <= question->card_bytes ? n : 0;
    }
    return UF_OK;
}

uint32_t uf__plan_usual_sizes(const uf_plan_model *model, uf_plan_shape sizes[UF_PLAN_SIZES_MAX])
{
    static const uint32_t sides[][2] = {{512, 512},   {768, 768},   {1280, 720},  {832, 1216},
                                        {1024, 1024}, {1536, 1024}, {2048, 1024}, {1536, 1536},
                                        {1920, 1088}, {2048, 2048}};
    uint32_t count = 0;
    for (size_t i = 0; i < sizeof sides / sizeof sides[0]; i++) {
        uf_plan_job job = {.shape = {sides[i][0], sides[i][1], 1}};
        uf_error ignored;
        if (uf__plan_check(model, &job, &ignored) == UF_OK) {
            sizes[count++] = job.shape;
        }
    }
    return count;
}
