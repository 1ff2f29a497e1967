// A loop waits for the parity of the first phase every time, which the third one has passed already.
//
// RUN: --block 64 --arg u32[256]
// FIND: race-write-read | deadlock | deadlock race-write-read
#include <cuda/barrier>
#pragma nv_diag_suppress static_var_with_dynamic_init

extern "C" __global__ void kernel(unsigned* out) {
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ unsigned tile[2][64];
    unsigned t = threadIdx.x;
    if (t == 0) init(&bar, 64);
    __syncthreads();
#pragma unroll 1
    for (unsigned i = 0; i < 4; i++) {
        tile[i % 2][t] = i + t; // SITE
        (void)bar.arrive();
        bar.wait_parity(0); // BUG STOP
        bar.wait_parity(i % 2); // FIX
        out[i * 64 + t] = tile[i % 2][t ^ 32]; // SITE
    }
}
