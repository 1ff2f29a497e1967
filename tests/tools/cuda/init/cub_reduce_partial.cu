// A block adds up fewer values than it has threads: without their number the others count, too.
//
// RUN: --block 64 --arg u32[1] --arg 40
// FIND: uninitialized-output
#include <cub/block/block_reduce.cuh>

extern "C" __global__ void kernel(unsigned* out, unsigned n) {
    using Reduce = cub::BlockReduce<unsigned, 64>;
    __shared__ Reduce::TempStorage storage;
    __shared__ unsigned values[64];
    unsigned t = threadIdx.x;
    if (t < n) values[t] = t;
    __syncthreads();
    unsigned sum = Reduce(storage).Sum(values[t]); // BUG SITE
    unsigned sum = Reduce(storage).Sum(values[t], n); // FIX
    if (t == 0) *out = sum; // SITE
}
