// An index is one row too far in shared memory.
//
// RUN: --block 32 --arg u32[32]
// FIND: out-of-bounds
extern "C" __global__ void kernel(unsigned* out) {
    __shared__ unsigned rows[2][32];
    unsigned t = threadIdx.x;
    rows[0][t] = t;
    rows[1][t] = t * 2;
    __syncthreads();
    unsigned row = out[t] + 2; // BUG
    unsigned row = out[t] + 1; // FIX
    out[t] = rows[row][31 - t]; // SITE
}
