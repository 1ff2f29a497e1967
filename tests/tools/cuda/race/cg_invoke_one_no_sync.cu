// One thread is chosen to fetch a number for the block.
//
// RUN: --block 64 --arg u32[1]=9 --arg u32[64]
// FIND: race-write-read
// ARCH: compute_90
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void kernel(const unsigned* in, unsigned* out) {
    __shared__ unsigned value;
    auto block = cg::this_thread_block();
    cg::invoke_one(block, [&] { value = *in; }); // SITE
    block.sync(); // FIX
    out[threadIdx.x] = value + threadIdx.x; // SITE
}
