// A named barrier for a number of threads that is no multiple of a warp.
//
// RUN: --block 64 --arg u32[64]
// FIND: barrier-count-warps
extern "C" __global__ void kernel(unsigned* out) {
    unsigned count = blockDim.x - 16; // BUG
    unsigned count = blockDim.x; // FIX
    asm volatile("barrier.sync 1, %0;" ::"r"(count) : "memory"); // SITE
    out[threadIdx.x] = count;
}
