// A tile's shuffle in a branch that a part of it takes.
//
// RUN: --block 32 --arg u32[32]
// FIND: missing-warp-lanes
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void kernel(unsigned* out) {
    unsigned t = threadIdx.x, x = t;
    auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    if (tile.thread_rank() < 4) x = tile.shfl(t, 2) + 1; // BUG
    x = tile.shfl(t, 2) + (tile.thread_rank() < 4); // FIX
    out[t] = x + tile.shfl_xor(x, 1); // SITE
}
