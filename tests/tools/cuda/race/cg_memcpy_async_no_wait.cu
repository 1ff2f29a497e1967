// A block copies a tile asynchronously, and reads it behind a plain barrier.
//
// RUN: --block 64 --arg u32[64]=5 --arg u32[64]
// FIND: race-write-read copy-not-awaited
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
namespace cg = cooperative_groups;

extern "C" __global__ void kernel(const unsigned* in, unsigned* out) {
    __shared__ alignas(16) unsigned tile[64];
    auto block = cg::this_thread_block();
    cg::memcpy_async(block, tile, in, cuda::aligned_size_t<16>(sizeof tile)); // SITE
    block.sync(); // BUG
    cg::wait(block); // FIX
    out[threadIdx.x] = tile[63 - threadIdx.x]; // SITE
}
