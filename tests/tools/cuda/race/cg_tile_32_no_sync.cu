// Lanes of a warp exchange through shared memory, and rely on going in step.
//
// RUN: --block 64 --arg u32[64]
// FIND: race-write-read
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void kernel(unsigned* out) {
    __shared__ unsigned tile[64];
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    unsigned t = threadIdx.x;
    tile[t] = t; // SITE
    warp.sync(); // FIX
    out[t] = tile[t ^ 1]; // SITE
}
