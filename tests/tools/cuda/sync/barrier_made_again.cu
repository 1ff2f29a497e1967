// A barrier object is made a second time while the first one lives.
//
// RUN: --block 32 --arg u32[32]
// FIND: mbarrier-init-again
#include <cuda/barrier>
#pragma nv_diag_suppress static_var_with_dynamic_init

extern "C" __global__ void kernel(unsigned* out) {
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ unsigned tile[32];
    unsigned t = threadIdx.x;
#pragma unroll 1
    for (unsigned i = 0; i < 2; i++) {
        if (t == 0) init(&bar, 32); // SITE
        __syncthreads();
        tile[t] = t + i;
        bar.arrive_and_wait();
        out[t] = tile[31 - t];
        __syncthreads();
        if (t == 0) asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"((unsigned)__cvta_generic_to_shared(&bar)) : "memory"); // FIX
        __syncthreads();
    }
}
