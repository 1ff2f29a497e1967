// All threads write; a barrier is needed before one of them counts the block, behind a fence.
//
// RUN: --grid 3 --block 64 --arg u32[192] --arg u32[1] --arg u32[1]
// FIND: race-write-read
extern "C" __global__ void kernel(unsigned* values, unsigned* count, unsigned* out) {
    __shared__ bool last;
    unsigned t = threadIdx.x;
    values[blockIdx.x * 64 + t] = t; // SITE
    __syncthreads(); // FIX
    if (t == 0) {
        __threadfence();
        last = atomicAdd(count, 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (last && t == 0) {
        unsigned all = 0;
        for (unsigned i = 0; i < 192; i++) all += values[i]; // SITE
        *out = all;
    }
}
