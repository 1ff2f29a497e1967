// A block waits for the prefix of the block before it, whose flag is set without a fence behind the value.
//
// RUN: --grid 4 --block 1 --arg u32[4] --arg u32[4] --arg u32[4]
// FIND: race-write-read
extern "C" __global__ void kernel(unsigned* prefixes, unsigned* flags, unsigned* out) {
    unsigned b = blockIdx.x, before = 0;
    if (b > 0) {
        while (*(volatile unsigned*)&flags[b - 1] == 0) {}
        __threadfence();
        before = prefixes[b - 1]; // SITE
    }
    prefixes[b] = before + b + 1; // SITE
    __threadfence(); // FIX
    *(volatile unsigned*)&flags[b] = 1;
    out[b] = before;
}
