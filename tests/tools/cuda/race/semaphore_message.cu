// A counting semaphore says how many numbers are there; it is raised before the number is written.
//
// RUN: --block 64 --arg u32[1]
// FIND: race-write-read
#include <cuda/semaphore>
#pragma nv_diag_suppress static_var_with_dynamic_init

extern "C" __global__ void kernel(unsigned* out) {
    __shared__ cuda::counting_semaphore<cuda::thread_scope_block> count;
    __shared__ unsigned values[4];
    if (threadIdx.x == 0) new (&count) cuda::counting_semaphore<cuda::thread_scope_block>(0);
    __syncthreads();
    if (threadIdx.x == 0) {
        for (unsigned i = 0; i < 4; i++) {
            count.release(); // BUG
            values[i] = i * i; // SITE
            count.release(); // FIX
        }
    } else if (threadIdx.x == 32) {
        unsigned sum = 0;
        for (unsigned i = 0; i < 4; i++) {
            count.acquire();
            sum += values[i]; // SITE
        }
        *out = sum;
    }
}
