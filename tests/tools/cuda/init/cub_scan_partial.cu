// A scan over a tile whose tail nobody wrote: what lies before it is right, what lies behind is not.
//
// RUN: --block 64 --arg u32[64] --arg 40
// FIND: uninitialized-output
#include <cub/block/block_scan.cuh>

extern "C" __global__ void kernel(unsigned* out, unsigned n) {
    using Scan = cub::BlockScan<unsigned, 64>;
    __shared__ Scan::TempStorage storage;
    __shared__ unsigned values[64];
    unsigned t = threadIdx.x, x;
    if (t < n) values[t] = t;
    __syncthreads();
    x = values[t]; // SITE
    Scan(storage).InclusiveSum(x, x);
    out[t] = x; // BUG SITE
    if (t < n) out[t] = x; // FIX
}
