// Bins in shared memory are counted without having been cleared.
//
// RUN: --block 32 --arg u32[32]=7 --arg u32[8]
// FIND: uninitialized
extern "C" __global__ void kernel(const unsigned* in, unsigned* out) {
    __shared__ unsigned bins[8];
    unsigned t = threadIdx.x;
    if (t < 8) bins[t] = 0; // FIX
    __syncthreads();
    atomicAdd(&bins[(in[t] + t) % 8], 1u); // SITE
    __syncthreads();
    if (t < 8) out[t] = bins[t];
}
