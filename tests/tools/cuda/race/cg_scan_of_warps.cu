// A scan of a block from scans of warps, whose sums are written behind the barrier instead of before it.
//
// RUN: --block 128 --arg u32[128]
// FIND: race-write-read
#include <cooperative_groups.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

extern "C" __global__ void kernel(unsigned* out) {
    __shared__ unsigned sums[4];
    auto block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    unsigned sum = cg::inclusive_scan(warp, threadIdx.x);
    block.sync(); // BUG
    if (warp.thread_rank() == 31) sums[warp.meta_group_rank()] = sum; // SITE
    block.sync(); // FIX
    for (unsigned i = 0; i < warp.meta_group_rank(); i++) sum += sums[i]; // SITE
    out[threadIdx.x] = sum;
}
