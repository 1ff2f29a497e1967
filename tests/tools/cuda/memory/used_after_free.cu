// A buffer is read after it was given back.
//
// RUN: --block 1 --arg u32[1]
// FIND: use-after-free
extern "C" __global__ void kernel(unsigned* out) {
    unsigned* buffer = (unsigned*)malloc(64);
    if (!buffer) return;
    for (unsigned i = 0; i < 16; i++) ((volatile unsigned*)buffer)[i] = i;
    free(buffer); // BUG
    *out = ((volatile unsigned*)buffer)[7]; // SITE
    free(buffer); // FIX
}
