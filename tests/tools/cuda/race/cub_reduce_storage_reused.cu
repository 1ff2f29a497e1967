// Two sums of a block use the same temporary storage.
//
// RUN: --block 128 --arg u32[128]=3 --arg u32[2]
// FIND: race-write-read
#include <cub/block/block_reduce.cuh>

extern "C" __global__ void kernel(const unsigned* in, unsigned* out) {
    using Reduce = cub::BlockReduce<unsigned, 128>;
    __shared__ Reduce::TempStorage storage;
    unsigned x = in[threadIdx.x] + threadIdx.x;
    unsigned sum = Reduce(storage).Sum(x); // SITE
    __syncthreads(); // FIX
    unsigned most = Reduce(storage).Reduce(x, [](unsigned a, unsigned b) { return a > b ? a : b; }); // SITE
    if (threadIdx.x == 0) out[0] = sum, out[1] = most;
}
