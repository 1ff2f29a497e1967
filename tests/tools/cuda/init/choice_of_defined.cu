// Of a written and an unwritten value the written one is chosen.
//
// RUN: --block 32 --arg u32[32] --arg 20
// FIND: uninitialized-output
extern "C" __global__ void kernel(unsigned* out, unsigned n) {
    __shared__ unsigned values[33];
    unsigned t = threadIdx.x;
    if (t < n) values[t] = t;
    __syncwarp();
    unsigned x = values[t]; // SITE
    out[t] = t < n ? x : 0; // FIX
    out[t] = t <= n ? x : 0; // BUG SITE
}
