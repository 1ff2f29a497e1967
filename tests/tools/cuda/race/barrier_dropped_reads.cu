// A warp leaves the barrier for good, and reads what the next phase brings.
//
// RUN: --block 64 --arg u32[32]
// FIND: race-write-read
#include <cuda/barrier>
#pragma nv_diag_suppress static_var_with_dynamic_init

extern "C" __global__ void kernel(unsigned* out) {
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ unsigned tile[32];
    unsigned t = threadIdx.x;
    if (t == 0) init(&bar, 64);
    __syncthreads();
    if (t >= 32) {
        tile[t - 32] = t; // SITE
        bar.arrive_and_drop(); // FIX
        bar.arrive_and_drop(); // BUG
        return;
    }
    bar.arrive_and_drop(); // BUG
    bar.arrive_and_wait(); // FIX
    out[t] = tile[31 - t]; // SITE
}
