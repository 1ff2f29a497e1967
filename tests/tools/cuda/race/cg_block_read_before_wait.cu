// A block's barrier in two parts: a number of another thread is read between the two.
//
// RUN: --block 64 --arg u32[64]
// FIND: race-write-read
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void kernel(unsigned* out) {
    __shared__ unsigned tile[64];
    auto block = cg::this_thread_block();
    unsigned t = threadIdx.x;
    tile[t] = t * 3; // SITE
    auto token = block.barrier_arrive();
    out[t] = tile[63 - t]; // BUG SITE
    block.barrier_wait(std::move(token));
    out[t] = tile[63 - t]; // FIX
}
