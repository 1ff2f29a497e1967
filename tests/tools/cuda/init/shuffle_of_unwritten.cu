// A value that some lanes have not read from anywhere goes to others by a shuffle.
//
// RUN: --block 32 --arg u32[32]
// FIND: uninitialized-output
extern "C" __global__ void kernel(unsigned* out) {
    __shared__ unsigned values[32];
    unsigned t = threadIdx.x;
    if (t < 16) values[t] = t;
    __syncwarp();
    unsigned x = values[t]; // SITE
    unsigned y = __shfl_sync(0xffffffff, x, t / 2 + 1); // BUG
    unsigned y = __shfl_sync(0xffffffff, x, t / 2); // FIX
    out[t] = y; // SITE
}
