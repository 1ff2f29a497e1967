// A guarded load leaves items beyond the end as they are, unless it is given a value for them.
//
// RUN: --block 32 --arg u32[50]=3 --arg u32[64] --arg 50
// FIND: uninitialized-output
#include <cub/block/block_load.cuh>

extern "C" __global__ void kernel(unsigned* in, unsigned* out, int n) {
    using Load = cub::BlockLoad<unsigned, 32, 2, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
    __shared__ Load::TempStorage storage;
    unsigned items[2], t = threadIdx.x;
    Load(storage).Load(in, items, n); // BUG
    Load(storage).Load(in, items, n, 0u); // FIX
    out[t * 2] = items[0]; // SITE
    out[t * 2 + 1] = items[1]; // SITE
}
