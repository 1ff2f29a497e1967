// A buffer is filled again by warps that do not wait until it was read.
//
// RUN: --block 64 --arg u32[64]
// FIND: race-write-read
__device__ void named_sync(int id, int count) { asm volatile("barrier.sync %0, %1;" ::"r"(id), "r"(count) : "memory"); }
__device__ void named_arrive(int id, int count) { asm volatile("barrier.arrive %0, %1;" ::"r"(id), "r"(count) : "memory"); }

extern "C" __global__ void kernel(unsigned* out) {
    __shared__ unsigned buffer[32];
    unsigned t = threadIdx.x;
    if (t < 32) {
        buffer[t] = t;
        named_arrive(1, 64);
        named_sync(2, 64); // FIX
        buffer[t] = t + 100; // SITE
        named_arrive(3, 64);
    } else {
        named_sync(1, 64);
        out[t - 32] = buffer[63 - t]; // SITE
        named_arrive(2, 64);
        named_sync(3, 64);
        out[t] = buffer[63 - t];
    }
}
