// A barrier object is used by threads that do not know yet that it was made.
//
// RUN: --block 64 --arg u32[64]
// FIND: race-atomic | mbarrier
#include <cuda/barrier>
#pragma nv_diag_suppress static_var_with_dynamic_init

extern "C" __global__ void kernel(unsigned* out) {
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ unsigned tile[64];
    unsigned t = threadIdx.x;
    if (t == 0) init(&bar, 64); // SITE
    __syncthreads(); // FIX
    tile[t] = t;
    bar.arrive_and_wait(); // SITE
    out[t] = tile[t ^ 32];
}
