// The two halves that a predicate makes write each a row; one half reads the row of the other.
//
// RUN: --block 32 --arg u32[32]
// FIND: race-write-read
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void kernel(unsigned* out) {
    __shared__ unsigned rows[2][16];
    unsigned t = threadIdx.x;
    bool low = t % 4 < 2;
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    auto half = cg::binary_partition(warp, low);
    rows[low][half.thread_rank()] = t; // SITE
    half.sync(); // BUG
    warp.sync(); // FIX
    out[t] = rows[!low][half.thread_rank()]; // SITE
}
