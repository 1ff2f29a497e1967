// A sum of a warp over an array of which the last entry was never written.
//
// RUN: --block 32 --arg u32[1]
// FIND: uninitialized-output
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

extern "C" __global__ void kernel(unsigned* out) {
    __shared__ unsigned values[32];
    unsigned t = threadIdx.x;
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    if (t < 31) values[t] = t; // BUG
    values[t] = t; // FIX
    warp.sync();
    unsigned sum = cg::reduce(warp, values[t], cg::plus<unsigned>()); // SITE
    if (t == 0) *out = sum; // SITE
}
