// A spin lock of atomicCAS and atomicExch, without a fence behind the taking.
//
// RUN: --grid 3 --block 1 --arg u32[1] --arg u32[1]
// FIND: race-write-read race-write-write
extern "C" __global__ void kernel(unsigned* lock, unsigned* sum) {
    while (atomicCAS(lock, 0, 1) != 0) {}
    __threadfence(); // FIX
    *sum += blockIdx.x + 1; // SITE
    __threadfence();
    atomicExch(lock, 0);
}
