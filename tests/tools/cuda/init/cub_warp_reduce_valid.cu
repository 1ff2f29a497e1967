// A warp adds up the lanes that have a value.
//
// RUN: --block 32 --arg u32[1] --arg 20
// FIND: uninitialized-output
#include <cub/warp/warp_reduce.cuh>

extern "C" __global__ void kernel(unsigned* out, unsigned n) {
    using Reduce = cub::WarpReduce<unsigned>;
    __shared__ Reduce::TempStorage storage;
    __shared__ unsigned values[32];
    unsigned t = threadIdx.x;
    if (t < n) values[t] = t;
    __syncwarp();
    unsigned x = values[t]; // SITE
    x = Reduce(storage).Sum(x); // BUG
    x = Reduce(storage).Sum(x, n); // FIX
    if (t == 0) *out = x; // SITE
}
