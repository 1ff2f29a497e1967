// Steps with one array: the barrier of the grid between reading and writing again is left out.
//
// RUN: --grid 4 --block 32 --cooperative --arg u32[128] --arg u32[128]
// FIND: race-write-read
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void kernel(unsigned* a, unsigned* out) {
    auto grid = cg::this_grid();
    unsigned i = grid.thread_rank(), v = i;
    for (int step = 0; step < 3; step++) {
        a[i] = v; // SITE
        grid.sync();
        v += a[(i + 32) % 128]; // SITE
        grid.sync(); // FIX
    }
    out[i] = v;
}
