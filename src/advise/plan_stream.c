/* SPDX-License-Identifier: MIT
 *
 * Lays out jobs.
 *
 *   load    text       step 1   step 2   decode
 *   ------- ---------- -------- -------- -----------------------------
 *   modules block text block denoise     before_decode, body, after_decode
 *                                        (body: once per slice and tile) */
#include "advise/plan_stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "replay/program.h"

#define LIVE_GRANULE 512
#define EVENTS_MAX (UINT64_C(1) << 27)
#define DECODER_BLOCK "body"
enum { TILES_MAX = 64, IMAGE_CHANNELS = 3 };

/* Requests of a module or block that are live. */
typedef struct id_list {
    uint32_t *ids;
    uint32_t count;
} id_list;

typedef struct layout {
    const uf_plan_model *model;
    const uf_plan_job *job;
    uf_plan_stream *stream;
    uint32_t options; /* those that the model has */
    id_list modules[UF_PLAN_MODULES_MAX];
    id_list exports[UF_PLAN_STEPS_MAX]; /* by block name: of its last run */
    uint8_t *is_live;
    uint64_t live_capacity;
    uint64_t live_bytes, weights_bytes;
    uint32_t phase;
    double block_scale, weights_scale;
    double decoder_scale;
    bool is_cast; /* the VAE is cast on the way */
    uf_error *error;
} layout;

static uf_status no_memory(const layout *lay)
{
    return uf__error_set(lay->error, UF_ERROR_HOST_MEMORY, "no host memory for the plan");
}

static uf_status contradiction(const layout *lay, const char *name)
{
    return uf__error_set(lay->error, UF_ERROR_BAD_INPUT,
                         "the model file contradicts itself: block %s takes what no block left",
                         name);
}

static bool grow(void **array, uint64_t count, uint64_t *capacity, size_t item_bytes)
{
    if (count < *capacity) {
        return true;
    }
    uint64_t wanted = *capacity == 0 ? 1 << 15 : *capacity * 2;
    void *grown = realloc(*array, wanted * item_bytes);
    if (grown == NULL) {
        return false;
    }
    *array = grown;
    *capacity = wanted;
    return true;
}

static bool add_op(layout *lay, uf_op_kind kind, uint32_t id)
{
    uf_plan_stream *stream = lay->stream;
    if (stream->event_count >= EVENTS_MAX || !grow((void **)&stream->ops, stream->event_count,
                                                   &stream->event_capacity, sizeof *stream->ops)) {
        return false;
    }
    stream->ops[stream->event_count++] = uf__op(kind, id);
    stream->phases[lay->phase].event_count++;
    return true;
}

static uint64_t rounded(uint64_t bytes)
{
    return uf__round_up_power2(bytes, LIVE_GRANULE);
}

static bool request(layout *lay, uint64_t bytes, uint32_t *id)
{
    uf_plan_stream *stream = lay->stream;
    if (!grow((void **)&stream->alloc_bytes, stream->alloc_count, &stream->alloc_capacity,
              sizeof *stream->alloc_bytes) ||
        !grow((void **)&lay->is_live, stream->alloc_count, &lay->live_capacity,
              sizeof *lay->is_live)) {
        return false;
    }
    *id = stream->alloc_count++;
    stream->alloc_bytes[*id] = bytes;
    lay->is_live[*id] = 1;
    lay->live_bytes += rounded(bytes);
    uf_plan_phase *phase = &stream->phases[lay->phase];
    if (lay->live_bytes > phase->peak_bytes) {
        phase->peak_bytes = lay->live_bytes;
        phase->weights_bytes = lay->weights_bytes;
    }
    return add_op(lay, UF_OP_ALLOC, *id);
}

/* Giving back twice is a contradiction in the model file: false. */
static bool give_back(layout *lay, uint32_t id)
{
    if (id >= lay->stream->alloc_count || !lay->is_live[id]) {
        return false;
    }
    lay->is_live[id] = 0;
    lay->live_bytes -= rounded(lay->stream->alloc_bytes[id]);
    return add_op(lay, UF_OP_FREE, id);
}

static uint64_t times(uint64_t bytes, double factor)
{
    return factor == 1.0 ? bytes : (uint64_t)((double)bytes * factor + 0.5);
}

/* Weights are counted before their request is: the phase's peak then shows them. */
static bool weight_request(layout *lay, uint64_t bytes, uint32_t *id)
{
    lay->weights_bytes += rounded(bytes);
    if (lay->weights_bytes > lay->stream->most_weights_bytes) {
        lay->stream->most_weights_bytes = lay->weights_bytes;
    }
    return request(lay, bytes, id);
}

static bool weight_give_back(layout *lay, uint32_t id)
{
    uint64_t bytes = id < lay->stream->alloc_count ? lay->stream->alloc_bytes[id] : 0;
    lay->weights_bytes -= rounded(bytes);
    return give_back(lay, id);
}

/* A module that is loaded wide is loaded plain where nothing is cast. */
static uint32_t module_to_load(const layout *lay, uint32_t module)
{
    const uf_plan_model *model = lay->model;
    if (model->modules[module].is_resident || lay->is_cast) {
        return module;
    }
    for (uint32_t i = 0; i < model->module_count; i++) {
        size_t length = strlen(model->modules[i].name);
        if (model->modules[i].is_resident &&
            strncmp(model->modules[i].name, model->modules[module].name, length) == 0 &&
            model->modules[module].name[length] == '_') {
            return i;
        }
    }
    return module;
}

static uf_status module_in(layout *lay, uint32_t wanted)
{
    uint32_t index = module_to_load(lay, wanted);
    const uf_plan_module *module = &lay->model->modules[index];
    id_list *live = &lay->modules[index];
    if (live->count != 0) {
        return contradiction(lay, module->name);
    }
    if (live->ids == NULL) {
        live->ids = calloc(module->size_count + 1u, sizeof *live->ids);
        if (live->ids == NULL) {
            return no_memory(lay);
        }
    }
    for (uint32_t i = 0; i < module->size_count; i++) {
        if (!weight_request(lay, times(module->sizes[i], lay->weights_scale), &live->ids[i])) {
            return no_memory(lay);
        }
    }
    live->count = module->size_count;
    return UF_OK;
}

/* A pipeline that moves a module off the card empties the cache then. */
static uf_status module_out(layout *lay, uint32_t wanted)
{
    id_list *live = &lay->modules[module_to_load(lay, wanted)];
    for (uint32_t i = 0; i < live->count; i++) {
        if (!weight_give_back(lay, live->ids[i])) {
            return no_memory(lay);
        }
    }
    live->count = 0;
    return add_op(lay, UF_OP_EMPTY, 0) ? UF_OK : no_memory(lay);
}

/* Tensor by tensor: the new one is requested before the old one goes. */
static uf_status module_cast(layout *lay, uint32_t from, uint32_t to)
{
    if (!lay->is_cast) {
        return UF_OK;
    }
    const uf_plan_module *module = &lay->model->modules[to];
    id_list *old = &lay->modules[from], *new = &lay->modules[to];
    if (new->ids == NULL) {
        new->ids = calloc(module->size_count + 1u, sizeof *new->ids);
    }
    if (new->ids == NULL) {
        return no_memory(lay);
    }
    if (new->count != 0 || old->count != module->size_count) {
        return contradiction(lay, module->name);
    }
    for (uint32_t i = 0; i < module->size_count; i++) {
        if (!weight_request(lay, times(module->sizes[i], lay->weights_scale), &new->ids[i]) ||
            !weight_give_back(lay, old->ids[i])) {
            return no_memory(lay);
        }
    }
    new->count = module->size_count;
    old->count = 0;
    return UF_OK;
}

/* One run of a block. */
typedef struct block_run {
    const uf_plan_block *block;
    const char *name;
    uf_plan_terms terms;
    double scale;
    uint32_t *ids;
    uint32_t id_count;
} block_run;

static bool is_due(const layout *lay, const block_run *run, const uf_plan_token *token)
{
    switch ((uf_plan_when)token->when) {
    case UF_PLAN_IF_DIVIDES:
        return run->terms.values[token->term] % token->divisor == 0;
    case UF_PLAN_IF_NOT:
        return run->terms.values[token->term] % token->divisor != 0;
    case UF_PLAN_IF_OVER:
        return run->terms.is_over;
    case UF_PLAN_IF_NOT_OVER:
        return !run->terms.is_over;
    case UF_PLAN_IF_RESIDENT:
        return (lay->options >> UF_PLAN_OFFLOAD & 1) == 0;
    default:
        return true;
    }
}

static uf_status run_sized(layout *lay, block_run *run, const uf_plan_token *token)
{
    uint64_t bytes =
        times(uf__plan_formula_value(&lay->model->formulas[token->first], &run->terms), run->scale);
    uint32_t id;
    if (!request(lay, bytes, &id)) {
        return no_memory(lay);
    }
    if (token->kind == UF_PLAN_WORK) {
        return give_back(lay, id) ? UF_OK : no_memory(lay);
    }
    run->ids[run->id_count++] = id;
    return UF_OK;
}

static uf_status run_take(layout *lay, const block_run *run, const uf_plan_token *token)
{
    const id_list *exports = &lay->exports[token->first];
    if (token->second >= exports->count || !give_back(lay, exports->ids[token->second])) {
        return contradiction(lay, run->name);
    }
    return UF_OK;
}

static uf_status run_token(layout *lay, block_run *run, const uf_plan_token *token)
{
    bool is_offloaded = (lay->options >> UF_PLAN_OFFLOAD & 1) != 0;
    if (token->when != UF_PLAN_ALWAYS && !is_due(lay, run, token)) {
        return UF_OK;
    }
    switch ((uf_plan_token_kind)token->kind) {
    case UF_PLAN_ALLOC:
    case UF_PLAN_WORK:
        return run_sized(lay, run, token);
    case UF_PLAN_GIVE:
        return give_back(lay, run->ids[token->first]) ? UF_OK : no_memory(lay);
    case UF_PLAN_TAKE:
        return run_take(lay, run, token);
    case UF_PLAN_IN:
        return is_offloaded ? module_in(lay, token->first) : UF_OK;
    case UF_PLAN_OUT:
        return is_offloaded ? module_out(lay, token->first) : UF_OK;
    case UF_PLAN_EMPTY:
        return add_op(lay, UF_OP_EMPTY, 0) ? UF_OK : no_memory(lay);
    default:
        return module_cast(lay, token->first, token->second);
    }
}

static uint64_t variant_of(const layout *lay, const uf_plan_shape *shape, bool is_padding_told)
{
    const uf_plan_model *model = lay->model;
    uf_plan_terms terms;
    uf__plan_terms_set(&terms, shape);
    uint64_t variant = 0;
    for (uint32_t i = 0; i < model->choice_count; i++) {
        bool is_set;
        switch ((uf_plan_choice)model->choices[i]) {
        case UF_PLAN_CHOICE_BATCH:
            is_set = shape->batch > 1;
            break;
        case UF_PLAN_CHOICE_PADDED: /* r4 is p4 where it is a multiple of 32 */
            is_set = is_padding_told && terms.values[2 * 7] != terms.values[2 * 5];
            break;
        default:
            is_set = (lay->options >> model->choice_options[i] & 1) != 0;
        }
        variant |= is_set ? UINT64_C(1) << i : 0;
    }
    return variant;
}

/* Models that pad nothing have no blocks of their own for sizes that would be padded. */
static const uf_plan_block *find_block(const layout *lay, uint32_t name, const uf_plan_shape *shape)
{
    const uf_plan_block *block =
        uf__plan_model_block(lay->model, name, variant_of(lay, shape, true));
    return block != NULL ? block
                         : uf__plan_model_block(lay->model, name, variant_of(lay, shape, false));
}

static uf_status run_block(layout *lay, uint32_t name, const uf_plan_shape *shape, double scale)
{
    block_run run = {.block = find_block(lay, name, shape),
                     .name = lay->model->block_names[name],
                     .scale = scale};
    if (run.block == NULL) {
        return uf__error_set(lay->error, UF_ERROR_UNSUPPORTED,
                             "%s: no recording shows block '%s' with these options and %s",
                             lay->model->name, run.name,
                             shape->batch > 1 ? "more than one image" : "one image");
    }
    uf__plan_terms_set(&run.terms, shape);
    lay->stream->is_over = lay->stream->is_over || run.terms.is_over;
    run.ids = calloc(run.block->alloc_count + 1u, sizeof *run.ids);
    id_list left = {.ids = calloc(run.block->export_count + 1u, sizeof *left.ids),
                    .count = run.block->export_count};
    uf_status status = run.ids == NULL || left.ids == NULL ? no_memory(lay) : UF_OK;
    for (uint32_t i = 0; i < run.block->token_count && status == UF_OK; i++) {
        status = run_token(lay, &run, &run.block->tokens[i]);
    }
    for (uint32_t i = 0; i < left.count && status == UF_OK; i++) {
        left.ids[i] = run.ids[run.block->exports[i]];
    }
    free(run.ids);
    free(lay->exports[name].ids);
    lay->exports[name] = left;
    return status;
}

/* The last export of the decoder's block is the image. */
static uf_status run_tile(layout *lay, uint32_t name, const uf_plan_shape *shape, uint32_t *image)
{
    uf_status status = run_block(lay, name, shape, lay->decoder_scale);
    const id_list *left = &lay->exports[name];
    if (status == UF_OK && left->count == 0) {
        return contradiction(lay, DECODER_BLOCK);
    }
    if (status == UF_OK) {
        *image = left->ids[left->count - 1];
    }
    return status;
}

static uint64_t image_bytes(const layout *lay, uint64_t width, uint64_t height, uint64_t batch)
{
    return times(IMAGE_CHANNELS * width * height * batch * lay->model->decoder_element_bytes,
                 lay->decoder_scale);
}

/* Neighbours are blended line by line: three lines at a time. */
static bool blend(layout *lay, const uf_plan_shape *tile)
{
    uint64_t bytes = image_bytes(lay, tile->width, 1, tile->batch);
    uint32_t lines[3];
    for (int i = 0; i < 3; i++) {
        if (!request(lay, bytes, &lines[i])) {
            return false;
        }
    }
    return give_back(lay, lines[0]) && give_back(lay, lines[1]) && give_back(lay, lines[2]);
}

typedef struct tiling {
    uint32_t columns, rows;
    uint32_t tiles[TILES_MAX * TILES_MAX];
    uint32_t row_images[TILES_MAX];
} tiling;

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uf_plan_shape tile_shape(const layout *lay, const uf_plan_shape *shape, uint32_t column,
                                uint32_t row)
{
    const uf_plan_model *model = lay->model;
    return (uf_plan_shape){
        .width = least(model->tile_side, shape->width - column * model->tile_step),
        .height = least(model->tile_side, shape->height - row * model->tile_step),
        .batch = shape->batch};
}

/* Tiles overlap by a quarter. All are decoded, then blended and put together row by row. */
static uf_status assemble(layout *lay, const uf_plan_shape *shape, tiling *tiles, uint32_t *image)
{
    bool is_good = true;
    for (uint32_t row = 0; row < tiles->rows && is_good; row++) {
        uf_plan_shape tile = tile_shape(lay, shape, 0, row);
        is_good = blend(lay, &tile) &&
                  request(lay,
                          image_bytes(lay, shape->width, least(tile.height, lay->model->tile_step),
                                      shape->batch),
                          &tiles->row_images[row]);
    }
    is_good =
        is_good && request(lay, image_bytes(lay, shape->width, shape->height, shape->batch), image);
    for (uint32_t row = 0; row < tiles->rows && is_good; row++) {
        is_good = give_back(lay, tiles->row_images[row]);
    }
    for (uint32_t i = 0; i < tiles->columns * tiles->rows && is_good; i++) {
        is_good = give_back(lay, tiles->tiles[i]);
    }
    return is_good ? UF_OK : no_memory(lay);
}

static uf_status run_tiled(layout *lay, uint32_t name, const uf_plan_shape *shape, uint32_t *image)
{
    const uf_plan_model *model = lay->model;
    tiling *tiles = calloc(1, sizeof *tiles);
    if (tiles == NULL) {
        return no_memory(lay);
    }
    tiles->columns = (shape->width + model->tile_step - 1) / model->tile_step;
    tiles->rows = (shape->height + model->tile_step - 1) / model->tile_step;
    uf_status status = UF_OK;
    if (tiles->columns > TILES_MAX || tiles->rows > TILES_MAX) {
        status = uf__error_set(lay->error, UF_ERROR_UNSUPPORTED, "over %d tiles a side", TILES_MAX);
    }
    for (uint32_t i = 0; status == UF_OK && i < tiles->columns * tiles->rows; i++) {
        uf_plan_shape tile = tile_shape(lay, shape, i % tiles->columns, i / tiles->columns);
        status = run_tile(lay, name, &tile, &tiles->tiles[i]);
    }
    if (status == UF_OK) {
        status = assemble(lay, shape, tiles, image);
    }
    lay->stream->is_tiled = true;
    free(tiles);
    return status;
}

static uf_status run_images(layout *lay, uint32_t name, const uf_plan_shape *shape, uint32_t *image)
{
    bool is_tiled = (lay->options >> UF_PLAN_VAE_TILING & 1) != 0 &&
                    (shape->width > lay->model->tile_side || shape->height > lay->model->tile_side);
    return is_tiled ? run_tiled(lay, name, shape, image) : run_tile(lay, name, shape, image);
}

/* One image at a time, then all in one piece. */
static uf_status run_sliced(layout *lay, uint32_t name, const uf_plan_shape *shape, uint32_t *image)
{
    uf_plan_shape one = {shape->width, shape->height, 1};
    uint32_t *slices = calloc(shape->batch, sizeof *slices);
    uf_status status = slices == NULL ? no_memory(lay) : UF_OK;
    for (uint32_t i = 0; i < shape->batch && status == UF_OK; i++) {
        status = run_images(lay, name, &one, &slices[i]);
    }
    if (status == UF_OK &&
        !request(lay, image_bytes(lay, shape->width, shape->height, shape->batch), image)) {
        status = no_memory(lay);
    }
    for (uint32_t i = shape->batch; i > 0 && status == UF_OK; i--) {
        status = give_back(lay, slices[i - 1]) ? UF_OK : no_memory(lay);
    }
    lay->stream->is_sliced = true;
    free(slices);
    return status;
}

static uf_status run_decoder(layout *lay, uint32_t name)
{
    const uf_plan_shape *shape = &lay->job->shape;
    uint32_t image = 0;
    bool is_sliced = (lay->options >> UF_PLAN_VAE_SLICING & 1) != 0 && shape->batch > 1;
    uf_status status =
        is_sliced ? run_sliced(lay, name, shape, &image) : run_images(lay, name, shape, &image);
    id_list *left = &lay->exports[name];
    if (status == UF_OK) {
        left->ids[left->count - 1] = image;
    }
    return status;
}

static uf_status run_steps(layout *lay)
{
    const uf_plan_model *model = lay->model;
    uf_status status = UF_OK;
    uint32_t decoder =
        model->has_decoder ? uf__plan_model_block_name(model, DECODER_BLOCK) : UINT32_MAX;
    bool is_offloaded = (lay->options >> UF_PLAN_OFFLOAD & 1) != 0;
    for (uint32_t i = 0; i < model->module_count && status == UF_OK && !is_offloaded; i++) {
        status = model->modules[i].is_resident ? module_in(lay, i) : UF_OK;
    }
    for (uint32_t i = 0; i < model->step_count && status == UF_OK; i++) {
        uint32_t name = model->step_blocks[i];
        lay->phase = model->step_phases[i];
        status = name == decoder ? run_decoder(lay, name)
                                 : run_block(lay, name, &lay->job->shape, lay->block_scale);
        uf_plan_phase *phase = &lay->stream->phases[lay->phase];
        if (phase->peak_bytes == 0) { /* nothing was requested: what was there stayed */
            phase->peak_bytes = lay->live_bytes;
            phase->weights_bytes = lay->weights_bytes;
        }
    }
    return status;
}

static void set_scales(layout *lay)
{
    const uf_plan_model *model = lay->model;
    uf_plan_dtype dtype = lay->job->dtype;
    double ratio = lay->job->weights_ratio == 0.0 ? 1.0 : lay->job->weights_ratio;
    bool is_recorded = dtype == UF_PLAN_DTYPE_RECORDED ||
                       (dtype == UF_PLAN_DTYPE_FP16 && strcmp(model->dtype, "fp16") == 0) ||
                       (dtype == UF_PLAN_DTYPE_BF16 && strcmp(model->dtype, "bf16") == 0);
    double bytes = dtype == UF_PLAN_DTYPE_FP32 ? 4.0 : 2.0;
    lay->is_cast = is_recorded;
    lay->stream->is_scaled = !is_recorded;
    lay->block_scale = is_recorded ? 1.0 : bytes / 2.0;
    lay->weights_scale = lay->block_scale * ratio;
    lay->decoder_scale = is_recorded || model->decoder_element_bytes == 0
                             ? 1.0
                             : bytes / (double)model->decoder_element_bytes;
}

uf_status uf__plan_stream_build(const uf_plan_model *model, const uf_plan_job *job,
                                uf_plan_stream *stream, uf_error *error)
{
    *stream = (uf_plan_stream){0};
    layout lay = {.model = model, .job = job, .stream = stream, .error = error};
    for (uint32_t option = 0; option < UF_PLAN_OPTION_COUNT; option++) {
        bool is_on = model->has_option[option] && (job->options >> option & 1) != 0;
        lay.options |= is_on ? UINT32_C(1) << option : 0;
    }
    set_scales(&lay);
    for (uint32_t i = 0; i < model->module_count; i++) {
        stream->weights_bytes +=
            model->modules[i].is_resident ? times(model->modules[i].bytes, lay.weights_scale) : 0;
    }
    uf_status status = run_steps(&lay);
    for (uint32_t i = 0; i < model->phase_count; i++) {
        if (stream->phases[i].peak_bytes > stream->peak_bytes) {
            stream->peak_bytes = stream->phases[i].peak_bytes;
            stream->peak_phase = i;
        }
    }
    for (uint32_t i = 0; i < UF_PLAN_MODULES_MAX; i++) {
        free(lay.modules[i].ids);
    }
    for (uint32_t i = 0; i < UF_PLAN_STEPS_MAX; i++) {
        free(lay.exports[i].ids);
    }
    free(lay.is_live);
    return status;
}

void uf__plan_stream_fini(uf_plan_stream *stream)
{
    free(stream->ops);
    free(stream->alloc_bytes);
    stream->ops = NULL;
    stream->alloc_bytes = NULL;
}

uf_status uf__plan_stream_replay(const uf_plan_stream *stream, uf_policy policy, const char *conf,
                                 uint64_t card_bytes, uf_replay_result *result, uf_error *error)
{
    uint64_t streams[1] = {0};
    uf_program_pool pools[1] = {0};
    uf_program program = {.event_count = stream->event_count,
                          .ops = stream->ops,
                          .alloc_bytes = stream->alloc_bytes,
                          .alloc_count = stream->alloc_count,
                          .streams = streams,
                          .stream_count = 1,
                          .pools = pools,
                          .pool_count = 1,
                          .peak_live_bytes = stream->peak_bytes};
    uf__conf_init(&program.conf);
    uf_event *events = calloc(stream->event_count + 1, sizeof *events);
    program.alloc_stream = calloc(stream->alloc_count + 1u, sizeof *program.alloc_stream);
    program.alloc_pool = calloc(stream->alloc_count + 1u, sizeof *program.alloc_pool);
    uf_status status = UF_OK;
    if (events == NULL || program.alloc_stream == NULL || program.alloc_pool == NULL) {
        status = uf__error_set(error, UF_ERROR_HOST_MEMORY, "no host memory for the replay");
    }
    if (status == UF_OK) {
        for (uint64_t i = 0; i < stream->event_count; i++) {
            events[i].action = UF_ACTION_OTHER; /* nothing was recorded */
        }
        program.events = events;
        const uf_replay_options options = {.struct_size_bytes = sizeof options,
                                           .policy = policy,
                                           .conf = conf != NULL                ? conf
                                                   : policy == UF_POLICY_TORCH ? ""
                                                                               : NULL,
                                           .card_bytes = card_bytes,
                                           .total_bytes = card_bytes == 0 ? UINT64_C(1) << 44 : 0};
        status = uf_replay_run(&program, &options, result, error);
    }
    free(events);
    free(program.alloc_stream);
    free(program.alloc_pool);
    return status;
}
