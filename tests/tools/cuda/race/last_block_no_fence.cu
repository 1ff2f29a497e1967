// The last block adds up what all blocks wrote; a block counts itself without a fence behind its write.
//
// RUN: --grid 4 --block 32 --arg u32[4] --arg u32[1] --arg u32[1]
// FIND: race-write-read
extern "C" __global__ void kernel(unsigned* parts, unsigned* count, unsigned* out) {
    __shared__ bool last;
    unsigned sum = __reduce_add_sync(0xffffffff, threadIdx.x + blockIdx.x);
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = sum; // SITE
        __threadfence(); // FIX
        last = atomicAdd(count, 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        unsigned all = 0;
        for (unsigned i = 0; i < gridDim.x; i++) all += parts[i]; // SITE
        *out = all;
    }
}
