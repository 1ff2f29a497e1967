// Two tiles are loaded by transposing over one temporary storage.
//
// RUN: --block 64 --arg u32[512]=3 --arg u32[256]
// FIND: race-write-read
#include <cub/block/block_load.cuh>

extern "C" __global__ void kernel(unsigned* in, unsigned* out) {
    using Load = cub::BlockLoad<unsigned, 64, 4, cub::BLOCK_LOAD_TRANSPOSE>;
    __shared__ Load::TempStorage storage;
    unsigned first[4], second[4];
    Load(storage).Load(in, first); // SITE
    __syncthreads(); // FIX
    Load(storage).Load(in + 256, second); // SITE
    for (int i = 0; i < 4; i++) out[threadIdx.x * 4 + i] = first[i] + second[i];
}
