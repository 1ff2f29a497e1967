// Threads come to the barrier of a loop in different numbers.
//
// RUN: --block 64 --arg u32[64]
// FIND: exit-before-barrier | divergent-barrier | divergent-barrier exit-before-barrier | deadlock
extern "C" __global__ void kernel(unsigned* out) {
    __shared__ unsigned values[64];
    unsigned t = threadIdx.x, sum = 0;
    unsigned turns = 2 + t % 2; // BUG
    unsigned turns = 3; // FIX
#pragma unroll 1
    for (unsigned i = 0; i < turns; i++) {
        values[t] = i;
        __syncthreads(); // SITE
        sum += values[t];
    }
    out[t] = sum;
} // SITE
