// The tail of a tile is padded with the greatest key before it is sorted.
//
// RUN: --block 32 --arg u32[50]=3 --arg u32[64] --arg 50
// FIND: uninitialized uninitialized-output
#include <cub/block/block_radix_sort.cuh>

extern "C" __global__ void kernel(const unsigned* in, unsigned* out, unsigned n) {
    using Sort = cub::BlockRadixSort<unsigned, 32, 2>;
    __shared__ Sort::TempStorage storage;
    __shared__ unsigned tile[64];
    unsigned keys[2], t = threadIdx.x;
    for (unsigned i = t; i < 64; i += 32)
        if (i < n) tile[i] = in[i] + i * 5 % 16;
        else tile[i] = ~0u; // FIX
    __syncthreads();
    keys[0] = tile[t * 2]; // SITE
    keys[1] = tile[t * 2 + 1]; // SITE
    Sort(storage).Sort(keys); // SITE
    out[t * 2] = keys[0]; // SITE
    out[t * 2 + 1] = keys[1]; // SITE
}
