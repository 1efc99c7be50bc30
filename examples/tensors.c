/* SPDX-License-Identifier: MIT
 *
 * Behind the buffer interface of a tensor library such as ggml: a type of buffer that makes
 * buffers, a buffer with a base that tensors are laid out in. The declarations stand for such a
 * library's own. Weights live in one buffer for long; the scratch buffer is made anew for each
 * graph, of another size each time, which fragments an allocator of segments. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <unfrag/sim.h>
#include <unfrag/unfrag.h>

/* What the tensor library knows. */
typedef struct tensor_buffer_type tensor_buffer_type;
typedef struct tensor_buffer tensor_buffer;
struct tensor_buffer_type {
    tensor_buffer *(*alloc_buffer)(tensor_buffer_type *type, size_t size_bytes);
    size_t (*get_alignment)(tensor_buffer_type *type);
    void *context;
};
struct tensor_buffer {
    void (*free_buffer)(tensor_buffer *buffer);
    void *(*get_base)(tensor_buffer *buffer);
    tensor_buffer_type *type;
    uint64_t addr;
};

/* And its back end over unfrag. */
static void unfrag_free_buffer(tensor_buffer *buffer)
{
    uf_error error;
    if (uf_free(buffer->type->context, buffer->addr, &error) != UF_OK) {
        fprintf(stderr, "tensors: %s\n", error.text);
    }
    free(buffer);
}

static void *unfrag_get_base(tensor_buffer *buffer)
{
    return (void *)(uintptr_t)buffer->addr;
}

static tensor_buffer *unfrag_alloc_buffer(tensor_buffer_type *type, size_t size_bytes)
{
    uf_error error;
    tensor_buffer *buffer = malloc(sizeof *buffer);
    if (buffer == NULL) {
        return NULL;
    }
    *buffer = (tensor_buffer){unfrag_free_buffer, unfrag_get_base, type, 0};
    if (uf_alloc(type->context, size_bytes, 0, &buffer->addr, &error) != UF_OK) {
        fprintf(stderr, "tensors: %s\n",
                error.text); /* which term of memory was short, in numbers */
        free(buffer);
        return NULL;
    }
    return buffer;
}

static size_t unfrag_get_alignment(tensor_buffer_type *type)
{
    (void)type;
    return 512; /* every address of an allocator is a multiple of it */
}

int main(void)
{
    uf_error error;
    uf_sim *card;
    uf_allocator *allocator;
    uf_sim_options options = {.struct_size_bytes = sizeof options,
                              .total_bytes = UINT64_C(8) << 30};
    if (uf_sim_create(&options, &card, &error) != UF_OK) {
        return 1;
    }
    uf_allocator_options how = {
        .struct_size_bytes = sizeof how, .device = uf_sim_device(card), .policy = UF_POLICY_UNFRAG};
    if (uf_allocator_create(&how, &allocator, &error) != UF_OK) {
        fprintf(stderr, "tensors: %s\n", error.text);
        return 1;
    }
    tensor_buffer_type type = {unfrag_alloc_buffer, unfrag_get_alignment, allocator};
    tensor_buffer *weights = type.alloc_buffer(&type, (size_t)5 << 30);
    int made_count = 0;
    for (size_t tokens = 128; tokens <= 4096 && weights != NULL; tokens += 128) {
        tensor_buffer *scratch = type.alloc_buffer(&type, tokens * 640 * 1024);
        made_count += scratch != NULL && scratch->get_base(scratch) != NULL;
        if (scratch != NULL) {
            scratch->free_buffer(scratch);
        }
    }
    uf_stats stats;
    if (uf_stats_get(allocator, &stats, &error) != UF_OK) {
        return 1;
    }
    printf("%d graphs beside 5 GiB of weights; alignment %zu; most reserved %.2f GiB, most in use "
           "%.2f GiB\n",
           made_count, type.get_alignment(&type), (double)stats.reserved_bytes.all.peak / 0x1p30,
           (double)stats.active_bytes.all.peak / 0x1p30);
    if (weights != NULL) {
        weights->free_buffer(weights);
    }
    uf_allocator_destroy(allocator);
    uf_sim_destroy(card);
    return 0;
}
