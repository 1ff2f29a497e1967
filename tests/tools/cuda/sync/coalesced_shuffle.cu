// Ranks of a coalesced group are not lanes of the warp.
//
// RUN: --block 32 --arg u32[32]
// FIND: inactive-lane
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void kernel(unsigned* out) {
    unsigned t = threadIdx.x, x = t;
    if (t % 2 == 0) {
        auto group = cg::coalesced_threads();
        x = __shfl_sync(0x55555555, t, (group.thread_rank() + 1) % 16); // BUG SITE
        x = group.shfl(t, (group.thread_rank() + 1) % 16); // FIX
    }
    out[t] = x;
}
