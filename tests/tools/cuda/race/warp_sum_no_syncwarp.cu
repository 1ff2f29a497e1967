// A sum of a warp over plain shared memory without a barrier of the warp between the steps.
//
// RUN: --block 32 --arg u32[1]
// FIND: race-write-read
extern "C" __global__ void kernel(unsigned* out) {
    __shared__ unsigned values[32];
    unsigned t = threadIdx.x;
    values[t] = t + 1;
    __syncwarp();
#pragma unroll 1
    for (unsigned step = 16; step > 0; step /= 2) {
        if (t < step) values[t] += values[t + step]; // SITE
        __syncwarp(); // FIX
    }
    if (t == 0) *out = values[0];
}
