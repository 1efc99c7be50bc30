/* SPDX-License-Identifier: MIT
 *
 * The oracle's front: the allocation chain of 3.2 in its exact order, settings, the limit, and the
 * table of functions that tests call. Single-threaded. */
#include "oracle/oracle.h"
#include "oracle/state.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* 3.2 step D: the first registered pool with a fitting block; its search and its split rule ignore
 * expandable segments. */
static oracle_block *take_from_fallback(oracle *o, oracle_request *request)
{
    if (request->pool->pair->is_private) {
        return NULL;
    }
    for (size_t i = 0; i < o->pair_count; i++) {
        oracle_pair *pair = o->pairs[i];
        if (!pair->is_private || !pair->is_known || !pair->is_use_on_oom) {
            continue;
        }
        oracle_request other = *request;
        other.pool = request->pool->is_small ? &pair->small : &pair->large;
        other.is_expandable = false;
        oracle_block *block = oracle_find(o, &other);
        if (block != NULL) {
            *request = other;
            return block;
        }
    }
    return NULL;
}

/* 3.6 */
static uf_status out_of_memory(oracle *o, const oracle_request *request, uf_error *error)
{
    uint64_t card =
        o->config.capacity_bytes != 0 ? o->config.capacity_bytes : o->config.total_bytes;
    uint64_t left = card > o->total_bytes ? card - o->total_bytes : 0;
    oracle_event(o, UF_ACTION_OOM, left, request->rounded_bytes, request->stream);
    o->stats[STAT_NUM_OOMS]++;
    return uf__error_set(error, UF_ERROR_OUT_OF_MEMORY, "no memory for %" PRIu64 " bytes",
                         request->segment_bytes);
}

/* 3.2 from B on. */
static uf_status obtain(oracle *o, oracle_request *request, oracle_block **found, uf_error *error)
{
    oracle_block *block = NULL;
    if (o->has_limit && o->conf.garbage_collection_threshold > 0) {
        oracle_collect_garbage(o);
    }
    block = oracle_try_new(o, request, false);
    if (block == NULL) {
        block = take_from_fallback(o, request);
    }
    if (block == NULL && o->conf.max_split_size_bytes != UF_UNLIMITED) {
        bool is_enough = false;
        uf_status status = oracle_release_oversize(o, request, &is_enough, error);
        if (status != UF_OK) {
            return status;
        }
        if (is_enough) {
            block = oracle_try_new(o, request, false);
        }
    }
    if (block == NULL && o->redirection_count == 0) {
        oracle_flush(o, NULL);
        block = oracle_try_new(o, request, true);
    }
    if (block == NULL) {
        return out_of_memory(o, request, error);
    }
    *found = block;
    return UF_OK;
}

static uf_status model_alloc(void *model, uint64_t bytes, uint64_t stream, uint64_t *addr,
                             uf_error *error)
{
    oracle *o = model;
    if (bytes == 0) {
        *addr = 0;
        return UF_OK;
    }
    if (bytes >= ORACLE_REQUEST_MAX) {
        return uf__error_set(error, UF_ERROR_REQUEST_TOO_LARGE, "%" PRIu64 " bytes", bytes);
    }
    if (o->redirection_count == 0) {
        oracle_process_events(o);
    }
    oracle_pair *pair = oracle_pair_of_request(o);
    oracle_request request = {.requested_bytes = bytes,
                              .rounded_bytes = oracle_round(o, bytes),
                              .stream = stream,
                              .is_expandable = o->conf.is_expandable && !pair->is_never_expandable};
    request.segment_bytes = oracle_segment_bytes(o, request.rounded_bytes);
    request.pool = request.rounded_bytes <= ORACLE_SMALL_MAX ? &pair->small : &pair->large;
    oracle_block *block = oracle_find(o, &request);
    if (block == NULL) {
        uf_status status = obtain(o, &request, &block, error);
        if (status != UF_OK) {
            return status;
        }
    }
    *addr = oracle_hand_out(o, &request, block)->addr;
    return UF_OK;
}

/* 3.8 */
static uf_status model_set_fraction(void *model, double fraction, uf_error *error)
{
    oracle *o = model;
    if (!(fraction >= 0.0 && fraction <= 1.0)) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT, "fraction %g", fraction);
    }
    o->has_limit = fraction < 1.0;
    o->limit_bytes = o->has_limit ? (uint64_t)trunc(fraction * (double)o->config.total_bytes) : 0;
    return UF_OK;
}

static uf_status model_set_conf(void *model, const char *conf, uf_error *error)
{
    oracle *o = model;
    return uf__conf_parse(&o->conf, conf, UF_CONF_2_11, error);
}

static void model_destroy(void *model)
{
    oracle *o = model;
    if (o == NULL) {
        return;
    }
    for (size_t i = 0; i < o->block_count; i++) {
        free(o->blocks[i]);
    }
    for (size_t i = 0; i < o->segment_count; i++) {
        free(o->segments[i]);
    }
    for (size_t i = 0; i < o->pair_count; i++) {
        free(o->pairs[i]);
    }
    free(o->blocks);
    free(o->segments);
    free(o->pairs);
    free(o);
}

static uf_status model_create(const model_config *config, void **model, uf_error *error)
{
    oracle *o = calloc(1, sizeof *o);
    if (o == NULL) {
        return UF_ERROR_HOST_MEMORY;
    }
    o->config = *config;
    uf__conf_init(&o->conf);
    (void)oracle_pair_create(o, (const uint64_t[2]){0, 0});
    uf_status status = UF_OK;
    if (config->conf != NULL) {
        status = uf__conf_parse(&o->conf, config->conf, UF_CONF_2_11, error);
    }
    if (status == UF_OK) {
        status = model_set_fraction(o, o->conf.per_process_memory_fraction, error);
    }
    if (status != UF_OK) {
        model_destroy(o);
        return status;
    }
    /* 8.3: shown for ever as it is now; -1 is unlimited */
    o->stats[STAT_MAX_SPLIT_SIZE] = (int64_t)o->conf.max_split_size_bytes;
    *model = o;
    return UF_OK;
}

static uf_status model_free(void *model, uint64_t addr, uf_error *error)
{
    return oracle_free(model, addr, error);
}

static uf_status model_record_stream(void *model, uint64_t addr, uint64_t stream, uf_error *error)
{
    return oracle_record_stream(model, addr, stream, error);
}

static uf_status model_synchronize(void *model, bool is_all, uint64_t stream)
{
    return oracle_synchronize(model, is_all, stream);
}

/* 8.5 */
static uf_status model_empty_cache(void *model, uf_error *error)
{
    (void)error;
    oracle_flush(model, NULL);
    return UF_OK;
}

static uf_status model_pool_create(void *model, const uint64_t id[2],
                                   const model_pool_options *options, uf_error *error)
{
    return oracle_pool_create(model, id, options, error);
}

static uf_status model_pool_begin(void *model, const uint64_t id[2], uf_error *error)
{
    return oracle_pool_begin(model, id, error);
}

static uf_status model_pool_end(void *model, const uint64_t id[2], uf_error *error)
{
    return oracle_pool_end(model, id, error);
}

static uf_status model_pool_destroy(void *model, const uint64_t id[2], uf_error *error)
{
    return oracle_pool_destroy(model, id, error);
}

static void model_stats(void *model, int64_t values[MODEL_STAT_COUNT])
{
    const oracle *o = model;
    for (size_t i = 0; i < MODEL_STAT_COUNT; i++) {
        values[i] = o->stats[i];
    }
}

static void model_walk(void *model, model_layout *layout)
{
    oracle_walk(model, layout);
}

static uf_status model_check(void *model, uf_error *error)
{
    return oracle_check(model, error);
}

const model_vtable oracle_model = {
    .name = "oracle",
    .create = model_create,
    .destroy = model_destroy,
    .alloc = model_alloc,
    .free_block = model_free,
    .record_stream = model_record_stream,
    .synchronize = model_synchronize,
    .empty_cache = model_empty_cache,
    .set_fraction = model_set_fraction,
    .set_conf = model_set_conf,
    .pool_create = model_pool_create,
    .pool_begin = model_pool_begin,
    .pool_end = model_pool_end,
    .pool_destroy = model_pool_destroy,
    .stats = model_stats,
    .walk = model_walk,
    .check = model_check,
};
