// The last thread reads the element behind the end.
//
// RUN: --block 32 --arg u32[32]=1 --arg u32[32]
// FIND: out-of-bounds
extern "C" __global__ void kernel(const unsigned* in, unsigned* out) {
    unsigned t = threadIdx.x;
    out[t] = in[t + 1]; // BUG SITE
    out[t] = in[(t + 1) % 32]; // FIX
}
