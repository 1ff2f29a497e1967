// A shuffle of the whole warp in a branch that half of it takes.
//
// RUN: --block 32 --arg u32[32]
// FIND: missing-warp-lanes
extern "C" __global__ void kernel(unsigned* out) {
    unsigned t = threadIdx.x, x = t * 3;
    if (t < 16) {
        x += __shfl_xor_sync(0xffffffff, x, 1); // BUG SITE
        x += __shfl_xor_sync(0x0000ffff, x, 1); // FIX
        x ^= 5;
    }
    out[t] = x + __shfl_xor_sync(0xffffffff, x, 2);
}
