// A barrier object expects more threads than ever arrive.
//
// RUN: --block 32 --arg u32[32]
// FIND: deadlock
#include <cuda/barrier>
#pragma nv_diag_suppress static_var_with_dynamic_init

extern "C" __global__ void kernel(unsigned* out) {
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    unsigned t = threadIdx.x;
    if (t == 0) init(&bar, 64); // BUG
    if (t == 0) init(&bar, 32); // FIX
    __syncthreads();
    bar.arrive_and_wait(); // SITE
    out[t] = t;
}
