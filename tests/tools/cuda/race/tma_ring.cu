// A ring of two stages: the warp that loads does not wait until a stage was read.
//
// RUN: --block 64 --arg u32[192]=3 --arg u32[192]
// FIND: race-write-read | deadlock
// ARCH: compute_90
#include <cuda/barrier>
#include <cuda/ptx>
#pragma nv_diag_suppress static_var_with_dynamic_init

extern "C" __global__ void kernel(const unsigned* in, unsigned* out) {
    __shared__ cuda::barrier<cuda::thread_scope_block> full[2], empty[2];
    __shared__ alignas(16) unsigned stage[2][32];
    unsigned t = threadIdx.x;
    if (t == 0) {
        for (int i = 0; i < 2; i++) {
            init(&full[i], 1);
            init(&empty[i], 32);
        }
        cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
    }
    __syncthreads();
    if (t >= 32) {
        if (t == 32) {
#pragma unroll 1
            for (unsigned i = 0; i < 6; i++) {
                if (i >= 2) empty[i % 2].wait_parity(i / 2 % 2); // BUG STOP
                if (i >= 2) empty[i % 2].wait_parity((i / 2 - 1) % 2); // FIX
                cuda::device::memcpy_async_tx(stage[i % 2], in + i * 32, cuda::aligned_size_t<16>(128), full[i % 2]); // SITE
                (void)cuda::device::barrier_arrive_tx(full[i % 2], 1, 128);
            }
        }
    } else {
#pragma unroll 1
        for (unsigned i = 0; i < 6; i++) {
            full[i % 2].wait_parity(i / 2 % 2); // STOP
            out[i * 32 + t] = stage[i % 2][31 - t]; // SITE
            (void)empty[i % 2].arrive();
        }
    }
}
