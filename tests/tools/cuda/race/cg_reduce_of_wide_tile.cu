// The sum of a tile of two warps is made by the library; the first thread of the tile gives it to the others.
//
// RUN: --block 128 --arg u32[128]
// FIND: race-write-read
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

extern "C" __global__ void kernel(unsigned* out) {
    __shared__ cg::block_tile_memory<128> memory;
    __shared__ unsigned sums[2];
    auto block = cg::this_thread_block(memory);
    auto pair = cg::tiled_partition<64>(block);
    unsigned t = threadIdx.x, sum = cg::reduce(pair, t, cg::plus<unsigned>());
    if (pair.thread_rank() == 0) sums[pair.meta_group_rank()] = sum; // SITE
    pair.sync(); // FIX
    out[t] = sums[pair.meta_group_rank()]; // SITE
}
