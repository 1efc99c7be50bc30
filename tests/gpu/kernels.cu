/* SPDX-License-Identifier: MIT
 *
 * The kernels of the GPU tests. tests/gpu/make_ptx turns them into kernels_ptx.h, so that the tests
 * need no CUDA compiler. Every parameter is 64 bits wide. */
typedef unsigned long long u64;
typedef unsigned int u32;

__device__ static u32 word_of(u64 pattern, u64 i)
{
    return ((u32)pattern ^ (u32)i ^ (u32)(i >> 32)) * 0x9E3779B1u;
}

__device__ static u64 first()
{
    return blockIdx.x * (u64)blockDim.x + threadIdx.x;
}

__device__ static u64 stride()
{
    return gridDim.x * (u64)blockDim.x;
}

__device__ static u64 now_ns()
{
    u64 t;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
    return t;
}

extern "C" __global__ void uf_fill(u32 *to, u64 count, u64 pattern)
{
    for (u64 i = first(); i < count; i += stride()) {
        to[i] = word_of(pattern, i);
    }
}

extern "C" __global__ void uf_check(const u32 *from, u64 count, u64 pattern, u64 *wrong)
{
    u64 found = 0;
    for (u64 i = first(); i < count; i += stride()) {
        found += from[i] != word_of(pattern, i);
    }
    if (found != 0) {
        atomicAdd(wrong, found);
    }
}

/* Writes the pattern again and again for so long. */
extern "C" __global__ void uf_fill_for(u32 *to, u64 count, u64 pattern, u64 ns)
{
    u64 start = now_ns();
    do {
        for (u64 i = first(); i < count; i += stride()) {
            ((volatile u32 *)to)[i] = word_of(pattern, i);
        }
    } while (now_ns() - start < ns);
}

extern "C" __global__ void uf_copy(uint4 *to, const uint4 *from, u64 count)
{
    for (u64 i = first(); i < count; i += stride()) {
        to[i] = from[i];
    }
}

/* count is a power of two. */
extern "C" __global__ void uf_gather(u32 *to, const u32 *from, u64 count)
{
    for (u64 i = first(); i < count; i += stride()) {
        to[i] = from[(i * 0x9E3779B1u + 12345) & (count - 1)];
    }
}

/* A square of words; the side is a multiple of 32; blocks of 32 x 8 threads. */
extern "C" __global__ void uf_transpose(u32 *to, const u32 *from, u64 side)
{
    __shared__ u32 tile[32][33];
    u64 tiles = side / 32;
    u64 bx = blockIdx.x % tiles * 32, by = blockIdx.x / tiles * 32;
    for (u32 y = threadIdx.y; y < 32; y += 8) {
        tile[y][threadIdx.x] = from[(by + y) * side + bx + threadIdx.x];
    }
    __syncthreads();
    for (u32 y = threadIdx.y; y < 32; y += 8) {
        to[(bx + y) * side + by + threadIdx.x] = tile[threadIdx.x][y];
    }
}
