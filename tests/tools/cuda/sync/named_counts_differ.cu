// Producers and consumers name different numbers of threads for one barrier.
//
// RUN: --block 96 --arg u32[96]
// FIND: barrier-counts | barrier-counts deadlock
extern "C" __global__ void kernel(unsigned* out) {
    unsigned t = threadIdx.x;
    if (t < 32) asm volatile("barrier.sync 1, 96;" ::: "memory"); // SITE
    else asm volatile("barrier.sync 1, 64;" ::: "memory"); // BUG SITE
    else asm volatile("barrier.sync 1, 96;" ::: "memory"); // FIX
    out[t] = t;
}
