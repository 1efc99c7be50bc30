/* SPDX-License-Identifier: MIT
 *
 * The oracle's private pools and redirections (7). Single-threaded. */
#include "oracle/state.h"

#include <inttypes.h>
#include <stdlib.h>

oracle_pair *oracle_pair_create(oracle *o, const uint64_t id[2])
{
    o->pairs = model_grow(o->pairs, o->pair_count, &o->pair_capacity, sizeof(oracle_pair *));
    oracle_pair *pair = calloc(1, sizeof *pair);
    if (pair == NULL) {
        exit(5);
    }
    pair->id[0] = id[0];
    pair->id[1] = id[1];
    pair->is_private = id[0] != 0 || id[1] != 0;
    pair->is_known = true;
    pair->small.pair = pair->large.pair = pair;
    pair->small.is_small = true;
    o->pairs[o->pair_count++] = pair;
    return pair;
}

oracle_pair *oracle_pair_find(const oracle *o, const uint64_t id[2])
{
    for (size_t i = 0; i < o->pair_count; i++) {
        oracle_pair *pair = o->pairs[i];
        if (pair->is_private && pair->is_known && pair->id[0] == id[0] && pair->id[1] == id[1]) {
            return pair;
        }
    }
    return NULL;
}

static oracle_pair *find_or_fail(const oracle *o, const uint64_t id[2], uf_error *error)
{
    oracle_pair *pair = oracle_pair_find(o, id);
    if (pair == NULL) {
        (void)uf__error_set(error, UF_ERROR_NOT_FOUND, "no pool (%" PRIu64 ",%" PRIu64 ")", id[0],
                            id[1]);
    }
    return pair;
}

/* 7.3: the newest redirection decides, or the default pool. */
oracle_pair *oracle_pair_of_request(const oracle *o)
{
    return o->redirection_count > 0 ? o->redirections[o->redirection_count - 1] : o->pairs[0];
}

uf_status oracle_pool_create(oracle *o, const uint64_t id[2], const model_pool_options *options,
                             uf_error *error)
{
    if ((id[0] == 0 && id[1] == 0) || oracle_pair_find(o, id) != NULL) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT, "the pool exists already");
    }
    oracle_pair *pair = oracle_pair_create(o, id);
    pair->use_count = 1;
    if (options != NULL) {
        pair->is_use_on_oom = options->is_use_on_oom;
        pair->is_no_split = options->is_no_split;
        pair->is_never_expandable = options->is_never_expandable;
    }
    return UF_OK;
}

uf_status oracle_pool_begin(oracle *o, const uint64_t id[2], uf_error *error)
{
    oracle_pair *pair = find_or_fail(o, id, error);
    if (pair == NULL) {
        return UF_ERROR_NOT_FOUND;
    }
    for (size_t i = 0; i < o->redirection_count; i++) {
        if (o->redirections[i] == pair) {
            return uf__error_set(error, UF_ERROR_BUSY, "already recording to the pool");
        }
    }
    if (pair->use_count == 0 || o->redirection_count == ORACLE_STREAM_MAX) {
        return uf__error_set(error, UF_ERROR_BUSY, "the pool is going away, or too many at once");
    }
    pair->use_count++;
    o->redirections[o->redirection_count++] = pair;
    return UF_OK;
}

uf_status oracle_pool_end(oracle *o, const uint64_t id[2], uf_error *error)
{
    for (size_t i = 0; i < o->redirection_count; i++) {
        oracle_pair *pair = o->redirections[i];
        if (pair->id[0] == id[0] && pair->id[1] == id[1]) {
            for (size_t k = i + 1; k < o->redirection_count; k++) {
                o->redirections[k - 1] = o->redirections[k];
            }
            o->redirection_count--;
            pair->use_count--;
            return UF_OK;
        }
    }
    return uf__error_set(error, UF_ERROR_NOT_FOUND, "not recording to the pool");
}

/* 7.2, the death of a MemPool object. Under a redirection PyTorch aborts (4.5). */
uf_status oracle_pool_destroy(oracle *o, const uint64_t id[2], uf_error *error)
{
    oracle_pair *pair = find_or_fail(o, id, error);
    if (pair == NULL) {
        return UF_ERROR_NOT_FOUND;
    }
    if (o->redirection_count > 0) {
        return uf__error_set(error, UF_ERROR_BUSY, "a redirection is under way");
    }
    pair->is_use_on_oom = false;
    pair->use_count--;
    oracle_flush(o, pair);
    return UF_OK;
}
