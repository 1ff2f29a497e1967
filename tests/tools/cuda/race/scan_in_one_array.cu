// A scan by doubling steps in one array: the barrier between reading and writing is left out.
//
// RUN: --block 64 --arg u32[64]
// FIND: race-write-read
extern "C" __global__ void kernel(unsigned* out) {
    __shared__ unsigned values[64];
    unsigned t = threadIdx.x;
    values[t] = 1;
    __syncthreads();
#pragma unroll 1
    for (unsigned step = 1; step < 64; step *= 2) {
        unsigned other = t >= step ? values[t - step] : 0; // SITE
        __syncthreads(); // FIX
        values[t] += other; // SITE
        __syncthreads();
    }
    out[t] = values[t];
}
