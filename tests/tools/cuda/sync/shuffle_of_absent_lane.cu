// Lanes of a branch read a lane that is not in it.
//
// RUN: --block 32 --arg u32[32]
// FIND: inactive-lane
extern "C" __global__ void kernel(unsigned* out) {
    unsigned t = threadIdx.x, x = t * 3;
    if (t < 16) {
        x = __shfl_sync(0x0000ffff, x, t + 8); // BUG SITE
        x = __shfl_sync(0x0000ffff, x, (t + 8) % 16); // FIX
    }
    out[t] = x;
}
