// A sum is added to memory that was allocated and not cleared.
//
// RUN: --block 64 --arg u32[1]=undef
// FIND: uninitialized
extern "C" __global__ void kernel(unsigned* out) {
    if (threadIdx.x == 0) *out = 0; // FIX
    __syncthreads(); // FIX
    atomicAdd(out, threadIdx.x); // SITE
}
