/* SPDX-License-Identifier: MIT
 *
 * On an NVIDIA GPU, without the CUDA toolkit: fills a limit with blocks, gives every other one
 * back, and asks for half the limit in one piece, which no cache of segments could serve. */
#include <inttypes.h>
#include <stdio.h>

#include <unfrag/cuda.h>
#include <unfrag/unfrag.h>

enum { BLOCKS = 32 };

static const uint64_t MIB = UINT64_C(1) << 20;

static int fail(const uf_error *error)
{
    fprintf(stderr, "cuda: %s\n", error->text);
    return 1;
}

int main(void)
{
    uf_error error;
    uf_cuda *cuda;
    if (uf_cuda_create(NULL, &cuda, &error) != UF_OK) {
        return fail(&error); /* says whether the driver, a GPU or memory is missing */
    }
    uf_cuda_info info = {.struct_size_bytes = sizeof info};
    if (uf_cuda_info_get(cuda, &info) != UF_OK) {
        return 1;
    }
    printf("%s\n", info.note[0] != '\0' ? info.note : "memory of this GPU can be mapped");

    /* The policy that fits the GPU: unfrag where memory can be mapped. */
    uf_allocator_options options = {.struct_size_bytes = sizeof options,
                                    .device = uf_cuda_device(cuda),
                                    .policy = info.policy,
                                    .conf = info.conf,
                                    .limit_bytes = BLOCKS * 8 * MIB};
    uf_allocator *allocator;
    uint64_t blocks[BLOCKS], large;
    if (uf_allocator_create(&options, &allocator, &error) != UF_OK) {
        return fail(&error);
    }
    for (int i = 0; i < BLOCKS; i++) {
        if (uf_alloc(allocator, 8 * MIB, 0, &blocks[i], &error) != UF_OK) {
            return fail(&error);
        }
    }
    for (int i = 0; i < BLOCKS; i += 2) {
        if (uf_free(allocator, blocks[i], &error) != UF_OK) {
            return fail(&error);
        }
    }
    if (uf_alloc(allocator, BLOCKS * 4 * MIB, 0, &large, &error) != UF_OK) {
        return fail(&error);
    }
    uf_stats stats;
    if (uf_stats_get(allocator, &stats, &error) != UF_OK) {
        return fail(&error);
    }
    printf("%d MiB in one piece from %d holes of 8 MiB; reserved %" PRId64 " MiB, %" PRId64
           " of them in use\n",
           BLOCKS * 4, BLOCKS / 2, stats.reserved_bytes.all.current / (int64_t)MIB,
           stats.active_bytes.all.current / (int64_t)MIB);
    uf_allocator_destroy(allocator);
    uf_cuda_destroy(cuda);
    return 0;
}
