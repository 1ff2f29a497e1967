// The last entry of a thread's own array is read and never written.
//
// RUN: --block 32 --arg u32[32]=3 --arg u32[32]
// FIND: uninitialized-output
extern "C" __global__ void kernel(const unsigned* in, unsigned* out) {
    unsigned values[4], t = threadIdx.x;
#pragma unroll 1
    for (unsigned i = 0; i < 3; i++) values[(in[t] + i) % 4] = i; // BUG
    for (unsigned i = 0; i < 4; i++) values[(in[t] + i) % 4] = i; // FIX
    out[t] = values[(t + 1) % 4]; // SITE
}
