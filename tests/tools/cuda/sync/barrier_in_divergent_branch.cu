// A barrier of the block in a branch that not all threads take; the others pass by.
//
// RUN: --block 64 --arg u32[64]
// FIND: divergent-barrier
extern "C" __global__ void kernel(unsigned* out) {
    __shared__ unsigned values[64];
    unsigned t = threadIdx.x;
    values[t] = t;
    __syncthreads(); // FIX
    if (t < 40) {
        __syncthreads(); // BUG SITE
        out[t] = values[t];
    }
} // SITE
