// Bins are written out before all have counted.
//
// RUN: --block 64 --arg u32[64]=5 --arg u32[16]
// FIND: race-atomic
extern "C" __global__ void kernel(const unsigned* in, unsigned* out) {
    __shared__ unsigned bins[16];
    unsigned t = threadIdx.x;
    if (t < 16) bins[t] = 0;
    __syncthreads();
    atomicAdd(&bins[(in[t] + t) % 16], 1u); // SITE
    __syncthreads(); // FIX
    if (t < 16) out[t] = bins[t]; // SITE
}
