/* SPDX-License-Identifier: MIT
 *
 * What the parts of the scan of weight files share. A check fills state, expected_bytes, sum and
 * text of a file whose other members are set. No lock. */
#ifndef UF_ADVISE_WEIGHTS_PARTS_H
#define UF_ADVISE_WEIGHTS_PARTS_H

#include <jansson.h>

#include "advise/weights.h"

/* Each judges the open file `stream`, of file->file_bytes bytes. */
void uf__weights_check_safetensors(int stream, uf_weight_file *file);
void uf__weights_check_gguf(int stream, uf_weight_file *file);
void uf__weights_check_pickle(int stream, uf_weight_file *file);

/* True, and *file says so, if it holds text instead of weights, or nothing. */
bool uf__weights_is_placeholder(int stream, uf_weight_file *file);

/* Follows the weight_map of an index: adds what is missing, and faults of the index itself. */
void uf__weights_check_index(uf_weights *weights, const char *path);

/* Follows model_index.json: adds components without weights. */
void uf__weights_check_pipeline(uf_weights *weights);

/* True if the pipeline names that folder as a component with weights; also if there is none. */
bool uf__weights_is_component(const json_t *pipeline, const char *component);

/* model_index.json of the folder, or NULL. The caller ends it with json_decref. */
json_t *uf__weights_pipeline(const uf_weights *weights);

/* A new entry, or NULL if there is no memory or room (is_truncated is set). path is copied. */
uf_weight_file *uf__weights_add(uf_weights *weights, const char *path, uf_weight_format format,
                                uf_weight_state state);

/* The entry of that path, or NULL. */
uf_weight_file *uf__weights_find(uf_weights *weights, const char *path);

/* Sets state and text of a file; a text from before is replaced. */
void uf__weights_say(uf_weight_file *file, uf_weight_state state, const char *format, ...)
    UF_PRINTF(3, 4);

/* Reads exactly size_bytes at offset_bytes; false if there are fewer. */
bool uf__weights_read(int stream, uint64_t offset_bytes, void *bytes, size_t size_bytes);

/* Counts one tensor. False if the numbers do not fit 64 bits. */
bool uf__weights_count(uf_weights_sum *sum, uf_dtype dtype, uint64_t data_bytes,
                       uint64_t parameter_count);

/* The header of a safetensors file as an object, or NULL with state and text set. *header_bytes:
 * its length with the 8 bytes in front. The caller ends it with json_decref. */
json_t *uf__weights_safetensors_header(int stream, uf_weight_file *file, uint64_t *header_bytes);

#endif
