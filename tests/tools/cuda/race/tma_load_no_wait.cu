// Only the thread that asked for a bulk copy waits for it.
//
// RUN: --block 64 --arg u32[64]=3 --arg u32[64]
// FIND: race-write-read
// ARCH: compute_90
#include <cuda/barrier>
#include <cuda/ptx>
#pragma nv_diag_suppress static_var_with_dynamic_init

extern "C" __global__ void kernel(const unsigned* in, unsigned* out) {
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ alignas(16) unsigned tile[64];
    unsigned t = threadIdx.x;
    if (t == 0) {
        init(&bar, 1);
        cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
    }
    __syncthreads();
    if (t == 0) {
        cuda::device::memcpy_async_tx(tile, in, cuda::aligned_size_t<16>(sizeof tile), bar); // SITE
        auto token = cuda::device::barrier_arrive_tx(bar, 1, sizeof tile);
        bar.wait(std::move(token)); // BUG
    }
    bar.wait_parity(0); // FIX
    out[t] = tile[63 - t]; // SITE
}
