// A barrier of the grid in two parts: the write stands behind the arrival.
//
// RUN: --grid 4 --block 32 --cooperative --arg u32[128] --arg u32[128]
// FIND: race-write-read
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void kernel(unsigned* a, unsigned* out) {
    auto grid = cg::this_grid();
    unsigned i = grid.thread_rank();
    a[i] = i * 5; // FIX
    auto token = grid.barrier_arrive();
    a[i] = i * 5; // BUG SITE
    grid.barrier_wait(std::move(token));
    out[i] = a[(i + 64) % 128]; // SITE
}
