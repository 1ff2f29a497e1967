// Two groups of two warps each use the same barrier: whoever comes first completes it.
//
// ORDER: warps
// RUN: --block 128 --arg u32[128]
// FIND: race-write-read
__device__ void named_sync(int id, int count) { asm volatile("barrier.sync %0, %1;" ::"r"(id), "r"(count) : "memory"); }

extern "C" __global__ void kernel(unsigned* out) {
    __shared__ unsigned tile[128];
    unsigned t = threadIdx.x, group = t / 32 % 2;
    tile[t] = t; // SITE
    named_sync(1, 64); // BUG
    named_sync(1 + group, 64); // FIX
    out[t] = tile[t ^ 64]; // SITE
}
