// Two buffers with one barrier a turn: the one that is filled is the one that is read.
//
// RUN: --block 64 --arg u32[64]
// FIND: race-write-read
extern "C" __global__ void kernel(unsigned* out) {
    __shared__ unsigned buffers[2][64];
    unsigned t = threadIdx.x, sum = 0;
    buffers[0][t] = t;
    __syncthreads();
#pragma unroll 1
    for (unsigned i = 0; i < 4; i++) {
        sum += buffers[i % 2][63 - t]; // SITE
        buffers[i % 2][t] = sum; // BUG SITE
        buffers[(i + 1) % 2][t] = sum; // FIX
        __syncthreads();
    }
    out[t] = sum;
}
