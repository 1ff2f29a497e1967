// A binary semaphore protects a sum of the block; it is given back before the sum is written.
//
// RUN: --block 64 --arg u32[1]
// FIND: race-write-read race-write-write
#include <cuda/semaphore>
#pragma nv_diag_suppress static_var_with_dynamic_init

extern "C" __global__ void kernel(unsigned* out) {
    __shared__ cuda::binary_semaphore<cuda::thread_scope_block> free;
    __shared__ unsigned sum;
    if (threadIdx.x == 0) {
        new (&free) cuda::binary_semaphore<cuda::thread_scope_block>(1);
        sum = 0;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        free.acquire();
        free.release(); // BUG
        sum += threadIdx.x + 1; // SITE
        free.release(); // FIX
    }
    __syncthreads();
    if (threadIdx.x == 0) *out = sum;
}
