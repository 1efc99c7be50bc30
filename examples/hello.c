/* SPDX-License-Identifier: MIT
 *
 * Allocates, frees while another stream still reads, and runs out of memory: on a simulated
 * device, so that it runs anywhere. */
#include <inttypes.h>
#include <stdio.h>

#include <unfrag/sim.h>
#include <unfrag/unfrag.h>

static int fail(const uf_error *error)
{
    fprintf(stderr, "hello: %s\n", error->text);
    return 1;
}

int main(void)
{
    uf_error error;
    uf_sim *sim;
    uf_allocator *allocator;
    uint64_t weights, activations;

    uf_sim_options card = {.struct_size_bytes = sizeof card, .total_bytes = UINT64_C(8) << 30};
    if (uf_sim_create(&card, &sim, &error) != UF_OK) {
        return fail(&error);
    }
    uf_allocator_options options = {.struct_size_bytes = sizeof options,
                                    .device = uf_sim_device(sim),
                                    .conf = "expandable_segments:True",
                                    .fraction = 0.9};
    if (uf_allocator_create(&options, &allocator, &error) != UF_OK) {
        return fail(&error);
    }

    /* Two allocations for the default stream; stream 7 reads the second one too. */
    if (uf_alloc(allocator, UINT64_C(3) << 30, 0, &weights, &error) != UF_OK ||
        uf_alloc(allocator, UINT64_C(500) << 20, 0, &activations, &error) != UF_OK ||
        uf_use_on_stream(allocator, activations, 7, &error) != UF_OK ||
        uf_free(allocator, activations, &error) != UF_OK) {
        return fail(&error);
    }

    uf_stats stats;
    if (uf_stats_get(allocator, &stats, &error) != UF_OK) {
        return fail(&error);
    }
    printf("allocated %" PRId64 ", active %" PRId64 ", reserved %" PRId64 " bytes\n",
           stats.allocated_bytes.all.current, stats.active_bytes.all.current,
           stats.reserved_bytes.all.current);

    /* What does not fit fails with the numbers. */
    uint64_t too_much;
    if (uf_alloc(allocator, UINT64_C(6) << 30, 0, &too_much, &error) == UF_ERROR_OUT_OF_MEMORY) {
        printf("%s\n", error.text);
    }

    if (uf_free(allocator, weights, &error) != UF_OK) {
        return fail(&error);
    }
    uf_allocator_destroy(allocator);
    uf_sim_destroy(sim);
    return 0;
}
