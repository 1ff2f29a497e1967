// A sum of a block by halves: the barrier stands before the loop instead of within it.
//
// RUN: --block 128 --arg u32[1]
// FIND: race-write-read
extern "C" __global__ void kernel(unsigned* out) {
    __shared__ unsigned values[128];
    unsigned t = threadIdx.x;
    values[t] = t;
    __syncthreads();
#pragma unroll 1
    for (unsigned step = 64; step > 0; step /= 2) {
        if (t < step) values[t] += values[t + step]; // SITE
        __syncthreads(); // FIX
    }
    if (t == 0) *out = values[0];
}
