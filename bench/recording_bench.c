/* SPDX-License-Identifier: MIT
 *
 * recording_bench PAIRS PATH: writes a snapshot of so many allocations and about as many frees
 * (three events a pair) on a simulated card, of 300 sizes from 512 bytes to 128 MiB, mostly of
 * young blocks, with 60 to 400 of them alive by turns. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <unfrag/recorder.h>
#include <unfrag/sim.h>
#include <unfrag/unfrag.h>

enum { SIZES = 300, LIVE_MOST = 400, PHASE_PAIRS = 50000, YOUNG = 60 };

static uint64_t state = 1;

static uint64_t random_below(uint64_t bound)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 11) % bound;
}

static uf_status live(uf_allocator *allocator, uint64_t pair_count, uf_error *error)
{
    static const int targets[] = {60, 250, 120, LIVE_MOST};
    uint64_t sizes[SIZES], addrs[LIVE_MOST + 1];
    int count = 0;
    for (int i = 0; i < SIZES; i++) {
        sizes[i] = (uint64_t)exp2(9 + (double)random_below(18000) / 1000);
    }
    uf_status status = UF_OK;
    for (uint64_t i = 0; i < pair_count && status == UF_OK; i++) {
        uint64_t phase = i / PHASE_PAIRS % 4;
        status =
            uf_alloc(allocator, sizes[random_below(SIZES)] / (1 + phase), 0, &addrs[count], error);
        count += status == UF_OK;
        while (count > targets[phase] && status == UF_OK) {
            int among = random_below(5) != 0 && count > YOUNG ? YOUNG : count;
            int chosen = count - 1 - (int)random_below((uint64_t)among);
            status = uf_free(allocator, addrs[chosen], error);
            addrs[chosen] = addrs[--count];
        }
    }
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: recording_bench PAIRS PATH\n");
        return 2;
    }
    uf_error error = {.text = ""};
    uf_sim *sim = NULL;
    uf_recorder *recorder = NULL;
    uf_allocator *allocator = NULL;
    const uf_recorder_options ring = {.struct_size_bytes = sizeof ring,
                                      .max_entry_count = UINT64_C(1) << 33};
    uf_status status = uf_sim_create(NULL, &sim, &error);
    if (status == UF_OK) {
        status = uf_recorder_create(&ring, &recorder, &error);
    }
    if (status == UF_OK) {
        const uf_allocator_options options = {.struct_size_bytes = sizeof options,
                                              .device = uf_sim_device(sim),
                                              .policy = UF_POLICY_TORCH,
                                              .on_event = uf_recorder_event,
                                              .event_context = recorder};
        status = uf_allocator_create(&options, &allocator, &error);
    }
    if (status == UF_OK) {
        status = live(allocator, strtoull(argv[1], NULL, 10), &error);
    }
    FILE *stream = status == UF_OK ? fopen(argv[2], "wb") : NULL;
    if (status == UF_OK && stream == NULL) {
        fprintf(stderr, "recording_bench: cannot write %s\n", argv[2]);
        status = UF_ERROR_IO;
    }
    if (status == UF_OK) {
        status = uf_snapshot_write(allocator, recorder, stream, &error);
    }
    if (stream != NULL && fclose(stream) != 0) {
        status = UF_ERROR_IO;
    }
    fputs(error.text, stderr);
    uf_allocator_destroy(allocator);
    uf_recorder_destroy(recorder);
    uf_sim_destroy(sim);
    return status == UF_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
