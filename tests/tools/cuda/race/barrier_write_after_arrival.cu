// What is written between arrival and wait is not ordered before the others' reads.
//
// RUN: --block 64 --arg u32[64]
// FIND: race-write-read
#include <cuda/barrier>
#pragma nv_diag_suppress static_var_with_dynamic_init

extern "C" __global__ void kernel(unsigned* out) {
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ unsigned tile[64];
    unsigned t = threadIdx.x;
    if (t == 0) init(&bar, 64);
    __syncthreads();
    tile[t] = t; // FIX
    auto token = bar.arrive();
    tile[t] = t; // BUG SITE
    bar.wait(std::move(token));
    out[t] = tile[t ^ 32]; // SITE
}
