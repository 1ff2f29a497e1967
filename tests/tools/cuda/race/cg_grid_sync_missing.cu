// Each block writes a number that the next one reads behind a barrier of the grid.
//
// RUN: --grid 4 --block 32 --cooperative --arg u32[128] --arg u32[128]
// FIND: race-write-read
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void kernel(unsigned* a, unsigned* out) {
    auto grid = cg::this_grid();
    unsigned i = grid.thread_rank();
    a[i] = i; // SITE
    cg::this_thread_block().sync(); // BUG
    grid.sync(); // FIX
    out[i] = a[(i + 32) % 128]; // SITE
}
