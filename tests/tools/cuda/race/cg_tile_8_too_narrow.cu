// A tile of eight lanes waits for itself, and reads what the next tile wrote.
//
// RUN: --block 32 --arg u32[32]
// FIND: race-write-read
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void kernel(unsigned* out) {
    __shared__ unsigned tile[32];
    auto group = cg::tiled_partition<8>(cg::this_thread_block());
    unsigned t = threadIdx.x;
    tile[t] = t; // SITE
    group.sync();
    out[t] = tile[t ^ 8]; // BUG SITE
    out[t] = tile[t ^ 4]; // FIX
}
