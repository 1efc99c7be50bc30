/* SPDX-License-Identifier: MIT
 *
 * peer: memory of GPU 0, plain and mapped, is read and written by kernels of GPU 1. */
#include "gpu.h"

/* Fills on GPU 0 and checks on GPU 1, then the other way round. */
static void exchange(const gpu *g, const gpu *on_peer, uint64_t addr, uint64_t bytes)
{
    gpu_expect(g->context_set(g->context), "cuCtxSetCurrent");
    gpu_fill(g, NULL, addr, bytes, 1);
    gpu_expect(g->context_synchronize(), "cuCtxSynchronize");
    gpu_expect(g->context_set(on_peer->context), "cuCtxSetCurrent");
    gpu_check(on_peer, NULL, addr, bytes, 1);
    gpu_fill(on_peer, NULL, addr, bytes, 2);
    gpu_expect(g->context_synchronize(), "cuCtxSynchronize");
    gpu_expect(g->context_set(g->context), "cuCtxSetCurrent");
    gpu_check(g, NULL, addr, bytes, 2);
    gpu_expect(g->context_synchronize(), "cuCtxSynchronize");
}

int test_peer(double seconds)
{
    gpu g, on_peer;
    uf_error error;
    static const int32_t peers[] = {1};
    (void)seconds;
    uf_cuda *probe = NULL;
    uf_cuda_options options = {.struct_size_bytes = sizeof options, .ordinal = 1};
    if (uf_cuda_create(&options, &probe, &error) != UF_OK) {
        return gpu_not_run("peer", "there is one GPU only");
    }
    uf_cuda_destroy(probe);
    options =
        (uf_cuda_options){.struct_size_bytes = sizeof options, .peers = peers, .peer_count = 1};
    if (uf_cuda_create(&options, &probe, &error) != UF_OK) {
        return gpu_not_run("peer", error.text);
    }
    uf_cuda_destroy(probe);
    gpu_open(&g, peers, 1);
    gpu_open_other(&g, 1, &on_peer);
    uint64_t bytes = g.is_fake ? 2 * MIB : 256 * MIB, addr[2] = {0, 0};
    static const uf_policy policies[] = {UF_POLICY_TORCH, UF_POLICY_UNFRAG};
    for (int i = 0; i < (g.info.can_map ? 2 : 1); i++) {
        gpu_expect(g.context_set(g.context), "cuCtxSetCurrent");
        uf_allocator *allocator = gpu_allocator(&g, policies[i], 0);
        gpu_expect_ok(uf_alloc(allocator, bytes, 0, &addr[i], &error), &error, "uf_alloc");
        exchange(&g, &on_peer, addr[i], bytes);
        gpu_expect_ok(uf_free(allocator, addr[i], &error), &error, "uf_free");
        uf_allocator_destroy(allocator);
    }
    uint64_t wrong = gpu_wrong(&g);
    gpu_expect(g.context_set(on_peer.context), "cuCtxSetCurrent");
    wrong += gpu_wrong(&on_peer);
    gpu_expect(g.mem_free(on_peer.wrong_addr), "cuMemFree");
    gpu_expect(g.context_set(g.context), "cuCtxSetCurrent");
    gpu_close(&g);
    return gpu_report("peer", wrong == 0,
                      "GPU 1 read and wrote %llu MiB of GPU 0, plain%s, %llu wrong words",
                      (unsigned long long)(bytes / MIB), g.info.can_map ? " and mapped" : "",
                      (unsigned long long)wrong);
}
