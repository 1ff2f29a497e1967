// A bitonic sort whose barrier is left out for steps within a warp.
//
// RUN: --block 64 --arg u32[64]
// FIND: race-write-read | race-write-read race-write-write
extern "C" __global__ void kernel(unsigned* out) {
    __shared__ unsigned keys[64];
    unsigned t = threadIdx.x;
    keys[t] = t * 37 % 64;
    __syncthreads();
#pragma unroll 1
    for (unsigned size = 2; size <= 64; size *= 2)
#pragma unroll 1
        for (unsigned step = size / 2; step > 0; step /= 2) {
            unsigned other = t ^ step;
            if (other > t) {
                unsigned a = keys[t], b = keys[other]; // SITE
                if ((a > b) == !(t & size)) {
                    keys[t] = b; // SITE
                    keys[other] = a; // SITE
                }
            }
            if (step >= 32) __syncthreads(); // BUG
            __syncthreads(); // FIX
        }
    __syncthreads();
    out[t] = keys[t];
}
