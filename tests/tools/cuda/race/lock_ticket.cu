// A lock of tickets: who is served is read with volatile, and nothing orders what comes behind.
//
// RUN: --grid 3 --block 1 --arg u32[2] --arg u32[1]
// FIND: race-write-read race-write-write
extern "C" __global__ void kernel(unsigned* lock, unsigned* sum) {
    unsigned mine = atomicAdd(&lock[0], 1);
    while (*(volatile unsigned*)&lock[1] != mine) {}
    __threadfence(); // FIX
    *sum += blockIdx.x + 1; // SITE
    __threadfence();
    *(volatile unsigned*)&lock[1] = mine + 1;
}
