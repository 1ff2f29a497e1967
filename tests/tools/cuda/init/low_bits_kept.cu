// Flags share a word with bits that nobody wrote; only the written ones are looked at.
//
// RUN: --block 32 --arg u32[32]
// FIND: uninitialized-output
extern "C" __global__ void kernel(unsigned* out) {
    __shared__ alignas(4) unsigned short halves[64];
    unsigned t = threadIdx.x;
    halves[t * 2] = t;
    __syncwarp();
    unsigned word = *(volatile unsigned*)&halves[t * 2]; // SITE
    out[t] = word; // BUG SITE
    out[t] = word & 0xffff; // FIX
}
