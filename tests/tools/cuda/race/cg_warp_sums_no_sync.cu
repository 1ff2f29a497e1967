// Sums of warps are written to shared memory and added by the first warp.
//
// RUN: --block 128 --arg u32[1]
// FIND: race-write-read
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

extern "C" __global__ void kernel(unsigned* out) {
    __shared__ unsigned sums[4];
    auto block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    unsigned sum = cg::reduce(warp, threadIdx.x, cg::plus<unsigned>());
    if (warp.thread_rank() == 0) sums[warp.meta_group_rank()] = sum; // SITE
    block.sync(); // FIX
    if (block.thread_rank() == 0) *out = sums[0] + sums[1] + sums[2] + sums[3]; // SITE
}
