// An empty optional is copied with whatever its payload holds, which nobody looks at.
//
// RUN: --block 32 --arg u32[32]
// FIND: uninitialized-output
#include <cuda/std/optional>

extern "C" __global__ void kernel(unsigned* out) {
    __shared__ unsigned values[32];
    __shared__ unsigned char filled[32];
    unsigned t = threadIdx.x;
    filled[t] = t % 2;
    if (t % 2) values[t] = t;
    __syncwarp();
    unsigned from = 31 - t, x = values[from]; // SITE
    out[t] = filled[from] ? x : 7; // FIX
    out[t] = filled[from] ? 7 : x; // BUG SITE
}
