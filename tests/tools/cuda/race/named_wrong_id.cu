// Producers fill a buffer and arrive at one named barrier; consumers wait at another.
//
// RUN: --block 128 --arg u32[64]
// FIND: race-write-read
__device__ void named_sync(int id, int count) { asm volatile("barrier.sync %0, %1;" ::"r"(id), "r"(count) : "memory"); }
__device__ void named_arrive(int id, int count) { asm volatile("barrier.arrive %0, %1;" ::"r"(id), "r"(count) : "memory"); }

extern "C" __global__ void kernel(unsigned* out) {
    __shared__ unsigned buffer[64];
    unsigned t = threadIdx.x;
    if (t < 64) {
        buffer[t] = t * t; // SITE
        named_arrive(1, 128); // FIX
        named_arrive(1, 64); // BUG
    } else {
        named_sync(1, 128); // FIX
        named_sync(2, 64); // BUG
        out[t - 64] = buffer[127 - t]; // SITE
    }
}
