// Two stages are copied ahead, and the older one is awaited with one too few.
//
// RUN: --block 32 --arg u32[128]=5 --arg u32[128]
// FIND: race-write-read copy-not-awaited
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
namespace cg = cooperative_groups;

extern "C" __global__ void kernel(const unsigned* in, unsigned* out) {
    __shared__ alignas(16) unsigned stage[2][32];
    auto block = cg::this_thread_block();
    unsigned t = threadIdx.x;
    cg::memcpy_async(block, stage[0], in, cuda::aligned_size_t<16>(128)); // SITE
    for (int i = 0; i < 4; i++) {
        if (i < 3) cg::memcpy_async(block, stage[(i + 1) % 2], in + (i + 1) * 32, cuda::aligned_size_t<16>(128)); // SITE
        cg::wait_prior<1>(block); // BUG
        if (i < 3) cg::wait_prior<1>(block); // FIX
        else cg::wait(block); // FIX
        out[i * 32 + t] = stage[i % 2][31 - t]; // SITE
        block.sync();
    }
}
