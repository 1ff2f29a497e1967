// A tile has a halo on both sides; only one of them is filled.
//
// RUN: --block 32 --arg u32[34]=2 --arg u32[32]
// FIND: uninitialized-output
extern "C" __global__ void kernel(const unsigned* in, unsigned* out) {
    __shared__ unsigned tile[34];
    unsigned t = threadIdx.x;
    tile[t] = in[t];
    if (t < 2) tile[32 + t] = in[32 + t]; // FIX
    if (t < 1) tile[32 + t] = in[32 + t]; // BUG
    __syncthreads();
    out[t] = tile[t] + tile[t + 2]; // SITE
}
