// Threads beyond the end return before the barrier that all of the block must reach.
//
// RUN: --block 64 --arg u32[50]=1 --arg u32[50] --arg 50
// FIND: divergent-barrier
extern "C" __global__ void kernel(const unsigned* in, unsigned* out, unsigned n) {
    __shared__ unsigned values[64];
    unsigned t = threadIdx.x;
    if (t >= n) return; // BUG
    values[t] = t < n ? in[t] : 0;
    __syncthreads(); // SITE
    if (t < n) out[t] = values[n - 1 - t];
} // SITE
