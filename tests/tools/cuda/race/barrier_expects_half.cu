// A barrier object that expects one warp of two completes a phase for each of them.
//
// RUN: --block 64 --arg u32[64]
// FIND: race-write-read
#include <cuda/barrier>
#pragma nv_diag_suppress static_var_with_dynamic_init

extern "C" __global__ void kernel(unsigned* out) {
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ unsigned tile[64];
    unsigned t = threadIdx.x;
    if (t == 0) init(&bar, 32); // BUG
    if (t == 0) init(&bar, 64); // FIX
    __syncthreads();
    tile[t] = t; // SITE
    bar.arrive_and_wait();
    out[t] = tile[t ^ 32]; // SITE
}
