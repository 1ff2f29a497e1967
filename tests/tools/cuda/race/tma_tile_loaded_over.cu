// A bulk load fills the tile that slow warps still read.
//
// RUN: --block 64 --arg u32[256]=3 --arg u32[256]
// FIND: race-write-read | deadlock race-write-read
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
#pragma unroll 1
    for (unsigned i = 0; i < 4; i++) {
        if (t == 0) {
            cuda::device::memcpy_async_tx(tile, in + i * 64, cuda::aligned_size_t<16>(sizeof tile), bar); // SITE
            (void)cuda::device::barrier_arrive_tx(bar, 1, sizeof tile);
        }
        bar.wait_parity(i % 2); // STOP
        out[i * 64 + t] = tile[63 - t]; // SITE
        __syncthreads(); // FIX
    }
}
