// Who needs the data arrives, and who has made them waits.
//
// RUN: --block 64 --arg u32[32]
// FIND: race-write-read
__device__ void named_sync(int id, int count) { asm volatile("barrier.sync %0, %1;" ::"r"(id), "r"(count) : "memory"); }
__device__ void named_arrive(int id, int count) { asm volatile("barrier.arrive %0, %1;" ::"r"(id), "r"(count) : "memory"); }

extern "C" __global__ void kernel(unsigned* out) {
    __shared__ unsigned buffer[32];
    unsigned t = threadIdx.x;
    if (t < 32) {
        buffer[t] = t * t; // SITE
        named_arrive(1, 64); // FIX
        named_sync(1, 64); // BUG
    } else {
        named_sync(1, 64); // FIX
        named_arrive(1, 64); // BUG
        out[t - 32] = buffer[63 - t]; // SITE
    }
}
