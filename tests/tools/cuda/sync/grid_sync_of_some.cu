// Not all blocks come to the barrier of the grid.
//
// RUN: --grid 3 --block 32 --cooperative --arg u32[96]
// FIND: deadlock | step-limit
#include <cooperative_groups.h>

extern "C" __global__ void kernel(unsigned* out) {
    auto grid = cooperative_groups::this_grid();
    if (blockIdx.x < 2) grid.sync(); // BUG SITE
    grid.sync(); // FIX
    out[grid.thread_rank()] = 1;
}
