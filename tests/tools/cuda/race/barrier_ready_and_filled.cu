// Producers and consumers with two barrier objects for each buffer; the producers do not wait until it is empty.
//
// RUN: --block 64 --arg u32[128]=3 --arg u32[128]
// FIND: race-write-read | deadlock race-write-read
#include <cuda/barrier>
#pragma nv_diag_suppress static_var_with_dynamic_init

extern "C" __global__ void kernel(const unsigned* in, unsigned* out) {
    __shared__ cuda::barrier<cuda::thread_scope_block> ready[2], filled[2];
    __shared__ unsigned buffer[2][32];
    unsigned t = threadIdx.x % 32;
    if (threadIdx.x < 2) {
        init(&ready[threadIdx.x], 64);
        init(&filled[threadIdx.x], 64);
    }
    __syncthreads();
    if (threadIdx.x < 32) {
#pragma unroll 1
        for (unsigned i = 0; i < 4; i++) {
            (void)ready[i % 2].arrive(); // BUG
            ready[i % 2].arrive_and_wait(); // FIX
            buffer[i % 2][t] = in[i * 32 + t]; // SITE
            (void)filled[i % 2].arrive();
        }
    } else {
        (void)ready[0].arrive();
        (void)ready[1].arrive();
#pragma unroll 1
        for (unsigned i = 0; i < 4; i++) {
            filled[i % 2].arrive_and_wait(); // STOP
            out[i * 32 + t] = buffer[i % 2][31 - t]; // SITE
            if (i + 2 < 4) (void)ready[i % 2].arrive();
        }
    }
}
