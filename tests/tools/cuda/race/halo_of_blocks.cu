// A block reads the last element of the block before it, which that one changes.
//
// RUN: --grid 3 --block 32 --arg u32[96]=1 --arg u32[96]
// FIND: race-write-read
extern "C" __global__ void kernel(unsigned* a, unsigned* out) {
    unsigned i = blockIdx.x * 32 + threadIdx.x;
    unsigned left = i ? a[i - 1] : 0; // SITE
    __syncthreads();
    a[i] += left; // BUG SITE
    out[i] = a[i] + left; // FIX
}
