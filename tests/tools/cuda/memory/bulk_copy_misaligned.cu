// A bulk copy from an address that is no multiple of 16.
//
// RUN: --block 32 --arg u32[40]=3 --arg u32[32]
// FIND: misaligned
// ARCH: compute_90
#include <cuda/barrier>
#include <cuda/ptx>
#pragma nv_diag_suppress static_var_with_dynamic_init

extern "C" __global__ void kernel(const unsigned* in, unsigned* out) {
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ alignas(16) unsigned tile[32];
    unsigned t = threadIdx.x;
    auto* handle = cuda::device::barrier_native_handle(bar);
    if (t == 0) {
        init(&bar, 1);
        cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
        unsigned from = 2; // BUG
        unsigned from = 4; // FIX
        cuda::ptx::mbarrier_arrive_expect_tx(cuda::ptx::sem_release, cuda::ptx::scope_cta, cuda::ptx::space_shared, handle, sizeof tile);
        cuda::ptx::cp_async_bulk(cuda::ptx::space_cluster, cuda::ptx::space_global, tile, in + from, sizeof tile, handle); // SITE
    }
    __syncthreads();
    bar.wait_parity(0);
    out[t] = tile[31 - t];
}
