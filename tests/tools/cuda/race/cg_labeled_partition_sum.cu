// Lanes with the same key add up; the first of each group writes the sum that all of them read.
//
// RUN: --block 32 --arg u32[32]
// FIND: race-write-read
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

extern "C" __global__ void kernel(unsigned* out) {
    __shared__ unsigned sums[4];
    unsigned t = threadIdx.x, key = t * 7 % 4;
    auto group = cg::labeled_partition(cg::tiled_partition<32>(cg::this_thread_block()), key);
    unsigned sum = cg::reduce(group, t, cg::plus<unsigned>());
    if (group.thread_rank() == 0) sums[key] = sum; // SITE
    group.sync(); // FIX
    out[t] = sums[key]; // SITE
}
