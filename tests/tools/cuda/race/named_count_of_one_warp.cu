// Two warps exchange behind a named barrier that is complete with one of them.
//
// RUN: --block 64 --arg u32[64]
// FIND: race-write-read
__device__ void named_sync(int id, int count) { asm volatile("barrier.sync %0, %1;" ::"r"(id), "r"(count) : "memory"); }

extern "C" __global__ void kernel(unsigned* out) {
    __shared__ unsigned tile[64];
    unsigned t = threadIdx.x;
    tile[t] = t; // SITE
    named_sync(1, 32); // BUG
    named_sync(1, 64); // FIX
    out[t] = tile[t ^ 32]; // SITE
}
