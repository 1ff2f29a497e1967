// Bins in shared memory are counted by plain additions.
//
// RUN: --block 64 --arg u32[64]=5 --arg u32[16]
// FIND: race-write-read race-write-write | race-same-value race-write-read | race-same-value race-write-read race-write-write
extern "C" __global__ void kernel(const unsigned* in, unsigned* out) {
    __shared__ unsigned bins[16];
    unsigned t = threadIdx.x;
    if (t < 16) bins[t] = 0;
    __syncthreads();
    bins[(in[t] + t) % 16]++; // BUG SITE
    atomicAdd(&bins[(in[t] + t) % 16], 1u); // FIX
    __syncthreads();
    if (t < 16) out[t] = bins[t];
}
