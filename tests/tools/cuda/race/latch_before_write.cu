// Each thread counts a latch down before it has written its number.
//
// RUN: --block 64 --arg u32[1]
// FIND: race-write-read
#include <cuda/latch>
#pragma nv_diag_suppress static_var_with_dynamic_init

extern "C" __global__ void kernel(unsigned* out) {
    using Latch = cuda::latch<cuda::thread_scope_block>;
    __shared__ alignas(Latch) char memory[sizeof(Latch)];
    Latch& latch = *reinterpret_cast<Latch*>(memory);
    __shared__ unsigned values[64];
    unsigned t = threadIdx.x;
    if (t == 0) new (&latch) Latch(64);
    __syncthreads();
    latch.count_down(); // BUG
    values[t] = t; // SITE
    latch.count_down(); // FIX
    if (t == 0) {
        latch.wait();
        unsigned sum = 0;
        for (unsigned i = 0; i < 64; i++) sum += values[i]; // SITE
        *out = sum;
    }
}
