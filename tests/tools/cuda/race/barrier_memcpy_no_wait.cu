// A copy is bound to a barrier object, and what it brings is read behind another barrier.
//
// RUN: --block 64 --arg u32[64]=3 --arg u32[64]
// FIND: race-write-read copy-not-awaited
#include <cooperative_groups.h>
#include <cuda/barrier>
#pragma nv_diag_suppress static_var_with_dynamic_init

extern "C" __global__ void kernel(const unsigned* in, unsigned* out) {
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ alignas(16) unsigned tile[64];
    auto block = cooperative_groups::this_thread_block();
    unsigned t = threadIdx.x;
    if (t == 0) init(&bar, 64);
    block.sync();
    cuda::memcpy_async(block, tile, in, cuda::aligned_size_t<16>(sizeof tile), bar); // SITE
    auto token = bar.arrive();
    block.sync(); // BUG
    bar.wait(std::move(token)); // FIX
    out[t] = tile[63 - t] + tile[t]; // SITE
}
